"""What a batch system is told next, and what its answers lead to."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms import base
from grms.lrms.base import LrmsEnd, LrmsEvent, LrmsPhase, LrmsRecord
from grms.site.model.commands import LrmsCancel, LrmsSubmit
from grms.site.model.events import LrmsAppeared, LrmsLetGo, LrmsNews, LrmsRefused, LrmsStays
from grms.site.model.jobs import Request
from grms.site.runtime.executor_queue import (
    ENDS_AT_ONCE,
    PAUSE_FIRST_S,
    Call,
    LrmsQueue,
    LrmsStep,
)
from grms.util.outcomes import Outcome


def queue(at_once: int = 2, remembers: float = math.inf) -> LrmsQueue:
    """Returns an empty queue."""
    return LrmsQueue(at_once, remembers)


def submission(key: str, *, lookup: bool = False, started: bool = False) -> LrmsSubmit:
    """Returns the command to submit a job that was first handed over at 0."""
    return LrmsSubmit(0, key, Request(1, 10.0), b"", lookup=lookup, started=started, since=0.0)


def steps(calls: list[Call]) -> list[tuple[str, str]]:
    """Returns calls in short."""
    return [(call.step.value, call.key) for call in calls]


def test_commands_about_one_key_come_in_order() -> None:
    """The next one when the one before is done; other keys do not wait for it."""
    waiting = queue()
    leaves = LrmsCancel(0, "a", only_waiting=True)
    for command in (submission("a"), leaves, LrmsCancel(0, "a"), submission("b"), submission("c")):
        waiting.add(command)
    first = waiting.calls()
    assert steps(first) == [("submit", "a"), ("submit", "b")]
    assert waiting.calls() == []
    assert waiting.answered(first[0], None, 1.0) == []
    assert steps(waiting.calls()) == [("submit", "c")]
    assert waiting.answered(first[1], None, 1.0) == []
    (let_go,) = waiting.calls()
    assert (let_go.step, let_go.command) == (LrmsStep.CANCEL, leaves)
    assert waiting.answered(let_go, True, 1.0) == [LrmsLetGo("a", done=True)]
    assert steps(waiting.calls()) == [("cancel", "a")]
    assert len(waiting) == 2


def test_ends_hold_up_nothing_and_are_asked_for_together() -> None:
    """As many as there are, up to a number; a submission has its turn at once, with as many others as ever."""
    waiting = queue(at_once=2)
    for number in range(ENDS_AT_ONCE + 3):
        waiting.add(LrmsCancel(0, f"e{number}"))
    ends = waiting.calls()
    assert steps(ends) == [("cancel", f"e{number}") for number in range(ENDS_AT_ONCE)]
    for key in "abc":
        waiting.add(submission(key))
    assert steps(waiting.calls()) == [("submit", "a"), ("submit", "b")]
    assert waiting.answered(ends[7], True, 1.0) == []
    assert steps(waiting.calls()) == [("cancel", f"e{ENDS_AT_ONCE}")]
    assert waiting.unanswered(ends[0], 1.0) == (PAUSE_FIRST_S, [])
    assert waiting.calls() == []
    waiting.again(ends[0])
    assert steps(waiting.calls()) == [("cancel", "e0")]
    assert waiting.refused(ends[1], "not allowed") == []
    assert steps(waiting.calls()) == [("cancel", f"e{ENDS_AT_ONCE + 1}")]
    waiting.told([base.Away("no controller")])
    assert waiting.answered(ends[2], True, 1.0) == []
    assert waiting.calls() == []


def test_each_user_and_each_partner_has_its_turn() -> None:
    """Whoever has very many jobs waits for himself; what goes on after a look-up goes on at once."""
    waiting = queue(at_once=1)
    for number in range(3):
        waiting.add(replace(submission(f"a{number}"), user="ann"))
    waiting.add(replace(submission("b0", lookup=True), user="bob"))
    waiting.add(LrmsCancel(0, "l0", only_waiting=True))
    for number in range(2):
        waiting.add(replace(submission(f"s{number}"), partner="south"))
    order = []
    while calls := waiting.calls():
        order += steps(calls)
        waiting.answered(calls[0], None, 1.0)
    assert order == [
        ("submit", "a0"),
        ("look up", "b0"),
        ("submit", "b0"),
        ("cancel", "l0"),
        ("submit", "s0"),
        ("submit", "a1"),
        ("submit", "s1"),
        ("submit", "a2"),
    ]


def test_who_had_no_answer_goes_on_in_the_turn_of_its_user() -> None:
    """Before the others of the same, and not before those of others; what had been laid aside too."""
    waiting = queue(at_once=1)
    for key, user in (("a0", "ann"), ("a1", "ann"), ("b0", "bob"), ("b1", "bob")):
        waiting.add(replace(submission(key), user=user))
    (call,) = waiting.calls()
    waiting.park(call)
    (other,) = waiting.calls()
    assert other.key == "b0"
    waiting.again(call)
    order = []
    waiting.answered(other, None, 1.0)
    while calls := waiting.calls():
        order += steps(calls)
        waiting.answered(calls[0], None, 1.0)
    assert order == [("submit", "a0"), ("submit", "b1"), ("submit", "a1")]


def test_a_job_that_may_not_leave_stays() -> None:
    """Of a refusal to end it nobody needs to know; of one to let it go, who has found a place for it."""
    waiting = queue()
    for only_waiting in (False, True):
        waiting.add(LrmsCancel(0, "a", only_waiting=only_waiting))
        (call,) = waiting.calls()
        stays = [LrmsStays("a", certain=True)] if only_waiting else []
        assert waiting.refused(call, "not allowed") == stays
    assert len(waiting) == 0


def test_a_refusal_is_certain_where_nothing_came_before() -> None:
    """An attempt without an answer may still be carried out, whatever the next one is told."""
    waiting = queue()
    waiting.add(LrmsCancel(0, "a", only_waiting=True))
    (call,) = waiting.calls()
    assert waiting.unanswered(call, 5.0) == (PAUSE_FIRST_S, [LrmsLetGo("a", done=None)])
    waiting.again(call)
    (call,) = waiting.calls()
    assert waiting.refused(call, "not allowed") == [LrmsStays("a", certain=False)]


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("attempts", [1, 3])
def test_what_has_let_a_job_go_is_told(attempts: int, done: bool) -> None:
    """Where the first attempt had no answer, it may have been that one: that a later finds nothing says nothing."""
    waiting = queue()
    waiting.add(LrmsCancel(0, "a", only_waiting=True))
    told: list[LrmsNews] = []
    for _ in range(attempts - 1):
        (call,) = waiting.calls()
        told += waiting.unanswered(call, 5.0)[1]
        waiting.again(call)
    (call,) = waiting.calls()
    told += waiting.answered(call, done, 9.0)
    maybe = [LrmsLetGo("a", done=None)] * (attempts > 1)
    said = [LrmsLetGo("a", done=done)] * (done or attempts == 1)
    assert told == maybe + said
    assert len(waiting) == 0


def test_a_submission_without_an_answer_is_looked_up_first() -> None:
    """It is repeated where it is not found, after pauses that double."""
    waiting = queue()
    waiting.add(submission("a"))
    (call,) = waiting.calls()
    assert waiting.unanswered(call, 5.0) == (PAUSE_FIRST_S, [])
    assert waiting.calls() == []
    waiting.again(call)
    (call,) = waiting.calls()
    assert call.step is LrmsStep.LOOK_UP
    assert waiting.unanswered(call, 6.0) == (2 * PAUSE_FIRST_S, [])
    waiting.again(call)
    (call,) = waiting.calls()
    assert waiting.answered(call, None, 7.0) == []
    (call,) = waiting.calls()
    assert call.step is LrmsStep.SUBMIT
    assert waiting.answered(call, None, 8.0) == []
    assert len(waiting) == 0


def test_a_first_attempt_is_one_before_which_nothing_was_asked() -> None:
    """Not one that follows a look-up, or another attempt whose outcome was unknown, and no cancel."""
    waiting = queue(at_once=3)
    for command in (submission("a"), submission("b", lookup=True), LrmsCancel(0, "c")):
        waiting.add(command)
    first, look, end = sorted(waiting.calls(), key=lambda call: call.key)
    assert [waiting.is_first(call) for call in (first, look, end)] == [True, False, False]
    assert waiting.answered(look, None, 1.0) == []
    assert not waiting.is_first(waiting.calls()[0])
    waiting.unanswered(first, 1.0)
    waiting.again(first)
    (again,) = waiting.calls()
    assert again.step is LrmsStep.LOOK_UP
    assert waiting.answered(again, None, 2.0) == []
    (second,) = waiting.calls()
    assert second.step is LrmsStep.SUBMIT
    assert not waiting.is_first(second)
    assert waiting.unanswered(second, 3.0) == (PAUSE_FIRST_S, [])  # the pauses begin anew


def test_what_came_later_is_what_is_submitted() -> None:
    """A partner's job is laid aside until what it runs is there."""
    waiting = queue()
    waiting.add(submission("a"))
    (call,) = waiting.calls()
    waiting.park(call)
    waiting.delivered(call, b"what it runs")
    waiting.again(call)
    (call,) = waiting.calls()
    assert isinstance(call.command, LrmsSubmit)
    assert call.command.payload == b"what it runs"


