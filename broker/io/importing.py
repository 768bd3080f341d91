"""Turns recorded workflows into plannable ones, with alternatives and work for their tasks.

A recording names one machine per task. Here every task gets all suitable resources as alternatives.
"""

from collections.abc import Sequence

from broker.io.import_options import ImportOptions, MappingRule
from broker.io.wfformat import RecordedTask, RecordedWorkflow
from broker.model.pool import KIND_DEFAULT, Pool
from broker.model.workflow import Alternative, Task, Workflow
from broker.util.errors import InputError
from lrms_sim.util.messages import unknown


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
