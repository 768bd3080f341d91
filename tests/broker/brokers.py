"""Brokers as processes of their own, for tests that end them in every way."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from broker.client import BrokerClient, CallError
from broker.model.workflow import Alternative, Task, Workflow
from broker.runtime.journal import Journal
from broker.scheduler.lifecycle import DONE, TaskState
from broker.scheduler.records import (
    Supply,
    TaskEnded,
    TaskFixed,
    TaskFreed,
    TaskLaunched,
    TasksAdded,
    WorkflowOpened,
    WorkflowSubmitted,
)

SERVE = (
    "import sys; from pathlib import Path; from broker.daemon import serve; "
    "from grms.daemon.logs import configure_logs; serve(Path(sys.argv[1]), configure_logs(form='json'))"
)

FAST = """
[cycle]
every_s = {every}
slot_s = {slot}
pause_s = 0.1
gather_s = 0.1
margin_s = {margin}
[search]
budget_s = {budget}
workers = 1
"""
"""A cycle of three minutes in a second."""


def configure(
    folder: Path,
    more: str = "",
    *,
    margin: float = 0.5,
    every: float = 1.0,
    slot: float = 0.6,
) -> Path:
    """Writes a configuration and returns its path.

    Args:
        folder: for the file, the socket and the journal.
        more: of the file.
        margin: `cycle.margin_s`, seconds.
        every: `cycle.every_s`, seconds from one planning to the next.
        slot: `cycle.slot_s`, seconds; a search takes a quarter of it.
    """
    path = folder / "broker.toml"
    path.write_text(
        f'listen.socket = "{folder}/gorba.sock"\njournal.path = "broker.journal"\n'
        + FAST.format(margin=margin, every=every, slot=slot, budget=slot / 4)
        + more
    )
    return path


class Process:
    """A broker's process.

    Args:
        config: its configuration.
    """

    def __init__(self, config: Path) -> None:
        self.config = config
        self.log = config.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # this program
                [sys.executable, "-c", SERVE, str(self.config)],
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            )

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process is not None
        return self._process.pid

    def hangup(self) -> None:
        """Sends it SIGHUP."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def logged(self, event: str) -> dict[str, Any]:
        """Returns the first that it has logged of an event, as soon as it has."""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            for line in self.log.read_text(encoding="utf-8").splitlines():
                if f'"{event}"' in line:
                    found: dict[str, Any] = json.loads(line)
                    return found
            time.sleep(0.02)
        raise AssertionError(self.log.read_text(encoding="utf-8"))

    def end(self, number: signal.Signals) -> int:
        """Sends it a signal and returns its status once it has ended."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(300)

    def wait(self) -> int:
        """Returns its status once it has ended by itself."""
        assert self._process is not None
        return self._process.wait(300)

    def stop(self) -> None:
        """Ends it where it lives."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(300)


@contextmanager
def serving(config: Path) -> Iterator[tuple[Process, BrokerClient]]:
    """Yields a broker that serves and a client of it."""
    process = Process(config)
    process.start()
    try:
        with BrokerClient(config.parent / "gorba.sock", timeout_s=300) as client:
            client.workflows()
            yield process, client
    finally:
        process.stop()


def diamond(name: str, work: float, *resources: str, first: float | None = None) -> Workflow:
    """Returns a workflow of four tasks: one, then two side by side, then one.

    Args:
        name: of the workflow.
        work: of each task.
        resources: on which each may run.
        first: the work of the first task where something is to happen to it while it runs, so that a
            slow machine has the time for it.
    """
    alternatives = tuple(Alternative.of(each) for each in resources)
    return Workflow(
        name,
        (
            Task("a", work if first is None else first, alternatives),
            Task("b", work, alternatives, ("a",)),
            Task("c", work, alternatives, ("a",)),
            Task("d", work, alternatives, ("b", "c")),
        ),
    )


def until_running(client: BrokerClient, name: str, seconds: float = 300) -> str:
    """Returns the resource on which the first task of a workflow runs, as soon as one does."""
    end = time.monotonic() + seconds
    for message in client.watch(name):
        for task in message.tasks:
            if task.state == 5:  # TASK_STATE_RUNNING
                return task.demands[0].resource
        assert time.monotonic() < end, "no task has begun"
    raise AssertionError("the workflow has ended")


def until_back(client: BrokerClient) -> None:
    """Returns when a broker that was started again answers.

    A call over a connection that broke with the last one fails, where nobody has noticed that yet.
    """
    end = time.monotonic() + 300
    while gone(client):
        assert time.monotonic() < end, "the broker does not answer"


def register(client: BrokerClient, *supplies: Supply) -> None:
    """Adds resources."""
    for supply in supplies:
        client.register(supply)


def check_history(journal: Path) -> dict[str, int]:  # noqa: C901  # one case for each kind of record
    """Checks the whole journal: precedence, and that no task was completed twice.

    Returns:
        How often each task was launched.
    """
    launches: dict[str, int] = {}
    names: dict[str, str] = {}
    before: dict[str, list[str]] = {}
    completed: dict[str, float] = {}
    grown: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {}
    with Journal(journal) as opened:
        for record in opened.records():
            if isinstance(record, WorkflowSubmitted):
                flow = record.workflow
                for task in flow.tasks:
                    before[f"{flow.name}/{task.name}"] = [
                        f"{flow.name}/{each}" for each in task.predecessors
                    ]
            elif isinstance(record, WorkflowOpened):
                grown[record.workflow_id] = (record.workflow.name, {})
            elif isinstance(record, TasksAdded):
                name, arrays = grown[record.workflow_id]
                for addition in record.additions:
                    for task, _ in addition.tasks(arrays):
                        assert f"{name}/{task.name}" not in before, "added twice"
                        before[f"{name}/{task.name}"] = [f"{name}/{e}" for e in task.predecessors]
                    if addition.elements:
                        arrays[addition.task.name] = addition.names
            elif isinstance(record, TaskFixed):
                names[record.booking] = "/".join(record.placement.key)
            elif isinstance(record, TaskLaunched):
                name = names[record.booking]
                launches[name] = launches.get(name, 0) + 1
                assert name not in completed, f"{name} was launched after its end"
                assert all(each in completed for each in before[name]), f"{name} was too early"
            elif isinstance(record, TaskEnded) and record.state in DONE:
                name = names[record.booking]
                assert name not in completed, f"{name} was completed twice"
                assert record.start_time is not None
                ends = [completed[each] for each in before[name]]
                assert all(end <= record.start_time for end in ends), f"{name} started too early"
                completed[name] = record.end_time
    return launches


def history(journal: Path) -> list[tuple[str, str, TaskState]]:
    """Returns what became of every booking that ended or was given up: task, site, state."""
    names: dict[str, tuple[str, str]] = {}
    found = []
    with Journal(journal) as opened:
        for record in opened.records():
            if isinstance(record, TaskFixed):
                names[record.booking] = "/".join(record.placement.key), record.holds[0].site
            elif isinstance(record, TaskFreed):
                found.append((*names[record.booking], TaskState.WAITING))
            elif isinstance(record, TaskEnded):
                found.append((*names[record.booking], record.state))
    return found


def gone(client: BrokerClient) -> bool:
    """Returns whether nobody answers any more."""
    with suppress(CallError):
        client.workflows()
        return False
    return True
