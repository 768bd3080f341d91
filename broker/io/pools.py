"""The project's own files of resources and workflows, in TOML or JSON: docs/workflows.md.

One file may hold resources, workflows, or both. Resource names in workflows are resolved once all
files are read, so that workflows can be written before the pool is known.
"""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from broker.io import moments
from broker.io.documents import read_document
from broker.io.networks import Bytes, NetworkTable
from broker.io.task_programs import ProgramTable, program_of
from broker.model.additions import ELEMENTS_MAX, Addition
from broker.model.network import DataFile
from broker.model.pool import KIND_DEFAULT, Pool
from broker.model.program import Program, check_programs
from broker.model.resources import (
    DAY,
    PRICE_MAX,
    WEEKDAYS,
    Calendar,
    PriceRule,
    Resource,
    WeeklyWindow,
)
from broker.model.workflow import (
    WORK_MAX,
    Alternative,
    Demand,
    OnFailure,
    Task,
    Workflow,
)
from broker.util.errors import FileError
from grms.daemon.config_base import Model, wrong
from grms.daemon.config_errors import mistakes_of, path_of
from lrms_sim.util.file_errors import Mistake
from lrms_sim.util.messages import shown, unknown

HOUR: Final = 3600.0
Name = Annotated[str, Field(min_length=1, max_length=4096)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
SecondPrice = Annotated[float, Field(ge=0, le=PRICE_MAX, allow_inf_nan=False)]
HourPrice = Annotated[float, Field(ge=0, le=PRICE_MAX * HOUR, allow_inf_nan=False)]
UNITS_MAX: Final = 2**31 - 1
Units = Annotated[int, Field(ge=1, le=UNITS_MAX)]
Moment = Annotated[float, BeforeValidator(moments.moment)]
TimeOfDay = Annotated[float, BeforeValidator(moments.time_of_day)]
Weekdays = Annotated[tuple[int, ...], BeforeValidator(moments.weekdays)]
Offset = Annotated[float, BeforeValidator(moments.utc_offset)]


def _demand(value: object) -> Demand:
    match value:
        case str(name) if name:
            return Demand(name)
        case {"resource": str(name), **rest} if name and not rest.keys() - {"units"}:
            units = rest.get("units", 1)
            if isinstance(units, int) and not isinstance(units, bool) and 1 <= units < 2**31:
                return Demand(name, units)
    what = 'the name of a resource, or { resource = "…", units = … } with at least 1 unit'
    raise wrong(f"is {shown(value)}; it must be {what}")


def _demands(value: object) -> tuple[Demand, ...]:
    if not isinstance(value, list):
        raise wrong(f"is {shown(value)}; it must be a list of resources")
    demands = tuple(_demand(each) for each in value)
    if len({each.resource for each in demands}) < len(demands):
        raise wrong(f"is {shown(value)}; it names a resource twice")
    return demands


@dataclass(frozen=True, slots=True)
class _Timed:
    """An alternative with a duration or a set-up of its own, in seconds."""

    of: Alternative | Demand
    seconds: float | None
    setup: float


_ALTERNATIVE: Final = ("resource", "units", "seconds", "setup")


def _seconds(key: str, value: object, *, least: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and (0 < value <= WORK_MAX or (value == 0 and least == "0")):  # type: ignore[operator]  # a number
        return float(value)  # type: ignore[arg-type]  # a number
    raise wrong(f"{key} is {shown(value)}; it must be seconds, {least} to {WORK_MAX:g}")


def _alternative(value: object) -> Alternative | Demand | _Timed:
    """Returns an alternative, or a demand to which its resource's requirements are still to be added."""
    if isinstance(value, dict) and (odd := [key for key in value if key not in _ALTERNATIVE]):
        raise wrong(unknown("key of an alternative", odd[0], _ALTERNATIVE))
    if isinstance(value, dict) and value.keys() & {"seconds", "setup"}:
        rest = {key: each for key, each in value.items() if key not in {"seconds", "setup"}}
        of = _alternative(rest["resource"] if isinstance(rest.get("resource"), list) else rest)
        if isinstance(rest.get("resource"), list) and "units" in rest:
            raise wrong(f"is {shown(value)}; units belong to each resource of the list")
        seconds = (
            _seconds("seconds", value["seconds"], least="more than 0")
            if "seconds" in value
            else None
        )
        assert not isinstance(of, _Timed), "what is left has no times"
        return _Timed(of, seconds, _seconds("setup", value.get("setup", 0), least="0"))
    if not isinstance(value, list):
        return _demand(value)
    if not value:
        raise wrong("is []; an alternative names at least one resource, the primary one first")
    return Alternative(_demands(value))


def _alternatives(value: object) -> tuple[Alternative | Demand | _Timed, ...]:
    if not isinstance(value, list) or not value:
        what = "a list of alternatives, at least one: a resource, or a list of resources together"
        raise wrong(f"is {shown(value)}; it must be {what}")
    return tuple(_alternative(each) for each in value)


def _opening(value: object) -> object:
    if value == []:
        # It might be meant as "never open".
        raise wrong("is []; name at least one span, or leave it out: then it is always open")
    return value


class _Hours(Model):
    weekdays: Weekdays = WEEKDAYS
    begin: TimeOfDay = 0.0
    end: TimeOfDay = DAY

    @model_validator(mode="after")
    def _check_span(self) -> "_Hours":
        if self.begin == self.end or (self.begin, self.end) == (DAY, 0.0):
            raise wrong(f"begins and ends at {moments.written_time_of_day(self.begin)}")
        return self

    def windows(self) -> tuple[WeeklyWindow, ...]:
        """Returns one window, or two if the span crosses midnight."""
        if self.begin < self.end:
            return (WeeklyWindow(self.begin, self.end, self.weekdays),)
        evening = WeeklyWindow(self.begin, DAY, self.weekdays) if self.begin < DAY else None
        following = tuple(sorted((day + 1) % 7 for day in self.weekdays))
        morning = WeeklyWindow(0.0, self.end, following) if self.end > 0 else None
        return tuple(window for window in (evening, morning) if window)


class _Priced(Model):
    price_per_hour: HourPrice | None = None
    price_per_second: SecondPrice | None = None

    @model_validator(mode="after")
    def _check_price(self) -> "_Priced":
        if self.price_per_hour is not None and self.price_per_second is not None:
            raise wrong("has price_per_hour and price_per_second; give one of them")
        return self

    @property
    def price(self) -> float | None:
        return self.price_per_second if self.price_per_hour is None else self.price_per_hour / HOUR


class _Price(_Hours, _Priced):
    @model_validator(mode="after")
    def _check_given(self) -> "_Price":
        if self.price is None:
            raise wrong("lacks price_per_hour")
        return self


class _Closure(Model):
    begin: Moment = -math.inf
    end: Moment = math.inf

    @model_validator(mode="after")
    def _check_span(self) -> "_Closure":
        if not self.begin < self.end:
            raise wrong("ends before it begins, or at the same moment")
        return self


class _Resource(_Priced):
    name: Name
    kind: Name = KIND_DEFAULT
    performance: Positive = 1.0
    capacity: Units = 1
    prices: list[_Price] = Field(default_factory=list)
    opening: Annotated[list[_Hours], BeforeValidator(_opening)] = Field(default_factory=list)
    closures: list[_Closure] = Field(default_factory=list)
    utc_offset: Offset = 0.0
    requires: Annotated[tuple[Demand, ...], BeforeValidator(_demands)] = ()

    def resource(self) -> Resource:
        return Resource(
            self.name,
            self.kind,
            self.performance,
            self.price or 0.0,
            tuple(
                PriceRule(each.price or 0.0, window)
                for each in self.prices
                for window in each.windows()
            ),
            Calendar(
                tuple(window for hours in self.opening for window in hours.windows()),
                tuple((each.begin, each.end) for each in self.closures),
            ),
            self.capacity,
            self.utc_offset,
        )


class _PlannedTask(Model):
    name: Name
    work: Positive | None = None
    predecessors: list[Name] = Field(default_factory=list)
    alternatives: (
        Annotated[tuple[Alternative | Demand | _Timed, ...], BeforeValidator(_alternatives)] | None
    ) = None
    kind: Name | None = None
    units: Units | None = None
    on_failure: OnFailure | None = None


class _Task(ProgramTable, _PlannedTask):
    # First what is planned, then what is run.
    @model_validator(mode="after")
    def _check_place(self) -> "_Task":
        if self.alternatives is not None and (self.kind is not None or self.units is not None):
            raise wrong("has alternatives and kind or units; alternatives say all of it")
        if self.work is None and None in self.times():
            raise wrong("work is missing; only alternatives that all have seconds do without it")
        return self

    def program(self, tasks: Collection[str], folder: Path) -> Program | None:
        return program_of(self.name, self, self.effort, tasks, folder)

    def times(self) -> list[float | None]:
        """Returns the seconds of each alternative that has some of its own, else `None`."""
        found: list[float | None] = [
            each.seconds if isinstance(each, _Timed) else None for each in self.alternatives or ()
        ]
        return found or [None]

    @property
    def effort(self) -> float:
        """Its work, or its shortest duration where it has none: what counts where work is summed."""
        return self.work or min(each or math.inf for each in self.times())


def _elements(value: object) -> object:
    # How many, or the arguments of each: one, or a list.
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= ELEMENTS_MAX:
        return ((),) * value
    if isinstance(value, list) and value:
        found = [(each,) if isinstance(each, str) else each for each in value]
        if all(
            isinstance(each, list | tuple) and all(isinstance(word, str) for word in each)
            for each in found
        ):
            return tuple(tuple(each) for each in found)
    what = f"a number up to {ELEMENTS_MAX}, or a list with the arguments of each element"
    raise wrong(f"is {shown(value)}; it must be {what}")


class _AddedTask(_Task):
    elements: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_elements)] = ()


