"""Runs workloads with utilities on machines that may suspend and squeeze jobs.

Time is the workload's. At one instant all ends are taken first (by machine, then in order of
arrival), then all arrivals, then every machine makes one pass; docs/utility.md has every rule.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from lrms_sim.malleable._kernel import UtilityKernel
from lrms_sim.malleable.jobs import Int8Array, UtilityJobs
from lrms_sim.malleable.log import AllocationLog
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import Ordered, Policy
from lrms_sim.malleable.value import Scales, ValueFunction
from lrms_sim.util.columns import is_whole
from lrms_sim.workload.jobs import FloatArray, Int32Array

STATUSES: Final = ("not submitted", "waiting", "running", "completed", "left")
"""What may have become of a job by the end of a run, by number."""

COMPLETED: Final = STATUSES.index("completed")
LEFT: Final = STATUSES.index("left")

BATCH: Final = 20_000
"""Arrivals between two progress calls."""


@dataclass(frozen=True, slots=True)
class Learning:
    """How a value function is learned while a policy runs (Vengerov, section 3.4).

    Attributes:
        rate: the learning rate α, constant, or with a `delay` `rate / (delay + t)` at update t, at
            most 1.
        delay: `None` for a constant rate. 0 is the paper's example, 1/t.
        per_step: whether the average reward ρ is one of time, as the text says, or of updates,
            as equation 5 has it.
        time_unit: seconds for which ρ stands, if of time; by default a tenth of the value
            function's scale of time, which is one step of the paper's.
        rho: initial average reward.
        updates: number of earlier updates.
    """

    rate: float = 0.003
    delay: float | None = None
    per_step: bool = True
    time_unit: float | None = None
    rho: float = 0.0
    updates: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate is {self.rate}; it must be more than 0 and at most 1")
        if self.delay is not None and not 0 <= self.delay < math.inf:
            raise ValueError(f"delay is {self.delay}; it must be at least 0")
        if self.time_unit is not None and not 0 < self.time_unit < math.inf:
            raise ValueError(f"time_unit is {self.time_unit}; it must be more than 0")
        if not math.isfinite(self.rho) or self.updates < 0:
            raise ValueError(f"rho is {self.rho} after {self.updates} updates")

    def for_kernel(self, scales: Scales) -> dict[str, Any]:
        """Returns the rules as the kernel takes them."""
        return {
            "rate": self.rate,
            "constant": self.delay is None,
            "delay": self.delay or 0.0,
            "per_step": self.per_step,
            "time_unit": self.time_unit or scales.time / 10.0,
            "rho": self.rho,
            "updates": self.updates,
        }


@dataclass(frozen=True, slots=True)
class MachineOutcome:
    """Totals of one machine.

    Attributes:
        busy: processor-seconds that jobs held, used or not.
        utility: of the jobs that completed on it.
        value: its value function at the end, if any.
        rho: the average reward it has learned.
        steps: shape (updates, 12): time, reward, δ, ρ and p of each update, on request.
    """

    processors: int
    busy: float
    utility: float
    completed: int
    suspensions: int
    resizes: int
    value: ValueFunction | None
    rho: float
    updates: int
    steps: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Result of a run.

    Attributes:
        span: from the origin to the horizon, or to the last end, in seconds.
        start: shape (n,), seconds; NaN for a job that has not started.
        end: shape (n,), seconds; when it completed or left, else NaN.
        utility: shape (n,), final utility; 0 for a job that has not completed.
        busy: shape (n,), processor-seconds held.
        extra: shape (n,), seconds of ideal time that suspensions and resizes have cost: their
            price, and progress lost by requeueing.
        suspensions: shape (n,).
        resizes: shape (n,).
        status: shape (n,), index into `STATUSES`.
        machine: shape (n,), where it ran last; -1 if nowhere.
        log: allocation log, on request.
    """

    workload: UtilityJobs
    span: float
    start: FloatArray
    end: FloatArray
    utility: FloatArray
    busy: FloatArray
    extra: FloatArray
    suspensions: Int32Array
    resizes: Int32Array
    status: Int8Array
    machine: Int32Array
    machines: tuple[MachineOutcome, ...]
    events: int
    log: AllocationLog | None = field(repr=False, default=None)

    @property
    def productivity(self) -> float:
        """Sum of the final utilities of the completed jobs."""
        return float(sum(each.utility for each in self.machines))

    @property
    def utilization(self) -> float:
        """Share of all processors that jobs held; NaN without any time (equation 7)."""
        room = sum(each.processors for each in self.machines) * self.span
        return sum(each.busy for each in self.machines) / room if room > 0 else math.nan

    @property
    def share(self) -> float:
        """Productivity over what the submitted jobs could have brought at best; NaN of none."""
        submitted = self.status != 0
        possible = float(self.workload.possible[submitted].sum())
        return self.productivity / possible if possible > 0 else math.nan

    @property
    def price(self) -> float:
        """Processor-seconds of ideal work that suspensions and resizes have cost."""
        return float((self.extra * self.workload.jobs.processors).sum())

    def count(self, status: str) -> int:
        """Returns how many jobs have that status, one of `STATUSES`."""
        return int(np.count_nonzero(self.status == STATUSES.index(status)))


