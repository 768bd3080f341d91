"""What the broker wants done at sites, over real gRPC to a site that is made up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from grpc import aio
from structlog.testing import capture_logs

from broker.executor.dispatcher import Dispatcher
from broker.executor.remote import RemoteSite
from broker.executor.site_monitor import Patience
from broker.model.plan import Placement
from broker.model.program import Program
from broker.model.resources import Resource
from broker.model.workflow import Demand
from broker.scheduler.commands import Book, Launch, LaunchGroup, Move, Release, Withdraw
from broker.scheduler.events import (
    Booked,
    BookingLost,
    Ended,
    Event,
    Moved,
    MoveRefused,
    Offered,
    Refused,
    Released,
    SiteDown,
    SiteLost,
    SiteUp,
    Started,
)
from broker.scheduler.records import Group, Hold
from broker.scheduler.state_tables import Booking
from grms.daemon.clock import ScaledClock
from grms.util.outcomes import Outcome
from grms.v1 import request_pb2, reservation_pb2
from lrms_sim.workload.requests import Request
from tests.broker.fake_site import STATES, FakeSite
from tests.waiting import meanwhile, until

FAR = 4e9
"""A moment that no test reaches; seconds."""


def booking(*resources: str, reservations: tuple[str, ...] = (), name: str = "e-1") -> Booking:
    """Returns an attempt on resources of the site."""
    demands = tuple(Demand(each) for each in resources)
    placement = Placement("flow", "t", demands, FAR, FAR + 100, 1.0)
    holds = tuple(Hold("riga", each, 1) for each in resources)
    return Booking(name, placement, holds, 50.0, reservations)


class Scene:
    """A dispatcher with one site."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "site.sock"
        self.site = FakeSite()
        self.events: list[Event] = []
        self.dispatcher: Dispatcher

    def heard(self, kind: type[Event]) -> bool:
        """Returns whether an event of a kind has come."""
        return any(isinstance(event, kind) for event in self.events)

    def launch(self, what: Booking, program: Program | None = None) -> None:
        """Has it launched."""
        self.dispatcher.do(Launch(what, program, 70.0, "flow/t"))


@asynccontextmanager
async def scene(
    folder: Path, *, patience: Patience | None = None, learning: bool = False
) -> AsyncIterator[Scene]:
    """Yields a dispatcher whose site answers."""
    made = Scene(folder)
    await made.site.start(made.path)
    options = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 100)]
    async with aio.insecure_channel(f"unix:{made.path}", options=options) as channel:
        made.dispatcher = Dispatcher(
            {"riga": RemoteSite(channel, call_s=300.0)},
            made.events.append,
            ScaledClock(1.0, 0.0),
            structlog.get_logger(),
            patience or Patience(down_s=600.0),  # no machine is so slow that it is silent
            learning=["riga"] if learning else [],
        )
        task = asyncio.create_task(made.dispatcher.run(), name="dispatcher")
        await asyncio.sleep(0)
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.wait([task])
            await made.site.stop()


async def test_a_task_is_booked_launched_and_ends(tmp_path: Path) -> None:
    """Each step leads to its event, with the site's moments; the job has the work as its time."""
    async with scene(tmp_path) as made:
        what = booking("a")
        assert isinstance(made.dispatcher.site("riga"), RemoteSite)
        assert made.dispatcher.site("kiel") is None
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(Booked))
        assert made.events == [Booked(0, "e-1", ("1",))]
        made.launch(what)
        await until(lambda: made.heard(Started))
        job = made.site.launches["1"]
        assert (job.processors, job.requested_time_s, job.simulated.run_time_s) == (1, 70, 70)
        assert made.site.to_the_end["1"]
        made.site.finish("1")
        await until(lambda: made.heard(Ended))
        assert made.events[1:] == [
            Started(0, "e-1", 5.0),
            Ended(0, "e-1", Outcome.COMPLETED, 5.0, 9.0),
        ]
        # Nothing is remembered of what is over.
        assert made.dispatcher._entries == {}
        assert made.dispatcher._by_reservation == {}


