"""What is asked about reservations, and what time does: nothing is promised twice, or forgotten."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.site.model.commands import (
    Append,
    Command,
    PublishReservation,
    Refusal,
    Refuse,
    ReplyReservation,
)
from grms.site.model.events import (
    BookReservation,
    Event,
    LaunchReservation,
    LrmsNews,
    MoveReservation,
    ReleaseReservation,
    ReservationsDue,
    Restarted,
)
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import Outcome, ReservationState
from grms.site.model.reservations import WINDOW_MAX_S, Reservation, Resource
from grms.site.model.settings import Limits, SiteSettings
from grms.site.scheduler.reservations import window_problem
from tests.grms.site.conversation import FREE, Conversation, kinds, one

CPU = Resource("cpu", {"kind": "cpu"}, processors=3, speed=2.0, cost_per_hour=10.0)


class Desk(Conversation):
    """A site with one resource, and brokers that ask."""

    runs_nothing = True

    def __init__(self, *resources: Resource, **limits: int) -> None:
        self.told: list[Reservation] = []
        given = SiteSettings(
            "a", 8, resources=resources or (CPU,), limits=Limits(**limits), partners=()
        )
        super().__init__(replace(given, runs_nothing=self.runs_nothing))

    def __call__(self, event: type[Event | LrmsNews], **values: Any) -> list[Command]:
        """Hands over an event; what watchers are told is kept."""
        commands = super().__call__(event, **values)
        self.told += [c.reservation for c in commands if isinstance(c, PublishReservation)]
        return [c for c in commands if not isinstance(c, PublishReservation)]

    def asked(self, event: type[Event], **values: Any) -> Reservation:
        """Returns the reservation that is the answer; it is durable before, and watchers hear of it."""
        told = len(self.told)
        before = self.state.memory.reservations.reservations.copy()
        commands = self(event, owner=values.pop("owner", "me"), **values)
        answer = one(commands, ReplyReservation).reservation
        after = self.state.memory.reservations.reservations
        assert after[answer.number] is answer
        changed = [number for number, each in after.items() if before.get(number) is not each]
        assert sorted({each.number for each in self.told[told:]}) == sorted(changed)
        return answer

    def refused(self, event: type[Event], **values: Any) -> Refuse:
        """Returns the refusal that is the answer; nothing has changed."""
        before = self.state.memory.reservations.reservations.copy()
        refusal = one(self(event, owner=values.pop("owner", "me"), **values), Refuse)
        assert self.state.memory.reservations.reservations == before
        return refusal

    def book(self, begin: float, end: float, key: str = "k", **values: Any) -> Reservation:
        """Books one processor, if nothing else is said."""
        return self.asked(BookReservation, **wish(begin, end, key, **values))

    def launch(self, run_time: float, number: int = 1, **values: Any) -> Reservation:
        """Launches a job of so many reference seconds."""
        return self.asked(LaunchReservation, **job(run_time, number, **values))

    def due(self, moment: float) -> Reservation:
        """Lets it be a later moment, and returns the one reservation that this changes last."""
        self.now = moment
        told = len(self.told)
        assert self(ReservationsDue) == []
        assert {each.number for each in self.told[told:]} == {self.told[-1].number}
        return self.told[-1]


def wish(begin: float, end: float, key: str = "k", **values: Any) -> dict[str, Any]:
    """Returns the values of a booking."""
    given = {"idempotency_key": key, "resource_id": "cpu", "processors": 1}
    return {**given, "begin": begin, "end": end, **values}


def job(
    run_time: float,
    number: int = 1,
    *,
    processors: int = 1,
    requested: float = 100.0,
    **values: Any,
) -> dict[str, Any]:
    """Returns the values of a launch."""
    request = Request(processors, requested)
    given = {"reservation": number, "launch_key": "l", "request": request, "run_time": run_time}
    return {**given, **values}


class RealDesk(Desk):
    """The same at a site whose batch system is real."""

    runs_nothing = False


def test_a_real_batch_system_is_not_said_to_have_run_a_program() -> None:
    """The launch of one is refused, and the reservation stands; what only keeps time is NOT_RUN."""
    desk = RealDesk()
    desk.book(10, 20)
    refused = desk.refused(LaunchReservation, **job(8.0, program=True))
    assert (refused.refusal, refused.field) == (Refusal.PRECONDITION, "job.program")
    assert (
        refused.reason
        == "this site cannot run a program in a reservation: its batch system is real, and none of its processors stand behind what can be reserved; hand the program in as a job (grms submit)"
    )
    desk.launch(8.0)
    assert desk.due(10.0).state is ReservationState.RUNNING
    assert desk.due(14.0).outcome is Outcome.NOT_RUN


def test_a_simulated_site_takes_a_program_and_says_that_it_was_not_run() -> None:
    """Its time is kept."""
    desk = Desk()
    desk.book(10, 20)
    desk.launch(8.0, program=True)
    desk.due(10.0)
    assert desk.due(14.0).outcome is Outcome.NOT_RUN


wishes = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, 3))


@given(wanted=st.lists(wishes, max_size=15), released=st.lists(st.integers(1, 15), max_size=5))
def test_no_processor_is_promised_twice(
    wanted: list[tuple[int, int, int]], released: list[int]
) -> None:
    """At every moment the promises fit, and whoever is refused could not have been served."""
    desk = Desk()
    desk.now = -1.0
    held = [0] * 20
    mine: dict[int, tuple[int, int, int]] = {}
    for step, (begin, length, processors) in enumerate(wanted):
        values = wish(begin, begin + length, str(step), processors=processors)
        if max(held[begin : begin + length]) + processors <= 3:
            number = desk.asked(BookReservation, **values).number
            mine[number] = begin, begin + length, processors
            for moment in range(begin, begin + length):
                held[moment] += processors
        else:
            refusal = desk.refused(BookReservation, **values)
            assert refusal.refusal is Refusal.PRECONDITION
            window = f"from {begin} to {begin + length}"
            assert refusal.reason == f"{processors} processors of cpu are not free {window}"
        if step < len(released) and released[step] in mine:
            desk.asked(ReleaseReservation, reservation=released[step])
            first, after, given_back = mine.pop(released[step])
            for moment in range(first, after):
                held[moment] -= given_back


def test_the_same_key_is_the_same_reservation() -> None:
    """Also when it is over, and after a restart; another wish with it is refused."""
    desk = Desk()
    first = desk.book(0.0, 10.0)
    desk.now = 99.0
    desk(ReservationsDue)
    again = desk.book(0.0, 10.0)
    assert (again.number, again.state) == (1, ReservationState.EXPIRED)
    desk.restart()
    assert desk.book(0.0, 10.0).number == first.number
    for other in ({"begin": 1.0}, {"end": 11.0}, {"processors": 2}, {"resource_id": "x"}):
        refusal = desk.refused(BookReservation, **{**wish(0.0, 10.0), **other})
        assert refusal.refusal is Refusal.PRECONDITION
        assert refusal.reason == "the key belongs to another reservation, 1"
    assert desk.book(100.0, 110.0, owner="you").number == 2


def test_a_booking_is_durable_before_it_is_answered() -> None:
    """The record comes first, then those who watch, then the answer."""
    desk = Desk()
    event = BookReservation(99, "me", "k", "cpu", 0.0, 9.0, 2)
    commands = desk.state.handle(event, 0.0)
    assert kinds(commands) == ["Append", "PublishReservation", "ReplyReservation"]
    assert [command.cause for command in commands] == [99, 99, 99]
    (record,) = one(commands, Append).records
    assert (record.time, desk.state.memory.reservations.next_number) == (0.0, 2)
    assert one(commands, ReplyReservation).reservation.cost == 10.0 * 2 * 9 / 3600


@pytest.mark.parametrize(
    ("values", "field", "reason"),
    [
        ({"key": ""}, "idempotency_key", "idempotency_key has 0 characters; 1 to 128 are possible"),
        ({"key": "k" * 129}, "idempotency_key", "idempotency_key has 129 characters"),
        ({"begin": 5.0, "end": 5.0}, "window", r"window is 5\.0 to 5\.0; its end must be after"),
        ({"begin": -math.inf}, "window", "window is -inf to"),
        ({"end": math.nan}, "window", "window is"),
        ({"end": 1.0 + 2 * WINDOW_MAX_S}, "window", "window is"),
        ({"processors": 0}, "processors", "processors is 0; it must be at least 1"),
        ({"processors": 2**31}, "processors", "processors is 2147483648"),
    ],
)
def test_what_means_nothing_is_refused(values: dict[str, Any], field: str, reason: str) -> None:
    """With the field of the request that is wrong."""
    given = {"begin": 1.0, "end": 9.0, **values}
    desk = Desk()
    refusal = desk.refused(BookReservation, **wish(**given))
    assert (refusal.refusal, refusal.field) == (Refusal.INVALID, field)
    assert re.match(reason, refusal.reason)


def test_the_bounds_of_a_wish_are_possible() -> None:
    """The longest key and window, and every processor there is."""
    desk = Desk()
    assert desk.book(0.0, WINDOW_MAX_S, "k" * 128, processors=3).number == 1
    assert window_problem(0.0, WINDOW_MAX_S) == ""
    assert window_problem(0.0, math.nextafter(WINDOW_MAX_S, math.inf)) != ""
    wide = Desk(replace(CPU, processors=2**31 - 1))
    assert wide.book(0.0, 1.0, "k", processors=2**31 - 1).number == 1


def test_what_there_is_not_is_not_found() -> None:
    """A resource, a reservation, another's: each with its field."""
    desk = Desk()
    refusal = desk.refused(BookReservation, **wish(0.0, 9.0, resource_id="none"))
    assert (refusal.refusal, refusal.field) == (Refusal.NOT_FOUND, "resource_id")
    assert refusal.reason == "there is no resource 'none' here"
    desk.book(0.0, 9.0)
    for event, values in (
        (LaunchReservation, job(1.0, 2)),
        (MoveReservation, {"reservation": 2, "old": (0.0, 9.0), "new": (0.0, 10.0)}),
        (ReleaseReservation, {"reservation": 2}),
    ):
        refusal = desk.refused(event, **values)
        assert (refusal.refusal, refusal.field) == (Refusal.NOT_FOUND, "reservation_id")
        assert refusal.reason == "there is no reservation 2 of me"
        values["reservation"] = 1
        assert desk.refused(event, owner="you", **values).refusal is Refusal.NOT_FOUND


