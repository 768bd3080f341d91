"""Workflows: directed acyclic graphs of tasks with dates, a budget and a preference.

The paper (004, section 2) calls a workflow an application job, and a task a grid job.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final, Literal, get_args

from broker.model.names import check_name
from broker.model.network import DataFile

MOMENT_MAX: Final = 1e12
"""Seconds: thirty thousand years after 1970; later moments lose fractions of seconds."""

WORK_MAX: Final = 1e10
"""Seconds: three centuries; more is a mistake, and sums lose their seconds."""

OnFailure = Literal["finish", "terminate", "continue"]
"""What becomes of a workflow when a task of it has failed for good.

`finish` begins nothing more of it and waits for what runs; `terminate` ends what runs, too; `continue` gives up
only the tasks that wait for the failed one, directly or not, and goes on with the others.
"""

CYCLE_SHOWN_MAX: Final = 20
"""Most names of a circle in an error."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Some units of one resource."""

    resource: str
    units: int = 1

    def __post_init__(self) -> None:
        if self.units < 1:
            raise ValueError(f"a demand for {self.units} units of {self.resource!r}; at least 1")


@dataclass(frozen=True, slots=True)
class Alternative:
    """One set of resources that together can perform a task: an element of μ (section 2).

    Attributes:
        demands: the primary resource, whose performance counts, then its dependencies; all are
            held from the task's start to its end (co-allocation).
        seconds: that the task takes here, if its work and the performance do not say it.
        setup: seconds before that in which the task gets ready here. It begins when its predecessors have
            ended, and counts for its start, duration and cost.
        timed: whether more than work and performance says how long a task takes here.

    Raises:
        ValueError: there is no demand, a resource is named twice, or a time is out of bounds.
    """

    demands: tuple[Demand, ...]
    seconds: float | None = None
    setup: float = 0.0
    timed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 < self.seconds <= WORK_MAX:
            raise ValueError(f"{self.seconds} seconds; more than 0 and at most {WORK_MAX:g}")
        if not 0 <= self.setup <= WORK_MAX:
            raise ValueError(f"a set-up of {self.setup} seconds; from 0 to {WORK_MAX:g}")
        if not self.demands:
            raise ValueError("an alternative needs at least one resource")
        names = self.resources
        if len(set(names)) < len(names):
            raise ValueError(f"an alternative names a resource twice: {', '.join(names)}")
        object.__setattr__(self, "timed", self.seconds is not None or self.setup > 0)

    @classmethod
    def of(cls, primary: str, *dependent: str) -> "Alternative":
        """Returns the alternative that takes one unit of each resource named."""
        return cls(tuple(Demand(name) for name in (primary, *dependent)))

    def duration(self, work: float, performance: float) -> float:
        """Returns the seconds, set-up included, of a task of that work, at the primary's performance."""
        if not self.timed:
            return work / performance
        return self.setup + (work / performance if self.seconds is None else self.seconds)

    @property
    def primary(self) -> str:
        """The name of the resource that does the work."""
        return self.demands[0].resource

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of all resources, the primary one first."""
        return tuple(demand.resource for demand in self.demands)


_TIMED = attrgetter("timed")


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work that occupies its resources without interruption.

    Attributes:
        name: unique in its workflow.
        work: seconds that it takes on a resource of performance 1; more than 0, up to `WORK_MAX`. Alternatives
            may say otherwise.
        alternatives: at least one; their order breaks ties.
        predecessors: names of tasks of the same workflow that end before it starts.
        on_failure: what becomes of the workflow when it fails for good; `None` for what the workflow says.
        timed: whether an alternative has a duration or a set-up of its own.

    Raises:
        ValueError: the work is out of bounds, there is no alternative, two of them with times of their own
            have the same resources, a predecessor is the task itself or
            named twice, or the name or `on_failure` is invalid (`check_name`).
    """

    name: str
    work: float
    alternatives: tuple[Alternative, ...]
    predecessors: tuple[str, ...] = ()
    on_failure: OnFailure | None = None
    timed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Kept, as tasks may have hundreds of alternatives and are asked again and again.
        object.__setattr__(self, "timed", any(map(_TIMED, self.alternatives)))
        check_name("task", self.name)
        if self.on_failure is not None:
            _check_on_failure(f"task {self.name!r}", self.on_failure)
        self._check_work()
        if not self.alternatives:
            raise ValueError(f"task {self.name!r} has no alternative to run on")
        self._check_times()
        if self.name in self.predecessors:
            raise ValueError(f"task {self.name!r} is its own predecessor")
        if len(set(self.predecessors)) < len(self.predecessors):
            twice = [name for name, times in Counter(self.predecessors).items() if times > 1]
            raise ValueError(f"task {self.name!r} names a predecessor twice: {', '.join(twice)}")

    def _check_times(self) -> None:
        if not self.timed:
            return
        known: dict[tuple[Demand, ...], Alternative] = {}
        for each in self.alternatives:
            if known.setdefault(each.demands, each) != each:
                raise ValueError(
                    f"task {self.name!r} has two alternatives on {', '.join(each.resources)}, which "
                    "differ in time; name the shorter one alone"
                )

    def _check_work(self) -> None:
        if not 0 < self.work <= WORK_MAX:
            bounds = f"more than 0 and at most {WORK_MAX:g} s"
            raise ValueError(f"task {self.name!r}: work is {self.work}; it must be {bounds}")


