"""Which jobs count, and what short ones count as, in `lrms-sim run` and `compare`; and jobs that run over."""

import json
from pathlib import Path

import numpy as np
import pytest

from lrms_sim import compare, prepare, read_swf, simulate
from lrms_sim.analysis.metrics import machine_metrics, mean_bounded_slowdown
from lrms_sim.cli.main import run_command
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.preparation import PreparationOptions
from lrms_sim.workload.schedule import MachineInfo
from lrms_sim.workload.schedule_files import read_csv, write_csv
from tests.schemas import printed

Capture = pytest.CaptureFixture[str]

# Two processors, two days. Job 2 waits for job 1; job 5 runs for 50 s and has requested 9.
LOG = """\
; Version: 2.2
; MaxProcs: 2
1 0 -1 100 2 -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1
2 1 -1 5 1 -1 -1 1 9 -1 1 2 1 -1 1 -1 -1 -1
3 100000 -1 5 2 -1 -1 2 9 -1 1 2 1 -1 1 -1 -1 -1
4 100001 -1 20 2 -1 -1 2 20 -1 1 1 1 -1 1 -1 -1 -1
5 200000 -1 50 2 -1 -1 2 9 -1 1 2 1 -1 1 -1 -1 -1
6 200001 -1 5 1 -1 -1 1 9 -1 1 2 1 -1 1 -1 -1 -1
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.swf").write_text(LOG)
    monkeypatch.chdir(tmp_path)


def said(capsys: Capture, *words: str) -> str:
    status = run_command(words)
    out, err = capsys.readouterr()
    assert status == 0, err
    return out


def refused(capsys: Capture, *words: str) -> str:
    assert run_command(words) != 0
    return capsys.readouterr().err


def test_jobs_of_warm_up_and_cool_down_run_and_do_not_count(capsys: Capture) -> None:
    """Figures of users are of the jobs between; the machine's utilization of the time between; the rest of all."""
    whole = printed("lrms-sim-run", said(capsys, "run", "log.swf", "--json"))
    words = ("run", "log.swf", "--warm-up", "1", "--cool-down", "1")
    part = printed("lrms-sim-run", said(capsys, *words, "--json"))
    assert (whole["jobs_submitted"], whole["warm_up_days"]) == (6, 0)
    assert (part["jobs_submitted"], part["jobs_executed"]) == (2, 6)
    assert (part["warm_up_days"], part["cool_down_days"]) == (1, 1)
    # Jobs 3 and 4 run from 100,000 to 100,025; counted is from 86,400 to 113,601.
    assert part["mean_wait_time_s"] == 2
    assert part["utilization"] == pytest.approx(25 / 27201)
    assert part["makespan_s"] == whole["makespan_s"]
    assert sum(group["jobs"] for group in part["user_groups"]) == 2
    assert part["user_fairness"]["users"] == 2
    text = " ".join(said(capsys, *words).split())
    assert "jobs that count 2 without 1 and 1 days" in text
    assert "processor-seconds, of all jobs makespan" in text
    assert "from time 0, of all jobs" in text
    one = printed(
        "lrms-sim-run", said(capsys, *words, "--json", "--repeat", "2", "--shift-arrivals", "0")
    )
    assert one["repetitions"]["mean_wait_time_s"]["mean"] == 2


