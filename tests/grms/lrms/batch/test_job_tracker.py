"""Looks in a row, and what follows from their differences."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.base import (
    Accepted,
    Appeared,
    Ended,
    Hindered,
    Lost,
    LrmsEnd,
    LrmsEvent,
    LrmsPhase,
    Paused,
    Requeued,
    SeenAgain,
    Started,
    Unseen,
    Vanished,
)
from grms.lrms.batch.job_tracker import (
    GRACE_S,
    MISSING_LOOKS,
    PAUSE_LOOKS,
    QUESTIONS_MOST,
    REFUSED_S,
    STEP_S,
    Act,
    JobTracker,
)
from grms.lrms.batch.queue_snapshot import Ending, Evidence, JobRow, Question, QueueSnapshot
from grms.lrms.batch.tracked_job import Want
from grms.lrms.exit_status import FENCED, UNBEGUN, ScriptEnd
from grms.lrms.immediate_start import QueuePlan
from grms.util.outcomes import Outcome

KEY = "A/1/1"
NAME = "hanse:S:A/1/1"
HELD, WAITING, RUNNING, ENDED = (
    LrmsPhase.HELD,
    LrmsPhase.WAITING,
    LrmsPhase.RUNNING,
    LrmsPhase.ENDED,
)
COMPLETED = LrmsEnd(Outcome.COMPLETED, 50.0, 10.0, 0)
SETTLE_S = 6.0
LIMIT_S = 60.0


def row(phase: LrmsPhase, number: str = "7", **more: object) -> JobRow:
    start = 40.0 if phase in {RUNNING, ENDED, LrmsPhase.SUSPENDED, LrmsPhase.COMPLETING} else None
    end = COMPLETED if phase is ENDED else None
    values = {"start_time": start, "end": end, "can_start": phase is WAITING} | more
    return JobRow(NAME, number, 1.0, phase, 2, **values)  # type: ignore[arg-type]  # by name


class Looks:
    """A ledger, and looks one second after the other.

    Attributes:
        known: what the batch system says where it is asked for the one job.
    """

    def __init__(
        self,
        *,
        records_s: float = 0.0,
        forgets: bool = True,
        fences: bool = False,
        site: str = "S",
    ) -> None:
        self.now = 100.0
        self.tracker = JobTracker(
            lambda key: "hanse:S:" + key,
            lambda name: name.removeprefix("hanse:S:") if name.startswith("hanse:S:") else None,
            is_marker=lambda name, key: name == f"away:{key}",
            settle_s=SETTLE_S,
            records_s=records_s,
            forgets=forgets,
            fences=fences,
            site=site,
        )
        self.orders: list[tuple[Act, str]] = []
        self.ending: Ending | None = None
        self.script: ScriptEnd | None = None
        self.written_at: float | None = None
        self.known: bool | None = None
        self.begun = False
        self.begun_at: float | None = None
        self.evicted = False
        self.asked = 0

    def submit(self, want: Want = Want.RUN, number: str = "7") -> None:
        """Submits the job."""
        self.tracker.intended(KEY, want)
        self.tracker.acknowledged(KEY, number, self.now)

    def table(self, *rows: JobRow) -> QueueSnapshot:
        """Returns what a look shows now."""
        return QueueSnapshot(self.now - 0.1, self.now, 8, 8, 3, 5, rows)

    def look(self, *rows: JobRow, after: float = 1.0) -> list[LrmsEvent]:
        """Looks once more, and returns what is told of it."""
        self.now += after
        findings = self.tracker.see(self.table(*rows))
        self.orders = [(order.act, order.row.number) for order in findings.orders]
        events = findings.events
        for question in findings.questions:
            self.asked += 1
            events += self.tracker.conclude(question, self.evidence(question), self.now)
        return events

    def evidence(self, question: Question | None = None) -> Evidence:
        """Returns what is known beside the table."""
        asked = question is None or question.row is None
        return Evidence(
            self.ending,
            self.known if asked else None,
            self.script,
            self.begun or self.script is not None,
            self.begun_at,
            limit_s=LIMIT_S,
            evicted=self.evicted,
            written_at=self.written_at,
        )

    def many(self, count: int, *rows: JobRow, after: float = 1.0) -> list[LrmsEvent]:
        """Looks so often, and returns what is told."""
        return [event for _ in range(count) for event in self.look(*rows, after=after)]

    def release(self) -> None:
        """Does what was ordered."""
        assert self.orders == [(Act.RELEASE, "7")]
        self.tracker.released(KEY, self.now)


def released(**more: Any) -> Looks:
    """Returns looks at a job that was submitted, seen as held, and released."""
    looks = Looks(**more)
    looks.submit()
    looks.look(row(HELD), after=SETTLE_S)
    looks.release()
    return looks


def running(**more: Any) -> Looks:
    """Returns looks at a job that runs, a guest unless `site` is its home."""
    looks = released(**more)
    looks.look(row(WAITING))
    looks.look(row(RUNNING))
    return looks


def test_a_job_is_released_when_it_is_safe_and_seen() -> None:
    """Not before, and not one that waits for a release by the site."""
    looks = Looks()
    looks.submit()
    assert looks.look(row(HELD)) == [Accepted(KEY)]
    assert looks.orders == []
    assert looks.look(row(HELD), after=SETTLE_S) == []
    looks.release()
    assert looks.look(row(WAITING)) == []
    assert looks.orders == []

    kept = Looks()
    kept.submit(Want.HELD)
    kept.look(row(HELD), after=SETTLE_S)
    assert kept.orders == []


def test_a_life_is_told_once() -> None:
    """Start and end, each once, in order."""
    looks = Looks()
    looks.submit()
    events = looks.look(row(HELD), after=SETTLE_S)
    looks.release()
    for phase in (WAITING, RUNNING, RUNNING, LrmsPhase.COMPLETING, ENDED, ENDED):
        events += looks.look(row(phase))
    started, completing, ended = events[1:]
    assert events[0] == Accepted(KEY)
    assert (started, ended) == (Started(KEY, 40.0), Ended(KEY, COMPLETED))
    assert isinstance(completing, Paused)
    assert completing.phase is LrmsPhase.COMPLETING
    assert looks.look() == []


@pytest.mark.parametrize("phase", [HELD, ENDED])
def test_a_copy_alone_in_a_table_says_nothing_of_the_job(phase: LrmsPhase) -> None:
    """A second copy was cancelled, or is to be; a table without the job itself is no evidence of its end or its hold."""
    looks = Looks()
    looks.submit()
    looks.look(row(HELD), row(HELD, "8"), after=SETTLE_S)
    assert looks.orders == [(Act.CANCEL, "8"), (Act.RELEASE, "7")]
    looks.tracker.released(KEY, looks.now)
    looks.known = True
    cancelled = LrmsEnd(Outcome.CANCELLED, 50.0, 0.0)
    copy = row(phase, "8", start_time=None, end=cancelled if phase is ENDED else None)
    assert looks.many(2, copy) == [
        Unseen(KEY, "its table does not show it; asked for it alone, the batch system has it")
    ]
    assert looks.orders == []
    assert looks.look(row(RUNNING), copy) == [SeenAgain(KEY), Started(KEY, 40.0)]


def test_a_pause_is_told_when_it_begins_and_ends() -> None:
    """Each change once; a job that is started anew runs."""
    looks = running()
    before = RUNNING
    for phase in (LrmsPhase.SUSPENDED, LrmsPhase.SUSPENDED, RUNNING, RUNNING, LrmsPhase.SUSPENDED):
        expected = [] if phase is before else [phase]
        before = phase
        told = looks.look(row(phase))
        assert [event.phase for event in told if isinstance(event, Paused)] == expected
        assert len(told) == len(expected)
    assert [type(event) for event in looks.look(row(WAITING))] == [Requeued]
    assert [type(event) for event in looks.look(row(RUNNING))] == [Started]


def test_of_a_short_job_the_start_is_told_too() -> None:
    """It was over at the first look after its release."""
    looks = released()
    assert looks.look(row(ENDED)) == [Started(KEY, 40.0), Ended(KEY, COMPLETED)]


def test_an_end_that_was_forgotten_is_the_scripts() -> None:
    """The batch system ends the job at its limit; its folder says that it had ended long before. It is counted."""
    late = LrmsEnd(Outcome.TIMEOUT, 140.0, 100.0, reason="TimeLimit")
    for recorded in (False, True):
        looks = running()
        looks.script = ScriptEnd(3, 20.0)
        looks.ending = Ending(40.0, late) if recorded else None
        (event,) = looks.look(row(ENDED, end=late, exact=False))
        assert isinstance(event, Ended)
        assert (event.end.outcome, event.end.exit_code) == (Outcome.FAILED, 3)
        assert (event.end.run_time, event.end.end_time) == (20.0, 60.0)
        assert (looks.tracker.anomalies.end_forgotten, looks.tracker.slipped) == (
            1,
            [("end_forgotten", KEY)],
        )
    for script in (None, ScriptEnd(0, 61.0)):
        looks = running()
        looks.script, looks.begun = script, True
        assert looks.look(row(ENDED, end=late, exact=False)) == [Ended(KEY, late)]
        assert looks.tracker.anomalies.end_forgotten == 0


def test_of_a_job_that_is_gone_its_folder_knows_the_end() -> None:
    """No record has it, and yet nobody need say that the end is unknown; nothing was promised and not kept."""
    looks = running()
    looks.script = ScriptEnd(0, 20.0)
    (event,) = looks.many(MISSING_LOOKS)
    assert isinstance(event, Ended)
    assert (event.end.outcome, event.end.exit_code, event.end.run_time) == (
        Outcome.COMPLETED,
        0,
        20.0,
    )
    assert looks.tracker.anomalies.end_forgotten == 0
    for code, outcome in (
        (0, Outcome.COMPLETED),  # whoever has cancelled it came too late
        (1, Outcome.CANCELLED),
        (143, Outcome.CANCELLED),
    ):
        looks = running()
        looks.tracker.job(KEY).want = Want.GONE  # type: ignore[union-attr]  # it is there
        looks.script = ScriptEnd(code, 20.0)
        events = [event for _ in range(MISSING_LOOKS) for event in looks.look()]
        assert [event.end.outcome for event in events if isinstance(event, Ended)] == [outcome]


@pytest.mark.parametrize(("want", "reason"), [(Want.RUN, UNBEGUN), (Want.GONE, "")])
def test_a_cancel_before_the_script_says_what_may_be_behind_it(want: Want, reason: str) -> None:
    """Slurm cancels a job whose prolog fails, without a word; a cancel of the site's own needs none."""
    looks = Looks()
    looks.submit(want)
    end = LrmsEnd(Outcome.CANCELLED, 50.0, 0.0)
    told = looks.look(row(ENDED, start_time=50.0, end=end))
    assert told[-1] == Ended(KEY, replace(end, reason=reason))


