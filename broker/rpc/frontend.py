"""What the broker's services share: the engine, and those who watch."""

import asyncio
from typing import Final

import grpc

from broker.runtime.event_loop import Engine
from broker.runtime.replanner import Searching
from broker.scheduler.commands import PublishPlan, PublishWorkflow, Refuse
from broker.scheduler.events import Event
from broker.scheduler.state import BrokerState
from broker.v1 import plan_pb2
from grms.daemon.rpc.requests import Context, Questions, refuse

NEWS_MAX: Final = 1000
"""Updates queued for a slow watcher; the oldest are dropped."""


class Frontend(Questions[Event, BrokerState]):
    """Shared by the services: the engine and the watchers."""

    refuse = Refuse
    daemon = "broker"
    engine: Engine

    def __init__(self, engine: Engine, watchers_max: int) -> None:
        super().__init__(engine)
        self._watchers_max = watchers_max
        self._workflows: dict[asyncio.Event, str] = {}
        self._plans: set[asyncio.Queue[plan_pb2.PlanNews | None]] = set()

    # --- those who watch -----------------------------------------------------------------------

    async def room(self, context: Context) -> None:
        """Ends a watching call if there are too many."""
        await self.check_journal(context)
        if len(self._workflows) + len(self._plans) >= self._watchers_max:
            reason = f"{self._watchers_max} calls watch, the most; use Get, or try again later"
            await refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, reason)

    def watch_workflow(self, workflow_id: str) -> asyncio.Event:
        """Returns an event that is set when a workflow changes or the daemon ends."""
        changed = asyncio.Event()
        self._workflows[changed] = workflow_id
        return changed

    def watch_plan(self) -> "asyncio.Queue[plan_pb2.PlanNews | None]":
        """Returns a queue of news; None ends it."""
        queue: asyncio.Queue[plan_pb2.PlanNews | None] = asyncio.Queue(NEWS_MAX)
        self._plans.add(queue)
        return queue

    def unwatch(self, what: "asyncio.Event | asyncio.Queue[plan_pb2.PlanNews | None]") -> None:
        """Ends a subscription."""
        if isinstance(what, asyncio.Event):
            self._workflows.pop(what, None)
        else:
            self._plans.discard(what)

    def publish(self, command: PublishWorkflow | PublishPlan) -> None:
        """Tells those who watch."""
        if isinstance(command, PublishWorkflow):
            for changed, workflow_id in self._workflows.items():
                if workflow_id == command.workflow_id:
                    changed.set()
            return
        end = plan_pb2.PlanEnd(number=command.number, problem=command.problem)
        plan = self.engine.state.memory.plan
        if not command.problem and plan is not None:
            end.planned, end.unplanned = len(plan.placements), len(plan.unplanned)
            if plan.fitness is not None:
                end.fitness = plan.fitness
        self._news(plan_pb2.PlanNews(end=end))

    def progress(self, searching: Searching) -> None:
        """Tells those who watch the plan how far the search is."""
        self._news(plan_pb2.PlanNews(progress=write_progress(searching)))

    def _news(self, news: plan_pb2.PlanNews | None) -> None:
        for queue in self._plans:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(news)

    def close(self) -> None:
        """Ends every call that watches: the daemon ends."""
        self.stopping = True
        self._news(None)
        for changed in self._workflows:
            changed.set()


def write_progress(searching: Searching) -> plan_pb2.Progress:
    """Returns how far a search is."""
    progress = searching.progress
    return plan_pb2.Progress(
        number=searching.number,
        reason=searching.reason,
        seconds=progress.seconds,
        generation=progress.generation,
        evaluations=progress.evaluations,
        fitness=progress.fitness,
        islands=searching.islands,
    )
