"""Exchange constraints, whatever the transfer policy within them; also as tables in files of scenarios and sites.

A transfer policy says what a site wants; constraints say what is fair. A site enforces them by itself, from
what it knows anyway, so that its own users lose less, or nothing. They do not bound losses: in half-years
of recorded logs hardly a site has lost by them, yet four jobs can make one lose nearly everything.
docs/fair-exchange.md gives their purpose, docs/disciplines.md the tie rules.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from grms.daemon.config_base import wrong
from grms.policy._constraints import CompiledConstraints
from grms.policy.rebalancing import ROUND_ORDERS, Rebalancing, RoundOrder
from lrms_sim.util.messages import duration_of, unknown
from lrms_sim.util.messages import shown as shown_value

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
DOUBLINGS_MAX: Final = 30
"""A day doubled this often is three million years."""

Guests = Literal["preempt", "run"]
GUESTS: Final[tuple[Guests, ...]] = ("preempt", "run")
EMPTY_RETURNS_MAX: Final = 100


def _at_least(name: str, value: float, least: float, *, beyond: bool = False) -> None:
    if not math.isfinite(value) or value < least or (beyond and value == least):
        bound = "more than" if beyond else "at least"
        raise ValueError(f"{name} is {value}; it must be finite and {bound} {least:g}")


@dataclass(frozen=True, slots=True)
class Promise:
    """How a partner is held to its promise to start accepted jobs at once.

    A partner breaks its promise with a job that returns later, or has not returned by when its request
    says it should have. It then loses its credit and gets no offers for a while.

    Attributes:
        tolerance: delay that is no breach, seconds, at least 0.
        trust: work that a partner without credit may hold at once, as seconds of the offering site's whole
            machine, at least 0; credit adds the requests of all jobs done as promised. A partner that holds
            none may get a single job of any length.
        suspension: time without offers after the first breach, seconds, more than 0.
        doublings: how often further breaches double the suspension; 0 to 30.
    """

    tolerance: float = HOUR
    trust: float = 4 * HOUR
    suspension: float = DAY
    doublings: int = 5

    def __post_init__(self) -> None:
        _at_least("tolerance", self.tolerance, 0)
        _at_least("trust", self.trust, 0)
        _at_least("suspension", self.suspension, 0, beyond=True)
        if not 0 <= self.doublings <= DOUBLINGS_MAX:
            raise ValueError(f"doublings is {self.doublings}; it must be in 0..{DOUBLINGS_MAX}")


@dataclass(frozen=True, slots=True)
class AccountRules:
    """How a site keeps the account of itself that decides which guests may stay.

    Attributes:
        guests: "preempt": own jobs may take the processors of guests, which are sent home, unless these were
            accepted as protected and the site is in credit; "run": the batch system cannot, guests run to
            their end and are only accepted as long as the account covers them.
        allowance: part of own users' time alone that exchange may cost beyond what it has brought; at least
            0; `None`: 0 with "preempt", 0.01 with "run".
        memory: the account fades by 1/e in so many seconds; more than 0.
        cap: part of own users' time alone up to which gain is saved; at least 0.
        every: the account is looked at at multiples of so many seconds; more than 0.
        lost_work: as home, work lost at a partner that is forgiven, as seconds of this site's whole machine;
            at least 0.
        empty_returns: as home, a job that has come back so often with nothing kept is not offered any more; at
            least 1.
        protects: guests may be protected while the site is in credit; else each of them is preemptible,
            whatever the account says. For comparisons: no file of a site has it.
        favors: where guests are preemptible, a partner's job may also take the processors of guests of those
            to whom the site owes less, by the network of favors (Andrade and others, JSSPP 2003). For
            comparisons, like the last.
    """

    guests: Guests = "preempt"
    allowance: float | None = None
    memory: float = 10 * DAY
    cap: float = 0.05
    every: float = 900.0
    lost_work: float = HOUR
    empty_returns: int = 2
    protects: bool = True
    favors: bool = False

    def __post_init__(self) -> None:
        if self.guests not in GUESTS:
            raise ValueError(f"guests is {self.guests!r}; it must be one of {', '.join(GUESTS)}")
        if self.allowance is not None:
            _at_least("allowance", self.allowance, 0)
        _at_least("memory", self.memory, 0, beyond=True)
        _at_least("cap", self.cap, 0)
        _at_least("every", self.every, 0, beyond=True)
        _at_least("lost_work", self.lost_work, 0)
        if not 1 <= self.empty_returns <= EMPTY_RETURNS_MAX:
            raise ValueError(
                f"empty_returns is {self.empty_returns}; it must be in 1..{EMPTY_RETURNS_MAX}"
            )

    @property
    def allowed(self) -> float:
        """The allowance in force."""
        if self.allowance is not None:
            return self.allowance
        return 0.0 if self.guests == "preempt" else 0.01


@dataclass(frozen=True)
class ExchangeConstraints:
    """The constraints of an exchange; the defaults are those of `fair-exchange`.

    Attributes:
        start_now: home offers only what its own batch system would not start at once; a partner
            accepts only what its own would.
        guest_length: most that a guest may request, as a multiple of the mean request of own users'
            completed jobs, weighted by work; more than 0; `None`: any.
        balance: most work taken of a partner minus `balance_weight` times the work it has done for this
            site, as seconds of this site's whole machine, at least 0; `None`: any.
        balance_weight: factor on work given; at least 0.
        promise: `None`: not enforced.
        account: the site keeps an account of itself, which decides which guests may stay; `None`: it does
            not.
    """

    start_now: bool = True
    guest_length: float | None = 2.0
    balance: float | None = DAY
    balance_weight: float = 2.0
    promise: Promise | None = Promise()
    account: AccountRules | None = None

    def __post_init__(self) -> None:
        if self.guest_length is not None:
            _at_least("guest_length", self.guest_length, 0, beyond=True)
        if self.balance is not None:
            _at_least("balance", self.balance, 0)
        _at_least("balance_weight", self.balance_weight, 0)
        if self.account is not None and not self.start_now:
            raise ValueError(
                "an account needs constraints that ask what starts at once (start_now)"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Omits the compiled form, which is rebuilt in another process."""
        return {name: value for name, value in vars(self).items() if name != "compiled"}

    @cached_property
    def compiled(self) -> CompiledConstraints:
        """The constraints as every host keeps to them."""
        promise, account = self.promise, self.account
        return CompiledConstraints(
            start_now=self.start_now,
            guest_length=math.inf if self.guest_length is None else self.guest_length,
            balance=math.inf if self.balance is None else self.balance,
            balance_weight=self.balance_weight,
            promise=None
            if promise is None
            else (promise.tolerance, promise.trust, promise.suspension, promise.doublings),
            account=None
            if account is None
            else (
                account.guests == "preempt",
                account.allowed,
                account.memory,
                account.cap,
                account.every,
                account.lost_work,
                account.empty_returns,
                account.protects,
                account.favors,
            ),
        )


