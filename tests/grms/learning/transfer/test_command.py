import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from grms.federation.federation import Federation
from grms.learning.checkpoint import CheckpointError
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Evaluation, StrategySettings
from grms.learning.evolution.termination import Limits
from grms.learning.training import CHECKPOINT, TrainingInterrupted
from grms.learning.transfer import command
from grms.learning.transfer.command import TrainOptions, print_outcome, run_training
from grms.learning.transfer.comparison import verdict
from grms.learning.transfer.encoding import RuleBaseSettings
from grms.learning.transfer.fitness import (
    Fitness,
    SourceError,
    TrainingSource,
    within_constraints_alone,
)
from grms.policy.constraints import FAIR_EXCHANGE
from grms.policy.files import load_rule_base
from grms.policy.transfer import Constrained
from lrms_sim.util.executors import Workers
from lrms_sim.workload.jobs import JobTable
from tests.training_grids import two_sites

SMALL = StrategySettings(parents=3, offspring=6)
FURTHER = RuleBaseSettings(2, further=("requested_time", "starts_now"))


def load(reference: str) -> TrainingSource:
    """Returns two sites; the number at the end of the name is a seed."""
    warnings = ("sites.a: the machine is too small",) if reference == "warned-1" else ()
    origin = {"a": {"seed": int(reference[-1])}}
    return TrainingSource(reference, tuple(two_sites(int(reference[-1]))), origin, warnings)


def options(folder: Path, **changes: Any) -> TrainOptions:
    usual: dict[str, Any] = {
        "scenarios": ("grid-1",),
        "site": "a",
        "partners": ("b",),
        "rules": RuleBaseSettings(2),
        "settings": SMALL,
        "limits": Limits(generations=4),
        "workers": Workers(count=1),
        "output": folder,
    }
    return TrainOptions(**usual | changes)


def quiet() -> Console:
    return Console(file=io.StringIO(), width=100)


def texts(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"limits": Limits(generations=0)}, "generation limit is 0"),
        ({"limits": Limits(seconds=float("inf"))}, "time limit is inf"),
        ({"strategy": "papr"}, "no strategy 'papr'"),
        ({"seed": -1}, "seed is -1"),
        ({"rails": "fair"}, "'fair' is no word for constraints; there are: start-now"),
        (
            {"rules": FURTHER},
            "cannot be looked at without constraints: .* add --rails fair-exchange",
        ),
        ({"archive": 2}, "--self-play needs constraints: .* add --rails fair-exchange"),
        ({"archive": 2, "rails": "start-now"}, "--self-play begins with rules that always agree"),
        ({"archive": 0, "rails": "start-now", "rules": FURTHER}, "an archive of 0 sets"),
        ({"strategy": "cma", "settings": StrategySettings(offspring=1)}, "needs at least 2"),
    ],
)
def test_options_are_checked_before_anything_is_read(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    """Each with its value and its bound."""
    with pytest.raises(ValueError, match=complaint):
        options(tmp_path, **change)


def test_the_folder_is_named_after_the_sites() -> None:
    """Unless one is given."""
    assert options(Path("x")).folder == Path("x")
    unnamed = options(Path(), output=None, site="KTH", partners=("CTC", "SDSC05"))
    assert unnamed.folder == Path("out/train-kth-for-ctc-sdsc05")


def test_a_run_leaves_all_files_and_a_table(tmp_path: Path) -> None:
    """Rule base with provenance, pictures, page, checkpoint; figures and paths for the user."""
    folder = tmp_path / "deep" / "folder"
    chosen = options(folder, scenarios=("grid-1", "grid-2"))
    console = quiet()
    outcome = run_training(chosen, console, load=load)
    assert {path.name for path in folder.iterdir()} == {
        "a-for-b.json",
        "checkpoint.json",
        "convergence.svg",
        "decision-map.svg",
        "training.html",
    }
    saved = load_rule_base(folder / "a-for-b.json")
    assert saved == outcome.rule_base
    assert [case["scenario"] for case in saved.provenance["cases"]] == [
        "grid-1: a, b",
        "grid-2: a, b",
    ]
    assert saved.provenance["strategy"]["settings"]["offspring"] == 6
    assert saved.provenance["cases"][1]["sites"][0]["origin"] == {"seed": 2}
    assert "generation 4/4" in texts(console)
    table = quiet()
    print_outcome(table, chosen, outcome)
    said = texts(table)
    assert f"{outcome.rows[3].after:,.2f}" in said
    assert "* learned; stopped: generation 4 of 4 is done; 27 evaluations in" in said
    assert f"Rule base: {folder / 'a-for-b.json'}\n" in said


def test_warnings_of_the_workloads_are_shown_once(tmp_path: Path) -> None:
    """Before the training, each of them."""
    console = quiet()
    run_training(options(tmp_path, scenarios=("warned-1",)), console, load=load)
    assert texts(console).count("warning: sites.a: the machine is too small") == 1


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Lets Ctrl-C come in an evaluation."""
    really = Fitness.__call__
    left = iter(range(after - 1))

    def evaluate(self: Fitness, genome: Genome, bound: float) -> Evaluation:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return really(self, genome, bound)

    monkeypatch.setattr(Fitness, "__call__", evaluate)


def files(folder: Path) -> dict[str, bytes]:
    """Returns what does not tell how long the training took."""
    timed = {CHECKPOINT, "training.html"}
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in timed}


@pytest.mark.parametrize("strategy", ["paper", "self-adaptive", "cma"])
def test_interrupted_and_resumed_files_are_those_of_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    """Rule base and pictures, byte for byte."""
    run_training(options(tmp_path / "whole", strategy=strategy), quiet(), load=load)
    folder = tmp_path / "parts"
    with monkeypatch.context() as patched:
        interrupt(patched, 17)
        with pytest.raises(TrainingInterrupted, match="interrupted after generation") as caught:
            run_training(options(folder, strategy=strategy), quiet(), load=load)
    assert caught.value.resumable
    assert [path.name for path in folder.iterdir()] == [CHECKPOINT]
    run_training(options(folder, strategy=strategy, resume=True), quiet(), load=load)
    assert files(folder) == files(tmp_path / "whole")


def test_a_finished_run_can_be_taken_further(tmp_path: Path) -> None:
    """With a later limit; the result is that of the longer run."""
    longer = Limits(generations=8)
    run_training(options(tmp_path / "long", limits=longer), quiet(), load=load)
    run_training(options(tmp_path / "short"), quiet(), load=load)
    resumed = options(tmp_path / "short", limits=longer, resume=True)
    run_training(resumed, quiet(), load=load)
    assert files(tmp_path / "short") == files(tmp_path / "long")


def test_an_early_interruption_says_that_there_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the checkpoint of a finished run lies in the folder: it is not this run's."""
    run_training(options(tmp_path), quiet(), load=load)
    interrupt(monkeypatch, 1)
    with pytest.raises(TrainingInterrupted, match="nothing to resume") as caught:
        run_training(options(tmp_path, seed=9), quiet(), load=load)
    assert not caught.value.resumable
    assert not (tmp_path / CHECKPOINT).exists()


def test_an_interrupted_run_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text says what can be done; nothing has been read or changed by then."""
    with monkeypatch.context() as patched:
        interrupt(patched, 17)
        with pytest.raises(TrainingInterrupted):
            run_training(options(tmp_path), quiet(), load=load)
    before = (tmp_path / CHECKPOINT).read_bytes()
    with pytest.raises(CheckpointError, match=r"was interrupted; go on with --resume, or remove"):
        run_training(options(tmp_path), quiet())
    assert (tmp_path / CHECKPOINT).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"seed": 2}, "strategy.seed was 1 and is 2"),
        ({"strategy": "cma"}, "strategy.name was 'paper' and is 'cma'"),
        ({"settings": StrategySettings()}, "strategy.settings.offspring was 6 and is 91"),
        ({"scenarios": ("grid-2",)}, r"fitness.cases\[0\].sites\[0\].jobs was"),
        ({"objective": "no_loser"}, "fitness.objective was 'egoistic' and is 'no_loser'"),
        ({"site": "b", "partners": ("a",)}, r"fitness.cases\[0\]"),
    ],
)
def test_resuming_another_run_is_refused(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    """Whatever the result depends on has to be as it was; the text says what is not."""
    run_training(options(tmp_path), quiet(), load=load)
    before = files(tmp_path)
    with pytest.raises(CheckpointError, match=complaint):
        run_training(options(tmp_path, resume=True, **change), quiet(), load=load)
    assert files(tmp_path) == before


def test_workers_may_differ_when_resuming(tmp_path: Path) -> None:
    """Who evaluates is no part of what a run rests on."""
    run_training(options(tmp_path), quiet(), load=load)
    before = files(tmp_path)
    again = options(tmp_path, resume=True, workers=Workers("processes", 2))
    run_training(again, quiet(), load=load)
    assert files(tmp_path) == before


def test_a_strategy_that_cannot_go_on_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of the library behind it; the file is named."""
    run_training(options(tmp_path, strategy="cma"), quiet(), load=load)
    monkeypatch.setattr("grms.learning.evolution.cma_strategy.versions", lambda: {"cma": "9.9"})
    with pytest.raises(CheckpointError, match=r"checkpoint\.json: it was made with cma .* 9\.9"):
        run_training(options(tmp_path, strategy="cma", resume=True), quiet(), load=load)


def test_folders_that_cannot_be_are_named(tmp_path: Path) -> None:
    """A file, a file on the way, and nothing to resume."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="file: is a file; name a folder with --output"):
        run_training(options(tmp_path / "file"), quiet(), load=load)
    with pytest.raises(CheckpointError, match="the folder cannot be made: Not a directory"):
        run_training(options(tmp_path / "file" / "below"), quiet(), load=load)
    with pytest.raises(CheckpointError, match="is not there; nothing to resume"):
        run_training(options(tmp_path / "new", resume=True), quiet(), load=load)
    assert not (tmp_path / "new").exists()


def test_a_site_without_jobs_has_nothing_to_learn(tmp_path: Path) -> None:
    """The error names the scenario and the site."""

    def idle(reference: str) -> TrainingSource:
        a, b = two_sites()
        return TrainingSource(reference, (type(a)("a", 10, JobTable.empty()), b))

    with pytest.raises(SourceError, match="grid-1: site 'a' has no jobs"):
        run_training(options(tmp_path), quiet(), load=idle)
    assert list(tmp_path.iterdir()) == []


def test_names_that_look_like_markup_are_printed(tmp_path: Path) -> None:
    """Square brackets mean something to the terminal's library, and nothing here."""

    def hostile(reference: str) -> TrainingSource:
        return TrainingSource("[/red]" + reference, tuple(two_sites()))

    chosen = options(tmp_path)
    outcome = run_training(chosen, quiet(), load=hostile)
    console = quiet()
    print_outcome(console, chosen, outcome)
    assert "[/red]grid-1: a, b" in texts(console)


def test_within_constraints_the_constraints_alone_are_beside_what_was_learned(
    tmp_path: Path,
) -> None:
    """In the terminal, on the page, and in the file; on unseen workloads, and what may be said of it."""
    chosen = options(tmp_path, rails="fair-exchange", rules=FURTHER, unseen=("other-2",))
    outcome = run_training(chosen, quiet(), load=load)
    assert outcome.rule_base.further == ("requested_time", "starts_now")
    assert load_rule_base(tmp_path / "a-for-b.json") == outcome.rule_base
    learned_from, unseen = outcome.compared[:2], outcome.compared[2:]
    # It begins with what the constraints do alone, so on what it has learned from it is not worse.
    assert learned_from[0].evolved
    assert learned_from[0].learned <= learned_from[0].constant
    for sites, rows in ((two_sites(1), learned_from), (two_sites(2), unseen)):
        constrained = within_constraints_alone(sites, FAIR_EXCHANGE)
        assert [row.constant for row in rows] == Federation(constrained).awrt()
        policy = Constrained(FAIR_EXCHANGE, outcome.rule_base)
        constrained[0] = replace(constrained[0], transfer_policies={"b": policy})
        assert [row.learned for row in rows] == Federation(constrained).awrt()
    provenance = outcome.rule_base.provenance
    assert provenance["rails"]["rules"] == "fair-exchange"
    assert provenance["rails"]["guest_length"] == 2.0
    assert provenance["features"] == ["nwp", "njp", "requested_time", "starts_now"]
    assert provenance["strategy"]["settings"]["further"] == ["requested_time", "starts_now"]
    assert [one["scenario"] for one in provenance["unseen"]["sites"]] == ["other-2: a, b"] * 2
    found = verdict(outcome.compared, "fair-exchange")
    assert provenance["unseen"]["beaten"] is found.beaten
    page = (tmp_path / "training.html").read_text(encoding="utf-8")
    assert found.text in page
    assert "Beside fair-exchange alone" in page
    assert {path.name for path in tmp_path.iterdir()} >= {
        "decision-map-own.svg",
        "decision-map-guests.svg",
    }
    console = quiet()
    print_outcome(console, chosen, outcome)
    said = texts(console)
    assert "Unseen: other-2: a, b" in said
    assert found.text in " ".join(said.split())


def test_without_unseen_workloads_nothing_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text says what to do."""
    monkeypatch.setattr(command, "write_outcome", lambda *_: None)
    chosen = options(tmp_path, rails="start-now", limits=Limits(generations=1))
    outcome = run_training(chosen, quiet(), load=load)
    assert outcome.rule_base.further == ()
    console = quiet()
    print_outcome(console, chosen, outcome)
    assert "is not known" in texts(console)
    assert "unseen" not in outcome.rule_base.provenance


def test_the_paper_is_judged_beside_accept_when_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where unseen workloads are named; nothing else of such a run changes."""
    monkeypatch.setattr(command, "write_outcome", lambda *_: None)
    chosen = options(tmp_path, unseen=("other-2",), limits=Limits(generations=1))
    outcome = run_training(chosen, quiet(), load=load)
    assert outcome.constant == "awf"
    expected = Federation(two_sites(2)).awrt()
    assert [row.constant for row in outcome.compared if row.unseen] == expected
    plain = run_training(
        options(tmp_path / "plain", limits=Limits(generations=1)), quiet(), load=load
    )
    assert plain.rule_base == outcome.rule_base
    assert plain.compared == ()


def test_constraints_of_the_scenario_are_not_lost(tmp_path: Path) -> None:
    """A rule base that was learned without them would not be what the site uses."""

    def constrained(reference: str) -> TrainingSource:
        source = load(reference)
        return replace(source, sites=tuple(within_constraints_alone(source.sites, FAIR_EXCHANGE)))

    with pytest.raises(
        SourceError, match="scenario grid-1: site a keeps to constraints there; name them"
    ):
        run_training(options(tmp_path), quiet(), load=constrained)


def test_unseen_workloads_are_of_the_same_machines(tmp_path: Path) -> None:
    """A rule base is fitted to a size."""

    def other(reference: str) -> TrainingSource:
        source = load(reference)
        if reference == "grid-1":
            return source
        a, b = source.sites
        return replace(source, sites=(replace(a, processors=99), b))

    with pytest.raises(SourceError, match="site a has 99 processors; it has learned with 10"):
        run_training(options(tmp_path, unseen=("other-2",)), quiet(), load=other)
