"""How long the runs of tasks are thought to take, and what is learned from those that are over.

Tasks that run nothing take what their users say. So do programs unless the settings let estimates be learned; what there is
to learn is recorded in either case.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.model.estimates import Estimate
from broker.model.resources import Resource
from broker.model.workflow import WORK_MAX, Alternative, Task, Workflow
from broker.scheduler.events import Ended
from broker.scheduler.records import RunMeasured
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state_tables import Booking, LiveTask, LiveWorkflow, StateTables
from grms.util.outcomes import Outcome

if TYPE_CHECKING:  # clients name estimates, and need no numpy
    from broker.scheduler.transaction import Transaction

_Shared = dict[tuple[str, float, int], tuple[Alternative, ...]]
# By program, work and what the user has said: alternatives with times of their own, which tasks that are alike share.

CUT_FACTOR: Final = 2.0
"""A run that was ended at its limit would have taken longer; it counts as so many times as long."""


def input_bytes(task: LiveTask) -> float | None:
    """Returns the bytes that a task is given; `None` where it is given nothing, or not all sizes are known yet."""
    owner, program = task.owner, task.program
    if task.task.name in owner.declared_bytes:
        return owner.declared_bytes[task.task.name]
    if program is None or not program.inputs:
        return None
    found = 0
    left: dict[str, dict[str, int]] = {}
    for given in program.inputs:
        size = given.size
        if given.task:
            if given.task not in left:
                outputs = owner.tasks[given.task].outputs
                left[given.task] = {file.name: file.size for file in outputs}
            if given.output not in left[given.task]:
                return None
            size = left[given.task][given.output]
        found += size
    return float(found)


def thought(task: LiveTask) -> Estimate:
    """Returns what runs of the same program say of a task's work, and its user's word before there are any."""
    said = task.task.work
    program = task.program
    if program is None or said <= 0:
        return Estimate(said, 0, said, said, "file")
    return task.owner.estimates.estimate(program.called, input_bytes(task), said)


class RunTimes:
    """Says how long runs should take."""

    def __init__(self, memory: StateTables, settings: BrokerSettings) -> None:
        self._memory = memory
        self._margin = settings.margin
        self.learned = settings.estimates == "learned"

    def work(self, task: LiveTask) -> float:
        """Returns the work of a task on any resource, seconds at performance 1."""
        return thought(task).work if self.learned else task.task.work

    def run_time(self, task: LiveTask, resource: Resource) -> float:
        """Returns seconds that its run should take on a resource."""
        if not self.learned or task.program is None:
            return resource.duration(task.task.work)
        return resource.duration(self.work(task)) * self._factor(task, resource.name)

    def rate(self, task: LiveTask, resource: Resource) -> float:
        """Returns seconds that each second of its work should take on a resource."""
        return resource.duration(1.0) * self._factor(task, resource.name)

    def most(self, task: LiveTask, resource: Resource, run_time: float) -> float:
        """Returns the time of a run by which it is judged whether it takes too long, seconds.

        Whoever allowed a time is not given less because most runs took less.
        """
        return max(run_time, resource.duration(task.task.work)) if self.learned else run_time

    def planned(self, live: LiveWorkflow, workflow: Workflow) -> Workflow:
        """Returns a workflow for a planner, with what its tasks are thought to take."""
        if not self.learned or not live.programs:
            return workflow
        changed = False
        tasks: list[Task] = []
        shared: _Shared = {}
        for task in workflow.tasks:
            live_task = live.tasks[task.name]
            better = self._planned(live_task, shared) if live_task.plannable else task
            changed = changed or better is not task
            tasks.append(better)
        return replace(workflow, tasks=tuple(tasks)) if changed else workflow

    def measure(
        self,
        task: LiveTask,
        booking: Booking,
        event: Ended,
        start: float | None,
        transaction: "Transaction",
    ) -> None:
        """Notes how long a run that is over has taken from its start, seconds, if that says anything of the next ones."""
        supply = self._memory.supplies.get(booking.placement.resources[0])
        if task.program is None or start is None or supply is None:
            return
        if event.outcome not in {Outcome.COMPLETED, Outcome.TIMEOUT}:
            return
        # A site may tell any times, also what is no number.
        if not event.end_time > start or not event.kept >= 0:
            return
        work = (event.end_time - start + event.kept) * supply.resource.performance
        if event.outcome is Outcome.TIMEOUT:
            work *= CUT_FACTOR
        transaction.note(
            RunMeasured(
                transaction.now,
                task.program.called,
                input_bytes(task),
                supply.name,
                task.task.work,
                min(work, WORK_MAX),
            )
        )

    def _planned(self, task: LiveTask, shared: _Shared) -> Task:
        said = task.task
        work = self.work(task)
        made = said if work == said.work else replace(said, work=work)
        program = task.program
        if program is None or not self._memory.estimates.has_factors(program.called):
            return made
        key = program.called, work, id(said.alternatives)
        if key not in shared:
            shared[key] = tuple(self._timed(task, each, work) for each in said.alternatives)
        return replace(made, alternatives=shared[key])

    def _timed(self, task: LiveTask, alternative: Alternative, work: float) -> Alternative:
        factor = self._factor(task, alternative.primary)
        supply = self._memory.supplies.get(alternative.primary)
        if factor == 1.0 or supply is None:
            return alternative
        seconds = supply.resource.duration(work) * factor + self._margin
        return replace(alternative, seconds=min(seconds, WORK_MAX))

    def _factor(self, task: LiveTask, resource: str) -> float:
        program = task.program
        if not self.learned or program is None:
            return 1.0
        return self._memory.estimates.factor(program.called, resource)