def test_one_that_never_started_has_no_start() -> None:
    """A waiting job that somebody has cancelled."""
    looks = Looks()
    looks.submit()
    end = LrmsEnd(Outcome.CANCELLED, 50.0, 0.0)
    assert looks.look(row(ENDED, start_time=None, end=end)) == [Accepted(KEY), Ended(KEY, end)]


@pytest.mark.parametrize("noted", [False, True])
def test_a_guest_that_was_ended_in_its_first_second_is_not_done(*, noted: bool) -> None:
    """Nor is one whose script ends well on SIGTERM: as the batch system counts, it looks as if it had never started."""
    looks = released(fences=True)
    looks.look(row(RUNNING))
    job = looks.tracker.job(KEY)
    assert job is not None
    job.evicted, looks.evicted = not noted, noted  # by this process, or by one before it
    looks.script = ScriptEnd(0, 0.0)
    end = LrmsEnd(Outcome.CANCELLED, 40.0, 0.0)
    (ended,) = looks.look(row(ENDED, end=end))
    assert isinstance(ended, Ended)
    assert (ended.end.outcome, ended.end.exit_code) == (Outcome.PREEMPTED, None)
    assert looks.tracker.anomalies.end_forgotten == 0


def test_a_guest_that_was_ended_and_of_which_no_record_tells() -> None:
    """A batch system that forgets nothing and does not have it has ended it, as the folder says; one that forgets may run it."""
    for forgets in (False, True):
        looks = running(forgets=forgets)
        began = looks.tracker.job(KEY)
        assert began is not None
        assert began.start_time is not None
        looks.evicted, looks.written_at = True, began.start_time + 5.0
        events = looks.many(5)  # it is not said whether it is there
        assert [type(event) for event in events] == [Unseen]
        looks.known = False
        events = looks.many(5)
        ends = [event.end for event in events if isinstance(event, Ended)]
        assert [(end.outcome, end.kept) for end in ends] == [(Outcome.PREEMPTED, 5.0)] * (
            not forgets
        )
        assert looks.many(5) == []  # once