def test_a_window_that_ends_now_is_past() -> None:
    """One that ends a moment later is not."""
    desk = Desk()
    desk.now = 10.0
    refusal = desk.refused(BookReservation, **wish(0.0, 10.0))
    assert refusal.reason == "the window ends at 10.0, and it is 10.0"
    assert refusal.refusal is Refusal.PRECONDITION
    desk.now = 9.9
    assert desk.book(0.0, 10.0).number == 1


def test_each_owner_may_hold_so_many() -> None:
    """Open ones count, of one owner; the last possible is possible, and one that is gone makes room."""
    desk = Desk(reservations_open=2)

    def window(key: str, owner: str = "me") -> dict[str, Any]:
        begin = 10.0 * desk.last_id
        return {**wish(begin, begin + 10.0, key), "owner": owner}

    desk.asked(BookReservation, **window("a"))
    desk.asked(BookReservation, **window("a", "you"))
    desk.asked(BookReservation, **window("b"))
    refusal = desk.refused(BookReservation, **window("c"))
    assert refusal.refusal is Refusal.EXHAUSTED
    assert refusal.reason == "me has 2 open reservations, the most"
    desk.asked(BookReservation, **window("b", "you"))
    desk.asked(ReleaseReservation, reservation=1)
    desk.asked(BookReservation, **window("c"))


