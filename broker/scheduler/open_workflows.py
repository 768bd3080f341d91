"""Workflows that are opened, to which tasks are added, and that are closed.

A task can only wait for tasks that are there already or that come before it in the same call, so that no cycle can
come about. Its name is what it is known by: the same task added again is nothing, so that a call whose answer got
lost can be repeated; another one of that name is refused. A call adds all of its tasks or none.
"""

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from broker.model.additions import EDGES_MAX, Addition, written_out
from broker.model.program import Program, problems_of
from broker.model.workflow import Task
from broker.scheduler.commands import Refusal, Refuse, ReplyAdded, ReplyWorkflow
from broker.scheduler.events import Add, Close, Open
from broker.scheduler.lifecycle import DONE
from broker.scheduler.planning_cycle import PlanningCycle
from broker.scheduler.records import TasksAdded, WorkflowClosed, WorkflowOpened
from broker.scheduler.request_handler import RequestHandler, no_workflow
from broker.scheduler.state_tables import LiveWorkflow, StateTables
from broker.scheduler.transaction import Transaction


class _RefusedError(Exception):
    """A call is refused; `field` is the wrong one, or empty."""

    def __init__(self, refusal: Refusal, reason: str, field: str = "") -> None:
        super().__init__(reason)
        self.refusal, self.reason, self.field = refusal, reason, field


@dataclass
class _Batch:
    """What is new of one call."""

    workflow: LiveWorkflow
    additions: dict[str, Addition] = field(default_factory=dict)
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    programs: dict[str, Program] = field(default_factory=dict)
    edges: int = 0

    def known(self, name: str) -> Addition | None:
        """Returns what has been added under a name."""
        return self.workflow.additions.get(name) or self.additions.get(name)

    def taken(self, name: str) -> bool:
        """Returns whether a task or an array has a name."""
        places = (self.workflow.tasks, self.workflow.arrays, self.tasks, self.arrays)
        return any(name in each for each in places)

    def add(self, addition: Addition, where: str) -> None:
        """Adds what is new; `_RefusedError` if it cannot be."""
        task, workflow = addition.task, self.workflow.workflow.name
        for name in task.predecessors:
            if not self.taken(name):
                reason = (
                    f"task {task.name!r} waits for {name!r}, which is no task of workflow {workflow!r} "
                    "yet: add that first, or before it in the same call"
                )
                raise _RefusedError(Refusal.INVALID, reason, f"{where}.predecessors")
        for name in {task.name, *addition.names}:
            if self.taken(name):
                reason = f"workflow {workflow!r} has another task {name!r} already"
                raise _RefusedError(Refusal.INVALID, reason, f"{where}.name")
        arrays = ChainMap(self.arrays, self.workflow.arrays)
        self.edges += addition.count * len(written_out(task.predecessors, arrays))
        if self.edges > EDGES_MAX:
            reason = (
                f"the tasks wait for {self.edges} others in all; at most {EDGES_MAX}: put a task between "
                "the arrays that waits for the first, and the second waits for that"
            )
            raise _RefusedError(Refusal.INVALID, reason, where)
        programs = ChainMap(self.programs, self.workflow.programs)
        for made, program in _made(addition, arrays, where):
            self.tasks[made.name] = made
            if program is None:
                continue
            for problem in problems_of(program, made, programs):
                raise _RefusedError(Refusal.INVALID, f"task {made.name!r}: {problem}", where)
            self.programs[made.name] = program
        if addition.elements:
            self.arrays[task.name] = addition.names
        self.additions[task.name] = addition


