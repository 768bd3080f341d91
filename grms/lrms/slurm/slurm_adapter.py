"""The Slurm adapter and its table `[lrms]`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from grms.daemon.config_base import Model, Seconds, wrong
from grms.lrms.account_mapping import own_name
from grms.lrms.adapter import Adapter, LrmsSite
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.checks import check_spool, check_user
from grms.lrms.batch.deputies import Deputies
from grms.lrms.batch.settings import AbsolutePath, BatchSettings, Word, common_findings
from grms.lrms.batch.subprocesses import Programs
from grms.lrms.checks import Finding, FindingLevel
from grms.lrms.native_jobs import NativeJobNotes, Watched
from grms.lrms.preemption import FileLines, Preemption
from grms.lrms.privileges import gains_rights
from grms.lrms.slurm.slurm import SETTLE_S, Slurm, SlurmSettings
from grms.lrms.slurm.slurm_check import SlurmCheck
from grms.lrms.slurm.slurm_native_jobs import SlurmNativeJobs
from grms.lrms.slurm.slurm_preemption import GuestPartitions
from grms.lrms.slurm.slurm_preemption_lines import preemption_lines

_SHAPE = "{processors}"


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


class WatchTable(Model):
    """Jobs that users submit to Slurm itself, and that may go to partners.

    Attributes:
        comment: what users set with `sbatch --comment=`; default: comments do not matter.
        partition: one whose jobs all count; default: none.
        poll_s: poll interval, seconds.
        programs: folder of `squeue`, `scontrol` and `scancel` with operator privileges; default: the
            same programs as for everything else.
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