@dataclass(frozen=True, slots=True)
class Instant(Task):
    """A task that takes no time, as job shops have: it waits, and others wait for it.

    No other task may run on its resources at that moment, unless it begins or ends then.
    """

    def _check_work(self) -> None:
        if self.work != 0 or self.timed:
            raise ValueError(
                f"task {self.name!r}: work is {self.work}; an instant has none, nor times"
            )


@dataclass(frozen=True, slots=True)
class Workflow:
    """A DAG of tasks that a user wants done, by when and for how much.

    Attributes:
        name: unique among the workflows that are planned together.
        tasks: at least one; their order breaks ties.
        earliest_start: seconds; no task starts earlier.
        due_date: seconds; when the last task should have ended. A soft limit (equation 2.4).
        budget: what all tasks together should cost at most. A soft limit (equation 2.3).
        preference: from 0, fast, to 1, cheap; below ½ RAS-3 takes fast resources.
        on_failure: what becomes of it when a task that says nothing of its own has failed for good.
        files: that its tasks read; they count where a problem has a network. Who reads what a task makes
            waits for that task.

    Raises:
        ValueError: a name is not unique or invalid (`check_name`), a predecessor is missing, the
            precedence has a cycle, a file is of no task, or a number is out of bounds; the text names
            workflow and tasks.
    """

    name: str
    tasks: tuple[Task, ...]
    earliest_start: float = -math.inf
    due_date: float = math.inf
    budget: float = math.inf
    preference: float = 0.5
    on_failure: OnFailure = "finish"
    files: tuple[DataFile, ...] = ()

    def __post_init__(self) -> None:
        check_name("workflow", self.name)
        where = f"workflow {self.name!r}"
        self._check_count(where)
        _check_on_failure(where, self.on_failure)
        names = [task.name for task in self.tasks]
        if len(set(names)) < len(names):
            twice = sorted(name for name, times in Counter(names).items() if times > 1)
            raise ValueError(f"{where}: tasks of the same name: {', '.join(twice)}")
        known = set(names)
        for task in self.tasks:
            for predecessor in task.predecessors:
                if predecessor not in known:
                    raise ValueError(
                        f"{where}: task {task.name!r} waits for {predecessor!r}, which is not there"
                    )
        cycle = find_cycle({task.name: task.predecessors for task in self.tasks})
        if cycle:
            raise ValueError(f"{where}: tasks wait for each other: {cycle_words(cycle)}")
        self._check_limits(where)
        if self.files:
            self._check_files(where)

    def _check_files(self, where: str) -> None:
        before = {task.name: frozenset(task.predecessors) for task in self.tasks}
        twice = sorted(name for name, n in Counter(f.name for f in self.files).items() if n > 1)
        if twice:
            raise ValueError(f"{where}: files of the same name: {', '.join(twice)}")
        for file in self.files:
            for name in (*file.readers, *([file.maker] if file.maker else [])):
                if name not in before:
                    raise ValueError(f"{where}: file {file.name!r}: there is no task {name!r}")
            for name in file.readers:
                if file.maker and file.maker not in before[name]:
                    raise ValueError(
                        f"{where}: task {name!r} reads {file.name!r} and does not wait for "
                        f"{file.maker!r}, which makes it"
                    )

    def only(self, tasks: tuple[Task, ...]) -> "Workflow":
        """Returns the workflow with these of its tasks and their files."""
        names = {task.name for task in tasks}
        files = tuple(
            replace(file, readers=tuple(name for name in file.readers if name in names))
            for file in self.files
            if not file.maker or file.maker in names
        )
        return replace(self, tasks=tasks, files=tuple(file for file in files if file.readers))

    def _check_count(self, where: str) -> None:
        if not self.tasks:
            raise ValueError(f"{where} has no task")

    def _check_limits(self, where: str) -> None:
        for word, value in (("earliest start", self.earliest_start), ("due date", self.due_date)):
            if math.isnan(value):
                raise ValueError(f"{where}: the {word} is not a number")
            if -math.inf < value < -MOMENT_MAX:
                raise ValueError(
                    f"{where}: the {word} is {value:g}; at most {MOMENT_MAX:g} s before 1970"
                )
        if self.earliest_start == math.inf:
            raise ValueError(f"{where}: the earliest start is infinite")
        if self.earliest_start > MOMENT_MAX:
            raise ValueError(
                f"{where}: the earliest start is {self.earliest_start:g}; at most {MOMENT_MAX:g} s"
            )
        if not self.budget >= 0:
            raise ValueError(f"{where}: the budget is {self.budget}; it must be at least 0")
        if not 0 <= self.preference <= 1:
            raise ValueError(f"{where}: the preference is {self.preference}; it is from 0 to 1")

    @property
    def work(self) -> float:
        """Seconds that all tasks take, one after another, at performance 1."""
        return math.fsum(task.work for task in self.tasks)