@pytest.mark.parametrize("exact", [True, False])
def test_a_guest_that_is_ended_for_another_job_has_kept_what_it_has_written(exact: bool) -> None:
    """Its folder is asked, also where the batch system says all else."""
    looks = running()
    job = looks.tracker.job(KEY)
    assert job is not None
    assert job.start_time is not None
    looks.written_at = job.start_time + 5.0
    end = LrmsEnd(Outcome.PREEMPTED, job.start_time + 8.0, 8.0)
    (ended,) = looks.look(row(ENDED, start_time=job.start_time, end=end, exact=exact))
    assert ended == Ended(KEY, replace(end, kept=5.0))


def test_a_requeue_is_told_and_the_next_start() -> None:
    """Also where the wait between two runs was not seen."""
    looks = running()
    assert looks.look(row(WAITING, reason="BeginTime")) == [Requeued(KEY, "BeginTime")]
    assert looks.look(row(RUNNING, start_time=60.0)) == [Started(KEY, 60.0)]
    events = looks.look(row(RUNNING, start_time=70.0))
    assert events == [Requeued(KEY, "it was started anew"), Started(KEY, 70.0)]
    assert looks.tracker.anomalies.run_again == 1


def test_what_is_gone_while_held_was_lost_and_can_be_submitted_again() -> None:
    """It has certainly not started, and the batch system itself does not know it."""
    looks = Looks()
    looks.known = False
    looks.submit()
    looks.look(row(HELD))
    assert looks.look() == []
    (lost,) = looks.look()
    assert isinstance(lost, Lost)
    assert looks.tracker.job(KEY) is None
    looks.submit(number="8")
    assert looks.look(row(HELD, "8")) == [Accepted(KEY)]


def test_what_no_look_has_shown_is_lost_likewise() -> None:
    """The crash came before the first look."""
    looks = Looks()
    looks.known = False
    looks.submit()
    events = [event for _ in range(MISSING_LOOKS) for event in looks.look()]
    assert [type(event) for event in events] == [Lost]


def test_what_is_gone_after_its_release_is_not_repeated() -> None:
    """Nobody can say that it did not run; that it is over is said when it cannot run any more."""
    looks = Looks()
    looks.known = False
    looks.submit()
    looks.look(row(HELD), after=SETTLE_S)
    looks.release()
    looks.look(row(WAITING))
    (unseen,) = looks.many(MISSING_LOOKS)
    assert isinstance(unseen, Unseen)
    began = looks.now - 1.0
    while looks.now - began < LIMIT_S + GRACE_S - 1.0:
        assert looks.look() == []
    events = looks.many(PAUSE_LOOKS)
    assert [type(event) for event in events] == [Vanished]
    assert looks.tracker.job(KEY) is not None


def test_records_say_how_what_is_gone_has_ended() -> None:
    """With its start, where that was not seen."""
    looks = released()
    looks.ending = Ending(45.0, COMPLETED)
    events = [event for _ in range(MISSING_LOOKS) for event in looks.look()]
    assert events == [Started(KEY, 45.0), Ended(KEY, COMPLETED)]


def test_records_are_waited_for() -> None:
    """Where they are written late."""
    looks = Looks(records_s=10.0)
    looks.known = False
    looks.submit()
    looks.look(row(HELD))
    assert [event for _ in range(8) for event in looks.look()] == []
    assert [type(event) for event in looks.look(after=5.0)] == [Lost]


def test_a_look_that_began_before_the_answer_says_nothing() -> None:
    """A submission that was acknowledged while the table was read need not be in it."""
    looks = Looks()
    for _ in range(MISSING_LOOKS + 1):
        looks.now += 1.0
        looks.submit()
        findings = looks.tracker.see(looks.table())
        assert (findings.questions, findings.events) == ([], [])


def test_one_whose_answer_never_came_is_found() -> None:
    """It becomes the job it was to be."""
    looks = Looks()
    looks.tracker.intended(KEY, Want.RUN)
    assert looks.look() == []
    assert looks.look(row(HELD)) == [Accepted(KEY)]
    job = looks.tracker.job(KEY)
    assert job is not None
    assert job.number == "7"


def test_a_second_copy_is_cancelled() -> None:
    """The one that came late; never the one that runs."""
    looks = Looks()
    looks.submit()
    looks.look(row(HELD), row(HELD, "9"))
    assert looks.orders == [(Act.CANCEL, "9")]
    looks = running()
    looks.look(row(HELD, "3"), row(RUNNING))
    assert looks.orders == [(Act.CANCEL, "3")]
    assert (looks.tracker.anomalies.copied, looks.tracker.anomalies.run_again) == (1, 0)


def test_a_copy_of_one_that_has_run_is_cancelled() -> None:
    """It does not run once more."""
    looks = running()
    assert looks.look(row(ENDED), row(HELD, "9")) == [Ended(KEY, COMPLETED)]
    assert looks.orders == [(Act.CANCEL, "9")]


def test_a_release_that_was_undone_is_asked_about() -> None:
    """It may be somebody else's hold; then it stays until that is gone."""
    looks = released()
    looks.look(row(WAITING))
    looks.look(row(HELD))
    assert looks.orders == [(Act.ASK, "7")]
    looks.tracker.hold_stays(KEY)
    looks.look(row(HELD))
    assert looks.orders == []
    looks.look(row(WAITING))
    looks.look(row(HELD))
    assert looks.orders == [(Act.ASK, "7")]
    looks.tracker.released(KEY, looks.now)
    assert looks.tracker.anomalies.release_undone == 1


