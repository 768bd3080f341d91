"""Commands to the simulated machine, its events, and its return from the journal."""

import itertools
import math

import pytest

from grms.lrms.port import LrmsError
from grms.lrms.simulated import SimulatedLrms
from grms.site.engine.lrms_driver import MachineDriver, MachineHistory, lrms_job
from grms.site.facts.commands import LrmsCancel, LrmsSubmit
from grms.site.facts.events import LrmsAccepted, LrmsEnded, LrmsRefused, LrmsStarted
from grms.site.facts.jobs import Load, OfferId, Request
from grms.site.facts.lifecycle import Outcome
from grms.site.facts.records import (
    EpochBegun,
    GuestAccepted,
    GuestEnded,
    GuestStarted,
    JobEnded,
    JobKept,
    JobReceived,
    JobStarted,
)
from grms.v1 import request_pb2
from lrms_sim.disciplines import Fcfs


def program(run_time: float) -> bytes:
    """Returns what runs, as it is carried."""
    message = request_pb2.JobRequest()
    message.simulated.run_time_s = run_time
    return message.SerializeToString()


def new_driver(processors: int = 4) -> MachineDriver:
    """Returns a driver of an empty machine."""
    return MachineDriver(SimulatedLrms(processors, Fcfs()), itertools.count(1))


def submission(key: str, processors: int = 4, run_time: float = 5.0, **more: bool) -> LrmsSubmit:
    """Returns the command to submit a job that requests ten seconds."""
    return LrmsSubmit(0, key, Request(processors, 10.0), program(run_time), **more)


def test_a_job_runs() -> None:
    """It is accepted at once, and its start and end are told with their moments."""
    driver = new_driver()
    assert driver.submit(submission("k"), 1.0) == [LrmsAccepted(1, "k")]
    assert driver.load(1.0) == Load(4, 0, 0)
    assert driver.poll(1.0) == [LrmsStarted(2, "k", 1.0)]
    assert driver.next_event_time == 6.0
    assert driver.poll(9.0) == [LrmsEnded(3, "k", Outcome.COMPLETED, 6.0, 5.0)]


def test_what_cannot_run_is_refused() -> None:
    """A job too wide, or one whose program is none, will never be taken."""
    driver = new_driver()
    (refused,) = driver.submit(submission("k", 5), 0.0)
    assert isinstance(refused, LrmsRefused)
    assert "this machine has 4" in refused.reason
    bad = LrmsSubmit(0, "k", Request(1, 1.0), b"\xff")
    assert isinstance(driver.submit(bad, 0.0)[0], LrmsRefused)


def test_a_cancelled_job_has_an_end() -> None:
    """Running and waiting jobs end as cancelled; what is not there has no end."""
    driver = new_driver()
    driver.submit(submission("a"), 0.0)
    driver.submit(submission("b"), 0.0)
    assert driver.cancel(LrmsCancel(0, "b"), 2.0) == [
        LrmsEnded(3, "b", Outcome.CANCELLED, 2.0, 0.0)
    ]
    assert driver.cancel(LrmsCancel(0, "a"), 3.0) == [
        LrmsEnded(4, "a", Outcome.CANCELLED, 3.0, 3.0)
    ]
    assert driver.cancel(LrmsCancel(0, "a"), 3.0) == []


def test_a_lookup_comes_before_a_repetition() -> None:
    """A job that is there is not submitted again; one that had started and is gone has failed."""
    driver = new_driver()
    driver.submit(submission("a"), 0.0)
    driver.poll(0.0)
    assert driver.submit(submission("a", lookup=True), 1.0) == [LrmsAccepted(3, "a")]
    (ended,) = driver.submit(submission("b", lookup=True, started=True), 1.0)
    assert isinstance(ended, LrmsEnded)
    assert ended.outcome is Outcome.FAILED


def test_first_ends_are_known_to_a_simulation() -> None:
    """No job that is followed ends before the moment that is returned; others do not count."""
    driver = new_driver()
    assert driver.first_end() == math.inf
    driver.submit(submission("a"), 0.0)
    driver.submit(submission("b", run_time=3.0), 0.0)
    driver.follow("b")
    assert driver.first_end() == 8.0
    driver.follow("a")
    driver.follow("nobody's")
    assert driver.first_end() == 5.0
    driver.cancel(LrmsCancel(0, "a"), 2.0)
    assert driver.first_end() == 5.0  # b's: it has started at 2
    driver.poll(5.0)
    assert driver.first_end() == math.inf


