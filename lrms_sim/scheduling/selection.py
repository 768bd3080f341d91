"""Choice of a strategy at every pass, by a table of states or by fuzzy rules over their features.

After Franke, Lepping, Schwiegelshohn 2007, "Genetic Fuzzy Systems applied to Online Job
Scheduling": the system state, seven features, determines at every pass which of the strategies of
`lrms_sim.scheduling.strategies` makes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Final, Self

import numpy as np

from lrms_sim.kernel._strategies import StrategyScheduler
from lrms_sim.scheduling.criteria import CriterionOrder
from lrms_sim.scheduling.situations import Calendar, make_calendar
from lrms_sim.scheduling.strategies import Strategy, paper_strategies, words_of
from lrms_sim.workload.groups import GROUPS

FEATURES: Final = ("sd", "u", "prcwq1", "prcwq2", "prcwq3", "prcwq4", "prcwq5")
"""The features of the state, in order.

- `sd`: Σ p·m·(C - r) / Σ p·m·p over all jobs that have ended, 1 before the first: how much longer
  a response takes than a run;
- `u`: percent of the processors that are busy;
- `prcwq1` … `prcwq5`: percent of the waiting work, Σ requested time · processors, that is of
  that user group; 0 if no job waits.
"""

CLASSES: Final = 192
"""States of a `StrategyTable`: 2 of SD, 3 of U, 2 of each PRCWQ."""

RULES_MAX: Final = 1000

ALTERNATIVES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Choosing:
    """Base of everything that chooses a strategy at every pass.

    Attributes:
        strategies: the alternatives; the 13 of the paper by default. With one algorithm and several
            orders, an order is chosen.
    """

    strategies: tuple[Strategy, ...] = field(default=(), kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        strategies = tuple(self.strategies) or paper_strategies()
        if len(strategies) > ALTERNATIVES_MAX:
            raise ValueError(
                f"{len(strategies)} strategies; at most {ALTERNATIVES_MAX} are possible"
            )
        object.__setattr__(self, "strategies", strategies)

    @property
    def per_event(self) -> bool:
        """Whether a pass follows every single event; it does not."""
        return False

    @property
    def needs_groups(self) -> bool:
        """Whether the user group of every job has to be known; the features need it."""
        return True

    @property
    def needs_calendar(self) -> bool:
        """Whether the site's local time matters and is still missing."""
        return any(strategy.needs_calendar for strategy in self.strategies)

    def at(self, calendar: Calendar) -> Self:
        """Returns the same at a site with this calendar."""
        return replace(self, strategies=tuple(s.at(calendar) for s in self.strategies))


@dataclass(frozen=True, slots=True)
class StrategyTable(Choosing):
    """One strategy for each of 192 classes of states.

    Attributes:
        table: 192 entries, the number of the strategy for each class as numbered by `class_number`.
    """

    table: tuple[int, ...]
    name: str = field(default="table", kw_only=True)

    def __post_init__(self) -> None:
        Choosing.__post_init__(self)
        entries = tuple(int(entry) for entry in self.table)
        if len(entries) != CLASSES:
            raise ValueError(f"the table has {len(entries)} entries; {CLASSES} are needed")
        for place, entry in enumerate(entries):
            if not 0 <= entry < len(self.strategies):
                raise ValueError(
                    f"entry {place} of the table is {entry}; strategies are numbered 0 to "
                    f"{len(self.strategies) - 1}"
                )
        object.__setattr__(self, "table", entries)

    def scheduler(self) -> StrategyScheduler:
        """Returns a new scheduler for one machine; `ValueError` without a calendar."""
        return StrategyScheduler(
            [words_of(strategy) for strategy in self.strategies],
            table=np.array(self.table, np.int32),
        )