@dataclass(frozen=True, slots=True)
class OpenWorkflow(Workflow):
    """A workflow that was opened for tasks to be added, and may have none yet."""

    def _check_count(self, where: str) -> None:
        """Any number will do."""


def _check_on_failure(where: str, word: str) -> None:
    if word not in get_args(OnFailure):
        said = ", ".join(get_args(OnFailure))
        raise ValueError(f"{where}: on_failure is {word!r}; it must be one of {said}")


def cycle_words(cycle: Sequence[str], joint: str = " → ") -> str:
    """Returns the names of a circle for an error, at most `CYCLE_SHOWN_MAX`."""
    more = len(cycle) - CYCLE_SHOWN_MAX
    return joint.join(cycle[:CYCLE_SHOWN_MAX]) + (f" … and {more} more" if more > 0 else "")


def find_cycle(predecessors: Mapping[str, Iterable[str]]) -> list[str]:
    """Returns tasks that wait for each other in a circle, each for the next; empty if there is none.

    All predecessors must be keys.
    """
    done: set[str] = set()
    for root in predecessors:
        if root in done:
            continue
        path = [root]
        on_path = {root}
        open_edges = [iter(predecessors[root])]
        while path:
            following = next(open_edges[-1], None)
            if following is None:
                done.add(path[-1])
                on_path.discard(path.pop())
                open_edges.pop()
            elif following in on_path:
                return [*path[path.index(following) :], following]
            elif following not in done:
                path.append(following)
                on_path.add(following)
                open_edges.append(iter(predecessors[following]))
    return []
