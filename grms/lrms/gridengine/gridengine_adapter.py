"""The Grid Engine adapter and its table `[lrms]`.

Nothing imports this module: it is found by its entry point in the group `hanse.lrms`, as plugins are.
"""

import os
import pwd
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from grms.daemon.config_base import Model, wrong
from grms.lrms.account_mapping import own_name
from grms.lrms.adapter import Adapter, LrmsSite
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.checks import check_accounting, check_spool, check_user, shared_account
from grms.lrms.batch.settings import AbsolutePath, BatchSettings, Word, common_findings
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.checks import Finding, FindingLevel
from grms.lrms.gridengine.gridengine import RECORDS_S, GridEngine, GridEngineSettings
from grms.lrms.gridengine.gridengine_check import GridEngineCheck
from grms.lrms.gridengine.gridengine_preemption_lines import preemption_lines
from grms.lrms.preemption import FileLines, Preemption

_TRUST: Final = "above Grid Engine it is always so: let in users alone who trust each other"


class GridPreemptionTable(Model):
    """Guests that may be ended for other jobs.

    Attributes:
        queue: in which they run, subordinate to the queues of own jobs; default: those of all jobs, and the daemon alone
            ends them.
        wait_s: a guest that has waited so long for room in this queue goes home, seconds; 0: it waits on.
    """

    queue: Word | None = None
    wait_s: float = Field(default=60.0, ge=0.0, allow_inf_nan=False)


class GridEngineTable(BatchSettings):
    """The table of a Grid Engine.

    Attributes:
        kind: `gridengine`.
        root: SGE_ROOT.
        cell: SGE_CELL.
        master_port: of its master, if not in /etc/services.
        execution_port: of its execution daemons, likewise.
        queues: cluster queues in use; default: all.
        parallel_environment: for jobs with more than one processor.
        project: for all jobs.
        guest_project: for partners' jobs; default: `project`.
        guest_priority: for partners' jobs, 0 or less.
        memory: resource of which a job is given the memory that it asks for, such as `h_vmem`; default: none,
            and such a job is refused.
        gpus: likewise for GPUs.
        gpu_type: likewise for the type of GPUs.
        records_s: delay in seconds until the accounting file has the end of a job.
        preemption: guests that may be ended for other jobs; default: none is.
    """

    kind: Literal["gridengine"]
    root: AbsolutePath = "/var/lib/gridengine"
    cell: Word = "default"
    master_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    execution_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    queues: list[Word] = Field(default_factory=list)
    parallel_environment: Word = "smp"
    project: Word | None = None
    guest_project: Word | None = None
    guest_priority: Annotated[int, Field(ge=-1023, le=0)] = 0
    memory: Word | None = None
    gpus: Word | None = None
    gpu_type: Word | None = None
    records_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = RECORDS_S
    preemption: GridPreemptionTable | None = None

    @model_validator(mode="after")
    def _check_preemption(self) -> Self:
        # A job that names no queue may come into any, and own jobs are not to come into that of guests.
        if self.preemption is not None and not self.queues:
            raise wrong("lrms.preemption needs lrms.queues, the queues of own jobs")
        if self.preemption is not None and self.preemption.queue in self.queues:
            raise wrong("lrms.preemption.queue cannot be one of lrms.queues, those of own jobs")
        return self

    @property
    def ends_no_guests(self) -> str:
        """Why guests are never ended: nobody has set it up; empty if they may be."""
        return "" if self.preemption else "there is no [lrms.preemption]"

    @property
    def accounting(self) -> str:
        """Path of the accounting file."""
        return f"{self.root}/{self.cell}/common/accounting"

    def asked(self, site: str) -> tuple[Programs, GridEngineSettings]:
        """Returns what runs the programs, and what a site of this name says of its Grid Engine."""
        ports = {"SGE_QMASTER_PORT": self.master_port, "SGE_EXECD_PORT": self.execution_port}
        place = {name: str(port) for name, port in ports.items() if port is not None}
        settings = GridEngineSettings(
            site,
            pwd.getpwuid(os.getuid()).pw_name,
            self.accounting,
            queues=tuple(self.queues),
            parallel_environment=self.parallel_environment,
            project=self.project or "",
            guest_project=self.guest_project or "",
            guest_priority=self.guest_priority,
            requeue=self.requeue,
            memory=self.memory or "",
            gpus=self.gpus or "",
            gpu_type=self.gpu_type or "",
            guests=None if self.preemption is None else self.preemption.queue or "",
            guest_wait_s=0.0 if self.preemption is None else self.preemption.wait_s,
        )
        place |= {"SGE_ROOT": self.root, "SGE_CELL": self.cell}
        return self.runner(place), settings

    def system(self, site: str) -> GridEngine:
        """Returns Grid Engine as a site of this name has it."""
        return GridEngine(*self.asked(site))


def _gridengine(settings: GridEngineTable, site: LrmsSite) -> BatchLrms:
    system = settings.system(site.name)
    return BatchLrms(
        system,
        settings.spool_of(site),
        poll_s=settings.poll_s,
        settle_s=0.0,
        records_s=settings.records_s,
        grace_s=settings.grace_s,
        repeats=settings.requeue,
        preempting=None if settings.preemption is None else system,
        unpreempted=Preemption(why="the site's file has no table lrms.preemption"),
        site=site.name,
    )


async def _check_gridengine(
    settings: GridEngineTable, site: LrmsSite, run_s: float | None
) -> list[Finding]:
    found = [check_user(os.getuid()), *check_spool(settings.spool_folder(site))]
    found.append(check_accounting(settings.accounting))
    found.append(shared_account(own_name(), _TRUST))
    if any(finding.level is FindingLevel.MISSING for finding in found):
        return found
    special = GridEngineCheck(
        *settings.asked(site.name),
        settings.records_s,
        settings.spool_folder(site),
        named=site.partitions,
    )
    found += await special.findings()
    return await common_findings(settings, site, run_s, found, _gridengine)


async def _preemption_lines(settings: GridEngineTable, site: LrmsSite) -> list[FileLines]:
    return await preemption_lines(*settings.asked(site.name))


ADAPTER = Adapter(GridEngineTable, _gridengine, _check_gridengine, _preemption_lines)
