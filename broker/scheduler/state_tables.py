"""What the broker knows and must not forget, changed by journal records alone."""

import heapq
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from broker.model.additions import Addition
from broker.model.estimates import Estimates, MeasuredRun
from broker.model.plan import Placement, Transfer
from broker.model.program import Output, Program, needed_outputs
from broker.model.workflow import OnFailure, Task, Workflow
from broker.scheduler.lifecycle import (
    AT_SITE,
    DONE,
    TASK_ENDS,
    TASK_MOVES,
    WORKFLOW_ENDS,
    WORKFLOW_MOVES,
    TaskState,
    WorkflowState,
    legal,
)
from broker.scheduler.records import (
    BookingRecord,
    BookingReleased,
    Counted,
    FilesSent,
    Group,
    Hold,
    Place,
    PlanAdopted,
    Record,
    ResourceRemoved,
    ResourceSet,
    RunMeasured,
    Supply,
    TaskBooked,
    TaskEnded,
    TaskEnding,
    TaskFixed,
    TaskFreed,
    TaskHandedOver,
    TaskHindered,
    TaskLaunched,
    TaskMoved,
    TaskMoving,
    TaskRefused,
    TasksAdded,
    TaskStarted,
    WorkflowCancelled,
    WorkflowClosed,
    WorkflowForgotten,
    WorkflowOpened,
    WorkflowSubmitted,
)
from grms.util.outcomes import Outcome


