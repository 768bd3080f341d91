"""An array in a diamond of dependencies over two real Slurms under kills, and how it is judged."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.batch_arrays import Diamond, most_at_once, most_under_way
from benchmarks.batch_faults import Plan, run
from benchmarks.batch_verdict import Line
from benchmarks.exactly_once import Federation
from grms.client import Job, JobState, Outcome
from grms.site.model.jobs import Request
from grms.site.model.records import (
    ArrayReceived,
    JobEnded,
    JobKept,
    JobReceived,
    JobReleased,
    Record,
)
from grms.util.dependencies import Dependency
from tests.clusters.slurm import need_slurm

HERE = Path("/jobs-north/north+1+1")
ENDED = Job("n-1", "", "u", 1, 60.0, JobState.ENDED, "north", 0.0, 1.0, 50.0, Outcome.COMPLETED, False, "")  # fmt: skip
NEVER = replace(ENDED, outcome=Outcome.CANCELLED)


@pytest.mark.services
def test_a_diamond_with_an_array_over_two_slurms_under_kills(tmp_path: Path) -> None:
    """Each element once, in order, and no more at a time than may be, while a controller and daemons die."""
    need_slurm()
    plan = Plan(
        seed=3,
        seconds=20.0,
        controllers=1,
        daemons=2,
        links=1,
        elements=12,
        at_once=4,
        cpus=1,
        jobs=0,
        nodes=0,
        deaths=0,
        partitions=0,
        spools=0,
        certificates=0,
    )
    outcome = run(plan, tmp_path / "run")
    assert outcome.problems == []
    counts = outcome.counts
    assert (counts["controller_kills"], counts["daemon_kills"]) == (1, 2)
    assert counts["wide_under_way"] == 4
    assert counts["delegated"] > 0


def ran(begin: float, end: float) -> list[Line]:
    """Returns what a job has written."""
    return [Line(True, HERE, "7", begin), Line(False, HERE, "7", end)]


def kept_to() -> tuple[Diamond, dict[str, Job], dict[str, list[Line]]]:
    """Returns a diamond of which all was as it should be."""
    diamond = Diamond(2, 1)
    written = {
        "top": ran(0, 1),
        "wide[1]": ran(1, 2),
        "wide[2]": ran(2, 3),
        "side": ran(1, 9),
        "pairs[1]": ran(2, 3),
        "pairs[2]": ran(3, 4),
        "bottom": ran(9, 10),
        "good": ran(3, 4),
        "bad": [],
    }
    jobs = dict.fromkeys(written, ENDED) | {"bad": NEVER}
    return diamond, jobs, written


def test_what_kept_to_its_order_is_well() -> None:
    """Each word is that of one job, and one of the two at the end may not run."""
    diamond, jobs, written = kept_to()
    assert diamond.words("wide") == ["wide[1]", "wide[2]"]
    assert diamond.hopeless(jobs) == {"bad"}
    verdict = diamond.judge(jobs, written)
    assert verdict.problems == []
    assert verdict.counts == {"elements": 2, "elements_at_once": 1, "dependents_cancelled": 1}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"wide[2]": ran(1.5, 3)}, "2 elements ran at a time; at most 1 may"),
        ({"wide[1]": ran(0.5, 2)}, "wide[1] began 0.500 s before the end of top"),
        ({"pairs[2]": ran(2.5, 4)}, "pairs[2] began 0.500 s before the end of wide[2]"),
        ({"bottom": ran(8.75, 10)}, "bottom began 0.250 s before the end of side"),
        ({"bad": ran(20, 21)}, "bad may not run"),
    ],
)
def test_what_did_not_keep_to_it_is_a_problem(wrong: Mapping[str, list[Line]], says: str) -> None:
    """By the lines that the jobs have written."""
    diamond, jobs, written = kept_to()
    (problem,) = diamond.judge(jobs, {**written, **wrong}).problems
    assert says in problem


def test_what_follows_a_failure_may_not_run() -> None:
    """By how it is told; all that waits for it is told as cancelled then, and has written nothing."""
    diamond, jobs, written = kept_to()
    jobs |= {"wide[2]": replace(ENDED, outcome=Outcome.UNKNOWN), "bad": ENDED}
    written["bad"] = ran(3, 4)
    assert diamond.hopeless(jobs) == {"pairs[2]", "good"}
    problems = diamond.judge(jobs, written).problems
    assert [problem.partition(" may not run")[0] for problem in problems] == ["good", "pairs[2]"]
    for word in ("pairs[2]", "good"):
        jobs[word], written[word] = NEVER, []
    assert diamond.judge(jobs, written).problems == []


def test_how_many_ran_at_a_time() -> None:
    """One that ends as another begins is gone; one that wrote no end was there for a moment."""
    assert most_at_once([ran(0, 2), ran(1, 3), ran(2, 4), [], ran(9, 9)[:1]]) == 2


REQUEST = Request(1, 60.0)


def received(number: int, *after: str, array: int = 0, index: int = 0) -> JobReceived:
    """Returns the record of a job, or an element."""
    dependencies = tuple(Dependency("afterok", each) for each in after)
    key = "array" if array else f"k{number}"
    return JobReceived(0.0, number, "u", key, "n", REQUEST, b"", "", dependencies, array, index)


ARRAY: list[Record] = [
    ArrayReceived(0.0, 1, "1-3%2", "u", "array", "n", REQUEST, b""),
    *(received(number, array=1, index=number) for number in (1, 2, 3)),
]


def end(number: int, outcome: Outcome = Outcome.COMPLETED, run_time: float = 1.0) -> JobEnded:
    """Returns the record of an end."""
    return JobEnded(0.0, number, outcome, 5.0, run_time, "")


def test_who_is_under_way_is_counted_by_the_journal() -> None:
    """From the release to the end; one that ends while it is held never was."""
    released = [JobReleased(0.0, number) for number in (1, 2, 3)]
    assert most_under_way(ARRAY) == {"array": 0}
    held = end(3, Outcome.CANCELLED, 0.0)
    assert most_under_way([*ARRAY, held, *released[:2]]) == {"array": 2}
    assert most_under_way([*ARRAY, released[0], end(1), *released[1:]]) == {"array": 2}
    assert most_under_way([*ARRAY, *released]) == {"array": 3}


def test_what_was_cancelled_while_it_was_held_was_given_to_nobody() -> None:
    """Elements are told apart by their index; one that was released and went nowhere is a problem."""
    journal = [*ARRAY, *(JobReleased(0.0, number) for number in (1, 2))]
    journal += [JobKept(0.0, 1), JobKept(0.0, 2), end(1), end(2), end(3, Outcome.CANCELLED, 0.0)]
    journal += [received(4, "a-1"), end(4, Outcome.CANCELLED, 0.0)]
    verdict = Federation({"a": journal}, {"a": 1}, {}).hands()
    assert verdict.problems == []
    assert verdict.counts["cancelled_while_held"] == 2
    assert verdict.places == {("a", "array[1]"): "a", ("a", "array[2]"): "a"}
    journal = [*ARRAY, JobReleased(0.0, 3), end(3, Outcome.CANCELLED, 0.0)]
    assert "a-3 was given to nobody" in Federation({"a": journal}, {"a": 1}, {}).hands().problems
