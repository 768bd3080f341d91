"""One turn: what was noted comes first, and what a job was before it is kept."""

from grms.site.model.commands import Append, Publish, ReplyJob
from grms.site.model.jobs import Request
from grms.site.model.records import JobKept, JobReceived
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.transaction import Transaction
from tests.grms.site.conversation import settings

RECEIVED = JobReceived(1.0, 1, "ann", "k", "", Request(1, 10.0), b"")


def test_records_come_first_and_all_at_once() -> None:
    """Whatever is done rests on them."""
    memory = StateTables(settings())
    transaction = Transaction(memory, 5, 1.0)
    assert transaction.commands() == []
    transaction.do(ReplyJob(5, "a-1"))
    assert transaction.commands() == [ReplyJob(5, "a-1")]
    transaction.note(RECEIVED)
    transaction.note(JobKept(1.0, 1))
    transaction.publish(memory.jobs[1])
    assert transaction.commands() == [
        Append(5, (RECEIVED, JobKept(1.0, 1))),
        ReplyJob(5, "a-1"),
        Publish(5, 1),
    ]


def test_jobs_that_change_together_are_told_of_at_once() -> None:
    """With each of their numbers; of none nothing is told."""
    transaction = Transaction(StateTables(settings()), 5, 1.0)
    transaction.publish_all([])
    assert transaction.commands() == []
    transaction.publish_all([3, 4, 6])
    assert transaction.commands() == [Publish(5, 3, (4, 6))]
