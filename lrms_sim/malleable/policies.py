"""The scheduling policies of a utility machine, as values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from lrms_sim.malleable.options import check_choice
from lrms_sim.util.messages import unknown

Choice = Literal["never", "aggressive", "value", "greedy", "highest"]
Mechanism = Literal["head", "easy", "list", "replan"]
Order = Literal["arrival", "weight", "density", "deadline", "weights"]

FEATURES: Final = (
    "density",
    "unit utility",
    "time left",
    "width",
    "slack to the plateau's end",
    "slack to zero",
    "age",
    "runs",
)
"""What an order with weights knows of a job; times in its requests, see docs/utility.md."""


@dataclass(frozen=True, slots=True)
class BestFit:
    """Best fit, and what is done if jobs still wait (Vengerov, section 4.1).

    Attributes:
        preemption: which job is forced: none; the smallest waiting job that qualifies
            (`aggressive`); the one by which the machine's value rises most, if it rises
            (`value`); the one by which final utilities gain most in this one step (`greedy`);
            as aggressive, but the one of the highest final utility (`highest`).
        oversubscription: which job is squeezed into the free processors: the same choices.
        job_fixed: of several machines, the best one for each job, not the best job for each.
    """

    preemption: Choice = "never"
    oversubscription: Choice = "never"
    job_fixed: bool = False

    def __post_init__(self) -> None:
        for name in ("preemption", "oversubscription"):
            check_choice(name, getattr(self, name), get_args(Choice))

    @property
    def by_value(self) -> bool:
        """Whether it needs a value function."""
        return "value" in {self.preemption, self.oversubscription}

    def for_kernel(self) -> dict[str, Any]:
        """Returns the policy as the kernel takes it."""
        return {
            **_ORDERED,
            "ordered": False,
            "job_fixed": self.job_fixed,
            "preemption": get_args(Choice).index(self.preemption),
            "oversubscription": get_args(Choice).index(self.oversubscription),
        }


@dataclass(frozen=True, slots=True)
class Ordered:
    """Jobs in an order, highest first; ties go by arrival.

    Attributes:
        mechanism: `head`: no job passes the first that does not fit; `easy`: unless that one
            is not delayed; `list`: any job that fits; `replan`: at every event all jobs, running
            ones too, are placed anew in this order, and those that find no room are suspended.
        order: by `arrival`, by `weight` (which is what a QOS gives), by `density` (final
            utility over remaining processor-seconds), by `deadline` (when the utility is gone),
            or by `weights` on `FEATURES`.
        squeezes: with `replan`, whether the first job that does not fit gets the rest.
        weights: for `weights`, one for each of `FEATURES`.
    """

    mechanism: Mechanism
    order: Order = "arrival"
    squeezes: bool = False
    weights: tuple[float, ...] = (0.0,) * len(FEATURES)

    def __post_init__(self) -> None:
        check_choice("mechanism", self.mechanism, get_args(Mechanism))
        check_choice("order", self.order, get_args(Order))
        if len(self.weights) != len(FEATURES) or not all(map(math.isfinite, self.weights)):
            raise ValueError(
                f"weights are {self.weights}; there must be {len(FEATURES)} finite numbers"
            )

    @property
    def by_value(self) -> bool:
        """Whether it needs a value function: never."""
        return False

    def for_kernel(self) -> dict[str, Any]:
        """Returns the policy as the kernel takes it."""
        return {
            "ordered": True,
            "job_fixed": False,
            "preemption": 0,
            "oversubscription": 0,
            "mechanism": get_args(Mechanism).index(self.mechanism),
            "order": get_args(Order).index(self.order),
            "squeezes": self.squeezes,
            "weights": self.weights,
        }


_ORDERED: Final = Ordered("head").for_kernel()

Policy = BestFit | Ordered

POLICIES: Final[Mapping[str, Policy]] = MappingProxyType(
    {
        "best-fit": BestFit(),
        "over-aggressive": BestFit("never", "aggressive"),
        "pre-aggressive": BestFit("aggressive", "never"),
        "both-aggressive": BestFit("aggressive", "aggressive"),
        "over-highest": BestFit("never", "highest"),
        "pre-highest": BestFit("highest", "never"),
        "both-highest": BestFit("highest", "highest"),
        "over-value": BestFit("never", "value"),
        "pre-value": BestFit("value", "never"),
        "both-value": BestFit("value", "value"),
        "over-greedy": BestFit("never", "greedy"),
        "pre-greedy": BestFit("greedy", "never"),
        "both-greedy": BestFit("greedy", "greedy"),
        "fcfs": Ordered("head"),
        "easy": Ordered("easy"),
        "easy-qos": Ordered("easy", "weight"),
        "list": Ordered("list"),
        "density": Ordered("list", "density"),
        "edf": Ordered("list", "deadline"),
        "replan": Ordered("replan", "density", squeezes=True),
        "replan-rigid": Ordered("replan", "density"),
        "replan-deadline": Ordered("replan", "deadline", squeezes=True),
        "replan-qos": Ordered("replan", "weight", squeezes=True),
    }
)
"""The policies by name; an order with weights has none, as its weights are learned."""

SENTENCES: Final = MappingProxyType(
    {
        "best-fit": "The waiting job that leaves fewest processors free; nobody is disturbed.",
        "over-aggressive": "Best fit, then the smallest waiting job is squeezed in.",
        "pre-aggressive": "Best fit, then the smallest job that qualifies suspends others.",
        "both-aggressive": "Best fit, then both of these.",
        "over-highest": "Best fit, then the waiting job of the highest utility is squeezed in.",
        "pre-highest": "Best fit, then the job of the highest utility that qualifies suspends others.",
        "both-highest": "Best fit, then both of these.",
        "over-value": "Best fit, then a job is squeezed in if the machine's value rises.",
        "pre-value": "Best fit, then a job suspends others if the machine's value rises.",
        "both-value": "Best fit, then both of these; the paper's policy.",
        "over-greedy": "Best fit, then the job whose squeezing gains most utility in one step.",
        "pre-greedy": "Best fit, then the job whose forcing gains most utility in one step.",
        "both-greedy": "Best fit, then both of these.",
        "fcfs": "First come, first served.",
        "easy": "EASY backfilling.",
        "easy-qos": "EASY backfilling, higher weights (QOS) first.",
        "list": "The first job in order of arrival that fits.",
        "density": "The job with the highest utility per remaining processor-second that fits.",
        "edf": "The job that is first worth nothing, of those that fit.",
        "replan": "At every event all jobs anew by utility density; the last one is squeezed.",
        "replan-rigid": "The same without squeezing.",
        "replan-deadline": "At every event all jobs anew by deadline; the last one is squeezed.",
        "replan-qos": "At every event all jobs anew by weight (QOS); the last one is squeezed.",
    }
)


def policy_by_name(name: str) -> Policy:
    """Returns the policy of that name.

    Raises:
        ValueError: there is none; the text lists them.
    """
    if name not in POLICIES:
        raise ValueError(unknown("policy", name, POLICIES))
    return POLICIES[name]


def name_of(policy: Policy) -> str:
    """Returns the name of a policy, or a description of one that has none."""
    for name, known in POLICIES.items():
        if known == policy:
            return name
    if isinstance(policy, Ordered) and policy.order == "weights":
        return f"{policy.mechanism}-weights"
    return repr(policy)