def test_what_is_found_is_not_submitted() -> None:
    """Where it stands is told as if it had happened now."""
    end = LrmsEnd(Outcome.FAILED, 9.0, 4.0, 7, None, "exit 7")
    cases: list[tuple[LrmsRecord, list[LrmsNews]]] = [
        (LrmsRecord(LrmsPhase.WAITING), [base.Accepted("a")]),
        (LrmsRecord(LrmsPhase.HELD), [base.Accepted("a")]),
        (LrmsRecord(LrmsPhase.UNKNOWN), [base.Accepted("a")]),
        (
            LrmsRecord(LrmsPhase.RUNNING, 5.0),
            [base.Accepted("a"), base.Started("a", 5.0)],
        ),
        (
            LrmsRecord(LrmsPhase.ENDED, 5.0, end),
            [
                base.Accepted("a"),
                base.Started("a", 5.0),
                base.Ended("a", end),
            ],
        ),
    ]
    for record, events in cases:
        waiting = queue()
        waiting.add(submission("a", lookup=True))
        (call,) = waiting.calls()
        assert waiting.answered(call, record, 10.0) == events
        assert len(waiting) == 0


def test_a_job_that_ran_and_waits_was_requeued() -> None:
    """While the daemon was away."""
    waiting = queue()
    waiting.add(submission("a", lookup=True, started=True))
    (call,) = waiting.calls()
    found = waiting.answered(call, LrmsRecord(LrmsPhase.WAITING, reason="node down"), 1.0)
    assert found == [base.Accepted("a"), base.Requeued("a", "node down")]


