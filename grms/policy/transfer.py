"""Transfer policies: does this site want to run this job itself, now?

A site asks the same question of its own users' jobs (yes: keep; no: offer to a partner) and of a partner's
offers (yes: accept; no: decline). The answer depends on what the site knows of itself and on the job's
request. The theory is section 4 of Fölling, Grimme, Lepping and Papaspyrou, "Decentralized Grid Scheduling
with Evolutionary Fuzzy Systems" (JSSPP 2009), called "the paper".

The paper's rules use the queue (NWP) and the job's width (NJP). Within constraints, rules may also use further
features that a decision reads anyway (docs/rule-bases.md). A replay, a site's core and its daemon obtain them
in the same way (docs/information-policy.md).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType, MappingProxyType
from typing import Any, Final, Protocol

import numpy as np

from grms.policy._decisions import CompiledTransfer, TransferQuestion
from grms.policy.constraints import (
    FAIR_EXCHANGE,
    STRICT_REOFFER,
    ExchangeConstraints,
    RebalancingSpec,
    rounds_said,
)
from grms.policy.rebalancing import Rebalancing
from lrms_sim.scheduling.user_defined import name_of_user_defined
from lrms_sim.util.messages import unknown

PAPER_FEATURES: Final = (
    {"name": "nwp", "definition": "waiting processors / site processors", "scale": 1},
    {"name": "njp", "definition": "job processors / site processors", "scale": 100},
)
"""The features of every rule, in order, with the factor each is multiplied by."""


@dataclass(frozen=True, slots=True)
class FurtherFeature:
    """A feature that rules within constraints may use.

    Attributes:
        name: in files and in `grms.policy.transfer.Rule`.
        start: initial range of the genes of its γ and σ, from 0.
        step: standard deviation of their mutation if the strategy does not adapt it: a thousandth of
            `start`, as for the paper's features.
    """

    name: str
    word: str
    heading: str
    definition: str
    start: float
    step: float

    @property
    def document(self) -> Mapping[str, Any]:
        """What a rule base's file says of it."""
        return {"name": self.name, "definition": self.definition, "scale": 1}


REQUESTED_TIME: Final = FurtherFeature(
    "requested_time",
    "requested-time",
    "request, lg s",
    "decimal logarithm of the requested time in seconds, at least 0",
    start=6.0,
    step=0.006,
)

MEMORY_SHARE: Final = FurtherFeature(
    "memory_share",
    "memory-share",
    "memory, %",
    "100 times the job's memory over the memory of the site's nodes; 0 where it is not counted",
    start=100.0,
    step=0.1,
)

GPU_SHARE: Final = FurtherFeature(
    "gpu_share",
    "gpu-share",
    "GPUs, %",
    "100 times the job's GPUs over the GPUs of the site's nodes; 0 where there are none",
    start=100.0,
    step=0.1,
)

DOMINANT_SHARE: Final = FurtherFeature(
    "dominant_share",
    "dominant-share",
    "dominant, %",
    "the largest of NJP, memory_share and gpu_share",
    start=100.0,
    step=0.1,
)

STARTS_NOW: Final = FurtherFeature(
    "starts_now",
    "starts-now",
    "starts now",
    "1 where the site would start the job at once, else 0",
    start=1.0,
    step=0.001,
)

FURTHER_FEATURES: Final[Mapping[str, FurtherFeature]] = MappingProxyType(
    {one.name: one for one in (REQUESTED_TIME, MEMORY_SHARE, GPU_SHARE, DOMINANT_SHARE, STARTS_NOW)}
)
"""By name, in the order of files and genomes."""

FEATURE_WORDS: Final = tuple(one.word for one in FURTHER_FEATURES.values())


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Returns names of further features without duplicates, in their order.

    Raises:
        ValueError: there is no such feature.
    """
    wanted = set(names)
    for name in sorted(wanted - set(FURTHER_FEATURES)):
        raise ValueError(unknown("feature", name, tuple(FURTHER_FEATURES)))
    return tuple(name for name in FURTHER_FEATURES if name in wanted)


__all__ = [
    "AcceptWhenFit",
    "AlwaysAgree",
    "AlwaysKeep",
    "Constrained",
    "Gaussian",
    "Rule",
    "RuleBase",
    "TransferPolicy",
    "TransferQuestion",
    "UserDefinedTransfer",
    "compiled_transfer",
]


class TransferPolicy(Protocol):
    """What decides whether a site runs a job itself."""

    @property
    def name(self) -> str:
        """A word for people."""

    @property
    def compiled(self) -> CompiledTransfer:
        """The policy as every host executes it."""


class _CompiledOnce:
    """Keeps the compiled form, which is rebuilt where a policy arrives in another process."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "compiled"}