def test_a_look_that_began_before_a_release_does_not_undo_it() -> None:
    """It still shows the hold."""
    looks = Looks()
    looks.submit()
    looks.look(row(HELD), after=SETTLE_S)
    looks.tracker.released(KEY, looks.now + 1.0)
    looks.look(row(HELD))
    assert looks.orders == []


def test_a_cancel_is_repeated_until_it_holds() -> None:
    """Of a job that is still there, and of one that is back after it had ended."""
    looks = running()
    job = looks.tracker.job(KEY)
    assert job is not None
    job.want = Want.GONE
    looks.look(row(RUNNING))
    assert looks.orders == [(Act.CANCEL, "7")]
    end = LrmsEnd(Outcome.CANCELLED, 50.0, 3.0)
    assert looks.look(row(ENDED, end=end)) == [Ended(KEY, end)]
    assert looks.look(row(WAITING)) == []
    assert looks.orders == [(Act.CANCEL, "7")]
    assert looks.tracker.anomalies.cancel_undone == 1


def test_what_was_cancelled_and_is_gone_has_ended() -> None:
    """Even if no record says so, once the batch system itself does not know it: nobody runs an own job again."""
    looks = running(site="A")
    looks.known = False
    job = looks.tracker.job(KEY)
    assert job is not None
    job.want = Want.GONE
    events = [event for _ in range(MISSING_LOOKS) for event in looks.look()]
    (ended,) = events
    assert isinstance(ended, Ended)
    assert ended.end.outcome is Outcome.CANCELLED
    assert ended.end.run_time == looks.now - 40.0


@pytest.mark.parametrize("evicted", [False, True])
@pytest.mark.parametrize("over", ["its script's end", "its limit"])
def test_a_guest_that_is_to_end_and_was_forgotten_may_run_on(over: str, *, evicted: bool) -> None:
    """Its home runs again what was preempted, or taken back and cancelled: not while the first run lives on its node."""
    looks = running()
    looks.known, looks.begun, looks.begun_at = False, True, 40.0
    job = looks.tracker.job(KEY)
    assert job is not None
    job.want, job.evicted = Want.GONE, evicted
    assert [type(event) for event in looks.many(30)] == [Unseen]
    if over == "its limit":
        events = looks.many(int((LIMIT_S + 2 * GRACE_S) / STEP_S) + PAUSE_LOOKS, after=STEP_S)
    else:
        looks.script = ScriptEnd(143, 30.0)
        events = looks.many(2 * PAUSE_LOOKS)
    (ended,) = events
    assert isinstance(ended, Ended)
    assert ended.end.outcome is (Outcome.PREEMPTED if evicted else Outcome.CANCELLED)


def test_a_batch_system_that_forgets_nothing_has_ended_what_it_does_not_have() -> None:
    """Also a guest."""
    looks = running(forgets=False)
    looks.known, looks.begun = False, True
    job = looks.tracker.job(KEY)
    assert job is not None
    job.want = Want.GONE
    assert [type(event) for event in looks.many(MISSING_LOOKS)] == [Ended]


@pytest.mark.parametrize("fences", [False, True])
def test_a_guest_that_is_turned_away_by_its_own_first_run_is_not_preempted(*, fences: bool) -> None:
    """A controller that has forgotten its start begins it anew; of the failed start it says what it says of one preempted."""
    looks = running(fences=fences)
    looks.begun, looks.begun_at = True, 41.0
    end = LrmsEnd(Outcome.PREEMPTED, 80.0, 0.0)
    looks.look(row(RUNNING, start_time=80.0))
    assert [type(event) for event in looks.look(row(ENDED, start_time=80.0, end=end))] == [Unseen]
    assert looks.many(5, row(ENDED, start_time=80.0, end=end)) == []
    looks.script = ScriptEnd(0, 30.0)
    (ended,) = looks.look(row(ENDED, start_time=80.0, end=end))
    assert isinstance(ended, Ended)
    assert (ended.end.outcome, ended.end.run_time) == (Outcome.COMPLETED, 30.0)


def test_a_guest_that_was_ended_by_the_same_controller_was_preempted() -> None:
    """Its script says so itself."""
    looks = running(fences=True)
    looks.begun, looks.begun_at, looks.script = True, 41.0, ScriptEnd(143, 20.0)
    end = LrmsEnd(Outcome.PREEMPTED, 80.0, 0.0)
    assert looks.look(row(ENDED, start_time=80.0, end=end))[-1] == Ended(KEY, end)


def test_a_copy_of_a_guest_that_runs_is_cancelled_and_the_guest_is_not() -> None:
    """The controller has forgotten its start: what it cancels before its start is not the run on the node."""
    looks = released(fences=True)
    looks.begun, looks.begun_at = True, 41.0
    end = LrmsEnd(Outcome.CANCELLED, 50.0, 0.0)
    ended = row(ENDED, start_time=None, end=end)
    assert [type(event) for event in looks.look(ended)] == [Unseen]
    looks.script = ScriptEnd(0, 30.0)
    (event,) = looks.look(ended)
    assert isinstance(event, Ended)
    assert (event.end.outcome, event.end.run_time) == (Outcome.COMPLETED, 30.0)


def test_a_guest_that_was_started_anew_is_cancelled_before_its_script_and_its_run_goes_on() -> None:
    """The controller has forgotten its start, and cancels it while the nodes of the second one are prepared."""
    looks = running(fences=True)
    looks.begun, looks.begun_at = True, 41.0
    looks.look(row(RUNNING, start_time=80.0))
    job = looks.tracker.job(KEY)
    assert job is not None
    job.want = Want.GONE
    end = LrmsEnd(Outcome.CANCELLED, 95.0, 15.0)
    ended = row(ENDED, start_time=80.0, end=end, exact=True)
    assert [type(event) for event in looks.look(ended)] == [Unseen]
    looks.script = ScriptEnd(0, 60.0)
    assert [type(event) for event in looks.look(ended)] == [Ended]


