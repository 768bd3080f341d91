"""Common settings and checks of all real batch systems."""

import os
import pwd
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from grms.daemon.config_base import Seconds, wrong
from grms.lrms.adapter import LrmsSettings, LrmsSite
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.checks import check_run, check_size, probe_name
from grms.lrms.batch.job_tracker import GRACE_S
from grms.lrms.batch.launcher import Spool
from grms.lrms.batch.subprocesses import AsOthers, Programs
from grms.lrms.batch.system import BatchSystem
from grms.lrms.checks import Finding, FindingLevel


def _word(value: str) -> str:
    # A name becomes part of a program's argument, several joined by commas.
    if not value or value.startswith("-") or not all(c.isalnum() or c in "_.@-+" for c in value):
        raise wrong(f"{value!r} is no name; letters, digits and _ . @ - + are allowed")
    return value


def _absolute(value: str) -> str:
    if not Path(value).is_absolute() or "\0" in value:
        raise wrong(f"{value!r} must be a path that begins with /")
    return value


def _known(site: LrmsSite) -> Path:
    # Next to the journal: identifies the folders of the jobs.
    return site.folder / f"{site.name}.spool"


T = TypeVar("T", bound="BatchSettings")
Word = Annotated[str, AfterValidator(_word)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]


class BatchSettings(LrmsSettings):
    """Keys common to the tables of all real batch systems; each has its own `system`.

    Attributes:
        poll_s: poll interval, seconds.
        program_timeout_s: time-out of a program, after which it counts as unanswered.
        programs: folder of the programs; default: a fixed search path.
        spool: folder of the jobs, seen by all nodes under this path; default: `jobs` next to the
            journal.
        requeue: whether the batch system may rerun a job if a node fails or it is preempted.
        grace_s: how long after its limit an unknown job is waited for; then its outcome is unknown.
    """

    poll_s: Seconds = 2.0
    program_timeout_s: Seconds = 20.0
    programs: AbsolutePath | None = None
    spool: AbsolutePath | None = None
    requeue: bool = False
    grace_s: Seconds = GRACE_S

    def spool_folder(self, site: LrmsSite) -> Path:
        """Returns the folder that contains those of the jobs."""
        return Path(self.spool) if self.spool is not None else site.folder / "jobs"

    def spool_of(self, site: LrmsSite) -> Spool:
        """Returns the folders of the jobs."""
        return Spool(self.spool_folder(site), site.shared, _known(site))

    def runner(
        self,
        environment: dict[str, str],
        folder: str | None = None,
        others: AsOthers | None = None,
    ) -> Programs:
        """Returns the runner of the programs.

        `environment` is that of this batch system, in addition to the user; `folder` defaults to `programs`; `others`
        runs those of other accounts, `None`: sudo does.
        """
        user = pwd.getpwuid(os.getuid())
        who = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
        return Programs(
            who | environment,
            folder=folder or self.programs,
            timeout_s=self.program_timeout_s,
            at_once=self.commands,
            others=others,
        )

    def system(self, site: str) -> BatchSystem:
        """Returns the batch system as a site of this name has it."""
        raise NotImplementedError


async def common_findings(
    settings: T,
    site: LrmsSite,
    run_s: float | None,
    found: list[Finding],
    make: Callable[[T, LrmsSite], BatchLrms],
) -> list[Finding]:
    """Returns findings plus, if nothing is missing, the checks common to all batch systems.

    `run_s` is the time limit of a test job in seconds, `None` for no job; `found` are the findings specific to the
    kind.
    """
    if any(finding.level is FindingLevel.MISSING for finding in found):
        return found
    found.append(await check_size(settings.system(site.name), site.processors))
    if run_s is not None and found[-1].level is not FindingLevel.MISSING:
        probe = replace(site, name=probe_name(site.name))
        spool = settings.spool_folder(site)
        found += await check_run(make(settings, probe), spool, probe.name, run_s)
        _known(probe).unlink(missing_ok=True)
    return found