def test_a_job_runs_in_its_window() -> None:
    """From the beginning, at the resource's speed; what is left of the window is free again."""
    desk = Desk()
    desk.book(10.0, 20.0, processors=3)
    refusal = desk.refused(LaunchReservation, **job(30.0))
    assert refusal.refusal is Refusal.PRECONDITION
    assert refusal.reason == (
        "the job needs 1 processors for 15 s from 10; reservation 1 has 3 until 20"
    )
    launched = desk.launch(8.0, processors=3)
    assert (launched.state, launched.run_time, launched.needed_time) == (
        ReservationState.LAUNCHED,
        4.0,
        4.0,
    )
    running = desk.due(12.0)
    assert (running.state, running.start_time) == (ReservationState.RUNNING, 10.0)
    ended = desk.due(14.0)
    assert (ended.state, ended.start_time, ended.end_time, ended.end) == (
        ReservationState.ENDED,
        10.0,
        14.0,
        20.0,
    )
    assert ended.outcome is Outcome.NOT_RUN
    assert ended.cost == pytest.approx(10.0 * 3 * 10 / 3600)
    assert desk.state.memory.reservations.free(CPU, 10.0, 20.0) == [(10.0, 20.0, 3)]


def test_what_fits_exactly_fits() -> None:
    """All processors and all of the window; one more of either does not."""
    desk = Desk()
    desk.book(10.0, 20.0, processors=2)
    too_wide = desk.refused(LaunchReservation, **job(20.0, processors=3))
    assert (
        too_wide.reason
        == "the job needs 3 processors for 10 s from 10; reservation 1 has 2 until 20"
    )
    assert (
        desk.refused(LaunchReservation, **job(21.0, processors=2)).reason
        == "the job needs 2 processors for 10.5 s from 10; reservation 1 has 2 until 20"
    )
    assert desk.launch(20.0, processors=2).run_time == 10.0