class OpenWorkflows:
    """Answers requests about open workflows."""

    def __init__(self, memory: StateTables, cycle: PlanningCycle, requests: RequestHandler) -> None:
        self._memory = memory
        self._cycle = cycle
        self._requests = requests

    def open(self, event: Open, transaction: Transaction) -> None:
        """Takes a workflow that tasks are added to, once for each key."""
        known = self._memory.by_key.get(event.key)
        if known is not None:
            if not known.growing or known.workflow != event.workflow:
                reason = f"the key {event.key!r} belongs to another workflow, {known.workflow_id}"
                transaction.do(Refuse(event.id, Refusal.INVALID, reason, "idempotency_key"))
                return
            transaction.do(ReplyWorkflow(event.id, known.workflow_id))
            return
        refusal = self._requests.name_refusal(event.id, event.key, event.workflow.name)
        if refusal is not None:
            transaction.do(refusal)
            return
        workflow_id = self._requests.next_id(transaction)
        transaction.note(WorkflowOpened(transaction.now, workflow_id, event.key, event.workflow))
        transaction.changed(self._memory.workflows[workflow_id])
        transaction.do(ReplyWorkflow(event.id, workflow_id))

    def add(self, event: Add, transaction: Transaction) -> None:
        """Adds tasks to a workflow, all or none; those that are there already are nothing."""
        workflow = self._requests.find(event.workflow_id)
        if workflow is None:
            transaction.do(no_workflow(event.id, event.workflow_id))
            return
        try:
            batch = self._batch(workflow, event)
        except _RefusedError as error:
            transaction.do(Refuse(event.id, error.refusal, error.reason, error.field))
            return
        if batch.tasks:
            additions = tuple(batch.additions.values())
            transaction.note(TasksAdded(transaction.now, workflow.workflow_id, additions))
            new = [workflow.tasks[name] for name in batch.tasks]
            self._cycle.came(transaction, workflow, len(new))
            transaction.touched += [
                task for task in new if all(before.state in DONE for before in task.predecessors)
            ]
            transaction.changed(workflow)
        transaction.do(ReplyAdded(event.id, workflow.workflow_id, len(batch.tasks)))

    def _batch(self, workflow: LiveWorkflow, event: Add) -> _Batch:
        batch, name = _Batch(workflow), workflow.workflow.name
        for at, addition in enumerate(event.additions):
            known = batch.known(addition.task.name)
            if known is not None and known != addition:
                reason = f"workflow {name!r} has a task {addition.task.name!r} already, and it is another one"
                raise _RefusedError(Refusal.INVALID, reason, f"tasks[{at}]")
            if known is not None:
                continue
            if not workflow.is_open:
                raise _RefusedError(Refusal.PRECONDITION, _why_not(workflow), "workflow_id")
            batch.add(addition, f"tasks[{at}]")
        free = self._requests.free
        if len(batch.tasks) > free:
            reason = f"{len(batch.tasks)} tasks are added to workflow {name!r}; {free} more can be taken until others have ended"
            raise _RefusedError(Refusal.EXHAUSTED, reason)
        wrong = [
            each.task for each in batch.additions.values() if not self._requests.can_run(each.task)
        ]
        if wrong:
            names = [addition.task.name for addition in event.additions]
            at = names.index(wrong[0].name)
            raise _RefusedError(
                Refusal.INVALID, self._requests.nowhere(name, wrong), f"tasks[{at}]"
            )
        return batch

    def close(self, event: Close, transaction: Transaction) -> None:
        """Has a workflow end with the tasks that it has; closing once more is nothing."""
        workflow = self._requests.find(event.workflow_id)
        if workflow is None:
            transaction.do(no_workflow(event.id, event.workflow_id))
            return
        if workflow.is_open:
            transaction.note(WorkflowClosed(transaction.now, workflow.workflow_id))
            transaction.changed(workflow)
        transaction.do(ReplyWorkflow(event.id, workflow.workflow_id))


def _made(
    addition: Addition, arrays: Mapping[str, tuple[str, ...]], where: str
) -> Iterator[tuple[Task, Program | None]]:
    try:
        yield from addition.tasks(arrays)
    except ValueError as error:
        raise _RefusedError(Refusal.INVALID, str(error), where) from error


def _why_not(workflow: LiveWorkflow) -> str:
    name = workflow.workflow.name
    if not workflow.growing:
        return f"workflow {name!r} was handed in whole; tasks are added to one that was opened"
    if workflow.cancelled:
        return f"workflow {name!r} was cancelled, and takes no more tasks"
    if workflow.stopped:
        return f"a task of workflow {name!r} has failed, and it takes no more tasks"
    return f"workflow {name!r} was closed, and takes no more tasks"