def test_a_guest_that_is_cancelled_as_it_runs_has_ended() -> None:
    """It has no other run."""
    looks = running(fences=True)
    looks.begun, looks.begun_at = True, 41.0
    end = LrmsEnd(Outcome.CANCELLED, 80.0, 40.0)
    assert looks.look(row(ENDED, end=end, exact=True))[-1] == Ended(KEY, end)


def test_what_was_there_before_appears() -> None:
    """As it is; nothing is done to it until somebody says what is wanted."""
    looks = Looks()
    events = looks.look(row(RUNNING))
    (appeared,) = events
    assert isinstance(appeared, Appeared)
    assert appeared.record.phase is RUNNING
    assert looks.look(row(ENDED)) == [Ended(KEY, COMPLETED)]


def test_an_old_hold_is_asked_about() -> None:
    """What was wanted of the job is kept beside its script; nobody asks before the site has looked it up."""
    looks = Looks()
    looks.look(row(HELD))
    assert looks.orders == []
    looks.tracker.looked_up(KEY)
    looks.look(row(HELD))
    assert looks.orders == [(Act.ASK, "7")]


@pytest.mark.parametrize(("asked", "orders"), [(True, [(Act.ASK, "7")]), (False, [])])
def test_what_was_released_long_ago_and_is_held_again_stays_so_unless_it_is_asked_for(
    asked: bool, orders: list[tuple[Act, str]]
) -> None:
    """The controller has forgotten the release, and perhaps that the job was cancelled."""
    looks = Looks()
    looks.tracker.gone(KEY, "7", looks.now, asked=asked)
    looks.look(row(HELD))
    looks.look(row(HELD), after=SETTLE_S)
    assert looks.orders == orders


def test_an_end_that_was_taken_back_is_told() -> None:
    """Nobody has cancelled it, and it is there again."""
    looks = running()
    looks.look(row(ENDED))
    events = looks.look(row(WAITING))
    assert [type(event) for event in events] == [Appeared]
    assert looks.tracker.anomalies.end_undone == 1
    assert looks.orders == [(Act.CANCEL, "7")], "nobody wants it to run again"
    looks.look(row(HELD), after=SETTLE_S)
    assert looks.orders == [(Act.CANCEL, "7")]
    looks.look(row(RUNNING))
    assert looks.orders == [], "what runs may run"


def test_an_ended_job_of_long_ago_says_nothing() -> None:
    """It is there for who asks."""
    looks = Looks()
    assert looks.look(row(ENDED)) == []
    assert looks.tracker.records([row(ENDED)])[KEY].end == COMPLETED


def numbers(looks: Looks, *rows: JobRow) -> tuple[int, int]:
    load = looks.tracker.load(looks.table(*rows))
    return load.free, load.waiting


def test_a_plan_does_not_know_what_is_held_to_be_sure() -> None:
    """The batch system has planned its other jobs alone; one that it sees waiting is planned."""
    looks = Looks()
    looks.submit()
    looks.look(row(HELD))
    for one, free in ((row(HELD), 1), (row(WAITING), 3)):
        plan = QueuePlan(looks.now, 3, (), ())
        load = looks.tracker.load(replace(looks.table(one), plan=plan))
        assert load.plan is not None
        assert load.plan.starts_now(free, 1.0, looks.now)
        assert not load.plan.starts_now(free + 1, 1.0, looks.now)


def test_the_load_counts_what_is_held_to_be_sure() -> None:
    """It takes room where there is room, and waits where not; what its user holds does neither."""
    looks = Looks()
    looks.submit()
    looks.look(row(HELD))
    assert numbers(looks, row(HELD)) == (3 - 2, 5)
    looks.tracker.hold_stays(KEY)
    assert numbers(looks, row(HELD)) == (3, 5)
    kept = Looks()
    kept.submit(Want.HELD)
    kept.look(row(HELD))
    assert numbers(kept, row(HELD)) == (3, 5)
    assert numbers(kept, row(WAITING)) == (3 - 2, 5)
    assert numbers(kept, row(WAITING), row(WAITING, "8")) == (3 - 2, 5 + 2)


# --- a doubt is no end -----------------------------------------------------------------------------


def test_absence_is_no_end_however_often_it_is_seen() -> None:
    """A table without rows, for hours: the job is unseen, told once, and comes back by itself."""
    for known in (None, True):
        looks = running()
        looks.known = known
        (unseen,) = looks.many(500, after=30.0)
        assert isinstance(unseen, Unseen)
        assert unseen.key == KEY
        assert looks.orders == []
        assert looks.look(row(RUNNING)) == [SeenAgain(KEY)]
        assert looks.orders == []
        assert looks.look(row(ENDED)) == [Ended(KEY, COMPLETED)]


def test_one_that_is_held_is_not_lost_by_absence() -> None:
    """There is no second copy of what its table does not show."""
    for known in (None, True):
        looks = Looks()
        looks.known = known
        looks.submit()
        looks.look(row(HELD))
        assert [type(event) for event in looks.many(50)] == [Unseen]
        assert looks.look(row(HELD)) == [SeenAgain(KEY)]


def test_a_clock_that_jumps_ends_nothing() -> None:
    """Neither forward past the limit, nor back; though the batch system does not know the job."""
    for jump in (1e6, -1e6):
        looks = running()
        looks.known = False
        looks.many(MISSING_LOOKS)
        assert looks.look(after=jump) == []
        assert looks.many(5) == []
        assert looks.look(row(RUNNING)) == [SeenAgain(KEY)]
    looks = running()
    looks.known = False
    events = looks.many(int((LIMIT_S + GRACE_S) / STEP_S) + PAUSE_LOOKS, after=1e6)
    assert [type(event) for event in events] == [Unseen, Vanished]


def test_the_word_of_the_job_itself_is_waited_for() -> None:
    """Until its limit is over since it began, by its folder; then nobody can say how it ended."""
    looks = running()
    looks.known, looks.begun, looks.begun_at = False, True, 2000.0
    looks.now = 2000.0
    (unseen,) = looks.many(MISSING_LOOKS)
    assert isinstance(unseen, Unseen)
    looks.script = ScriptEnd(0, 20.0)
    (event,) = looks.many(PAUSE_LOOKS)
    assert isinstance(event, Ended)
    assert (event.end.outcome, event.end.run_time) == (Outcome.COMPLETED, 20.0)
    assert event.end.end_time <= looks.now


