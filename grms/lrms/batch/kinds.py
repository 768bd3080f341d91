"""Real batch systems as a site's configuration names them: the tables `[lrms]`, and what is made of them."""

import os
import pwd
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from grms.kit.models import Model, Seconds, wrong
from grms.lrms.adapter import Adapter, LrmsSettings, LrmsSite
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.checks import (
    check_accounting,
    check_run,
    check_size,
    check_spool,
    check_user,
    probe_name,
)
from grms.lrms.batch.gridengine import RECORDS_S, GridEngine, GridEngineSettings
from grms.lrms.batch.gridengine_check import GridEngineCheck
from grms.lrms.batch.launch import Spool
from grms.lrms.batch.ledger import GRACE_S
from grms.lrms.batch.programs import Programs
from grms.lrms.batch.slurm import SETTLE_S, Slurm, SlurmSettings
from grms.lrms.batch.slurm_check import SlurmCheck
from grms.lrms.batch.slurm_watch import SlurmWatch
from grms.lrms.checks import Finding, FindingLevel
from grms.lrms.originals import OriginalNotes, Watched
from grms.lrms.privileges import gains_rights

_SHAPE = "{processors}"


def _word(value: str) -> str:
    # A name goes into an argument of a program, several of them with commas between.
    if not value or value.startswith("-") or not all(c.isalnum() or c in "_.@-+" for c in value):
        raise wrong(f"{value!r} is no name; letters, digits and _ . @ - + are allowed")
    return value


def _absolute(value: str) -> str:
    if not Path(value).is_absolute() or "\0" in value:
        raise wrong(f"{value!r} must be a path that begins with /")
    return value


def _shape(value: list[str]) -> list[str]:
    for word in value:
        if not word.startswith("--"):
            raise wrong(
                f"{word!r} must be an option of sbatch in its long form, such as --ntasks={_SHAPE}"
            )
        if word.replace(_SHAPE, "").count("{") + word.replace(_SHAPE, "").count("}"):
            raise wrong(f"{word!r} has braces; the only ones that stand for something are {_SHAPE}")
    if sum(word.count(_SHAPE) for word in value) != 1:
        raise wrong(f"exactly one of the options must have {_SHAPE}")
    return value


def _known(site: LrmsSite) -> Path:
    # Beside the journal: by it the folders of the jobs are recognised.
    return site.folder / f"{site.name}.spool"


T = TypeVar("T", "SlurmTable", "GridEngineTable")
Word = Annotated[str, AfterValidator(_word)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]


class BatchSettings(LrmsSettings):
    """What the tables of all real batch systems have.

    Attributes:
        poll_s: seconds from look to look.
        program_timeout_s: a program that has not ended by then counts as no answer.
        programs: folder of the programs; left out, they are looked for along a fixed path.
        spool: folder of the jobs, which all nodes see under this path; left out: `jobs` beside the
            journal.
        requeue: whether the batch system may run a job anew when a node fails or it is preempted.
        grace_s: so long after its limit a job that nobody knows is waited for; then it ends as unknown.
    """

    poll_s: Seconds = 2.0
    program_timeout_s: Seconds = 20.0
    programs: AbsolutePath | None = None
    spool: AbsolutePath | None = None
    requeue: bool = False
    grace_s: Seconds = GRACE_S

    def spool_folder(self, site: LrmsSite) -> Path:
        """Returns where the folders of the jobs are."""
        return Path(self.spool) if self.spool is not None else site.folder / "jobs"

    def spool_of(self, site: LrmsSite) -> Spool:
        """Returns the folders of the jobs."""
        return Spool(self.spool_folder(site), site.shared, _known(site))

    def runner(self, environment: dict[str, str], folder: str | None = None) -> Programs:
        """Returns what runs the programs.

        Args:
            environment: of this batch system, beside who the user is.
            folder: of the programs; None for that of `programs`.
        """
        user = pwd.getpwuid(os.getuid())
        who = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
        return Programs(
            who | environment,
            folder=folder or self.programs,
            timeout_s=self.program_timeout_s,
            at_once=self.commands,
        )


