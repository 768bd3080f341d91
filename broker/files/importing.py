"""Turns recorded workflows into plannable ones, with alternatives and work for their tasks.

A recording names one machine per task. Here every task gets all suitable resources as alternatives.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from broker.errors import InputError
from broker.files.wfformat import RecordedTask, RecordedWorkflow
from broker.model.pool import KIND_DEFAULT, Pool
from broker.model.workflow import Alternative, Task, Workflow
from lrms_sim.spelling import unknown

CoreRule = Literal["units", "ignore"]


@dataclass(frozen=True, slots=True)
class MappingRule:
    """Which resources some tasks may run on.

    Attributes:
        pattern: with `*`, `?` and `[…]`, of a task's id, name or program.
        targets: names or kinds of resources.
    """

    pattern: str
    targets: tuple[str, ...]

    def matches(self, task: RecordedTask) -> bool:
        """Returns whether the rule speaks of a task."""
        return any(fnmatchcase(text, self.pattern) for text in (task.id, task.name, task.program))


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a recording is imported.

    Attributes:
        rules: the first that matches a task counts. Tasks without one run on every resource of kind
            "cpu".
        cores: "units": the task takes a unit of its primary resource per core used, and smaller
            resources are no alternatives; "ignore": it takes one.
        reference_mhz: clock of a machine of performance 1. Work is then run time times the recorded
            machine's clock over this; with `None`, or an unknown clock, the run time.
        time_factor: factor on all run times; more than 0.
        work_min: least work in seconds. Recorders round, some of them to nothing, and a task
            without work cannot be planned.
    """

    rules: tuple[MappingRule, ...] = ()
    cores: CoreRule = "units"
    reference_mhz: float | None = None
    time_factor: float = 1.0
    work_min: float = 1e-3

    def __post_init__(self) -> None:
        for word, value in (
            ("reference clock", self.reference_mhz),
            ("time factor", self.time_factor),
            ("least work", self.work_min),
        ):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"the {word} is {value}; it must be more than 0")

    def work(self, task: RecordedTask) -> float:
        """Returns the seconds a task takes at performance 1."""
        speed = 1.0
        if self.reference_mhz is not None and task.speed_mhz is not None:
            speed = task.speed_mhz / self.reference_mhz
        return max(task.run_time * speed * self.time_factor, self.work_min)


def to_workflow(
    recorded: RecordedWorkflow, pool: Pool, options: ImportOptions, *, name: str
) -> Workflow:
    """Returns a recorded workflow as a plannable one, without due date or budget.

    `name` must be unique among the workflows planned together.

    Raises:
        InputError: a rule names a missing resource, or no resource is large enough for a task; the
            text says which, and what could be done.
    """
    targets = {rule: _check_rule(rule, pool) for rule in options.rules}
    cache: dict[tuple[tuple[str, ...], int], tuple[Alternative, ...]] = {}
    tasks = []
    for task in recorded.tasks:
        rule = next((rule for rule in options.rules if rule.matches(task)), None)
        names = targets[rule] if rule else _names_of_kind(KIND_DEFAULT, pool)
        units = task.cores if options.cores == "units" else 1
        key = names, units
        if key not in cache:
            cache[key] = _alternatives(names, units, pool)
        if not cache[key]:
            raise InputError(_nowhere(name, task, names, units, pool))
        tasks.append(Task(task.id, options.work(task), cache[key], task.predecessors))
    return Workflow(name, tuple(tasks))


def _check_rule(rule: MappingRule, pool: Pool) -> tuple[str, ...]:
    names = {resource.name for resource in pool.resources}
    meant: set[str] = set()
    for target in rule.targets:
        if target in names:
            meant.add(target)
        elif target in pool.kinds:
            meant.update(_names_of_kind(target, pool))
        else:
            choices = [*pool.kinds, *(resource.name for resource in pool.resources)]
            what = "name or kind of a resource"
            raise InputError(f"mapping of {rule.pattern!r}: {unknown(what, target, choices)}")
    return tuple(resource.name for resource in pool.resources if resource.name in meant)


def _names_of_kind(kind: str, pool: Pool) -> tuple[str, ...]:
    return tuple(resource.name for resource in pool.resources if resource.kind == kind)


def _alternatives(names: Sequence[str], units: int, pool: Pool) -> tuple[Alternative, ...]:
    capacity = {resource.name: resource.capacity for resource in pool.resources}
    return tuple(pool.alternative(name, units) for name in names if capacity[name] >= units)


def _nowhere(
    workflow: str, task: RecordedTask, names: Sequence[str], units: int, pool: Pool
) -> str:
    where = f"workflow {workflow!r}, task {task.id!r}"
    if not names:
        kinds = ", ".join(repr(kind) for kind in pool.kinds)
        return (
            f"{where}: there is no resource of kind {KIND_DEFAULT!r}; kinds are {kinds}; "
            "say with --map what tasks run on"
        )
    largest = max(each.capacity for each in pool.resources if each.name in names)
    return (
        f"{where}: used {units} cores, and the largest of its resources has {largest} units; "
        "--cores ignore lets every task take one unit"
    )
