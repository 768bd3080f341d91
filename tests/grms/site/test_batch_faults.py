"""How real jobs under faults are judged: whose doing a second run was, and what may be said of a job."""

from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.batch_verdict import Line, judge, read_lines, releases, slips_of
from grms.client import Job, JobState, Outcome

HERE, THERE = Path("/jobs-north/north+1+1"), Path("/jobs-south/north+1+1")


def job(outcome: Outcome | None = Outcome.COMPLETED) -> Job:
    """Returns a job as its user has it."""
    state = JobState.RUNNING if outcome is None else JobState.ENDED
    return Job("n-1", "", "u", 1, 60.0, state, "north", 0.0, 1.0, 2.0, outcome, False, "")


def runs(*starts: tuple[Path, str, float], ends: int = 1) -> list[Line]:
    """Returns what a job has written."""
    lines = [Line(True, folder, number, time) for folder, number, time in starts]
    return lines + [Line(False, HERE, "7", 50.0)] * ends


ONCE = runs((HERE, "7", 10.0))
TWICE = runs((HERE, "7", 10.0), (HERE, "7", 20.0))


def test_one_that_ran_once_is_well() -> None:
    """One start, one end."""
    verdict = judge({"a": job()}, {"a": ONCE}, {("jobs-north", "7"): [9.0]})
    assert (verdict.problems, verdict.twice) == ([], [])
    assert verdict.counts == {"said_completed": 1}


def test_what_the_batch_system_ran_again_is_counted() -> None:
    """No release lies between the two runs of one submission."""
    verdict = judge({"a": job()}, {"a": TWICE}, {("jobs-north", "7"): [9.0, 30.0]})
    assert (verdict.problems, verdict.twice) == ([], [HERE])
    assert verdict.counts["run_twice_by_the_batch_system"] == 1


@pytest.mark.parametrize(
    ("lines", "released", "text"),
    [
        (TWICE, 15.0, "was released at [15.0]"),
        (runs((HERE, "7", 10.0), (HERE, "8", 20.0)), 9.0, "of two submissions"),
        (runs((HERE, "7", 10.0), (THERE, "7", 20.0)), 9.0, "of two submissions"),
    ],
)
def test_what_the_site_ran_again_is_a_problem(
    lines: list[Line], released: float, text: str
) -> None:
    """It released the job once more, submitted it twice, or both sites had it."""
    (problem,) = judge({"a": job()}, {"a": lines}, {("jobs-north", "7"): [9.0, released]}).problems
    assert text in problem


@pytest.mark.parametrize(
    ("told", "lines", "text"),
    [
        (job(), [], "wrote 0 starts, no end"),
        (job(), runs((HERE, "7", 10.0), ends=0), "wrote 1 starts, no end"),
        (job(None), ONCE, "a is running"),
        (job(Outcome.FAILED), ONCE, "said to be failed"),
    ],
)
def test_what_is_said_and_was_not_is_a_problem(told: Job, lines: list[Line], text: str) -> None:
    """A job is lost that is said to have completed and never ran, and one of which nothing is said."""
    (problem,) = judge({"a": told}, {"a": lines}, {}).problems
    assert text in problem


def test_what_a_batch_system_lets_fail_is_said() -> None:
    """The user is told, so that it is not lost."""
    told = {"a": job(Outcome.NODE_FAIL), "b": job(Outcome.UNKNOWN), "c": job(Outcome.FAILED)}
    cut_off = runs((HERE, "7", 10.0), ends=0)
    verdict = judge(told, {"a": [], "b": ONCE, "c": cut_off}, {})
    assert verdict.problems == []
    assert verdict.counts["failed_by_the_batch_system"] == 3
    assert verdict.counts["of_these_never_started"] == 1
    assert verdict.counts["of_these_came_to_their_end"] == 1


def test_releases_are_read_of_the_controllers_log() -> None:
    """In the controller's local time."""
    log = (
        "[1970-01-02T00:00:10.250] sched: _release_job_rec: release hold on JobId=7 by uid 0\n"
        "[1970-01-02T00:00:11.250] _slurm_rpc_update_job: complete JobId=7 uid=0 usec=391\n"
    )
    moment = datetime(1970, 1, 2, 0, 0, 10, 250_000).timestamp()  # noqa: DTZ001  # it is local
    assert releases(log, "jobs-north") == {("jobs-north", "7"): [moment]}


def test_files_and_logs_are_read(tmp_path: Path) -> None:
    """A job that never started has no file."""
    assert read_lines(tmp_path / "a") == []
    (tmp_path / "a").write_text(f"start {HERE} 7 10.5\nend {HERE} 7 12.25\n")
    assert read_lines(tmp_path / "a") == [
        Line(True, HERE, "7", 10.5),
        Line(False, HERE, "7", 12.25),
    ]
    entries = [{"event": "lrms_slip", "what": "copied", "lrms_job": name} for name in ("x", "y")]
    assert slips_of([{"event": "serving"}, *entries, *entries]) == {"copied": {"x", "y"}}
