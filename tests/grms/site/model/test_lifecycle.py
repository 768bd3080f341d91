from collections.abc import Mapping
from typing import TypeVar

import pytest

from grms.site.model.lifecycle import (
    GUEST_BEGINNING,
    GUEST_MOVES,
    GUEST_SHOWN_AS,
    JOB_BEGINNING,
    JOB_MOVES,
    PROVISIONAL,
    RESERVATION_BEGINNING,
    RESERVATION_MOVES,
    SHOWN,
    WAITING,
    GuestState,
    IllegalMove,
    JobState,
    ReservationState,
)

State = TypeVar("State", JobState, GuestState, ReservationState)


def reachable(moves: Mapping[State, Mapping[State, str]], start: State) -> set[State]:
    """Returns every state that can come after `start`."""
    seen: set[State] = set()
    waiting = [start]
    while waiting:
        for target in moves[waiting.pop()]:
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def test_every_state_has_its_line() -> None:
    """The tables speak of every state, and every move has its reason."""
    assert set(JOB_MOVES) == set(JobState)
    assert set(RESERVATION_MOVES) == set(ReservationState)
    assert all(reason for moves in JOB_MOVES.values() for reason in moves.values())
    assert all(reason for moves in RESERVATION_MOVES.values() for reason in moves.values())


def test_every_state_can_be_reached() -> None:
    """No state is there for nothing."""
    jobs = {*JOB_BEGINNING, *(s for b in JOB_BEGINNING for s in reachable(JOB_MOVES, b))}
    assert jobs == set(JobState)
    (beginning,) = GUEST_BEGINNING
    assert {beginning, *reachable(GUEST_MOVES, beginning)} == set(GUEST_MOVES)
    (first,) = RESERVATION_BEGINNING
    assert {first, *reachable(RESERVATION_MOVES, first)} == set(ReservationState)


def test_every_job_can_end() -> None:
    """From everywhere there is a way to the end, and none back from it."""
    for state in JobState:
        assert (JobState.ENDED in reachable(JOB_MOVES, state)) == (state is not JobState.ENDED)
    for state in GUEST_MOVES:
        assert (JobState.ENDED in reachable(GUEST_MOVES, state)) == (state is not JobState.ENDED)


def test_what_a_guest_may_do_an_own_job_may_do_here() -> None:
    """It is never anywhere else; those who watch have a word for each place."""
    assert set(GUEST_SHOWN_AS) == set(GUEST_MOVES)
    for state, targets in GUEST_MOVES.items():
        assert {
            to: JOB_MOVES[state][to] for to in set(GUEST_MOVES) & set(JOB_MOVES[state])
        } == targets


def test_every_reservation_ends() -> None:
    """Three states are ends, and whatever is none leads to one and never back."""
    ends = {ReservationState.ENDED, ReservationState.RELEASED, ReservationState.EXPIRED}
    for state in ReservationState:
        found = reachable(RESERVATION_MOVES, state)
        assert (found == set()) == (state in ends)
        assert state not in found


def test_a_job_at_home_leaves_by_one_way() -> None:
    """What the batch system has been given comes to a partner when it has let it go, and not before."""
    moves: Mapping[JobState, Mapping[JobState, str]] = {
        state: {
            to: why
            for to, why in targets.items()
            if (state, to) != (JobState.LEAVING, JobState.RESOLVING) and to is not JobState.RECEIVED
        }
        for state, targets in JOB_MOVES.items()
    }
    at_home = {JobState.SUBMITTING, JobState.RUNNING, JobState.ENDED} | WAITING
    assert reachable(moves, JobState.SUBMITTING) == at_home
    # Once it has started it does not leave at all, unless it waits again.
    assert set(JOB_MOVES[JobState.RUNNING]) == {JobState.QUEUED, JobState.ENDED}


def test_who_watches_sees_that_it_waits() -> None:
    """That a place is asked for is nobody's business but the site's."""
    assert set(JobState) - set(SHOWN) == PROVISIONAL == WAITING - {JobState.QUEUED}


def test_an_unknown_outcome_is_resolved_first() -> None:
    """A job whose offer may have been accepted goes neither home nor elsewhere directly."""
    for state in (JobState.OFFERING, JobState.RESOLVING, JobState.WITHDRAWING):
        assert not {JobState.SUBMITTING, JobState.QUEUED, JobState.RUNNING} & set(JOB_MOVES[state])
        assert JobState.OFFERING not in JOB_MOVES[state]


def test_an_illegal_move_tells_the_story() -> None:
    """Whoever reads the error sees how the job came to where it is."""
    with pytest.raises(
        IllegalMove, match="job a-1 cannot become RUNNING; so far: RECEIVED → ENDED"
    ):
        raise IllegalMove("job a-1", [JobState.RECEIVED, JobState.ENDED], JobState.RUNNING)
