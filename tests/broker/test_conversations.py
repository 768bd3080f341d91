"""What the broker's services are asked and answer, word by word: see tests/conversations.py."""

import asyncio
from pathlib import Path

import pytest
import structlog
from grpc import aio

from broker.executor.contents import Contents
from broker.rpc.frontend import Frontend
from broker.rpc.services import PlanService, ResourceService, WorkflowService
from broker.rpc.task_files import TaskFiles
from broker.runtime.event_loop import Engine, SiteCommand
from broker.runtime.journal import Journal
from broker.scheduler.commands import (
    Book,
    Launch,
    LaunchGroup,
    Move,
    PublishPlan,
    PublishWorkflow,
    StartPlanning,
    StopPlanning,
)
from broker.scheduler.events import Booked, Ended, MoveRefused, Released, Started, Tick
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import Booking
from broker.v1 import (
    plan_pb2,
    plan_pb2_grpc,
    resource_pb2,
    resource_pb2_grpc,
    workflow_pb2,
    workflow_pb2_grpc,
)
from grms.util.outcomes import Outcome
from tests.broker.plain_planner import plan_plainly
from tests.conversations import Talk

FILES = sorted((Path(__file__).parent / "conversations").glob("*.txt"))


class HandClock:
    """Time stands still until the conversation says that it goes on."""

    def __init__(self) -> None:
        self.moment = 0.0

    def now(self) -> float:
        """Returns the time, seconds."""
        return self.moment

    def rest_s(self, moment: float) -> float | None:
        """Returns for how long to sleep: for ever, or not at all."""
        return 0.0 if moment <= self.moment else None


class Hands:
    """A site that does what it is told at once, and a planner without a search."""

    def __init__(self, state: BrokerState, journal: Journal, clock: HandClock) -> None:
        self._engine = Engine(
            state,
            journal.append,
            self,
            clock,  # type: ignore[arg-type]  # as much of a clock as is needed
            log=structlog.get_logger(),
        )
        self.run = self._engine.run
        self._clock = clock
        self.frontend = Frontend(self._engine, 2)
        self._runs: dict[str, tuple[Booking, float]] = {}

    def site(self, command: SiteCommand) -> None:
        """Has something done at a site."""
        assert not isinstance(command, LaunchGroup), "no resource here takes groups"
        name = command.booking.booking
        if isinstance(command, Book):
            self._engine.tell(Booked(0, name, ("1",)))
        elif isinstance(command, Launch):
            self._runs["/".join(command.booking.placement.key)] = command.booking, self._clock.now()
            self._engine.tell(Started(0, name, self._clock.now()))
        elif isinstance(command, Move):
            self._engine.tell(MoveRefused(0, name, "it cannot be had"))
        else:
            self._engine.tell(Released(0, name))

    def plan(self, command: StartPlanning | StopPlanning) -> None:
        """Plans without searching."""
        if isinstance(command, StartPlanning):
            self._engine.tell(plan_plainly(command.number, command.planning_input))

    def publish(self, command: PublishWorkflow | PublishPlan) -> None:
        """Tells those who watch."""
        self.frontend.publish(command)

    async def act(self, line: str) -> None:
        """Lets time pass, or a run end."""
        word, value = line.split()
        if word == "now":
            self._clock.moment = float(value)
            self._engine.tell(Tick(0))
        else:
            outcome = {"ends": Outcome.COMPLETED, "fails": Outcome.FAILED}[word]
            booking, start = self._runs.pop(value)
            self._engine.tell(Ended(0, booking.booking, outcome, start, self._clock.now()))
        await self._engine.settled()


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
async def test_a_conversation_goes_as_it_is_written(path: Path, tmp_path: Path) -> None:
    """Every answer and every refusal is the same, letter by letter."""
    clock = HandClock()
    settings = BrokerSettings(cycle=100, slot=20, pause=1, margin=2, tasks_max=5)
    server = aio.server()
    with Journal(tmp_path / "b") as journal:
        state = BrokerState.recover(settings, journal.records(), epoch="b")
        hands = Hands(state, journal, clock)
        frontend = hands.frontend
        contents = Contents(tmp_path / "files", file_bytes=100, total_bytes=1000)
        files = TaskFiles(frontend, contents, lambda _: None)
        workflow_pb2_grpc.add_WorkflowServiceServicer_to_server(
            WorkflowService(frontend, files), server
        )
        plan_pb2_grpc.add_PlanServiceServicer_to_server(
            PlanService(frontend, lambda: None, str), server
        )
        resource_pb2_grpc.add_ResourceServiceServicer_to_server(
            ResourceService(frontend, ["riga"]), server
        )
        server.add_insecure_port(f"unix:{tmp_path}/s")
        await server.start()
        task = asyncio.create_task(hands.run(), name="engine")
        try:
            async with aio.insecure_channel(f"unix:{tmp_path}/s") as channel:
                modules = (workflow_pb2, plan_pb2, resource_pb2)
                await Talk(channel, modules, hands.act).check(path)
        finally:
            await server.stop(None)
            task.cancel()
            await asyncio.wait([task])


def test_there_are_conversations_about_every_service() -> None:
    """Each method that ends by itself is asked for somewhere."""
    asked = {
        line.split()[1]
        for path in FILES
        for line in path.read_text().splitlines()
        if line[:1] == ">"
    }
    services = (
        service
        for module in (workflow_pb2, plan_pb2, resource_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
    )
    there = {
        f"{service.name}.{method}" for service in services for method in service.methods_by_name
    }
    assert there - asked == {"PlanService.Watch"}, "it goes on until the broker ends"
