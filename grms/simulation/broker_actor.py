"""Brokers that reserve at the sites of a fault test, and the judge of what became of it.

A broker asks again, with the same key, until it has an answer: the site may be down, or die before it
has told anybody. What is judged rests on the answers brokers have had and on the sites' records:

- a key is one reservation for ever, whose revision never goes back, and none that was acknowledged is
  lost;
- no processor of a resource is promised twice at any moment;
- a job has run for as long as it should, and has ended as it should;
- at the end nothing holds a resource.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from grms.simulation.clock import ManualClock
from grms.simulation.random_source import RandomSource
from grms.simulation.simulated_site import SimulatedSite
from grms.site.model.commands import Command, Refusal, Refuse, ReplyReservation
from grms.site.model.events import (
    BookReservation,
    Event,
    LaunchReservation,
    MoveReservation,
    ReleaseReservation,
)
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import Outcome, ReservationState
from grms.site.model.records import (
    Record,
    ReservationBooked,
    ReservationEnded,
    ReservationMoved,
    ReservationReleased,
)
from grms.site.model.reservations import Reservation, Resource

WISHES_MAX: Final = 5
BOOKED_UNTIL: Final = 50.0
"""When the last of them is wanted, seconds."""

_ONLY_THE_END: Final = 2.0
"""A window that gets longer by less than this many seconds keeps its beginning."""

_EXPECTED: Final = frozenset({Refusal.PRECONDITION, Refusal.UNAVAILABLE})
"""Errors a broker may get: it was too late, or another was quicker."""


def resource(draws: RandomSource) -> Resource:
    """Returns what a site has to reserve."""
    return Resource("r", processors=draws.integer(1, 3), speed=(0.5, 1.0, 2.0)[draws.integer(0, 2)])


@dataclass(slots=True)
class _Wish:
    # A reservation that a broker wants, and what it was last told of it.
    site: SimulatedSite
    key: str
    processors: int
    ahead: float
    length: float
    run_time: float
    requested_time: float
    to_the_end: bool
    begin: float = math.nan
    told: Reservation | None = None
    launched: bool = False


@dataclass(slots=True)
class Brokers:
    """All brokers of a run; `answers` counts questions answered with a reservation.

    `problems` gets violations, in sentences.
    """

    clock: ManualClock
    draws: RandomSource
    problems: list[str] = field(default_factory=list)
    answers: int = 0
    _wishes: list[_Wish] = field(default_factory=list)

    def want(self, sites: list[SimulatedSite]) -> None:
        """Draws wishes at these sites, before the run."""
        draws = self.draws
        for number in range(draws.integer(0, WISHES_MAX)):
            site = sites[draws.integer(0, len(sites) - 1)]
            run_time = 0.5 + draws.exponential(5.0)
            wish = _Wish(
                site=site,
                key=f"wish-{number}",
                processors=draws.integer(1, site.settings.resources[0].processors),
                ahead=draws.between(-2.0, 10.0),
                length=draws.between(4.0, 25.0),
                run_time=run_time,
                requested_time=run_time * draws.between(0.7, 1.5),
                to_the_end=draws.chance(0.5),
            )
            self._wishes.append(wish)
            self.clock.after(draws.between(0.0, BOOKED_UNTIL), self._book, wish)

    # --- asking --------------------------------------------------------------------------------

    def _until_answered(
        self,
        wish: _Wish,
        make: Callable[[int], Event],
        then: Callable[[Reservation], None] = lambda _: None,
    ) -> None:
        answered = False

        def reply(command: Command) -> None:
            nonlocal answered
            if answered:
                return  # it is the answer to an earlier time of asking
            answered = True
            if isinstance(command, ReplyReservation):
                self.answers += 1
                self._hear(wish, command.reservation)
                then(command.reservation)
            elif not (isinstance(command, Refuse) and command.refusal in _EXPECTED):
                self.problems.append(f"{wish.key} was refused: {command}")

        def ask() -> None:
            if not answered:
                self.clock.after(self.draws.between(0.5, 4.0), ask)
                wish.site.ask(make, reply)

        ask()

    def _hear(self, wish: _Wish, reservation: Reservation) -> None:
        before = wish.told
        if before is not None and (
            before.number != reservation.number or before.revision > reservation.revision
        ):
            self.problems.append(f"{wish.key} was {before}, and is {reservation}")
        wish.told = reservation

    def _book(self, wish: _Wish) -> None:
        wish.begin = wish.site.now + wish.ahead
        end = wish.begin + wish.length
        self._until_answered(
            wish,
            lambda i: BookReservation(
                i, "broker:x", wish.key, "r", wish.begin, end, wish.processors
            ),
            lambda _: self._go_on(wish),
        )

    def _go_on(self, wish: _Wish) -> None:
        draws = self.draws
        if draws.chance(0.8):
            self.clock.after(draws.between(0.0, 8.0), self._launch, wish)
        if draws.chance(0.4):
            self.clock.after(draws.between(2.0, 20.0), self._move, wish)
        if draws.chance(0.3):
            self.clock.after(draws.between(0.0, 20.0), self._release, wish)

    def _launch(self, wish: _Wish) -> None:
        assert wish.told is not None
        number, request = wish.told.number, Request(wish.processors, wish.requested_time)

        def launched(_: Reservation) -> None:
            wish.launched = True

        self._until_answered(
            wish,
            lambda i: LaunchReservation(
                i, "broker:x", number, "go", request, wish.run_time, wish.to_the_end
            ),
            launched,
        )

    def _move(self, wish: _Wish) -> None:
        assert wish.told is not None
        number, old = wish.told.number, (wish.told.begin, wish.told.end)
        longer = self.draws.between(0.5, 5.0)
        by = 0.0 if longer < _ONLY_THE_END else 3 * (longer - 3.5)  # up to 4.5 s to either side
        new = old[0] + by, old[1] + by + longer
        self._until_answered(wish, lambda i: MoveReservation(i, "broker:x", number, old, new))

    def _release(self, wish: _Wish) -> None:
        assert wish.told is not None
        number = wish.told.number
        self._until_answered(wish, lambda i: ReleaseReservation(i, "broker:x", number))

    # --- the verdict ---------------------------------------------------------------------------

    def judge(self, sites: Iterable[SimulatedSite]) -> list[str]:
        """Returns what was not as it has to be, at the end of a run."""
        for site in sites:
            name, book = site.settings.name, site.state.memory.reservations
            for moment, most in _promised(site.journal).items():
                if most > site.settings.resources[0].processors:
                    self.problems.append(f"{name}: {most} processors promised at {moment}")
            self.problems += [
                f"{name}: {problem}"
                for one in book.reservations.values()
                if (problem := _wrong_end(one, site.settings.resources[0].speed, self._of(one)))
            ]
        for wish in self._wishes:
            if wish.told is not None:
                reservations = wish.site.state.memory.reservations.reservations
                found = reservations.get(wish.told.number)
                self._judge(wish, wish.told, found)
        return self.problems

    def _of(self, one: Reservation) -> _Wish:
        return next(wish for wish in self._wishes if wish.key == one.key)

    def _judge(self, wish: _Wish, told: Reservation, found: Reservation | None) -> None:
        if (
            found is None
            or (found.key, found.booked) != (wish.key, told.booked)
            or found.revision < told.revision
        ):
            self.problems.append(f"{wish.key} was told as {told}, and is {found}")
        elif wish.launched and not found.launch_key:
            self.problems.append(f"{wish.key} was launched, and is {found}")
        elif not told.is_open and found.state is not told.state:
            self.problems.append(f"{wish.key} was over as {told}, and is {found}")


def _promised(journal: Iterable[Record]) -> dict[float, int]:
    """Returns how many processors are promised from each moment on at which that changes.

    By records alone: of a promise counts what lies after the moment at which it was given, and before
    that at which it was moved.
    """
    begins: dict[int, tuple[float, int]] = {}
    ends: dict[int, float] = {}
    past: list[tuple[float, float, int]] = []
    for record in journal:
        if isinstance(record, ReservationBooked):
            begins[record.reservation] = max(record.begin, record.time), record.processors
            ends[record.reservation] = record.end
        elif isinstance(record, ReservationMoved):
            begin, processors = begins[record.reservation]
            past.append((begin, min(ends[record.reservation], record.time), processors))
            begins[record.reservation] = max(record.begin, record.time), processors
            ends[record.reservation] = record.end
        elif isinstance(record, ReservationReleased):
            ends[record.reservation] = min(ends[record.reservation], record.time)
        elif isinstance(record, ReservationEnded):
            ends[record.reservation] = record.end_time
    changes: Counter[float] = Counter()
    promises = [(begin, ends[number], many) for number, (begin, many) in begins.items()]
    for begin, end, processors in (*past, *promises):
        if begin < end:
            changes[begin] += processors
            changes[end] -= processors
    held, promised = 0, {}
    for moment in sorted(changes):
        held += changes[moment]
        promised[moment] = held
    return promised


def _wrong_end(one: Reservation, speed: float, wish: _Wish) -> str:
    if one.is_open:
        return f"reservation {one.number} is still {one.state.value}"
    if one.state is not ReservationState.ENDED:
        return ""
    allowed = one.end - one.start_time if wish.to_the_end else wish.requested_time / speed
    needed = wish.run_time / speed
    outcome = Outcome.NOT_RUN if needed <= allowed else Outcome.FAILED
    if one.outcome is outcome and math.isclose(
        one.end_time - one.start_time, min(needed, allowed), abs_tol=1e-9
    ):
        return ""
    return f"reservation {one.number} is {one}, of a job that needs {needed} and may {allowed}"
