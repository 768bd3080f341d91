"""Deletes expired results and inputs of jobs.

Folders of jobs that the batch system may still have, or that have not ended for this site, are left alone.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import structlog

from grms.daemon.file_store import ResultStore
from grms.daemon.uploads import user_input
from grms.lrms.job_directories import JobFolders
from grms.site.model.state_tables import StateTables
from grms.site.peers.pseudonyms import GuestOwners
from grms.site.runtime.event_loop import Engine
from grms.site.staging.quotas import GUEST
from grms.site.wire.convert import given_inputs

LOOKED_AT_MAX: Final = 100
"""Jobs whose inputs are looked at before others have their turn."""

PAUSE_S: Final = 3600.0
"""Interval, seconds."""

INPUTS_KEPT_S: Final = 3600.0
"""How long uploaded files wait for their job, seconds."""

Log = structlog.typing.FilteringBoundLogger


class Store(Protocol):
    """Folders by name, some of them old."""

    def stale(self, before: float) -> Sequence[str]:
        """Returns the names of those in which nothing has changed since a moment, seconds since 1970."""

    def remove(self, name: str, /) -> None:
        """Deletes one."""


def living(memory: StateTables, key: str) -> bool:
    """Returns whether a job's folder is still needed; `key` is that of the batch system's adapter."""
    if key in memory.at_lrms:
        return True
    home, _, number, *_ = key.split("/")
    job = memory.jobs.get(int(number)) if home == memory.settings.name else None
    return job is not None and job.outcome is None


class Retention:
    """Deletes expired folders from time to time.

    `folders` are those of the batch system's jobs, `runs` those of programs in pilots, `None` if there are none. A folder expires `keep_s` seconds after
    its last change; `clock` is in seconds since 1970.
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
        runs: JobFolders | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._folders = folders
        self._runs = runs
        self._store = store
        self._inputs = inputs
        self._owners = owners
        self._keep_s = keep_s
        self._log = log
        self._clock = clock
        self._problems: list[str] = []

    async def run(self) -> None:
        """Cleans until it is cancelled."""
        while True:
            await self.sweep()
            await asyncio.sleep(PAUSE_S)

    async def sweep(self) -> int:
        """Deletes what is old, and returns how many folders that were; what cannot be deleted keeps nothing else."""
        before, memory = self._clock() - self._keep_s, self._engine.state.memory
        count, self._problems = 0, []
        if self._folders is not None:
            # A new job's key is known before its folder is written.
            count += await self._old(self._folders, before, lambda key: living(memory, key))
        if self._runs is not None:
            runs = {one.run_key for one in memory.reservations.open.values()}
            count += await self._old(self._runs, before, runs.__contains__)
        count += await self._old(self._store, before, lambda _: False)
        # Inputs are touched before the job is known, so jobs need not be checked here.
        count += await self._old_inputs(self._clock() - INPUTS_KEPT_S)
        # A job's owner is set after its acceptance, when it is known here.
        with self._trying():
            self._owners.sweep(lambda key: living(memory, key))
        if self._problems:
            first, *more = self._problems
            self._log.warning("results_not_cleaned", problem=first, more=len(more))
        if count:
            self._log.info("results_cleaned", folders=count)
        return count

    async def _old(self, store: Store, before: float, needed: Callable[[str], bool]) -> int:
        count = 0
        with self._trying():
            for name in await asyncio.to_thread(store.stale, before):
                if needed(name):
                    continue
                with self._trying():
                    await asyncio.to_thread(store.remove, name)
                    count += 1
        return count

    async def _old_inputs(self, before: float) -> int:
        old: Sequence[str] = ()
        with self._trying():
            old = await asyncio.to_thread(self._inputs.stale, before)
        if not old:
            return 0  # what open jobs are given need not be read
        memory = self._engine.state.memory
        runs = memory.reservations.open.values()
        given = {user_input(one.owner, file) for one in runs for file in given_inputs(one.payload)}
        looked_at = 0
        for job in tuple(memory.jobs.values()):
            if job.outcome is None:
                given.update(user_input(job.user, file) for file in given_inputs(job.program))
                looked_at += 1
                if looked_at % LOOKED_AT_MAX == 0:
                    await asyncio.sleep(0)

        def needed(name: str) -> bool:
            if name.startswith(GUEST):
                key = name.removeprefix(GUEST).replace("+", "/")
                return living(self._engine.state.memory, key)
            # A job that has come meanwhile has touched its files.
            return name in given or not self._inputs.is_stale(name, before)

        return await self._old(self._inputs, before, needed)

    @contextmanager
    def _trying(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._problems.append(str(error))