@pytest.mark.parametrize("phase", [LrmsPhase.WAITING, LrmsPhase.HELD])
def test_the_batch_system_may_know_of_a_start_that_the_site_does_not(phase: LrmsPhase) -> None:
    """The job started and was requeued while the daemon was away."""
    waiting = queue()
    waiting.add(submission("a", lookup=True))
    (call,) = waiting.calls()
    found = waiting.answered(call, LrmsRecord(phase, reason="node down", restarted=True), 1.0)
    assert found == [base.Accepted("a"), base.Requeued("a", "node down")]


@pytest.mark.parametrize(("started", "now"), [(True, 1.0), (False, 301.0)])
def test_what_may_have_ended_is_not_repeated(*, started: bool, now: float) -> None:
    """One that was seen running, and one that may have been forgotten since it ended."""
    waiting = queue(remembers=300.0)
    waiting.add(submission("a", lookup=True, started=started))
    (call,) = waiting.calls()
    (ended,) = waiting.answered(call, None, now)
    assert isinstance(ended, base.Ended)
    assert (ended.end.outcome, ended.end.end_time, ended.end.run_time) == (
        Outcome.UNKNOWN,
        now,
        0.0,
    )
    assert len(waiting) == 0


def test_what_cannot_have_ended_is_submitted() -> None:
    """It was handed over so short ago that the batch system would know."""
    waiting = queue(remembers=300.0)
    waiting.add(submission("a", lookup=True))
    (call,) = waiting.calls()
    assert waiting.answered(call, None, 300.0) == []
    assert steps(waiting.calls()) == [("submit", "a")]


def test_doubt_begins_with_the_attempt() -> None:
    """However old the job is: nothing of it was there before."""
    waiting = queue(remembers=300.0)
    waiting.add(submission("a"))
    (call,) = waiting.calls()
    waiting.unanswered(call, 5000.0)
    waiting.again(call)
    (call,) = waiting.calls()
    assert waiting.answered(call, None, 5300.0) == []
    assert steps(waiting.calls()) == [("submit", "a")]