def windows(made: Scene) -> list[tuple[float, float]]:
    """Returns where the site has the reservations."""
    return [(each.window.begin_s, each.window.end_s) for each in made.site.reservations.values()]


async def test_an_attempt_is_moved_with_all_of_its_reservations(tmp_path: Path) -> None:
    """However often the question or its answer is lost."""
    async with scene(tmp_path) as made:
        what = booking("a", "b")
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(Booked))
        made.site.lose_answers = 1
        made.dispatcher.do(Move(what, FAR - 5, FAR + 150))
        await until(lambda: made.heard(Moved))
        assert made.events[-1] == Moved(0, "e-1", FAR - 5, FAR + 150)
        assert windows(made) == [(FAR - 5, FAR + 150)] * 2
        assert made.site.calls.count("move") == 3


async def test_an_attempt_that_cannot_be_moved_as_a_whole_stays(tmp_path: Path) -> None:
    """What was moved is moved back, also by the broker's next life."""
    async with scene(tmp_path) as made:
        what = booking("a", "b")
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(Booked))
        before = windows(made)
        made.site.busy.add("b")
        for _ in range(2):
            made.dispatcher.do(Move(what, FAR - 5, FAR + 150))
            await until(lambda: made.heard(MoveRefused))
            assert windows(made) == before
            assert made.events.pop() == MoveRefused(0, "e-1", "not free", taken=True)
            # The first was moved, and the broker died before it asked for the second.
            made.site.reservations["1"].window.begin_s = FAR - 5
            made.site.reservations["1"].window.end_s = FAR + 150


async def test_an_attempt_of_which_a_part_is_stuck_elsewhere_is_lost(tmp_path: Path) -> None:
    """Its window has been taken meanwhile; a run that only has more time than it needs goes on."""
    async with scene(tmp_path) as made:
        for name, begin, kinds in (
            ("1", FAR + 5, [BookingLost, MoveRefused]),
            ("3", FAR, [MoveRefused]),
        ):
            made.site.busy.clear()
            what = booking("a", "b", name=f"e-{name}")
            made.dispatcher.do(Book(what))
            await until(lambda: made.heard(Booked))
            made.events.clear()
            # The first is where it should go already, so its being taken shows on the way back.
            made.site.reservations[name].window.begin_s = begin
            made.site.reservations[name].window.end_s = FAR + 150
            made.site.busy |= {"a", "b"}
            made.dispatcher.do(Move(what, begin, FAR + 150))
            await until(lambda: made.heard(MoveRefused))
            assert [type(each) for each in made.events] == kinds
            for each in made.events:
                if isinstance(each, BookingLost):
                    assert each == BookingLost(
                        0, what.booking, "part of it was moved, and cannot be moved back: not free"
                    )


async def test_a_move_that_is_refused_is_told(tmp_path: Path) -> None:
    """The time is somebody's; the run goes on."""
    async with scene(tmp_path) as made:
        what = booking("a")
        made.dispatcher.do(Book(what))
        made.launch(what)
        made.site.refuse = "move"
        made.dispatcher.do(Move(what, FAR, FAR + 150))
        await until(lambda: made.heard(MoveRefused))
        (told,) = [each for each in made.events if isinstance(each, MoveRefused)]
        assert (told.booking, told.taken) == ("e-1", True)
        made.site.finish("1")
        await until(lambda: made.heard(Ended))
        made.dispatcher.do(Move(what, FAR, FAR + 200))
        assert made.events[-1] == MoveRefused(0, "e-1", "it is over")
        assert made.site.calls.count("move") == 1


async def test_a_program_is_handed_on_as_it_is(tmp_path: Path) -> None:
    """A site with a real batch system gets the task's script."""
    async with scene(tmp_path) as made:
        what = booking("a")
        made.dispatcher.do(Book(what))
        made.launch(what, Program("t", "#!/bin/sh\n").limited(1.0))
        await until(lambda: made.heard(Started))
        assert made.site.launches["1"].program.script == "#!/bin/sh\n"


