"""A batch system with the hands of its people, and a site above it, for the scenes of `conformance`."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from grms.lrms.base import (
    LrmsEvent,
    LrmsJob,
    LrmsPhase,
    LrmsUnavailableError,
    Paused,
    Program,
)
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.system import BatchSystem
from grms.lrms.slurm.slurm import Slurm
from tests.grms.lrms.told import Told

DEADLINE_S = 300.0
NAME = "2nd job: größe|'$x'\n"
"""What users call their jobs."""

POLL_S = 0.4


class World(Protocol):
    """A batch system, and what people do to it.

    Attributes:
        slots: processors of the machine.
        preempts: whether urgent jobs take the nodes of others.
        nodes_fail: whether it notices that a node fails, and ends what ran there.
        forgets: whether a crash undoes what was acknowledged shortly before.
        limit_s: a requested time after which a job is ended soon, where `end_limit` is not needed.
    """

    slots: int
    preempts: bool
    nodes_fail: bool
    forgets: bool
    limit_s: float

    def system(self, site: str, *, requeue: bool, node: int) -> BatchSystem:
        """Returns it as an adapter of a site has it.

        Args:
            site: name of the site.
            requeue: whether its jobs may run anew.
            node: number of a node that all its jobs run on, so that scenes keep out of each other's
                way; 0 for any.
        """

    def cancel(self, number: str) -> None:
        """Ends a job by other hands."""

    def hold(self, number: str) -> None:
        """Holds a job as its user does."""

    def unhold(self, number: str) -> None:
        """Lets go of it."""

    def requeue(self, number: str) -> None:
        """Lets a running job wait again."""

    def hasten(self, number: str) -> None:
        """Ends the pause that a requeued job may have to make."""

    def end_limit(self, number: str) -> None:
        """Brings the end of a job's requested time near."""

    def others(self, processors: int, *, tasks: int = 1, held: bool = False) -> str:
        """Submits jobs of somebody else that last, and returns their number."""

    def break_node(self, number: str) -> None:
        """Lets the node of a running job fail."""

    def mend_nodes(self) -> None:
        """Lets all nodes work."""

    def preempt(self, number: str) -> str:
        """Submits an urgent job that takes a job's node, and returns its number."""

    def kill_controller(self) -> None:
        """Ends it without a word."""

    def start_controller(self) -> None:
        """Starts it again."""


class Deaf:
    """A batch system whose answers to submissions get lost, as often as wanted.

    Args:
        system: the batch system.
    """

    def __init__(self, system: BatchSystem) -> None:
        self._system = system
        self.lose = 0
        self.submissions = 0
        self.encode = system.encode
        self.decode = system.decode
        self.open = system.open
        self.look = system.look
        self.release = system.release
        self.hold = system.hold
        self.cancel = system.cancel
        self.cancel_all = system.cancel_all
        self.held_since_submission = system.held_since_submission
        self.ending = system.ending
        self.knows = system.knows
        self.forgets = system.forgets

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """See `BatchSystem.submit`."""
        number = await self._system.submit(name, job, folder)
        self.submissions += 1
        if self.lose:
            self.lose -= 1
            raise LrmsUnavailableError("the answer was lost")
        return number


@dataclass
class Site(Told):
    """An adapter, and what it has told.

    Attributes:
        world: of the batch system.
        name: of the site.
        spool: folder of its jobs.
        requeue: whether its jobs may run anew.
        node: that they run on; 0 for any.
    """

    world: World
    name: str
    spool: Path
    requeue: bool = False
    node: int = 0
    events: list[LrmsEvent] = field(default_factory=list)
    lrms: BatchLrms = field(init=False)
    system: Deaf = field(init=False)

    def __post_init__(self) -> None:
        """Makes the first adapter."""
        self.again()

    def again(self) -> None:
        """Begins a new life: an adapter that remembers nothing."""
        system = self.world.system(self.name, requeue=self.requeue, node=self.node)
        self.system = Deaf(system)
        self.lrms = BatchLrms(
            self.system,
            Spool(self.spool),
            poll_s=POLL_S,
            settle_s=0.0,
            repeats=self.requeue,
            placing=system if isinstance(system, Slurm) else None,
        )
        self.lrms.listen(self.events.extend)

    def job(
        self,
        number: int,
        script: str,
        processors: int = 1,
        *,
        seconds: float = 600.0,
        program: Program | None = None,
    ) -> LrmsJob:
        """Returns a job of this site that notes each of its runs."""
        text = f"#!/bin/sh\necho ran >>runs\n{script}\n"
        key = f"{self.name}/1/{number}"
        return LrmsJob(key, processors, seconds, program=program or Program(text), name=NAME)

    def kinds(self, key: str) -> list[str]:
        """Returns the same in words, but for what a poll may see between a job's start and end, or may not."""
        return [type(event).__name__ for event in self.of(key) if not isinstance(event, Paused)]

    async def phase(self, key: str, phase: LrmsPhase) -> None:
        """Returns when a job is in a phase."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                record = await self.lrms.look_up(key)
                if record is not None and record.phase is phase:
                    return
                await asyncio.sleep(POLL_S / 2)

    async def number(self, key: str) -> str:
        """Returns the batch system's id of a job, as its table has it."""
        table = await self.system.look()
        rows = [row for row in table.rows if self.system.decode(row.name) == key]
        assert len(rows) == 1, rows
        return rows[0].number

    def go(self, key: str) -> None:
        """Lets a job end that was made with `WAITS`."""
        (self.spool / key.replace("/", "+") / "go").touch()

    def output(self, key: str) -> str:
        """Returns what a job has printed."""
        return (self.spool / key.replace("/", "+") / "stdout").read_text()
