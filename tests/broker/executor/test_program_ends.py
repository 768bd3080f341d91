"""How programs end for the broker: their outputs are looked at, and brought for those that are given them."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from broker.executor.base import (
    Order,
    ProgramRefused,
    Reservation,
    ReservationRefused,
    ReservationState,
    SiteUnavailable,
    Window,
    Wish,
)
from broker.executor.contents import Contents
from broker.executor.dispatcher import Dispatcher
from broker.executor.programs import NoGroups
from broker.executor.site_monitor import Patience
from broker.model.plan import Placement
from broker.model.program import Input, Output, Program
from broker.model.workflow import Demand
from broker.scheduler.commands import Book, Launch, Release
from broker.scheduler.events import (
    BookingLost,
    Ended,
    Event,
    HandedOver,
    Hindered,
    Refused,
    Released,
)
from broker.scheduler.records import Hold
from broker.scheduler.state_tables import Booking
from grms.client import ResultFile, Results
from grms.daemon.clock import ScaledClock
from grms.daemon.uploads import NoRoomError
from grms.util.outcomes import Outcome
from tests.waiting import meanwhile, until

CONTENT = b"left by a program"
DIGEST = hashlib.sha256(CONTENT).digest()
PROGRAM = Program("t", "#!/bin/sh\n", outputs=("x", "y")).limited(1.0)


def left(*problems: str) -> Results:
    """Returns what a program has left, each file with its problem."""
    files = [
        ResultFile(name, 0 if problem else len(CONTENT), b"" if problem else DIGEST, problem)
        for name, problem in zip(("x", "y"), problems, strict=False)
    ]
    return Results(tuple(files), complete=True, problem="")


class ProgramSite(NoGroups):
    """A site that runs what it is told at once; `answers` is what it says of files, the last again and again."""

    def __init__(self) -> None:
        self.answers: list[Results | Exception] = [left("", "")]
        self.content = CONTENT
        self.orders: list[Order] = []
        self.released: list[str] = []
        self.refuses: Exception | None = None
        self.end = Reservation("r", ReservationState.ENDED, 1.0, 2.0, Outcome.COMPLETED, "job-1", 0)

    async def book(self, wish: Wish) -> Reservation:
        """Reserves."""
        return Reservation(wish.key, ReservationState.BOOKED)

    async def restore(self, reservation_id: str, wish: Wish) -> None:
        """Does nothing."""

    async def launch(self, reservation_id: str, order: Order) -> Reservation:
        """Runs a program."""
        self.orders.append(order)
        if self.refuses is not None:
            raise self.refuses
        return replace(self.end, reservation_id=reservation_id)

    async def move(self, reservation_id: str, old: Window, new: Window) -> Reservation:
        """Moves nothing."""
        raise ReservationRefused(f"{reservation_id} stays: {old}, {new}")

    async def release(self, reservation_id: str) -> Reservation | None:
        """Says how it has ended."""
        self.released.append(reservation_id)
        return replace(self.end, reservation_id=reservation_id) if self.orders else None

    async def offer(self, begin: float, end: float) -> None:
        """Says nothing."""

    async def watch(self) -> AsyncIterator[Reservation | None]:
        """Yields nothing that is new."""
        yield None
        await asyncio.Event().wait()

    async def files(self, reservation_id: str, job: str) -> Results:
        """Says what a program has left."""
        assert (reservation_id, job) == ("e-1.0", "job-1")
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def read(
        self, reservation_id: str, job: str, name: str, begin: int = 0
    ) -> AsyncIterator[bytes]:
        """Yields a file."""
        assert (reservation_id, job, name) == ("e-1.0", "job-1", "x")
        yield self.content[begin:]


class Scene:
    """A dispatcher with such a site."""

    def __init__(self, folder: Path) -> None:
        self.site = ProgramSite()
        self.events: list[Event] = []
        self.contents = Contents(folder / "files", file_bytes=100, total_bytes=1000)
        self.dispatcher = Dispatcher(
            {"riga": self.site},
            self.events.append,
            ScaledClock(1.0, 0.0),
            structlog.get_logger(),
            Patience(down_s=600.0),
            contents=self.contents,
        )
        placement = Placement("flow", "t", (Demand("a"),), 4e9, 4e9 + 100, 1.0)
        self.booking = Booking("e-1", placement, (Hold("riga", "a", 1),), 50.0)

    def launch(self, *inputs: Input, needed: frozenset[str] = frozenset()) -> None:
        """Has the program run."""
        self.dispatcher.do(Book(self.booking))
        self.dispatcher.do(
            Launch(self.booking, PROGRAM, 1.0, "flow/t", inputs=inputs, needed=needed)
        )

    async def end(self) -> Ended:
        """Returns how the program has ended, once that is told."""
        await until(lambda: any(isinstance(each, Ended) for each in self.events))
        (told,) = [each for each in self.events if isinstance(each, Ended)]
        return told


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    """Yields a dispatcher that works."""
    made = Scene(folder)
    async with meanwhile(made.dispatcher.run()):
        await asyncio.sleep(0)
        yield made


async def test_a_program_has_completed_when_its_outputs_are_there(tmp_path: Path) -> None:
    """What others are given is at the broker by then; files that are not final are waited for."""
    async with scene(tmp_path) as made:
        made.site.answers = [
            Results((), complete=False, problem="on the way"),
            SiteUnavailable(),
            left("", ""),
        ]
        given = Input("in", len(CONTENT), DIGEST)
        made.launch(given, needed=frozenset({"x"}))
        told = await made.end()
        assert (told.outcome, told.exit_code, told.reason) == (Outcome.COMPLETED, 0, "")
        assert told.outputs == (
            Output("x", len(CONTENT), DIGEST),
            Output("y", len(CONTENT), DIGEST),
        )
        assert made.contents.path(told.outputs[0]).read_bytes() == CONTENT
        assert HandedOver(0, "e-1", "job-1") in made.events
        (order,) = made.site.orders
        assert [(each.name, each.path) for each in order.inputs] == [
            ("in", made.contents.path(given))
        ]


async def test_why_a_site_does_not_begin_a_run_is_told_once(tmp_path: Path) -> None:
    """And when nothing hinders it any more, also if that was so while the broker did not run."""
    async with scene(tmp_path) as made:
        waits = Reservation("e-1.0", ReservationState.LAUNCHED, job="job-1")
        made.site.end = waits
        made.launch()
        await until(lambda: HandedOver(0, "e-1", "job-1") in made.events)
        for reason in ("", "main is closed", "main is closed", "main is down", "", ""):
            made.dispatcher._heard("riga", replace(waits, hindered=reason))
        told = [each for each in made.events if isinstance(each, Hindered)]
        assert [each.reason for each in told] == ["main is closed", "main is down", ""]
        entry = made.dispatcher._entries["e-1"]
        assert entry.launch is not None
        entry.launch, entry.hindered = replace(entry.launch, again=True), None
        for _ in range(2):
            made.dispatcher._heard("riga", waits)
        assert [each.reason for each in made.events if isinstance(each, Hindered)][3:] == [""]


async def test_outputs_that_nobody_is_given_stay_where_they_are(tmp_path: Path) -> None:
    """They are looked at all the same."""
    async with scene(tmp_path) as made:
        made.launch()
        told = await made.end()
        assert told.outcome is Outcome.COMPLETED
        assert not made.contents.path(told.outputs[0]).exists()


async def test_an_output_waits_for_room_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its operator reads why; then it is brought after all."""
    async with scene(tmp_path) as made:
        bring, problems = made.contents.bring, [OSError("no space left"), NoRoomError("full")]

        async def brought(*words: Any) -> None:
            if problems:
                raise problems.pop(0)
            await bring(*words)

        monkeypatch.setattr(made.contents, "bring", brought)
        with capture_logs() as logs:
            made.dispatcher._log = structlog.get_logger()
            made.launch(needed=frozenset({"x"}))
            told = await made.end()
    assert (told.outcome, told.reason) == (Outcome.COMPLETED, "")
    assert made.contents.path(told.outputs[0]).read_bytes() == CONTENT
    words = {"output_waits_for_room": "problem", "site_does_not_answer": "reason"}
    said = [(each["event"], each[words[each["event"]]]) for each in logs if each["event"] in words]
    assert said == [(event, why) for why in ("no space left", "full") for event in words]


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (left("", "missing"), "it has not left its output 'y': it is not there"),
        (left("no_file", ""), "'x': it is no plain file"),
        (left("too_large", ""), "'x': it is larger than its site hands out"),
        (left(""), "'y': it is not there"),
        (Results((), complete=True, problem="they are gone"), "'x': they are gone"),
        (ReservationRefused("unknown here"), "cannot be looked at: unknown here"),
    ],
)
async def test_a_program_that_leaves_too_little_has_failed(
    tmp_path: Path, answer: Results | Exception, word: str
) -> None:
    """Whatever it has returned."""
    async with scene(tmp_path) as made:
        made.site.answers = [answer]
        made.launch()
        told = await made.end()
        assert (told.outcome, told.exit_code) == (Outcome.FAILED, 0)
        assert word in told.reason