class _DataFile(Model):
    name: Name
    size: Bytes
    readers: Annotated[list[Name], Field(min_length=1)]
    task: Name | None = None
    site: Name | None = None

    def file(self) -> DataFile:
        return DataFile(
            self.name,
            self.size,
            tuple(dict.fromkeys(self.readers)),
            self.task or "",
            self.site or "",
        )


class _Workflow(Model):
    name: Name
    earliest_start: Moment = -math.inf
    due_date: Moment = math.inf
    budget: NotNegative = math.inf
    preference: Annotated[float, Field(ge=0, le=1)] = 0.5
    on_failure: OnFailure = "finish"
    tasks: Annotated[list[_Task], Field(min_length=1)]
    files: list[_DataFile] = Field(default_factory=list)


class _Document(Model):
    description: str = ""
    now: Moment | None = None
    resources: list[_Resource] = Field(default_factory=list)
    workflows: list[_Workflow] = Field(default_factory=list)
    tasks: list[_AddedTask] = Field(default_factory=list)
    network: NetworkTable | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file; plans begin at `now`, in seconds, if it is given."""

    file: str
    now: float | None
    pool: Pool
    _content: _Document

    @property
    def network(self) -> NetworkTable | None:
        """What files take between sites, if it is said here."""
        return self._content.network

    @property
    def workflow_count(self) -> int:
        """How many workflows there are."""
        return len(self._content.workflows)

    def workflows(self, pool: Pool) -> tuple[Workflow, ...]:
        """Returns the workflows, on the resources of a pool that includes this file's own.

        Raises:
            FileError: a resource is unknown, a task can run nowhere, or a workflow is no DAG.
        """
        return tuple(workflow for workflow, _ in self.submissions(pool))

    def check(self) -> None:
        """Checks workflows and added tasks by themselves, where it is not known on which resources they are to run.

        Raises:
            FileError: as for `submissions` and `check_added`, but for what is wrong only with some resources.
        """
        kinds: set[str] = set()
        names: set[str] = set()
        own = (task for workflow in self._content.workflows for task in workflow.tasks)
        for task in itertools.chain(own, self._content.tasks):
            if task.alternatives is None:
                kinds.add(task.kind or KIND_DEFAULT)
            for each in task.alternatives or ():
                one = each.of if isinstance(each, _Timed) else each
                names.update((one.resource,) if isinstance(one, Demand) else one.resources)
        # With one of each, as large as there are; what is named gets names that no other has.
        free = (name for name in map("any-{}".format, itertools.count()) if name not in names)
        large = [Resource(name, capacity=UNITS_MAX) for name in sorted(names)]
        large += [Resource(next(free), kind, capacity=UNITS_MAX) for kind in sorted(kinds)]
        pool = Pool(tuple(large), {})
        self.submissions(pool)
        self.check_added(pool)

    @property
    def tasks_count(self) -> int:
        """How many tasks and arrays there are that belong to no workflow here, and are added to an open one."""
        return len(self._content.tasks)

    def check_added(self, pool: Pool) -> None:
        """Checks tasks that are added to an open workflow, of which it is not known which tasks it has.

        An input `NAME/OUTPUT` that is no file here may be what one of those leaves.

        Raises:
            FileError: as for `additions`.
        """
        folder, known = Path(self.file).parent, set[str]()
        for task in self._content.tasks:
            given = task.inputs.values() if isinstance(task.inputs, Mapping) else task.inputs
            for source in given:
                if not isinstance(source, str) or source.startswith(("/", ".")):
                    continue
                if not (folder / source).is_file():
                    parts = source.split("/")
                    known.update("/".join(parts[:end]) for end in range(1, len(parts)))
        self.additions(pool, known)

    def additions(self, pool: Pool, known: Iterable[str]) -> tuple[Addition, ...]:
        """Returns the tasks that are added to an open workflow, which has those `known` already.

        A task that is given what another leaves waits for that. Relative paths are relative to this file.

        Raises:
            FileError: a resource is unknown, a program could run nowhere, or a file of it is not there.
        """
        known_resources = _Known(pool)
        members = {*known}
        for task in self._content.tasks:
            numbers = range(1, len(task.elements) + 1)
            members.update([f"{task.name}/{number}" for number in numbers] or [task.name])
        made, mistakes = [], []
        for task in self._content.tasks:
            try:
                program = task.program(members, Path(self.file).parent)
                added = _task(task, program, pool, known_resources)
                made.append(Addition(added, program, task.elements))
            except ValueError as error:
                mistakes.append(Mistake(f"tasks.{task.name}", str(error)))
        if mistakes:
            raise FileError(self.file, mistakes)
        return tuple(made)

    def submissions(self, pool: Pool) -> tuple[tuple[Workflow, tuple[Program, ...]], ...]:
        """Returns the workflows as `workflows` does, each with what its tasks run.

        A task that is given what another leaves waits for that. Relative paths are relative to this file.

        Raises:
            FileError: as for `workflows`, or a program could run nowhere, or a file of it is not there.
        """
        mistakes: list[Mistake] = []
        made = []
        known = _Known(pool)
        rows = Counter(workflow.name for workflow in self._content.workflows)
        for index, workflow in enumerate(self._content.workflows):
            key = f"workflows.{workflow.name}" if rows[workflow.name] == 1 else ""
            key = key or f"workflows[{index}]"
            tasks, programs = [], []
            members = {task.name for task in workflow.tasks}
            for task in workflow.tasks:
                try:
                    program = task.program(members, Path(self.file).parent)
                    tasks.append(_task(task, program, pool, known))
                    programs += [] if program is None else [program]
                except ValueError as error:
                    mistakes.append(Mistake(f"{key}.tasks.{task.name}", str(error)))
            if len(tasks) < len(workflow.tasks):
                continue
            try:
                made.append((_workflow(workflow, tasks), tuple(programs)))
                check_programs(*made[-1])
            except ValueError as error:
                mistakes.append(Mistake(key, str(error)))
        if mistakes:
            raise FileError(self.file, mistakes)
        return tuple(made)


def read_file(path: Path) -> Document:
    """Reads a file of resources and workflows.

    Raises:
        FileError: it cannot be read or breaks the format; the text has a line for each error.
    """
    return parse_file(read_document(path), file=str(path))


def parse_file(document: Mapping[str, Any], *, file: str) -> Document:
    """Builds resources and workflows from a decoded document; `file` is its name in errors.

    Raises:
        FileError: it breaks the format.
    """
    try:
        content = _Document.model_validate(document)
    except ValidationError as error:
        found = mistakes_of(error, document, _Document, by_name=True)
        raise FileError(file, found) from None
    mistakes = list(_name_mistakes(document, "resources", [r.name for r in content.resources]))
    mistakes += _name_mistakes(document, "workflows", [w.name for w in content.workflows])
    mistakes += _name_mistakes(document, "tasks", [task.name for task in content.tasks])
    requires = {}
    for index, each in enumerate(content.resources):
        if each.name in (demand.resource for demand in each.requires):
            key = path_of(("resources", index, "requires"), document)
            mistakes.append(Mistake(key, f"{shown(each.name)} is the resource itself"))
        requires[each.name] = each.requires
    if mistakes:
        raise FileError(file, mistakes)
    try:
        pool = Pool(tuple(each.resource() for each in content.resources), requires)
    except ValueError as error:
        raise FileError(file, [Mistake("resources", str(error))]) from None
    return Document(file, content.now, pool, content)


def _name_mistakes(
    document: Mapping[str, Any], table: str, names: Sequence[str]
) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in first:
            key = path_of((table, index, "name"), document)
            text = f"{shown(name)} is the name of {table}[{first[name]}] too; names must be unique"
            yield Mistake(key, text)
        first.setdefault(name, index)


class _Known:
    """The resources that may be named; a list that many tasks share is looked through once."""

    def __init__(self, pool: Pool) -> None:
        self._names = {resource.name for resource in pool.resources}
        self._checked: dict[int, tuple[Alternative, ...]] = {}

    def check(self, alternatives: tuple[Alternative, ...]) -> None:
        """Raises `ValueError` if a resource is not there."""
        if id(alternatives) in self._checked:
            return
        for each in alternatives:
            missing = next((name for name in each.resources if name not in self._names), None)
            if missing is not None:
                raise ValueError(
                    f"alternatives: {unknown('resource', missing, sorted(self._names))}"
                )
        self._checked[id(alternatives)] = alternatives


def _task(task: _Task, program: Program | None, pool: Pool, known: _Known) -> Task:
    if task.alternatives is None:
        kind = task.kind or KIND_DEFAULT
        units = task.units or (1 if program is None else program.request.processors)
        alternatives = pool.alternatives((kind,), units)
        if not alternatives:
            if kind not in pool.kinds:
                raise ValueError(f"kind: {unknown('kind of resource here', kind, pool.kinds)}")
            most = max(each.capacity for each in pool.resources if each.kind == kind)
            raise ValueError(f"needs {units} units; no {kind!r} has more than {most}")
    else:
        alternatives = tuple(
            replace(_resolved(each.of, pool), seconds=each.seconds, setup=each.setup)
            if isinstance(each, _Timed)
            else _resolved(each, pool)
            for each in task.alternatives
        )
    known.check(alternatives)
    more = [each for each in _given_by(program) if each not in task.predecessors]
    before = (*task.predecessors, *more)
    return Task(task.name, task.effort, alternatives, before, task.on_failure)


def _given_by(program: Program | None) -> list[str]:
    # The tasks that leave what a program is given.
    inputs = () if program is None else program.inputs
    return list(dict.fromkeys(each.task for each in inputs if each.task))


def _resolved(each: Alternative | Demand, pool: Pool) -> Alternative:
    return pool.alternative(each.resource, each.units) if isinstance(each, Demand) else each


def _workflow(workflow: _Workflow, tasks: Sequence[Task]) -> Workflow:
    files = tuple(each.file() for each in workflow.files)
    makers: dict[str, dict[str, None]] = {}
    for file in files:
        for reader in file.readers if file.maker else ():
            makers.setdefault(reader, {})[file.maker] = None
    return Workflow(
        workflow.name,
        tuple(_waiting(task, makers.get(task.name, ())) for task in tasks),
        workflow.earliest_start,
        workflow.due_date,
        workflow.budget,
        workflow.preference,
        workflow.on_failure,
        files,
    )


def _waiting(task: Task, makers: Iterable[str]) -> Task:
    # A task that reads what others make waits for these.
    more = tuple(name for name in makers if name not in task.predecessors)
    return replace(task, predecessors=(*task.predecessors, *more)) if more else task