def test_short_jobs_count_as_tau(capsys: Capture) -> None:
    """In a run, its repetitions, the users' figures, and a comparison."""
    jobs = prepare(read_swf("log.swf"), 2).jobs
    found = simulate(jobs, 2)
    words = ("run", "log.swf", "--tau", "50", "--repeat", "2", "--shift-arrivals", "0")
    out = printed("lrms-sim-run", said(capsys, *words, "--json"))
    expected = mean_bounded_slowdown(found, threshold=50)
    assert out["tau_s"] == 50
    assert out["mean_bounded_slowdown"] == out["repetitions"]["mean_bounded_slowdown"]["mean"]
    assert out["mean_bounded_slowdown"] == expected != machine_metrics(found).mean_bounded_slowdown
    assert "at least 50 s" in said(capsys, *words)
    compared = (
        "compare",
        "log.swf",
        "--disciplines",
        "fcfs,list",
        "--shifts",
        "2",
        "--shift-arrivals",
        "0",
    )
    metric = ("--metric", "mean-bounded-slowdown", "--tau", "50")
    told = printed(
        "lrms-sim-compare", said(capsys, *compared, *metric, "--json", "--html", "out/x.html")
    )
    assert told["tau"] == 50
    assert told["differences"][0]["baseline"] == pytest.approx(expected)
    assert "run times below 50 s count as this" in Path("out/x.html").read_text(encoding="utf-8")
    # What was replayed with another one is not taken for this.
    told = printed("lrms-sim-compare", said(capsys, *compared, *metric[:2], "--json"))
    assert told["differences"][0]["baseline"] == pytest.approx(mean_bounded_slowdown(found))


def test_jobs_run_over_their_requests(capsys: Capture) -> None:
    """Step by step, with feedback, on nodes, in a comparison, and out to a file and back."""
    Path("nodes.toml").write_text('[[nodes]]\nkind = "a"\ncount = 1\ncores = 2\n')
    words = ("run", "log.swf", "--discipline", "easy", "--overrun", "run", "--json")
    out = json.loads(said(capsys, *words, "--schedule", "out.csv"))
    assert out["makespan_s"] == 200055
    (entry,) = (each for each in out["preparation"]["entries"] if each["reason"] == "overrun")
    assert (entry["treatment"], entry["count"]) == ("kept", 1)
    for more in (("--dependencies",), ("--nodes", "nodes.toml"), ("--repeat", "2")):
        assert json.loads(said(capsys, *words, *more))["makespan_s"] == 200055, more
    assert json.loads(said(capsys, *words[:-3], "--json"))["makespan_s"] == 200014
    back = read_csv("out.csv", [MachineInfo("log", 2)])
    assert back.jobs.outlives_requests
    assert back.end_time.max() == 200055
    write_csv(back, "again.csv")
    assert Path("again.csv").read_bytes() == Path("out.csv").read_bytes()
    jobs = prepare(read_swf("log.swf"), 2, PreparationOptions(overrun="run")).jobs
    found = compare({"log": (jobs, 2)}, ["easy", "fcfs"], metrics=["makespan"], shifts=2, seconds=0)
    told = said(
        capsys, "compare", "log.swf", "--disciplines", "easy,fcfs", "--metric", "makespan", "--shifts", "2",
        "--shift-arrivals", "0", "--overrun", "run", "--json",
    )  # fmt: skip
    assert json.loads(told)["differences"][0]["baseline"] == found.differences[0].baseline == 200055
    assert np.array_equal(
        simulate(jobs, 2, discipline_by_name("easy")).start_time,
        [0, 100, 100000, 100005, 200000, 200050],
    )


def test_what_does_not_go_is_refused(capsys: Capture) -> None:
    assert "no job of the log 'log' counts" in refused(capsys, "run", "log.swf", "--warm-up", "9")
    Path("nodes.toml").write_text('[[nodes]]\nkind = "a"\ncount = 1\ncores = 2\n')
    words = ("run", "log.swf", "--nodes", "nodes.toml", "--warm-up", "1")
    assert "do not go with --nodes" in refused(capsys, *words)
    for wrong in ("0", "-1", "nan", "x"):
        assert "--tau" in refused(capsys, "run", "log.swf", "--tau", wrong), wrong
    jobs = prepare(read_swf("log.swf"), 2).jobs
    for tau in (0.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="threshold is"):
            compare({"log": (jobs, 2)}, ["easy", "fcfs"], shifts=1, tau=tau)