def test_launching_twice_is_nothing() -> None:
    """The same key has the same answer, whatever has become of it; another is refused."""
    desk = Desk()
    desk.book(10.0, 20.0)
    desk.launch(8.0)
    assert desk.launch(8.0).revision == 2
    refusal = desk.refused(LaunchReservation, **job(8.0, launch_key="m"))
    assert refusal.reason == "another job was launched in reservation 1"
    assert refusal.refusal is Refusal.PRECONDITION
    desk.now = 99.0
    assert desk.launch(8.0).state is ReservationState.ENDED


def test_a_launch_has_a_key() -> None:
    """As long as any other."""
    desk = Desk()
    desk.book(10.0, 20.0)
    for key in ("", "k" * 129):
        refusal = desk.refused(LaunchReservation, **job(8.0, launch_key=key))
        assert (refusal.refusal, refusal.field) == (Refusal.INVALID, "idempotency_key")
        assert refusal.reason == (
            f"idempotency_key has {len(key)} characters; 1 to 128 are possible"
        )
    assert desk.launch(8.0, launch_key="k" * 128).launch_key == "k" * 128


def test_a_job_launched_late_starts_late() -> None:
    """In a window that has begun, from the launch, if what is left is enough."""
    desk = Desk()
    desk.book(10.0, 20.0)
    desk.now = 15.0
    assert (
        desk.refused(LaunchReservation, **job(11.0)).reason
        == "the job needs 1 processors for 5.5 s from 15; reservation 1 has 1 until 20"
    )
    desk.launch(8.0)
    desk(ReservationsDue)
    assert (desk.told[-1].state, desk.told[-1].start_time) == (ReservationState.RUNNING, 15.0)
    assert desk.due(19.0).end_time == 19.0


def test_a_job_that_is_cut_off_has_failed() -> None:
    """It runs for the time it requested and no longer; one that ends by itself is completed."""
    for requested, end, outcome in ((8.0, 14.0, Outcome.FAILED), (9.0, 14.5, Outcome.NOT_RUN)):
        desk = Desk()
        desk.book(10.0, 20.0)
        launched = desk.launch(9.0, requested=requested)
        assert (launched.outcome, launched.needed_time) == (None, 4.5)
        ended = desk.due(99.0)
        assert (ended.end_time, ended.outcome) == (end, outcome)


def test_a_reservation_is_given_back() -> None:
    """Its job is cancelled, if it has one; twice is nothing, and so is one that is over."""
    desk = Desk()
    for key in ("a", "b"):
        desk.book(10.0, 20.0, key)
    desk.launch(8.0)
    desk.now = 11.0
    released = desk.asked(ReleaseReservation, reservation=1)
    assert (released.outcome, released.end_time) == (Outcome.CANCELLED, 11.0)
    desk.now = 12.0
    assert desk.asked(ReleaseReservation, reservation=1) is released
    assert desk.asked(ReleaseReservation, reservation=2).outcome is None
    assert desk.state.memory.reservations.free(CPU, 10.0, 20.0) == [(10.0, 20.0, 3)]
    desk.book(12.0, 13.0, "c")
    desk.now = 13.0
    assert desk.asked(ReleaseReservation, reservation=3).state is ReservationState.EXPIRED


