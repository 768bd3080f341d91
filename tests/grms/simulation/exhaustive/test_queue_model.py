"""All that can happen above a batch system in trouble, within small bounds; and each careless rule is found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import structlog

from grms.lrms.base import LrmsEvent, LrmsJob, LrmsRefusedError, LrmsSnapshot
from grms.lrms.batch import adapter
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.job_tracker import Act, Findings, JobTracker, Order
from grms.lrms.batch.kept_places import KeptPlaces
from grms.lrms.batch.launcher import check_program
from grms.lrms.batch.queue_snapshot import Evidence, JobRow, Question, QueueSnapshot
from grms.lrms.batch.reconciler import Reconciler
from grms.lrms.batch.submissions import Submissions
from grms.lrms.batch.tracked_job import TrackedJob, Want
from grms.lrms.job_notes import KeptPlace
from grms.simulation.exhaustive.choices import explore_model, replay_model
from grms.simulation.exhaustive.queue_arrays import ArraySystem
from grms.simulation.exhaustive.queue_bounds import SMALL_QUEUES
from grms.simulation.exhaustive.queue_model import QueueBound, QueueModel, queue_bound
from grms.simulation.exhaustive.queue_steps import Parts
from grms.site.runtime.executor_queue import Call, LrmsQueue
from tests.examples import THOROUGH

BY_NAME = {one.name: one for one in SMALL_QUEUES}


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    # The adapter writes to the log what the batch system has not kept.
    structlog.configure(processors=[_dropped])
    yield
    structlog.reset_defaults()


def _dropped(*_: object) -> dict[str, object]:
    raise structlog.DropEvent


@pytest.mark.parametrize("name", list(BY_NAME))
def test_nothing_that_must_not_be_is_found(name: str) -> None:
    """Every state within the bound is as it has to be, and leads to the end."""
    found = explore_model(QueueModel(BY_NAME[name]))
    assert not found.violation, "\n".join([found.violation, *found.story])
    assert found.complete
    assert found.stuck == 0
    assert found.ends > 0


def with_(
    part: type[JobTracker | Reconciler | KeptPlaces | Submissions],
) -> Callable[..., BatchLrms]:
    """Returns what makes an adapter with such a tracker, reconciler, keeper of places, or submissions."""
    parts = (JobTracker, Reconciler, KeptPlaces, Submissions)
    (name,) = (one.__name__ for one in parts if issubclass(part, one))

    def lrms(*args: Any, **more: Any) -> BatchLrms:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(adapter, name, part)
            return BatchLrms(*args, **more)

    return lrms


class LiftsAnyHold(Reconciler):
    """Releases what anybody holds."""

    async def _ours_to_lift(self, order: Order) -> bool:
        job = self._tracker.job(order.key)
        return job is not None


class PreparesLast(BatchLrms):
    """Writes what it knows of a job when the batch system has it."""

    async def submit(self, job: LrmsJob, *, held: bool = False) -> None:
        """See `BatchLrms.submit`."""
        del held
        marks = await self._disk.do(self._spool.marks, job.key)
        if await self._had_before(job.key, marks):
            return
        self._tracker.intended(job.key, Want.RUN)
        number = await self._system.submit(job.key, job, None)  # type: ignore[arg-type]  # no folder yet
        await self._prepared(job, check_program(job.program), run=True)
        self._tracker.acknowledged(job.key, number, self._clock())


class TakesSilenceForNo(JobTracker):
    """Takes a job for unknown that the batch system does not say anything of."""

    def conclude(self, question: Question, evidence: Evidence, at: float) -> list[LrmsEvent]:
        """See `JobTracker.conclude`."""
        if question.row is None and evidence.known is None:
            evidence = replace(evidence, known=False)
        return super().conclude(question, evidence, at)


class NeedsNoEvidence(JobTracker):
    """Takes a job for lost that is in no table, and of which there is no end."""

    def conclude(self, question: Question, evidence: Evidence, at: float) -> list[LrmsEvent]:
        """See `JobTracker.conclude`."""
        if question.row is None:
            evidence = replace(evidence, known=False, released=False, begun=False)
            job = self._jobs[question.key]
            job.released_at, job.maybe_released, job.left_hold, job.start_time = (
                *(None, False, False),
                None,
            )
        return super().conclude(question, evidence, at)


class WaitsForNoLimit(JobTracker):
    """Takes what a controller has forgotten for over at once."""

    def _is_over(self, job: TrackedJob, evidence: Evidence, at: float) -> bool:
        del job, evidence, at
        return True


class BelievesTheSecondRun(JobTracker):
    """Takes the end of a run that skipped the script for the job's."""

    def conclude(self, question: Question, evidence: Evidence, at: float) -> list[LrmsEvent]:
        """See `JobTracker.conclude`."""
        if question.row is not None:
            evidence = replace(evidence, begun=False)
        return super().conclude(question, evidence, at)