@dataclass(frozen=True, slots=True)
class StrategyRule:
    """A fuzzy rule: where it holds, and how it rates each strategy.

    Its degree at a state x is Π exp(-(x - μ)²/2σ²) / (σ·√2π) over the features: a wide Gaussian is
    low everywhere, so a rule that ignores a feature does not win by that.

    Attributes:
        means: μ, seven numbers in the units of the features.
        deviations: σ, seven positive numbers.
        recommendations: one number for each strategy; the papers' are -5, -1, 0, 1 and 5.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    recommendations: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("means", "deviations", "recommendations"):
            numbers = tuple(float(number) for number in getattr(self, name))
            if name != "recommendations" and len(numbers) != len(FEATURES):
                raise ValueError(f"{name} has {len(numbers)} numbers; {len(FEATURES)} are needed")
            for number in numbers:
                if not abs(number) <= 1e9:
                    raise ValueError(f"one of {name} is {number}; at most 1e9 is possible")
            object.__setattr__(self, name, numbers)
        for number in self.deviations:
            if not number >= 1e-9:
                raise ValueError(f"one of deviations is {number}; it must be more than 0")


@dataclass(frozen=True, slots=True)
class StrategyRules(Choosing):
    """Fuzzy rules that choose the strategy with the largest Σ degree · recommendation.

    There is at least one rule, and every rule rates every strategy.
    """

    rules: tuple[StrategyRule, ...]
    name: str = field(default="rules", kw_only=True)

    def __post_init__(self) -> None:
        Choosing.__post_init__(self)
        if not 1 <= len(self.rules) <= RULES_MAX:
            raise ValueError(f"{len(self.rules)} rules; from 1 to {RULES_MAX} are possible")
        for place, rule in enumerate(self.rules):
            if len(rule.recommendations) != len(self.strategies):
                raise ValueError(
                    f"rule {place} has {len(rule.recommendations)} recommendations; one for each "
                    f"of the {len(self.strategies)} strategies is needed"
                )

    def scheduler(self) -> StrategyScheduler:
        """Returns a new scheduler for one machine; `ValueError` without a calendar."""
        rules = np.array([(*r.means, *r.deviations, *r.recommendations) for r in self.rules])
        return StrategyScheduler([words_of(strategy) for strategy in self.strategies], rules=rules)


Policy = Strategy | StrategyTable | StrategyRules
"""What a strategy file can hold, and a machine can use."""


def with_local_time(
    policy: Policy, *, zone: tzinfo, unix_start: float, first: float, last: float
) -> Policy:
    """Returns a policy that knows the local time of its site, for a span of the site's clock.

    A policy that ignores time is returned unchanged.

    Args:
        policy: to be adapted.
        zone: of the site.
        unix_start: Unix time of second 0 of the clock.
        first: usually the first submission, seconds.
        last: seconds; jobs may end later.

    Raises:
        ValueError: there is no such span (`lrms_sim.scheduling.situations.make_calendar`).
    """
    calendars: dict[str, Calendar] = {}

    def placed(strategy: Strategy) -> Strategy:
        if not strategy.needs_calendar:
            return strategy
        assert isinstance(strategy.order, CriterionOrder)
        kind = strategy.order.kind
        if kind not in calendars:
            calendars[kind] = make_calendar(
                kind, zone=zone, unix_start=unix_start, first=first, last=last
            )
        return strategy.at(calendars[kind])

    if isinstance(policy, Strategy):
        return placed(policy)
    return replace(policy, strategies=tuple(placed(strategy) for strategy in policy.strategies))


def class_number(features: Sequence[float]) -> int:
    """Returns the class of a state, 0 to 191, from seven numbers in the order of `FEATURES`.

    Classes of SD: up to 2, above. Of U: up to 75 %, up to 85 %, above. Of PRCWQ: up to 20 %,
    above, for groups 1 and 2; up to 25 %, above, for the others. A value on a border belongs to the
    lower class. The number is that of SD, times 3 plus that of U, and then, group after group,
    times 2 plus that of PRCWQ.
    """
    slowdown, busy, *waiting = features
    number = 3 * (slowdown > 2) + (busy > 75) + (busy > 85)
    for group, share in zip(GROUPS, waiting, strict=True):
        number = 2 * number + (share > (20 if group <= 2 else 25))
    return int(number)
