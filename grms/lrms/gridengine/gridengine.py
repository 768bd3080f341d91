"""Grid Engine 8.1 by its own programs: `qstat`, `qconf`, `qsub`, `qrls`, `qhold`, `qdel`.

Its master loses nothing that it has acknowledged, and does not reuse numbers. But ended jobs leave the queue at once:
how they ended is in the accounting file, some time later. A waiting job that is deleted has no line there, and a
running one looks like one killed by a signal.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from grms.lrms.base import LrmsJob, LrmsPhase, LrmsRefusedError, LrmsUnavailableError
from grms.lrms.batch.guests_to_end import WaitingJob
from grms.lrms.batch.guests_without_room import GuestsWithoutRoom
from grms.lrms.batch.launcher import KEY
from grms.lrms.batch.log_file import FollowedRecords
from grms.lrms.batch.queue_snapshot import Ending, JobRow, Question, QueueSnapshot
from grms.lrms.batch.subprocesses import Answer, Programs
from grms.lrms.gridengine.gridengine_nodes import (
    GridTable,
    read_grid_table,
    read_instances,
    shown_resources,
)
from grms.lrms.gridengine.gridengine_preemption import (
    GridPreemption,
    Instances,
    find_preemption,
    read_configurations,
    waiting_jobs,
)
from grms.lrms.gridengine.gridengine_request import (
    ONE_HOST,
    Cell,
    read_resources,
    read_rule,
    resource_options,
)
from grms.lrms.gridengine.gridengine_text import (
    MARK,
    Accounted,
    WaitingRow,
    read_accounts,
    read_jobs,
    read_parts,
    read_queues,
    read_waiting,
)
from grms.lrms.job_names import shown_name, tag_of
from grms.lrms.partitions import Partition, Partitions
from grms.lrms.preemption import EndedBy, Preemption
from lrms_sim.workload.requests import Request, RequestError

RECORDS_S: Final = 30.0
"""The accounting file is written every 15 s unless `accounting_flush_time` says otherwise."""

ACCOUNTED_MAX: Final = 50_000
"""Jobs of this site whose accounting lines are kept."""

CELL_AGE_S: Final = 600.0
"""How long the cell's resources and the parallel environment are cached, real seconds."""

UTC: Final = {"TZ": "UTC"}
"""Moments are printed in this zone; `qsub` does not get it, as jobs would inherit it."""

_UNAVAILABLE = (
    "unable to contact qmaster",
    "unable to send message",
    "can't connect",
    "can't find connection",
    "can't resolve",
    "got no connection",
    "commlib error",
    "communication error",
    "connection refused",
    "timeout",
    "critical error",
)
"""Messages of Grid Engine's programs without an answer of the master; everything else is an answer."""


_NO_JOB = "does not exist"

_DELETED = (
    _NO_JOB,
    "already in deletion",
    "has deleted job",
    "has registered the job",
)
"""Messages of `qdel` for a job that has ended or will."""


@dataclass(frozen=True, slots=True)
class GridEngineSettings:
    """Grid Engine as a site configures it.

    `account` submits, and owns the site's jobs; the other values are those of the table `[lrms]`. `guests` is the queue of
    `[lrms.preemption]`, empty if it names none, `None` without that table, and `guest_wait_s` its `wait_s`, seconds; 0:
    guests wait in this queue without end.
    """

    site: str
    account: str
    accounting: str
    queues: tuple[str, ...] = ()
    parallel_environment: str = "smp"
    project: str = ""
    guest_project: str = ""
    guest_priority: int = 0
    requeue: bool = False
    memory: str = ""
    gpus: str = ""
    gpu_type: str = ""
    guests: str | None = None
    guest_wait_s: float = 0.0