class PreemptionTable(Model):
    """Guests that may be ended for other jobs.

    Attributes:
        partition: in which they run, of a lower `PriorityTier` than own jobs'; default: that of all jobs, and the daemon alone
            ends them.
        protected: in which those run that are protected at times; default: none is protected.
        switch: words before `update partitionname=… preemptmode=…` that run `scontrol` with the right to do it.
        wait_s: a guest that has waited so long for room in these partitions goes home, seconds; 0: it waits on.
    """

    partition: Word | None = None
    protected: Word | None = None
    switch: list[str] = Field(default_factory=list)
    wait_s: float = Field(default=60.0, ge=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_protected(self) -> Self:
        if (self.protected is None) != (not self.switch):
            raise wrong("lrms.preemption.protected and lrms.preemption.switch need each other")
        if self.protected is not None and self.partition in {None, self.protected}:
            raise wrong(
                "lrms.preemption.protected needs another lrms.preemption.partition beside it"
            )
        if any(not word or "\0" in word for word in self.switch):
            raise wrong("lrms.preemption.switch has words that are empty, or have a NUL character")
        return self

    @property
    def needs_sudo(self) -> bool:
        """Whether protection is switched through sudo."""
        return any(Path(word).name == "sudo" for word in self.switch[:1])


class SlurmTable(BatchSettings):
    """The table of a Slurm.

    Attributes:
        kind: `slurm`.
        settle_s: age from which a submission survives a crash of the controller; jobs are held
            until then.
        configuration: path of slurm.conf; default: Slurm's own.
        partitions: in use; default: the default one, and all processors.
        own_jobs: `as-user`: jobs of the site's users are submitted as these users, through sudo; `by-client`: likewise,
            by processes of these users, deputies, so that there is no sudo, for partners' jobs neither; `as-daemon`: as
            the daemon's account, so that each can read, cancel and change all others, and act as an operator.
        account: charged by Slurm.
        qos: quality of service.
        guest_account: `account` of partners' jobs; default: the same.
        guest_qos: likewise.
        guest_nice: nice value of partners' jobs, relative to the site's own.
        shape: options of sbatch that request `{processors}`.
        completion_log: file of jobcomp/filetxt, if this host can read it.
        sacct: use `sacct` for the ends of jobs that the controller has forgotten.
        watch: jobs that users submit to Slurm itself; default: they are never touched.
        preemption: guests that may be ended for other jobs; default: none is.
        keep_places: own jobs that partners may send home wait in the queue meanwhile, with a start far ahead.
        images: whether nodes run jobs in container images; default: if there is an oci.conf beside slurm.conf.
    """

    kind: Literal["slurm"]
    settle_s: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = SETTLE_S
    configuration: AbsolutePath | None = None
    partitions: list[Word] = Field(default_factory=list)
    own_jobs: Literal["as-user", "by-client", "as-daemon"] = "as-user"
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
    preemption: PreemptionTable | None = None
    keep_places: bool = True
    images: bool | None = None

    @property
    def slurm_programs(self) -> Programs:
        """What runs Slurm's programs as the daemon, and as others through sudo."""
        return self.runner(self._place)

    @property
    def as_users(self) -> bool:
        """Whether own users' jobs run as these users."""
        return self.own_jobs != "as-daemon"

    @property
    def by_deputies(self) -> bool:
        """Whether what runs as other accounts is run by these accounts' deputies."""
        return self.own_jobs == "by-client"

    def new_deputies(self) -> Deputies | None:
        """Returns the place where deputies come; `None` if there are none."""
        return Deputies(self.program_timeout_s, self._place) if self.by_deputies else None

    @property
    def _place(self) -> dict[str, str]:
        return {} if self.configuration is None else {"SLURM_CONF": self.configuration}

    @property
    def watch_programs(self) -> Programs | None:
        """The runner of the watcher's programs; `None` without a watcher."""
        return None if self.watch is None else self.runner(self._place, self.watch.programs)

    @property
    def needs_sudo(self) -> list[str]:
        """Keys of the table by which programs run with other rights than the daemon's."""
        found = ["lrms.own_jobs"] if self.own_jobs == "as-user" else []
        programs = None if self.watch is None else self.watch.programs
        return [
            *found,
            *(["lrms.watch.programs"] if programs and gains_rights(Path(programs)) else []),
            *(["lrms.preemption.switch"] if self.preemption and self.preemption.needs_sudo else []),
        ]

    @property
    def ends_no_guests(self) -> str:
        """Why guests are never ended: nobody has set it up; empty if they may be."""
        return "" if self.preemption else "there is no [lrms.preemption]"

    def watched(self, site: LrmsSite) -> Watched | None:
        """Returns the watcher of users' own jobs, if configured."""
        watch, programs = self.watch, self.watch_programs
        if watch is None or programs is None:
            return None
        system = SlurmNativeJobs(
            programs, comment=watch.comment or "", partition=watch.partition or ""
        )
        notes = NativeJobNotes(site.folder / f"{site.name}.native-jobs")
        return Watched(system, notes, watch.poll_s, self.settle_s)

    def of_site(self, site: str) -> SlurmSettings:
        """Returns what a site of this name says of its Slurm."""
        guests = self.preemption
        return SlurmSettings(
            site,
            own_name(),
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
            watched_comment=(self.watch and self.watch.comment) or "",
            watched_partition=(self.watch and self.watch.partition) or "",
            guests=None
            if guests is None
            else GuestPartitions(guests.partition or "", guests.protected or ""),
            switch=() if guests is None else tuple(guests.switch),
            guest_wait_s=0.0 if guests is None else guests.wait_s,
            configuration=self.configuration or "",
            images=self.images,
        )

    def system(
        self,
        site: str,
        account_of: Callable[[str], str] = lambda _key: "",
        deputies: Deputies | None = None,
    ) -> Slurm:
        """Returns Slurm for a site of this name.

        `account_of` returns the account as which a job runs by its key; empty for the site's own. `deputies` run what
        runs as other accounts; `None`: sudo does.
        """
        return Slurm(self.runner(self._place, others=deputies), self.of_site(site), account_of)


def _slurm(settings: SlurmTable, site: LrmsSite) -> BatchLrms:
    spool, deputies = settings.spool_of(site), settings.new_deputies()
    system = settings.system(site.name, spool.account, deputies)
    return BatchLrms(
        system,
        spool,
        poll_s=settings.poll_s,
        settle_s=settings.settle_s,
        grace_s=settings.grace_s,
        repeats=settings.requeue,
        site=site.name,
        own_user="" if settings.own_jobs == "as-daemon" else own_name(),
        watched=settings.watched(site),
        deputies=deputies,
        preempting=None if settings.preemption is None else system,
        unpreempted=Preemption(why="the site's file has no table lrms.preemption"),
        placing=system,
        kept=settings.keep_places,
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
        users=None if settings.own_jobs == "as-daemon" else site.users,
        by_deputies=settings.by_deputies,
        named=site.partitions,
        watch=settings.watch_programs,
        keep_places=settings.keep_places,
    )
    found += await special.findings()
    return await common_findings(settings, site, run_s, found, _slurm)


async def _preemption_lines(settings: SlurmTable, site: LrmsSite) -> list[FileLines]:
    return await preemption_lines(
        settings.slurm_programs, settings.of_site(site.name), site.accounts, settings.configuration
    )


ADAPTER = Adapter(SlurmTable, _slurm, _check_slurm, _preemption_lines)
