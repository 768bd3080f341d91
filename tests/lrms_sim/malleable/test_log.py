from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.log import KINDS, AllocationLog
from lrms_sim.malleable.machine import simulate
from lrms_sim.malleable.model import PaperModel
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import POLICIES
from tests.lrms_sim.malleable.utility_runs import Run, by_kernel, check_log, rows_of, runs

Entries = npt.NDArray[Any]


def sample() -> AllocationLog:
    """Returns the log of a run in which everything happens."""
    workload = PaperModel(0.3).draw(300, 5)
    options = MachineOptions(step=1.0)
    log = simulate(workload, 24, POLICIES["both-aggressive"], options=options, log=True).log
    assert log is not None
    return log


def test_everything_is_noted() -> None:
    """The sample has every kind of entry, or the tests below would be about less."""
    log = sample()
    assert {kind for _, kind, _, _ in rows_of(log)} == set(KINDS)
    check_log(log)


@settings(deadline=None)
@given(run=runs())
def test_processors_are_conserved(run: Run) -> None:
    """At no moment do jobs hold more than there is, and held time is what is counted."""
    outcome = by_kernel(run)
    assert outcome.log is not None
    check_log(outcome.log)
    stretches = outcome.log.allocations()
    held = sum(each.processors * (each.end - each.start) for each in stretches)
    assert held == pytest.approx(sum(machine.busy for machine in outcome.machines))
    for machine, size in enumerate(run.sizes):
        on = [each for each in stretches if each.machine == machine]
        for moment in {each.start for each in on}:
            assert sum(e.processors for e in on if e.start <= moment < e.end) <= size


def test_stretches_end_where_they_are_told_to() -> None:
    """A job that still runs at the end of the log is cut there."""
    log = sample()
    half = AllocationLog(log.entries[: len(log) // 2], log.processors, log.workload)
    last = float(half.entries["time"][-1])
    cut = [each for each in half.allocations(last + 2.0) if each.ending == ""]
    assert cut
    assert {each.end for each in cut} == {last + 2.0}
    assert half.allocations()[-1].end <= last


def broken(change: Callable[[Entries], None]) -> AllocationLog:
    """Returns the sample with one thing wrong."""
    log = sample()
    entries = log.entries.copy()
    change(entries)
    return AllocationLog(entries, log.processors, log.workload)


def first(entries: Entries, kind: str) -> int:
    """Returns the place of the first entry of a kind."""
    return int(np.flatnonzero(entries["kind"] == KINDS.index(kind))[0])


def put(kind: str, column: str, value: float) -> Callable[[Entries], None]:
    """Returns a change of the first entry of a kind."""

    def change(entries: Entries) -> None:
        entries[column][first(entries, kind)] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("end", "time", -5.0), "is before the one above"),
        (put("arrive", "job", 99), "has not arrived"),
        (put("start", "kind", KINDS.index("end")), "does not run"),
        (put("start", "kind", KINDS.index("arrive")), "has arrived before"),
        (put("suspend", "kind", KINDS.index("drop")), "it runs"),
        (put("start", "processors", 1), "1 of"),
        (put("start", "processors", 25), "25 of 1 to"),
        (put("squeeze", "processors", 0), "0 of 1 to"),
        (put("suspend", "processors", 1), "it held"),
        (put("end", "kind", KINDS.index("suspend")), "it held"),
    ],
)
def test_a_log_that_cannot_be_is_caught(
    change: Callable[[Entries], None],
    words: str,
) -> None:
    """The check finds each kind of mistake, and names the entry."""
    with pytest.raises(AssertionError, match=rf"entry \d+ .*{words}"):
        check_log(broken(change))


def test_too_many_processors_are_caught() -> None:
    """A machine that were smaller would have given what it has not."""
    log = sample()
    with pytest.raises(AssertionError, match="processors too many"):
        check_log(AllocationLog(log.entries, (20,), log.workload))


def test_no_jobs_make_an_empty_log() -> None:
    """Nothing has happened, and that is in order."""
    workload = PaperModel(0.0).draw(10, 1)
    log = simulate(workload, 24, POLICIES["best-fit"], log=True).log
    assert log is not None
    check_log(log)
    assert (len(log), log.allocations(), rows_of(log)) == (0, [], [])
    assert isinstance(log.workload, UtilityJobs)
