"""Rails: what an exchange keeps to, whatever the transfer policy inside would like.

A transfer policy says what a site wants. Rails say what is fair: they are rules that a site keeps by
itself, from what it knows anyway, so that its own users lose less, or nothing. They bound no loss: in
half-years of recorded logs hardly a site has lost by them, and four jobs make one lose nearly everything
(docs/fair-exchange.md). What they are for, in plain words, is in docs/fair-exchange.md; the tie rules are in docs/disciplines.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from grms.policy._rails import CompiledRails

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR

DOUBLINGS_MAX: Final = 30
"""A day doubled so often is three million years."""


def _at_least(name: str, value: float, least: float, *, beyond: bool = False) -> None:
    if not math.isfinite(value) or value < least or (beyond and value == least):
        bound = "more than" if beyond else "at least"
        raise ValueError(f"{name} is {value}; it must be finite and {bound} {least:g}")


@dataclass(frozen=True, slots=True)
class Promise:
    """How a site holds a partner to its promise to start at once what it accepts.

    A partner breaks its promise with a job that comes back later than that, or has not come back
    when by its request it should have. Its credit is then gone, and it gets no offer for a
    while.

    Attributes:
        tolerance: a delay that is no breach, seconds, at least 0.
        trust: work a partner without credit may hold at once, as seconds of the whole machine of
            the site that offers, at least 0; credit adds the requests of all jobs done as
            promised. A single job goes to a partner that holds none, however long it is.
        suspension: without offers after the first breach, seconds, more than 0.
        doublings: how often the suspension doubles with further breaches, at most; 0 to 30.

    Raises:
        ValueError: a number is out of its bounds.
    """

    tolerance: float = HOUR
    trust: float = 4 * HOUR
    suspension: float = DAY
    doublings: int = 5

    def __post_init__(self) -> None:
        """Checks the numbers."""
        _at_least("tolerance", self.tolerance, 0)
        _at_least("trust", self.trust, 0)
        _at_least("suspension", self.suspension, 0, beyond=True)
        if not 0 <= self.doublings <= DOUBLINGS_MAX:
            raise ValueError(f"doublings is {self.doublings}; it must be in 0..{DOUBLINGS_MAX}")


@dataclass(frozen=True)
class Rails:
    """The rules an exchange keeps to. The defaults are those of `fair-exchange`.

    Attributes:
        start_now: home offers only what its own batch system would not start at once; a partner
            accepts only what its own would.
        guest_length: a guest may request at most so many times what own users' completed jobs have
            requested on the average, weighted by their work; None: any time. More than 0.
        balance: work of a partner's jobs taken, less `balance_weight` times the work it has done
            for this site, at most; as seconds of this site's whole machine, at least 0; None: any.
        balance_weight: how many times work that was given counts; at least 0.
        promise: how partners are held to their promise; None: nobody looks.

    Raises:
        ValueError: a number is out of its bounds.
    """

    start_now: bool = True
    guest_length: float | None = 2.0
    balance: float | None = DAY
    balance_weight: float = 2.0
    promise: Promise | None = Promise()

    def __post_init__(self) -> None:
        """Checks the numbers."""
        if self.guest_length is not None:
            _at_least("guest_length", self.guest_length, 0, beyond=True)
        if self.balance is not None:
            _at_least("balance", self.balance, 0)
        _at_least("balance_weight", self.balance_weight, 0)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the compiled form out, which is rebuilt where rails arrive in another process."""
        return {name: value for name, value in vars(self).items() if name != "compiled"}

    @cached_property
    def compiled(self) -> CompiledRails:
        """The rails as every host keeps to them."""
        promise = self.promise
        return CompiledRails(
            start_now=self.start_now,
            guest_length=math.inf if self.guest_length is None else self.guest_length,
            balance=math.inf if self.balance is None else self.balance,
            balance_weight=self.balance_weight,
            promise=None
            if promise is None
            else (promise.tolerance, promise.trust, promise.suspension, promise.doublings),
        )


START_NOW: Final = Rails(guest_length=None, balance=None, promise=None)
"""Offer what would not start at once, take what would; nothing else."""

SHORT_GUESTS: Final = Rails(balance=None, promise=None)
"""The same, and no guest that is much longer than own users' jobs."""

FAIR_EXCHANGE: Final = Rails()
"""All four: start now, length of guests, balance, promise."""

RAILS: Final[Mapping[str, Rails]] = MappingProxyType(
    {"start-now": START_NOW, "short-guests": SHORT_GUESTS, "fair-exchange": FAIR_EXCHANGE}
)
"""The rails that have a word, by it."""