def test_a_refusal_is_final() -> None:
    """Of a submission the state hears; of a cancel there is nothing to hear."""
    waiting = queue()
    waiting.add(submission("a"))
    waiting.add(LrmsCancel(0, "b"))
    first, second = waiting.calls()
    assert waiting.refused(first, "too wide") == [LrmsRefused("a", "too wide")]
    assert waiting.refused(second, "not yours") == []
    assert len(waiting) == 0


def test_nothing_is_begun_while_nobody_answers() -> None:
    """That it is away, and back, are events."""
    waiting = queue()
    assert waiting.told([base.Away("no controller")]) == [base.Away("no controller")]
    waiting.add(submission("a"))
    assert waiting.calls() == []
    assert waiting.told([base.Back()]) == [base.Back()]
    assert steps(waiting.calls()) == [("submit", "a")]


def test_what_happens_is_told_as_the_batch_system_tells_it() -> None:
    """What has vanished has ended, what has appeared is found; loads are none."""
    as_they_are: list[LrmsEvent] = [
        base.Accepted("a"),
        base.Started("a", 5.0),
        base.Requeued("a", "preempted"),
        base.Hindered("a", "main is down"),
        base.Ended(
            "a", LrmsEnd(Outcome.NODE_FAIL, 9.0, 4.0, exit_code=-1, signal=9, reason="node7")
        ),
        base.Lost("b", "crash"),
        base.Unseen("e", "two of that name"),
        base.SeenAgain("e"),
    ]
    others: list[LrmsEvent] = [
        base.Vanished("c", 8.0),
        base.Appeared("d", LrmsRecord(LrmsPhase.RUNNING, 7.0)),
        base.LoadSeen(base.LrmsLoad(9.0, 4, 4, 0)),
    ]
    gone = LrmsEnd(Outcome.UNKNOWN, 8.0, 0.0, reason="gone from the batch system")
    assert queue().told([*as_they_are, *others]) == [
        *as_they_are,
        base.Ended("c", gone),
        LrmsAppeared("d"),
        base.Accepted("d"),
        base.Started("d", 7.0),
    ]


def test_what_had_no_answer_may_be_there_since_it_was_asked_for() -> None:
    """So it may have ended and be forgotten already, and is not submitted a second time."""
    waiting = queue(remembers=10.0)
    waiting.add(submission("a"))
    (call,) = waiting.calls()
    waiting.unanswered(call, 100.0)
    waiting.again(call)
    (call,) = waiting.calls()
    (ended,) = waiting.answered(call, None, 110.5)
    assert isinstance(ended, base.Ended)
    assert ended.end.outcome is Outcome.UNKNOWN
    assert len(waiting) == 0


def test_what_is_lost_while_it_is_submitted_is_submitted() -> None:
    """The answer may be about what got lost: it is looked up, and is no loss for the site."""
    waiting = queue()
    waiting.add(submission("a"))
    (call,) = waiting.calls()
    assert waiting.told([base.Lost("a", "crash")]) == []
    assert waiting.answered(call, None, 1.0) == []
    (call,) = waiting.calls()
    assert call.step is LrmsStep.LOOK_UP
    assert waiting.answered(call, None, 2.0) == []
    (call,) = waiting.calls()
    assert call.step is LrmsStep.SUBMIT
    assert waiting.answered(call, None, 3.0) == []
    assert len(waiting) == 0
    assert waiting.told([base.Lost("a", "crash")]) == [base.Lost("a", "crash")]


def test_what_is_lost_while_it_is_looked_up_is_looked_up_again() -> None:
    """An answer on its way may be older than the loss; what was lost has not run, however long ago."""
    waiting = queue(remembers=10.0)
    waiting.add(submission("a", lookup=True, started=True))
    (call,) = waiting.calls()
    assert waiting.told([base.Lost("a", "crash")]) == []
    assert waiting.answered(call, LrmsRecord(LrmsPhase.WAITING), 99.0) == []
    (call,) = waiting.calls()
    assert call.step is LrmsStep.LOOK_UP
    assert waiting.answered(call, None, 100.0) == []
    assert steps(waiting.calls()) == [("submit", "a")]


