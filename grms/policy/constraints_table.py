"""Exchange constraints and time spans in files of scenarios and sites, as validated models."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Final, Self

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
from grms.policy.constraints import (
    CONSTRAINTS,
    DOUBLINGS_MAX,
    EMPTY_RETURNS_MAX,
    GUESTS,
    STRICT_REOFFER,
    ExchangeConstraints,
    Promise,
)
from grms.policy.rebalancing import ROUND_ORDERS, Rebalancing, RoundOrder
from grms.policy.transfer import rails_of
from lrms_sim.util.messages import duration_of, unknown
from lrms_sim.util.messages import shown as shown_value

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


def _constraints_word(value: str) -> str:
    if value not in CONSTRAINTS_WORDS:
        text = unknown("word for constraints", value, CONSTRAINTS_WORDS)
        raise wrong(text)
    return value


def _guests(value: str) -> str:
    if value not in GUESTS:
        text = unknown("word for guests", value, GUESTS)
        raise wrong(text)
    return value


def _round_order(value: str) -> str:
    if value not in ROUND_ORDERS:
        text = unknown("order of rounds", value, ROUND_ORDERS)
        raise wrong(text)
    return value


def _period(value: float) -> float:
    if value < 1:
        text = f"{value:g} s is too short; at least 1 s is needed"
        raise wrong(text)
    return value


Span = Annotated[float, BeforeValidator(span)]
Period = Annotated[float, BeforeValidator(span), AfterValidator(_period)]
ConstraintsWord = Annotated[str, AfterValidator(_constraints_word)]
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
    guests: Annotated[str, AfterValidator(_guests)] | None = None
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
    order: Annotated[str, AfterValidator(_round_order)] = "queue"
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


def rounds_in_force(
    said: float | RebalancingSpec | None, policies: Iterable[object]
) -> float | Rebalancing | None:
    """Returns when a site with these transfer policies offers again: as said, or as strict exchange does."""
    if said is None and any(
        rails.account is not None for policy in policies if (rails := rails_of(policy)) is not None
    ):
        return STRICT_REOFFER
    return rounds_said(said)


def rounds_said(said: float | RebalancingSpec | None) -> float | Rebalancing | None:
    """Returns the rounds of a file in the form of a replay: of a period in seconds, a table, or `None`."""
    return said.rounds if isinstance(said, RebalancingSpec) else said
