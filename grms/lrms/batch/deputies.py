"""Users' deputies: processes of the users that run a batch system's programs as these, where the daemon cannot.

The other way is sudo. A deputy connects by itself; who it is the kernel says (`grms.site.gateway.user_listener`), and it
is given orders about jobs of that user alone. Its answers are believed as little as what a user's job says: a submission
is known by its name and owner in the batch system's own table, so that a wrong answer harms nobody but the deputy's user.

- Without a deputy, nothing is run, and that is certain: `NoDeputyError`. The job waits.
- An order without an answer may have been carried out: `UserAwayError`. It is looked up, and never sent a second time by
  itself. An order says until when it may be begun, so that one that was slept through is not carried out long after.
- A deputy that leaves orders unanswered is given none for a while, which doubles, and with each answer becomes shorter
  again: so no user can keep the others waiting.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, runtime_checkable

from grms.daemon.pacing import pause_after
from grms.lrms.account_mapping import account_number
from grms.lrms.base import LrmsRefusedError, NoDeputyError, UserAwayError
from grms.lrms.batch.subprocesses import ERROR_CHARACTERS_MAX, Answer

WAITS: Final = "it waits for its user's deputy (grms deputy)"
"""Why a job stands whose user's deputy is not there."""

SLEEPS: Final = "it waits for its user's deputy, which has left orders unanswered"
"""Likewise where it is there and does not answer."""

ORDERS_AT_ONCE: Final = 2
"""Orders of one deputy under way; further ones wait."""

OUTPUT_BYTES_MAX: Final = 64 << 10
"""Most bytes of a program's output that a deputy passes on: what is asked for is about one job, or a few."""

PAUSE_FIRST_S: Final = 30.0
"""How long a deputy is given no orders that has left one unanswered, seconds."""

PAUSE_MOST_S: Final = 600.0
"""The longest such pause."""

ANSWERS_FORGIVEN: Final = 20
"""After so many answers, one that was missing counts no more."""


def boot_time() -> float:
    """Returns the seconds since this host has booted, in which all of its processes agree, asleep or not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class DeputyOrder:
    """A program to be run once by a deputy.

    Attributes:
        order_id: unguessable.
        program: its name.
        arguments: passed unchanged.
        environment: additional variables.
        folder: working directory.
        umask: negative for the deputy's own.
        until_s: it is neither begun nor awaited after, by `boot_time`.
    """

    order_id: str
    program: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    umask: int
    until_s: float


@dataclass(frozen=True, slots=True)
class NotRun:
    """A deputy's answer that it has not run a program, and will not."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotKnown:
    """A deputy's answer that a program may have had its effect."""

    reason: str


DeputyResult = Answer | NotRun | NotKnown