class BelievesTheLimit(JobTracker):
    """Takes a job for ended at its limit whose script says otherwise."""

    def conclude(self, question: Question, evidence: Evidence, at: float) -> list[LrmsEvent]:
        """See `JobTracker.conclude`."""
        if question.row is not None:
            evidence = replace(evidence, script=None)
        return super().conclude(question, evidence, at)


class ReleasesCopies(JobTracker):
    """Lets a second copy of a job run, without a look at the first."""

    def _copy(self, key: str, copy: JobRow, findings: Findings) -> None:
        # Not as one that is certain: that is left where the job was released before.
        findings.orders.append(Order(Act.ASK, key, copy))


class RepeatsNothing(LrmsQueue):
    """Makes no call a second time."""

    def again(self, call: Call) -> None:
        """See `LrmsQueue.again`."""
        self._leave(call.key)


class TakesAnyRow(JobTracker):
    """Takes what became of a copy for what became of the job, where a table does not show that."""

    def _is_hidden(self, key: str, rows: list[JobRow]) -> bool:
        del key, rows
        return False


class CancelsWhatHasCompleted(JobTracker):
    """Takes a job that is to end, and that the batch system does not know, for cancelled, whatever its script has done."""

    def conclude(self, question: Question, evidence: Evidence, at: float) -> list[LrmsEvent]:
        """See `JobTracker.conclude`."""
        job = self._jobs[question.key]
        if evidence.known is False and job.want is Want.GONE:
            return self._cancelled(job, at, "cancelled, and gone since")
        return super().conclude(question, evidence, at)


class SeesNoMarker(JobTracker):
    """Takes a job for missing that a table shows under its marker's name."""

    def _is_shown_aside(self, job: TrackedJob, row: JobRow | None) -> bool:
        del job, row
        return False


class NotesLast(KeptPlaces):
    """Notes that a job leaves when its launcher waits already."""

    async def leave(self, key: str, row: JobRow | None) -> bool:
        """See `KeptPlaces.leave`."""
        if row is not None:
            await self._disk.do(self._spool.ask_aside, key)
        return await super().leave(key, row)


class RenamesFirst(KeptPlaces):
    """Notes that a job comes back when its marker has its name already."""

    async def bring_back(self, key: str, name: str, place: KeptPlace) -> JobRow | None:
        """See `KeptPlaces.bring_back`."""
        row = self.marker(key, (await self._poller.new()).table)
        if row is None:
            return await super().bring_back(key, name, place)
        await self._system.rename(row, name)
        await self.note(key, replace(place, number=row.number, back=key))
        return replace(row, name=name)


class NeverCompares(KeptPlaces):
    """Does nothing again that a crash has undone."""

    async def _look(self, table: QueueSnapshot, orders: Sequence[Order]) -> list[Order]:
        del table
        return list(orders)


class BelievesAnswers(KeptPlaces):
    """Forgets a place as soon as the batch system has agreed that the job starts."""

    async def _look_back(self, key: str, place: KeptPlace, table: QueueSnapshot) -> None:
        del place, table
        await self.forget(key)