def kernel_for(
    workload: UtilityJobs,
    processors: Sequence[int],
    policy: Policy,
    options: MachineOptions,
    *,
    any_width: bool = False,
) -> UtilityKernel:
    """Returns machines around one queue, to be driven step by step.

    With `any_width` jobs may be wider than all machines, provided that they are never submitted.

    Raises:
        ValueError: there is no machine, one has no processors, or a job is too wide.
    """
    if not processors or not all(is_whole(each, 1, 2**31 - 1) for each in processors):
        raise ValueError(
            f"machines of {list(processors)} processors; each needs a whole number from 1 to {2**31 - 1}"
        )
    if isinstance(policy, Ordered) and policy.order == "weights" and not any(policy.weights):
        raise ValueError("an order by weights needs a weight that is not 0")
    widest = max(processors)
    wide = np.flatnonzero(workload.jobs.processors > widest)
    if len(wide) and not any_width:
        row = int(wide[0])
        raise ValueError(
            f"job {workload.jobs.job_id[row]} (row {row}) is {workload.jobs.processors[row]} "
            f"processors wide; the machine has {widest}"
        )
    columns = workload.columns()
    return UtilityKernel(columns, list(processors), options.for_kernel(), policy.for_kernel())


def simulate(
    workload: UtilityJobs,
    processors: int | Sequence[int],
    policy: Policy,
    *,
    options: MachineOptions | None = None,
    value: ValueFunction | Sequence[ValueFunction] | None = None,
    learning: Learning | None = None,
    origin: float = 0.0,
    horizon: float = math.inf,
    log: bool = False,
    steps: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Runs a workload.

    Args:
        workload: the jobs; none wider than the widest machine.
        processors: of the machine, or of each of several around one queue.
        policy: how they schedule.
        options: what they may do.
        value: the value function for policies by value, or one for each machine.
        learning: how it is learned on the way; default frozen.
        origin: where the run's time begins, in seconds, for the utilization; at most the first
            submission.
        horizon: later events are ignored, in seconds; one at it counts.
        log: whether to keep the allocation log.
        steps: whether to keep the steps of learning.
        progress: called now and then with the number of arrivals done.

    Raises:
        ValueError: an argument is out of its bounds, or a value function is missing.
    """
    sizes = list(processors) if isinstance(processors, Iterable) else [processors]
    kernel = kernel_for(workload, sizes, policy, options or MachineOptions())
    values = _values(value, sizes)
    if policy.by_value and values is None:
        raise ValueError("a policy by value needs a value function")
    for number, each in enumerate(values or ()):
        rules = learning.for_kernel(each.scales) if learning else {}
        kernel.set_value(number, each.p, each.scales.for_kernel(), rules)
    kernel.keep(log=log, steps=steps)
    count = len(workload)
    for row in range(BATCH, count + BATCH, BATCH):
        done = kernel.run(horizon, min(row, count))
        if progress is not None:
            progress(done)
    end = kernel.now
    begin = min(origin, float(workload.jobs.submit_time[0])) if count else origin
    if math.isfinite(horizon):
        end = horizon
        kernel.settle(horizon)
    entries = AllocationLog(kernel.log(), tuple(sizes), workload) if log else None
    found = kernel.results
    return Outcome(
        workload,
        max(end - begin, 0.0),
        found["first_start"],
        found["end"],
        found["utility"],
        found["busy"],
        found["extra"],
        found["suspensions"],
        found["resizes"],
        found["status"],
        found["ran_on"],
        _machines(sizes, kernel, values),
        kernel.events,
        entries,
    )


def _values(
    value: ValueFunction | Sequence[ValueFunction] | None, sizes: Sequence[int]
) -> list[ValueFunction] | None:
    if value is None:
        return None
    values = [value] * len(sizes) if isinstance(value, ValueFunction) else list(value)
    if len(values) != len(sizes):
        raise ValueError(f"{len(values)} value functions for {len(sizes)} machines")
    return values


def _machines(
    sizes: Sequence[int], kernel: UtilityKernel, values: list[ValueFunction] | None
) -> tuple[MachineOutcome, ...]:
    machines = []
    for number, size in enumerate(sizes):
        figures = kernel.figures(number)
        learned = kernel.learned(number)
        value = None
        if values is not None:
            before = values[number]
            value = ValueFunction(learned["p"], before.scales, before.name, before.provenance)
        machines.append(
            MachineOutcome(
                processors=size,
                busy=figures["busy"],
                utility=figures["utility"],
                completed=figures["completed"],
                suspensions=figures["suspensions"],
                resizes=figures["resizes"],
                value=value,
                rho=learned["rho"],
                updates=learned["updates"],
                steps=kernel.steps(number),
            )
        )
    return tuple(machines)