@dataclass(frozen=True)
class AlwaysKeep(_CompiledOnce):
    """Keeps every own job and declines every offer: a site by itself."""

    name: str = "keep"

    @cached_property
    def compiled(self) -> CompiledTransfer:
        """The policy as every host executes it."""
        return CompiledTransfer.always_keep()


@dataclass(frozen=True)
class AcceptWhenFit(_CompiledOnce):
    """Wants a job iff it needs no more processors than are free now (the paper, section 6)."""

    name: str = "awf"

    @cached_property
    def compiled(self) -> CompiledTransfer:
        """The policy as every host executes it."""
        return CompiledTransfer.accept_when_fit()


@dataclass(frozen=True)
class AlwaysAgree(_CompiledOnce):
    """Offers every own job and takes every other; of use within constraints alone."""

    name: str = "agree"

    @cached_property
    def compiled(self) -> CompiledTransfer:
        """The policy as every host executes it."""
        return CompiledTransfer.always_agree()


@dataclass(frozen=True)
class Constrained(_CompiledOnce):
    """A policy that decides within constraints; without `policy` it always agrees."""

    rails: ExchangeConstraints = FAIR_EXCHANGE
    policy: TransferPolicy = field(default_factory=AlwaysAgree)
    name: str = "constrained"

    @cached_property
    def compiled(self) -> CompiledTransfer:
        """The policy as every host executes it."""
        return compiled_transfer(self.policy).constrained(self.rails.compiled)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """A Gaussian membership function, exp(−(x−γ)²/σ²) (the paper, equation 4).

    Attributes:
        gamma: γ, where membership is 1; in the feature's unit.
        sigma: σ, its width; in the feature's unit, not 0. Its sign does not matter.
    """

    gamma: float
    sigma: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.gamma):
            raise ValueError(f"gamma is {self.gamma}; it must be a finite number")
        if not math.isfinite(self.sigma) or self.sigma == 0:
            raise ValueError(f"sigma is {self.sigma}; it must be a finite number other than 0")


@dataclass(frozen=True, slots=True)
class Rule:
    """IF NWP is about γ₁ and NJP is about γ₂ THEN accept or decline (the paper, equation 1).

    Attributes:
        nwp: membership of the normalized waiting parallelism (equation 9), the sum of the
            waiting jobs' processors over the site's processors; dimensionless, 0 and more.
        njp: membership of the normalized job parallelism (equation 10), 100 times the job's
            processors over the site's processors; percent, 0 to 100.
        accept: the recommendation, y = +1 or −1 (equation 5).
        requested_time: of the decimal logarithm of the requested time in seconds; `None` if unused.
        memory_share: of the job's share of the memory of the site's nodes, percent; `None` if unused.
        gpu_share: of its share of their GPUs; same.
        dominant_share: of the largest of these two and NJP; same.
        starts_now: of 1 if the site would start the job at once, else 0; `None` if unused.
    """

    nwp: Gaussian
    njp: Gaussian
    accept: bool
    requested_time: Gaussian | None = None
    memory_share: Gaussian | None = None
    gpu_share: Gaussian | None = None
    dominant_share: Gaussian | None = None
    starts_now: Gaussian | None = None

    @property
    def further(self) -> tuple[str, ...]:
        """The features it uses besides NWP and NJP, in order."""
        return tuple(name for name in FURTHER_FEATURES if getattr(self, name) is not None)

    @property
    def numbers(self) -> tuple[float, ...]:
        """γ and σ of each feature in order."""
        more = (getattr(self, name) for name in FURTHER_FEATURES)
        looked_at: tuple[Gaussian | None, ...] = (self.nwp, self.njp, *more)
        return tuple(x for one in looked_at if one is not None for x in (one.gamma, one.sigma))