def test_an_unused_reservation_expires() -> None:
    """Its time passes, and nothing can be done in it any more; before that moment it can."""
    desk = Desk()
    desk.book(10.0, 20.0)
    desk.now = math.nextafter(20.0, 0.0)
    assert desk(ReservationsDue) == []
    assert desk.state.memory.reservations.reservations[1].is_open
    desk.now = 20.0
    refusal = one(desk(LaunchReservation, owner="me", **job(1.0)), Refuse)
    assert refusal.reason == "reservation 1 is expired"
    assert refusal.refusal is Refusal.PRECONDITION
    assert desk.told[-1].state is ReservationState.EXPIRED


def test_time_is_up_to_date_before_an_answer() -> None:
    """However late the timer is: what a job has left is free for whoever asks then."""
    desk = Desk()
    desk.book(10.0, 20.0, processors=3)
    desk.launch(8.0)
    desk.now = 14.0
    other = desk.book(14.0, 20.0, "b", processors=3)
    states = [each.state for each in desk.told if each.number == 1]
    assert states[-2:] == [ReservationState.RUNNING, ReservationState.ENDED]
    assert desk.told[-1] is other


def test_a_restart_takes_up_what_time_has_done() -> None:
    """What was due meanwhile is noted with the moment at which it was due."""
    desk = Desk()
    desk.book(10.0, 20.0)
    desk.launch(8.0)
    desk.restart()
    desk.now = 50.0
    assert desk(Restarted, load=FREE) == []
    ended = desk.state.memory.reservations.reservations[1]
    assert (ended.state, ended.start_time, ended.end_time) == (ReservationState.ENDED, 10.0, 14.0)
    assert [type(record).__name__ for record in desk.journal] == [
        "ReservationBooked",
        "ReservationLaunched",
        "ReservationStarted",
        "ReservationEnded",
    ]
    assert [record.time for record in desk.journal] == [0.0, 0.0, 50.0, 50.0]


def running_job(needed: float, *, to_the_end: bool = True, requested: float = 16.0) -> Desk:
    """Returns a desk with a job of so many reference seconds that runs from 10 to 20 at most."""
    desk = Desk()
    desk.book(10.0, 20.0, processors=2)
    desk.launch(needed, processors=2, requested=requested, to_the_end=to_the_end)
    assert desk.due(10.0).state is ReservationState.RUNNING
    return desk


def test_a_job_may_run_to_the_end_of_its_reservation() -> None:
    """What it requested is no bound then; without that it is."""
    for to_the_end, end, outcome in (
        (True, 19.0, Outcome.NOT_RUN),
        (False, 18.0, Outcome.FAILED),
    ):
        ended = running_job(18.0, to_the_end=to_the_end).due(99.0)
        assert (ended.end_time, ended.outcome) == (end, outcome)
    cut = running_job(30.0).due(99.0)
    assert (cut.end_time, cut.outcome) == (20.0, Outcome.FAILED)
    whole = running_job(20.0).due(99.0)
    assert (whole.end_time, whole.outcome) == (20.0, Outcome.NOT_RUN)


Window = tuple[float, float]


def move(desk: Desk, old: Window, new: Window, number: int = 1, owner: str = "me") -> Reservation:
    """Moves a reservation."""
    return desk.asked(MoveReservation, reservation=number, old=old, new=new, owner=owner)


