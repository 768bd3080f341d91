import json
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from grms.learning.checkpoint import CheckpointError
from grms.learning.evolution.strategies import StrategySettings
from grms.learning.transfer import command as command_module
from grms.learning.transfer.command import TrainOptions
from grms.policy.files import save_rule_base
from scenarios.studies.decentralized_grid import study as study_module
from scenarios.studies.decentralized_grid.grids import EGOISTIC, REGIMES
from scenarios.studies.decentralized_grid.options import StudyOptions
from scenarios.studies.decentralized_grid.reference import SETUPS
from scenarios.studies.decentralized_grid.study import (
    Effort,
    awrt_of,
    efforts_of,
    improvement_of,
    run_study,
    training_folder,
)
from tests.scenarios.studies.decentralized_grid.made_up import made_up


def test_regimes_follow_from_the_options() -> None:
    """The paper's comes first; EASY and no-loser can be left out."""
    folder = Path("x")
    everything = efforts_of(StudyOptions(folder))
    assert [effort.regime for effort in everything] == list(REGIMES)
    assert [effort.generations for effort in everything] == [150, 40, 40, 40]
    assert [len(effort.seeds) for effort in everything] == [5, 3, 3, 3]
    paper = Effort(EGOISTIC, (1, 2, 3, 4, 5), 150)
    assert efforts_of(StudyOptions(folder, more_generations=0)) == (paper,)
    shipped = efforts_of(StudyOptions(folder, seeds=()))
    assert [effort.seeds for effort in shipped] == [(), (), (), ()]


def test_figures_are_taken_from_the_runs_they_belong_to() -> None:
    """By grid, policies and discipline; over all seeds."""
    study = made_up({1: 1.0, 2: 1.1, 3: 0.9})
    runs = study.of("setup-1-kth-ctc", EGOISTIC.key)
    assert [run.seed for run in runs] == [1, 2, 3]
    paper = SETUPS[0].paper["KTH"].awrt
    awrt = awrt_of(runs, "KTH")
    assert (awrt.median, awrt.low, awrt.high) == (paper, paper * 0.9, paper * 1.1)
    assert improvement_of(study.of("three-sites-6", "awf"), "CTC").median == pytest.approx(0.03)
    assert study.of("three-sites-6", "awf", "easy") != study.of("three-sites-6", "awf")


def test_a_study_can_be_read_by_programs() -> None:
    """JSON has every training run and every replay."""
    study = made_up({1: 1.0, 2: 1.1})
    document = json.loads(study.to_json())
    assert document["format"] == 1
    assert len(document["trainings"]) == 48
    assert len(document["runs"]) == 10 + 4 * 2 * 11
    assert document["windows"]["CTC-5"]["awrt"] == 57897.77


@pytest.mark.traces
def test_a_short_study_learns_keeps_and_replays(
    tmp_path: Path, traces_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six policies of one small generation each; a second study of the same folder trains nothing."""
    small = partial(TrainOptions, settings=StrategySettings(parents=4, offspring=20))
    monkeypatch.setattr(study_module, "TrainOptions", small)
    # A training run's page is another test's; what it shows takes longer than the small run itself.
    monkeypatch.setattr(command_module, "visited_states", lambda *_: None)
    monkeypatch.setattr(
        command_module,
        "write_outcome",
        lambda folder, file, outcome, _: save_rule_base(outcome.rule_base, folder / file),
    )
    environment = {"HANSE_TRACES": str(traces_folder)}
    options = StudyOptions(tmp_path, seeds=(3,), generations=1, more_generations=0)
    study = run_study(options, Console(quiet=True), environment)
    assert [run.setup for run in study.trainings] == ["I", "II", "III", "IV", "V", "VI"]
    assert {run.evaluations for run in study.trainings} == {4 + 20}
    assert round(study.windows["CTC-5"]["awrt"], 4) == 57897.7752
    for training in study.trainings:
        setup = next(one for one in SETUPS if one.number == training.setup)
        (run,) = study.of(setup.scenario, EGOISTIC.key)
        assert [site.awrt for site in run.sites] == [training.awrt, training.partner_awrt]
        # A best of 24 draws is better than none at all.
        assert training.awrt < run.sites[0].awrt_alone
    assert round(study.of("three-sites-6", "awf")[0].sites[0].awrt, 4) == 63346.7364

    checkpoint = training_folder(tmp_path, EGOISTIC, 3, "KTH", "CTC") / "checkpoint.json"
    written = checkpoint.read_text()
    # What was replayed is replayed alike; here it is about what was learned.
    runs = iter(study.runs)
    monkeypatch.setattr(study_module, "run_grid", lambda *_, **__: next(runs))
    found = study.windows, study.acknowledgements
    monkeypatch.setattr(study_module, "_windows", lambda _: found)
    again = run_study(options, Console(quiet=True), environment)
    assert again == study
    assert checkpoint.read_text() == written
    other = training_folder(tmp_path, EGOISTIC, 3, "CTC", "KTH") / "checkpoint.json"
    other.write_text(written)
    with pytest.raises(CheckpointError, match="is of another training run"):
        run_study(options, Console(quiet=True), environment)