def test_what_is_lost_while_a_cancel_waits_behind_its_submission_is_cancelled() -> None:
    """The submission may still come to something, so who waits is told of the end that it really has."""
    waiting = queue()
    waiting.add(submission("a", lookup=True))
    waiting.add(LrmsCancel(0, "a"))
    (call,) = waiting.calls()
    assert waiting.told([base.Lost("a", "crash")]) == []
    asked = []
    for answer in (None, None, None, True):
        assert waiting.answered(call, answer, 1.0) == []
        asked += (calls := waiting.calls())
        call = calls[0] if calls else call
    assert steps(asked) == [("look up", "a"), ("submit", "a"), ("cancel", "a")]
    assert len(waiting) == 0
    assert waiting.told([base.Lost("a", "crash")]) == [base.Lost("a", "crash")]


def test_every_outcome_has_its_word() -> None:
    """What a batch system can say, the site can say."""
    assert {outcome.name for outcome in Outcome} == {outcome.name for outcome in Outcome}


def test_the_first_look_shows_what_has_not_ended() -> None:
    """Whether it is wanted is for the state to say."""
    ended = LrmsRecord(LrmsPhase.ENDED, 1.0, LrmsEnd(Outcome.COMPLETED, 2.0, 1.0))
    seen = [("a", LrmsRecord(LrmsPhase.WAITING)), ("b", ended)]
    assert queue().seen_first(seen) == [LrmsAppeared("a")]
    assert queue().told([base.Appeared("b", ended)])[0] == base.Accepted("b")


@given(st.data())
def test_every_command_is_carried_out_once_in_its_turn(data: st.DataObject) -> None:
    """Of each key in order, and never more than so many at one time but ends."""
    at_once = data.draw(st.integers(1, 3))
    waiting = queue(at_once)
    users = data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=14))
    given_out: dict[str, list[LrmsSubmit | LrmsCancel]] = {}
    for number, user in enumerate(users):
        key = f"{user}{data.draw(st.integers(0, number))}"
        kind = data.draw(st.sampled_from(("submit", "leave", "end")))
        command: LrmsSubmit | LrmsCancel = replace(submission(key), user=user)
        if kind != "submit":
            command = LrmsCancel(0, key, only_waiting=kind == "leave")
        given_out.setdefault(key, []).append(command)
        waiting.add(command)
    done: dict[str, list[LrmsSubmit | LrmsCancel]] = {}
    under_way: list[Call] = []
    while len(waiting):
        new = waiting.calls()
        for call in new:
            assert call.key not in {other.key for other in under_way}
            under_way.append(call)
        assert sum(not is_end(call) for call in under_way) <= at_once
        call = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
        becomes = data.draw(st.sampled_from(("answered", "again", "laid aside")))
        if becomes == "answered":
            done.setdefault(call.key, []).append(call.command)
            waiting.answered(call, None, 1.0)
            continue
        if becomes == "laid aside":
            waiting.park(call)
        waiting.again(call)
    assert done == given_out
    assert waiting.calls() == []


def is_end(call: Call) -> bool:
    """Returns whether a call asks for the end of a job, whatever it does."""
    return isinstance(call.command, LrmsCancel) and not call.command.only_waiting


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=20), st.integers(1, 3))
def test_nobody_waits_for_all_of_anothers_jobs(users: list[str], at_once: int) -> None:
    """Of those whose jobs wait, none has two turns before every other has one."""
    waiting = queue(at_once)
    left = Counter(users)
    for number, user in enumerate(users):
        waiting.add(replace(submission(f"{user}{number}"), user=user))
    turns = []
    while calls := waiting.calls():
        turns += [call.key[0] for call in calls]
        for call in calls:
            waiting.answered(call, None, 1.0)
    assert Counter(turns) == left
    for place, user in enumerate(turns):
        before = turns[:place]
        for other in left:
            waits = before.count(other) < left[other]
            assert not waits or before.count(user) <= before.count(other)


def unanswered_before(waiting: LrmsQueue) -> Call:
    """Returns the second attempt of a submission whose first one had no answer, and was not found."""
    waiting.add(submission("a"))
    (call,) = waiting.calls()
    waiting.unanswered(call, 1.0)
    waiting.again(call)
    (look,) = waiting.calls()
    assert look.step is LrmsStep.LOOK_UP
    assert waiting.answered(look, None, 2.0) == []
    (second,) = waiting.calls()
    assert second.step is LrmsStep.SUBMIT
    return second


