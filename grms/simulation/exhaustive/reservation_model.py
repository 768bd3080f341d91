"""A site's reservations, and two owners who ask for them: every order of questions, repetitions, time and crashes.

Both want the one processor of a resource, one after the other, and the first may want the time of the second as well. Time is a few whole seconds, and a timer may be late. Each
owner asks until there is an answer; a question that has been answered may come once more, however late. In every state:

- no more processors are reserved at a moment than there are
- what an owner was told is in the journal: the same reservation for the same key, and none goes back
- its window is one that the owner has asked for, and the last one that was acknowledged unless another move was asked for since
- a launched job is the one that was launched first, and no reservation with one expires
- none is over for a lack of time before its window is

When all states are known each leads, without a fault, to the end: nothing is held any more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from grms.simulation.exhaustive.choices import Action, Choices, ViolationError
from grms.simulation.exhaustive.encoding import StateFactory
from grms.site.model.commands import Answer, Append, Command, Refuse, ReplyReservation
from grms.site.model.events import (
    BookReservation,
    Event,
    LaunchReservation,
    MoveReservation,
    ReleaseReservation,
    ReservationsDue,
)
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import IllegalMove, ReservationState
from grms.site.model.records import Record
from grms.site.model.reservations import Reservation, Resource
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.state import SiteState

HORIZON: Final = 4
"""Time ends here, seconds; every window has ended by then."""

WINDOWS: Final = ((1.0, 2.0), (2.0, 4.0))
"""What each owner wants first."""

MOVED: Final = ((1.0, 3.0), (3.0, 4.0))
"""What each wants then, if it wants to move it."""

RESERVATION_FAULTS: Final[Mapping[str, str]] = {
    "crash": "the daemon dies",
    "answer": "an answer is lost",
    "again": "a question that was answered comes once more",
    "move": "an owner wants another window",
    "release": "an owner gives its reservation up",
}
"""What may go wrong, or has to be wanted by somebody."""

BOOK: Final = "book"
LAUNCH: Final = "launch"
MOVE: Final = "move"
RELEASE: Final = "release"


@dataclass(frozen=True)
class ReservationBound:
    """What may happen.

    Attributes:
        name: for people.
        faults: how often each may come (`RESERVATION_FAULTS`).
        owners: how many there are.
        factory: makes the state of the site.
    """

    name: str
    faults: Mapping[str, int] = field(default_factory=dict)
    owners: int = 2
    factory: StateFactory = SiteState


class Owner(NamedTuple):
    """What an owner wants and knows.

    Attributes:
        number: of its reservation; 0 before it was told, -1 if it was refused.
        revision: the last one that it was told of.
        window: the last one that it was told.
        asks: what it asks for, and has no answer to; empty for nothing.
        asked: what it has ever asked for.
        launched: it was told that its job was launched.
        over: it was told that it was over.
    """

    number: int = 0
    revision: int = 0
    window: tuple[float, float] | None = None
    asks: str = ""
    asked: frozenset[str] = frozenset()
    launched: bool = False
    over: bool = False


class ReservationsState(NamedTuple):
    """All that there is; `reservations` is what the journal recovers to."""

    up: bool
    now: int
    reservations: tuple[Reservation, ...]
    owners: tuple[Owner, ...]


class DiedError(Exception):
    """The daemon is no more."""


class ReservationModel:
    """The states of a site's reservations within a bound."""

    def __init__(self, bound: ReservationBound) -> None:
        self.bound = bound
        self.settings = SiteSettings("a", 8, resources=(Resource("r"),))
        self._journals: dict[tuple[Reservation, ...], tuple[Record, ...]] = {(): ()}
        self._done: dict[
            tuple[tuple[Reservation, ...], Event, int],
            tuple[tuple[Reservation, ...], tuple[Command, ...]],
        ] = {}

    @property
    def faults(self) -> Mapping[str, int]:
        """How often each fault may come."""
        return self.bound.faults

    def first(self) -> ReservationsState:
        """Returns the state before anybody asks."""
        owners = (Owner(asks=BOOK, asked=frozenset({BOOK})),) * self.bound.owners
        return ReservationsState(True, 0, (), owners)

    # --- what may happen -----------------------------------------------------------------------

    def actions(self, state: ReservationsState) -> Iterable[Action[ReservationsState]]:
        """Returns all that may happen."""
        if state.now < HORIZON:
            later = state._replace(now=state.now + 1)
            yield Action((f"it is {later.now}",), lambda _: later)
        if not state.up:
            up = state._replace(up=True)
            yield Action(("the daemon starts",), lambda _: up)
            return
        down = state._replace(up=False)
        yield Action(("the daemon dies",), lambda _: down, "crash")
        yield Action(("the timer comes",), partial(self._happens, state, ReservationsDue(1), None))
        for at, owner in enumerate(state.owners):
            yield from self._of_owner(state, at, owner)

    def _of_owner(
        self, state: ReservationsState, at: int, owner: Owner
    ) -> Iterable[Action[ReservationsState]]:
        if owner.asks:
            yield self._asks(state, at, owner.asks)
        elif owner.number > 0:
            for what, kind in ((LAUNCH, ""), (MOVE, "move"), (RELEASE, "release")):
                if what not in owner.asked:
                    wants = owner._replace(asks=what, asked=owner.asked | {what})
                    after = state._replace(owners=_with(state.owners, at, wants))
                    yield Action(
                        (f"owner {at + 1} wants to {what}",),
                        lambda _, after=after: after,  # type: ignore[misc]  # a loop's value
                        kind,
                    )
        for what in sorted(owner.asked - {owner.asks}):
            if what == BOOK or owner.number > 0:
                yield self._asks(state, at, what, again=True)

    def _asks(
        self, state: ReservationsState, at: int, what: str, *, again: bool = False
    ) -> Action[ReservationsState]:
        event = self._event(at, state.owners[at], what)
        who = None if again else at
        words = f"owner {at + 1}: {what}{', once more' if again else ''}"
        return Action((words,), partial(self._happens, state, event, who), "again" if again else "")

    @staticmethod
    def _event(at: int, owner: Owner, what: str) -> Event:
        name = f"broker:{at}"
        match what:
            case "book":
                return BookReservation(1, name, f"key-{at}", "r", *WINDOWS[at], 1)
            case "launch":
                return LaunchReservation(
                    1, name, owner.number, "go", Request(1, 1.0), 1.0, to_the_end=True
                )
            case "move":
                return MoveReservation(1, name, owner.number, WINDOWS[at], MOVED[at])
            case _:
                return ReleaseReservation(1, name, owner.number)

    def _happens(
        self, state: ReservationsState, event: Event, who: int | None, choices: Choices
    ) -> ReservationsState:
        after, commands = self._handled(state.reservations, event, state.now)
        durable = state.reservations
        answer: Answer | None = None
        died = False
        try:
            for command in commands:
                if isinstance(command, Append):
                    self._may_die(choices, "the journal is written")
                    durable = after
                    self._may_die(choices, "it does what follows")
                elif isinstance(command, Answer):
                    answer = command
        except DiedError:
            died = True
        owners = state.owners
        asked = who is not None and answer is not None
        if asked and not choices.pick("", ("the answer is lost", "answer")):
            assert who is not None
            assert answer is not None
            owners = _with(owners, who, _told(owners[who], answer))
        return ReservationsState(not died, state.now, durable, owners)

    def _handled(
        self, before: tuple[Reservation, ...], event: Event, now: int
    ) -> tuple[tuple[Reservation, ...], tuple[Command, ...]]:
        # What the journal recovers to after an event, and what the site does; once for each.
        known = self._done.get((before, event, now))
        if known is None:
            journal = self._journals[before]
            memory = self._memory(journal)
            try:
                commands = self.bound.factory(self.settings, memory=memory).handle(
                    event, float(now)
                )
            except (IllegalMove, AssertionError, KeyError, ValueError) as error:
                raise ViolationError(f"{type(error).__name__}: {error}") from error
            appends = (each.records for each in commands if isinstance(each, Append))
            journal = (*journal, *(record for records in appends for record in records))
            after = _reservations(self._memory(journal))
            if after != _reservations(memory):
                raise ViolationError("the journal recovers to other reservations than the site's")
            self._journals.setdefault(after, journal)
            known = self._done[before, event, now] = after, tuple(commands)
        return known

    @staticmethod
    def _may_die(choices: Choices, before: str) -> None:
        if choices.pick("", (f"the daemon dies before {before}", "crash")):
            raise DiedError

    def _memory(self, journal: Iterable[Record]) -> StateTables:
        memory = StateTables(self.settings)
        for record in journal:
            memory.apply(record)
        return memory

    # --- what must be --------------------------------------------------------------------------

    def wrong(self, state: ReservationsState) -> str:
        """Returns what must not be of a state; empty if all is well."""
        for moment in range(HORIZON):
            held = [one for one in state.reservations if one.is_open]
            if sum(one.processors for one in held if one.begin <= moment < one.end) > 1:
                return f"two have the processor at {moment}"
        by_number = {one.number: one for one in state.reservations}
        for at, owner in enumerate(state.owners):
            found = ""
            if owner.number > 0:
                found = self._wrong_of(owner, by_number.get(owner.number), at)
            elif owner.number < 0 and "again" not in self.faults:
                name = f"broker:{at}"
                holds = any(one.owner == name and one.is_open for one in state.reservations)
                found = "it was refused, and holds a reservation" if holds else ""
            if found:
                return f"owner {at + 1}: {found}"
        for one in state.reservations:
            if one.state is ReservationState.EXPIRED and (one.launch_key or state.now < one.end):
                return f"reservation {one.number} has expired, and should not have"
        return ""

    @staticmethod
    def _wrong_of(owner: Owner, found: Reservation | None, at: int) -> str:
        if found is None or (found.owner, found.key) != (f"broker:{at}", f"key-{at}"):
            return f"reservation {owner.number} was acknowledged, and is lost"
        window = found.begin, found.end
        moved = {MOVED[at]} if MOVE in owner.asked else set()
        wrong = {
            "it has gone back": found.revision < owner.revision,
            "it has another window than was asked for": window not in {owner.window, *moved},
            "its job was launched, and is lost": owner.launched and not found.launch_key,
            "nobody has asked for its launch": found.launch_key and LAUNCH not in owner.asked,
            "nobody has asked for its release": found.state is ReservationState.RELEASED
            and RELEASE not in owner.asked,
            "it holds something after its release": owner.over and found.is_open,
        }
        return next((text for text, is_so in wrong.items() if is_so), "")

    def is_end(self, state: ReservationsState) -> bool:
        """Returns whether nothing is held any more, and nobody asks for anything."""
        held = any(one.is_open for one in state.reservations)
        return state.up and not held and not any(owner.asks for owner in state.owners)