def test_a_job_goes_on_in_a_reservation_whose_end_is_moved() -> None:
    """To its own end, or to the new one; the cost is that of the window, and the key is the same."""
    desk = running_job(30.0)
    desk.now = 19.5
    longer = move(desk, (10.0, 20.0), (10.0, 22.0))
    assert (longer.end, longer.run_time, longer.cut_off, longer.revision) == (22.0, 12.0, True, 4)
    assert longer.cost == pytest.approx(10.0 * 2 * 12 / 3600)
    assert desk.state.memory.reservations.free(CPU, 20.0, 22.0) == [(20.0, 22.0, 1)]
    for old in ((10.0, 20.0), (10.0, 22.0), (5.0, 6.0)):
        assert move(desk, old, (10.0, 22.0)) is longer, "repeating is nothing"
    desk.now = 21.0
    assert move(desk, (10.0, 22.0), (10.0, 25.0)).cut_off is False, "it needs no more"
    move(desk, (10.0, 25.0), (10.0, 40.0))
    assert desk.book(10.0, 20.0, processors=2).end == 40.0
    ended = desk.due(99.0)
    assert (ended.end_time, ended.outcome) == (25.0, Outcome.NOT_RUN)
    assert move(desk, (10.0, 25.0), (10.0, 40.0)) is ended, "the same answer when it is over"


def test_a_job_may_be_given_less_time_again() -> None:
    """The end can be moved back, not to before now."""
    desk = running_job(30.0)
    desk.now = 15.0
    assert move(desk, (10.0, 20.0), (10.0, 18.0)).cut_off
    refusal = desk.refused(MoveReservation, reservation=1, old=(10.0, 18.0), new=(10.0, 15.0))
    assert (refusal.refusal, refusal.reason) == (
        Refusal.PRECONDITION,
        "the window ends at 15.0, and it is 15.0",
    )
    assert desk.due(99.0).end_time == 18.0


def test_a_job_with_a_bound_of_its_own_keeps_it() -> None:
    """A later end gives it no more time, and an end before its own is refused."""
    desk = running_job(18.0, to_the_end=False)
    move(desk, (10.0, 20.0), (10.0, 40.0))
    refusal = desk.refused(MoveReservation, reservation=1, old=(10.0, 40.0), new=(10.0, 17.0))
    assert refusal.reason == "the job in reservation 1 would run until 18, beyond 17"
    move(desk, (10.0, 40.0), (10.0, 18.0))
    ended = desk.due(99.0)
    assert (ended.end_time, ended.outcome) == (18.0, Outcome.FAILED)


def test_a_job_launched_late_has_the_time_from_then() -> None:
    """A later end counts from its start, not from the beginning of the window."""
    desk = Desk()
    desk.book(10.0, 20.0)
    desk.now = 15.0
    desk.launch(60.0, requested=8.0, to_the_end=True)
    assert move(desk, (10.0, 20.0), (10.0, 21.0)).run_time == 6.0


def test_a_reservation_begins_earlier_or_later() -> None:
    """Its old time is free for others, also where the two windows overlap; a job waits with it."""
    desk = Desk()
    desk.book(10.0, 20.0, processors=3)
    earlier = move(desk, (10.0, 20.0), (5.0, 15.0))
    assert (earlier.begin, earlier.end, earlier.due_time) == (5.0, 15.0, 15.0)
    assert desk.book(15.0, 20.0, "other", processors=3).number == 2
    refusal = desk.refused(MoveReservation, reservation=1, old=(5.0, 15.0), new=(6.0, 16.0))
    assert refusal.reason == "3 processors of cpu are not free from 6.0 to 16.0"
    later = move(desk, (15.0, 20.0), (17.0, 22.0), 2)
    assert later.begin == 17.0
    desk.launch(4.0, to_the_end=True)
    assert move(desk, (5.0, 15.0), (7.0, 17.0)).due_time == 7.0
    assert desk.due(7.0).start_time == 7.0
    refusal = desk.refused(MoveReservation, reservation=1, old=(7.0, 17.0), new=(6.0, 17.0))
    assert refusal.reason == "the job in reservation 1 runs; only the end can be moved"
    assert desk.due(9.0).outcome is Outcome.NOT_RUN


def test_a_move_that_comes_late_moves_nothing() -> None:
    """It was made, and then the reservation was moved on."""
    desk = Desk()
    desk.book(10.0, 20.0)
    move(desk, (10.0, 20.0), (12.0, 22.0))
    move(desk, (12.0, 22.0), (14.0, 24.0))
    refusal = desk.refused(MoveReservation, reservation=1, old=(10.0, 20.0), new=(12.0, 22.0))
    assert (refusal.refusal, refusal.reason) == (
        Refusal.PRECONDITION,
        "reservation 1 is from 14.0 to 24.0, and not from 10.0 to 20.0",
    )