@pytest.mark.parametrize("undelivered", [False, True])
@pytest.mark.parametrize("came", [False, True])
def test_a_refusal_of_a_repetition_is_no_end_before_the_first_attempt_is_looked_for(
    came: bool, undelivered: bool
) -> None:
    """It may have come since it was looked up, and be released: whoever ran it elsewhere would run it twice."""
    waiting = queue()
    second = unanswered_before(waiting)
    assert waiting.refused(second, "no", undelivered=undelivered) == []
    (look,) = waiting.calls()
    assert look.step is LrmsStep.LOOK_UP
    found = LrmsRecord(LrmsPhase.RUNNING, 3.0) if came else None
    news = waiting.answered(look, found, 4.0)
    if came:
        assert news == [base.Accepted("a"), base.Started("a", 3.0)]
    else:
        assert news == [LrmsRefused("a", "no", undelivered)]
    assert len(waiting) == 0


def test_a_refusal_after_a_restart_is_looked_into_too() -> None:
    """An attempt of an earlier process may have had no answer."""
    waiting = queue()
    waiting.add(submission("a", lookup=True))
    (look,) = waiting.calls()
    assert waiting.answered(look, None, 1.0) == []
    (call,) = waiting.calls()
    assert waiting.refused(call, "too wide") == []
    (again,) = waiting.calls()
    assert again.step is LrmsStep.LOOK_UP
    assert waiting.answered(again, None, 2.0) == [LrmsRefused("a", "too wide")]


@pytest.mark.parametrize("came", [False, True])
def test_what_was_put_off_and_is_to_end_is_looked_for_behind_its_cancel(came: bool) -> None:
    """The attempt before had no answer: told as cancelled before that, it could run all the same."""
    waiting = queue()
    second = unanswered_before(waiting)
    _, news = waiting.put_off(second, "it is shut")
    assert news == [LrmsRefused("a", "it is shut", passing=True)]
    end = LrmsCancel(0, "a")
    waiting.add(end)
    assert waiting.resume(second) == []
    (cancel,) = waiting.calls()
    assert cancel.command is end
    assert waiting.answered(cancel, came, 3.0) == []
    (look,) = waiting.calls()
    assert look.step is LrmsStep.LOOK_UP
    over = LrmsRecord(LrmsPhase.ENDED, 2.5, LrmsEnd(Outcome.CANCELLED, 3.0, 0.5))
    news = waiting.answered(look, over if came else None, 4.0)
    if came:
        assert over.end is not None
        assert news == [base.Accepted("a"), base.Started("a", 2.5), base.Ended("a", over.end)]
    else:
        assert news == [LrmsRefused("a", "it is shut")]
    assert len(waiting) == 0


def test_what_was_put_off_at_its_first_attempt_ends_at_once() -> None:
    """Nothing of it can be anywhere."""
    waiting = queue()
    waiting.add(submission("a"))
    (call,) = waiting.calls()
    waiting.put_off(call, "it is shut")
    waiting.add(LrmsCancel(0, "a"))
    assert waiting.resume(call) == [LrmsRefused("a", "it is shut")]


def test_a_place_that_is_refused_is_no_refusal_of_its_job() -> None:
    """Which is elsewhere, or has come back since and is submitted next; nor is it asked for again and again."""
    waiting = queue()
    waiting.add(replace(submission("a"), aside=True))
    waiting.add(submission("a"))
    (call,) = waiting.calls()
    assert not waiting.asks_again(call, passing=True)
    assert waiting.refused(call, "too many jobs") == []
    (call,) = waiting.calls()
    assert call.command == submission("a")
    assert waiting.asks_again(call, passing=True)


@pytest.mark.parametrize("found", [None, LrmsRecord(LrmsPhase.WAITING)])
def test_a_place_without_an_answer_is_asked_for_again_unless_the_job_is_there(
    found: LrmsRecord | None,
) -> None:
    """Nothing is told of it."""
    waiting = queue()
    waiting.add(replace(submission("a"), aside=True))
    (call,) = waiting.calls()
    waiting.unanswered(call, 1.0)
    waiting.again(call)
    (call,) = waiting.calls()
    assert call.step is LrmsStep.LOOK_UP
    assert waiting.answered(call, found, 2.0) == []
    assert steps(waiting.calls()) == ([("submit", "a")] if found is None else [])