async def test_lost_answers_are_asked_for_again(tmp_path: Path) -> None:
    """A repeated call does not reserve or launch a second time."""
    async with scene(tmp_path) as made:
        what = booking("a")
        made.site.lose_answers = 2
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(Booked))
        made.site.lose_answers = 2
        made.launch(what)
        await until(lambda: made.site.calls.count("launch") == 3)
        assert len(made.site.reservations) == len(made.site.launches) == 1
        assert not made.heard(BookingLost)


async def test_a_refused_booking_is_lost_and_names_the_hold(tmp_path: Path) -> None:
    """The time belongs to somebody else; nothing is asked again for its release."""
    async with scene(tmp_path) as made:
        what = booking("a")
        made.site.refuse = "book"
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(BookingLost))
        assert made.events == [BookingLost(0, "e-1", "not free", (0,))]
        made.dispatcher.do(Release(what))
        await until(lambda: made.heard(Released))
        assert made.site.calls == ["book"]


async def test_a_refused_launch_is_lost(tmp_path: Path) -> None:
    """It did not run and will not."""
    async with scene(tmp_path) as made:
        what = booking("a")
        made.site.refuse = "launch"
        made.dispatcher.do(Book(what))
        made.launch(what)
        await until(lambda: made.heard(BookingLost))
        assert made.events[-1] == BookingLost(0, "e-1", "too long")


async def test_several_resources_are_reserved_together_and_released(tmp_path: Path) -> None:
    """The job runs on the first; the release gives all of them back."""
    async with scene(tmp_path) as made:
        what = booking("a", "b")
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(Booked))
        assert made.events == [Booked(0, "e-1", ("1", "2"))]
        made.dispatcher.do(Release(what))
        await until(lambda: made.heard(Released))
        released = {each.state for each in made.site.reservations.values()}
        assert released == {STATES.RESERVATION_STATE_RELEASED}


async def test_releasing_a_run_that_has_ended_tells_its_end_first(tmp_path: Path) -> None:
    """What was quicker than its cancellation counts as done."""
    async with scene(tmp_path) as made:
        made.site.reservations["7"] = reservation_pb2.Reservation(
            reservation_id="7",
            state=STATES.RESERVATION_STATE_ENDED,
            start_time_s=1.0,
            end_time_s=2.0,
            outcome=request_pb2.OUTCOME_COMPLETED,
        )
        made.dispatcher.do(Release(booking("a", reservations=("7",))))
        await until(lambda: made.heard(Released))
        assert [type(event) for event in made.events] == [Started, Ended, Released]


async def test_what_was_booked_before_a_restart_is_not_booked_again(tmp_path: Path) -> None:
    """The launch is repeated under its key and tells how the run stands."""
    async with scene(tmp_path) as made:
        first = booking("a")
        made.dispatcher.do(Book(first))
        made.launch(first)
        await until(lambda: made.heard(Started))
        made.site.finish("1")
        await until(lambda: made.heard(Ended))
        made.events.clear()
        again = booking("a", reservations=("1",))
        made.dispatcher.do(Book(again))
        made.launch(again)
        await until(lambda: made.heard(Ended))
        assert made.site.calls == ["book", "launch", "launch"]


async def test_a_run_of_before_a_restart_is_heard_of(tmp_path: Path) -> None:
    """Its end is told as soon as the site tells it, without another call."""
    async with scene(tmp_path) as made:
        await until(lambda: made.site.watched)
        made.site.reservations["7"] = reservation_pb2.Reservation(
            reservation_id="7", state=STATES.RESERVATION_STATE_RUNNING, start_time_s=1.0
        )
        made.dispatcher.do(Book(booking("a", reservations=("7",))))
        made.site.finish("7")
        await until(lambda: made.heard(Ended))
        assert made.events == [
            Started(0, "e-1", 1.0),
            Ended(0, "e-1", Outcome.COMPLETED, 1.0, 9.0),
        ]
        assert made.dispatcher._entries == {}