async def test_an_output_that_changes_after_the_end_is_none(tmp_path: Path) -> None:
    """Its content is not what the site has said when it was looked at."""
    async with scene(tmp_path) as made:
        made.site.content = CONTENT[::-1]
        made.launch(needed=frozenset({"x"}))
        told = await made.end()
        assert told.outcome is Outcome.FAILED
        assert "'x' cannot be brought" in told.reason


async def test_what_has_failed_is_told_as_it_is(tmp_path: Path) -> None:
    """Nothing is looked at."""
    async with scene(tmp_path) as made:
        made.site.answers = [AssertionError()]
        made.site.end = replace(
            made.site.end, outcome=Outcome.FAILED, exit_code=None, signal=11, reason="why"
        )
        made.launch()
        told = await made.end()
        assert (told.outcome, told.exit_code, told.signal) == (Outcome.FAILED, None, 11)
        assert (told.reason, told.start_time, told.end_time) == ("why", 1.0, 2.0)


async def test_a_program_that_a_site_can_never_run_is_refused(tmp_path: Path) -> None:
    """It is told apart from what only has no time there; what is reserved can be released after it."""
    async with scene(tmp_path) as made:
        made.site.refuses = ProgramRefused("too wide")
        made.launch()
        await until(lambda: Refused(0, "e-1", "too wide") in made.events)
        made.dispatcher.do(Release(made.booking))
        await until(lambda: Released(0, "e-1") in made.events)
        assert made.site.released == ["e-1.0"]
        assert not any(isinstance(each, Ended) for each in made.events)
    async with scene(tmp_path) as made:
        made.site.refuses = ReservationRefused("no time")
        made.launch()
        await until(lambda: BookingLost(0, "e-1", "no time") in made.events)


async def test_a_program_that_was_quicker_than_its_release_has_completed(tmp_path: Path) -> None:
    """Its outputs are waited for, and then it is told before the release."""
    async with scene(tmp_path) as made:
        made.site.answers = [Results((), complete=False, problem="on the way")]
        made.launch()
        await until(lambda: bool(made.site.orders))
        made.dispatcher.do(Release(made.booking))
        await until(lambda: bool(made.site.released))
        made.site.answers = [left("", "")]
        assert (await made.end()).outcome is Outcome.COMPLETED
        await until(lambda: Released(0, "e-1") in made.events)
        kinds = [type(each) for each in made.events if isinstance(each, Ended | Released)]
        assert kinds == [Ended, Released]


async def test_no_output_is_asked_for_where_no_program_was_run(tmp_path: Path) -> None:
    """A site that only keeps time has nothing to show."""
    async with scene(tmp_path) as made:
        made.site.answers = [AssertionError()]
        made.site.end = replace(made.site.end, outcome=Outcome.NOT_RUN, job="")
        made.launch()
        assert (await made.end()).outcome is Outcome.NOT_RUN
