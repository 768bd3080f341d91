"""What the services do beside what conversations show."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.rpc import services
from broker.rpc.frontend import Frontend
from broker.rpc.services import WorkflowService
from broker.rpc.task_files import TaskFiles
from broker.scheduler.events import Cancel
from broker.scheduler.records import ResourceSet, Supply, WorkflowSubmitted
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.v1 import workflow_pb2
from grms.daemon.rpc.requests import Context
from tests.waiting import until


class Shown:
    """A frontend over a state alone; it is its own engine."""

    def __init__(self) -> None:
        workflow = Workflow("flow", (Task("t", 1.0, (Alternative.of("a"),)),))
        records = [
            ResourceSet(0.0, Supply(Resource("a"))),
            WorkflowSubmitted(0.0, "w1", "k", workflow, ()),
        ]
        self.state = BrokerState(BrokerSettings(), records)
        self.engine = self
        self.stopping = False
        self.changed = asyncio.Event()
        self.looks = 0

    async def room(self, _context: Any) -> None:
        """Has room."""

    async def look(self, _context: Any, at: Callable[[BrokerState], Any]) -> Any:
        """Reads."""
        self.looks += 1
        return at(self.state)

    def watch_workflow(self, _workflow_id: str) -> asyncio.Event:
        """Returns what is set when it changes."""
        return self.changed

    def unwatch(self, _what: Any) -> None:
        """Forgets it."""

    def change(self) -> None:
        """Changes the workflow in nothing."""
        self.state.memory.workflows["w1"].revision += 1
        self.changed.set()


async def test_changes_are_gathered_while_one_who_watches_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hundreds of them are one word, and the end is told at once."""
    monkeypatch.setattr(services, "REST_SHARE", 1e9)
    monkeypatch.setattr(services, "REST_MOST_S", 1e9)
    shown = Shown()
    service = WorkflowService(cast(Frontend, shown), cast(TaskFiles, None))
    said: list[workflow_pb2.Workflow] = []

    async def watch() -> None:
        request = workflow_pb2.WatchRequest(workflow_id="w1")
        async for message in service.Watch(request, cast(Context, None)):
            said.append(message)  # noqa: PERF401  # each is looked at as it comes

    task = asyncio.create_task(watch())
    await until(lambda: len(said) == 1)
    for _ in range(100):
        shown.change()
        await asyncio.sleep(0)
    assert len(said) == 1
    shown.state.handle(Cancel(1, "w1"), 1.0)
    shown.changed.set()
    await task
    assert [message.HasField("end_time_s") for message in said] == [False, True]
    assert shown.looks == 3
