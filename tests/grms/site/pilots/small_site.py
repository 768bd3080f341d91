"""A site of one pilot, in this process: the hub, and a record of what its agent tells."""

import asyncio
import base64
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from grms.site.pilots import agent
from grms.site.pilots.hub import Hub, PilotTerms
from grms.site.pilots.messages import Hello, RunTold
from grms.util.names import Endpoint

PILOT = "p1"
TERMS = PilotTerms(processors=2, wall_time=600.0, spare=10.0, idle_limit=0.0, grace=0.5)
SCRIPT = 'set -- "$1/program"\n'


class Heard:
    """What was heard of one pilot."""

    def __init__(self) -> None:
        self.hellos: list[Hello] = []
        self.runs: dict[str, RunTold] = {}
        self.ends: list[str] = []
        self.drained: list[str] = []
        self.left = 0
        self.processor_s = 0.0
        self.parts = 0
        self.changed = asyncio.Event()

    def connected(self, _pilot: str, hello: Hello) -> None:
        """Keeps it."""
        self.hellos.append(hello)
        self.told(_pilot, list(hello.runs))

    def told(self, _pilot: str, runs: list[RunTold]) -> None:
        """Keeps what is new."""
        for run in runs:
            if run.state == "ended":
                self.ends.append(run.run)
            self.runs[run.run] = run
        self.changed.set()

    def draining(self, _pilot: str, why: str) -> None:
        """Keeps it."""
        self.drained.append(why)
        self.changed.set()

    def used(self, _pilot: str, processor_s: float) -> None:
        """Keeps it."""
        self.processor_s = processor_s

    def leaves(self, _pilot: str) -> None:
        """Counts it."""
        self.left += 1
        self.changed.set()

    def parted(self, _pilot: str) -> None:
        """Counts it."""
        self.parts += 1
        self.changed.set()


class SmallSite:
    """A hub with one pilot; `folder` has its folder and those of the runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard = Heard()
        self.said: list[str] = []
        log = structlog.wrap_logger(None, processors=[self._note])
        self.hub = Hub(folder / "pilots", time.time, log)

    def _note(self, _logger: Any, _method: str, event: Any) -> Any:
        self.said.append(str(event["event"]))
        raise structlog.DropEvent

    async def open(self, terms: PilotTerms = TERMS) -> None:
        """Listens, as a process that was started anew does."""
        await self.hub.open(Endpoint("127.0.0.1", 0), "127.0.0.1", self.heard)
        self.hub.admit(PILOT, terms)

    async def until(self, condition: Any) -> None:
        """Returns when a condition on what was heard holds."""
        async with asyncio.timeout(60):
            while not condition(self.heard):
                self.heard.changed.clear()
                await self.heard.changed.wait()

    def order(self, name: str, script: str, **more: Any) -> dict[str, Any]:
        """Returns the order for a run of a shell script."""
        now = time.time()
        program = f"#!/bin/sh\n{script}\n"
        files: list[tuple[str, str, int]] = [("values", SCRIPT, 0o400), ("program", program, 0o500)]
        given = [
            [file, base64.b64encode(text.encode()).decode(), mode] for file, text, mode in files
        ]
        known = {"run": name, "folder": str(self.folder / name), "processors": 1, "begin": now}
        return {**known, "until": now + 60.0, "limit": 600.0, "files": given, **more}

    def run(self, *orders: dict[str, Any]) -> None:
        """Sends runs."""
        self.hub.send(PILOT, runs=list(orders))

    def read(self, name: str, file: str = "stdout") -> str:
        """Returns a file of a run."""
        return (self.folder / name / file).read_text()


@asynccontextmanager
async def listening_site(folder: Path, **change: Any) -> AsyncIterator[SmallSite]:
    """Yields a site that listens; `change` is of its pilot's terms."""
    site = SmallSite(folder)
    await site.open(terms(**change))
    try:
        yield site
    finally:
        await site.hub.close()


@asynccontextmanager
async def pilot(site: SmallSite, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs the agent, with what it says in `agent.log`; it is ended, if it has not ended."""
    log = site.folder / "agent.log"
    with log.open("ab") as said:
        words = [sys.executable, agent.__file__, str(site.hub.place(PILOT))]
        process = await asyncio.create_subprocess_exec(
            *words, env={**os.environ, **environment}, stderr=said
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def terms(**change: Any) -> PilotTerms:
    """Returns the terms of a pilot."""
    return replace(TERMS, **change)
