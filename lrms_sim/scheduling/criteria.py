"""Orders of the waiting jobs: by group, width, request or a published key, and by criteria.

The criteria f1 to f4 are those of Franke, Lepping, Schwiegelshohn 2007, "Greedy Scheduling with
Custom-made Objectives", section III. For a job of group g submitted at r that needs m processors
and asks for p seconds, at time t:

    f1 = w_g · (K_g + a · ((t - r) / p) + b · (p / m))
    f2 = w_g · (K_g + a · (t - r) + b · (p · m))
    f3 = w_g · (K_g + a · ((t - r) / (p · m)))
    f4 = w_g · (K_g + a · (t - r) + b · (p / m))

The job with the largest value is served first; of equal ones, the one that came first. Values are
computed as written, in double precision. The paper's text gives f2 without w; its count of
parameters, 33 to 36, fits f3 without b, as here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from lrms_sim.scheduling.situations import KINDS, Calendar
from lrms_sim.util.messages import shown, unknown
from lrms_sim.workload.groups import GROUPS

CriterionKind = Literal["f1", "f2", "f3", "f4"]

CRITERION_KINDS: Final = get_args(CriterionKind)

PARAMETERS: Final = 12
"""Numbers of one criterion: w1 … w5, K1 … K5, a, b."""

PARAMETER_MAX: Final = 1e9
"""Largest magnitude of a parameter; only ratios matter, and no value overflows below it."""

PAPER_BOUNDS: Final = ((0.0, 1.0),) * 5 + ((0.0, 5.0),) * 5 + ((0.0, 1.0),) * 2
"""Where the paper searches for each of the 12 numbers (section IV-C)."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One formula with its parameters.

    Attributes:
        weights: w1 to w5.
        constants: K1 to K5.
        waiting: a, the weight of the waiting time.
        size: b, the weight of length or area; must be 0 for f3, which has none.
    """

    kind: CriterionKind
    weights: tuple[float, float, float, float, float]
    constants: tuple[float, float, float, float, float]
    waiting: float
    size: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in CRITERION_KINDS:
            raise ValueError(unknown("criterion", str(self.kind), CRITERION_KINDS))
        for name in ("weights", "constants"):
            numbers = tuple(float(number) for number in getattr(self, name))
            if len(numbers) != len(GROUPS):
                raise ValueError(
                    f"{name} has {len(numbers)} numbers; one for each of the {len(GROUPS)} groups"
                )
            object.__setattr__(self, name, numbers)
        for name, number in (
            *((f"w{g}", w) for g, w in zip(GROUPS, self.weights, strict=True)),
            *((f"K{g}", k) for g, k in zip(GROUPS, self.constants, strict=True)),
            ("a", self.waiting),
            ("b", self.size),
        ):
            if not (math.isfinite(number) and abs(number) <= PARAMETER_MAX):
                raise ValueError(
                    f"{name} is {number}; it must be a number of at most {PARAMETER_MAX:g}"
                )
        if self.kind == "f3" and self.size != 0:
            raise ValueError(f"b is {self.size}; f3 has no b, so it must be 0")

    @property
    def numbers(self) -> tuple[float, ...]:
        """The 12 parameters: w1 … w5, K1 … K5, a, b."""
        return (*self.weights, *self.constants, self.waiting, self.size)

    @property
    def tells_groups_apart(self) -> bool:
        """Whether two jobs that differ in their group alone can have different values."""
        return len(set(self.weights)) > 1 or len(set(self.constants)) > 1

    @classmethod
    def from_numbers(cls, kind: CriterionKind, numbers: Sequence[float]) -> Self:
        """Returns a criterion from its 12 parameters; the b of f3 is ignored.

        Raises:
            ValueError: these are not 12 numbers, or not valid for a criterion.
        """
        if len(numbers) != PARAMETERS:
            raise ValueError(
                f"{len(numbers)} numbers for a criterion; {PARAMETERS} are needed: w1 … w5, "
                f"K1 … K5, a, b"
            )
        values = [float(number) for number in numbers]
        return cls(
            kind,
            (values[0], values[1], values[2], values[3], values[4]),
            (values[5], values[6], values[7], values[8], values[9]),
            values[10],
            0.0 if kind == "f3" else values[11],
        )


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """Group after group, the five `groups` in order of service; within a group in order of arrival."""

    groups: tuple[int, int, int, int, int] = (1, 2, 3, 4, 5)

    def __post_init__(self) -> None:
        if sorted(self.groups) != list(GROUPS):
            raise ValueError(
                f"the order of groups is {shown(self.groups)}; each of 1 to {len(GROUPS)} is "
                f"needed once"
            )
        object.__setattr__(self, "groups", tuple(self.groups))


@dataclass(frozen=True, slots=True)
class CriterionOrder:
    """Descending values of a criterion, computed anew at every pass.

    Attributes:
        criteria: one for each situation, or a single one for all times.
        kind: of the situations; a key of `lrms_sim.scheduling.situations.KINDS`.
        calendar: when which situation holds; `None` until the site is known.
    """

    criteria: tuple[Criterion, ...]
    kind: str = "week"
    calendar: Calendar | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(unknown("kind of calendar", str(self.kind), KINDS))
        if len(self.criteria) not in {1, KINDS[self.kind]}:
            raise ValueError(
                f"{len(self.criteria)} criteria; one is needed, or one for each of the "
                f"{KINDS[self.kind]} situations"
            )
        if self.calendar is not None and self.calendar.situations < len(self.criteria):
            raise ValueError(
                f"the calendar knows {self.calendar.situations} situations; there are "
                f"{len(self.criteria)} criteria"
            )

    @property
    def needs_calendar(self) -> bool:
        """Whether situations matter here and the calendar is still missing."""
        return self.calendar is None and len(set(self.criteria)) > 1

    @property
    def tells_groups_apart(self) -> bool:
        """Whether the groups of the jobs matter."""
        return any(criterion.tells_groups_apart for criterion in self.criteria)

    def at(self, calendar: Calendar) -> Self:
        """Returns the same order at a site with this calendar."""
        return replace(self, calendar=calendar)

    @classmethod
    def from_vector(
        cls,
        kinds: Sequence[CriterionKind],
        vector: npt.ArrayLike,
        *,
        kind: str = "week",
        calendar: Calendar | None = None,
    ) -> Self:
        """Returns the order of a parameter vector, as evolution strategies make them.

        The vector has, for each situation in turn, w1 … w5, K1 … K5, a, b; `kinds` are the
        formulas.

        Raises:
            ValueError: the vector has another length or is not finite.
        """
        numbers = np.asarray(vector, np.float64)
        if numbers.shape != (PARAMETERS * len(kinds),):
            raise ValueError(
                f"the vector has shape {numbers.shape}; {PARAMETERS * len(kinds)} numbers are "
                f"needed, {PARAMETERS} for each of {len(kinds)} situations"
            )
        rows = numbers.reshape(len(kinds), PARAMETERS).tolist()
        criteria = tuple(
            Criterion.from_numbers(name, row) for name, row in zip(kinds, rows, strict=True)
        )
        return cls(criteria, kind, calendar)

    @property
    def vector(self) -> npt.NDArray[np.float64]:
        """The parameters of all situations, 12 for each."""
        return np.array([criterion.numbers for criterion in self.criteria]).ravel()


StaticOrder = Literal["arrival", "processors", "requested_time"]
"""Ascending; ties, as everywhere, by arrival."""

STATIC_ORDERS: Final = get_args(StaticOrder)

KeyOrder = Literal["longest", "area", "wfp3", "f1", "f2", "f3", "f4"]
"""Orders compared in papers; ties by arrival.