@dataclass(frozen=True)
class RuleBase(_CompiledOnce):
    """A Takagi-Sugeno-Kang rule base with binary recommendations (the paper, section 4).

    The site wants the job iff Σφy > 0, φ being the product of a rule's memberships (equations 2, 7, 8). If
    all memberships vanish, the sum is 0 and the answer no. Rules that use more than NWP and NJP need constraints.

    Attributes:
        rules: at least one; all use the same features.

    Raises:
        ValueError: there is no rule, or two use different features.
    """

    rules: tuple[Rule, ...]
    name: str = "rule base"
    provenance: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if not self.rules:
            raise ValueError("a rule base needs at least one rule")
        for number, rule in enumerate(self.rules):
            if rule.further != self.further:
                raise ValueError(
                    f"rule {number} looks at {', '.join(rule.further) or 'no further feature'}, the first "
                    f"one at {', '.join(self.further) or 'none'}; all must look at the same"
                )

    @property
    def further(self) -> tuple[str, ...]:
        """The features it uses besides NWP and NJP, in order."""
        return self.rules[0].further

    @cached_property
    def compiled(self) -> CompiledTransfer:
        """The policy as every host executes it."""
        return CompiledTransfer.rule_base(
            [(*rule.numbers, 1.0 if rule.accept else -1.0) for rule in self.rules],
            None,
            **dict.fromkeys(self.further, True),
        )


@dataclass(frozen=True)
class UserDefinedTransfer(_CompiledOnce):
    """A named transfer policy written in Python: a function, or an object with a method `accept`."""

    written: Any

    @property
    def name(self) -> str:
        """A word for people."""
        return name_of_user_defined(self.written)

    @cached_property
    def compiled(self) -> CompiledTransfer:
        """The policy as every host executes it."""
        return compiled_transfer(self.written)


def compiled_transfer(policy: object) -> CompiledTransfer:
    """Returns a policy in the form that every host executes.

    One written in Python is a function or an object with a method `accept`. It gets a `TransferQuestion`
    and returns whether the site wants to run the job itself.

    Raises:
        TypeError: it has no such form.
    """
    accept = policy if isinstance(policy, FunctionType) else getattr(policy, "accept", None)
    if callable(accept) and not isinstance(policy, type | CompiledTransfer):
        name = name_of_user_defined(policy)
        return CompiledTransfer.written(lambda question: yes_or_no(accept(question), name))
    compiled = getattr(policy, "compiled", None)
    if type(compiled) is not CompiledTransfer or not compiled.decides:
        raise TypeError(
            f"{policy!r} is no transfer policy that can run; possible are AlwaysKeep, "
            "AcceptWhenFit, RuleBase and Constrained of grms.policy.transfer, what compiles to them, a function, "
            "and an object with a method accept(question)"
        )
    return compiled


def transfer_of(policy: Any) -> TransferPolicy:
    """Returns a transfer policy whose `compiled` can run at once; one written in Python is wrapped.

    Raises:
        TypeError: it has no form that hosts execute.
    """
    compiled = compiled_transfer(policy)
    if getattr(policy, "compiled", None) is compiled:
        named: TransferPolicy = policy
        return named
    return UserDefinedTransfer(policy)


def rails_of(policy: object) -> ExchangeConstraints | None:
    """Returns the constraints within which a policy decides; `None` for none."""
    return policy.rails if isinstance(policy, Constrained) else None


def rounds_in_force(
    said: float | RebalancingSpec | None, policies: Iterable[object]
) -> float | Rebalancing | None:
    """Returns when a site with these transfer policies offers again: as said, or as strict exchange does."""
    if said is None and any(
        rails.account is not None for policy in policies if (rails := rails_of(policy)) is not None
    ):
        return STRICT_REOFFER
    return rounds_said(said)


def yes_or_no(answer: object, name: str) -> bool:
    """Returns the answer of a transfer policy written in Python.

    Any object has a truth value: without this check a forgotten `return` would decline every job.

    Raises:
        TypeError: it is neither True nor False, 1 nor 0.
    """
    if isinstance(answer, bool | np.bool_) or (isinstance(answer, int) and answer in {0, 1}):
        return bool(answer)
    raise TypeError(
        f"transfer policy {name!r} has answered {answer!r:.200}; it must be True (the site wants to run "
        "the job itself) or False"
    )


def without_constraints(policy: object, rails: ExchangeConstraints | None = None) -> str:
    """Returns why a policy cannot decide with these constraints alone, for people; empty if it can."""
    if not isinstance(policy, RuleBase):
        return ""
    if rails is not None and not rails.start_now and "starts_now" in policy.further:
        return (
            f"the rule base {policy.name} looks at starts_now, which constraints without start-now do not ask; "
            'give the site constraints with rules = "start-now" or more'
        )
    if rails is None and policy.further:
        return (
            f"the rule base {policy.name} looks at {' and '.join(policy.further)}, which are known "
            'within constraints alone; give the site rails = "fair-exchange", or name a rule base of queue '
            "and width"
        )
    return ""