def test_what_the_batch_system_has_is_not_ended_by_its_folder() -> None:
    """It may wait to run once more."""
    looks = running()
    looks.known, looks.script = True, ScriptEnd(143, 5.0)
    assert [type(event) for event in looks.many(50)] == [Unseen]
    looks.known = None
    assert [type(event) for event in looks.many(PAUSE_LOOKS)] == [Ended]


def test_a_release_that_had_no_answer_may_have_been_one() -> None:
    """The job may have run: it is not submitted again."""
    looks = Looks()
    looks.known = False
    looks.submit()
    looks.look(row(HELD), after=SETTLE_S)
    looks.tracker.releasing(KEY)
    assert [type(event) for event in looks.many(50)] == [Unseen]


def test_one_that_forgets_nothing_is_believed_that_it_was_deleted() -> None:
    """Where the job never began; else its end is waited for."""
    looks = Looks(forgets=False)
    looks.known = False
    looks.submit()
    looks.look(row(HELD))
    (event,) = looks.many(MISSING_LOOKS)
    assert isinstance(event, Ended)
    assert (event.end.outcome, event.end.run_time) == (Outcome.CANCELLED, 0.0)
    looks = Looks(forgets=False)
    looks.known, looks.begun = False, True
    looks.submit()
    looks.look(row(HELD))
    assert [type(event) for event in looks.many(MISSING_LOOKS)] == [Unseen]


def test_it_is_asked_less_and_less_often() -> None:
    """After 1, 2, 4, … looks; a job more than are asked about at one time has its turn later."""
    looks = running()
    looks.many(MISSING_LOOKS - 1)
    asked = []
    for _ in range(200):
        before = looks.asked
        looks.look()
        asked.append(looks.asked - before)
    places = [place for place, count in enumerate(asked) if count]
    steps = [later - earlier for earlier, later in pairwise(places)]
    assert steps[:5] == [1, 2, 4, 8, 16]
    assert set(steps[5:]) == {PAUSE_LOOKS}
    tracker = looks.tracker
    for number in range(QUESTIONS_MOST + 5):
        tracker.gone(f"A/2/{number}", str(100 + number), looks.now)
    looks.now += 1.0
    asking = tracker.see(looks.table()).questions
    first = [question.key for question in asking]
    for question in asking:
        tracker.conclude(question, Evidence(), looks.now)
    looks.now += 1.0
    second = [question.key for question in tracker.see(looks.table()).questions]
    assert len(first) == QUESTIONS_MOST
    assert set(second) >= {f"A/2/{number}" for number in range(QUESTIONS_MOST + 5)} - set(first)


def fenced(looks: Looks) -> list[LrmsEvent]:
    end = LrmsEnd(Outcome.FAILED, 80.0, 1.0)
    looks.ending = Ending(79.0, LrmsEnd(Outcome.FAILED, 80.0, 1.0, FENCED))
    return looks.look(row(ENDED, start_time=79.0, end=end, exact=False))


def test_a_second_run_that_was_turned_away_is_no_end() -> None:
    """How the first one ends counts, once that is said."""
    looks = released(fences=True)
    looks.look(row(RUNNING))
    looks.begun = True
    looks.look(row(RUNNING, start_time=79.0))
    assert [type(event) for event in fenced(looks)] == [Unseen]
    assert looks.many(3, row(ENDED, start_time=79.0, exact=False)) == []
    looks.script = ScriptEnd(0, 30.0)
    (event,) = looks.look(row(ENDED, start_time=79.0, exact=False))
    assert isinstance(event, Ended)
    assert (event.end.outcome, event.end.run_time) == (Outcome.COMPLETED, 30.0)
    assert (looks.tracker.anomalies.run_fenced, looks.tracker.anomalies.run_again) == (1, 0)


@pytest.mark.parametrize("exact", [True, False])
def test_a_failed_start_after_the_run_is_no_end(exact: bool) -> None:
    """The controller has forgotten the run and tried again: the folder is asked, also where the table is exact."""
    looks = released(fences=True)
    looks.look(row(RUNNING))
    looks.begun, looks.begun_at, looks.script = True, 41.0, ScriptEnd(0, 2.0)
    failed = LrmsEnd(Outcome.FAILED, 80.0, 0.0, 1)
    looks.ending = Ending(80.0, failed)
    (event,) = looks.look(row(ENDED, start_time=80.0, end=failed, exact=exact))
    assert isinstance(event, Ended)
    assert (event.end.outcome, event.end.exit_code, event.end.run_time) == (
        Outcome.COMPLETED,
        0,
        2.0,
    )
    assert looks.tracker.anomalies.run_fenced == 1


@pytest.mark.parametrize("run_time", [0.0, 1.0])
def test_a_second_run_is_no_end_where_no_record_has_its_code(run_time: float) -> None:
    """The controller has just forgotten that run as well: its table has said that the job failed, and no more."""
    looks = released(fences=True)
    looks.look(row(RUNNING))
    looks.begun, looks.begun_at, looks.script = True, 41.0, ScriptEnd(0, 2.0)
    failed = LrmsEnd(Outcome.FAILED, 80.0, run_time)
    (event,) = looks.look(row(ENDED, start_time=80.0 - run_time, end=failed, exact=False))
    assert isinstance(event, Ended)
    assert (event.end.outcome, event.end.exit_code, event.end.end_time) == (
        Outcome.COMPLETED,
        0,
        43.0,
    )


def test_of_a_run_whose_end_nobody_says_the_limit_counts() -> None:
    """The second one was turned away, the first one said nothing: then it is unknown."""
    looks = running()
    looks.begun, looks.begun_at = True, 41.0
    assert [type(event) for event in fenced(looks)] == [Unseen]
    looks.now += 1e6  # a clock that jumps does not end it
    events = [event for _ in range(int(GRACE_S - STEP_S)) for event in fenced(looks)]
    assert [type(event) for event in events] == []
    assert [type(event) for _ in range(60) for event in fenced(looks)] == [Vanished]