class Deputy:
    """One connection of a deputy; its user's number is `uid`."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self.replaced = False
        self.turn = asyncio.Semaphore(ORDERS_AT_ONCE)
        self._orders: asyncio.Queue[DeputyOrder | None] = asyncio.Queue()

    def give(self, order: DeputyOrder | None) -> None:
        """Gives it an order; `None` for the last time."""
        self._orders.put_nowait(order)

    async def orders(self) -> AsyncIterator[DeputyOrder]:
        """Yields its orders, until it has the last one."""
        while (order := await self._orders.get()) is not None:
            yield order


@dataclass(slots=True)
class _Open:
    # An order without an answer.
    deputy: Deputy
    answer: asyncio.Future[DeputyResult]


@dataclass(slots=True)
class _Record:
    # How well a user's deputies answer.
    missing: int = 0
    answers: int = 0
    until: float = float("-inf")


@dataclass(slots=True)
class Deputies:
    """The deputies that are there, and their orders.

    Attributes:
        on_came: called with the user's number whenever a deputy has come.

    Args:
        timeout_s: of one order, seconds.
        environment: variables of the batch system's programs.
        clock: real seconds for pauses.
        number_of: returns the number of an account; `LrmsRefusedError` if it may run no jobs.
    """

    timeout_s: float
    environment: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    number_of: Callable[[str], int] = lambda account: account_number(account)[0]
    on_came: list[Callable[[int], None]] = field(default_factory=list)
    closed: bool = False
    _there: dict[int, Deputy] = field(default_factory=dict)
    _open: dict[str, _Open] = field(default_factory=dict)
    _records: dict[int, _Record] = field(default_factory=dict)

    # --- deputies ------------------------------------------------------------------------------

    def come(self, uid: int) -> Deputy:
        """Takes a new deputy in its user's former one's place."""
        deputy = Deputy(uid)
        if (former := self._there.get(uid)) is not None:
            former.replaced = True
            former.give(None)
        self._there[uid] = deputy
        for tell in self.on_came:
            tell(uid)
        return deputy

    def leave(self, deputy: Deputy) -> None:
        """Notes that a deputy is gone; what it was about may have been done."""
        if self._there.get(deputy.uid) is deputy:
            del self._there[deputy.uid]
        if deputy.replaced:
            return  # the process may be there, and answer what it has
        for each in self._open.values():
            if each.deputy is deputy and not each.answer.done():
                each.answer.set_result(NotKnown("it has gone before it answered"))

    def close(self) -> None:
        """Lets all go, and takes none any more."""
        self.closed = True
        for deputy in self._there.values():
            deputy.give(None)

    def is_there(self, uid: int) -> bool:
        """Returns whether a user's deputy is there."""
        return uid in self._there

    def present(self) -> list[tuple[int, str]]:
        """Returns the users whose deputies are there, by number, and why one is given no orders now."""
        return [(uid, self._problem(uid)) for uid in sorted(self._there)]

    def answered(self, uid: int, order_id: str, result: DeputyResult) -> bool:
        """Takes an answer of a user's deputy; returns whether it was given such an order, and has not answered."""
        each = self._open.get(order_id)
        if each is None or each.deputy.uid != uid or each.answer.done():
            return False
        each.answer.set_result(result)
        return True

    # --- orders --------------------------------------------------------------------------------

    def waits_for(self, account: str) -> str:
        """Returns why nothing can be run as an account now; empty if it can be tried."""
        try:
            return self._problem(self.number_of(account))
        except LrmsRefusedError as error:
            return error.reason

    def _problem(self, uid: int) -> str:
        if uid not in self._there:
            return WAITS
        record = self._records.get(uid)
        return SLEEPS if record is not None and self.clock() < record.until else ""

    async def run(
        self,
        account: str,
        program: str,
        arguments: Sequence[str],
        *,
        also: Mapping[str, str],
        folder: str,
        umask: int,
    ) -> Answer:
        """Returns a program's answer that an account's deputy has run.

        Raises:
            NoDeputyError: it was not run.
            LrmsRefusedError: the account may run no jobs.
            UserAwayError: it may have been run.
        """
        uid = self.number_of(account)
        if problem := self._problem(uid):
            raise NoDeputyError(problem)
        deputy = self._there[uid]
        async with deputy.turn:
            if self._there.get(uid) is not deputy or self._problem(uid):
                raise NoDeputyError(self._problem(uid) or WAITS)
            result = await self._asked(
                deputy,
                DeputyOrder(
                    secrets.token_hex(16),
                    program,
                    tuple(arguments),
                    {**self.environment, **also},
                    folder,
                    umask,
                    boot_time() + self.timeout_s,
                ),
            )
        if isinstance(result, NotRun):
            text = f"its user's deputy has not run {program}: {result.reason}"
            raise NoDeputyError(text[:ERROR_CHARACTERS_MAX])
        if isinstance(result, NotKnown):
            text = f"{program}, as its user's deputy has run it: {result.reason}"
            raise UserAwayError(text[:ERROR_CHARACTERS_MAX])
        return replace(result, theirs=True)

    async def _asked(self, deputy: Deputy, order: DeputyOrder) -> DeputyResult:
        each = _Open(deputy, asyncio.get_running_loop().create_future())
        self._open[order.order_id] = each
        try:
            deputy.give(order)
            async with asyncio.timeout(self.timeout_s):
                result = await each.answer
        except TimeoutError:
            self._missed(deputy.uid)
            return NotKnown(f"there was no answer within {self.timeout_s:g} s")
        except asyncio.CancelledError:
            self._missed(deputy.uid)  # whoever asks may wait for less
            raise
        finally:
            del self._open[order.order_id]
        if not isinstance(result, NotKnown):
            self._well(deputy.uid)
        return result

    def _missed(self, uid: int) -> None:
        record = self._records.setdefault(uid, _Record())
        record.missing, record.answers = record.missing + 1, 0
        record.until = self.clock() + pause_after(record.missing, PAUSE_FIRST_S, PAUSE_MOST_S)

    def _well(self, uid: int) -> None:
        if (record := self._records.get(uid)) is None:
            return
        record.answers += 1
        if record.answers >= ANSWERS_FORGIVEN:
            record.missing, record.answers = record.missing - 1, 0
            if record.missing <= 0:
                del self._records[uid]


@runtime_checkable
class WithDeputies(Protocol):
    """An LRMS whose users' jobs may be submitted by deputies."""

    @property
    def deputies(self) -> Deputies | None:
        """These, if so configured."""
