"""One experiment of the study: jobs to learn on, jobs to test on, policies side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from grms.learning.evolution.cma_strategy import CmaStrategy
from grms.learning.evolution.genes import GeneSpace
from grms.learning.evolution.strategies import StrategySettings
from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import Outcome, simulate
from lrms_sim.malleable.model import PROCESSORS, TEST_STEPS, TRAINING_STEPS, PaperModel
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import FEATURES, POLICIES, Ordered, Policy
from lrms_sim.malleable.source import TRAINING_SEED
from lrms_sim.malleable.value import PAPER_P, Scales, ValueFunction
from scenarios.studies.utility_scheduling.reference import READINGS

EVOLVED_GENERATIONS: Final = 25
EVOLVED_OFFSPRING: Final = 10
EVOLVED_STEPS: Final = 6_000
"""Settings of the evolution of order weights, and the steps of the model."""

SCALES: Final = Scales(1.0, 10.0, PROCESSORS)


@dataclass(frozen=True, slots=True)
class Case:
    """One experiment.

    Attributes:
        reading: key of `READINGS`.
        rate: arrivals in a step.
        number: of the experiment; also the seed of its jobs.
        paper_p: whether the paper's own p is used instead of learning.
    """

    part: str
    reading: str
    rate: float
    shape: str
    number: int
    policies: tuple[str, ...]
    paper_p: bool = False

    @property
    def key(self) -> str:
        """What the experiment is kept under: everything its result depends on."""
        own = " paper-p" if self.paper_p else ""
        names = ",".join(self.policies)
        return f"{self.part} {self.reading} {self.rate:g} {self.shape} {self.number} {names}{own}"


@dataclass(frozen=True, slots=True)
class Run:
    """What a policy came to.

    Attributes:
        productivity: in 1000 utility units.
        utilization: share of the processors.
        p: of its value function; empty without one.
    """

    productivity: float
    utilization: float
    suspensions: int
    resizes: int
    p: tuple[float, ...] = ()


def run_case(case: Case) -> dict[str, Run]:
    """Runs an experiment; the interpreter is free meanwhile."""
    model = PaperModel(case.rate, shape=case.shape)
    test = model.draw(TEST_STEPS, case.number)
    train = model.draw(TRAINING_STEPS, TRAINING_SEED + case.number)
    found = {}
    for name in case.policies:
        value = None
        policy = POLICIES.get(name) or _evolved(case.rate, case.reading)
        if policy.by_value:
            value = ValueFunction(PAPER_P if case.paper_p else (0.0,) * 8, SCALES)
            if not case.paper_p:
                value = _learned(train, policy, case.reading, value)
        outcome = _simulate(test, policy, READINGS[case.reading].options, value)
        (machine,) = outcome.machines
        found[name] = Run(
            outcome.productivity / 1000,
            outcome.utilization,
            machine.suspensions,
            machine.resizes,
            value.p if value is not None else (),
        )
    return found


def _learned(
    train: UtilityJobs, policy: Policy, reading: str, value: ValueFunction
) -> ValueFunction:
    outcome = simulate(
        train,
        PROCESSORS,
        policy,
        options=READINGS[reading].options,
        value=value,
        learning=READINGS[reading].learning,
        horizon=float(TRAINING_STEPS),
    )
    learned = outcome.machines[0].value
    assert learned is not None
    return learned


def _simulate(
    jobs: UtilityJobs, policy: Policy, options: MachineOptions, value: ValueFunction | None
) -> Outcome:
    return simulate(
        jobs, PROCESSORS, policy, options=options, value=value, horizon=float(TEST_STEPS)
    )


@cache
def _evolved(rate: float, reading: str) -> Ordered:
    jobs = PaperModel(rate).draw(EVOLVED_STEPS, TRAINING_SEED)
    return evolve_order(jobs, READINGS[reading].options, seed=1)


def evolve_order(
    jobs: UtilityJobs,
    options: MachineOptions,
    *,
    seed: int,
    generations: int = EVOLVED_GENERATIONS,
    processors: int = PROCESSORS,
) -> Ordered:
    """Returns a replanning order whose weights CMA-ES has found on a workload."""
    # The search begins at the density order, whose other weights are 0.
    middle = np.array([1.0] + [0.0] * (len(FEATURES) - 1))
    space = GeneSpace(middle - 1.0, middle + 1.0, np.full(len(FEATURES), 0.1))
    strategy = CmaStrategy(space, StrategySettings(offspring=EVOLVED_OFFSPRING), seed)
    density = Ordered("replan", "weights", True, tuple(middle.tolist()))
    best, worth = density, _worth(jobs, density, options, processors)
    for _ in range(generations):
        orders = [
            replace(density, weights=tuple(genome.real.tolist())) for genome in strategy.ask()
        ]
        values = [_worth(jobs, order, options, processors) for order in orders]
        strategy.tell(values)
        first = min(range(len(values)), key=values.__getitem__)
        if values[first] < worth:
            best, worth = orders[first], values[first]
    return best


def _worth(jobs: UtilityJobs, order: Ordered, options: MachineOptions, processors: int) -> float:
    return -simulate(jobs, processors, order, options=options).productivity


def median_p(runs: Sequence[Mapping[str, Run]], policy: str) -> list[float]:
    """Returns the median of each output of a policy's value functions."""
    return [float(value) for value in np.median([run[policy].p for run in runs], axis=0)]