START_NOW: Final = ExchangeConstraints(guest_length=None, balance=None, promise=None)
"""Offers what would not start at once, takes what would; nothing else."""

SHORT_GUESTS: Final = ExchangeConstraints(balance=None, promise=None)
"""The same, and no guest much longer than own users' jobs."""

FAIR_EXCHANGE: Final = ExchangeConstraints()
"""All four: start now, length of guests, balance, promise."""

STRICT_EXCHANGE: Final = ExchangeConstraints(account=AccountRules())
"""The same, and guests go home when own jobs need their processors, unless exchange has paid for them."""

STRICT_REOFFER: Final = 900.0
"""With an account waiting jobs are offered again so often, unless said otherwise, seconds."""

CONSTRAINTS: Final[Mapping[str, ExchangeConstraints]] = MappingProxyType(
    {
        "start-now": START_NOW,
        "short-guests": SHORT_GUESTS,
        "fair-exchange": FAIR_EXCHANGE,
        "strict-exchange": STRICT_EXCHANGE,
    }
)


NO_CONSTRAINTS: Final = "none"

_NO_RULE: Final = ExchangeConstraints(
    start_now=False, guest_length=None, balance=None, promise=None
)
CONSTRAINTS_WORDS: Final = (*CONSTRAINTS, NO_CONSTRAINTS)

_OF_ACCOUNT: Final = (
    "guests",
    "allowance",
    "memory",
    "cap",
    "account",
    "lost_work",
    "empty_returns",
)
"""Keys of a table that say how a site keeps the account of itself."""

SPAN_MAX: Final = 1e9


def span(value: object) -> float:
    """Returns seconds from a number of seconds or a text such as "15min", "4h", "1d", "900s".

    Raises:
        PydanticCustomError: it is neither, or out of bounds.
    """
    seconds: float | None = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and not value[-1:].isdigit():  # else it would have no unit
        seconds = duration_of(value)
    if seconds is None or not 0 <= seconds <= SPAN_MAX:
        text = f"{shown_value(value)} is no span of time; there are seconds, and texts such as 15min, 4h, 1d"
        raise wrong(text)
    return seconds


