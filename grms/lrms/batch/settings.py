"""What the tables `[lrms]` of all real batch systems have in common, and what is looked at for all of them."""

import os
import pwd
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from grms.kit.models import Seconds, wrong
from grms.lrms.adapter import LrmsSettings, LrmsSite
from grms.lrms.batch.adapter import BatchLrms
from grms.lrms.batch.checks import check_run, check_size, probe_name
from grms.lrms.batch.launch import Spool
from grms.lrms.batch.ledger import GRACE_S
from grms.lrms.batch.programs import Programs
from grms.lrms.batch.system import BatchSystem
from grms.lrms.checks import Finding, FindingLevel


def _word(value: str) -> str:
    # A name goes into an argument of a program, several of them with commas between.
    if not value or value.startswith("-") or not all(c.isalnum() or c in "_.@-+" for c in value):
        raise wrong(f"{value!r} is no name; letters, digits and _ . @ - + are allowed")
    return value


def _absolute(value: str) -> str:
    if not Path(value).is_absolute() or "\0" in value:
        raise wrong(f"{value!r} must be a path that begins with /")
    return value


def _known(site: LrmsSite) -> Path:
    # Beside the journal: by it the folders of the jobs are recognised.
    return site.folder / f"{site.name}.spool"


T = TypeVar("T", bound="BatchSettings")
Word = Annotated[str, AfterValidator(_word)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]


class BatchSettings(LrmsSettings):
    """What the tables of all real batch systems have; each has its own `system`.

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
    """Returns findings, and where nothing is missing, what is looked at for every batch system.

    Args:
        settings: the table.
        site: above the batch system.
        run_s: how long a job may take that is run for this, seconds; None for no job.
        found: what was found about this kind of batch system.
        make: makes the batch system of a site.
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
