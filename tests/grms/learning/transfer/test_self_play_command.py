import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grms.federation.federation import Federation
from grms.learning.checkpoint import CheckpointError
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.termination import Limits
from grms.learning.training import CHECKPOINT, TrainingInterrupted
from grms.learning.transfer import command, decision_map
from grms.learning.transfer.command import print_self_play, run_self_play
from grms.learning.transfer.comparison import verdict
from grms.learning.transfer.fitness import MatchFitness, SourceError, TrainingSource
from grms.policy.constraints import FAIR_EXCHANGE
from grms.policy.files import load_rule_base
from grms.policy.transfer import Constrained
from lrms_sim.util.executors import Workers
from tests.grms.learning.transfer.test_command import FURTHER, load, options, quiet, texts
from tests.training_grids import two_sites


def playing(folder: Path, **changes: Any) -> Any:
    usual = {"rails": "fair-exchange", "rules": FURTHER, "archive": 2, "strategy": "self-adaptive"}
    return options(folder, **usual | changes)


def test_every_site_is_handed_a_rule_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Used in a federation they bring what the run says, on workloads learned from and on others."""
    # Pictures are drawn in the test of the command.
    monkeypatch.setattr(decision_map, "decision_map_svg", lambda *_, **__: "<svg/>")
    monkeypatch.setattr("grms.learning.transfer.outcome.convergence_svg", lambda *_: "<svg/>")
    chosen = playing(tmp_path, unseen=("other-2",), objective="no_loser")
    console = quiet()
    outcome = run_self_play(chosen, console, load=load)
    assert "generation 4/4" in texts(console)
    assert {path.name for path in tmp_path.iterdir()} == {
        "a-for-b.json",
        "b-for-a.json",
        "checkpoint.json",
        "convergence.svg",
        "map-a-for-b-guests.svg",
        "map-a-for-b-own.svg",
        "map-b-for-a-guests.svg",
        "map-b-for-a-own.svg",
        "training.html",
    }
    saved = {site: load_rule_base(tmp_path / file) for site, file in outcome.files().items()}
    assert saved == outcome.rule_bases
    for seed, unseen in ((1, False), (2, True)):
        a, b = (
            replace(site, transfer_policies={other: Constrained(FAIR_EXCHANGE, saved[site.name])})
            for site, other in zip(two_sites(seed), "ba", strict=True)
        )
        rows = [row for row in outcome.compared if row.unseen == unseen]
        assert [row.learned for row in rows] == Federation([a, b]).awrt()
    # The constraints alone are among the founders, so nobody is worse off on what was learned from.
    assert outcome.result.best.evaluation.value <= 1
    assert all(row.over_constant >= 0 for row in outcome.compared if not row.unseen)
    provenance = saved["b"].provenance
    assert provenance["self_play"] == ["a", "b"]
    assert provenance["strategy"]["self_play"] == {"archive": 2}
    assert provenance["rails"]["rules"] == "fair-exchange"
    assert provenance["cases"][0]["sites"][1]["awrt_after_s"] == outcome.compared[1].learned
    assert provenance["unseen"]["constant"] == "fair-exchange"
    said, page = quiet(), (tmp_path / "training.html").read_text(encoding="utf-8")
    print_self_play(said, chosen, outcome)
    text = verdict(outcome.compared, "fair-exchange").text
    assert text in page
    assert text in " ".join(texts(said).split())
    assert f"Rule base: {tmp_path / 'b-for-a.json'}\n" in texts(said)
    assert "matches in" in texts(said)


def test_an_interrupted_run_goes_on_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C in the middle of a generation; and only with the settings it was begun with."""
    monkeypatch.setattr(command, "write_self_play", lambda *_: None)  # it takes a second
    expected = run_self_play(playing(tmp_path / "whole"), quiet(), load=load)
    judged, left = MatchFitness.__call__, 80

    def interrupting(self: MatchFitness, genome: Genome, bound: float = 0.0) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        return judged(self, genome, bound)

    monkeypatch.setattr(MatchFitness, "__call__", interrupting)
    folder = tmp_path / "parts"
    with pytest.raises(TrainingInterrupted, match="interrupted after generation"):
        run_self_play(playing(folder), quiet(), load=load)
    assert json.loads((folder / CHECKPOINT).read_text())["strategy"]["strategy"] == "self-play"
    for change in ({"archive": 3}, {"rails": "start-now"}, {"objective": "no_loser"}):
        with pytest.raises(CheckpointError, match="is of another training run"):
            run_self_play(playing(folder, resume=True, **change), quiet(), load=load)
    found = run_self_play(
        playing(folder, resume=True, workers=Workers(count=2)), quiet(), load=load
    )
    assert found.rule_bases == expected.rule_bases
    assert found.result.evaluations == expected.result.evaluations


def test_sites_that_cannot_play_are_refused(tmp_path: Path) -> None:
    """Before anything is evaluated, with what is wrong."""

    def other(reference: str) -> TrainingSource:
        source = load(reference)
        a, b = source.sites
        return (
            source
            if reference == "grid-1"
            else replace(source, sites=(a, replace(b, processors=99)))
        )

    short = Limits(generations=1)
    with pytest.raises(SourceError, match="grid-1, grid-2: the cases have different sites"):
        run_self_play(
            playing(tmp_path, scenarios=("grid-1", "grid-2"), limits=short), quiet(), load=other
        )
    with pytest.raises(SourceError, match="site b has 99 processors; it has learned with 25"):
        run_self_play(playing(tmp_path, unseen=("grid-2",), limits=short), quiet(), load=other)
    with pytest.raises(SourceError, match="has no site 'c'"):
        run_self_play(playing(tmp_path, partners=("b", "c"), limits=short), quiet(), load=load)