async def test_what_a_newer_site_says_in_later_words_ends_nothing_but_what_has_ended(
    tmp_path: Path,
) -> None:
    """A state that is not known here is passed over; an end of a later kind is no success."""
    async with scene(tmp_path) as made:
        what = booking("a")
        made.dispatcher.do(Book(what))
        made.launch(what)
        await until(lambda: made.heard(Started))
        made.site.change("1", state=99)
        made.site.change("1", state=STATES.RESERVATION_STATE_ENDED, end_time_s=9.0, outcome=99)
        await until(lambda: made.heard(Ended))
        assert made.events[-1] == Ended(0, "e-1", Outcome.FAILED, 5.0, 9.0)
        assert not made.heard(SiteDown)


@pytest.mark.parametrize(("end", "asked"), [(FAR + 100, ["book", "book", "release"]), (0.0, [])])
async def test_what_may_have_been_reserved_is_released(
    tmp_path: Path, end: float, asked: list[str]
) -> None:
    """Whether it was is asked, unless its time is over; what the site refuses it does not have."""
    async with scene(tmp_path) as made:
        what = booking("a", "b")
        what.placement = replace(what.placement, start=end - 100, end=end)
        made.site.busy.add("b")
        made.dispatcher.do(Release(what))
        await until(lambda: made.heard(Released))
        assert made.site.calls == asked
        assert made.events == [Released(0, "e-1")]
        assert made.dispatcher._entries == {}
        assert made.dispatcher._by_reservation == {}


async def test_a_run_that_its_site_ends_is_told_as_such(tmp_path: Path) -> None:
    """A reservation that is released by somebody else while it runs."""
    async with scene(tmp_path) as made:
        what = booking("a")
        made.dispatcher.do(Book(what))
        made.launch(what)
        await until(lambda: made.heard(Started))
        made.site.change("1", state=STATES.RESERVATION_STATE_RELEASED)
        await until(lambda: made.heard(Ended))
        ended = made.events[-1]
        assert isinstance(ended, Ended)
        assert ended.outcome is Outcome.CANCELLED


async def test_a_reservation_that_expires_is_lost(tmp_path: Path) -> None:
    """Its time passed without a run."""
    async with scene(tmp_path) as made:
        made.dispatcher.do(Book(booking("a")))
        await until(lambda: made.heard(Booked))
        made.site.change("1", state=STATES.RESERVATION_STATE_EXPIRED)
        await until(lambda: made.heard(BookingLost))


async def test_a_booking_that_is_answered_with_one_that_is_over_is_lost(tmp_path: Path) -> None:
    """As after a silence that was longer than its time; it is told once, and it is not booked."""
    async with scene(tmp_path) as made:
        what = booking("a")
        await until(lambda: made.site.watched)
        await made.site.Book(
            reservation_pb2.BookRequest(idempotency_key="e-1.0", resource_id="a"), None
        )
        # Only the answer says so: nobody was told when it expired.
        made.site.reservations["1"].state = STATES.RESERVATION_STATE_EXPIRED
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(BookingLost))
        made.site.change("1", state=STATES.RESERVATION_STATE_EXPIRED)
        made.dispatcher.do(Release(what))
        await until(lambda: made.heard(Released))
        assert made.events == [
            BookingLost(0, "e-1", "its reservation is expired"),
            Released(0, "e-1"),
        ]