def test_a_script_may_return_that_code_itself() -> None:
    """Its folder says so."""
    looks = running()
    looks.script = ScriptEnd(FENCED, 5.0)
    events = fenced(looks)
    (ended,) = [event for event in events if isinstance(event, Ended)]
    assert (ended.end.outcome, ended.end.exit_code) == (Outcome.FAILED, FENCED)


def test_a_run_that_was_forgotten_may_go_on() -> None:
    """The copy that is held is kept until its end is known, or its limit is over."""
    for script in (None, ScriptEnd(0, 30.0)):
        looks = running()
        looks.begun, looks.begun_at = True, 41.0
        looks.look(row(HELD))
        events, over = looks.tracker.run_forgotten(KEY, looks.evidence(), looks.now)
        assert ([type(event) for event in events], over) == ([Unseen], False)
        assert looks.tracker.run_forgotten(KEY, looks.evidence(), looks.now) == ([], False)
        assert looks.look(row(HELD)) == []
        looks.script = script
        if script is None:
            looks.now += 1e6
            assert looks.tracker.run_forgotten(KEY, looks.evidence(), looks.now) == ([], False)
            looks.many(int(GRACE_S), row(HELD))
        events, over = looks.tracker.run_forgotten(KEY, looks.evidence(), looks.now)
        assert over
        kind = Vanished if script is None else Ended
        assert [type(event) for event in events if not isinstance(event, Started)] == [kind]
        assert looks.tracker.anomalies.run_forgotten == 1
        looks.look(row(HELD))
        assert looks.orders == [(Act.CANCEL, "7")], "it is not to run again"
        looks.look(row(RUNNING))
        assert looks.orders == [], "it runs, and nobody wanted its end"


def test_what_was_taken_for_over_and_runs_is_left_alone() -> None:
    """Nobody has wanted its end; neither that of one that nobody could say anything of, nor of a copy."""
    looks = running()
    looks.known = False
    looks.many(int(LIMIT_S + GRACE_S) + PAUSE_LOOKS + MISSING_LOOKS)
    events = looks.look(row(RUNNING, start_time=40.0))
    assert [type(event) for event in events] == [Appeared]
    assert looks.orders == []
    assert looks.tracker.anomalies.end_undone == 1
    assert looks.look(row(HELD)) != []
    assert looks.orders == [], (
        "it is not released: who was told that it is over may have it elsewhere"
    )
    looks = running()
    looks.look(row(RUNNING), row(RUNNING, "8", start_time=50.0), row(WAITING, "9"))
    assert looks.orders == []
    assert (looks.tracker.anomalies.copied, looks.tracker.anomalies.run_again) == (2, 1)
    looks.look(row(RUNNING), row(RUNNING, "8", start_time=50.0), row(HELD, "9"))
    assert looks.orders == [(Act.CANCEL, "9")]
    assert looks.tracker.anomalies.copied == 2


def test_what_was_lost_and_is_back_waits_for_who_knows() -> None:
    """It was held, and may have been given to somebody else since; submitted again it is one of two copies."""
    looks = Looks()
    looks.known = False
    looks.submit()
    assert [type(event) for event in looks.many(MISSING_LOOKS)] == [Lost]
    looks.look(row(HELD), after=SETTLE_S)
    looks.look(row(HELD), after=SETTLE_S)
    assert looks.orders == []


PHASES = st.sampled_from([None, *LrmsPhase])

_FOLLOWS = {
    Accepted: {""},
    Started: {"Accepted", "Requeued", "Appeared"},
    Requeued: {"Started", "Appeared"},
    Ended: {"Accepted", "Started", "Requeued", "Appeared"},
    Vanished: {"Accepted", "Started", "Requeued", "Appeared"},
    Lost: {"", "Accepted", "Appeared"},
    Appeared: {"Ended", "Vanished"},
}
"""What can be told of a job after what, but for `Unseen` and `SeenAgain`, which come by turns."""


@given(
    st.lists(PHASES, max_size=12),
    st.sampled_from([Want.RUN, Want.HELD]),
    st.booleans(),
    st.sampled_from([None, True, False]),
)
def test_whatever_is_seen_the_story_makes_sense(
    phases: list[LrmsPhase | None], want: Want, late: bool, known: bool | None
) -> None:
    """No second start without a requeue, one end at a time, no release of what is to wait."""
    looks = Looks()
    looks.known = known
    looks.submit(want)
    looks.now += SETTLE_S * late
    before, unseen = "", False
    for phase in phases:
        for event in looks.look(*([] if phase is None else [row(phase)])):
            if isinstance(event, Paused):
                assert before in {"Started", "Appeared"}
                continue
            if isinstance(event, Unseen | SeenAgain):
                assert isinstance(event, SeenAgain) == unseen or isinstance(event, Unseen)
                unseen = isinstance(event, Unseen)
                continue
            assert before in _FOLLOWS[type(event)]
            before = type(event).__name__
            if isinstance(event, Lost):
                return
        for act, _ in looks.orders:
            assert act is not Act.RELEASE or want is Want.RUN
            if act is Act.RELEASE:
                looks.tracker.released(KEY, looks.now)


def test_what_a_job_waits_for_is_told_when_two_looks_have_shown_it() -> None:
    """And that it does not any more at once; after its start nothing of it."""
    looks = released()
    down, inactive = (row(WAITING, hindered=f"main is {word}") for word in ("down", "inactive"))
    looks.look(row(WAITING))
    assert [looks.look(down) for _ in range(3)] == [[], [Hindered(KEY, "main is down")], []]
    assert looks.look(inactive) == [Hindered(KEY, "main is inactive")]
    assert looks.look(row(WAITING)) == [Hindered(KEY, "")]
    assert looks.look(down) == []
    assert Hindered(KEY, "") not in looks.look(row(RUNNING))