def test_a_program_that_is_none_is_an_error() -> None:
    """Run times that are no times are refused."""
    for run_time in (-1.0, float("nan"), float("inf")):
        with pytest.raises(LrmsError, match="run_time_s is"):
            lrms_job("k", Request(1, 1.0), program(run_time))


def test_the_journal_gives_the_machine_back() -> None:
    """Jobs that run keep their starts, those that wait their order, those that ended are gone."""
    offer = OfferId(7, 1)
    request, run = Request(4, 10.0), program(5.0)
    history = MachineHistory("home", 3)
    for record in (
        JobReceived(0.0, 1, "me", "k", "", request, run),
        JobKept(0.0, 1),
        JobStarted(0.0, 1, 0.0),
        JobReceived(1.0, 2, "me", "l", "", request, run),
        JobKept(1.0, 2),
        GuestAccepted(2.0, "away", offer, 1, request, run),
        JobEnded(5.0, 1, Outcome.COMPLETED, 5.0, 5.0, ""),
        JobStarted(5.0, 2, 5.0),
    ):
        history.apply(record)
    driver = MachineDriver(history.machine(4, Fcfs()), itertools.count(1))
    assert driver.load(6.0) == Load(4, 0, 4)
    told = driver.poll(20.0)
    assert [type(event) for event in told] == [LrmsStarted, LrmsEnded, LrmsStarted, LrmsEnded]
    assert told[1] == LrmsEnded(2, "home/3/2", Outcome.COMPLETED, 10.0, 5.0)
    assert told[3] == LrmsEnded(4, "away/7/1", Outcome.COMPLETED, 15.0, 5.0)
    history.apply(GuestStarted(10.0, "away", offer, 10.0))
    history.apply(GuestEnded(15.0, "away", offer, Outcome.COMPLETED, 15.0, 5.0))


def test_a_script_is_known_after_a_restart() -> None:
    """The journal says which open jobs have a script; an ended one is forgotten."""
    message = request_pb2.JobRequest()
    message.program.script = "true"
    request, history = Request(1, 10.0), MachineHistory("kth", 1)
    for number in (1, 2):
        payload = message.SerializeToString()
        history.apply(JobReceived(0.0, number, "ann", f"k{number}", "", request, payload))
        history.apply(JobKept(0.0, number))
    history.apply(JobEnded(1.0, 2, Outcome.CANCELLED, 1.0, 0.0, ""))
    assert history.programs == {"kth/1/1"}
    driver = MachineDriver(history.machine(4, Fcfs()), itertools.count(1), history.programs)
    *_, ended = driver.poll(20.0)
    assert isinstance(ended, LrmsEnded)
    assert (ended.outcome, ended.reason) == (Outcome.NOT_RUN, "simulated: its script was not run")


def test_a_job_that_is_cut_at_its_limit_timed_out() -> None:
    """One that ends exactly there has completed."""
    history = MachineHistory("kth", 1)
    driver = MachineDriver(history.machine(4, Fcfs()), itertools.count(1))
    for number, run_time in enumerate((10.0, 10.1)):
        message = request_pb2.JobRequest()
        message.simulated.run_time_s = run_time
        payload = message.SerializeToString()
        driver.submit(LrmsSubmit(0, f"kth/1/{number}", Request(1, 10.0), payload), 0.0)
    ends = [event for event in driver.poll(20.0) if isinstance(event, LrmsEnded)]
    assert [(end.outcome, end.run_time) for end in ends] == [
        (Outcome.COMPLETED, 10.0),
        (Outcome.TIMEOUT, 10.0),
    ]
    assert ends[1].reason == "ended at the limit of its requested time"


def test_keys_follow_the_epoch_in_which_a_job_was_received() -> None:
    """A job of before keeps its key when a new epoch has begun."""
    message = request_pb2.JobRequest()
    message.program.script = "true"
    request, payload = Request(1, 10.0), message.SerializeToString()
    history = MachineHistory("kth", 1)
    history.apply(JobReceived(0.0, 1, "ann", "k1", "", request, payload))
    history.apply(EpochBegun(0.0, 5, "why"))
    history.apply(JobReceived(0.0, 2, "ann", "k2", "", request, payload))
    for number in (1, 2):
        history.apply(JobKept(0.0, number))
    assert history.programs == {"kth/1/1", "kth/5/2"}
    history.apply(JobStarted(0.0, 1, 0.0))
    history.apply(JobEnded(1.0, 1, Outcome.CANCELLED, 1.0, 0.0, ""))
    assert history.programs == {"kth/5/2"}