async def test_a_booking_that_is_answered_with_one_that_has_run_is_told_so(tmp_path: Path) -> None:
    """The site knows more than the broker, whose journal was put back: nothing else will tell it."""
    async with scene(tmp_path) as made:
        await until(lambda: made.site.watched)
        await made.site.Book(
            reservation_pb2.BookRequest(idempotency_key="e-1.0", resource_id="a"), None
        )
        made.site.reservations["1"].state = STATES.RESERVATION_STATE_RUNNING
        made.site.reservations["1"].start_time_s = 5.0
        made.dispatcher.do(Book(booking("a")))
        await until(lambda: made.heard(Started))
        assert made.events == [Booked(0, "e-1", ("1",)), Started(0, "e-1", 5.0)]


async def test_the_end_of_a_run_is_told_once(tmp_path: Path) -> None:
    """Though its site says it to who watches and to who releases."""
    async with scene(tmp_path) as made:
        what = booking("a")
        made.dispatcher.do(Book(what))
        made.launch(what)
        await until(lambda: made.heard(Started))
        made.dispatcher.do(Release(what))
        made.site.finish("1")
        await until(lambda: made.heard(Released))
        assert [type(event) for event in made.events].count(Ended) == 1


async def test_a_silent_site_is_down_then_lost_then_back(tmp_path: Path) -> None:
    """What was asked meanwhile is answered when it is back."""
    async with scene(tmp_path, patience=Patience(0.3, 0.6)) as made:
        made.dispatcher.do(Book(booking("a")))
        await until(lambda: made.heard(Booked))
        await made.site.stop()
        await until(lambda: made.heard(SiteLost))
        # Where connecting took long, the site was down before.
        assert [type(event) for event in made.events[-2:]] == [SiteDown, SiteLost]
        made.launch(booking("a", reservations=("1",)))
        await made.site.start(made.path)
        await until(lambda: made.heard(SiteUp) and made.heard(Started))
        assert len(made.site.launches) == 1


async def test_a_release_ends_what_was_being_repeated(tmp_path: Path) -> None:
    """A booking at a silent site is given up, and released when the site is back."""
    async with scene(tmp_path, patience=Patience(0.3, 600)) as made:
        await made.site.stop()
        what = booking("a")
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(SiteDown))
        made.dispatcher.do(Release(what))
        await made.site.start(made.path)
        await until(lambda: made.heard(Released))
        assert not made.heard(Booked)
        states = [each.state for each in made.site.reservations.values()]
        assert states in ([], [STATES.RESERVATION_STATE_RELEASED])


async def test_a_site_that_is_not_configured_any_more_refuses(tmp_path: Path) -> None:
    """The task is planned elsewhere."""
    async with scene(tmp_path) as made:
        what = booking("a")
        what.holds = (Hold("gone", "a", 1),)
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(BookingLost))
        # Its time is nobody else's, so that nothing has to be avoided.
        reason = "there is no site 'gone' in the configuration"
        assert made.events == [BookingLost(0, "e-1", reason)]


@pytest.mark.parametrize("reservations", [(), ("1",)], ids=["asked for", "booked"])
async def test_what_was_only_booked_at_a_site_that_is_gone_is_lost(
    tmp_path: Path, reservations: tuple[str, ...]
) -> None:
    """Nothing of it has run, and others are booked and launched as before."""
    async with scene(tmp_path) as made:
        what = booking("a", reservations=reservations)
        what.holds = (Hold("gone", "a", 1),)
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(BookingLost))
        other = booking("a", name="e-2")
        made.dispatcher.do(Book(other))
        made.launch(other)
        await until(lambda: made.heard(Started))


PROGRAM = Program("t", "#!/bin/sh\n", request=Request.of_processors(1, 60.0))