def test_what_somebody_lets_wait_in_the_batch_system_is_told_as_that() -> None:
    """A hold that is not the site's, a start that was put off; but for what waits again after a run of its own."""
    looks = released()
    looks.look(row(WAITING))
    looks.look(row(HELD, reason="JobHeldAdmin"))
    looks.tracker.hold_stays(KEY)
    (told,) = looks.look(row(HELD, reason="JobHeldAdmin"))
    assert isinstance(told, Hindered)
    assert ("holds it" in told.reason, "JobHeldAdmin" in told.reason, told.deferred) == (True,) * 3
    assert looks.look(row(WAITING)) == [Hindered(KEY, "")]
    later = row(WAITING, hindered="put off", deferred=True)
    told_later = Hindered(KEY, "put off", deferred=True)
    assert [looks.look(later) for _ in range(2)] == [[], [told_later]]
    looks.look(row(RUNNING))
    again = [event for _ in range(3) for event in looks.look(later)]
    assert not [event for event in again if isinstance(event, Hindered)]


@pytest.mark.parametrize(("site", "told"), [("A", True), ("S", False)])
def test_what_is_not_released_says_why(site: str, told: bool) -> None:
    """As while the accounting of Slurm is away; a partner's job waits, and does not go home for that."""
    looks = Looks(site=site)
    looks.submit()
    looks.look(row(HELD), after=SETTLE_S)
    looks.tracker.release_refused(KEY, "the DB index is being set")
    why = "the batch system does not lift its hold: the DB index is being set"
    assert looks.look(row(HELD)) == ([Hindered(KEY, why)] if told else [])
    assert looks.look(row(HELD)) == []
    assert looks.orders == [(Act.RELEASE, "7")]
    assert looks.look(row(WAITING)) == ([Hindered(KEY, "")] if told else [])


def test_a_guest_that_is_not_released_for_minutes_goes_home() -> None:
    """It would wait here without a word at home for as long as its hold is not lifted."""
    looks = Looks()
    looks.submit()
    looks.look(row(HELD), after=SETTLE_S)
    looks.tracker.release_refused(KEY, "no such job")
    for _ in range(round(REFUSED_S / STEP_S) - 1):
        assert looks.look(row(HELD), after=STEP_S) == []
    why = "the batch system does not lift its hold: no such job"
    assert looks.look(row(HELD), after=STEP_S) == [Hindered(KEY, why)]
    assert looks.look(row(WAITING)) == [Hindered(KEY, "")]
    looks.tracker.release_refused(KEY, "no such job")
    assert looks.look(row(HELD)) == [], "it counts anew"


@pytest.mark.parametrize(
    ("name", "known_as", "tagged"),
    [
        ("renamed", KEY, True),
        (f"hanse:S:{KEY}", "", False),
        ("hanse:S:earlier", KEY, False),
        (f"away:{KEY}", KEY, False),
    ],
)
def test_a_job_that_was_renamed_is_the_job_and_gets_its_tag_again(
    name: str, known_as: str, tagged: bool
) -> None:
    """Nothing is asked about it; one that came back, or is to leave, has a name of this site's."""
    looks = released()
    looks.look(row(WAITING))
    other = replace(row(WAITING), name=name, known_as=known_as)
    for _ in range(2):
        assert looks.look(other) == []
        assert looks.orders == ([(Act.TAG, "7")] if tagged else [])
    assert looks.asked == 0
    *_, end = looks.look(replace(row(ENDED), name=name, known_as=known_as))
    assert isinstance(end, Ended)
    assert looks.orders == []


LIFE = (HELD, HELD, WAITING, WAITING, *[RUNNING] * 6)
"""What a batch system has of a job that goes on and on, look by look."""


@given(
    shown=st.lists(st.booleans(), min_size=10, max_size=40),
    jumps=st.lists(st.sampled_from([1.0, 1.0, 2.0, 7.0, 1e5, -1e5]), min_size=40, max_size=40),
    words=st.lists(st.sampled_from([None, True]), min_size=40, max_size=40),
    copy=st.sampled_from([None, HELD, WAITING, RUNNING]),
    late=st.booleans(),
)
def test_without_evidence_nothing_ends_and_nothing_that_runs_is_cancelled(
    shown: list[bool],
    jumps: list[float],
    words: list[bool | None],
    copy: LrmsPhase | None,
    late: bool,
) -> None:
    """Rows are left out at random, clocks jump, the batch system says that it has the job or nothing.

    Though the job is there all the time, and in the end it is seen.
    """
    looks = Looks()
    looks.submit()
    for place, (is_shown, jump, word) in enumerate(zip(shown, jumps, words, strict=False)):
        phase = LIFE[min(place, len(LIFE) - 1)]
        rows = [row(phase)] if is_shown else []
        if copy is not None and (is_shown or late):
            rows.append(row(copy, "9", start_time=50.0 if copy is RUNNING else None))
        looks.known, looks.begun = word, phase is RUNNING
        for event in looks.look(*rows, after=jump):
            assert not isinstance(event, Ended | Vanished | Lost)
        live = {each.number: each.phase for each in rows}
        for act, number in looks.orders:
            if act is Act.CANCEL:
                assert live[number] is HELD
            elif act is Act.RELEASE:
                looks.tracker.released(KEY, looks.now)
    looks.look(row(RUNNING))
    job = looks.tracker.job(KEY)
    assert job is not None
    assert (job.doubt, job.end) == ("", None)


def test_a_job_under_its_marker_s_name_is_there() -> None:
    """However long no table shows it under its own; not so another job's marker, or one that has ended."""
    for number, name, phase, lasts in (
        ("7", f"away:{KEY}", WAITING, True),
        ("7", f"away:{KEY}", ENDED, False),
        ("8", f"away:{KEY}", WAITING, False),
        ("7", "away:A/1/2", WAITING, False),
    ):
        looks = Looks()
        looks.submit()
        looks.look(row(HELD), after=SETTLE_S)
        looks.release()
        looks.look(row(WAITING))
        looks.known = False
        marker = replace(row(phase, number), name=name)
        events = looks.many(12, marker, after=STEP_S)
        assert (events, looks.asked) == ([], 0) if lasts else looks.asked > 0
        assert any(isinstance(event, Vanished) for event in events) is not lasts
        if lasts:
            assert looks.many(MISSING_LOOKS) != []
            assert [type(event) for event in looks.look(marker)] == [SeenAgain]
            assert looks.look(row(WAITING)) == []
