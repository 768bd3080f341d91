import json
import math
import re
from pathlib import Path

import numpy as np

from grms.federation.federation import Federation
from grms.learning.checkpoint import Best
from grms.learning.evolution.catalog import new_strategy
from grms.learning.evolution.self_play import joined
from grms.learning.evolution.strategies import StrategySettings
from grms.learning.evolution.termination import GenerationLimit, GenerationRecord
from grms.learning.training import TrainingResult, train
from grms.learning.transfer.comparison import compared_match
from grms.learning.transfer.encoding import RuleBaseSettings, encode
from grms.learning.transfer.fitness import Fitness, MatchFitness, TrainingCase
from grms.learning.transfer.options import STEM_LENGTH_MAX, Objective, rule_base_file
from grms.learning.transfer.outcome import (
    AwrtRow,
    TrainingOutcome,
    awrt_words,
    make_outcome,
    make_self_play_outcome,
    self_play_page,
    visited_states,
    write_outcome,
)
from grms.policy.constraints import START_NOW
from grms.policy.files import load_rule_base
from lrms_sim.report.templates import alone
from lrms_sim.util.executors import ThreadExecutor
from lrms_sim.util.version import __version__
from lrms_sim.workload.jobs import JobTable
from tests.training_grids import rule_space, two_sites

SPACE = rule_space(2)
SETTINGS = StrategySettings(parents=3, offspring=6)
ORIGIN = {"a": {"file": "a.swf", "file_sha256": "ab" * 32}}


def trained(
    objective: Objective = "egoistic", *, seeds: tuple[int, ...] = (1, 2)
) -> TrainingOutcome:
    """Returns what comes of a short training on some windows of two sites."""
    return outcome_of(
        Fitness(
            [TrainingCase(Federation(two_sites(seed)), "a", ("b",)) for seed in seeds], objective
        )
    )


def outcome_of(fitness: Fitness) -> TrainingOutcome:
    with ThreadExecutor(1) as executor:
        result = train(
            new_strategy("paper", SPACE, SETTINGS, 3), fitness, executor, GenerationLimit(3)
        )
    return make_outcome(
        fitness,
        result,
        case_names=[f"window {number}" for number in range(len(fitness.cases))],
        settings={"name": "paper", "seed": 3},
        origins=[ORIGIN] * len(fitness.cases),
        commit="0123abc",
    )


def test_provenance_tells_all_that_the_rules_come_from() -> None:
    """Program, commit, strategy, seed, objective, fitness, and each site of each replay."""
    outcome = trained()
    said = outcome.rule_base.provenance
    assert said["program"] == f"hanse {__version__}"
    assert said["commit"] == "0123abc"
    assert said["strategy"] == {"name": "paper", "seed": 3}
    assert said["objective"] == "egoistic"
    assert said["fitness"] == outcome.result.best.evaluation.value
    assert (said["generations"], said["evaluations"]) == (3, 3 + 3 * 6)
    assert said["stopped"] == "generation 3 of 3 is done"
    assert [case["scenario"] for case in said["cases"]] == ["window 0", "window 1"]
    a, b = said["cases"][1]["sites"]
    assert (a["name"], a["processors"], a["discipline"]) == ("a", 10, "fcfs")
    assert a["origin"] == ORIGIN["a"]
    assert b["origin"] == {}
    assert len(a["jobs_sha256"]) == 64
    assert (a["awrt_alone_s"], a["awrt_after_s"]) == (outcome.rows[2].alone, outcome.rows[2].after)
    assert outcome.rule_base.name == "a for b"


def test_the_rows_are_what_the_rule_base_does() -> None:
    """AWRT after training is that of a replay with the saved rules, digit by digit."""
    outcome = trained()
    for number, seed in enumerate((1, 2)):
        federation = Federation(two_sites(seed))
        after = federation.awrt({("a", "b"): outcome.rule_base.compiled})
        rows = outcome.rows[2 * number : 2 * number + 2]
        assert [row.after for row in rows] == after
        assert [row.evolved for row in rows] == [True, False]
        assert rows[0].improvement == 1 - rows[0].after / rows[0].alone


def test_a_partner_without_jobs_can_be_written() -> None:
    """Its AWRT is no number, which JSON has no word for."""
    a, b = two_sites()
    idle = [a, type(b)("b", 25, JobTable.empty(), transfer_policies=b.transfer_policies)]
    outcome = outcome_of(Fitness([TrainingCase(Federation(idle), "a", ("b",))], "no_loser"))
    site = outcome.rule_base.provenance["cases"][0]["sites"][1]
    assert site["awrt_alone_s"] is site["awrt_after_s"] is None
    json.dumps(outcome.rule_base.provenance, allow_nan=False)
    assert awrt_words(outcome.rows[1]) == ("no jobs", "no jobs", "")
    assert outcome.unit == "AWRT / AWRT alone + penalty"


def test_gains_and_losses_have_their_sign() -> None:
    """Shorter is better."""
    assert awrt_words(AwrtRow("x", "a", 200.0, 150.0, evolved=True))[2] == "+25.00%"
    assert awrt_words(AwrtRow("x", "a", 1234.567, 2469.134, evolved=True)) == (
        "1,234.57",
        "2,469.13",
        "-100.00%",
    )
    assert math.isnan(AwrtRow("x", "a", math.nan, math.nan, evolved=False).improvement)