@pytest.mark.parametrize("program", [None, PROGRAM], ids=["simulated", "program"])
async def test_a_run_at_a_site_that_is_gone_is_waited_for(
    tmp_path: Path, program: Program | None
) -> None:
    """It may run there: it is neither lost nor run elsewhere before its site is back in the configuration."""
    async with scene(tmp_path) as made:
        first = booking("a", name="e-9")
        made.dispatcher.do(Book(first))
        made.launch(first)
        await until(lambda: made.heard(Started))
        made.events.clear()
        sites = dict(made.dispatcher._sites)
        made.dispatcher._sites = {}
        what = booking("a", reservations=("1",))
        with capture_logs() as logs:
            made.dispatcher._log = structlog.get_logger()
            made.dispatcher.do(Book(what))
            made.dispatcher.do(Launch(what, program, 70.0, "flow/t", again=True))
            await until(lambda: bool(logs))
        assert logs == [
            {
                "event": "run_at_a_site_that_is_not_configured",
                "log_level": "warning",
                "site": "riga",
                "booking": "e-1",
                "cure": "configure it again, or cancel the workflow",
            }
        ]
        # What the site still says of the run that began may be heard on the way: nothing else is.
        begun = Started(0, "e-1", 5.0)
        assert all(event == begun for event in made.events)
        made.dispatcher._sites = sites
        await until(lambda: made.heard(Started))
        assert all(event == begun for event in made.events)


async def test_a_run_that_is_waited_for_can_be_given_up(tmp_path: Path) -> None:
    """Its workflow is cancelled: nothing is told as ended as long as nobody knows, and it is released when its site is back."""
    async with scene(tmp_path) as made:
        first = booking("a", name="e-9")
        made.dispatcher.do(Book(first))
        made.launch(first)
        await until(lambda: made.heard(Started))
        made.events.clear()
        sites = dict(made.dispatcher._sites)
        made.dispatcher._sites = {}
        what = booking("a", reservations=("1",))
        made.dispatcher.do(Book(what))
        made.dispatcher.do(Launch(what, PROGRAM, 70.0, "flow/t", again=True))
        made.dispatcher.do(Release(what))
        await asyncio.sleep(0)
        assert made.events == []
        made.dispatcher._sites = sites
        await until(lambda: made.heard(Released))


@pytest.mark.parametrize("before", ["a restart", "no answer", "nothing"])
async def test_a_program_that_its_site_has_forgotten_may_have_run(
    tmp_path: Path, before: str
) -> None:
    """Its end is unknown, which its workflow says what to do about; one that was launched for the first time is lost."""
    async with scene(tmp_path) as made:
        what = booking("a")
        made.dispatcher.do(Book(what))
        await until(lambda: made.heard(Booked))
        if before == "no answer":
            made.site.refusal = (grpc.StatusCode.UNAVAILABLE, "")
        else:
            made.site.reservations.clear()
        made.dispatcher.do(Launch(what, PROGRAM, 70.0, "flow/t", again=before == "a restart"))
        await until(lambda: "launch" in made.site.calls)
        made.site.reservations.clear()
        await until(lambda: made.heard(Ended) or made.heard(BookingLost))
        last = made.events[-1]
        if before == "nothing":
            assert isinstance(last, BookingLost)
        else:
            assert isinstance(last, Ended)
            assert (last.outcome, last.reason[:15]) == (Outcome.UNKNOWN, "it may have run")


def offered(made: Scene) -> list[Offered]:
    """Returns what the site's offers have come to."""
    return [event for event in made.events if isinstance(event, Offered)]


