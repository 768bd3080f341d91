"""Workflows, resources and plans as messages of `broker.v1`, and back."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, get_args

from broker.model.additions import Addition
from broker.model.estimates import Form, ProgramEstimate
from broker.model.network import DataFile
from broker.model.program import Program, check_programs
from broker.model.resources import Calendar, PriceRule, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, OnFailure, OpenWorkflow, Task, Workflow
from broker.scheduler.lifecycle import TaskState, WorkflowState
from broker.scheduler.records import Supply
from broker.scheduler.run_times import thought
from broker.scheduler.state_tables import LiveTask, LiveWorkflow, StateTables
from broker.v1 import plan_pb2, resource_pb2, workflow_pb2
from broker.wire.programs import read_program, write_program
from grms.daemon.messages import WireError
from grms.v1 import request_pb2

LISTS_SHARED: Final = 256
"""Lists of alternatives, the latest, that later tasks share."""

ALTERNATIVES_SHARED: Final = 65_536
"""The same for single alternatives."""

REPEATED_BYTES_MAX: Final = 1 << 20
"""Where lists of alternatives that tasks share would take more bytes than this for all but the first of each, tasks refer to
them, which a broker of version 0.1.0 does not read."""


# --- workflows -----------------------------------------------------------------------------------


_ON_FAILURE: Final[dict[OnFailure, workflow_pb2.OnFailure]] = {
    "finish": workflow_pb2.ON_FAILURE_FINISH,
    "terminate": workflow_pb2.ON_FAILURE_TERMINATE,
    "continue": workflow_pb2.ON_FAILURE_CONTINUE,
}


def _read_on_failure(number: int) -> OnFailure | None:
    # `None` where nothing is said.
    if number == workflow_pb2.ON_FAILURE_UNSPECIFIED:
        return None
    for word, value in _ON_FAILURE.items():
        if value == number:
            return word
    raise ValueError(f"on_failure is {number}, a word of a later version")


def read_workflow(spec: workflow_pb2.WorkflowSpec) -> tuple[Workflow, tuple[Program, ...]]:
    """Returns a workflow and what its tasks run.

    Raises:
        WireError: it is none; the text says why, with names.
    """
    if not spec.name:
        raise WireError("workflow.name", "the workflow has no name")
    lists = _read_lists(spec, "workflow.")
    tasks, programs = [], []
    for index, task in enumerate(spec.tasks):
        try:
            _check_single(task)
            tasks.append(_read_task(task, lists))
            programs.append(read_program(task))
        except ValueError as error:
            raise WireError(f"workflow.tasks[{index}]", str(error)) from error
    try:
        workflow = Workflow(
            spec.name,
            tuple(tasks),
            *_read_limits(spec),
            _read_on_failure(spec.on_failure) or "finish",
            tuple(
                DataFile(each.name, each.size_bytes, tuple(each.readers), each.task, each.site)
                for each in spec.files
            ),
        )
        there = tuple(each for each in programs if each is not None)
        check_programs(workflow, there)
    except ValueError as error:
        raise WireError("workflow", str(error)) from error
    return workflow, there


def _check_single(task: workflow_pb2.TaskSpec) -> None:
    if task.elements:
        raise ValueError(f"task {task.name!r} is an array, which is added to an open workflow")


def _read_limits(spec: workflow_pb2.WorkflowSpec) -> tuple[float, float, float, float]:
    # Earliest start, due date, budget, preference.
    return (
        spec.earliest_start_s if spec.HasField("earliest_start_s") else -math.inf,
        spec.due_date_s if spec.HasField("due_date_s") else math.inf,
        spec.budget if spec.HasField("budget") else math.inf,
        spec.preference if spec.HasField("preference") else 0.5,
    )


def read_open_workflow(spec: workflow_pb2.WorkflowSpec) -> OpenWorkflow:
    """Returns a workflow that tasks are added to.

    Raises:
        WireError: it is none, or has tasks already.
    """
    if not spec.name:
        raise WireError("workflow.name", "the workflow has no name")
    if spec.tasks:
        raise WireError("workflow.tasks", "a workflow is opened without tasks; add them then")
    try:
        said = _read_on_failure(spec.on_failure) or "finish"
        return OpenWorkflow(spec.name, (), *_read_limits(spec), said)
    except ValueError as error:
        raise WireError("workflow", str(error)) from error


def read_additions(request: workflow_pb2.AddRequest) -> tuple[Addition, ...]:
    """Returns tasks that are added to a workflow.

    Raises:
        WireError: one of them is none; the text says why, with names.
    """
    lists = _read_lists(request)
    found = []
    for index, task in enumerate(request.tasks):
        elements = tuple(tuple(each.arguments) for each in task.elements)
        try:
            found.append(Addition(_read_task(task, lists), read_program(task), elements))
        except ValueError as error:
            raise WireError(f"tasks[{index}]", str(error)) from error
    return tuple(found)


def _read_lists(
    message: workflow_pb2.WorkflowSpec | workflow_pb2.AddRequest, within: str = ""
) -> list[tuple[Alternative, ...]]:
    found = []
    for index, each in enumerate(message.alternative_lists):
        try:
            found.append(_read_shared(each.alternatives))
        except ValueError as error:
            raise WireError(f"{within}alternative_lists[{index}]", str(error)) from error
    return found


def _read_task(task: workflow_pb2.TaskSpec, lists: Sequence[tuple[Alternative, ...]]) -> Task:
    said = _read_on_failure(task.on_failure)
    number = task.alternative_list
    if not number:
        alternatives = _read_shared(task.alternatives)
    elif task.alternatives:
        raise ValueError(f"task {task.name!r} has alternatives, and those of a list; one of these")
    elif 1 <= number <= len(lists):
        alternatives = lists[number - 1]
    else:
        text = f"task {task.name!r} has the alternatives of list {number}; there are {len(lists)}"
        raise ValueError(text)
    return Task(task.name, task.work_s, alternatives, tuple(task.predecessors), said)


def _read_shared(alternatives: Iterable[workflow_pb2.Alternative]) -> tuple[Alternative, ...]:
    # Thousands of tasks run on "every resource of that kind": what is equal becomes one object.
    alone = workflow_pb2.AlternativeList(alternatives=alternatives)
    return _read_alternatives(alone.SerializeToString(deterministic=True))


@lru_cache(maxsize=LISTS_SHARED)
def _read_alternatives(content: bytes) -> tuple[Alternative, ...]:
    spec = workflow_pb2.AlternativeList.FromString(content)
    return tuple(_read_alternative(each.SerializeToString()) for each in spec.alternatives)


@lru_cache(maxsize=ALTERNATIVES_SHARED)
def _read_alternative(content: bytes) -> Alternative:
    demands = workflow_pb2.Alternative.FromString(content).demands
    return Alternative(tuple(Demand(each.resource, each.units) for each in demands))


def write_workflow(
    workflow: Workflow,
    programs: Iterable[Program] = (),
    *,
    repeated: int = REPEATED_BYTES_MAX,
) -> workflow_pb2.WorkflowSpec:
    """Returns a workflow as it is handed in; `repeated` as for `write_additions`.

    Raises:
        WireError: an alternative has a duration or a set-up of its own, which a broker does not take.
    """
    by_task = {program.task: program for program in programs}
    spec = _write_limits(workflow)
    additions = [Addition(task, by_task.get(task.name)) for task in workflow.tasks]
    write_additions(spec, additions, of=f" of {workflow.name!r}", repeated=repeated)
    for file in workflow.files:
        spec.files.add(
            name=file.name,
            size_bytes=math.ceil(file.size),
            readers=file.readers,
            task=file.maker,
            site=file.site,
        )
    return spec


def write_additions(
    message: workflow_pb2.WorkflowSpec | workflow_pb2.AddRequest,
    additions: Sequence[Addition],
    of: str = "",
    *,
    repeated: int = REPEATED_BYTES_MAX,
) -> None:
    """Writes tasks into a message as they are handed in; `of` says in errors of what.

    Alternatives that tasks share are written once where that spares more than `repeated` bytes. What is small is so written as
    every version reads it.

    Raises:
        WireError: an alternative has a duration or a set-up of its own, which a broker does not take.
    """
    shared = _Shared(message, [each.task for each in additions], repeated)
    for addition in additions:
        task = addition.task
        if task.timed:
            text = (
                f"task {task.name!r}{of} has seconds or a set-up for an alternative, which "
                "a broker does not plan with: give it work instead, or plan it by gorba plan"
            )
            raise WireError("workflow", text)
        made = message.tasks.add()
        made.MergeFrom(_write_task(task))
        shared.write(made, task)
        if addition.program is not None:
            write_program(made, addition.program)
        for arguments in addition.elements:
            made.elements.add(arguments=arguments)


class _Shared:
    # Alternatives of tasks, each different list written once.

    def __init__(
        self,
        message: workflow_pb2.WorkflowSpec | workflow_pb2.AddRequest,
        tasks: Sequence[Task],
        repeated: int,
    ) -> None:
        # Mostly they are one object, which is seen sooner than that they are equal.
        self._contents: dict[int, bytes] = {}
        known: dict[bytes, bytes] = {}
        uses: Counter[bytes] = Counter()
        for task in tasks:
            which = id(task.alternatives)
            if which not in self._contents:
                content = _write_alternatives(task.alternatives).SerializeToString()
                self._contents[which] = known.setdefault(content, content)
            uses[self._contents[which]] += 1
        self._numbers: dict[bytes, int] = {}
        if sum((count - 1) * len(content) for content, count in uses.items()) > repeated:
            for content, count in uses.items():
                if count > 1:
                    message.alternative_lists.add().MergeFromString(content)
                    self._numbers[content] = len(message.alternative_lists)

    def write(self, made: workflow_pb2.TaskSpec, task: Task) -> None:
        """Writes the alternatives of a task."""
        content = self._contents[id(task.alternatives)]
        number = self._numbers.get(content)
        if number is None:
            made.alternatives.extend(workflow_pb2.AlternativeList.FromString(content).alternatives)
        else:
            made.alternative_list = number


def _write_alternatives(alternatives: Iterable[Alternative]) -> workflow_pb2.AlternativeList:
    written = workflow_pb2.AlternativeList()
    for alternative in alternatives:
        written.alternatives.add().demands.extend(write_demands(alternative.demands))
    return written


def _write_task(task: Task) -> workflow_pb2.TaskSpec:
    made = workflow_pb2.TaskSpec(
        name=task.name, work_s=task.work, predecessors=list(task.predecessors)
    )
    if task.on_failure is not None:
        made.on_failure = _ON_FAILURE[task.on_failure]
    return made


def write_description(live: LiveWorkflow) -> workflow_pb2.WorkflowSpec:
    """Returns what was handed in of a workflow, with the tasks that it has now, without alternatives."""
    spec = _write_limits(live.workflow)
    for member in live.tasks.values():
        made = _write_task(member.task)
        if member.program is not None:
            write_program(made, member.program)
        spec.tasks.append(made)
    return spec


def _write_limits(workflow: Workflow) -> workflow_pb2.WorkflowSpec:
    spec = workflow_pb2.WorkflowSpec(name=workflow.name)
    if workflow.earliest_start > -math.inf:
        spec.earliest_start_s = workflow.earliest_start
    if workflow.due_date < math.inf:
        spec.due_date_s = workflow.due_date
    if workflow.budget < math.inf:
        spec.budget = workflow.budget
    spec.preference = workflow.preference
    if workflow.on_failure != "finish":
        spec.on_failure = _ON_FAILURE[workflow.on_failure]
    return spec


def write_open_workflow(workflow: OpenWorkflow) -> workflow_pb2.WorkflowSpec:
    """Returns a workflow that tasks are added to, as it is opened."""
    return _write_limits(workflow)


def write_demands(demands: Iterable[Demand]) -> list[workflow_pb2.Demand]:
    """Returns units of resources."""
    return [workflow_pb2.Demand(resource=each.resource, units=each.units) for each in demands]


def write_live(live: LiveWorkflow, *, tasks: bool = True) -> workflow_pb2.Workflow:
    """Returns the current state of a workflow."""
    members = list(live.tasks.values())
    placed = [task.placement for task in members if task.placement is not None]
    message = workflow_pb2.Workflow(
        workflow_id=live.workflow_id,
        name=live.workflow.name,
        state=f"WORKFLOW_STATE_{live.state.name}",
        submit_time_s=live.submit_time,
        cost=math.fsum(placement.cost for placement in placed),
        tasks_total=len(members),
        tasks_completed=sum(task.state is TaskState.COMPLETED for task in members),
        tasks_simulated=sum(task.state is TaskState.SIMULATED for task in members),
        tasks=[write_task(task) for task in members] if tasks else [],
        reason=_reason(members),
        revision=live.revision,
        open=live.is_open,
    )
    if live.end_time is not None:
        message.end_time_s = live.end_time
    if live.workflow.due_date < math.inf:
        message.due_date_s = live.workflow.due_date
    if live.workflow.budget < math.inf:
        message.budget = live.workflow.budget
    if placed and len(placed) == len(members):
        message.completion_s = max(placement.end for placement in placed)
    return message


def _reason(tasks: list[LiveTask]) -> str:
    bad = [task for task in tasks if task.state is TaskState.FAILED]
    bad += [task for task in tasks if task.state is TaskState.WAITING and task.placement is None]
    bad += [task for task in tasks if task.state is TaskState.LAUNCHED]  # with a reason: hindered
    for task in bad:
        if task.reason:
            return f"task {task.task.name!r}: {task.reason}"
    return ""


def write_task(task: LiveTask) -> workflow_pb2.Task:
    """Returns the current state of a task."""
    message = workflow_pb2.Task(
        name=task.task.name,
        state=f"TASK_STATE_{task.state.name}",
        runs=task.runs,
        reason=task.reason,
        has_program=task.program is not None,
        outputs=[
            workflow_pb2.TaskFile(name=file.name, size_bytes=file.size, sha256=file.sha256)
            for file in task.outputs
        ],
    )
    if task.program is not None:
        _write_run(message, task)
    placement = task.placement
    if placement is not None:
        message.demands.extend(write_demands(placement.demands))
        message.start_time_s = placement.start if task.start_time is None else task.start_time
        message.end_time_s = placement.end if task.end_time is None else task.end_time
        message.cost = placement.cost
    return message


def _write_run(message: workflow_pb2.Task, task: LiveTask) -> None:
    estimate = thought(task)
    message.estimate_s, message.estimate_runs = round(estimate.work, 3), estimate.runs
    if task.outcome is not None:
        outcome: Any = request_pb2.Outcome.Value(f"OUTCOME_{task.outcome.name}")
        message.outcome = outcome
    if task.exit_code is not None:
        message.exit_code = task.exit_code
    if task.signal is not None:
        message.signal = task.signal
    if task.run is not None:
        message.job = task.run.job


def read_workflow_state(number: int) -> WorkflowState:
    """Returns a state that a request names; `WireError` if there is no such state."""
    for state in WorkflowState:
        if workflow_pb2.WorkflowState.Value(f"WORKFLOW_STATE_{state.name}") == number:
            return state
    raise WireError("states", f"{number} is no state of a workflow")


# --- resources -----------------------------------------------------------------------------------


def read_supply(message: resource_pb2.Resource) -> Supply:
    """Returns a resource and its place; `WireError` if it is none, with the reason."""
    if not message.name:
        raise WireError("resource.name", "the resource has no name")
    try:
        resource = Resource(
            message.name,
            message.kind or "cpu",
            message.performance or 1.0,
            message.price,
            tuple(PriceRule(rule.price, _read_window(rule.window)) for rule in message.price_rules),
            Calendar(
                tuple(_read_window(each) for each in message.opening),
                tuple(
                    (
                        each.begin_s if each.HasField("begin_s") else -math.inf,
                        each.end_s if each.HasField("end_s") else math.inf,
                    )
                    for each in message.closures
                ),
            ),
            message.capacity or 1,
            message.utc_offset_s,
        )
    except ValueError as error:
        raise WireError("resource", str(error)) from error
    try:
        requires = tuple(Demand(each.resource, each.units) for each in message.requires)
    except ValueError as error:
        raise WireError("resource.requires", str(error)) from error
    names = [each.resource for each in requires]
    if len({message.name, *names}) <= len(names):
        reason = f"resource {message.name!r} requires itself, or another twice: {', '.join(names)}"
        raise WireError("resource.requires", reason)
    return Supply(
        resource, message.site, message.site_resource, message.broken, requires, message.groups
    )


def _read_window(message: resource_pb2.WeeklyWindow) -> WeeklyWindow:
    return WeeklyWindow(message.begin_s, message.end_s, tuple(message.weekdays))


def _write_window(window: WeeklyWindow) -> resource_pb2.WeeklyWindow:
    return resource_pb2.WeeklyWindow(
        begin_s=window.begin, end_s=window.end, weekdays=list(window.weekdays)
    )


def write_supply(supply: Supply) -> resource_pb2.Resource:
    """Returns a resource and its place."""
    resource = supply.resource
    message = resource_pb2.Resource(
        name=resource.name,
        kind=resource.kind,
        performance=resource.performance,
        price=resource.price,
        capacity=resource.capacity,
        utc_offset_s=resource.utc_offset,
        site=supply.site,
        site_resource=supply.site_resource,
        broken=supply.broken,
        opening=[_write_window(each) for each in resource.calendar.opening],
        requires=write_demands(supply.requires),
        groups=supply.groups,
    )
    for rule in resource.price_rules:
        message.price_rules.add(price=rule.price, window=_write_window(rule.window))
    for begin, end in resource.calendar.closures:
        closure = message.closures.add()
        if begin > -math.inf:
            closure.begin_s = begin
        if end < math.inf:
            closure.end_s = end
    return message


# --- the plan ------------------------------------------------------------------------------------


def write_estimates(memory: StateTables, *, used: bool) -> plan_pb2.EstimatesResponse:
    """Returns what has been learned of run times, and whether plans go by it."""
    return plan_pb2.EstimatesResponse(
        used=used,
        programs=[
            plan_pb2.ProgramEstimate(
                program=each.program,
                runs=each.runs,
                form=each.form,
                ratio=each.ratio,
                low=each.low,
                high=each.high,
                work_s=each.work,
                factors=[
                    plan_pb2.ResourceFactor(resource=name, factor=factor)
                    for name, factor in each.factors
                ],
            )
            for each in memory.estimates.programs()
        ],
    )


def read_estimates(message: plan_pb2.EstimatesResponse) -> list[ProgramEstimate]:
    """Returns what a broker has learned of run times."""
    forms = {word: word for word in get_args(Form)}
    return [
        ProgramEstimate(
            each.program,
            each.runs,
            forms.get(each.form, "ratio"),
            each.ratio,
            each.work_s,
            each.low,
            each.high,
            tuple((one.resource, one.factor) for one in each.factors),
        )
        for each in message.programs
    ]


def write_plan(
    memory: StateTables, now: float, next_planning: float, silent: Iterable[str] = ()
) -> plan_pb2.Plan:
    """Returns the plan.

    Args:
        memory: what the broker knows.
        now: seconds.
        next_planning: seconds; infinity for never.
        silent: sites that do not answer.
    """
    message = plan_pb2.Plan(now_s=now, silent_sites=sorted(silent))
    if memory.plan is not None:
        message.number = memory.plan.number
        message.adopted_s = memory.plan.time
        if memory.plan.fitness is not None:
            message.fitness = memory.plan.fitness
    if math.isfinite(next_planning):
        message.next_planning_s = next_planning
    placed = []
    for task in memory.tasks():
        workflow = task.owner.workflow.name
        if task.placement is not None:
            placed.append((task.placement.start, workflow, task.task.name, task))
        elif not task.has_ended:
            reason = task.reason or "the next planning gives it a place"
            message.unplanned.add(workflow=workflow, task=task.task.name, reason=reason)
    for _, workflow, name, task in sorted(placed, key=lambda entry: entry[:3]):
        assert task.placement is not None
        shown = write_task(task)
        message.placements.add(
            workflow=workflow,
            task=name,
            demands=shown.demands,
            start_time_s=shown.start_time_s,
            end_time_s=shown.end_time_s,
            cost=shown.cost,
            state=shown.state,
            predecessors=list(task.task.predecessors),
        )
    return message