def written(folder: Path, outcome: TrainingOutcome) -> dict[str, str]:
    fitness = Fitness([TrainingCase(Federation(two_sites(seed)), "a", ("b",)) for seed in (1, 2)])
    write_outcome(folder, "a-for-b.json", outcome, visited_states(fitness, outcome.rule_base))
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_everything_is_written(tmp_path: Path) -> None:
    """The rule base, both pictures, and a page that holds them; no temporary file."""
    outcome = trained()
    files = written(tmp_path, outcome)
    assert set(files) == {"a-for-b.json", "convergence.svg", "decision-map.svg", "training.html"}
    assert load_rule_base(tmp_path / "a-for-b.json") == outcome.rule_base
    page = files["training.html"]
    drawn = re.findall(r'<svg class="chart".*?</svg>', page, re.DOTALL)
    assert [alone(one) for one in drawn] == [files["convergence.svg"], files["decision-map.svg"]]
    for word in ("paper", "egoistic", "generation 3 of 3 is done", "a-for-b.json", "a (learned)"):
        assert word in page
    for row in outcome.rows:
        assert all(word in page for word in awrt_words(row))


def test_the_page_is_self_contained(tmp_path: Path) -> None:
    """It opens offline: nothing in it is loaded from anywhere."""
    page = written(tmp_path, trained())["training.html"]
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page)
    assert "<script" not in page


def test_the_page_can_be_read_by_night_and_by_ear(tmp_path: Path) -> None:
    """It has dark colours and a main part, heading cells say what they head, wide tables scroll."""
    page = written(tmp_path, trained())["training.html"]
    assert "prefers-color-scheme: dark" in page
    assert re.search(r"<body>\n<main class=\"page\">.*</main>\n</body>", page, re.DOTALL)
    heads = re.findall(r"<th\b[^>]*>", page)
    assert heads
    assert all('scope="' in head for head in heads)
    assert re.search(r'<div class="scroll" role="region" tabindex="0"[^>]*>\s*<table', page)


def test_names_are_no_markup(tmp_path: Path) -> None:
    """A replay's name shows as it is."""
    outcome = trained()
    hostile = "<b>window</b> & {braces}"
    rows = tuple(
        AwrtRow(hostile, row.site, row.alone, row.after, evolved=row.evolved)
        for row in outcome.rows
    )
    changed = TrainingOutcome(outcome.rule_base, rows, outcome.result, outcome.unit)
    page = written(tmp_path, changed)["training.html"]
    assert "&lt;b&gt;window&lt;/b&gt; &amp; {braces}" in page
    assert hostile not in page


def test_visits_are_those_of_all_replays() -> None:
    """One after the other, in the states that the learned policy leads to."""
    fitness = [
        Fitness([TrainingCase(Federation(two_sites(seed)), "a", ("b",)) for seed in seeds])
        for seeds in ((1,), (2,), (1, 2))
    ]
    rule_base = trained().rule_base
    first, second, both = (visited_states(one, rule_base) for one in fitness)
    assert both.nwp.tolist() == [*first.nwp.tolist(), *second.nwp.tolist()]
    assert both.own.tolist() == [*first.own.tolist(), *second.own.tolist()]
    decided = [
        rule_base.compiled.output(nwp, njp) > 0
        for nwp, njp in zip(both.nwp.tolist(), both.njp.tolist(), strict=True)
    ]
    assert decided == both.accepted.tolist()
    assert 0 < np.count_nonzero(both.own) < len(both)


def test_file_names_are_harmless() -> None:
    """Lower case, no separators, and never too long for a file system."""
    assert rule_base_file("KTH", ["CTC", "SDSC05"]) == "kth-for-ctc-sdsc05.json"
    assert rule_base_file("../Köln", ["a b/c"]) == ".._k_ln-for-a_b_c.json"
    assert len(rule_base_file("a", ["partner"] * 50)) == STEM_LENGTH_MAX + len(".json")


SELF_PLAY_SETTINGS = RuleBaseSettings(2, further=("starts_now",))


def test_the_rule_bases_are_those_of_the_best_meeting() -> None:
    """Each with all that tells where it comes from; without unseen workloads the page claims nothing."""
    fitness = MatchFitness([two_sites(1)], START_NOW, SELF_PLAY_SETTINGS)
    genome = joined([SELF_PLAY_SETTINGS.agreeing] * 2)
    record = GenerationRecord(3, 40, 1.0, 2.0, 0.1, 5.0)
    result = TrainingResult(Best(genome, fitness(genome), 0), (record,), "it was enough")
    settings = {"name": "paper", "seed": 7, "settings": {}, "self_play": {"archive": 2}}
    outcome = make_self_play_outcome(
        fitness,
        result,
        compared_match(fitness, ["one"], genome),
        constant="start-now",
        case_names=["one"],
        settings=settings,
        origins=[{"b": {"log": "x"}}],
        commit="0123",
    )
    assert outcome.files() == {"a": "a-for-b.json", "b": "b-for-a.json"}
    for rule_base in outcome.rule_bases.values():
        assert encode(rule_base).to_state() == SELF_PLAY_SETTINGS.agreeing.to_state()
        provenance = rule_base.provenance
        assert provenance["commit"] == "0123"
        assert provenance["rails"]["rules"] == "start-now"
        assert provenance["strategy"] == settings
        assert (provenance["generations"], provenance["evaluations"]) == (3, 40)
        sites = provenance["cases"][0]["sites"]
        assert sites[1]["origin"] == {"log": "x"}
        assert [one["awrt_constant_s"] for one in sites] == list(fitness.constant[0])
        assert "unseen" not in provenance
    page = self_play_page(outcome, "<svg/>", {"a": (), "b": ()})
    assert "Self-play of a, b" in page
    assert "Whether this beats start-now alone is not known" in page
    assert "it was enough" in page