def _with(owners: tuple[Owner, ...], at: int, owner: Owner) -> tuple[Owner, ...]:
    return (*owners[:at], owner, *owners[at + 1 :])


def _reservations(memory: StateTables) -> tuple[Reservation, ...]:
    # A moment that is not known yet is no number, and equals nothing, not even itself.
    found = memory.reservations.reservations.values()
    return tuple(replace(one, **_known(one)) for one in found)  # type: ignore[arg-type]  # by name


_NEVER: Final = -1.0


def _known(one: Reservation) -> dict[str, float]:
    names = ("launch_time", "start_time", "end_time")
    return {name: _NEVER for name in names if getattr(one, name) != getattr(one, name)}


def _told(owner: Owner, answer: Answer) -> Owner:
    what = owner.asks
    if isinstance(answer, ReplyReservation):
        known = answer.reservation
        return owner._replace(
            number=known.number,
            revision=known.revision,
            window=(known.begin, known.end),
            asks="",
            launched=owner.launched or what == LAUNCH,
            over=owner.over or what == RELEASE,
        )
    if not isinstance(answer, Refuse):
        raise ViolationError(f"an owner gets {answer}")
    return owner._replace(asks="", number=-1) if what == BOOK else owner._replace(asks="")


SMALL_RESERVATIONS: Final = (
    ReservationBound("reservations: no fault"),
    ReservationBound("reservations: the daemon dies", {"crash": 1}, 1),
    ReservationBound("reservations: an answer is lost, moved", {"answer": 1, "move": 1}, 1),
    ReservationBound(
        "reservations: moved, released; a question comes again",
        {"move": 1, "release": 1, "again": 1},
        1,
    ),
)
"""Those of the tests."""

LARGE_RESERVATIONS: Final = (
    ReservationBound("reservations: two owners, and the daemon dies", {"crash": 1}),
    ReservationBound("reservations: moved, released", {"move": 1, "release": 1}),
    ReservationBound(
        "reservations: moved; the daemon dies, an answer is lost",
        {"move": 1, "crash": 1, "answer": 1},
        1,
    ),
    ReservationBound(
        "reservations: moved, released; the daemon dies, a question comes again",
        {"move": 1, "release": 1, "crash": 1, "again": 1},
        1,
    ),
)
"""Those that are run by hand: `python -m benchmarks.exhaustive`."""