class LeavesUnnoted(KeptPlaces):
    """Leaves markers alone of which it has no note."""

    async def _look_unnoted(self, key: str, row: JobRow) -> None:
        del key, row


class StartsFirst(KeptPlaces):
    """Lets a job that has come back start before its launcher may begin."""

    async def start(self, key: str, row: JobRow, place: KeptPlace) -> None:
        """See `KeptPlaces.start`."""
        await self._system.start_now(row)
        await super().start(key, row, place)


class GivesNoneUp(KeptPlaces):
    """Leaves the marker of a job that has ended elsewhere."""

    async def end(self, key: str, *, only_away: bool = False) -> bool:
        """See `KeptPlaces.end`."""
        del key, only_away
        return False


class GivesUpWhatCameBack(KeptPlaces):
    """Takes a job that has come back for a marker again, where a crash has undone that, and gives it up for its next leaving."""

    async def end(self, key: str, *, only_away: bool = False) -> bool:
        """See `KeptPlaces.end`."""
        del only_away
        return await super().end(key)


class KnowsNoEarlierName(KeptPlaces):
    """Does not know a job that has come back under the name that it had before it left."""

    async def _known(self, table: QueueSnapshot) -> QueueSnapshot:
        return table


class EndsUnparted(ArraySystem):
    """Ends an element that is not parted with a filter, by which Slurm ends all of them."""

    async def cancel(self, row: JobRow) -> bool:
        """See `Slurm.cancel`."""
        await self._ask("scancel", "--state=PENDING", row.number)
        return True


class MissesNoElement(ArraySystem):
    """Takes an element that is not in its array for lost."""

    async def _left_array(self, question: Question) -> None:
        """See `Slurm._left_array`."""
        del question


class RefusesAll(Submissions):
    """Takes the refusal of an array for one of each job."""

    async def _submitted_each(self, those: list[Any]) -> None:
        for each in those:
            each.number.set_exception(LrmsRefusedError("all of them were refused"))


class TellsNoPlace(BatchLrms):
    """Tells nothing of a place where the queue shows how the job has ended that has left."""

    async def snapshot(self) -> LrmsSnapshot:
        """See `BatchLrms.snapshot`."""
        told = await super().snapshot()
        rows = (await self._poller.last()).table.rows
        return replace(told, jobs=dict(told.jobs) | dict(self._tracker.records(rows)))


def leaving(**faults: Any) -> QueueBound:
    """Returns a bound in which a job stays at home at first, and leaves the queue in a round."""
    return queue_bound("leaves", places=True, decline=1, round=1, **faults)


def away(**faults: Any) -> QueueBound:
    """Returns a bound in which a partner takes a job at once."""
    return queue_bound("away", places=True, **faults)


def sent_home(**faults: Any) -> QueueBound:
    """Returns a bound in which a partner may send a job home."""
    return queue_bound("sent home", places=True, send_home=1, **faults)


def array(**faults: Any) -> QueueBound:
    """Returns a bound in which two jobs come as an array."""
    return queue_bound("array", jobs=2, arrays=True, **faults)


ANY_ROW = queue_bound("any row", late=1, partial=1)
FORGETS = queue_bound("forgets", undo=1)
LATE = queue_bound("late", late=1)
HIDDEN = queue_bound("hidden", partial=3)
SILENT = queue_bound("silent", partial=4)

