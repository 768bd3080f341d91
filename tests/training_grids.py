"""Small federations to learn from, and random individuals."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from grms.federation.federation import Federation, Site
from grms.learning.evolution.catalog import strategy_from_state
from grms.learning.evolution.genes import GeneSpace, Genome
from grms.learning.evolution.strategies import Evaluation, Strategy
from grms.learning.transfer.encoding import REALS_PER_RULE, RuleBaseSettings
from grms.learning.transfer.fitness import Fitness, TrainingCase
from grms.learning.transfer.options import Objective
from grms.policy.transfer import AcceptWhenFit, Gaussian, Rule, RuleBase
from lrms_sim.workload.jobs import JobTable
from tests.random_workloads import random_jobs

YES = RuleBase((Rule(Gaussian(0, 1e9), Gaussian(0, 1e9), accept=True),), "yes")
"""Keeps every own job and takes every other."""

genes = st.one_of(st.floats(-5, 110), st.sampled_from((0.0, 1e-300, -1e-12, 1e6)))


@st.composite
def genomes(draw: st.DrawFn, *, rules: int | None = None) -> Genome:
    """Draws an individual of up to five rules; some genes are 0, next to it, or far away."""
    rules = draw(st.integers(1, 5)) if rules is None else rules
    real = draw(st.lists(genes, min_size=4 * rules, max_size=4 * rules))
    accept = draw(st.lists(st.booleans(), min_size=rules, max_size=rules))
    return Genome(np.array(real, np.float64), np.array(accept, np.bool_))


def same_genome(one: Genome, other: Genome) -> bool:
    """Returns whether two individuals are equal to the last bit."""
    return (one.real.tobytes(), one.binary.tobytes()) == (
        other.real.tobytes(),
        other.binary.tobytes(),
    )


def check_resumed(
    strategy: Strategy, step: Callable[[Any], object], *, told: int, asked: bool
) -> None:
    """Checks that a strategy goes on bit for bit from its state as JSON.

    Args:
        strategy: one that has not begun.
        step: has a strategy ask, judges, and tells it.
        told: steps before it is saved.
        asked: whether it is saved between asking and telling.
    """
    for _ in range(told):
        step(strategy)
    if asked:
        strategy.ask()
    # Compared as text, in which what is no number equals itself.
    saved = json.dumps(strategy.to_state())
    again = strategy_from_state(json.loads(saved))
    assert type(again) is type(strategy)
    assert json.dumps(again.to_state()) == saved
    for _ in range(3):
        ours, theirs = (one.ask() for one in (strategy, again))
        assert [one.to_state() for one in ours] == [one.to_state() for one in theirs]
        step(strategy)
        step(again)
    assert strategy.best is not None
    assert again.best is not None
    assert same_genome(again.best.genome, strategy.best.genome)
    assert (again.generation, again.best.value) == (strategy.generation, strategy.best.value)
    assert again.to_state() == strategy.to_state()


def two_sites(seed: int = 1, jobs_max: int = 200) -> list[Site]:
    """Returns a small site `a` and a larger one `b` that accept when fit."""
    rng = np.random.default_rng(seed)
    return [
        Site("a", 10, random_jobs(rng, jobs_max, 10), transfer_policies={"b": AcceptWhenFit()}),
        Site("b", 25, random_jobs(rng, jobs_max, 25), transfer_policies={"a": AcceptWhenFit()}),
    ]


def small_fitness(seed: int = 1, objective: Objective = "egoistic") -> Fitness:
    """Returns the fitness of `a` for `b` of `two_sites`; an evaluation takes about 50 µs."""
    return Fitness([TrainingCase(Federation(two_sites(seed)), "a", ("b",))], objective)


def grid_of_known_optimum() -> tuple[Fitness, float]:
    """Returns a fitness whose least value is known, and that value.

    No AWRT is less than the one at which every job starts when it is submitted. Here that can be
    had, by keeping narrow jobs and giving wide ones away, and by nothing else: up to second
    5000, while narrow jobs come, a job of its own fills b; from 5000 on, while wide ones come, a
    job that is too wide for b fills a. b takes whatever it is offered.
    """
    narrow = [(10.0 * i, 1, 15.0) for i in range(300)]
    filling = [(5000.0, 4, 3000.0)]
    wide = [(5001.0 + 10.0 * i, 3, 9.0) for i in range(200)]
    submit_time, processors, run_time = zip(*narrow, *filling, *wide, strict=True)
    jobs = JobTable.from_columns(submit_time=submit_time, processors=processors, run_time=run_time)
    fills_b = JobTable.from_columns(submit_time=[0], processors=[3], run_time=[5000])
    sites = [
        Site("a", 4, jobs, transfer_policies={"b": YES}),
        Site("b", 3, fills_b, transfer_policies={"a": YES}),
    ]
    weight = jobs.resource_consumption
    least = float(np.sum(weight * jobs.run_time) / np.sum(weight))
    return Fitness([TrainingCase(Federation(sites), "a", ("b",))]), least


def sphere(genome: Genome, _: float = math.inf) -> Evaluation:
    """Returns a value that is 0 where all real genes are 3 and nothing is accepted."""
    # Summed one by one: golden values must not depend on the processor.
    value = sum((gene - 3.0) ** 2 for gene in genome.real.tolist()) + sum(genome.binary.tolist())
    return Evaluation(value, ((value,),))


def rule_space(rules: int = 2, **settings: Any) -> GeneSpace:
    """Returns the genes of so many rules."""
    return RuleBaseSettings(rules, **settings).space


def no_genome(rules: int = 2) -> Genome:
    """Returns the individual of zeros."""
    return Genome(np.zeros(REALS_PER_RULE * rules), np.zeros(rules, np.bool_))
