import json
from pathlib import Path
from typing import Any

import pytest

from lrms_sim.cli.main import run_command
from lrms_sim.cli.running import EXIT_ERROR
from lrms_sim.malleable.model import PaperModel
from lrms_sim.malleable.policies import POLICIES
from lrms_sim.malleable.training import Training, learn
from lrms_sim.malleable.value import load_value_function
from lrms_sim.malleable.workload_files import write_workload
from tests.schemas import printed

Capture = pytest.CaptureFixture[str]


def said(capsys: Capture, *words: object) -> str:
    """Returns what a command that works prints."""
    assert run_command(["utility", *map(str, words)]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys: Capture, *words: object) -> str:
    """Returns what a command that fails says, without a traceback."""
    assert run_command(["utility", *map(str, words)]) == EXIT_ERROR
    return capsys.readouterr().err


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """A small workload as a file."""
    path = tmp_path / "jobs.csv"
    write_workload(PaperModel(0.3).draw(300, 3), path)
    return path


def test_help_explains_every_command(capsys: Capture) -> None:
    """Whoever asks is told what each one does."""
    for words in ((), ("run",), ("train",), ("compare",), ("policies",)):
        assert "Usage: lrms-sim utility" in said(capsys, *words, "--help")
    listed = said(capsys, "policies")
    assert all(name in listed for name in POLICIES)
    told = printed("lrms-sim-utility-policies", said(capsys, "policies", "--json"))["policies"]
    assert [each["name"] for each in told] == [line.split()[0] for line in listed.splitlines()]


def test_a_run_prints_and_writes_what_it_did(capsys: Capture, tmp_path: Path, csv: Path) -> None:
    """Table, results, log and picture of one run."""
    files = [tmp_path / name for name in ("r.csv", "l.csv", "g.svg")]
    words = ["run", csv, "--processors", "24", "--policy", "replan", "--step", "1"]
    options = ["--results", files[0], "--log", files[1], "--gantt", files[2]]
    text = said(capsys, *words, *options)
    assert "replan" in text
    assert all(path.stat().st_size > 100 for path in files)
    found = printed("lrms-sim-utility-run", said(capsys, *words, "--json"))
    assert (found["policy"], found["processors"]) == ("replan", 24)
    assert 0 < found["share"] < 1
    assert found["completed"] + found["left"] == len(PaperModel(0.3).draw(300, 3))


def test_options_reach_the_machine(capsys: Capture, csv: Path) -> None:
    """Each option that forbids or charges changes the figures."""
    words = ["run", csv, "--processors", "24", "--policy", "both-aggressive", "--json"]
    plain = json.loads(said(capsys, *words))
    assert plain["suspensions"] > 0
    for option in (
        ["--suspensions-max", "0"],
        ["--exempt", "100000"],
        ["--memory", "0"],
    ):
        assert json.loads(said(capsys, *words, *option))["suspensions"] == 0
    for option in (
        ["--grow", "never"],
        ["--leave", "never"],
        ["--spare-worthless"],
        ["--no-refit"],
        ["--step", "5"],
        ["--requeue", "--checkpoint", "1"],
        ["--suspension-cost", "3"],
        ["--resize-cost", "3"],
        ["--speedup", "amdahl:0.3"],
        ["--speedup", "downey:1:0.5"],
    ):
        assert json.loads(said(capsys, *words, *option)) != plain, option


def test_a_horizon_and_weights_are_obeyed(capsys: Capture, csv: Path) -> None:
    """A run stops at its horizon; weights are those of an order, eight of them."""
    words = ["run", csv, "--processors", "24", "--step", "1", "--json"]
    whole = json.loads(said(capsys, *words))
    assert json.loads(said(capsys, *words, "--horizon", "50"))["completed"] < whole["completed"]
    density = json.loads(said(capsys, *words, "--weights", "1,0,0,0,0,0,0,0"))
    replan = json.loads(said(capsys, *words, "--policy", "replan"))
    assert density.pop("policy") == "replan-weights"
    assert replan.pop("policy") == "replan"
    assert density == replan
    assert "are not eight numbers" in refused(capsys, *words, "--weights", "a,b")
    assert "8 finite numbers" in refused(capsys, *words, "--weights", "1,2")


def test_a_late_window_does_not_dilute_utilization(capsys: Capture, tmp_path: Path) -> None:
    """Time counts from the window's first day, not from the log's beginning."""
    path = tmp_path / "late.csv"
    path.write_text("submit_time,processors,run_time\n0,1,10\n864000,4,86400\n")
    words = ["run", path, "--processors", "4", "--policy", "best-fit", "--json"]
    late = json.loads(said(capsys, *words, "--window-days", "10:"))
    assert late["utilization"] == pytest.approx(1.0)
    whole = json.loads(said(capsys, *words))
    assert whole["utilization"] == pytest.approx(1 / 11, rel=0.01)