For a job submitted at second s of the machine's clock that asks for p seconds and needs m
processors, at time t:

- `longest`: descending p (LJF);
- `area`: ascending p · m (SAF);
- `wfp3`: descending ((t - s) / p)³ · m (Tang, Lan, Desai, Buettner 2009);
- `f1`: ascending log10(p) · m + 870 · log10(s);
- `f2`: ascending √p · m + 25600 · log10(s);
- `f3`: ascending p · m + 6860000 · log10(s);
- `f4`: ascending p · √m + 530000 · log10(s).

F1 to F4 are of Carastan-Santos, de Camargo, "Obtaining Dynamic Scheduling Policies with Simulation
and Machine Learning", SC 2017; an s below 1 counts as 1. These are not the criteria f1 to f4 above.
"""

KEY_ORDERS: Final = get_args(KeyOrder)

ORDER_WORDS: Final = (*STATIC_ORDERS, *KEY_ORDERS)
"""All orders named by a word."""

Order = StaticOrder | KeyOrder | GroupOrder | CriterionOrder
"""In which order waiting jobs are looked at."""

GREEDY_DEFAULT: Final = CriterionOrder(
    (Criterion("f2", (1.0, 0.4, 0.1, 0.1, 0.1), (0.0, 0.0, 0.0, 0.0, 0.0), 1.0, 0.0),)
)
"""Waiting time weighted by θ = (10, 4, …): Greedy among 13 strategies if nothing was learned.