async def test_a_site_is_asked_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first contact, now and then, and again when it is back; prices are for a second."""
    monkeypatch.setattr("broker.executor.site_monitor.OFFERS_EVERY_S", 0.05)
    async with scene(tmp_path, learning=True) as made:
        await until(lambda: bool(offered(made)))
        first = offered(made)[0]
        assert (first.site, first.offers) == ("riga", ())
        assert first.end - first.begin == pytest.approx(7 * 86400)
        offer = made.site.offers.offers.add()
        offer.resource.resource_id = "gpu"
        offer.resource.labels["kind"] = "accelerator"
        offer.resource.processors, offer.resource.speed = 3, 2.5
        offer.resource.cost_per_hour = 7200.0
        offer.free.add(window=reservation_pb2.Window(begin_s=1, end_s=2), processors=3)
        await until(lambda: bool(offered(made)[-1].offers))
        (found,) = offered(made)[-1].offers
        assert found.resource == Resource(
            "gpu", "accelerator", performance=2.5, price=2.0, capacity=3
        )
        assert (found.labels_kind, found.free) == (True, ((1.0, 2.0, 3),))
        await made.site.stop()
        count = len(offered(made))
        await made.site.start(made.path)
        await until(lambda: len(offered(made)) > count)


async def test_an_offer_that_means_nothing_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A speed of nothing is no resource; the site is asked again, and books meanwhile."""
    monkeypatch.setattr("broker.executor.site_monitor.OFFERS_EVERY_S", 0.05)
    async with scene(tmp_path, learning=True) as made:
        made.site.offers.offers.add().resource.resource_id = "bad"
        await until(lambda: made.site.calls.count("offer") > 3)
        assert not any(event.offers for event in offered(made))
        made.dispatcher.do(Book(booking("a")))
        await until(lambda: made.heard(Booked))


