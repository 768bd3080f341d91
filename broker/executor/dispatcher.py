"""Carries out the state's commands at the sites, and reports their answers.

Each booking has a task of its own that runs its commands in order and repeats each until the site
has answered; programs of a group have one together until they are launched. Each site has one that watches (`monitor`). A release ends the repetition of earlier
commands.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import structlog

from broker.executor.base import (
    GivenFile,
    GroupWish,
    Order,
    ProgramRefused,
    Reservation,
    ReservationRefused,
    ReservationState,
    ReservationUnknown,
    Site,
    SiteUnavailable,
    Window,
    Wish,
)
from broker.executor.contents import Contents
from broker.executor.site_monitor import PAUSES, Patience, SiteMonitor
from broker.model.program import Input, Output
from broker.scheduler.commands import Book, Launch, LaunchGroup, Move, Release, Withdraw
from broker.scheduler.events import (
    Booked,
    BookingLost,
    Ended,
    Event,
    HandedOver,
    Hindered,
    Moved,
    MoveRefused,
    Refused,
    Released,
    Started,
)
from broker.scheduler.state_tables import Booking
from grms.client import Results
from grms.daemon.clock import RealClock
from grms.daemon.pacing import Backoff
from grms.daemon.uploads import NoRoomError
from grms.util.outcomes import Outcome

REPORTED_WITHIN_S: Final = 5.0
"""After a contact a site has mostly reported what it has, real seconds."""

Log = structlog.typing.FilteringBoundLogger
Command = Book | Launch | Move | Release | Withdraw
_T = TypeVar("_T")


@dataclass(slots=True)
class _Entry:
    # A booking known to the sites.
    booking: Booking
    commands: "asyncio.Queue[Command | Reservation | None]" = field(default_factory=asyncio.Queue)
    reservations: tuple[str, ...] = ()
    given_up: asyncio.Event = field(default_factory=asyncio.Event)
    unsure: bool = True
    started: bool = False
    hindered: str | None = None
    over: bool = False
    launch: Launch | None = None
    launched: bool = False
    ended: bool = False
    served: bool = False
    in_group: "asyncio.Event | None" = None
    gone: bool = False
    contact: int = 0


class _GivenUpError(Exception):
    """The booking is to be released, so repeating a command is pointless."""


class Dispatcher:
    """Runs commands of the state at the sites; `learning` names those asked for their offers."""

    def __init__(  # each by its name
        self,
        sites: Mapping[str, Site],
        tell: Callable[[Event], None],
        clock: RealClock,
        log: Log,
        patience: Patience | None = None,
        *,
        learning: Collection[str] = (),
        contents: Contents | None = None,
    ) -> None:
        self._sites = sites
        self._tell = tell
        self._clock = clock
        self._log = log
        self._patience = patience or Patience()
        self._learning = frozenset(learning)
        self._contents = contents
        self._entries: dict[str, _Entry] = {}
        self._by_reservation: dict[tuple[str, str], _Entry] = {}
        self._contacts: Counter[str] = Counter()
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Works until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for name, port in self._sites.items():
                monitor = SiteMonitor(
                    name,
                    port,
                    self._tell,
                    self._heard,
                    self._contact,
                    clock=self._clock,
                    log=self._log,
                    patience=self._patience,
                )
                group.create_task(monitor.follow(), name=f"site {name or 'simulated'}")
                if name in self._learning:
                    group.create_task(monitor.learn(), name=f"offers of {name}")
            await asyncio.Event().wait()

    def do(self, command: Command | LaunchGroup) -> None:
        """Begins to carry out a command."""
        assert self._group is not None
        if isinstance(command, LaunchGroup):
            self._do_group(command)
            return
        name = command.booking.booking
        entry = self._entries.get(name)
        if entry is None:
            if isinstance(command, Move):
                # Its run has ended meanwhile, which has been reported.
                self._tell(MoveRefused(0, name, "it is over"))
            if isinstance(command, Move | Withdraw):
                return
            entry = _Entry(command.booking, reservations=command.booking.reservations)
            self._entries[name] = entry
            self._index(entry)
        if isinstance(command, Launch):
            entry.launch = command
        elif isinstance(command, Release):
            entry.given_up.set()
        self._put(entry, command)

    def _put(self, entry: _Entry, command: Command | Reservation) -> None:
        # A program of a group mostly needs nothing more than to be launched with it.
        assert self._group is not None
        entry.commands.put_nowait(command)
        if not entry.served:
            entry.served = True
            name = f"booking {entry.booking.booking}"
            self._group.create_task(self._serve(entry), name=name)

    def _heard(self, site: str, known: Reservation) -> None:
        entry = self._by_reservation.get((site, known.reservation_id))
        if entry is not None:
            entry.contact = self._contacts[site]
            self._update(entry, known)

    def _contact(self, site: str) -> None:
        assert self._group is not None
        self._contacts[site] += 1
        work = self._ask_for_forgotten(site, self._contacts[site])
        self._group.create_task(work, name=f"contact with {site}")

    async def _ask_for_forgotten(self, site: str, contact: int) -> None:
        # At a contact a site reports what it has, and it forgets what ended long ago: nothing would ever be heard of a run
        # that ended, and was forgotten, while there was no contact. It is launched again, by the same key.
        await asyncio.sleep(REPORTED_WITHIN_S)
        here = [entry for (where, _), entry in self._by_reservation.items() if where == site]
        for entry in here:
            silent = entry.contact < contact and entry.launched
            if silent and not (entry.over or entry.ended or entry.given_up.is_set()):
                assert entry.launch is not None
                self._put(entry, replace(entry.launch, again=True))

    def _index(self, entry: _Entry) -> None:
        if entry.reservations:
            key = entry.booking.holds[0].site, entry.reservations[0]
            self._by_reservation[key] = entry

    # --- one booking ---------------------------------------------------------------------------

    async def _serve(self, entry: _Entry) -> None:
        try:
            if entry.in_group is not None:
                await entry.in_group.wait()
            while (command := await entry.commands.get()) is not None:
                if isinstance(command, Release):
                    await self._release(entry)
                    break
                try:
                    await self._carry_out(entry, command)
                except _GivenUpError:
                    continue
        finally:
            self._forget(entry)

    async def _carry_out(
        self, entry: _Entry, command: Book | Launch | Move | Withdraw | Reservation
    ) -> None:
        match command:
            case Book():
                await self._book(entry)
            case Move():
                await self._move(entry, command)
            case Launch():
                await self._launch(entry, command)
            case Withdraw():
                await self._withdraw(entry)
            case Reservation():
                await self._end_with_outputs(entry, command, entry)
                self._forget(entry)
                entry.commands.put_nowait(None)

    def _forget(self, entry: _Entry) -> None:
        # A later command may have made another entry of the same name.
        name = entry.booking.booking
        if self._entries.get(name) is entry:
            del self._entries[name]
        if entry.reservations:
            key = entry.booking.holds[0].site, entry.reservations[0]
            if self._by_reservation.get(key) is entry:
                del self._by_reservation[key]

    # --- groups --------------------------------------------------------------------------------

    def _do_group(self, command: LaunchGroup) -> None:
        assert self._group is not None
        answered, entries = asyncio.Event(), []
        for launch in command.launches:
            entry = _Entry(launch.booking, launch=launch, in_group=answered)
            self._entries[launch.booking.booking] = entry
            entries.append(entry)
        work = self._launch_group(command, entries)
        self._group.create_task(work, name=f"group {command.group.name}")

    async def _launch_group(self, command: LaunchGroup, entries: list[_Entry]) -> None:
        # It is repeated until it is answered, whatever is given up: only then it is known what runs.
        group, again = command.group, command.launches[0].again
        hold = entries[0].booking.holds[0]
        orders = tuple(self._order(entry.booking, entry.launch) for entry in entries)
        wish = GroupWish(hold.resource, group.units, group.begin, group.end, orders)
        answered = entries[0].in_group
        assert answered is not None
        try:
            lead = _Entry(entries[0].booking)  # which nobody gives up
            found = await self._until_answered(
                hold.site, lead, lambda port: port.launch_group(wish), waits=again
            )
        except ReservationRefused as error:
            for entry in entries:
                entry.unsure, entry.gone = False, True
                self._lost(entry, str(error), (0,))
        else:
            for entry, one in zip(entries, found, strict=True):
                self._launched(entry, one)
        answered.set()

    def _launched(self, entry: _Entry, found: Reservation | ProgramRefused) -> None:
        name = entry.booking.booking
        entry.unsure, entry.launched = False, True
        if isinstance(found, ProgramRefused):
            entry.over = entry.gone = True
            self._tell(Refused(0, name, str(found)))
            return
        entry.reservations = (found.reservation_id,)
        self._index(entry)
        self._tell(Booked(0, name, entry.reservations))
        self._update(entry, found)

    def _wishes(self, entry: _Entry) -> list[Wish]:
        booking = entry.booking
        begin, end = booking.placement.start, booking.placement.end
        return [
            Wish(f"{booking.booking}.{number}", hold.resource, hold.units, begin, end)
            for number, hold in enumerate(booking.holds)
        ]

    async def _book(self, entry: _Entry) -> None:
        booking, wishes = entry.booking, self._wishes(entry)
        if entry.reservations:
            for hold, wish, known in zip(booking.holds, wishes, entry.reservations, strict=True):
                try:
                    await self._until_answered(
                        hold.site,
                        entry,
                        lambda s, w=wish, k=known: s.restore(k, w),  # type: ignore[misc]  # bound now
                        waits=_may_run(entry),
                    )
                except ReservationRefused as error:
                    self._lost(entry, str(error))
                    return
            return
        made: list[Reservation] = []
        for index, (hold, wish) in enumerate(zip(booking.holds, wishes, strict=True)):
            try:
                one = await self._until_answered(
                    hold.site,
                    entry,
                    lambda s, w=wish: s.book(w),  # type: ignore[misc]  # bound now
                )
            except ReservationRefused as error:
                entry.unsure = False
                self._lost(entry, str(error), (index,) if error.taken else ())
                return
            made.append(one)
            entry.reservations = tuple(each.reservation_id for each in made)
            self._index(entry)
            if one.state in {ReservationState.EXPIRED, ReservationState.RELEASED}:
                self._lost(entry, f"its reservation is {one.state.value}")
                return
        entry.unsure = False
        self._tell(Booked(0, booking.booking, entry.reservations))
        self._update(entry, made[0])

    async def _launch(self, entry: _Entry, command: Launch) -> None:
        booking, order = entry.booking, self._order(entry.booking, command)
        site = booking.holds[0].site
        again = command.again

        async def launch(port: Site) -> Reservation:
            nonlocal again
            try:
                return await port.launch(entry.reservations[0], order)
            except SiteUnavailable:
                again = True
                raise

        try:
            now = await self._until_answered(site, entry, launch, waits=command.again)
        except ReservationUnknown as error:
            if not again or command.program is None:
                self._lost(entry, str(error))
                return
            # Its site has forgotten it, and whether it has run: that is for whoever wants it run to decide.
            reason = f"it may have run: {error}"
            now = Reservation(
                entry.reservations[0],
                ReservationState.ENDED,
                command.started,
                outcome=Outcome.UNKNOWN,
                reason=reason,
            )
        except ReservationRefused as error:
            self._lost(entry, str(error))
            return
        except ProgramRefused as error:
            entry.over = True
            self._tell(Refused(0, booking.booking, str(error)))
            return
        entry.launched = True
        if now.job and now.job != booking.job:
            self._tell(HandedOver(0, booking.booking, now.job))
        self._update(entry, now)

    def _order(self, booking: Booking, command: Launch | None) -> Order:
        assert command is not None
        return Order(
            key=f"{booking.booking}.launch",
            units=booking.holds[0].units,
            work=command.work,
            run_time=booking.run_time,
            name=command.name,
            program=command.program,
            inputs=tuple(map(self._given, command.inputs)),
            started=command.started,
            job=booking.job,
        )

    def _given(self, file: Input) -> GivenFile:
        assert self._contents is not None  # programs with inputs need a store
        return GivenFile(file.name, file.size, file.sha256, self._contents.path(file))

    async def _move(self, entry: _Entry, command: Move) -> None:
        booking = entry.booking
        name, place = booking.booking, booking.placement
        old, new = (place.start, place.end), (command.begin, command.end)
        moved: list[tuple[str, str]] = []
        for hold, reservation_id in zip(booking.holds, entry.reservations, strict=True):
            try:
                await self._move_one(entry, hold.site, reservation_id, old, new)
            except ReservationRefused as error:
                self._log.info("not_moved", booking=name, reason=str(error))
                await self._move_back(entry, moved, old, new)
                self._tell(MoveRefused(0, name, str(error), error.taken))
                return
            moved.append((hold.site, reservation_id))
        self._tell(Moved(0, name, *new))

    async def _move_one(
        self, entry: _Entry, site: str, reservation_id: str, old: Window, new: Window
    ) -> None:
        await self._until_answered(site, entry, lambda s: s.move(reservation_id, old, new))

    async def _move_back(
        self, entry: _Entry, moved: list[tuple[str, str]], old: Window, new: Window
    ) -> None:
        # What still holds all of its old window does no harm where it is.
        for site, reservation_id in moved:
            try:
                await self._move_one(entry, site, reservation_id, new, old)
            except ReservationRefused as error:
                if new[0] > old[0] or new[1] < old[1]:
                    self._lost(entry, f"part of it was moved, and cannot be moved back: {error}")

    async def _withdraw(self, entry: _Entry) -> None:
        # Its site tells what becomes of it.
        if not entry.over:
            site, known = entry.booking.holds[0].site, entry.reservations[0]
            await self._until_answered(site, entry, lambda port: port.withdraw(known))

    async def _release(self, entry: _Entry) -> None:
        booking = entry.booking
        if entry.unsure and len(entry.reservations) < len(booking.holds):
            # It is unknown whether anything was reserved; asking again tells.
            entry.reservations = await self._find(entry)
        for hold, reservation_id in zip(booking.holds, entry.reservations, strict=False):
            if reservation_id and not entry.gone:
                known = await self._until_answered(
                    hold.site,
                    None,
                    lambda s, r=reservation_id: s.release(r),  # type: ignore[misc]  # bound now
                )
                if known is not None and reservation_id == entry.reservations[0]:
                    self._update(entry, known, released=True)
                    if known.state is ReservationState.ENDED and not entry.over:
                        await self._end_with_outputs(entry, known, None)
        self._tell(Released(0, booking.booking))

    async def _find(self, entry: _Entry) -> tuple[str, ...]:
        found: list[str] = []
        for hold, wish in zip(entry.booking.holds, self._wishes(entry), strict=True):
            if wish.end <= self._clock.now():
                break  # what may be there expires by itself
            try:
                known = await self._until_answered(
                    hold.site,
                    None,
                    lambda s, w=wish: s.book(w),  # type: ignore[misc]  # bound now
                )
                found.append(known.reservation_id)
            except ReservationRefused:
                found.append("")
        return tuple(found)

    def _lost(self, entry: _Entry, reason: str, taken: tuple[int, ...] = ()) -> None:
        if not entry.over:
            entry.over = True
            self._tell(BookingLost(0, entry.booking.booking, reason, taken))

    async def _until_answered(
        self,
        site: str,
        entry: _Entry | None,
        call: Callable[[Site], Awaitable[_T]],
        *,
        waits: bool = False,
    ) -> _T:
        # Repeats a call until it is answered or the entry, if given, is released. A site that is not configured refuses,
        # unless the call `waits` for it.
        backoff = Backoff(PAUSES)
        told = False
        while True:
            if entry is not None and entry.given_up.is_set():
                raise _GivenUpError
            port = self._sites.get(site)
            if port is not None:
                try:
                    return await call(port)
                except SiteUnavailable as error:
                    self._log.debug("site_does_not_answer", site=site, reason=str(error))
            elif entry is not None and not waits:
                raise ReservationRefused(f"there is no site {site!r} in the configuration")
            elif entry is not None and not told:
                told = True
                self._log.warning(
                    "run_at_a_site_that_is_not_configured",
                    site=site,
                    booking=entry.booking.booking,
                    cure="configure it again, or cancel the workflow",
                )
            await self._rest(entry, backoff.next_s())

    @staticmethod
    async def _rest(entry: _Entry | None, pause: float) -> None:
        if entry is None:
            await asyncio.sleep(pause)
            return
        try:
            async with asyncio.timeout(pause):
                await entry.given_up.wait()
        except TimeoutError:
            pass

    def _update(self, entry: _Entry, known: Reservation, *, released: bool = False) -> None:
        name = entry.booking.booking
        if entry.over:
            return
        if known.start_time is not None and not entry.started:
            entry.started = True
            self._tell(Started(0, name, known.start_time))
        self._hindered(entry, known)
        match known.state:
            case ReservationState.ENDED if not _leaves_outputs(entry, known):
                self._end(entry, known)
            case ReservationState.ENDED:
                if not released and not entry.ended:
                    entry.ended = True
                    self._put(entry, known)
            case ReservationState.RELEASED if released or entry.given_up.is_set():
                entry.over = True
            case ReservationState.RELEASED | ReservationState.EXPIRED:
                self._given_back(entry, known)
            case _:
                pass
        if entry.over and not (entry.given_up.is_set() or entry.gone):
            self._forget(entry)
            if entry.served:
                entry.commands.put_nowait(None)

    def _hindered(self, entry: _Entry, known: Reservation) -> None:
        if known.state is not ReservationState.LAUNCHED:
            return
        reason = known.hindered
        # What was told before the broker began again may not be so any more.
        unsure = entry.hindered is None and entry.launch is not None and entry.launch.again
        if unsure or reason != (entry.hindered or ""):
            self._tell(Hindered(0, entry.booking.booking, reason))
        entry.hindered = reason

    def _given_back(self, entry: _Entry, known: Reservation) -> None:
        # Its site has ended it, or has not begun it and never will.
        if known.start_time is None:
            self._lost(entry, known.reason or f"its reservation is {known.state.value}")
            entry.gone = entry.booking.group is not None
            return
        entry.over = True
        now, name = self._clock.now(), entry.booking.booking
        reason = "its site has ended it"
        self._tell(Ended(0, name, Outcome.CANCELLED, known.start_time, now, reason))

    # --- what a run has left -------------------------------------------------------------------

    async def _end_with_outputs(
        self, entry: _Entry, known: Reservation, waits: _Entry | None
    ) -> None:
        # Tells that a program has ended once its outputs are there. It is given up with `waits`, if that is.
        assert entry.launch is not None
        outputs, problem = await self._outputs(entry, entry.launch, known, waits)
        if problem:
            known = replace(known, outcome=Outcome.FAILED, reason=problem)
        self._end(entry, known, outputs)

    def _end(self, entry: _Entry, known: Reservation, outputs: tuple[Output, ...] = ()) -> None:
        end = self._clock.now() if known.end_time is None else known.end_time
        entry.over = True
        self._tell(
            Ended(
                0,
                entry.booking.booking,
                known.outcome or Outcome.FAILED,
                known.start_time,
                end,
                known.reason,
                known.exit_code,
                known.signal,
                outputs,
                known.kept,
            )
        )

    async def _outputs(
        self, entry: _Entry, launch: Launch, known: Reservation, waits: _Entry | None
    ) -> tuple[tuple[Output, ...], str]:
        # What a program has left of what it has declared, and why that is not good; empty where it is.
        program = launch.program
        assert program is not None
        site = entry.booking.holds[0].site
        where = known.reservation_id, known.job
        try:
            left = await self._until_answered(site, waits, lambda s: _complete(s, *where))
        except ReservationRefused as error:
            return (), f"what it has left cannot be looked at: {error}"
        found = {file.name: file for file in left.files}
        outputs: list[Output] = []
        for name in program.outputs:
            file = found.get(name)
            problem = left.problem or "it is not there" if file is None else _WORDS[file.problem]
            if file is None or problem:
                return tuple(outputs), f"it has not left its output {name!r}: {problem}"
            outputs.append(Output(name, file.size_bytes, file.sha256))
        for output in outputs:
            if output.name in launch.needed and (
                problem := await self._bring(site, output, where, waits)
            ):
                return tuple(outputs), f"its output {output.name!r} cannot be brought: {problem}"
        return tuple(outputs), ""

    async def _bring(
        self, site: str, output: Output, where: tuple[str, str], waits: _Entry | None
    ) -> str:
        # Brings an output here for those that are given it; returns why that cannot be, or nothing.
        contents = self._contents
        assert contents is not None  # programs with outputs need a store

        async def bring(port: Site) -> None:
            try:
                await contents.bring(output, lambda at: port.read(*where, output.name, at))
            except (NoRoomError, OSError) as error:
                self._log.warning("output_waits_for_room", output=output.name, problem=str(error))
                raise SiteUnavailable(str(error)) from error

        try:
            await self._until_answered(site, waits, bring)
        except (ReservationRefused, ValueError) as error:
            return str(error)
        return ""

    # --- what people look at -------------------------------------------------------------------

    def site(self, name: str) -> Site | None:
        """Returns a site by its name; `None` if there is none."""
        return self._sites.get(name)


def _may_run(entry: _Entry) -> bool:
    # Whether a run of before may be at its site.
    return entry.launch is not None and entry.launch.again


def _leaves_outputs(entry: _Entry, known: Reservation) -> bool:
    # Whether its program is to have left something that is looked at before it counts as completed.
    launch = entry.launch
    return (
        known.outcome is Outcome.COMPLETED
        and launch is not None
        and launch.program is not None
        and bool(launch.program.outputs)
    )


_WORDS: Final = {
    "": "",
    "missing": "it is not there",
    "no_file": "it is no plain file",
    "too_large": "it is larger than its site hands out",
}


async def _complete(site: Site, reservation_id: str, job: str) -> Results:
    # A program's files once they do not change any more.
    left = await site.files(reservation_id, job)
    if not left.complete:
        raise SiteUnavailable(left.problem or "its files are not final yet")
    return left
