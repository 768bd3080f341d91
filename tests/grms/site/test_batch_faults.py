"""How real jobs under faults are judged: whether each ran once, and what may be said of it."""

from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.batch_verdict import (
    JobsVerdict,
    Line,
    anomalies_of,
    given_up,
    judge,
    read_lines,
    releases,
)
from grms.client import Job, JobState, Outcome

HERE, THERE = Path("/jobs-north/north+1+1"), Path("/jobs-south/north+1+1")


def job(outcome: Outcome | None = Outcome.COMPLETED, end_time_s: float = 50.0) -> Job:
    """Returns a job as its user has it."""
    state = JobState.RUNNING if outcome is None else JobState.ENDED
    return Job("n-1", "", "u", 1, 60.0, state, "north", 0.0, 1.0, end_time_s, outcome, False, "")


def runs(*starts: tuple[Path, str, float], ends: int = 1) -> list[Line]:
    """Returns what a job has written."""
    lines = [Line(True, folder, number, time) for folder, number, time in starts]
    return lines + [Line(False, HERE, "7", 50.0)] * ends


ONCE = runs((HERE, "7", 10.0))
TWICE = runs((HERE, "7", 10.0), (HERE, "7", 20.0))


def judged(told: Job, lines: list[Line], *moments: float) -> JobsVerdict:
    """Returns the verdict on one job that was released at some moments."""
    return judge({"a": told}, {"a": lines}, {("jobs-north", "7"): moments}, grace_s=3.0)


def test_one_that_ran_once_is_well() -> None:
    """One start, one end."""
    verdict = judged(job(), ONCE, 9.0)
    assert verdict.problems == []
    assert verdict.counts == {"said_completed": 1}


@pytest.mark.parametrize(
    ("lines", "released", "text"),
    [
        (TWICE, 30.0, "by the batch system itself"),
        (TWICE, 15.0, "was released at [15.0]"),
        (runs((HERE, "7", 10.0), (HERE, "8", 20.0)), 9.0, "of two submissions"),
        (runs((HERE, "7", 10.0), (THERE, "7", 20.0)), 9.0, "of two submissions"),
    ],
)
def test_what_ran_again_is_a_problem(lines: list[Line], released: float, text: str) -> None:
    """Whoever started it: a launcher does not run a script twice."""
    (problem,) = judged(job(), lines, 9.0, released).problems
    assert text in problem


@pytest.mark.parametrize(
    ("told", "lines", "text"),
    [
        (job(), [], "never began"),
        (job(Outcome.FAILED), [], "never began"),
        (job(Outcome.LOST), [], "never began"),
        (job(), runs((HERE, "7", 10.0), ends=0), "wrote no end"),
        (job(None), ONCE, "a is running"),
        (job(Outcome.FAILED), ONCE, "came to its end by itself"),
        (job(Outcome.UNKNOWN), ONCE, "came to its end by itself"),
        (job(end_time_s=40.0), ONCE, "ran for 10.0 s after its end was told"),
    ],
)
def test_what_is_said_and_was_not_is_a_problem(told: Job, lines: list[Line], text: str) -> None:
    """What never ran has not failed, what is over did not run on, and what has come to its end is not unknown."""
    (problem,) = judged(told, lines).problems
    assert text in problem


@pytest.mark.parametrize(
    ("outcome", "lines", "count"),
    [
        (Outcome.NODE_FAIL, [], "of_these_never_started"),
        (Outcome.UNKNOWN, [], "of_these_never_started"),
        (Outcome.NODE_FAIL, ONCE, "said_node_fail"),
        (Outcome.FAILED, runs((HERE, "7", 10.0), ends=0), "killed_by_the_batch_system"),
        (Outcome.UNKNOWN, runs((HERE, "7", 10.0), ends=0), "killed_by_the_batch_system"),
    ],
)
def test_what_a_batch_system_lets_fail_is_said(
    outcome: Outcome, lines: list[Line], count: str
) -> None:
    """The user is told, so that it is not lost."""
    verdict = judged(job(outcome), lines)
    assert verdict.problems == []
    assert verdict.counts[count] == 1


NOT_REQUEUED = (
    "[2026-11-26T19:51:45.775] _slurm_rpc_requeue: Requeue of JobId=34 returned an error: Requested "
    "operation is presently disabled\n"
)
ENDED = "[2026-11-26T19:51:45.783] _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=34 uid 0\n"
COMPLETIONS = "".join(
    f"JobId={number} UserId=root(0) GroupId=root(0) Name=hanse:south:south/18eb/{number} JobState={state} "
    "Partition=main TimeLimit=3\n"
    for number, state in ((34, "CANCELLED"), (35, "CANCELLED"), (36, "COMPLETED"))
)


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (NOT_REQUEUED + ENDED, {"south/18eb/34"}),
        (NOT_REQUEUED, set()),
        (ENDED, set()),
        ((NOT_REQUEUED + ENDED).replace("=34", "=36"), set()),
    ],
)
def test_what_a_node_has_given_up_is_read_of_the_controllers_log(log: str, found: set[str]) -> None:
    """It could not start the job, which is not to be requeued; what somebody else has cancelled is another matter."""
    assert given_up(log, COMPLETIONS) == found


def test_what_a_node_has_given_up_may_be_said_to_be_cancelled() -> None:
    """As Slurm says; but not that it has failed, nor where it has begun."""
    cancelled = job(Outcome.CANCELLED)
    known = judge({"a": cancelled}, {}, {}, grace_s=3.0, given_up={"a"})
    assert known.problems == []
    assert known.counts["cancelled_by_a_node"] == 1
    for told, lines, names in (
        (cancelled, [], {"b"}),
        (job(Outcome.FAILED), [], {"a"}),
        (cancelled, ONCE, {"a"}),
    ):
        assert judge({"a": told}, {"a": lines}, {}, grace_s=3.0, given_up=names).problems


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
    entries = [{"event": "lrms_anomaly", "what": "copied", "lrms_job": name} for name in ("x", "y")]
    assert anomalies_of([{"event": "serving"}, *entries, *entries]) == {"copied": {"x", "y"}}