async def test_a_run_that_ended_and_was_forgotten_without_contact_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next contact; what the site reports then is not asked for."""
    monkeypatch.setattr("broker.executor.dispatcher.REPORTED_WITHIN_S", 0.05)
    async with scene(tmp_path) as made:
        await until(lambda: made.site.watched)
        for name in ("e-1", "e-2"):
            what = booking("a", name=name)
            made.dispatcher.do(Book(what))
            made.launch(what, PROGRAM)
        await until(lambda: made.site.calls.count("launch") == 2)
        await made.site.stop()
        (first, _second) = made.site.reservations
        del made.site.reservations[first]
        await made.site.start(made.path)
        await until(lambda: made.heard(Ended))
        (end,) = (each for each in made.events if isinstance(each, Ended))
        assert (end.booking, end.outcome) == ("e-1", Outcome.UNKNOWN)
        assert made.site.calls.count("launch") == 3


async def test_a_site_is_followed_and_asked_over_its_new_connection(tmp_path: Path) -> None:
    """The old one is closed in the middle of the watch and of a call: neither ends for good by that."""
    site, path, asked = FakeSite(), tmp_path / "site.sock", asyncio.Event()
    answers, book, watch = asyncio.Event(), site.Book, site.Watch
    watches: list[object] = []

    async def watched(request: Any, context: Any) -> AsyncIterator[Any]:
        watches.append(request)
        async for each in watch(request, context):
            yield each

    async def slow(request: reservation_pb2.BookRequest, context: Any) -> Any:
        asked.set()
        await answers.wait()
        return await book(request, context)

    site.Book, site.Watch = slow, watched  # type: ignore[method-assign]  # as one that is slow
    await site.start(path)
    old, new = (aio.insecure_channel(f"unix:{path}") for _ in range(2))
    remote, events = RemoteSite(old, call_s=300.0), list[Event]()
    patience = Patience(down_s=600.0)
    dispatcher = Dispatcher(
        {"riga": remote}, events.append, ScaledClock(1.0, 0.0), structlog.get_logger(), patience
    )
    async with meanwhile(dispatcher.run()):
        await until(lambda: site.watched)
        dispatcher.do(Book(booking("cpu")))
        await asked.wait()
        remote.speak_over(new)
        await old.close()
        answers.set()
        await until(lambda: len(watches) == 2 and any(isinstance(each, Booked) for each in events))
    await new.close()
    await site.stop()


def group_of(*scripts: str, again: bool = False) -> LaunchGroup:
    """Returns programs that are to share a unit."""
    group = Group("e-1", 1, FAR, FAR + 100)
    launches = []
    for number, script in enumerate(scripts, start=1):
        one = replace(booking("a", name=f"e-{number}"), group=group)
        asked = Request.of_processors(1, 60.0)
        program = Program("t", f"#!/bin/sh\n{script}\n", request=asked)
        launches.append(Launch(one, program, 1.0, "flow/t", again=again))
    return LaunchGroup(group, tuple(launches))


async def test_a_group_is_launched_in_one_go(tmp_path: Path) -> None:
    """Each program has its reservation and its end; one that its site can never run is refused by itself.

    An answer that is lost is asked for again, and what is given up meanwhile is released once it is known.
    """
    async with scene(tmp_path) as made:
        made.site.lose_answers = 1
        command = group_of("true", "refused", "sleep 9")
        made.dispatcher.do(command)
        made.dispatcher.do(Release(command.launches[2].booking))
        await until(lambda: made.heard(Released))
        made.site.change("1", state=STATES.RESERVATION_STATE_RUNNING, start_time_s=5.0)
        made.site.change(
            "1",
            state=STATES.RESERVATION_STATE_ENDED,
            end_time_s=6.0,
            outcome=request_pb2.OUTCOME_COMPLETED,
            exit_code=0,
        )
        await until(lambda: made.heard(Ended))
        made.dispatcher.do(Release(command.launches[1].booking))
        await until(lambda: Released(0, "e-2") in made.events)
    assert made.site.calls.count("group") == 2
    assert made.site.calls.count("release") == 1
    assert made.site.reservations["2"].state == STATES.RESERVATION_STATE_RELEASED
    assert [each.booking for each in made.events if isinstance(each, Booked)] == ["e-1", "e-3"]
    (refused,) = (each for each in made.events if isinstance(each, Refused))
    assert (refused.booking, refused.reason) == (
        "e-2",
        "its site refuses it: no such interpreter",
    )
    (end,) = (each for each in made.events if isinstance(each, Ended))
    assert (end.booking, end.outcome, end.exit_code) == ("e-1", Outcome.COMPLETED, 0)


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNIMPLEMENTED,
    ],
)
async def test_a_group_that_is_refused_has_not_run(tmp_path: Path, code: grpc.StatusCode) -> None:
    """All of it is lost, and there is nothing to be released at its site."""
    async with scene(tmp_path) as made:
        made.site.refusal = code, ""
        command = group_of("true", "true")
        made.dispatcher.do(command)
        await until(lambda: made.heard(BookingLost))
        for launch in command.launches:
            made.dispatcher.do(Release(launch.booking))
        await until(lambda: Released(0, "e-2") in made.events)
    lost = [each for each in made.events if isinstance(each, BookingLost)]
    assert [(each.booking, each.taken) for each in lost] == [("e-1", (0,)), ("e-2", (0,))]
    assert "release" not in made.site.calls
    assert "book" not in made.site.calls


async def test_a_program_of_a_group_that_is_withdrawn_is_given_back(tmp_path: Path) -> None:
    """Its site is asked once, and says what has become of it; of what is over nothing is asked."""
    async with scene(tmp_path) as made:
        command = group_of("true", "true")
        made.dispatcher.do(command)
        await until(lambda: made.heard(Booked))
        made.dispatcher.do(Withdraw(command.launches[0].booking))
        await until(lambda: made.heard(BookingLost))
        made.dispatcher.do(Withdraw(command.launches[0].booking))
        made.dispatcher.do(Release(command.launches[0].booking))
        await until(lambda: made.heard(Released))
    assert BookingLost(0, "e-1", "its reservation is released") in made.events
    assert made.site.calls.count("release") == 1


async def test_what_a_site_gives_back_of_a_group_needs_no_release(tmp_path: Path) -> None:
    """It has not begun and never will; its site has said so."""
    async with scene(tmp_path) as made:
        command = group_of("true")
        made.dispatcher.do(command)
        await until(lambda: made.heard(Booked))
        made.site.change("1", state=STATES.RESERVATION_STATE_RELEASED, reason="no time")
        await until(lambda: made.heard(BookingLost))
        made.dispatcher.do(Release(command.launches[0].booking))
        await until(lambda: made.heard(Released))
    assert BookingLost(0, "e-1", "no time") in made.events
    assert "release" not in made.site.calls
