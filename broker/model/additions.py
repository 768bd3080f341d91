"""Tasks that are added to an open workflow, one by one or as arrays of many."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Final

from broker.model.program import Program
from broker.model.workflow import Task, cycle_words
from broker.util.errors import InputError

ELEMENTS_MAX: Final = 100_000
"""Most elements of an array."""

EDGES_MAX: Final = 1_000_000
"""Most predecessors that the tasks of one call have in all, once arrays are written out."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A task, or an array of tasks that differ in nothing but their arguments.

    An element of the array `fit` has the name `fit/1`, `fit/2`, and so on, and its arguments after those of the program.
    A task that waits for `fit` waits for all of them.

    Attributes:
        task: the task; of an array, what its elements have in common, and its name.
        program: that it runs; `None` for nothing.
        elements: the arguments of each element, an empty tuple for none; empty for a single task.

    Raises:
        ValueError: the program is another task's, or there are too many elements, or arguments without a program.
    """

    task: Task
    program: Program | None = None
    elements: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.program is not None and self.program.task != self.task.name:
            raise ValueError(f"task {self.task.name!r} has the program of {self.program.task!r}")
        if len(self.elements) > ELEMENTS_MAX:
            raise ValueError(
                f"task {self.task.name!r} has {len(self.elements)} elements; at most {ELEMENTS_MAX}"
            )
        if self.program is None and any(self.elements):
            raise ValueError(f"task {self.task.name!r} has arguments for elements, and no program")

    @property
    def count(self) -> int:
        """How many tasks it is."""
        return len(self.elements) or 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its tasks."""
        if not self.elements:
            return (self.task.name,)
        return tuple(f"{self.task.name}/{number}" for number in range(1, self.count + 1))

    def tasks(self, arrays: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[Task, Program | None]]:
        """Yields its tasks with their programs; `arrays` are the elements of arrays that were added before."""
        before = written_out(self.task.predecessors, arrays)
        common = (
            self.task
            if before == self.task.predecessors
            else replace(self.task, predecessors=before)
        )
        if not self.elements:
            yield common, self.program
            return
        for name, arguments in zip(self.names, self.elements, strict=True):
            program = self.program
            if program is not None:
                program = replace(program, task=name, arguments=(*program.arguments, *arguments))
            yield replace(common, name=name), program


def in_order(additions: Iterable[Addition]) -> list[Addition]:
    """Returns tasks and arrays, each after those among them that it waits for.

    Raises:
        InputError: they wait for each other in a circle.
    """
    given = list(additions)
    makers = {name: at for at, each in enumerate(given) for name in (each.task.name, *each.names)}
    graph = {
        at: [makers[name] for name in each.task.predecessors if name in makers]
        for at, each in enumerate(given)
    }
    try:
        return [given[at] for at in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        around = cycle_words([given[at].task.name for at in error.args[1]])
        raise InputError(f"tasks wait for each other: {around}") from None


def written_out(names: tuple[str, ...], arrays: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Returns names of tasks, with the elements of each array in place of its name, each once."""
    if not any(name in arrays for name in names):
        return names
    return tuple(dict.fromkeys(one for name in names for one in arrays.get(name, (name,))))
