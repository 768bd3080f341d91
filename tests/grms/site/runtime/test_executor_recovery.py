"""What the journal says of the batch system."""

import pytest

from grms.lrms.base import (
    Ended,
    LrmsError,
    LrmsJob,
    LrmsLoad,
    Program,
    SimulatedRun,
    Started,
)
from grms.lrms.home_run import HomeRun
from grms.lrms.simulated.machine import SteppedMachine
from grms.site.model.jobs import GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    EpochBegun,
    GuestAccepted,
    GuestConfirmed,
    GuestReserved,
    JobEnded,
    JobKept,
    JobLeft,
    JobReceived,
    JobRequeued,
    JobStarted,
    Record,
)
from grms.site.model.state_tables import StateTables
from grms.site.runtime.executor_recovery import running, waiting
from grms.site.wire.convert import lrms_job
from grms.v1 import request_pb2
from lrms_sim.scheduling.disciplines import Fcfs
from tests.grms.site.conversation import settings

OFFER = OfferId(7, 1)
REQUEST = Request(4, 10.0)


def simulated(run_time: float, group: int = 0) -> bytes:
    """Returns what runs, as it is carried."""
    message = request_pb2.JobRequest()
    message.simulated.run_time_s = run_time
    message.simulated.user_group = group
    return message.SerializeToString()


def history(site: str, epoch: int, *records: Record) -> StateTables:
    """Returns what records make."""
    memory = StateTables(settings(name=site, epoch=epoch))
    for record in records:
        memory.apply(record)
    return memory


def machine_of(memory: StateTables) -> SteppedMachine:
    """Returns a machine of four processors that goes on from there."""
    return SteppedMachine.restored(
        4,
        Fcfs(),
        running=running(memory),
        waiting=waiting(memory),
        moment=memory.lrms_moment,
    )


def test_a_job_is_as_the_port_has_it() -> None:
    """Whose it is and what runs are said apart; what only a simulation reads too."""
    message = request_pb2.JobRequest()
    message.program.script = "#!/bin/sh\n"
    message.program.arguments.extend(["a b", "c"])
    message.program.environment["X"] = "1"
    job = lrms_job("k", REQUEST, message.SerializeToString(), user="ann")
    program = Program("#!/bin/sh\n", ("a b", "c"), {"X": "1"})
    assert job == LrmsJob("k", 4, 10.0, user="ann", program=program)
    guest = lrms_job("k", REQUEST, simulated(5.0, 2), partner="away")
    assert guest == LrmsJob("k", 4, 10.0, partner="away", simulated=SimulatedRun(5.0, 2))


def test_an_own_job_finds_its_name() -> None:
    """The one that its user knows, also in a second run; partners' jobs and reservations have no such name here."""
    message = request_pb2.JobRequest()
    message.program.script = "#!/bin/sh\n"
    plain = message.SerializeToString()
    message.program.environment["HANSE_ARRAY_JOB_ID"] = "kth-12"
    message.program.environment["HANSE_ARRAY_TASK_ID"] = "3"
    element = message.SerializeToString()

    def name(key: str, payload: bytes, user: str = "", partner: str = "") -> str | None:
        program = lrms_job(key, REQUEST, payload, user=user, partner=partner).program
        assert program is not None
        return program.environment.get("HANSE_JOB_ID")

    assert name("kth/1f/12", plain, user="ann") == "kth-12"
    assert name("kth/1f/12/2", plain, user="ann") == "kth-12"
    assert name("kth/1f/14", element, user="ann") == "kth-12_3"
    assert name("kth/1f/12", plain, partner="kth") is None
    assert name("kth/1f/12", plain) is None


@pytest.mark.parametrize(
    "payload",
    [b"\xff", simulated(-1.0), simulated(float("nan")), simulated(float("inf")), simulated(1.0, 6)],
)
def test_what_is_no_job_is_refused(payload: bytes) -> None:
    """The text names the job and what is wrong."""
    with pytest.raises(LrmsError, match=r"job k: .* (read|is)"):
        lrms_job("k", REQUEST, payload)


def test_only_an_own_users_job_runs_as_it_was_handed_in() -> None:
    """A partner that says how a job of its users is to run here is not listened to; its name it may say."""
    message = request_pb2.JobRequest()
    message.program.script, message.program.name = "#!/bin/sh\n", "mine"
    message.home.folder = "/users/ann"
    message.home.environment.append(b"A=\xff")
    message.home.options.append("--mem=1")
    payload = message.SerializeToString()
    own = lrms_job("k", REQUEST, payload, user="ann")
    assert (own.name, own.home) == ("mine", HomeRun("/users/ann", (b"A=\xff",), ("--mem=1",)))
    guest = lrms_job("k", REQUEST, payload, partner="far")
    assert (guest.name, guest.home) == ("mine", None)