class WatchTable(Model):
    """Jobs that users hand to Slurm itself, and that may go to partners.

    Attributes:
        comment: what users say with `sbatch --comment=`; left out: no comment counts.
        partition: one whose jobs all count; left out: none does.
        poll_s: seconds from look to look.
        programs: folder of `squeue`, `scontrol` and `scancel` with the rights of an operator; left out:
            the same programs as for everything else.
    """

    comment: Word | None = None
    partition: Word | None = None
    poll_s: Seconds = 5.0
    programs: AbsolutePath | None = None

    @model_validator(mode="after")
    def _check_words(self) -> Self:
        if self.comment is None and self.partition is None:
            raise wrong("lrms.watch needs a comment or a partition by which jobs are known")
        return self


class SlurmTable(BatchSettings):
    """The table of a Slurm.

    Attributes:
        kind: `slurm`.
        settle_s: so old a submission must be that a crash of the controller cannot undo it; jobs
            are held until then.
        configuration: path of slurm.conf; left out: where Slurm has it.
        partitions: that are used; left out: the default one, and all processors.
        account: that Slurm charges.
        qos: quality of service.
        guest_account: the same for partners' jobs; left out: as above.
        guest_qos: same.
        guest_nice: by so much partners' jobs come behind the site's own.
        shape: options of sbatch that ask for `{processors}`.
        completion_log: path of the file of jobcomp/filetxt, where this host can read it.
        sacct: ask `sacct` how jobs ended that the controller has forgotten.
        watch: jobs that users hand to Slurm itself; left out: they are never touched.
    """

    kind: Literal["slurm"]
    settle_s: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = SETTLE_S
    configuration: AbsolutePath | None = None
    partitions: list[Word] = Field(default_factory=list)
    account: Word | None = None
    qos: Word | None = None
    guest_account: Word | None = None
    guest_qos: Word | None = None
    guest_nice: Annotated[int, Field(ge=0, le=2**31 - 4)] = 0
    shape: Annotated[list[str], AfterValidator(_shape)] = Field(
        default_factory=lambda: [f"--ntasks={_SHAPE}"]
    )
    completion_log: AbsolutePath | None = None
    sacct: bool = False
    watch: WatchTable | None = None

    @property
    def slurm_programs(self) -> Programs:
        """What runs Slurm's programs."""
        return self.runner(self._place)

    @property
    def _place(self) -> dict[str, str]:
        return {} if self.configuration is None else {"SLURM_CONF": self.configuration}

    @property
    def watch_programs(self) -> Programs | None:
        """What runs the programs of the watcher; None without one."""
        return None if self.watch is None else self.runner(self._place, self.watch.programs)

    @property
    def needs_sudo(self) -> list[str]:
        """Keys of the table by which programs run with other rights than the daemon's."""
        programs = None if self.watch is None else self.watch.programs
        return ["lrms.watch.programs"] if programs and gains_rights(Path(programs)) else []

    def watched(self, site: LrmsSite) -> Watched | None:
        """Returns what watches users' own jobs; None where that is not wanted."""
        watch, programs = self.watch, self.watch_programs
        if watch is None or programs is None:
            return None
        system = SlurmWatch(programs, comment=watch.comment or "", partition=watch.partition or "")
        notes = OriginalNotes(site.folder / f"{site.name}.originals")
        return Watched(system, notes, watch.poll_s, self.settle_s)

    def of_site(self, site: str) -> SlurmSettings:
        """Returns what a site of this name says of its Slurm."""
        return SlurmSettings(
            site,
            pwd.getpwuid(os.getuid()).pw_name,
            partitions=tuple(self.partitions),
            slurm_account=self.account or "",
            qos=self.qos or "",
            guest_account=self.guest_account or "",
            guest_qos=self.guest_qos or "",
            guest_nice=self.guest_nice,
            shape=tuple(self.shape),
            requeue=self.requeue,
            completion_log=self.completion_log or "",
            sacct=self.sacct,
        )

    def system(self, site: str, account_of: Callable[[str], str] = lambda _key: "") -> Slurm:
        """Returns Slurm as a site of this name has it.

        Args:
            site: its name.
            account_of: says as which account a job runs, by its key; empty for the site's own.
        """
        return Slurm(self.slurm_programs, self.of_site(site), account_of)


