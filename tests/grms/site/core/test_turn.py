"""One turn: what was noted comes first, and what a job was before it is kept."""

from grms.site.core.turn import Turn
from grms.site.facts.commands import Append, Publish, ReplyJob
from grms.site.facts.jobs import Request
from grms.site.facts.lifecycle import JobState
from grms.site.facts.memory import Memory
from grms.site.facts.records import (
    JobCancelRequested,
    JobKept,
    JobReceived,
    JobStarted,
    PartnerFaulted,
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


def test_a_job_is_kept_as_it_was_before_the_first_record() -> None:
    """None for one that is new; records of no job keep nothing."""
    memory = Memory(settings())
    turn = Turn(memory, 5, 1.0)
    turn.note(RECEIVED)
    turn.note(JobKept(1.0, 1))
    turn.note(PartnerFaulted(1.0, "b", "it says 7"))
    assert turn.before == {1: None}
    turn = Turn(memory, 6, 2.0)
    turn.note(PartnerFaulted(2.0, "b", "it says 7"))
    assert turn.before == {}
    turn = Turn(memory, 7, 3.0)
    turn.note(JobCancelRequested(3.0, 1))
    turn.note(JobStarted(3.0, 1, 3.0))
    before = turn.before[1]
    assert before is not None
    assert (before.state, before.cancel_requested) == (JobState.SUBMITTING, False)
    assert memory.jobs[1].state is JobState.RUNNING
