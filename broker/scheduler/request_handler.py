"""What people ask: workflows come and are cancelled, resources come, change and go."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from broker.model.workflow import Task
from broker.scheduler.commands import Refusal, Refuse, ReplyPlan, ReplyResource, ReplyWorkflow
from broker.scheduler.events import Cancel, Offered, Register, Remove, Replan, Submit, Update
from broker.scheduler.offers import Held, ResourceOffer, held_by_others, learned
from broker.scheduler.planning_cycle import PlanningCycle
from broker.scheduler.planning_input import Taken
from broker.scheduler.records import (
    Counted,
    ResourceRemoved,
    ResourceSet,
    Supply,
    WorkflowCancelled,
    WorkflowForgotten,
    WorkflowSubmitted,
)
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state_tables import LiveWorkflow, StateTables
from broker.scheduler.task_execution import TaskExecution
from broker.scheduler.transaction import Transaction

KEY_MAX = 128
"""In characters."""

SHOWN_MAX = 10
"""Most tasks named in an error."""


def no_workflow(cause: int, word: str) -> Refuse:
    """Returns the answer where there is no such workflow."""
    return Refuse(cause, Refusal.NOT_FOUND, f"there is no workflow {word!r}", "workflow_id")


class RequestHandler:
    """Answers requests of users."""

    def __init__(
        self,
        memory: StateTables,
        settings: BrokerSettings,
        cycle: PlanningCycle,
        execution: TaskExecution,
    ) -> None:
        self._memory = memory
        self._settings = settings
        self._cycle = cycle
        self._execution = execution

    # --- workflows -----------------------------------------------------------------------------

    def submit(self, event: Submit, transaction: Transaction) -> None:
        """Takes a workflow, once for each key."""
        known = self._memory.by_key.get(event.key)
        if known is not None:
            if (known.workflow, tuple(known.programs.values())) != (event.workflow, event.programs):
                reason = f"the key {event.key!r} belongs to another workflow, {known.workflow_id}"
                transaction.do(Refuse(event.id, Refusal.INVALID, reason, "idempotency_key"))
                return
            transaction.do(ReplyWorkflow(event.id, known.workflow_id))
            return
        refusal = self._refusal(event)
        if refusal is not None:
            transaction.do(refusal)
            return
        workflow_id = self.next_id(transaction)
        transaction.note(
            WorkflowSubmitted(
                transaction.now, workflow_id, event.key, event.workflow, event.programs
            )
        )
        workflow = self._memory.workflows[workflow_id]
        self._cycle.came(transaction, workflow, len(workflow.tasks))
        transaction.touched += [task for task in workflow.tasks.values() if not task.predecessors]
        transaction.changed(workflow)
        transaction.do(ReplyWorkflow(event.id, workflow_id))

    def _refusal(self, event: Submit) -> Refuse | None:
        workflow = event.workflow
        refusal = self.name_refusal(event.id, event.key, workflow.name)
        if refusal is not None:
            return refusal
        free = self.free
        if len(workflow.tasks) > free:
            reason = (
                f"workflow {workflow.name!r} has {len(workflow.tasks)} tasks; {free} more can be "
                f"taken until others have ended"
            )
            return Refuse(event.id, Refusal.EXHAUSTED, reason)
        wrong = [at for at, task in enumerate(workflow.tasks) if not self.can_run(task)]
        if wrong:
            found = [workflow.tasks[at] for at in wrong]
            field = f"workflow.tasks[{wrong[0]}]"
            return Refuse(event.id, Refusal.INVALID, self.nowhere(workflow.name, found), field)
        return None

    @property
    def free(self) -> int:
        """How many more tasks can be taken."""
        return self._settings.tasks_max - self._memory.tasks_open

    def name_refusal(self, cause: int, key: str, name: str) -> Refuse | None:
        """Returns why a new workflow cannot be taken under a key and a name, if it cannot."""
        if not 1 <= len(key) <= KEY_MAX:
            reason = f"the key has {len(key)} characters; from 1 to {KEY_MAX}"
            return Refuse(cause, Refusal.INVALID, reason, "idempotency_key")
        if name in self._memory.live:
            other = self._memory.live[name].workflow_id
            reason = f"workflow {other} has the name {name!r} and has not ended"
            return Refuse(cause, Refusal.PRECONDITION, reason, "workflow.name")
        return None

    def can_run(self, task: Task) -> bool:
        """Returns whether a task can run somewhere, be it on what is broken now and may be in order again then."""
        supplies = self._memory.supplies
        return any(
            all(
                demand.resource in supplies
                and demand.units <= supplies[demand.resource].resource.capacity
                for demand in alternative.demands
            )
            for alternative in task.alternatives
        )

    def nowhere(self, name: str, wrong: Sequence[Task]) -> str:
        """Returns why tasks of a workflow of that name can run nowhere."""
        names = [task.name for task in wrong]
        shown = ", ".join(names[:SHOWN_MAX]) + (" …" if len(names) > SHOWN_MAX else "")
        known = list(self._memory.supplies)
        there = ", ".join(known[:SHOWN_MAX]) + (" …" if len(known) > SHOWN_MAX else "")
        wanted = {
            name
            for task in wrong
            for alternative in task.alternatives
            for name in alternative.resources
        }
        named = sorted(wanted - set(known))[:SHOWN_MAX]
        unknown = f" (unknown: {', '.join(named)})" if named else ""
        return (
            f"workflow {name!r}: {len(wrong)} tasks have no alternative on resources that "
            f"are there and large enough{unknown}: {shown}; there are: {there or 'none'}"
        )

    def next_id(self, transaction: Transaction) -> str:
        """Makes room for one more workflow, and returns its id."""
        self._forget(transaction)
        return f"w{self._memory.workflows_count + 1}"

    def _forget(self, transaction: Transaction) -> None:
        memory = self._memory
        ended = [each for each in memory.workflows.values() if each.has_ended]
        held = {booking.placement.workflow for booking in memory.releasing.values()}
        gone = ended[: max(0, len(ended) - self._settings.ended_max)]
        if not gone:
            return
        transaction.note(Counted(transaction.now, memory.workflows_count, memory.bookings_count))
        for workflow in gone:
            if workflow.workflow.name not in held:
                transaction.note(WorkflowForgotten(transaction.now, workflow.workflow_id))

    def find(self, workflow_id: str) -> LiveWorkflow | None:
        """Returns a workflow by its id, or the youngest of that name."""
        found = self._memory.workflows.get(workflow_id) or self._memory.live.get(workflow_id)
        if found is not None:
            return found
        named = [w for w in self._memory.workflows.values() if w.workflow.name == workflow_id]
        return named[-1] if named else None

    def cancel(self, event: Cancel, transaction: Transaction) -> None:
        """Gives up a workflow."""
        workflow = self.find(event.workflow_id)
        if workflow is None:
            transaction.do(no_workflow(event.id, event.workflow_id))
            return
        if not workflow.has_ended and not workflow.cancelled:
            transaction.note(WorkflowCancelled(transaction.now, workflow.workflow_id))
            self._execution.close(
                workflow, transaction, running=True, reason="its workflow is cancelled"
            )
        transaction.do(ReplyWorkflow(event.id, workflow.workflow_id))

    def replan(self, event: Replan, transaction: Transaction) -> None:
        """Has planning done as soon as possible."""
        self._cycle.want_now("it was asked for")
        transaction.do(ReplyPlan(event.id, self._cycle.number))

    # --- resources -----------------------------------------------------------------------------

    def register(self, event: Register, transaction: Transaction) -> None:
        """Adds a resource."""
        known = self._memory.supplies.get(event.supply.name)
        if known is not None and known != event.supply:
            reason = f"there is another resource {event.supply.name!r}; update it instead"
            transaction.do(Refuse(event.id, Refusal.PRECONDITION, reason, "resource.name"))
            return
        if known is None:
            transaction.note(ResourceSet(transaction.now, event.supply))
        transaction.do(ReplyResource(event.id, event.supply.name))

    def update(self, event: Update, transaction: Transaction) -> None:
        """Replaces a resource; what it breaks is planned anew at once."""
        known = self._memory.supplies.get(event.supply.name)
        if known is None:
            transaction.do(self._no_resource(event.id, event.supply.name, "resource.name"))
            return
        supply = event.supply
        transaction.note(ResourceSet(transaction.now, supply))
        moved = (known.site, known.site_resource) != (supply.site, supply.site_resource)
        if moved or (supply.broken and not known.broken):
            self._gone(supply.name, transaction, f"resource {supply.name!r} is broken or has moved")
        elif known.broken and not supply.broken:
            self._cycle.want(transaction, f"resource {supply.name!r} is in order again")
        transaction.do(ReplyResource(event.id, supply.name))

    def remove(self, event: Remove, transaction: Transaction) -> None:
        """Takes a resource out."""
        if event.name not in self._memory.supplies:
            transaction.do(self._no_resource(event.id, event.name, "name"))
            return
        transaction.note(ResourceRemoved(transaction.now, event.name))
        self._gone(event.name, transaction, f"resource {event.name!r} was taken out")
        transaction.do(ReplyResource(event.id, event.name))

    def offered(self, event: Offered, transaction: Transaction) -> None:
        """Learns from a site what it has: new resources, changed ones, and those that are gone."""
        supplies = self._memory.supplies
        known: dict[str, list[Supply]] = {}
        for supply in supplies.values():
            if supply.site == event.site:
                known.setdefault(supply.site_resource or supply.name, []).append(supply)
        offers = {offer.resource.name: offer for offer in event.offers}
        for name, offer in offers.items():
            own = f"{event.site}-{name}"
            if name not in known and own not in supplies:
                resource = replace(offer.resource, name=own)
                made = Supply(resource, event.site, name, groups=offer.groups)
                transaction.note(ResourceSet(transaction.now, made))
                self._cycle.want(transaction, f"site {event.site!r} has a resource {name!r}")
            for supply in known.get(name, ()):
                now = replace(supply, resource=learned(supply.resource, offer), groups=offer.groups)
                if now != supply:
                    transaction.note(ResourceSet(transaction.now, now))
                    self._cycle.want(
                        transaction, f"resource {supply.name!r} has changed at its site"
                    )
        for name, there in known.items():
            for supply in there if name not in offers else ():
                transaction.note(ResourceRemoved(transaction.now, supply.name))
                self._gone(
                    supply.name, transaction, f"site {event.site!r} has no {name!r} any more"
                )
        closed = self._closed(event.site, transaction.now)
        self._cycle.avoid_others(event.site, tuple(self._of_others(event, offers)))
        for name in closed - self._closed(event.site, transaction.now):
            self._cycle.want(transaction, f"resource {name!r} is free now")

    def _closed(self, site: str, now: float) -> set[str]:
        # The resources of a site of which others hold everything at this moment, or which are not there.
        return {
            supply.name
            for supply in self._memory.supplies.values()
            if supply.site == site
            and any(begin <= now < end for begin, end in self._cycle.taken_of(supply.name))
        }

    def _of_others(self, event: Offered, offers: Mapping[str, ResourceOffer]) -> Iterator[Taken]:
        held: dict[str, list[Held]] = {}
        booked = (task.booking for task in self._memory.booked.values())
        bookings = [*filter(None, booked), *self._memory.releasing.values()]
        groups = {booking.group.name: booking for booking in bookings if booking.group is not None}
        for booking in groups.values():
            group, hold = booking.group, booking.holds[0]
            if group is not None and hold.site == event.site:
                mine = Held(group.begin, group.end, self._memory.shared_units(group))
                held.setdefault(hold.resource, []).append(mine)
        for booking in bookings:
            for hold in booking.holds if booking.group is None else ():
                if hold.site == event.site:
                    place = booking.placement
                    mine = Held(place.start, place.end, hold.units)
                    held.setdefault(hold.resource, []).append(mine)
        for supply in self._memory.supplies.values():
            name = supply.site_resource or supply.name
            if supply.site == event.site and name in offers:
                own = held.get(name, ())
                for begin, end in held_by_others(offers[name], own, event.begin, event.end):
                    yield Taken(supply.name, begin, end)

    def _gone(self, name: str, transaction: Transaction, reason: str) -> None:
        self._execution.resource_gone(name, transaction, reason)
        self._cycle.interrupt(transaction, reason)

    def _no_resource(self, cause: int, name: str, field: str) -> Refuse:
        known = list(self._memory.supplies)
        there = ", ".join(known[:SHOWN_MAX]) + (" …" if len(known) > SHOWN_MAX else "")
        reason = f"there is no resource {name!r}; there are: {there or 'none'}"
        return Refuse(cause, Refusal.NOT_FOUND, reason, field)
