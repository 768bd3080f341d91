"""Keeps the places of own jobs that are elsewhere, in the queue of a batch system that can keep them.

Such a job stays in the queue as a *marker*: the job itself, under another name and with a start far ahead. It comes back by a
start now, with which Slurm leaves it where it was submitted (`priority/basic`); a hold and its release would put it behind all
others.

A marker must never run while its job is elsewhere, whoever starts it: a controller that has forgotten the far start in a crash,
an operator, or time. So a file in the job's folder (`ASIDE`) has its launcher end before the script, until the host has said
that the job has ended and its home has submitted it again. Only then is the file taken away, and after it the far start.
A job may start while Slurm is asked to put its start off. So until Slurm's answer is known the file has its launcher wait: a
launcher that ended would have taken the job from its user.

What was asked is noted on the disk, and compared with each poll: what a crash has undone is done again. A marker that has ended,
or that was started, has lost its place; the job is submitted anew when it comes back, behind all others.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import structlog

from grms.lrms.base import LrmsError, LrmsPhase, LrmsRefusedError, UserAwayError
from grms.lrms.batch.job_tracker import MISSING_LOOKS, JobTracker, Order
from grms.lrms.batch.launcher import Spool, place_key
from grms.lrms.batch.poller import Poller
from grms.lrms.batch.queue_snapshot import JobRow, QueueSnapshot
from grms.lrms.batch.system import PlaceKeepingSystem
from grms.lrms.disk import Disk
from grms.lrms.job_notes import KeptPlace

_NOT_STARTED: Final = frozenset((LrmsPhase.WAITING, LrmsPhase.HELD))

OVER_MAX: Final = 10_000
"""Of so many jobs it is known what has become of their places."""

BACK: Final = "it came back to its place"

_log = structlog.get_logger()


class KeptPlaces:
    """The markers of one batch system; keys are those of a job's first submission (`place_key`).

    Attributes:
        lock: held by whoever changes a place.

    `settle_s` is the age in seconds from which a change survives a crash of the batch system; `clock` is in seconds since 1970.
    """

    def __init__(
        self,
        system: PlaceKeepingSystem,
        spool: Spool,
        poller: Poller,
        *,
        settle_s: float,
        decode: Callable[[str], str | None],
        clock: Callable[[], float],
    ) -> None:
        self._system = system
        self._spool = spool
        self._poller = poller
        self._disk: Disk = poller.disk
        self._tracker: JobTracker = poller.tracker
        self._settle_s = settle_s
        self._decode = decode
        self._clock = clock
        self._kept: dict[str, KeptPlace] | None = None
        self.lock = asyncio.Lock()
        self._missing: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._started: set[str] = set()  # Slurm has agreed to start them
        self._refused: dict[str, str] = {}
        self._over: dict[str, str] = {}  # what became of places that are kept no more
        poller.known = self._known

    # --- what the adapter asks ---------------------------------------------------------------------

    async def of(self, key: str) -> KeptPlace | None:
        """Returns what is kept for a job that is elsewhere; `None` if nothing is, or it has come back."""
        found = (await self._all()).get(place_key(key))
        return None if found is None or found.back else found

    async def comes_back(self, key: str) -> KeptPlace | None:
        """Returns what is kept for a job that comes back under this key, also if that has begun and was cut off."""
        found = (await self._all()).get(place_key(key))
        return found if found is not None and found.back in {"", key} else None

    async def away(self) -> Mapping[str, KeptPlace]:
        """Returns the places of all jobs that are elsewhere."""
        return {key: one for key, one in (await self._all()).items() if not one.back}

    def words(self, key: str) -> str:
        """Returns whether a job's place is kept, and how, for people; empty if nothing is known of it."""
        key = place_key(key)
        place = (self._kept or {}).get(key)
        if place is None:
            return self._over.get(key, "")
        if place.back:
            return BACK
        if not place.number:
            return "the marker that is to keep its place is being submitted"
        marker = f"a marker, job {place.number} of the batch system"
        if (why := self._refused.get(key, "")) != "":
            return f"it keeps its place by {marker}, of which that says: {why}"
        if not self._system.keeps_places:
            return f"{marker}, waits for it; by the priorities there its waiting time may count from its return on"
        return f"it keeps its place by {marker}"

    def tell(self, key: str, words: str) -> None:
        """Notes what has become of a place that is not kept any more, for people."""
        self._over.pop(place_key(key), None)
        self._over[place_key(key)] = words
        if len(self._over) > OVER_MAX:
            del self._over[next(iter(self._over))]

    async def counted(self, account: str) -> int:
        """Returns how many markers count for the limits of an account; the daemon's own is empty."""
        places = [
            place for place in (await self._all()).values() if place.number and not place.back
        ]
        accounts = [await self._disk.do(self._spool.account, place.key) for place in places]
        return accounts.count(account)

    async def note(self, key: str, place: KeptPlace) -> None:
        """Notes a place durably, before what is asked of the batch system."""
        kept = await self._all()
        self._over.pop(place_key(key), None)
        await self._disk.do(self._spool.keep_place, place_key(key), place)
        kept[place_key(key)] = place
        self._missing.pop(place_key(key), None)
        self._since[place_key(key)] = self._clock()

    async def forget(self, key: str) -> None:
        """Forgets a place."""
        await self._disk.do(self._spool.forget_place, place_key(key))
        self._started.discard(place_key(key))
        for known in (await self._all(), self._missing, self._since):
            known.pop(place_key(key), None)

    async def _all(self) -> dict[str, KeptPlace]:
        if self._kept is None:
            found = await self._disk.do(self._spool.places)
            if (
                self._kept is None
            ):  # else another has read them first, and may have noted more since
                self._kept = found
        return self._kept

    def marker(self, key: str, table: QueueSnapshot) -> JobRow | None:
        """Returns the row of a marker; of several the first submitted."""
        rows = [row for row in table.rows if self._system.place_of(row.name) == place_key(key)]
        return min(rows, key=lambda row: (not row.live, len(row.number), row.number), default=None)

    async def end(self, key: str, *, only_away: bool = False) -> bool:
        """Ends the marker of a job that does not come back; returns whether there was one.

        With `only_away` a job that has come back is left alone, also where a crash has undone that.
        """
        place = (await self._all()).get(place_key(key))
        if place is None:
            self._over.pop(place_key(key), None)
            return False
        row = self.marker(key, (await self._poller.new()).table)
        is_there = row is not None and row.live
        if place.back and (only_away or not is_there):
            return False  # it has come back, and is a job like any other
        if row is not None and is_there:
            await self._system.cancel(row)
        await self.forget(key)
        return True

    async def bring_back(self, key: str, name: str, place: KeptPlace) -> JobRow | None:
        """Gives a marker the name of the job that comes back; it does not start yet.

        Its folder has been laid out before, with the file that keeps it from starting. Returns its row; `None` if its
        place is lost.

        Raises:
            LrmsUnavailableError: whether it was done is unknown; a later call does it again.
        """
        row = self.marker(key, (await self._poller.new()).table)
        if row is None or row.phase is not LrmsPhase.WAITING:
            if row is not None and row.live:
                await self._system.cancel(row)
            await self._lost(key, "its marker had ended, had been started or was held")
            return None
        # First: under its own name, with a start far ahead, nobody would take it for a marker after a crash.
        await self.note(key, replace(place, number=row.number, back=key))
        try:
            await self._system.rename(row, name)
        except LrmsRefusedError as error:
            # Where its partition is closed, Slurm says that it refuses, and does it.
            table = (await self._poller.new()).table
            if not any(one.number == row.number and one.name == name for one in table.rows):
                await self._system.cancel(row)
                await self._lost(key, error.reason)
                return None
        return replace(row, name=name)

    async def start(self, key: str, row: JobRow, place: KeptPlace) -> None:
        """Lets a job that has come back start in its turn."""
        await self._disk.do(self._spool.lift_aside, place.key, key)
        await self._system.start_now(row)
        self._started.add(place_key(key))
        self._since[place_key(key)] = self._clock()
        self._poller.want()

    async def _lost(self, key: str, reason: str) -> None:
        _log.warning("lrms.place_lost", job=place_key(key), reason=reason)
        await self.forget(key)
        self.tell(
            key,
            f"it has lost its place, and stands behind all that wait when it comes back: {reason}",
        )

    # --- a poll ------------------------------------------------------------------------------------

    async def look(self, table: QueueSnapshot, orders: Sequence[Order]) -> list[Order]:
        """Does again what a poll shows to be undone; returns the orders that are left for others.

        What fails is left to the next poll.
        """
        async with self.lock:
            return await self._look(table, orders)

    async def _look(self, table: QueueSnapshot, orders: Sequence[Order]) -> list[Order]:
        try:
            kept = dict(await self._all())
            for key, place in kept.items():
                if table.began_at <= self._since.get(key, -math.inf):
                    continue  # this poll does not know of it yet
                look = self._look_back if place.back else self._look_away
                await self._one(key, look(key, place, table))
            for row in table.rows:
                key = self._system.place_of(row.name) or ""
                if key and key not in kept and row.live and row.phase in _NOT_STARTED:
                    await self._one(key, self._look_unnoted(key, row))
        except LrmsError as error:
            _log.warning("lrms.places_not_kept", reason=error.reason)
        away = {place.number for place in (self._kept or {}).values() if not place.back}
        return [order for order in orders if order.row.number not in away]

    async def _one(self, key: str, look: Awaitable[None]) -> None:
        # What is refused, or left unanswered by one user's process, keeps no other place waiting.
        try:
            await look
            self._refused.pop(key, None)
        except (LrmsRefusedError, UserAwayError) as error:
            if self._refused.get(key) != error.reason:
                _log.warning("lrms.place_not_kept", job=key, reason=error.reason)
            self._refused[key] = error.reason

    async def _look_away(self, key: str, place: KeptPlace, table: QueueSnapshot) -> None:
        row = self.marker(key, table) or self._with_old_name(place, table)
        if row is None:
            await self._look_missing(key, place, table)
            return
        self._missing.pop(key, None)
        if place.number != row.number:
            place = replace(place, number=row.number)
            await self.note(key, place)
        if row.phase not in _NOT_STARTED:
            await self._look_started(key, place, row)
        elif row.phase is LrmsPhase.HELD:
            if not place.released and self._is_settled(key, table):
                await self.note(key, replace(place, released=True))
                try:
                    await self._system.release(row)
                except LrmsError:
                    await self.note(key, place)  # the next poll asks again
                    raise
        elif self._system.place_of(row.name) is None or not self._system.is_aside(row):
            if place.left:
                await self._disk.do(self._spool.ask_aside, place.key)  # a crash came before
            await self._system.set_aside(row, self._system.place_name(key))

    async def _look_missing(self, key: str, place: KeptPlace, table: QueueSnapshot) -> None:
        self._missing[key] = self._missing.get(key, 0) + 1
        if self._missing[key] < MISSING_LOOKS or not self._is_settled(key, table):
            return
        if await self._is_undecided(place):
            await self._stays(place.key, None, place)
        else:
            await self._lost(key, "the batch system does not have its marker any more")

    async def _look_started(self, key: str, place: KeptPlace, row: JobRow) -> None:
        if await self._is_undecided(place):
            await self._stays(place.key, row, place)
            return
        if row.live:
            await self._system.cancel(row)
        await self._lost(key, "its marker was ended, or started, and has not run")

    async def _is_undecided(self, place: KeptPlace) -> bool:
        # Whether it was not known yet if a job has left: its launcher waits for that, if it has one that starts.
        return place.left and await self._disk.do(self._spool.is_asked_aside, place.key)

    async def _look_unnoted(self, key: str, row: JobRow) -> None:
        # One that came back long ago, which a controller with an older state has forgotten, or one for which nobody waits.
        back = self._tracker.key_of(row.number)
        if back is None or place_key(back) != key:
            await self._system.cancel(row)
        else:
            await self.note(back, KeptPlace(row.number, back, released=True, back=back))

    def _with_old_name(self, place: KeptPlace, table: QueueSnapshot) -> JobRow | None:
        # One whose leaving a crash has undone has its old name, and would start. One that has started was faster, and stays,
        # or its launcher ends it.
        rows = (row for row in table.rows if place.number and row.number == place.number)
        row = next((row for row in rows if self._decode(row.name) == place.key), None)
        return row if row is not None and row.phase in _NOT_STARTED else None

    async def _known(self, table: QueueSnapshot) -> QueueSnapshot:
        # A crash may have undone both that a job left and that it came back. Under the name of its earlier submission it is the
        # job all the same, also when it runs: its launcher has gone on in the folder of its return.
        back = {place.number: place.back for place in (await self._all()).values() if place.back}
        if not back:
            return table
        rows = tuple(self._known_row(row, back.get(row.number, "")) for row in table.rows)
        return replace(table, rows=rows)

    def _known_row(self, row: JobRow, back: str) -> JobRow:
        # With its number alone it could be a job of another place, or of another site; and a later submission of the same
        # job may have got it from a controller that has forgotten the other.
        key = self._decode(row.name) if back else None
        if key is None or place_key(key) != place_key(back) or _times(key) >= _times(back):
            return row
        return replace(row, known_as=back)

    async def _look_back(self, key: str, place: KeptPlace, table: QueueSnapshot) -> None:
        row = self.marker(key, table)
        if row is None or row.phase not in _NOT_STARTED:
            row = next((one for one in table.rows if one.live and one.known_as == place.back), None)
        if row is not None:
            name = self._system.shown_as(row.name, place.back)
            await self._system.rename(row, name)
            self._since[key] = self._clock()  # a crash may undo this, too
            if row.phase in _NOT_STARTED:
                await self.start(place.back, replace(row, name=name, known_as=""), place)
            return
        rows = (one for one in table.rows if one.number == place.number)
        row = next((one for one in rows if self._decode(one.name) == place.back), None)
        waits = row is not None and row.phase in _NOT_STARTED
        if row is not None and waits and (key not in self._started or self._system.is_aside(row)):
            # Whatever it is said to wait for, as for a partition that is closed: its start may be far ahead.
            await self.start(place.back, row, place)
        elif self._is_settled(key, table):
            await self.forget(key)
            self.tell(key, BACK)

    def _is_settled(self, key: str, table: QueueSnapshot) -> bool:
        since = self._since.setdefault(key, table.taken_at)
        return table.taken_at - since >= self._settle_s

    # --- leaving the queue -------------------------------------------------------------------------

    async def leave(self, key: str, row: JobRow | None) -> bool:
        """Sets a waiting job aside; returns whether it waits aside now, and has never begun.

        Its orders must not be carried out meanwhile. `row` is of the last poll; `None` if that does not show that it waits.

        Raises:
            LrmsError: it was refused or unanswered; in the latter case a later call says what came of it.
        """
        place = await self.of(key)
        if place is None or place.key != key:
            if row is None or not await self._disk.do(self._spool.can_be_aside, key):
                return False
            # First: after a crash nobody else would know of a launcher that waits.
            place = KeptPlace(row.number, key, released=True, left=True)
            await self.note(key, place)
        await self._disk.do(self._spool.ask_aside, key)
        try:
            if row is not None:
                await self._system.set_aside(row, self._system.place_name(key))
        except LrmsRefusedError:
            pass  # Slurm has given one that has started meanwhile the name all the same
        return await self.has_left(key, place)

    async def has_left(self, key: str, place: KeptPlace) -> bool:
        """Returns whether a job that was to be set aside is; one that has started meanwhile stays."""
        table = (await self._poller.new()).table
        row = self.marker(key, table)
        begun = bool(await self._disk.do(self._spool.runs, key))
        if row is not None and row.phase is LrmsPhase.WAITING and not begun:
            await self._disk.do(self._spool.set_aside, key)
            self._poller.tell(self._tracker.left(key, self._clock()))
            return True
        await self._stays(key, row, place)
        return False

    async def _stays(self, key: str, row: JobRow | None, place: KeptPlace) -> None:
        if row is not None and row.live:
            name = self._system.shown_as(row.name, place.key)
            # It has ended since; what it has written says how. Or its partition is closed: then Slurm says so, and does it.
            with suppress(LrmsRefusedError):
                await self._system.rename(row, name)
            if row.phase in _NOT_STARTED:  # as one that somebody holds
                with suppress(LrmsRefusedError):
                    await self._system.start_now(replace(row, name=name))
        await self._disk.do(self._spool.lift_aside, key, key)
        await self.forget(key)


def _times(key: str) -> int:
    # How often a job had been submitted under a key.
    count = key.removeprefix(place_key(key)).removeprefix("/")
    return int(count) if count else 1
