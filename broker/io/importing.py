"""Turns recorded workflows into plannable ones, with alternatives and work for their tasks.

A recording names one machine per task. Here every task gets all suitable resources as alternatives.
"""

from collections.abc import Sequence
from typing import Final

from broker.io.import_options import ImportOptions, MappingRule
from broker.io.wfformat import RecordedTask, RecordedWorkflow
from broker.model.network import DataFile
from broker.model.pool import KIND_DEFAULT, Pool
from broker.model.workflow import Alternative, Task, Workflow
from broker.util.errors import InputError
from lrms_sim.util.messages import unknown

FILES_SHOWN_MAX: Final = 5
"""Most names of files in an error."""


def to_workflow(
    recorded: RecordedWorkflow, pool: Pool, options: ImportOptions, *, name: str, data: bool = False
) -> Workflow:
    """Returns a recorded workflow as a plannable one, without due date or budget.

    `name` must be unique among the workflows planned together. With `data` it has the files that its
    tasks read, and a task that reads what another one leaves waits for that, also where the recording
    has no such edge.

    Raises:
        InputError: a rule names a missing resource, no resource is large enough for a task, or with
            `data` a file has no size, or two tasks leave it; the text says which, and what could be
            done.
    """
    targets = {rule: _check_rule(rule, pool) for rule in options.rules}
    files = files_of(recorded, name) if data else ()
    makers: dict[str, list[str]] = {}
    for file in files:
        for reader in file.readers if file.maker else ():
            makers.setdefault(reader, []).append(file.maker)
    cache: dict[tuple[tuple[str, ...], int], tuple[Alternative, ...]] = {}
    tasks = []
    anywhere = _names_of_kind(KIND_DEFAULT, pool)
    for task in recorded.tasks:
        rule = next((rule for rule in options.rules if rule.matches(task)), None)
        names = targets[rule] if rule else anywhere
        units = task.cores if options.cores == "units" else 1
        key = names, units
        if key not in cache:
            cache[key] = _alternatives(names, units, pool)
        if not cache[key]:
            raise InputError(_nowhere(name, task, names, units, pool))
        before = tuple(dict.fromkeys((*task.predecessors, *makers.get(task.id, ()))))
        tasks.append(Task(task.id, options.work(task), cache[key], before))
    try:
        return Workflow(name, tuple(tasks), files=files)
    except ValueError as error:
        raise InputError(str(error)) from error


def has_files(recorded: RecordedWorkflow) -> bool:
    """Returns whether a recording says all of its files: a size and one maker, whom its readers wait for."""
    try:
        files = files_of(recorded, recorded.name)
    except InputError:
        return False
    before = {task.id: task.predecessors for task in recorded.tasks}
    return all(not each.maker or each.maker in before[r] for each in files for r in each.readers)


def files_of(recorded: RecordedWorkflow, name: str) -> tuple[DataFile, ...]:
    """Returns the files that tasks of a recording read, but for those that only their own task does.

    Raises:
        InputError: one has no size, or several tasks leave it; `name` is that of the workflow there.
    """
    makers: dict[str, str] = {}
    readers: dict[str, list[str]] = {}
    for task in recorded.tasks:
        for file in task.outputs:
            if makers.setdefault(file, task.id) != task.id:
                both = f"{makers[file]!r} and {task.id!r}"
                raise InputError(f"workflow {name!r}: file {file!r} is an output of {both}")
        for file in task.inputs:
            readers.setdefault(file, []).append(task.id)
    for file, maker in makers.items():
        if maker in readers.get(file, ()):
            readers[file].remove(maker)
    read = {file: tasks for file, tasks in readers.items() if tasks}
    if missing := [file for file in read if file not in recorded.sizes]:
        shown = ", ".join(map(repr, missing[:FILES_SHOWN_MAX]))
        more = len(missing) - FILES_SHOWN_MAX
        raise InputError(
            f"workflow {name!r}: no size is known of {shown}{f' and {more} more' * (more > 0)}; with a "
            "network, each file that a task reads needs its sizeInBytes in workflow.specification.files"
        )
    return tuple(
        DataFile(file, recorded.sizes[file], tuple(tasks), makers.get(file, ""))
        for file, tasks in read.items()
    )


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