def test_tables_fit_eighty_columns(
    capsys: Capture, csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every policy and ranges of seeds, nothing is cut."""
    monkeypatch.setenv("COLUMNS", "80")
    names = ",".join(POLICIES)
    text = said(capsys, "compare", csv, "--processors", "24", "--seeds", "2", "--policies", names)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_learning_is_written_and_used(capsys: Capture, tmp_path: Path, csv: Path) -> None:
    """A value function with its provenance, which a run takes."""
    value = tmp_path / "v.json"
    words = ["train", csv, "--processors", "24", "--passes", "2", "-o", value]
    assert "pass 2" in said(capsys, *words)
    known = load_value_function(value)
    assert any(known.p)
    assert known.provenance["source"] == "jobs.csv"
    assert known.provenance["updates"] > 0
    run = ["run", csv, "--processors", "24", "--policy", "both-value"]
    assert "both-value" in said(capsys, *run, "--value", value)
    assert "needs a value function" in refused(capsys, *run)
    told = printed("lrms-sim-utility-train", said(capsys, *words, "--json"))
    assert tuple(told["value"]["p"].values()) == known.p
    assert list(tmp_path.glob("*.checkpoint")) == []


def test_an_interrupted_training_goes_on(
    capsys: Capture, tmp_path: Path, csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C in the second pass, --resume finds what one run finds."""
    whole, broken = tmp_path / "a.json", tmp_path / "b.json"
    words = ["train", csv, "--processors", "24", "--passes", "3", "-o"]
    said(capsys, *words, whole)
    calls = []

    def interrupted(*arguments: Any, **named: Any) -> Training:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return learn(*arguments, **named)

    monkeypatch.setattr("lrms_sim.malleable.trainer.learn", interrupted)
    assert run_command(["utility", *map(str, [*words, broken])]) == 130
    assert not broken.exists()
    wrong = [*words, broken, "--alpha", "0.01", "--resume"]
    assert "is of another run (lessons differ)" in refused(capsys, *wrong)
    said(capsys, *words, broken, "--resume")
    assert len(calls) == 4  # one was done before, two after
    assert load_value_function(broken).p == load_value_function(whole).p


def test_policies_are_compared(capsys: Capture, tmp_path: Path, csv: Path) -> None:
    """Every policy once, those that learn once a seed; what is kept is not run again."""
    kept, picture = tmp_path / "k.json", tmp_path / "p.svg"
    words = ["compare", csv, "--processors", "24", "--seeds", "2", "--results", kept]
    words += ["--policies", "best-fit,both-value,replan", "--picture", picture]
    text = said(capsys, *words)
    assert text.index("best-fit") < text.index("both-value") < text.index("replan")
    assert "both-value" in picture.read_text()
    runs = printed("lrms-sim-utility-compare", said(capsys, *words, "--json"))["runs"]
    assert [(run["policy"], run["seed"]) for run in runs] == [
        ("best-fit", None),
        ("both-value", 0),
        ("both-value", 1),
        ("replan", None),
    ]
    document = json.loads(kept.read_text())
    document["runs"]["replan None"]["completed"] = 4711
    kept.write_text(json.dumps(document))
    assert "4,711" in said(capsys, *words)
    assert "holds another comparison" in refused(capsys, *words, "--grow", "never")


def test_the_models_test_jobs_are_not_learned_on(capsys: Capture, tmp_path: Path) -> None:
    """Training with a seed draws other jobs than running with it."""
    value = tmp_path / "v.json"
    said(capsys, "train", "model", "--rate", "0.05", "-o", value)
    first = load_value_function(value).provenance["workload_sha256"]
    said(capsys, "train", "model", "--rate", "0.05", "--seed", "1", "-o", value)
    assert load_value_function(value).provenance["workload_sha256"] != first
    assert "both-value" in said(
        capsys, "run", "model", "--rate", "0.05", "--policy", "both-value", "--value", value
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "none.swf"], "none.swf"),
        (["run", "none.csv"], "cannot be read"),
        (["run", "model", "--policy", "bestfit"], "did you mean 'best-fit'"),
        (["run", "model", "--window-days", "5"], "is not two days"),
        (["run", "model", "--window-days", "5:2"], "ends before it begins"),
        (["run", "model", "--window-days", "90000:"], "no job is submitted"),
        (["run", "model", "--speedup", "moore"], "speedup is 'moore'"),
        (["run", "model", "--speedup", "amdahl"], "write linear, amdahl:0.1"),
        (["run", "model", "--processors", "8"], "processors wide; the machine has 8"),
        (["run", "model", "--gantt", "no/such/x.svg"], "there is no folder"),
        (["run", "model", "--gantt", "g.svg", "--picture", "5:5"], "must be upward"),
        (["run", "x.csv", "--results", "r.csv", "--log", "./r.csv"], "r.csv: two outputs"),
        (["train", "model", "-o", "x.json", "--policy", "replan"], "has nothing to learn"),
        (["compare", "model", "--policies", "fcfs,fcfs"], "a policy comes twice"),
        (["compare", "model", "--policies", "foo"], "is no policy"),
    ],
)
def test_what_cannot_be_done_is_said(
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    """One line that says what is wrong."""
    monkeypatch.chdir(tmp_path)
    text = refused(capsys, *words)
    assert message in text
    assert "Traceback" not in text