@dataclass(slots=True)
class Booking:
    """An attempt to run a task.

    Attributes:
        holds: the same in the words of sites, the primary resource first.
        run_time: seconds that the run should take at most.
        reservations: the sites' names for what is reserved, in the order of the holds; empty while
            that is open.
        extended: seconds by which the time of its run was extended.
        moving: begin and end of the window to which its reservations are being moved, seconds;
            `None` where they are not.
        job: what its site calls its run; empty while that is not known.
        group: that it was launched in; `None` for none.
        hindered_since: when its site first said why it does not begin the run, seconds; `None` where nothing hinders it.
        units: how many units it holds at each place.
    """

    booking: str
    placement: Placement
    holds: tuple[Hold, ...]
    run_time: float
    reservations: tuple[str, ...] = ()
    extended: float = 0.0
    moving: tuple[float, float] | None = None
    job: str = ""
    group: Group | None = None
    hindered_since: float | None = None
    units: dict[Place, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.units = {}
        for hold in self.holds:
            self.units[hold.place] = self.units.get(hold.place, 0) + hold.units

    @property
    def begin(self) -> float:
        """From this moment on, in seconds, its reservations may hold their resources."""
        start = self.placement.start
        return start if self.moving is None else min(start, self.moving[0])

    @property
    def end(self) -> float:
        """Until this moment, in seconds, its reservations may hold their resources."""
        end = self.placement.end
        return end if self.moving is None else max(end, self.moving[1])

    @property
    def latest_start(self) -> float:
        """After this moment, in seconds, the run no longer fits into its reservation."""
        return max(self.placement.start, self.placement.end - self.run_time)

    @property
    def sites(self) -> frozenset[str]:
        """The sites whose resources it takes."""
        return frozenset(hold.site for hold in self.holds)


@dataclass(frozen=True, slots=True)
class Run:
    """Where a program runs or has run.

    Attributes:
        reservation: what its site calls the reservation.
        job: what its site calls the run; empty while that is not known.
    """

    site: str
    reservation: str
    job: str = ""


@dataclass(slots=True)
class LiveTask:
    """A task and where it stands.

    Attributes:
        placement: where and when it is planned to run, or runs, or has run; `None` for no place.
        booking: the present attempt; `None` if there is none.
        start_time: of the present or last run; `None` before.
        end_time: of the run that did it; `None` before.
        runs: launches so far.
        failures: those among them that count.
        reason: why it stands where it stands; may be empty.
        number: of it in its workflow; what it waits for has a smaller one, where it was added.
        known_behind: `behind`, as far as it has been worked out.
        run: where its present or last run is; `None` before.
        outcome: how its last run came to its end; `None` before.
        exit_code: of its program in that; `None` for none or unknown.
        signal: that ended that; `None` for none or unknown.
        outputs: that its program has left.
        failed_before: a task that it waits for, directly or not, and that has failed for good; `None` for none.
    """

    owner: "LiveWorkflow"
    task: Task
    state: TaskState = TaskState.WAITING
    placement: Placement | None = None
    booking: Booking | None = None
    start_time: float | None = None
    end_time: float | None = None
    runs: int = 0
    failures: int = 0
    reason: str = ""
    number: int = 0
    known_behind: float = 0.0
    run: Run | None = None
    outcome: Outcome | None = None
    exit_code: int | None = None
    signal: int | None = None
    outputs: tuple[Output, ...] = ()
    failed_before: "LiveTask | None" = None
    successors: list["LiveTask"] = field(default_factory=list)
    predecessors: list["LiveTask"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.owner.counts[self.state] += 1

    @property
    def program(self) -> Program | None:
        """What it runs; `None` for nothing."""
        return self.owner.programs.get(self.task.name)

    @property
    def behind(self) -> float:
        """Seconds of work of the longest chain of tasks that wait for it."""
        self.owner.find_behind()
        return self.known_behind

    @property
    def name(self) -> str:
        """Workflow and task in words."""
        return f"{self.owner.workflow.name}/{self.task.name}"

    @property
    def has_ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in TASK_ENDS

    @property
    def on_failure(self) -> OnFailure:
        """What becomes of its workflow when it has failed for good."""
        return self.task.on_failure or self.owner.workflow.on_failure

    def waiting_for_it(self) -> "list[LiveTask]":
        """Returns all tasks that wait for it, directly or not, each once."""
        found: dict[int, LiveTask] = {}
        open_ones = [*self.successors]
        while open_ones:
            task = open_ones.pop()
            if id(task) not in found:
                found[id(task)] = task
                open_ones += task.successors
        return list(found.values())

    def give_up(self, failed: "LiveTask | None") -> None:
        """Cancels it, as soon as it holds nothing, for the failure of a task that it waits for; `None` for none."""
        if failed is None:
            return
        self.failed_before = failed
        if self.state is TaskState.WAITING:
            self.reason = f"waits for {failed.task.name!r}, which has failed"
            self.placement = None
            self.move(TaskState.CANCELLED)

    @property
    def plannable(self) -> bool:
        """Whether the next plan gives it its place."""
        ending = self.state is TaskState.ENDING and not self.owner.closing
        return self.state is TaskState.WAITING or ending

    def move(self, state: TaskState) -> None:
        """Changes the state; `IllegalMove` if the table does not allow it."""
        after = legal(TASK_MOVES, f"task {self.name}", self.state, state)
        self.owner.counts[self.state] -= 1
        self.owner.counts[after] += 1
        self.state = after


@dataclass(slots=True)
class LiveWorkflow:
    """A workflow and where it stands.

    Attributes:
        submit_time: seconds.
        tasks: by name, in their order.
        cancelled: its end was asked for.
        failed: a task has failed for good.
        stopped: no more of its tasks are begun, as one has failed.
        growing: it was opened for tasks to be added.
        closed: no more tasks are added.
        additions: what was added, by name.
        arrays: the names of their elements.
        counts: how many of its tasks are in each state.
        launched: a task has been.
        end_time: seconds; `None` before.
        estimates: how long programs take, of all workflows together.
        earliest_start: seconds; one that says none has its submission, as the time allowed until its due date
            counts from there.
    """

    workflow_id: str
    key: str
    workflow: Workflow
    programs: dict[str, Program]
    submit_time: float
    tasks: dict[str, LiveTask] = field(default_factory=dict)
    state: WorkflowState = WorkflowState.ACCEPTED
    cancelled: bool = False
    failed: bool = False
    stopped: bool = False
    growing: bool = False
    closed: bool = True
    additions: dict[str, Addition] = field(default_factory=dict)
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    counts: Counter[TaskState] = field(default_factory=Counter)
    launched: bool = False
    end_time: float | None = None
    revision: int = 1
    estimates: Estimates = field(default_factory=Estimates, init=False, repr=False, compare=False)
    earliest_start: float = field(init=False)
    _planned: Workflow | None = field(init=False, default=None)
    _needed: dict[str, frozenset[str]] | None = field(init=False, default=None)
    _declared: dict[str, float] | None = field(init=False, default=None)
    _new: list[LiveTask] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        said = self.workflow.earliest_start
        self.earliest_start = said if said > -math.inf else self.submit_time

    @property
    def planned(self) -> Workflow:
        """The workflow as planners see it, with the tasks that it has now."""
        if self._planned is None:
            tasks = tuple(task.task for task in self.tasks.values())
            self._planned = replace(self.workflow, tasks=tasks, earliest_start=self.earliest_start)
        return self._planned

    @property
    def needed(self) -> dict[str, frozenset[str]]:
        """The outputs of its tasks that others are given; of one that was handed in whole."""
        if self._needed is None:
            self._needed = needed_outputs(self.programs.values())
        return self._needed

    @property
    def declared_bytes(self) -> dict[str, float]:
        """The bytes that its tasks read of the files that it has declared, by their names."""
        if self._declared is None:
            self._declared = {}
            for file in self.workflow.files:
                for reader in file.readers:
                    self._declared[reader] = self._declared.get(reader, 0.0) + file.size
        return self._declared

    def changed_tasks(self) -> None:
        """Lets planners see other tasks from now on."""
        self._planned = None

    @property
    def closing(self) -> bool:
        """Whether no more of its tasks are begun."""
        return self.cancelled or self.stopped

    @property
    def wants_places(self) -> bool:
        """Whether the next plan gives tasks of it their places."""
        waiting = self.counts[TaskState.WAITING] + self.counts[TaskState.ENDING]
        return waiting > 0 and not self.closing

    @property
    def is_open(self) -> bool:
        """Whether tasks can be added."""
        return not (self.closed or self.closing)

    def add(self, task: Task, program: Program | None) -> "LiveTask":
        """Adds a task after those that it waits for."""
        made = self.tasks[task.name] = LiveTask(self, task, number=len(self.tasks))
        self._new.append(made)
        if program is not None:
            self.programs[task.name] = program
        for name in task.predecessors:
            before = self.tasks[name]
            made.predecessors.append(before)
            before.successors.append(made)
            if made.state is TaskState.WAITING:
                made.give_up(before if before.state is TaskState.FAILED else before.failed_before)
        return made

    def find_behind(self) -> None:
        """Works out what waits behind each task, as far as tasks have been added since.

        That is done when it is asked for: a chain to which task after task is added changes each time for all of its tasks.
        """
        if not self._new:
            return
        # From the last to the first, so that each is looked at once.
        changed = [(-task.number, task.task.name) for task in self._new]
        heapq.heapify(changed)
        self._new = []
        there = {name for _, name in changed}
        while changed:
            after = self.tasks[heapq.heappop(changed)[1]]
            behind = after.task.work + after.known_behind
            for before in after.predecessors:
                if behind > before.known_behind and not before.has_ended:
                    before.known_behind = behind
                    if before.task.name not in there:
                        there.add(before.task.name)
                        heapq.heappush(changed, (-before.number, before.task.name))

    @property
    def has_ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in WORKFLOW_ENDS

    def settle(self, now: float) -> None:
        """Lets the state follow from the tasks'."""
        if self.closing:
            for task in self.tasks.values():
                if task.state is TaskState.WAITING:
                    task.move(TaskState.CANCELLED)
                    task.placement = None
        state = self._state()
        if state is not self.state:
            self.state = legal(WORKFLOW_MOVES, f"workflow {self.workflow.name}", self.state, state)
            if self.has_ended:
                self.end_time = now

    def _state(self) -> WorkflowState:
        states = {state for state, count in self.counts.items() if count}
        if self.closed and states <= DONE:
            simulated = TaskState.SIMULATED in states
            return WorkflowState.SIMULATED if simulated else WorkflowState.COMPLETED
        if not self.is_open and states <= TASK_ENDS:
            return WorkflowState.CANCELLED if self.cancelled else WorkflowState.FAILED
        if self.cancelled:
            return WorkflowState.CANCELLING
        if self.failed:
            return WorkflowState.FAILING
        return WorkflowState.RUNNING if self.launched else WorkflowState.ACCEPTED


def _find_behind(tasks: list[LiveTask]) -> None:
    # From the last tasks to the first.
    waited = {id(task): len(task.successors) for task in tasks}
    ready = [task for task in tasks if not task.successors]
    while ready:
        task = ready.pop()
        for before in task.predecessors:
            before.known_behind = max(before.known_behind, task.task.work + task.known_behind)
            waited[id(before)] -= 1
            if not waited[id(before)]:
                ready.append(before)


class StateTables:
    """All of it.

    Attributes:
        workflows: by id, in the order in which they were received.
        live: those that have not ended, by name.
        by_key: all of them by the submitter's key.
        booked: tasks by the name of their present attempt.
        holding: attempts that may hold something, by site and resource and then by name.
        groups: those of them that share units, by the names of their groups and then by their own.
        releasing: attempts that are given up and may still hold something, by name.
        plan: the last plan adopted; `None` before the first.
        estimates: how long programs take, as their runs have shown.
        sent: transfers that have begun, by the ids of their workflows that have not ended.
        latest: time of the last record, seconds.
        changes: records so far; while it stays the same so does all else.
        supply_changes: those of resources among them.

    Args:
        records: of the journal, oldest first.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.workflows: dict[str, LiveWorkflow] = {}
        self.live: dict[str, LiveWorkflow] = {}
        self.by_key: dict[str, LiveWorkflow] = {}
        self.supplies: dict[str, Supply] = {}
        self.booked: dict[str, LiveTask] = {}
        self.releasing: dict[str, Booking] = {}
        self.holding: dict[Place, dict[str, Booking]] = {}
        self.groups: dict[str, dict[str, Booking]] = {}
        self.plan: PlanAdopted | None = None
        self.estimates = Estimates()
        self.sent: dict[str, list[Transfer]] = {}
        self.workflows_count = 0
        self.bookings_count = 0
        self.latest = -math.inf
        self.changes = self.supply_changes = 0
        for record in records:
            self.apply(record)

    def tasks(self) -> Iterable[LiveTask]:
        """Yields the tasks of all workflows that have not ended."""
        for workflow in self.live.values():
            yield from workflow.tasks.values()

    def contents(self) -> frozenset[bytes]:
        """Returns the SHA-256 of all files that programs still are, or may be, given."""
        given = {
            each.sha256
            for workflow in self.live.values()
            for program in workflow.programs.values()
            for each in program.inputs
            if each.sha256
        }
        return frozenset(given.union(file.sha256 for task in self.tasks() for file in task.outputs))

    def shared_units(self, group: Group) -> int:
        """Returns how many units the attempts of a group hold together."""
        held = sum(booking.holds[0].units for booking in self.groups.get(group.name, {}).values())
        return min(group.units, held)

    @property
    def tasks_open(self) -> int:
        """How many tasks the workflows that have not ended have."""
        return sum(len(workflow.tasks) for workflow in self.live.values())

    def apply(self, record: Record) -> None:  # noqa: C901, PLR0912  # one case for each kind of record
        """Applies a record; `IllegalMove` or `KeyError` if it contradicts the state."""
        self.latest = max(self.latest, record.time)
        self.changes += 1
        match record:
            case WorkflowSubmitted():
                self._submitted(record)
            case WorkflowOpened() | TasksAdded() | WorkflowClosed():
                self._grown(record)
            case WorkflowCancelled():
                workflow = self.workflows[record.workflow_id]
                workflow.cancelled = True
                self._changed(workflow, record.time)
            case WorkflowForgotten():
                workflow = self.workflows.pop(record.workflow_id)
                del self.by_key[workflow.key]
            case Counted():
                self.workflows_count = max(self.workflows_count, record.workflows)
                self.bookings_count = max(self.bookings_count, record.bookings)
            case ResourceSet():
                self.supply_changes += 1
                self.supplies[record.supply.name] = record.supply
            case ResourceRemoved():
                self.supply_changes += 1
                del self.supplies[record.name]
            case PlanAdopted():
                self._adopted(record)
            case RunMeasured():
                self._measured(record)
            case FilesSent():
                self._sent(record)
            case TaskFixed():
                self._fixed(record)
            case BookingReleased():
                self._let_go(self.releasing.pop(record.booking))
            case BookingRecord():
                self._booking(record, self.booked[record.booking])
            case _:
                raise AssertionError(record)

    def _measured(self, record: RunMeasured) -> None:
        run = MeasuredRun(record.input_bytes, record.resource, record.estimate, record.work)
        self.estimates.learn(record.program, run)

    def _sent(self, record: FilesSent) -> None:
        workflow = self.workflows[record.workflow_id]
        if not workflow.has_ended:
            sent = Transfer(
                workflow.workflow.name,
                record.task,
                record.files,
                record.source,
                record.target,
                record.begin,
                record.end,
                record.size,
                record.cost,
            )
            self.sent.setdefault(record.workflow_id, []).append(sent)

    def _grown(self, record: WorkflowOpened | TasksAdded | WorkflowClosed) -> None:
        if isinstance(record, WorkflowOpened):
            opened = LiveWorkflow(
                record.workflow_id, record.key, record.workflow, {}, record.time, growing=True
            )
            opened.closed = False
            self._take(opened)
        elif isinstance(record, TasksAdded):
            self._added(record)
        else:
            workflow = self.workflows[record.workflow_id]
            workflow.closed = True
            self._changed(workflow, record.time)

    def _added(self, record: TasksAdded) -> None:
        # That changes no state of the workflow, which is open.
        workflow = self.workflows[record.workflow_id]
        for addition in record.additions:
            for task, program in addition.tasks(workflow.arrays):
                workflow.add(task, program)
            if addition.elements:
                workflow.arrays[addition.task.name] = addition.names
            workflow.additions[addition.task.name] = addition
        workflow.changed_tasks()
        workflow.revision += 1

    def _submitted(self, record: WorkflowSubmitted) -> None:
        programs = {program.task: program for program in record.programs}
        workflow = LiveWorkflow(
            record.workflow_id, record.key, record.workflow, programs, record.time
        )
        workflow.tasks = {task.name: LiveTask(workflow, task) for task in record.workflow.tasks}
        for task in workflow.tasks.values():
            for name in task.task.predecessors:
                task.predecessors.append(workflow.tasks[name])
                workflow.tasks[name].successors.append(task)
        _find_behind(list(workflow.tasks.values()))
        self._take(workflow)

    def _take(self, workflow: LiveWorkflow) -> None:
        self.workflows_count = max(self.workflows_count, int(workflow.workflow_id[1:]))
        workflow.estimates = self.estimates
        self.workflows[workflow.workflow_id] = workflow
        self.live[workflow.workflow.name] = workflow
        self.by_key[workflow.key] = workflow

    def _changed(self, workflow: LiveWorkflow, now: float) -> None:
        workflow.revision += 1
        workflow.settle(now)
        if workflow.has_ended:
            del self.live[workflow.workflow.name]
            self.sent.pop(workflow.workflow_id, None)

    def _adopted(self, record: PlanAdopted) -> None:
        places = {placement.key: placement for placement in record.placements}
        reasons = {(workflow, task): reason for workflow, task, reason in record.unplanned}
        for workflow in self.live.values():
            workflow.revision += 1
            for task in workflow.tasks.values():
                if task.plannable:
                    key = workflow.workflow.name, task.task.name
                    task.placement = places.get(key)
                    task.reason = reasons.get(key, "")
        self.plan = record

    def _fixed(self, record: TaskFixed) -> None:
        self.bookings_count = max(self.bookings_count, int(record.booking.rpartition("-")[2]))
        workflow = self.workflows[record.workflow_id]
        task = workflow.tasks[record.task]
        task.move(TaskState.BOOKING)
        task.placement = record.placement
        task.reason = ""
        booking = task.booking = Booking(
            record.booking, record.placement, record.holds, record.run_time, group=record.group
        )
        self.booked[record.booking] = task
        for hold in record.holds:
            self.holding.setdefault(hold.place, {})[record.booking] = booking
        if record.group is not None:
            self.groups.setdefault(record.group.name, {})[record.booking] = booking
            task.move(TaskState.BOOKED)
            self._launched(task)
        self._changed(workflow, record.time)

    def _booking(self, record: BookingRecord, task: LiveTask) -> None:  # noqa: C901, PLR0912  # as `apply`
        match record:
            case TaskBooked():
                self._reserved(task, record.reservations)
            case TaskLaunched():
                self._launched(task)
            case TaskHandedOver():
                self._handed_over(task, record.job)
            case TaskRefused():
                self._refused(task, record.resource)
            case TaskHindered():
                self._hindered(task, record)
            case TaskStarted():
                task.start_time = record.start_time
                if task.state is TaskState.LAUNCHED:
                    task.reason = ""
                    task.move(TaskState.RUNNING)
            case TaskMoving():
                assert task.booking is not None
                task.booking.moving = record.begin, record.end
            case TaskMoved():
                self._moved(record, task)
            case TaskEnding():
                task.move(TaskState.ENDING)
                task.reason = record.reason
            case TaskFreed():
                self._freed(task, record)
            case TaskEnded():
                self._ended(record, task)
            case _:
                raise AssertionError(record)
        self._changed(task.owner, record.time)

    @staticmethod
    def _reserved(task: LiveTask, reservations: tuple[str, ...]) -> None:
        booking = task.booking
        assert booking is not None
        booking.reservations = reservations
        if booking.group is None:
            task.move(TaskState.BOOKED)
        else:
            task.run = Run(booking.holds[0].site, reservations[0])

    @staticmethod
    def _launched(task: LiveTask) -> None:
        booking = task.booking
        assert booking is not None
        task.move(TaskState.LAUNCHED)
        task.runs += 1
        task.owner.launched = True
        if booking.group is not None:
            task.run = None  # its site has not named the reservation yet
        elif task.program is not None:
            task.run = Run(booking.holds[0].site, booking.reservations[0])
        task.outcome = task.exit_code = task.signal = None

    @staticmethod
    def _refused(task: LiveTask, resource: str) -> None:
        left = tuple(each for each in task.task.alternatives if each.primary != resource)
        task.task = replace(task.task, alternatives=left)
        task.owner.changed_tasks()

    @staticmethod
    def _hindered(task: LiveTask, record: TaskHindered) -> None:
        booking = task.booking
        assert booking is not None
        if not record.reason:
            booking.hindered_since = None
        elif booking.hindered_since is None:
            booking.hindered_since = record.time
        task.reason = record.reason

    @staticmethod
    def _handed_over(task: LiveTask, job: str) -> None:
        assert task.booking is not None
        task.booking.job = job
        if task.run is not None:  # else it runs no program: a job of its time alone
            task.run = replace(task.run, job=job)

    @staticmethod
    def _moved(record: TaskMoved, task: LiveTask) -> None:
        booking = task.booking
        assert booking is not None
        before = booking.placement
        after = replace(before, start=record.begin, end=record.end)
        longer = (record.end - record.begin) - (before.end - before.start)
        booking.extended += max(0.0, longer)
        booking.placement = after
        booking.moving = None
        if task.placement == before:
            task.placement = after

    def _give_up(self, task: LiveTask, name: str, *, keep: bool) -> None:
        # An attempt of several reservations leaves the others to be released at its end.
        booking = self.booked.pop(name).booking
        assert booking is not None
        if keep or len(booking.holds) > 1:
            self.releasing[name] = booking
        else:
            self._let_go(booking)
        if task.placement == booking.placement:  # a plan may have found another place meanwhile
            task.placement = None
        task.booking = None
        task.start_time = None

    def _let_go(self, booking: Booking) -> None:
        for hold in booking.holds:
            held = self.holding.get(hold.place, {})
            held.pop(booking.booking, None)
            if not held:
                self.holding.pop(hold.place, None)
        if booking.group is not None:
            group = self.groups.get(booking.group.name, {})
            group.pop(booking.booking, None)
            if not group:
                self.groups.pop(booking.group.name, None)

    def _ended(self, record: TaskEnded, task: LiveTask) -> None:
        placement = task.placement if task.booking is None else task.booking.placement
        if record.start_time is None and record.outcome is not Outcome.UNKNOWN:
            self._uncount(task)
        self._give_up(task, record.booking, keep=False)
        task.reason = record.reason
        task.failures += record.counted
        task.outcome, task.outputs = record.outcome, record.outputs
        task.exit_code, task.signal = record.exit_code, record.signal
        task.move(record.state)
        if record.state is not TaskState.WAITING and record.start_time is not None:
            assert placement is not None
            task.start_time, task.end_time = record.start_time, record.end_time
            task.placement = Placement(
                *placement.key,
                placement.demands,
                record.start_time,
                record.end_time,
                record.cost,
            )
        if record.state is TaskState.FAILED:
            task.owner.failed = True
            if task.on_failure == "continue":
                for after in task.waiting_for_it():
                    after.give_up(task)
            else:
                task.owner.stopped = True

    @staticmethod
    def _uncount(task: LiveTask) -> None:
        # What its site has refused or given back has not begun.
        if task.state in AT_SITE and task.start_time is None:
            task.runs -= 1

    def _freed(self, task: LiveTask, record: TaskFreed) -> None:
        self._uncount(task)
        self._give_up(task, record.booking, keep=True)
        task.reason = record.reason
        over = task.owner.closing or task.failed_before is not None
        task.move(TaskState.CANCELLED if over else TaskState.WAITING)
