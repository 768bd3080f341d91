"""One turn: what was noted comes first, and what a job was before it is kept."""

from grms.site.core.turn import Turn
from grms.site.facts.commands import Append, Publish, ReplyJob
from grms.site.facts.jobs import Request
from grms.site.facts.memory import Memory
from grms.site.facts.records import (
    JobKept,
    JobReceived,
)
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