The paper does not say which criterion it uses.
"""


def smith_ratios(theta: Sequence[float], consumption: Sequence[float]) -> tuple[float, ...]:
    """Returns θ_g / RC_g, what a second of waiting costs for each unit of a group's work.

    An objective Σ θ_g·AWRT_g is a weighted sum of completion times, in which all jobs of a group
    have the same ratio of weight to work; on one processor the order of falling ratios (Smith 1956)
    is optimal.

    Args:
        theta: weight of each group's AWRT in the objective.
        consumption: the groups' resource consumption, or their shares of it.

    Returns:
        One number for each group, the largest 1; 0 for a group without work or weight.

    Raises:
        ValueError: these are not five numbers each, one is negative, or no group has both.
    """
    for name, numbers in (("theta", theta), ("consumption", consumption)):
        if len(numbers) != len(GROUPS) or not all(0 <= n < math.inf for n in numbers):
            raise ValueError(f"{name} is {shown(tuple(numbers))}; five numbers from 0 are needed")
    ratios = [t / c if c > 0 else 0.0 for t, c in zip(theta, consumption, strict=True)]
    if max(ratios) <= 0:
        raise ValueError("no group has both a weight in the objective and work of its own")
    return tuple(ratio / max(ratios) for ratio in ratios)


def smith_order(theta: Sequence[float], consumption: Sequence[float]) -> GroupOrder:
    """Returns the order of groups by falling `smith_ratios`; of equal ones the heavier first."""
    ratios = smith_ratios(theta, consumption)
    first, second, third, fourth, fifth = sorted(GROUPS, key=lambda g: (-ratios[g - 1], g))
    return GroupOrder((first, second, third, fourth, fifth))


def aging_smith_order(
    theta: Sequence[float], consumption: Sequence[float], *, equal_after: float
) -> CriterionOrder:
    """Returns the order of groups by `smith_ratios` with aging, so that no job starves.

    The value of a job is its group's ratio plus its waiting time over `equal_after` seconds: after
    that long, a job of a group with ratio 0 equals a new one with ratio 1.
    """
    if not (math.isfinite(equal_after) and equal_after > 0):
        raise ValueError(f"equal_after is {equal_after}; seconds, more than 0, are needed")
    first, second, third, fourth, fifth = smith_ratios(theta, consumption)
    ones = (1.0, 1.0, 1.0, 1.0, 1.0)
    return CriterionOrder(
        (Criterion("f2", ones, (first, second, third, fourth, fifth), 1.0 / equal_after),)
    )
