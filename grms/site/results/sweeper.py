"""Deletes what jobs have left, and what they were given, when it is old enough.

Of a job that the batch system may still have, or that has not ended for this site, nothing is touched.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import structlog

from grms.lrms.folders import JobFolders
from grms.site.engine.engine import Engine
from grms.site.facts.memory import Memory
from grms.site.facts.wire import given_inputs
from grms.site.links.pseudonyms import GuestOwners
from grms.site.results.inputs import GUEST, user_input
from grms.site.results.store import ResultStore

PAUSE_S: Final = 3600.0
"""How often it is looked what is old, seconds."""

INPUTS_KEPT_S: Final = 3600.0
"""So long after they were handed over files wait for their job, seconds."""

Log = structlog.typing.FilteringBoundLogger


def living(memory: Memory, key: str) -> bool:
    """Returns whether a job's folder is still needed.

    Args:
        memory: of the site.
        key: of the job, as the batch system's adapter has it.
    """
    if key in memory.at_lrms:
        return True
    home, _, number = key.split("/")
    job = memory.jobs.get(int(number)) if home == memory.settings.name else None
    return job is not None and job.outcome is None


class Sweeper:
    """Cleans folders from time to time.

    Args:
        engine: knows which jobs live.
        folders: of the batch system's jobs; None where they have none.
        store: of what came home.
        inputs: of what jobs are given.
        owners: whose guests' jobs are.
        keep_s: how long after its last change a folder is kept, seconds.
        log: where it is told what went.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        engine: Engine,
        folders: JobFolders | None,
        store: ResultStore,
        inputs: ResultStore,
        owners: GuestOwners,
        *,
        keep_s: float,
        log: Log,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._folders = folders
        self._store = store
        self._inputs = inputs
        self._owners = owners
        self._keep_s = keep_s
        self._log = log
        self._clock = clock

    async def run(self) -> None:
        """Cleans until it is cancelled."""
        while True:
            try:
                await self.sweep()
            except OSError as error:
                self._log.warning("results_not_cleaned", problem=str(error))
            await asyncio.sleep(PAUSE_S)

    async def sweep(self) -> int:
        """Deletes what is old, and returns how many folders that were.

        Raises:
            OSError: a folder cannot be read.
        """
        before, count = self._clock() - self._keep_s, 0
        if self._folders is not None:
            for key in await asyncio.to_thread(self._folders.stale, before):
                # A job may have come meanwhile; its key is known before its folder is written.
                if not living(self._engine.state.memory, key):
                    await asyncio.to_thread(self._folders.remove, key)
                    count += 1
        for job_id in await asyncio.to_thread(self._store.stale, before):
            await asyncio.to_thread(self._store.remove, job_id)
            count += 1
        count += await self._sweep_inputs()
        # A job's owner is told after its acceptance, when it is known here.
        self._owners.sweep(lambda key: living(self._engine.state.memory, key))
        if count:
            self._log.info("results_cleaned", folders=count)
        return count

    async def _sweep_inputs(self) -> int:
        before, count = self._clock() - INPUTS_KEPT_S, 0
        memory = self._engine.state.memory
        for name in await asyncio.to_thread(self._inputs.stale, before):
            # What a job is given is made new before the job is known, so it is not looked at here.
            if name.startswith(GUEST):
                needed = living(memory, name.removeprefix(GUEST).replace("+", "/"))
            else:
                needed = any(
                    name == user_input(job.user, file)
                    for job in memory.jobs.values()
                    if job.outcome is None
                    for file in given_inputs(job.payload)
                )
            if not needed:
                await asyncio.to_thread(self._inputs.remove, name)
                count += 1
        return count
