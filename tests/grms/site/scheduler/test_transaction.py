"""One turn: what was noted comes first, and what a job was before it is kept."""

from grms.site.model.commands import Append, Publish, ReplyJob
from grms.site.model.jobs import Request
from grms.site.model.records import JobKept, JobReceived
from grms.site.model.state_tables import Memory
from grms.site.scheduler.transaction import Turn
from tests.grms.site.conversation import settings

RECEIVED = JobReceived(1.0, 1, "ann", "k", "", Request(1, 10.0), b"")


def test_records_come_first_and_all_at_once() -> None:
    """Whatever is done rests on them."""
    memory = Memory(settings())
    turn = Turn(memory, 5, 1.0)
    assert turn.commands() == []
    turn.do(ReplyJob(5, "a-1"))
    assert turn.commands() == [ReplyJob(5, "a-1")]
    turn.note(RECEIVED)
    turn.note(JobKept(1.0, 1))
    turn.publish(memory.jobs[1])
    assert turn.commands() == [
        Append(5, (RECEIVED, JobKept(1.0, 1))),
        ReplyJob(5, "a-1"),
        Publish(5, 1),
    ]