class GridEngineTable(BatchSettings):
    """The table of a Grid Engine.

    Attributes:
        kind: `gridengine`.
        root: the folder that it calls SGE_ROOT.
        cell: that it calls SGE_CELL.
        master_port: of its master, where that is not in /etc/services.
        execution_port: of its execution daemons, likewise.
        queues: cluster queues that are used; left out: all.
        parallel_environment: of jobs with more than one processor.
        project: of all jobs.
        guest_project: of partners' jobs; left out: as above.
        guest_priority: of partners' jobs, 0 or less.
        records_s: seconds after which the accounting file has the end of a job.
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
    records_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = RECORDS_S

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
        )
        place |= {"SGE_ROOT": self.root, "SGE_CELL": self.cell}
        return self.runner(place), settings

    def system(self, site: str) -> GridEngine:
        """Returns Grid Engine as a site of this name has it."""
        return GridEngine(*self.asked(site))


def _slurm(settings: SlurmTable, site: LrmsSite) -> BatchLrms:
    spool = settings.spool_of(site)
    return BatchLrms(
        settings.system(site.name, spool.account),
        spool,
        poll_s=settings.poll_s,
        settle_s=settings.settle_s,
        grace_s=settings.grace_s,
        repeats=settings.requeue,
        watched=settings.watched(site),
    )


def _gridengine(settings: GridEngineTable, site: LrmsSite) -> BatchLrms:
    return BatchLrms(
        settings.system(site.name),
        settings.spool_of(site),
        poll_s=settings.poll_s,
        settle_s=0.0,
        records_s=settings.records_s,
        grace_s=settings.grace_s,
        repeats=settings.requeue,
    )


async def _check_slurm(settings: SlurmTable, site: LrmsSite, run_s: float | None) -> list[Finding]:
    spool = settings.spool_folder(site)
    found = [check_user(os.getuid()), *check_spool(spool)]
    if any(finding.level is FindingLevel.MISSING for finding in found):
        return found
    special = SlurmCheck(
        settings.slurm_programs,
        settings.of_site(site.name),
        settings.settle_s,
        spool,
        accounts=site.accounts,
        watch=settings.watch_programs,
    )
    found += await special.findings()
    return await _common(settings, site, run_s, found, _slurm)


async def _check_gridengine(
    settings: GridEngineTable, site: LrmsSite, run_s: float | None
) -> list[Finding]:
    found = [check_user(os.getuid()), *check_spool(settings.spool_folder(site))]
    found.append(check_accounting(settings.accounting))
    if any(finding.level is FindingLevel.MISSING for finding in found):
        return found
    special = GridEngineCheck(
        *settings.asked(site.name), settings.records_s, settings.spool_folder(site)
    )
    found += await special.findings()
    return await _common(settings, site, run_s, found, _gridengine)


async def _common(
    settings: T,
    site: LrmsSite,
    run_s: float | None,
    found: list[Finding],
    make: Callable[[T, LrmsSite], BatchLrms],
) -> list[Finding]:
    # What is asked of every batch system, where nothing is missing that it needs.
    if any(finding.level is FindingLevel.MISSING for finding in found):
        return found
    found.append(await check_size(settings.system(site.name), site.processors))
    if run_s is not None and found[-1].level is not FindingLevel.MISSING:
        probe = replace(site, name=probe_name(site.name))
        spool = settings.spool_folder(site)
        found += await check_run(make(settings, probe), spool, probe.name, run_s)
        _known(probe).unlink(missing_ok=True)
    return found


SLURM = Adapter(SlurmTable, _slurm, _check_slurm)
GRID_ENGINE = Adapter(GridEngineTable, _gridengine, _check_gridengine)