def _one_of(what: str, words: Collection[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in words:
            raise wrong(unknown(what, value, words))
        return value

    return AfterValidator(check)


def _period(value: float) -> float:
    if value < 1:
        text = f"{value:g} s is too short; at least 1 s is needed"
        raise wrong(text)
    return value


Span = Annotated[float, BeforeValidator(span)]
Period = Annotated[float, BeforeValidator(span), AfterValidator(_period)]
ConstraintsWord = Annotated[str, _one_of("word for constraints", CONSTRAINTS_WORDS)]
Factor = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Part = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ConstraintsSpec(BaseModel):
    """Exchange constraints with other numbers than those of their word; a number enables its rule.

    `rules` is the word; the numbers are those of `grms.policy.constraints`, with spans of time as in `span`.
    Those from `guests` on say how the account of `strict-exchange` is kept; `account` is its period.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rules: ConstraintsWord = "fair-exchange"
    guest_length: Factor | None = None
    balance: Span | None = None
    balance_weight: Weight | None = None
    tolerance: Span | None = None
    trust: Span | None = None
    suspension: Period | None = None
    doublings: Annotated[int, Field(ge=0, le=DOUBLINGS_MAX)] | None = None
    guests: Annotated[str, _one_of("word for guests", GUESTS)] | None = None
    allowance: Part | None = None
    memory: Period | None = None
    cap: Part | None = None
    account: Period | None = None
    lost_work: Span | None = None
    empty_returns: Annotated[int, Field(ge=1, le=EMPTY_RETURNS_MAX)] | None = None

    @model_validator(mode="after")
    def _check_account(self) -> Self:
        rails = constraints_by_word(self.rules)
        given = [name for name in _OF_ACCOUNT if getattr(self, name) is not None]
        if given and (rails is None or rails.account is None):
            text = f'{given[0]} says how an account is kept, which rules = "strict-exchange" does'
            raise wrong(text)
        if rails is not None and (rules := rails.account) is not None:
            memory, every = self.memory or rules.memory, self.account or rules.every
            if memory < every:
                text = f"memory, {memory:g} s, is shorter than the period of the account, {every:g} s, in which all would fade"
                raise wrong(text)
        return self

    @property
    def rails(self) -> ExchangeConstraints | None:
        """The same for a transfer policy; `None` if nothing is in force."""
        given = self.model_dump(exclude_none=True, exclude={"rules"})
        rails = constraints_by_word(self.rules)
        if rails is None:
            if not given:
                return None
            rails = _NO_RULE
        if "balance_weight" in given and rails.balance is None:
            given.setdefault("balance", ExchangeConstraints.balance)
        account = {
            "every" if name == "account" else name: given.pop(name)
            for name in _OF_ACCOUNT
            if name in given
        }
        if account and rails.account is not None:
            rails = replace(rails, account=replace(rails.account, **account))
        promise = {
            name: given.pop(name)
            for name in ("tolerance", "trust", "suspension", "doublings")
            if name in given
        }
        if promise:
            rails = replace(rails, promise=replace(rails.promise or Promise(), **promise))
        return replace(rails, **given)


class RebalancingSpec(BaseModel):
    """Rounds of offers with fewer questions, as `grms.policy.rebalancing.Rounds`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    every: Period
    order: Annotated[str, _one_of("order of rounds", ROUND_ORDERS)] = "queue"
    questions: Annotated[int, Field(ge=1, le=10**9)] | None = None
    pause: Span | None = None

    @field_validator("pause")
    @classmethod
    def _check_pause(cls, value: float | None, info: ValidationInfo) -> float | None:
        every = info.data.get("every")
        if value is not None and every is not None and value < every:
            text = f"{value:g} s is too short; it must be at least the period, {every:g} s"
            raise wrong(text)
        return value

    @property
    def rounds(self) -> Rebalancing:
        """The same for a replay."""
        order: RoundOrder = "widest" if self.order == "widest" else "queue"
        return Rebalancing(self.every, order, self.questions, self.pause)


def _kind(value: object) -> str:
    return "table" if isinstance(value, (dict, BaseModel)) else "word"


ConstraintsField = Annotated[
    Annotated[ConstraintsWord, Tag("word")] | Annotated[ConstraintsSpec, Tag("table")],
    Discriminator(_kind),
]

ReofferField = Annotated[
    Annotated[Period, Tag("word")] | Annotated[RebalancingSpec, Tag("table")], Discriminator(_kind)
]


def constraints_by_word(word: str) -> ExchangeConstraints | None:
    """Returns the constraints of a word; `None` for none."""
    return None if word == NO_CONSTRAINTS else CONSTRAINTS[word]


def constraints_said(said: str | ConstraintsSpec | None) -> ExchangeConstraints | None:
    """Returns the constraints of a file: of a word, a table, or `None`."""
    if isinstance(said, ConstraintsSpec):
        return said.rails
    return None if said is None else constraints_by_word(said)


def rounds_said(said: float | RebalancingSpec | None) -> float | Rebalancing | None:
    """Returns the rounds of a file in the form of a replay: of a period in seconds, a table, or `None`."""
    return said.rounds if isinstance(said, RebalancingSpec) else said
