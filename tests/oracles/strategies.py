"""Strategies, criteria and rules that choose among strategies, as plainly as they can be written.

Written from docs/disciplines.md. A pass is made by sorting the queue and calling the discipline of
`tests/oracles/disciplines.py`; features are counted anew from all that has ever happened.
"""

import math
from collections.abc import Callable, Sequence

from lrms_sim.scheduling.criteria import Criterion, CriterionOrder, GroupOrder
from lrms_sim.scheduling.selection import StrategyRule, StrategyRules, StrategyTable
from lrms_sim.scheduling.strategies import Strategy
from tests.oracles.disciplines import Pass, conservative, easy, fcfs, list_scheduling, on_order
from tests.oracles.machine import PlainJob, PlainMachine

ALGORITHMS: dict[str, Pass] = {
    "fcfs": fcfs,
    "list": list_scheduling,
    "easy": easy,
    "conservative": conservative,
}


def value_of(criterion: Criterion, job: PlainJob, now: float) -> float:
    """Returns f of a waiting job."""
    weight = criterion.weights[job.group - 1]
    constant = criterion.constants[job.group - 1]
    a, b = criterion.waiting, criterion.size
    age, p, m = now - job.submit_time, job.requested_time, job.processors
    if criterion.kind == "f1":
        return weight * (constant + a * (age / p) + b * (p / m))
    if criterion.kind == "f2":
        return weight * (constant + a * age + b * (p * m))
    if criterion.kind == "f3":
        return weight * (constant + a * (age / (p * m)))
    return weight * (constant + a * age + b * (p / m))


def key_of(strategy: Strategy, now: float) -> Callable[[PlainJob], float]:
    """Returns what the queue is sorted by, ascending."""
    order = strategy.order
    if isinstance(order, GroupOrder):
        groups = order.groups
        return lambda job: groups.index(job.group)
    if isinstance(order, CriterionOrder):
        situation = 0
        if len(order.criteria) > 1:
            assert order.calendar is not None
            situation = order.calendar.at(now)
        criterion = order.criteria[situation]
        return lambda job: -value_of(criterion, job, now)
    if order == "processors":
        return lambda job: job.processors
    if order == "requested_time":
        return lambda job: job.requested_time
    return lambda _: 0.0


def pass_of(strategy: Strategy) -> Pass:
    """Returns the pass of one strategy."""

    def make_pass(machine: PlainMachine, now: float) -> None:
        on_order(machine, now, ALGORITHMS[strategy.algorithm], key_of(strategy, now))

    return make_pass


class Chooser:
    """The pass of a table or of rules: looks at the machine, then lets a strategy make the pass.

    Attributes:
        visits: the state of each pass in which a waiting job fitted.
        chosen: which strategy made it.
    """

    def __init__(self, policy: StrategyTable | StrategyRules, jobs: Sequence[PlainJob]) -> None:
        self._policy = policy
        self._jobs = jobs
        self.visits: list[tuple[float, ...]] = []
        self.chosen: list[int] = []

    def __call__(self, machine: PlainMachine, now: float) -> None:
        """Makes one pass."""
        state = features(machine, self._jobs, now)
        if isinstance(self._policy, StrategyTable):
            number = self._policy.table[class_of(state)]
        else:
            number = recommended(self._policy.rules, state)
        if any(machine.fits(job, now) for job in machine.waiting):
            self.visits.append(state)
            self.chosen.append(number)
        pass_of(self._policy.strategies[number])(machine, now)


def features(machine: PlainMachine, jobs: Sequence[PlainJob], now: float) -> tuple[float, ...]:
    """Returns SD, U and PRCWQ of groups 1 to 5, the percentages as such."""
    response = service = 0.0
    for row, end_time in machine.end_time.items():
        run_time = end_time - machine.start_time[row]
        work = run_time * jobs[row].processors
        response += work * (end_time - jobs[row].submit_time)
        service += work * run_time
    waiting = [0.0] * 5
    for job in machine.waiting:
        waiting[job.group - 1] += job.requested_time * job.processors
    busy = machine.processors - machine.processors_free(now)
    return (
        response / service if service else 1.0,
        100.0 * busy / machine.processors,
        *(100.0 * work / sum(waiting) if machine.waiting else 0.0 for work in waiting),
    )


def class_of(state: Sequence[float]) -> int:
    """Returns the number of the class: mixed radix 2, 3, 2, 2, 2, 2, 2."""
    upper_bounds = ((2.0,), (75.0, 85.0), (20.0,), (20.0,), (25.0,), (25.0,), (25.0,))
    number = 0
    for value, bounds in zip(state, upper_bounds, strict=True):
        number = number * (len(bounds) + 1) + sum(value > bound for bound in bounds)
    return number


def recommended(rules: Sequence[StrategyRule], state: Sequence[float]) -> int:
    """Returns the strategy with the largest weighted recommendation, the first of these."""
    logarithms = [
        sum(
            -((x - mean) ** 2) / (2 * deviation**2) - math.log(deviation)
            for x, mean, deviation in zip(state, rule.means, rule.deviations, strict=True)
        )
        for rule in rules
    ]
    most = max(logarithms)
    degrees = [math.exp(logarithm - most) for logarithm in logarithms]
    outputs = [
        sum(degree * rule.recommendations[k] for degree, rule in zip(degrees, rules, strict=True))
        for k in range(len(rules[0].recommendations))
    ]
    return outputs.index(max(outputs))