def test_what_is_not_free_or_over_is_not_moved() -> None:
    """Everything stays as it is; a reservation without a job can be moved, too."""
    desk = running_job(30.0)
    desk.now = 0.0
    desk.book(25.0, 30.0, owner="you", processors=2)
    desk.now = 15.0

    def refused(
        number: int, old: Window, new: Window, owner: str = "me"
    ) -> tuple[Refusal, str, str]:
        refusal = desk.refused(MoveReservation, reservation=number, old=old, new=new, owner=owner)
        return refusal.refusal, refusal.reason, refusal.field

    reason = "2 processors of cpu are not free from 10.0 to 26.0"
    assert refused(1, (10.0, 20.0), (10.0, 26.0)) == (Refusal.PRECONDITION, reason, "")
    assert move(desk, (10.0, 20.0), (10.0, 25.0)).end == 25.0
    for begin, end in (
        (25.0, 25.1 + WINDOW_MAX_S),
        (25.0, math.inf),
        (-math.inf, 25.0),
        (25.0, math.nan),
        (25.0, 25.0),
    ):
        reason = f"window is {begin} to {end}; its end must be after its beginning"
        expected = (Refusal.INVALID, reason, "new_window")
        assert refused(2, (25.0, 30.0), (begin, end), "you") == expected
    most = 25.0 + WINDOW_MAX_S
    assert move(desk, (25.0, 30.0), (25.0, 50.0), 2, "you").end == 50.0
    assert move(desk, (25.0, 50.0), (25.0, most), 2, "you").end == most
    desk.now = 25.0
    desk(ReservationsDue)
    over = (Refusal.PRECONDITION, "reservation 1 is over", "")
    assert refused(1, (10.0, 25.0), (10.0, 60.0)) == over
    assert refused(1, (10.0, 60.0), (10.0, 61.0)) == over


@given(st.data())
def test_moves_never_promise_a_processor_twice(data: st.DataObject) -> None:
    """Whatever is moved where: at no moment is more promised than there is; repeating is nothing."""
    desk = Desk()
    moments = st.integers(0, 30).map(float)
    for number in range(data.draw(st.integers(1, 5))):
        begin, length = data.draw(moments), data.draw(st.integers(1, 9))
        values = wish(begin, begin + length, f"k{number}", processors=data.draw(st.integers(1, 3)))
        desk(BookReservation, owner="me", **values)
    book = desk.state.memory.reservations
    for _ in range(data.draw(st.integers(1, 12))):
        if not book.reservations:
            break
        number = data.draw(st.sampled_from(sorted(book.reservations)))
        before, begin = book.reservations[number], data.draw(moments)
        new = begin, begin + data.draw(st.integers(1, 9))
        asked = {"reservation": number, "old": (before.begin, before.end), "new": new}
        desk(MoveReservation, owner="me", **asked)
        after = book.reservations[number]
        desk(MoveReservation, owner="me", **asked)
        assert book.reservations[number] is after
        assert (after.begin, after.end) in {(before.begin, before.end), new}
        desk.restart()
        book = desk.state.memory.reservations
        assert book.reservations[number] == after, "it is durable"
        for moment in range(40):
            held = [one.processors for one in book.open.values() if one.begin <= moment < one.end]
            assert sum(held) <= CPU.processors


def test_a_resource_that_is_no_longer_configured_is_not_used() -> None:
    """What was promised of it stays, and can be given back."""
    desk = Desk()
    desk.book(10.0, 20.0)
    desk.book(10.0, 20.0, "b")
    desk.restart(replace(desk.settings, resources=()))
    for event, values in (
        (LaunchReservation, job(1.0)),
        (MoveReservation, {"reservation": 1, "old": (10.0, 20.0), "new": (10.0, 30.0)}),
    ):
        refusal = desk.refused(event, **values)
        assert (refusal.refusal, refusal.field) == (Refusal.NOT_FOUND, "resource_id")
        assert refusal.reason == "there is no resource 'cpu' here"
    assert desk.asked(ReleaseReservation, reservation=1).state is ReservationState.RELEASED
    desk.now = 30.0
    desk(ReservationsDue)
    assert desk.told[-1].state is ReservationState.EXPIRED