def test_the_journal_gives_the_machine_back() -> None:
    """Jobs that run keep their starts, those that wait their order, those that ended are gone."""
    run, memory = simulated(5.0), history("home", 3)
    for record in (
        JobReceived(0.0, 1, "me", "k", "", REQUEST, run),
        JobKept(0.0, 1),
        JobStarted(0.0, 1, 0.0),
        JobReceived(1.0, 2, "me", "l", "", REQUEST, run),
        JobKept(1.0, 2),
        GuestAccepted(2.0, GuestRef("away", OFFER), 1, REQUEST, run),
        JobEnded(5.0, 1, Outcome.COMPLETED, 5.0, 5.0, ""),
        JobStarted(5.0, 2, 5.0),
    ):
        memory.apply(record)
    machine = machine_of(memory)
    assert machine.load_at(6.0) == LrmsLoad(6.0, 4, 0, 4)
    told = machine.poll(20.0)
    assert [type(event) for event in told] == [Started, Ended, Started, Ended]
    assert [event.key for event in told] == ["home/3/2"] * 2 + ["away/7/1"] * 2
    memory.apply(JobStarted(10.0, GuestRef("away", OFFER), 10.0))
    memory.apply(JobEnded(15.0, GuestRef("away", OFFER), Outcome.COMPLETED, 15.0, 5.0, ""))
    assert [job.key for job, _ in running(memory)] == ["home/3/2"]
    assert waiting(memory) == []


def test_a_job_that_was_requeued_waits() -> None:
    """Until it starts once more."""
    memory = history("home", 1)
    for record in (
        JobReceived(0.0, 1, "me", "k", "", REQUEST, simulated(5.0)),
        JobKept(0.0, 1),
        JobStarted(1.0, 1, 1.0),
        GuestAccepted(2.0, GuestRef("away", OFFER), 1, REQUEST, simulated(5.0)),
        JobStarted(3.0, GuestRef("away", OFFER), 3.0),
        JobRequeued(4.0, 1, "a node failed"),
        JobRequeued(5.0, GuestRef("away", OFFER), ""),
    ):
        memory.apply(record)
    assert [job.key for job in waiting(memory)] == ["home/1/1", "away/7/1"]
    assert (running(memory), memory.lrms_moment) == ([], 5.0)


def test_what_cannot_be_read_is_left_out() -> None:
    """It was refused when it came, and will be again."""
    memory = history("home", 1)
    memory.apply(JobReceived(0.0, 1, "me", "k", "", REQUEST, b"\xff"))
    memory.apply(JobKept(0.0, 1))
    assert waiting(memory) == []


def test_keys_follow_the_epoch_in_which_a_job_was_received() -> None:
    """A journal that has begun anew numbers anew."""
    memory = history("kth", 1)
    for number, epoch in ((1, 0), (2, 9)):
        if epoch:
            memory.apply(EpochBegun(float(number), epoch, "put back"))
        memory.apply(JobReceived(float(number), number, "ann", f"{number}", "", REQUEST, b""))
        memory.apply(JobKept(float(number), number))
    assert [job.key for job in waiting(memory)] == ["kth/1/1", "kth/9/2"]


def test_a_job_that_has_left_the_queue_is_not_there() -> None:
    """Nor one for which a place is held, before it is confirmed; one that comes home has another key."""
    run, memory = simulated(5.0), history("home", 3)
    for record in (
        JobReceived(0.0, 1, "me", "k", "", REQUEST, run),
        JobKept(0.0, 1),
        GuestAccepted(2.0, GuestRef("away", OFFER), 1, REQUEST, run),
        GuestReserved(2.0, GuestRef("away", OFFER)),
    ):
        memory.apply(record)
    assert [job.key for job in waiting(memory)] == ["home/3/1"]
    memory.apply(JobLeft(3.0, 1))
    memory.apply(GuestConfirmed(3.0, GuestRef("away", OFFER)))
    assert [job.key for job in waiting(memory)] == ["away/7/1"]
    memory.apply(JobKept(4.0, 1))
    assert [job.key for job in waiting(memory)] == ["away/7/1", "home/3/1/2"]


def test_a_place_that_is_given_back_was_never_a_job() -> None:
    """Nothing of it is left."""
    memory = history("home", 3)
    memory.apply(GuestAccepted(2.0, GuestRef("away", OFFER), 1, REQUEST, simulated(5.0)))
    memory.apply(GuestReserved(2.0, GuestRef("away", OFFER)))
    memory.apply(JobEnded(3.0, GuestRef("away", OFFER), Outcome.LOST, 3.0, 0.0, ""))
    assert waiting(memory) == []