class GridEngine:
    """Grid Engine as a batch system; `programs` needs its environment (`SGE_ROOT`, …)."""

    def __init__(
        self,
        programs: Programs,
        settings: GridEngineSettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._programs = programs
        self._settings = settings
        self._clock = clock
        self._prefix = f"hanse+{settings.site}+"
        self._log = FollowedRecords(settings.accounting, self._accounted, most=ACCOUNTED_MAX)
        self._wanted: OrderedDict[str, Request] = OrderedDict()
        self._cell, self._cell_asked_at = Cell({}), -CELL_AGE_S
        self._most: dict[tuple[str, str], float] = {}
        self._preemption = GridPreemption(Preemption())
        self._instances: Instances = {}
        self._waiting: list[WaitingRow] = []
        self._nodes: GridTable | None = None
        names = (settings.guests,) if settings.guests else ()
        self._no_room = GuestsWithoutRoom(
            names, settings.guest_wait_s, lambda row: self._is_own(row.name)
        )

    @property
    def forgets(self) -> bool:
        """Never."""
        return False

    def encode(self, key: str) -> str:
        """Returns a job's name, without `/` and not beginning with a digit."""
        return self._prefix + key.replace("/", "+")

    def decode(self, name: str) -> str | None:
        """Returns the key in a name."""
        key = self._tag(name).removeprefix(self._prefix).replace("+", "/")
        return key if KEY.fullmatch(key) else None

    async def open(self) -> None:
        """Does nothing."""

    async def look(self) -> QueueSnapshot:
        """Polls the queue."""
        began_at = self._clock()
        settings = self._settings
        cell = await self._known_cell()
        jobs, queues, limits, hosts = await asyncio.gather(
            self._ask("qstat", "-u", "*", "-xml", "-r"),
            self._ask("qstat", "-g", "c", "-xml"),
            self._ask("qconf", "-sq", *self._shown_queues),
            self._ask("qstat", "-f", "-F", ",".join(shown_resources(cell)), "-xml"),
        )
        try:
            parts = read_parts(_text(queues.output), _text(limits.output), settings.queues)
            beside = self._guest_parts(_text(queues.output), _text(limits.output))
            working, everything, free = read_queues(_text(queues.output), settings.queues)
            table = await asyncio.to_thread(
                read_jobs,
                _text(jobs.output),
                account=settings.account,
                prefix=self._prefix,
                processors=everything,
            )
            waiting = table.waiting_others > 0 or any(
                row.phase is LrmsPhase.WAITING for row in table.rows
            )
            guests = self._guest_queue
            nodes = await asyncio.to_thread(
                read_grid_table,
                _text(hosts.output),
                (*parts.each, *beside),
                cell,
                self._most,
                waiting=waiting,
                own=settings.queues,
                guests=guests,
                guests_wait=any(
                    row.phase is LrmsPhase.WAITING and row.partition == guests for row in table.rows
                ),
            )
            if settings.guests is not None:
                self._see(_text(jobs.output), _text(limits.output), _text(hosts.output), nodes)
        except (ValueError, KeyError) as error:
            raise LrmsUnavailableError(f"qstat's answer cannot be read: {error}") from error
        return QueueSnapshot(
            began_at,
            self._clock(),
            working,
            everything,
            free,
            table.waiting_others,
            self._no_room.told([self._with_request(row, parts) for row in table.rows]),
            partitions=parts,
            nodes=nodes,
            idle=self._idle(nodes, free),
        )

    @property
    def _guest_queue(self) -> str:
        return self._settings.guests or ""

    @property
    def _shown_queues(self) -> Sequence[str]:
        # Where guests may be ended, all: any may share hosts with theirs.
        return ("*",) if self._settings.guests is not None else self._settings.queues or ("*",)

    def _guest_parts(self, queues: str, limits: str) -> tuple[Partition, ...]:
        if not self._guest_queue:
            return ()
        return read_parts(queues, limits, (self._guest_queue,)).each

    def _idle(self, nodes: GridTable, free: int) -> int | None:
        # The slots of own queues are free whatever guests run: own jobs start on them.
        if self._settings.guests is None or self.preemption.ended_by is not EndedBy.BATCH_SYSTEM:
            return None
        queue = self._guest_queue
        groups = (group for group in nodes.groups if queue in group.partitions and not group.away)
        return min(free, sum(group.free_cores * len(group.names) for group in groups))

    async def _known_cell(self) -> Cell:
        # What operators seldom change.
        if time.monotonic() - self._cell_asked_at >= CELL_AGE_S:
            settings = self._settings
            resources = await self._ask("qconf", "-sc")
            rule = ""
            with contextlib.suppress(LrmsRefusedError):  # a cell for jobs of one processor has none
                environment = await self._ask("qconf", "-sp", settings.parallel_environment)
                rule = read_rule(_text(environment.output))
            try:
                found = read_resources(_text(resources.output))
            except ValueError as error:
                raise LrmsUnavailableError(str(error)) from error
            self._cell = Cell(
                found,
                settings.parallel_environment,
                rule,
                settings.memory,
                settings.gpus,
                settings.gpu_type,
            )
            self._cell_asked_at = time.monotonic()
        return self._cell

    def _with_request(self, row: JobRow, parts: Partitions) -> JobRow:
        request = self._wanted.get(self._tag(row.name))
        row = row if request is None else replace(row, request=request)
        if self._cell.rule != ONE_HOST and row.processors > 1:
            row = replace(row, nodes=())  # only one of its hosts is shown
        if row.phase is not LrmsPhase.WAITING or row.partition == self._settings.guests:
            return row
        why = parts.still
        if request is not None:
            why = parts.stays(request.processors, request.wall_time or 0.0)
        return replace(row, hindered=why) if why else row

    # --- guests that may be ended ------------------------------------------------------------------

    def _see(self, jobs: str, queues: str, hosts: str, nodes: GridTable) -> None:
        self._nodes = nodes
        self._instances = read_instances(hosts)
        self._preemption = find_preemption(
            read_configurations(queues),
            self._instances,
            self._settings.queues,
            self._guest_queue,
        )
        self._waiting = [row for row in read_waiting(jobs) if not self._is_guest(row.name)]

    @property
    def preemption(self) -> Preemption:
        """What happens to preemptible guests, by the last poll."""
        return self._preemption.preemption

    def placed(self, job: LrmsJob) -> LrmsJob:
        """Returns a preemptible guest with the queue of guests, if Grid Engine ends those in it."""
        if self.preemption.ended_by is not EndedBy.BATCH_SYSTEM:
            return job
        request = job.request or Request.of_processors(job.processors, job.requested_time)
        return replace(job, request=replace(request, partition=self._guest_queue))

    def is_spared(self, row: JobRow) -> bool:
        """Returns false: no guest can be protected, as a running job does not change its queue."""
        del row
        return False

    async def keep_protection(self, *, on: bool) -> bool:
        """Does nothing."""
        del on
        return False

    async def waiting(self) -> list[WaitingJob]:
        """Returns the jobs that wait for slots of the site's queues, but for guests."""
        return waiting_jobs(self._waiting, self._instances, self._settings.queues)

    def free(self) -> Mapping[str, int]:
        """Returns the slots that no job had at the last poll, by queue and host."""
        groups = () if self._nodes is None else self._nodes.groups
        return {name: each.free_cores for each in groups if not each.away for name in each.names}

    def _is_own(self, name: str) -> bool:
        key = self.decode(name)
        return key is not None and key.startswith(f"{self._settings.site}/")

    def _is_guest(self, name: str) -> bool:
        return self.decode(name) is not None and not self._is_own(name)

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """Submits a job held."""
        settings = self._settings
        if job.account:
            raise LrmsRefusedError("above Grid Engine all jobs run as the daemon's user")
        # -C '': no line of the script is an option.
        shown = shown_name(job.name, name, MARK)
        arguments = ["-terse", "-h", "-N", shown, "-C", "", "-b", "n", "-S", "/bin/sh"]
        arguments += ["-wd", str(folder), "-o", f"{folder}/stdout"]
        merged = job.program is not None and job.program.merged
        arguments += ["-j", "y"] if merged else ["-e", f"{folder}/stderr"]
        arguments += ["-l", f"h_rt={max(1, -int(-job.requested_time // 1))}"]
        request = job.request or Request.of_processors(job.processors, job.requested_time)
        again = settings.requeue and not job.once and not job.preemptible
        arguments += ["-r", "y" if again else "n", "-ac", f"HANSE={job.key}"]
        arguments += await self._resources(request)
        queues = request.partition or ",".join(settings.queues)
        arguments += ["-q", queues] if queues else []
        project = (job.partner and settings.guest_project) or settings.project
        project = request.account or project
        arguments += ["-P", project] if project else []
        if job.partner and settings.guest_priority:
            arguments += ["-p", str(settings.guest_priority)]
        answer = await self._programs.run(
            "qsub", *arguments, f"{folder}/launch", dies_with_us=True, folder=str(folder)
        )
        if answer.code != 0:
            raise _failure("qsub", answer)
        number = _text(answer.output).strip()
        if not number.isdecimal():
            raise LrmsUnavailableError(f"qsub has printed {number[:80]!r} for a job's id")
        self._wanted[name] = request
        if len(self._wanted) > ACCOUNTED_MAX:
            self._wanted.popitem(last=False)
        return number

    async def _resources(self, request: Request) -> list[str]:
        try:
            return resource_options(request, await self._known_cell())
        except RequestError as error:
            raise LrmsRefusedError(str(error)) from error

    async def release(self, row: JobRow) -> None:
        """Lifts the submission hold."""
        await self._ask("qrls", "-h", "u", row.number)

    async def hold(self, row: JobRow) -> None:
        """Holds a job again."""
        await self._ask("qhold", "-h", "u", row.number)

    async def cancel(self, row: JobRow) -> bool:
        """Ends a job; returns whether Grid Engine still had it."""
        try:
            await self._ask("qdel", row.number)
        except LrmsRefusedError as error:
            if not any(word in error.reason for word in _DELETED):
                raise
            return _NO_JOB not in error.reason
        return True

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """Ends jobs in one call; numbers are never reused here."""
        answer = await self._programs.run("qdel", ",".join(row.number for row in rows), also=UTC)
        said = f"{answer.error}\n{_text(answer.output)}"
        lines = [line for line in said.splitlines() if line.strip()]
        if answer.code != 0 and not all(any(word in line for word in _DELETED) for line in lines):
            raise _failure("qdel", answer)

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """Returns whether it was never released; no release is ever undone here."""
        del row
        return not released

    async def ending(self, question: Question) -> Ending | None:
        """Looks up the end of a job in the accounting file."""
        await asyncio.to_thread(self._log.read)
        ended = [
            line.ending
            for line in self._log.of(self._tag(question.name))
            if line.ending is not None and question.number in {"", line.number}
        ]
        return ended[-1] if ended else None

    async def knows(self, question: Question) -> Ending | bool | None:
        """Asks Grid Engine for one job."""
        if not question.number:
            return None
        try:
            await self._ask("qstat", "-j", question.number)
        except LrmsRefusedError as error:
            return False if "do not exist" in error.reason else None
        return True

    def _accounted(self, lines: list[str]) -> Iterable[tuple[str, Accounted]]:
        account = self._settings.account
        for line in read_accounts(lines, account=account, prefix=self._prefix):
            yield line.name, line

    def _tag(self, name: str) -> str:
        return tag_of(name, self._prefix, MARK)

    async def _ask(self, program: str, *arguments: str) -> Answer:
        answer = await self._programs.run(program, *arguments, also=UTC)
        if answer.code != 0:
            raise _failure(program, answer)
        return answer


def _failure(program: str, answer: Answer) -> LrmsRefusedError | LrmsUnavailableError:
    # Some of these programs report errors on standard output.
    said = f"{answer.error}\n{_text(answer.output)[:1000]}".strip()
    lines = [line for line in said.splitlines() if line.strip() and line.strip() != "Exiting."]
    text = lines[0] if lines else f"status {answer.code}, and nothing said"
    if not lines or any(word in said.lower() for word in _UNAVAILABLE):
        return LrmsUnavailableError(f"{program}: {text}")
    return LrmsRefusedError(f"{program}: {text}")


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
