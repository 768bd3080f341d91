"""The broker's state with its sites and its journal, as a model of which all states are visited.

The state is the one of the daemon, copied and compared as it is: moments count by how far they are from now, and a
moment that is long past is just that. Time goes on to the next moment for which something waits; a run that should be
over by then has ended, unless runs may take too long. Commands about one booking are carried out in order, and repeated until
the site has answered, as the dispatcher does it. In every state:

- no task has two runs at a time, none that a program was run for is run again unless its file says so, and none
  after it is done
- no task begins before those that it waits for are done
- no program's run is ended unless somebody has wanted that, or another task's failure
- what was acknowledged is in the journal, and the journal recovers to what the broker knows
- a task is completed only if its run is, and failed only if that has failed or was refused
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final

from broker.model.additions import Addition
from broker.model.program import Program, Rerun
from broker.model.resources import Resource
from broker.model.workflow import Alternative, OnFailure, OpenWorkflow, Task, Workflow
from broker.scheduler.commands import (
    Answer,
    Append,
    Book,
    Command,
    Launch,
    Move,
    Refuse,
    Release,
    StartPlanning,
)
from broker.scheduler.events import (
    Add,
    Booked,
    BookingLost,
    Cancel,
    Close,
    Ended,
    Event,
    HandedOver,
    Moved,
    MoveRefused,
    Open,
    PlanFailed,
    PlanFound,
    Refused,
    Register,
    Released,
    Restarted,
    SiteDown,
    SiteUp,
    Started,
    Submit,
    Tick,
)
from broker.scheduler.invariants import check
from broker.scheduler.lifecycle import IllegalMove, TaskState, WorkflowState
from broker.scheduler.records import Record, Supply
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import Booking, LiveWorkflow, StateTables
from grms.simulation.exhaustive.budgets import Budgets
from grms.simulation.exhaustive.choices import Action, Choices, ViolationError
from grms.util.outcomes import Outcome
from tests.broker.plain_planner import plan_plainly

BEGIN: Final = 1e7
"""When everything begins, seconds; no duration is as long as half of that."""

PAST: Final = -60.0
"""A moment so long ago, seconds, is past."""

TIDY: Final = 1e-3

SETTINGS: Final = BrokerSettings(
    cycle=50, slot=20, pause=2, gather=4, margin=4, extension_max=0, ended_max=5
)

FAULTS: Final[Mapping[str, str]] = {
    "crash": "the broker dies",
    "answer": "the answer of a site is lost",
    "refuse": "a site refuses a reservation, or a run",
    "fail": "a run fails",
    "overrun": "a run takes longer than its reservation",
    "cancel": "a user cancels the workflow",
    "down": "a site does not answer for a while",
    "no plan": "a search meets an error",
    "slow": "time passes though a site, or a search, could answer",
}
"""What may go wrong, or has to be wanted by somebody."""


@dataclass(frozen=True)
class BrokerBound:
    """What may happen.

    Attributes:
        name: for people.
        faults: how often each may come (`FAULTS`).
        tasks: of the workflow: each with those that it waits for.
        resources: how many there are, each at a site of its own.
        runs: how often a program that fails is run in all.
        on_failure: what becomes of the workflow.
        grows: the workflow is opened, and its tasks are added one by one.
        state: of the broker.
    """

    name: str
    faults: Mapping[str, int]
    tasks: tuple[tuple[str, tuple[str, ...]], ...] = (("a", ()),)
    resources: int = 1
    runs: int = 1
    on_failure: OnFailure = "finish"
    grows: bool = False
    state: type[BrokerState] = BrokerState


def broker_bound(name: str, *, more: Mapping[str, Any] | None = None, **faults: int) -> BrokerBound:
    """Returns a bound; faults are named as in `FAULTS`, with `_` for a space; `more` are other attributes."""
    named = {fault.replace("_", " "): most for fault, most in faults.items()}
    if wrong := set(named) - set(FAULTS):
        raise ValueError(f"there is no fault {', '.join(sorted(wrong))}")
    return BrokerBound(name, named, **(more or {}))


class Journal(tuple[Record, ...]):
    """Records; nobody changes one."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> "Journal":
        """Returns itself."""
        return self


@dataclass
class SiteRun:
    """A booking at its site.

    Attributes:
        state: booked, running, ended or released.
        heard: the broker waits for its end, and is told.
    """

    booking: Booking
    task: str
    window: tuple[float, float]
    program: bool = False
    state: str = "booked"
    heard: bool = False
    start: float = math.inf
    end: float = math.inf
    outcome: Outcome = Outcome.COMPLETED


@dataclass
class Truth:
    """What has become of a task: runs that have begun, failed, and run to their end; and refusals."""

    begun: int = 0
    failed: int = 0
    done: int = 0
    refused: int = 0
    ended: int = 0


@dataclass
class Scene:
    """All that there is.

    Attributes:
        state: the broker's; `None` while it is down.
        journal: its records.
        orders: to sites, in order, by booking.
        search: what a search will find.
        runs: bookings at sites, by name.
        truth: of each task.
        down: sites that do not answer.
        added: how many tasks were added, and whether that was told.
        submitted, cancel, closed: what users know.
    """

    journal: Journal
    truth: dict[str, Truth]
    now: float = BEGIN
    state: BrokerState | None = None
    orders: dict[str, list[Command]] = field(default_factory=dict)
    search: PlanFound | None = None
    runs: dict[str, SiteRun] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    submitted: bool = False
    added: int = 0
    closed: bool = False
    cancel: str = ""


class Kept:
    """A scene, and what it is compared by."""

    __slots__ = ("key", "scene")

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.key = (
            Canonical(scene.now).of(scene)
            if scene.state is not None
            else (*Canonical(scene.now).of(scene), recovered(scene))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def recovered(scene: Scene) -> Any:
    """Returns what a journal recovers to."""
    return Canonical(scene.now).of(StateTables(scene.journal))


_MADE_WHEN_ASKED: Final = frozenset({"_planned", "_needed", "_declared", "_new"})
"""What a workflow makes of its tasks and programs once somebody asks for it."""

_LEFT_OUT: Final = frozenset(
    {
        # What is there for people, and what counts or caches what is there besides.
        *("journal", "_settings", "_handlers", "_entries", "changes", "latest", "revision"),
        *("workflows_count", "plan", "number", "_number", "_known_at", "_holdings", "_busy"),
        # By which tasks that can begin are found.
        *("indexed", "grouped", "_alike", "_places", "_booked_at", "_supplies_at", "_numbers"),
        *("_regrouped", "_relearned", "_left", "supply_changes", "taken_changes"),
        *("_shortages", "_longest", "passed"),
        *("_open", "now", "units", "reason", "_wanted", "_urgent", "_spans", "_epoch", "settings"),
        # By these nothing is decided where users are believed.
        "estimates",
    }
)


class Canonical:
    """Makes values of objects that change; `now` is in seconds."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._seen: dict[int, int] = {}

    def of(self, value: Any) -> Any:  # noqa: PLR0911  # one for each kind of value
        """Returns a value that is the same for all that is the same but for when it is."""
        if isinstance(value, float):
            return self._moment(value)
        if value is None or isinstance(value, str | bytes | int | Enum):
            return value
        if isinstance(value, FunctionType | MethodType):
            return None
        if isinstance(value, tuple):
            return tuple(map(self.of, value))
        if not _is_frozen(type(value)):
            number = self._seen.get(id(value))
            if number is not None:
                return "seen", number
            self._seen[id(value)] = len(self._seen)
        if isinstance(value, dict):
            return tuple((self.of(key), self.of(each)) for key, each in value.items())
        if isinstance(value, set | frozenset):
            return tuple(sorted(map(self.of, value), key=repr))
        if isinstance(value, list):
            return tuple(map(self.of, value))
        return self._object(value)

    def _moment(self, value: float) -> Any:
        if abs(value) == math.inf or value < BEGIN / 2:
            return value
        return max(PAST, round(value - self._now, 2)), "s"

    def _object(self, value: Any) -> Any:
        kind = type(value)
        found = [kind.__name__]
        for name in _names(kind) or vars(value):
            if name in _LEFT_OUT or (kind is LiveWorkflow and name in _MADE_WHEN_ASKED):
                continue
            each = getattr(value, name)
            if name == "running":
                each = bool(each)
            if name == "_due":
                each = [(moment, task) for moment, _, task in sorted(each, key=lambda e: e[:2])]
            found.append(self.of(each))
        return tuple(found)


_FIELDS: Final[dict[type, tuple[str, ...] | None]] = {}


def _names(kind: type) -> tuple[str, ...] | None:
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(each.name for each in fields(kind)) if is_dataclass(kind) else None
    return _FIELDS[kind]


def _is_frozen(kind: type) -> bool:
    # Whether it does not matter which of two equal ones it is.
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


class DiedError(Exception):
    """The broker is no more."""


Happens = Callable[["_Step"], None]


class BrokerModel:
    """The states of a broker within a bound."""

    def __init__(self, bound: BrokerBound) -> None:
        self.bound = bound
        alternatives = tuple(Alternative.of(f"r{n}") for n in range(bound.resources))
        self.tasks = tuple(Task(name, 5.0, alternatives, after) for name, after in bound.tasks)
        rerun = Rerun(bound.runs, (1,)) if bound.runs > 1 else Rerun()
        self.programs = tuple(
            Program(task.name, "#!/bin/sh\n", rerun=rerun).limited(task.work) for task in self.tasks
        )

    @property
    def faults(self) -> Mapping[str, int]:
        """How often each fault may come."""
        return self.bound.faults

    def first(self) -> Kept:
        """Returns the state when the broker has started, and knows its resources."""
        scene = Scene(Journal(), {task.name: Truth() for task in self.tasks})
        budgets = Budgets({})
        step = _Step(self, scene, Choices((), budgets, ""))
        step.starts()
        for number in range(self.bound.resources):
            step.registers(number)
        return Kept(scene)

    def actions(self, kept: Kept) -> Iterable[Action[Kept]]:
        """Returns all that may happen."""
        scene = kept.scene
        yield from self._of_sites(scene)
        if scene.state is None:
            yield self._action(scene, ("the broker starts",), _Step.starts)
            return
        yield self._action(scene, ("the broker dies",), _Step.dies, "crash")
        yield from self._of_users(scene)
        if scene.search is not None:
            yield self._action(scene, ("the search ends",), _Step.found)
            yield self._action(scene, ("the search fails",), _Step.not_found, "no plan")
        for name, orders in scene.orders.items():
            if not self._sites(orders[0]) & scene.down:
                what = f"the site carries out {type(orders[0]).__name__} {name}"
                yield self._action(scene, (what,), partial(_Step.carries_out, name=name))
        for name, run in scene.runs.items():
            if run.heard and run.state == "ended":
                what = f"the broker hears of the end of {name}"
                yield self._action(scene, (what,), partial(_Step.hears, name=name))
        busy = scene.search is not None or any(
            not self._sites(orders[0]) & scene.down for orders in scene.orders.values()
        )
        busy = busy or any(run.heard and run.state == "ended" for run in scene.runs.values())
        yield self._action(scene, ("time passes",), _Step.passes, "slow" if busy else "")

    @staticmethod
    def _sites(command: Command) -> frozenset[str]:
        sites: frozenset[str] = command.booking.sites  # type: ignore[attr-defined]  # all of these have one
        return sites

    def _action(
        self, scene: Scene, label: tuple[str, ...], happens: Happens, kind: str = ""
    ) -> Action[Kept]:
        return Action(label, partial(self._done, scene, happens), kind)

    def _done(self, scene: Scene, happens: Happens, choices: Choices) -> Kept:
        step = _Step(self, copy.deepcopy(scene), choices)
        try:
            happens(step)
        except DiedError:
            step.dies()
        except (IllegalMove, AssertionError, KeyError, ValueError, IndexError) as error:
            raise ViolationError(f"{type(error).__name__}: {error}") from error
        return Kept(step.scene)

    def _of_users(self, scene: Scene) -> Iterable[Action[Kept]]:
        if not scene.submitted:
            yield self._action(scene, ("a user submits",), _Step.submits)
            return
        if self.bound.grows and not scene.cancel:
            if scene.added < len(self.tasks):
                yield self._action(scene, ("a user adds a task",), _Step.adds)
            elif not scene.closed:
                yield self._action(scene, ("a user closes the workflow",), _Step.closes)
        if scene.cancel != "told":
            kind = "" if scene.cancel else "cancel"
            yield self._action(scene, ("a user cancels",), _Step.cancels, kind)

    def _of_sites(self, scene: Scene) -> Iterable[Action[Kept]]:
        for name, run in scene.runs.items():
            if run.state == "running":
                done = partial(_Step.run_ends, name=name, outcome=Outcome.COMPLETED)
                yield self._action(scene, (f"the run of {name} ends",), done)
                failed = partial(_Step.run_ends, name=name, outcome=Outcome.FAILED)
                yield self._action(scene, (f"the run of {name} fails",), failed, "fail")
        if scene.state is None:
            return
        for site in (f"s{n}" for n in range(self.bound.resources)):
            if site in scene.down:
                yield self._action(scene, (f"{site} is back",), partial(_Step.up, site=site))
            else:
                yield self._action(
                    scene, (f"{site} does not answer",), partial(_Step.down, site=site), "down"
                )

    # --- what must be --------------------------------------------------------------------------

    def wrong(self, kept: Kept) -> str:
        """Returns what must not be of a state."""
        scene = kept.scene
        memory = StateTables(scene.journal) if scene.state is None else scene.state.memory
        if scene.submitted and not memory.workflows:
            return "the workflow was acknowledged, and is lost"
        found = [self._wrong_of(scene, each) for each in memory.workflows.values()]
        if scene.state is not None and not kept_in_step(scene):
            found.append("the journal recovers to another state than the broker's")
        return next(filter(None, found), "")

    @staticmethod
    def _wrong_of(scene: Scene, workflow: LiveWorkflow) -> str:
        found = ""
        if len(workflow.tasks) < scene.added:
            found = "a task was acknowledged, and is lost"
        if workflow.state is WorkflowState.CANCELLED and not scene.cancel:
            found = "the workflow is cancelled, and nobody has wanted that"
        for task in workflow.tasks.values():
            truth = scene.truth[task.task.name]
            if task.state is TaskState.COMPLETED and truth.done != 1:
                found = f"{task.name} is completed, and has run to its end {truth.done} times"
            if task.state is TaskState.FAILED and not truth.failed + truth.refused:
                found = f"{task.name} has failed, and no run of it has"
            if task.has_ended and task.state is not TaskState.COMPLETED and truth.done:
                found = f"{task.name} has run to its end, and is {task.state.value}"
        return found

    def is_end(self, kept: Kept) -> bool:
        """Returns whether the workflow has ended, nothing is reserved, and nobody waits for anything."""
        scene = kept.scene
        if scene.state is None or not scene.submitted or scene.cancel == "wanted":
            return False
        if scene.orders or any(run.state in {"booked", "running"} for run in scene.runs.values()):
            return False
        memory = scene.state.memory
        if self.bound.grows and not (scene.closed or memory.live == {}):
            return False
        return not memory.live and not memory.releasing


def kept_in_step(scene: Scene) -> bool:
    """Returns whether a journal recovers to what its broker knows."""
    assert scene.state is not None
    return bool(recovered(scene) == Canonical(scene.now).of(scene.state.memory))


def _nobody() -> None:
    pass


class _Step:
    # A scene while something happens in it.
    def __init__(self, model: BrokerModel, scene: Scene, choices: Choices) -> None:
        self.model = model
        self.scene = scene
        self.choices = choices
        self._told: Callable[[], None] = _nobody

    # --- the broker ------------------------------------------------------------------------------

    def starts(self) -> None:
        self.scene.state = self.model.bound.state.recover(SETTINGS, self.scene.journal)
        check(self.scene.state.memory)
        self.tell(Restarted(0))

    def dies(self) -> None:
        scene = self.scene
        scene.state, scene.search, scene.orders = None, None, {}
        for run in scene.runs.values():
            run.heard = False

    def may_die(self, before: str) -> None:
        if self.choices.pick("", (f"the broker dies before {before}", "crash")):
            raise DiedError

    def tell(self, event: Event, told: Callable[[], None] | None = None) -> None:
        """Hands an event over; `told` is called with the answer to its question."""
        scene = self.scene
        assert scene.state is not None
        self._told = told or _nobody
        for command in scene.state.handle(event, scene.now):
            self._do(command)
        check(scene.state.memory)

    def _do(self, command: Command) -> None:
        match command:
            case Append():
                self.may_die("the journal is written")
                self.scene.journal = Journal((*self.scene.journal, *command.records))
                self.may_die("it carries out what follows")
            case StartPlanning():
                self.scene.search = plan_plainly(command.number, command.planning_input)
            case Book() | Launch() | Move() | Release():
                self.scene.orders.setdefault(command.booking.booking, []).append(command)
            case Refuse():
                raise ViolationError(f"a user is refused: {command.reason}")
            case Answer():
                self._told()
            case _:
                pass

    def found(self) -> None:
        found, self.scene.search = self.scene.search, None
        assert found is not None
        self.tell(found)

    def not_found(self) -> None:
        found, self.scene.search = self.scene.search, None
        assert found is not None
        self.tell(PlanFailed(0, found.number, "an error"))

    def passes(self) -> None:
        scene = self.scene
        assert scene.state is not None
        due = scene.state.next_time
        moments = [run.window[1] for run in scene.runs.values() if run.state == "running"]
        moment = min([due, *moments], default=math.inf)
        if moment == math.inf:
            return
        scene.now = max(scene.now, moment)
        for run in scene.runs.values():
            if run.state == "running" and run.window[1] <= scene.now + TIDY:
                self._overrun(run)
            elif run.state == "booked" and run.window[1] <= scene.now:
                run.state = "released"
        if due <= scene.now:
            self.tell(Tick(0))

    def _overrun(self, run: SiteRun) -> None:
        if self.choices.pick("", ("its run is cut off", "overrun")):
            self._ends(run, Outcome.FAILED)
        else:
            self._ends(run, Outcome.COMPLETED)

    # --- users -----------------------------------------------------------------------------------

    def registers(self, number: int) -> None:
        self.tell(Register(1, Supply(Resource(f"r{number}"), f"s{number}", f"r{number}")))

    def submits(self) -> None:
        model, on_failure = self.model, self.model.bound.on_failure
        event: Event = Submit(
            1, "key", Workflow("w", model.tasks, on_failure=on_failure), model.programs
        )
        if model.bound.grows:
            event = Open(1, "key", OpenWorkflow("w", (), on_failure=on_failure))
        self.tell(event, partial(setattr, self.scene, "submitted", True))

    def _id(self) -> str:
        assert self.scene.state is not None
        return next(iter(self.scene.state.memory.workflows))

    def adds(self) -> None:
        at = self.scene.added
        addition = Addition(self.model.tasks[at], self.model.programs[at])
        self.tell(Add(1, self._id(), (addition,)), partial(setattr, self.scene, "added", at + 1))

    def closes(self) -> None:
        self.tell(Close(1, self._id()), partial(setattr, self.scene, "closed", True))

    def cancels(self) -> None:
        self.scene.cancel = "wanted"
        self.tell(Cancel(1, self._id()), partial(setattr, self.scene, "cancel", "told"))

    # --- sites -----------------------------------------------------------------------------------

    def down(self, site: str) -> None:
        self.scene.down.add(site)
        self.tell(SiteDown(0, site))

    def up(self, site: str) -> None:
        self.scene.down.discard(site)
        self.tell(SiteUp(0, site))

    def run_ends(self, name: str, outcome: Outcome) -> None:
        self._ends(self.scene.runs[name], outcome)

    def _ends(self, run: SiteRun, outcome: Outcome) -> None:
        run.state, run.outcome, run.end = "ended", outcome, self.scene.now
        truth = self.scene.truth[run.task]
        truth.ended += 1
        truth.done += outcome is Outcome.COMPLETED
        truth.failed += outcome is Outcome.FAILED

    def hears(self, name: str) -> None:
        run = self.scene.runs[name]
        run.heard = False
        self.tell(self._end_of(run))

    @staticmethod
    def _end_of(run: SiteRun) -> Ended:
        code = 0 if run.outcome is Outcome.COMPLETED else 1
        start = None if run.start == math.inf else run.start
        return Ended(0, run.booking.booking, run.outcome, start, run.end, exit_code=code)

    def carries_out(self, name: str) -> None:
        """Has the first order about a booking carried out, and the answer told."""
        orders = self.scene.orders[name]
        command = orders[0]
        match command:
            case Book():
                events = self._book(command)
            case Launch():
                events = self._launch(command)
            case Move():
                events = self._move(command)
            case Release():
                events = self._release(command)
            case _:
                raise AssertionError(f"{command} is no order")
        if self.choices.pick("", ("the answer is lost", "answer")):
            return  # and is asked for again
        orders.pop(0)
        if not orders:
            del self.scene.orders[name]
        for event in events:
            self.tell(event)

    def _book(self, command: Book) -> list[Event]:
        booking = command.booking
        name = booking.booking
        run = self.scene.runs.get(name)
        if run is None:
            if self.choices.pick("", ("it refuses", "refuse")):
                return [BookingLost(0, name, "refused", (0,))]
            window = booking.placement.start, booking.placement.end
            task = booking.placement.task
            run = self.scene.runs[name] = SiteRun(booking, task, window)
        if run.state == "released":
            return [BookingLost(0, name, "it is over")]
        return [Booked(0, name, (f"{name}.0",))]

    def _launch(self, command: Launch) -> list[Event]:
        name = command.booking.booking
        run = self.scene.runs[name]
        if run.state == "booked":
            refusal = self._begin(run, command)
            if refusal is not None:
                return [refusal]
        if run.state == "released":
            return [BookingLost(0, name, "it is over")]
        run.heard = True
        return [HandedOver(0, name, f"job {name}"), Started(0, name, run.start)]

    def _begin(self, run: SiteRun, command: Launch) -> Event | None:
        scene, name = self.scene, run.booking.booking
        begin, end = run.window
        if not begin - TIDY <= scene.now < end:
            run.state = "released"
            return BookingLost(0, name, "not launched in time")
        if self.choices.pick("", ("it refuses", "refuse")):
            run.state = "released"
            scene.truth[run.task].refused += 1
            return Refused(0, name, "refused")
        truth = scene.truth[run.task]
        assert scene.state is not None
        task = next(iter(scene.state.memory.live.values())).tasks[run.task]
        for before in task.predecessors:
            if not scene.truth[before.task.name].done:
                raise ViolationError(f"{run.task} begins before {before.task.name} is done")
        if truth.done:
            raise ViolationError(f"{run.task} runs again after its end")
        if truth.begun > truth.ended:
            raise ViolationError(f"{run.task} has two runs at a time")
        if truth.begun >= self.model.bound.runs:
            raise ViolationError(f"{run.task} has run {truth.begun + 1} times")
        run.program = command.program is not None
        run.state, run.start = "running", scene.now
        truth.begun += 1
        return None

    def _move(self, command: Move) -> list[Event]:
        name = command.booking.booking
        run = self.scene.runs[name]
        if run.state not in {"booked", "running"}:
            return [MoveRefused(0, name, "it is over")]
        if self.choices.pick("", ("it refuses", "refuse")):
            return [MoveRefused(0, name, "not free", taken=True)]
        run.window = command.begin, command.end
        return [Moved(0, name, *run.window)]

    def _release(self, command: Release) -> list[Event]:
        booking = command.booking
        name = booking.booking
        run = self.scene.runs.get(name)
        if run is None:
            window = booking.placement.start, booking.placement.end
            run = self.scene.runs[name] = SiteRun(booking, booking.placement.task, window)
        if run.state == "ended":
            run.heard = False
            return [self._end_of(run), Released(0, name)]
        if run.state == "running":
            bound, failed = self.model.bound, sum(t.failed for t in self.scene.truth.values())
            if not self.scene.cancel and not (bound.on_failure == "terminate" and failed):
                raise ViolationError(f"{run.task} runs, and is ended, and nobody has wanted that")
            self.scene.truth[run.task].ended += 1
        run.state = "released"
        return [Released(0, name)]


CHAIN: Final[Mapping[str, Any]] = {"tasks": (("a", ()), ("b", ("a",)))}
PAIR: Final[Mapping[str, Any]] = {"tasks": (("a", ()), ("b", ())), "resources": 2}

SMALL_BROKERS: Final = (
    broker_bound("broker: no fault"),
    broker_bound("broker: it dies", crash=1),
    broker_bound("broker: an answer is lost", answer=1),
    broker_bound("broker: a site refuses", refuse=1),
    broker_bound("broker: a run fails, and is run again", fail=1, more={"runs": 2}),
    broker_bound("broker: a run takes too long", overrun=1),
    broker_bound("broker: cancelled", cancel=1),
    broker_bound("broker: a search fails, a site is slow", no_plan=1, slow=1),
    broker_bound(
        "broker: two tasks, one of which fails, end both",
        fail=1,
        more={**PAIR, "on_failure": "terminate"},
    ),
)
"""Those of the tests; at most some hundred states each."""

LARGE_BROKERS: Final = (
    broker_bound("broker: it dies twice", crash=2),
    broker_bound("broker: it dies, an answer is lost", crash=1, answer=1),
    broker_bound("broker: it dies, cancelled", crash=1, cancel=1),
    broker_bound(
        "broker: it dies, a run fails and is run again", crash=1, fail=1, more={"runs": 2}
    ),
    broker_bound("broker: a site is away", down=1),
    broker_bound("broker: two tasks in a row", more=CHAIN),
    broker_bound("broker: two tasks in a row; it dies", crash=1, more=CHAIN),
    broker_bound("broker: two tasks in a row; an answer is lost", answer=1, more=CHAIN),
    broker_bound("broker: two tasks in a row, cancelled", cancel=1, more=CHAIN),
    broker_bound(
        "broker: two tasks in a row, the first fails",
        fail=1,
        more={**CHAIN, "on_failure": "continue"},
    ),
    broker_bound("broker: two tasks are added", more={**CHAIN, "grows": True}),
)
"""Those that are run by hand: `python -m benchmarks.exhaustive`."""
