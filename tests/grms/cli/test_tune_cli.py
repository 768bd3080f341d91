from pathlib import Path

import click
import pytest

from grms.cli import main
from grms.cli.tune_cli import tune
from grms.learning.queueing.fitness import COMBINATIONS
from grms.learning.queueing.options import WorkloadOptions
from lrms_sim.analysis.objectives import PAPER_THETA
from lrms_sim.cli.running import EXIT_ERROR
from lrms_sim.scheduling.situations import KINDS
from tests.schemas import printed
from tests.tuning_cases import busy_log

SHORT = ["--train-days", "0:1", "--parents", "3", "--offspring", "6", "--generations", "2"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in an empty folder with one log."""
    monkeypatch.chdir(tmp_path)
    busy_log(tmp_path / "busy.swf")
    return tmp_path


def test_tune_writes_the_folder_and_says_where(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Progress on standard error; tables, settings and paths on standard output."""
    assert main.run_command(["tune", "busy.swf", *SHORT, "--slurm"]) == 0
    out, error = capfd.readouterr()
    assert error.startswith("generation 0/2  best ")
    assert "busy: f, and its gain over EASY" in out
    assert "Strategy: out/tune-busy-fcfs-f2/strategy.json" in out
    assert "PriorityWeightQOS=" in out
    assert {path.name for path in (elsewhere / "out/tune-busy-fcfs-f2").iterdir()} == {
        "checkpoint.json",
        "convergence.svg",
        "strategy.json",
        "tuning.html",
        "tuning.json",
        "users.csv",
    }


@pytest.mark.parametrize("selection", ["plus", "comma"])
def test_the_selection_of_rules_is_an_option(elsewhere: Path, selection: str) -> None:
    """It stands in the provenance of what was learned; the paper's is what is taken by default."""
    command = ["tune", "busy.swf", "--train-days", "0:1", "--method", "symbiotic", "--generations"]
    more = [] if selection == "plus" else ["--selection", selection]
    assert main.run_command([*command, "1", "--output", "out", *more]) == 0
    text = (elsewhere / "out" / "strategy.json").read_text(encoding="utf-8")
    assert f'"plus": {"true" if selection == "plus" else "false"}' in text


def test_figures_as_json_are_nothing_but_json(capfd: pytest.CaptureFixture[str]) -> None:
    """So that another program can read them."""
    command = ["tune", "busy.swf", *SHORT, "--json", "--slurm", "--method", "f1,f2,f3"]
    assert main.run_command(command) == 0
    document = printed("grms-tune", capfd.readouterr().out)
    assert document["generations"] == 2
    assert set(document["workloads"][0]) == {"name", "training", "unseen"}
    assert document["slurm"]["PriorityType"] == "priority/multifactor"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--method", "f9"], "'f9' is no method"),
        (["--train-days", "3"], "is not two days A:B"),
        (["--train-days", "3:1"], "which is not after day 3"),
        (["--theta", "1,2"], "theta has 2 numbers"),
        (["--theta", "0,0,0,0,0"], "every group"),
        (["--scale-factor", "2"], "goes with --scale-to"),
        (["--scheduler", "tcp://x:1"], "goes with --executor dask"),
        (["--train-days", "900:"], "no job is left to tune on"),
        (["--train-days", "0:1", "--unseen-days", "0:2"], "not unseen"),
        (["--resume"], "nothing to resume"),
    ],
)
def test_mistakes_are_said_in_one_line(
    arguments: list[str], complaint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is wrong and what is possible; no traceback."""
    assert main.run_command(["tune", "busy.swf", *arguments]) == EXIT_ERROR
    error = capfd.readouterr().err
    assert complaint in error
    assert "Traceback" not in error


def test_choices_are_those_there_are() -> None:
    """The command line names them without importing what knows them."""
    options = {one.name: one.type for one in tune.params}
    for name, known in (("combination", COMBINATIONS), ("calendar", tuple(KINDS))):
        kind = options[name]
        assert isinstance(kind, click.Choice)
        assert tuple(kind.choices) == known
    assert WorkloadOptions().theta == PAPER_THETA