CARELESS = [
    ("no settling", Parts(settle_s=0.0), FORGETS, "ended as unknown", 11),
    ("no fence", Parts(skips=False), FORGETS, "has begun 2 times", 11),
    ("LiftsAnyHold", Parts(lrms=with_(LiftsAnyHold)), queue_bound("held", hold=1), "holds job", 8),
    ("PreparesLast", Parts(lrms=PreparesLast), LATE, "ended as failed", 9),
    ("TakesSilenceForNo", Parts(lrms=with_(TakesSilenceForNo)), SILENT, "ended as unknown", 10),
    ("NeedsNoEvidence", Parts(lrms=with_(NeedsNoEvidence)), HIDDEN, "its script runs", 10),
    ("WaitsForNoLimit", Parts(lrms=with_(WaitsForNoLimit)), FORGETS, "its script runs", 13),
    ("SecondRun", Parts(lrms=with_(BelievesTheSecondRun)), FORGETS, "its script runs", 13),
    ("BelievesTheLimit", Parts(lrms=with_(BelievesTheLimit)), FORGETS, "ended as timeout", 14),
    ("ReleasesCopies", Parts(lrms=with_(ReleasesCopies)), LATE, "was started 2 times", 12),
    ("AnyRow", Parts(lrms=with_(TakesAnyRow)), ANY_ROW, "ended as cancelled", 10),
    (
        "CancelsWhatHasCompleted",
        Parts(lrms=with_(CancelsWhatHasCompleted)),
        queue_bound("cancelled", cancel=1),
        "has run to its end",
        12,
    ),
    ("RepeatsNothing", Parts(queue=RepeatsNothing), LATE, "lead to no end", 4),
    ("no look", Parts(looks=False), away(start_by_hand=1), "and the partner has it", 8),
    ("no wait", Parts(waits=False), leaving(race=1), "ended as failed", 9),
    ("SeesNoMarker", Parts(lrms=with_(SeesNoMarker)), leaving(partial=1), "ended as unknown", 10),
    ("NeverCompares", Parts(lrms=with_(NeverCompares)), away(undo=1), "lead to no end", 9),
    ("LeavesUnnoted", Parts(lrms=with_(LeavesUnnoted)), away(late=1), "lead to no end", 7),
    ("StartsFirst", Parts(lrms=with_(StartsFirst)), sent_home(crash=1), "ended as failed", 13),
    ("GivesNoneUp", Parts(lrms=with_(GivesNoneUp)), away(), "lead to no end", 0),
    ("EndsUnparted", Parts(slurm=EndsUnparted), array(cancel=1), "nobody has wanted that", 4),
    ("MissesNoElement", Parts(slurm=MissesNoElement), array(end_by_hand=1), "was started", 9),
    ("RefusesAll", Parts(lrms=with_(RefusesAll)), array(deny=1), "nobody has wanted that", 1),
    (
        "GivesUpWhatCameBack",
        Parts(lrms=with_(GivesUpWhatCameBack)),
        sent_home(undo=1, round=1),
        "ended as unknown",
        16,
    ),
]
"""What drives the batch system, within which bound it is found, as what, after how many steps."""

if THOROUGH:  # some seconds each
    CARELESS += [
        ("BelievesAnswers", Parts(lrms=with_(BelievesAnswers)), sent_home(undo=1), "to no end", 10),
        ("RenamesFirst", Parts(lrms=with_(RenamesFirst)), sent_home(crash=1), "lead to no end", 7),
        ("no look, forgotten", Parts(looks=False), leaving(undo=1), "and the partner has it", 12),
        ("NotesLast", Parts(lrms=with_(NotesLast)), leaving(crash=1), "lead to no end", 9),
        ("TellsNoPlace", Parts(lrms=TellsNoPlace), leaving(crash=1), "lead to no end", 12),
        (
            "KnowsNoEarlierName",
            Parts(lrms=with_(KnowsNoEarlierName)),
            leaving(send_home=1, undo=1),
            "nobody has wanted that",
            18,
        ),
    ]


@pytest.mark.parametrize(
    ("parts", "within", "text", "steps"),
    [each[1:] for each in CARELESS],
    ids=[each[0] for each in CARELESS],
)
def test_a_careless_rule_is_found_with_a_shortest_story(
    parts: Parts, within: QueueBound, text: str, steps: int
) -> None:
    """The story is told step by step, and taking its steps again leads to the same."""
    within = replace(within, parts=parts)
    found = explore_model(QueueModel(within))
    assert text in found.violation
    assert len(found.story) == steps
    if "to no end" not in text:
        assert text in replay_model(QueueModel(within), found.labels)
