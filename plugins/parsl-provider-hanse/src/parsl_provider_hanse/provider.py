"""The provider: Parsl's blocks are jobs of a site."""

import logging
import math
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from parsl.jobs.states import JobState, JobStatus
from parsl.launchers import SingleNodeLauncher
from parsl.launchers.base import Launcher
from parsl.providers.base import ExecutionProvider
from parsl.providers.errors import SubmitException

from grms.client import Job, SiteError, SiteUnavailable, SyncClient
from grms.client.fetching import Bringer
from grms.daemon.job_files import STDERR, STDOUT
from lrms_sim.workload.requests import Gpus, Memory, Request
from parsl_provider_hanse.blocks import Block, status_of

SOCKET_VARIABLE: Final = "HANSE_SOCKET"

_WALLTIME: Final = re.compile(r"(\d+):([0-5]\d):([0-5]\d)", re.ASCII)

_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class HanseProvider(ExecutionProvider):
    """Runs blocks at a site or at its partners.

    Every block has a key, and is handed in with it until the site answers: it stays one job. Its identifier for Parsl
    is the job's, or the key if the answer has not come. Other fields have the meaning that they have in Parsl's own
    providers.

    Attributes:
        socket: of the site; by default the variable `HANSE_SOCKET`.
        sites: that may run blocks, partners or the site itself by their names. Each must reach Parsl's executor.
        home_only: the site itself runs them; by default unless `sites` has names. False without names: any site.
        exclusive: no other job runs on a block's nodes; by default if `cores_per_node` is not given.
        mem_per_node: memory of each node, GB (2^30 bytes).
        gpus_per_node: GPUs of each node.
        walltime: requested time, `HH:MM:SS`.
        partition, account, qos: by the names of the site.
        constraint: features that each node must have, with `&` or `,` between.
        worker_init: lines of bash that come before the launcher.
        timeout_s: of a call to the site with its retries, seconds.
        label: in Parsl's log.
        status_polling_interval: seconds between two questions for all blocks.

    Raises:
        ValueError: no site could take such blocks, or none is named.
    """

    socket: str = ""
    sites: Sequence[str] = ()
    home_only: bool | None = None
    nodes_per_block: int = 1
    cores_per_node: int | None = None
    mem_per_node: float | None = None
    gpus_per_node: int | None = None
    exclusive: bool | None = None
    walltime: str = "00:10:00"
    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    worker_init: str = ""
    launcher: Launcher = field(default_factory=SingleNodeLauncher)
    init_blocks: int = 1
    min_blocks: int = 0
    max_blocks: int = 1
    parallelism: float = 1.0
    timeout_s: float = 30.0
    label: str = "hanse"
    status_polling_interval: int = 5
    script_dir: str | None = field(default=None, init=False, repr=False)
    resources: dict[object, Block] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Checks what blocks ask for; the site is first called with the first block."""
        if isinstance(self.sites, str):
            raise ValueError(f"sites is {self.sites!r}; it must be a list of names")  # noqa: TRY004  # as all else
        self.socket = self.socket or os.environ.get(SOCKET_VARIABLE, "")
        if not self.socket:
            raise ValueError(f"no site is named: socket or {SOCKET_VARIABLE}")
        self._request(1)
        # Parsl asks and cancels from different threads.
        self._lock = Lock()
        self._is_away = False

    def _site(self) -> SyncClient:
        # For a few calls: Parsl does not say when it needs a provider no more.
        return SyncClient(self.socket, timeout_s=self.timeout_s)

    # --- submission ------------------------------------------------------------------------------

    def submit(self, command: str, tasks_per_node: int, job_name: str = "parsl.auto") -> object:
        """Submits a block, and returns its identifier.

        Raises:
            SubmitException: the site refuses it.
        """
        try:
            block = Block(self._wanted(command, tasks_per_node, job_name))
            with self._lock, self._site() as site:
                refused = self._hand_in(site, [block])
        except (SiteError, ValueError) as error:
            raise SubmitException(job_name, str(error)) from error
        if refused:
            raise SubmitException(job_name, refused[block.key])
        self.resources[name := block.job_id or block.key] = block
        return name

    def _wanted(self, command: str, tasks_per_node: int, name: str) -> dict[str, Any]:
        request = self._request(tasks_per_node)
        lines = ["#!/bin/bash"]
        if self.cores_per_node is not None:
            lines.append(f"export PARSL_CORES={request.cores_per_task}")
        if self.mem_per_node is not None:
            lines.append(f"export PARSL_MEMORY_GB={self.mem_per_node:g}")
        script_dir = self.script_dir or ""
        lines.append(self.worker_init)
        lines.append(self.launcher(command, tasks_per_node, self.nodes_per_block, script_dir))
        return {
            "key": f"parsl-{secrets.token_hex(16)}",
            "name": name,
            "needs": request,
            "script": "\n".join([*lines, ""]),
            "sites": list(self.sites),
            "home_only": not self.sites if self.home_only is None else self.home_only,
        }

    def _request(self, tasks_per_node: int) -> Request:
        nodes = self.nodes_per_block
        tasks = nodes * tasks_per_node
        cores = (self.cores_per_node or tasks_per_node) // tasks_per_node
        memory = None if self.mem_per_node is None else math.ceil(self.mem_per_node * 1024)
        return Request(
            tasks=tasks,
            cores_per_task=max(cores, 1),
            nodes_min=nodes,
            nodes_max=nodes if tasks > 1 else None,  # one task is on one node in any case
            tasks_per_node=tasks_per_node if tasks > 1 else None,
            memory=None if memory is None else Memory(memory, "node"),
            gpus=Gpus(self.gpus_per_node, "node") if self.gpus_per_node else None,
            features=tuple(each for each in self.constraint.replace("&", ",").split(",") if each),
            exclusive=self.cores_per_node is None if self.exclusive is None else self.exclusive,
            wall_time=_seconds(self.walltime),
            partition=self.partition,
            account=self.account,
            qos=self.qos,
        )

    def _hand_in(self, site: SyncClient, blocks: Sequence[Block]) -> dict[str, str]:
        # Returns why the site has refused blocks, by their keys; what it does not answer for is tried again.
        refused = {}
        for block in blocks:
            try:
                block.job_id = site.submit(**block.wanted).job_id
                self._is_away = False
            except SiteUnavailable as error:
                self._tell_away(error)
                break
            except SiteError as error:
                refused[block.key] = str(error)
        return refused

    def _tell_away(self, error: SiteError) -> None:
        # Once, and not with every question.
        if not self._is_away:
            _logger.warning("the site does not answer; blocks stay with it: %s", error)
        self._is_away = True

    # --- until they have ended -------------------------------------------------------------------

    def status(self, job_ids: Sequence[object]) -> list[JobStatus]:
        """Returns how blocks are; one call asks for all of them. While the site is away: how they were."""
        with self._lock, self._site() as site:
            blocks = [self.resources[each] for each in job_ids]
            lost = [each for each in blocks if each.is_open and not each.job_id]
            for key, reason in self._hand_in(site, lost).items():
                found = next(each for each in lost if each.key == key)
                found.status = JobStatus(JobState.FAILED, f"The site has refused it: {reason}")
                found.has_files = False
            try:
                self._ask(site, [each for each in blocks if each.is_open and each.job_id])
                for each in blocks:
                    if not each.is_open and each.has_files:
                        self._bring_streams(site, each)
            except SiteUnavailable as error:
                self._tell_away(error)
            return [each.told() for each in blocks]

    def _ask(self, site: SyncClient, blocks: Sequence[Block]) -> None:
        if not blocks:
            return
        answers = site.get_many([each.job_id for each in blocks])
        self._is_away = False
        for block, answer in zip(blocks, answers, strict=True):
            if isinstance(answer, Job):
                block.status = status_of(answer, block.status.state)
            elif not isinstance(answer, SiteUnavailable):
                block.status = JobStatus(JobState.FAILED, f"The site has no such job: {answer}")
                block.has_files = False

    def _bring_streams(self, site: SyncClient, block: Block) -> None:
        # Parsl shows them with errors of blocks.
        if self.script_dir is None:
            return
        folder = Path(self.script_dir, block.job_id)
        try:
            results = site.results(block.job_id)
            if not results.complete:
                return
            folder.mkdir(parents=True, exist_ok=True)
            bring = Bringer(partial(site.fetch, block.job_id), folder, force=True)
            brought = {
                file.name: str(folder / file.name)
                for file in results.files
                if not file.problem and not bring(file)
            }
            block.status.stdout_path = brought.get(STDOUT)
            block.status.stderr_path = brought.get(STDERR)
        except SiteUnavailable:
            raise
        except (SiteError, OSError) as error:
            _logger.warning("what job %s has printed is not brought: %s", block.job_id, error)
        block.has_files = False

    # --- the end ---------------------------------------------------------------------------------

    def cancel(self, job_ids: Sequence[object]) -> list[bool]:
        """Requests the end of blocks, and of those whose answers were lost; returns for each whether that is done."""
        with self._lock, self._site() as site:
            blocks = [self.resources[each] for each in job_ids]
            try:
                lost = [each for each in blocks if each.is_open and not each.job_id]
                found = site.get_many(keys=[each.key for each in lost]) if lost else []
                for block, answer in zip(lost, found, strict=True):
                    if isinstance(answer, Job):
                        block.job_id = answer.job_id
                    elif not isinstance(answer, SiteUnavailable):
                        block.status = JobStatus(JobState.SCALED_IN, "The site never had it.")
                        block.has_files = False
                named = [each for each in blocks if each.is_open and each.job_id]
                answers = site.cancel_many([each.job_id for each in named]) if named else []
            except SiteError as error:
                _logger.warning("these blocks may go on: %s: %s", list(job_ids), error)
                return [not each.is_open for each in blocks]
            for block, told in zip(named, answers, strict=True):
                block.is_cancelled = not isinstance(told, SiteUnavailable)
            return [each.is_cancelled or not each.is_open for each in blocks]


def _seconds(walltime: str) -> float:
    found = _WALLTIME.fullmatch(walltime)
    if found is None:
        raise ValueError(f"walltime is {walltime!r}; it must be HH:MM:SS")
    hours, minutes, seconds = map(int, found.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds
