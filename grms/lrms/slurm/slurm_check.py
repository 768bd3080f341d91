"""Checks of a site's Slurm, without changing anything.

`sbatch --test-only` says whether a job would be accepted with the site's options, without submitting one.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from grms.lrms.account_mapping import (
    check_account,
    check_user,
    has_lists,
    sudoers_line,
)
from grms.lrms.base import LrmsJob, LrmsRefusedError, LrmsUnavailableError
from grms.lrms.batch.checks import shared_account
from grms.lrms.batch.subprocesses import Answer, Programs
from grms.lrms.checks import Finding, FindingLevel, doubt, good, missing, named_partitions
from grms.lrms.preemption import EndedBy
from grms.lrms.slurm.sbatch_text import NO_NODE
from grms.lrms.slurm.slurm import Slurm, SlurmSettings
from grms.lrms.slurm.slurm_images import KEY, OCI, find_oci
from grms.lrms.slurm.slurm_limits import read_limit
from grms.lrms.slurm.slurm_native_jobs import check_rights
from grms.lrms.slurm.slurm_nodes import SlurmRules, keeps_places, read_nodes
from grms.lrms.slurm.slurm_preemption import (
    BY_PARTITION,
    OFF,
    GuestPartitions,
    PreemptedPartition,
    PreemptionRules,
    SlurmPreemption,
    find_preemption,
    read_preempted_partitions,
    read_preemption_rules,
)
from grms.lrms.slurm.slurm_text import read_job

PROGRAMS: Final = ("squeue", "sbatch", "scontrol", "scancel")
"""Programs that a site runs."""

TESTED: Final = (22, 5)
"""The tested version."""

WRITTEN_S: Final = 5.0
"""How long Slurm's controller may take to save what it has acknowledged."""

GUEST_PROGRAMS: Final = ("sbatch", "scontrol", "scancel")
"""Those that run as other accounts."""

ACCOUNTS_TRIED: Final = 10
"""Most accounts tested; a map may have thousands."""

_AS_USER: Final = 'lrms.own_jobs = "as-user", unless its users are one person'

PRINTS: Final = "grms lrms preemption"
"""Prints the lines for preemption."""

CLOCK_S: Final = 3.0
"""Larger differences of clocks are reported, seconds."""


class SlurmCheck:
    """Checks a Slurm.

    `folder` must exist, for the script passed to sbatch; `accounts` are those for partners' jobs besides the daemon's
    own, `users` own users as whom jobs are to be tried, `None` if these run as the daemon's; with `by_deputies` these
    accounts have deputies in place of sudo, which are the daemon's to ask; `named` are partitions that tables of names
    name; `watch` runs the programs of the watcher, if there is one; with `keep_places` own jobs keep their places by markers.
    """

    def __init__(
        self,
        programs: Programs,
        settings: SlurmSettings,
        settle_s: float,
        folder: Path,
        *,
        accounts: Sequence[str] = (),
        users: Sequence[str] | None = (),
        by_deputies: bool = False,
        named: Sequence[str] = (),
        watch: Programs | None = None,
        keep_places: bool = True,
    ) -> None:
        self._keep_places = keep_places
        self._accounts = accounts
        self._users = users
        self._by_deputies = by_deputies
        self._named = named
        self._watch = watch
        self._programs = programs
        self._settings = settings
        self._settle_s = settle_s
        self._folder = folder

    async def findings(self) -> list[Finding]:
        """Returns what was found, up to the first thing without which nothing else can be known."""
        found = await self._version()
        if any(finding.cure for finding in found if finding.what == "programs"):
            return found
        configuration = await self._configuration()
        if isinstance(configuration, Finding):
            return [*found, configuration]
        found.append(clock(configuration, time.time()))
        found += await self._partitions()
        found += await self._options()
        found += await self._preemption(configuration)
        found.append(places(configuration, keep=self._keep_places))
        oci = find_oci(self._settings.configuration, configuration.get("SLURM_CONF", ""))
        found.append(images(said=self._settings.images, found=oci))
        found += await self._own()
        found += await self._lent()
        found += hidden(configuration, own=self._users is not None)
        found.append(await self._records(configuration))
        found.append(held(self._settle_s))
        if self._watch is not None:
            found += await check_rights(self._watch, self._settings.account)
        return found

    async def _version(self) -> list[Finding]:
        answers: list[Answer] = []
        for program in PROGRAMS:
            try:
                answers.append(await self._programs.run(program, "--version"))
            except LrmsUnavailableError as error:
                cure = "install Slurm's clients (Debian: slurm-client), or set lrms.programs"
                return [missing("programs", error.reason, cure)]
        first = answers[0]
        if first.code != 0:
            cure = "set lrms.configuration to the slurm.conf in use, which this host needs as well"
            return [missing("programs", _last(first.error), cure)]
        return [version(_text(first.output))]

    async def _configuration(self) -> dict[str, str] | Finding:
        answer = await self._asked("scontrol", "show", "config")
        if answer.code != 0:
            cure = "start slurmctld and munge; is lrms.configuration the slurm.conf in use?"
            return missing("controller", _last(answer.error), cure)
        return read_configuration(_text(answer.output))

    async def _partitions(self) -> list[Finding]:
        answer = await self._asked("scontrol", "show", "partition", "--all", "--oneliner")
        rows = [read_job(line) for line in _text(answer.output).splitlines() if line.strip()]
        there = [row.get("PartitionName", "") for row in rows]
        found = partitions(rows, self._settings.partitions)
        return found + named_partitions(there, self._named, "partition")

    async def _options(self) -> list[Finding]:
        slurm, found = Slurm(self._programs, self._settings), []
        for what, guest in (("own jobs", False), ("partners' jobs", True)):
            options = slurm.options(LrmsJob("", 1, 60.0, partner="guest" if guest else ""))
            found.append(options_taken(what, options, await self._tested(options)))
        return found

    async def _preemption(self, configuration: dict[str, str]) -> list[Finding]:
        # Whether guests are ended for others' jobs, and by whom.
        words = ("scontrol", "--all", "--oneliner", "show")
        shown = [await self._asked(*words, what) for what in ("partition", "node")]
        parts = read_preempted_partitions(_text(shown[0].output))
        rules, guests = read_preemption_rules(configuration), self._settings.guests
        if guests is None:
            return [unended(rules, parts, self._settings.partitions)]
        try:
            groups = read_nodes(_text(shown[1].output), SlurmRules())
        except ValueError as error:
            return [doubt("preemption", str(error), "look at scontrol show node")]
        found = ended_guests(rules, parts, find_preemption(rules, parts, groups, guests), guests)
        if any(finding.level is FindingLevel.MISSING for finding in found):
            return found
        slurm = Slurm(self._programs, self._settings)
        for name in guests.names:
            guest = LrmsJob("", 1, 60.0, partner="guest", preemptible=True)
            guest = slurm.placed(replace(guest, protected=name == guests.protected))
            options = slurm.options(guest)
            found.append(options_taken(f"guests in {name}", options, await self._tested(options)))
        if guests.protected and rules.kind == BY_PARTITION:
            found.append(await self._switched(parts[guests.protected]))
        return found

    async def _switched(self, part: PreemptedPartition) -> Finding:
        # Sets what is there already, which changes nothing.
        program, *first = self._settings.switch
        mode = f"preemptmode={part.mode.lower()}"
        words = (program, *first, "update", f"partitionname={part.name}", mode)
        answer = await self._asked(*words)
        if answer.code != 0:
            text = f"guests in {part.name} cannot be protected: {_last(answer.error)}"
            cure = f"{PRINTS} has the line for sudoers; without it leave protected and switch out"
            return missing("protection", text, cure)
        return good("protection", f"{part.name} can be switched; it is {part.mode} now")

    async def _tested(self, options: Sequence[str], account: str = "") -> Answer:
        # Only sbatch reads this script.
        script = self._folder / "check.sh"
        script.write_text("#!/bin/sh\n", encoding="utf-8")
        try:
            if account:
                script.chmod(0o644)
                self._folder.chmod(0o711)  # as it is with the first such job
            words = ("sbatch", "--test-only", "--time=1", *options, str(script))
            return await self._asked(*words, account=account)
        finally:
            script.unlink()

    async def _tried(self, options: Sequence[str], account: str) -> Answer:
        # Whether each of the programs runs as another account; the first answer that says no.
        answer = await self._tested(options, account)
        for program in GUEST_PROGRAMS[1:]:
            if answer.code == 0:
                answer = await self._asked(program, "--version", account=account)
        return answer

    async def _own(self) -> list[Finding]:
        # Whether own users' jobs can be submitted as these users.
        if self._users is None:
            return [shared_account(self._settings.account, _AS_USER)]
        if self._by_deputies:
            lists = has_lists(self._folder)
            unfit = (check_user(user, lists=lists) for user in self._users)
            return [by_deputies(), *(finding for finding in unfit if finding is not None)]
        paths = [self._programs.place(program) for program in GUEST_PROGRAMS]
        if not self._users:
            return [untried(sudoers_line(["%users"], paths))]
        options = Slurm(self._programs, self._settings).options(LrmsJob("", 1, 60.0))
        lists, found = has_lists(self._folder), []
        for user in self._users:
            finding = check_user(user, lists=lists)
            if finding is None:
                answer = await self._tried(options, user)
                line = sudoers_line([user], paths)
                finding = (
                    good("own users", f"jobs can be submitted as {user}")
                    if answer.code == 0
                    else lent(user, answer, line, what="own users")
                )
            found.append(finding)
        return found

    async def _lent(self) -> list[Finding]:
        # Whether jobs can be submitted as the other accounts.
        job = LrmsJob("", 1, 60.0, partner="guest")
        options = Slurm(self._programs, self._settings).options(job)
        found, usable = [], []
        for account in self._accounts:
            finding = check_account(account)
            if finding is not None:
                found.append(finding)
            if finding is None or finding.level is FindingLevel.DOUBT:
                usable.append(account)
        tried = []
        for account in [] if self._by_deputies else usable[:ACCOUNTS_TRIED]:
            answer = await self._tried(options, account)
            if answer.code == 0:
                tried.append(account)
            else:
                paths = [self._programs.place(program) for program in GUEST_PROGRAMS]
                found.append(lent(account, answer, sudoers_line([account], paths)))
        if tried:
            left = len(usable) - ACCOUNTS_TRIED
            more = f"; {left} more were not tried" if left > 0 else ""
            found.append(good("accounts", f"jobs can be handed in as {', '.join(tried)}{more}"))
        return found

    async def _records(self, configuration: dict[str, str]) -> Finding:
        if self._settings.sacct:
            answer = await self._asked("sacct", "-n", "-X", "-j", "1")
            if answer.code != 0:
                cure = "set lrms.sacct = false, or let this user ask slurmdbd"
                return missing("records", f"sacct: {_last(answer.error)}", cure)
            return good("records", "sacct says how jobs ended")
        return records(configuration, self._settings.completion_log)

    async def _asked(self, *words: str, account: str = "") -> Answer:
        try:
            seconds = {"SLURM_TIME_FORMAT": "%s"}
            return await self._programs.run(*words, also=seconds, account=account)
        except (LrmsRefusedError, LrmsUnavailableError) as error:
            return Answer(1, b"", error.reason)


# --- what is made of the answers -----------------------------------------------------------------


def read_configuration(text: str) -> dict[str, str]:
    """Returns the keys of `scontrol show config`; under `as of` the controller's time."""
    first, _, rest = text.partition("\n")
    found = {"as of": first.rpartition(" ")[2]}
    for line in rest.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            found[key.strip()] = value.strip()
    return found


def version(text: str) -> Finding:
    """Returns whether it is a version that this was tried with."""
    said = text.strip().rpartition(" ")[2]
    parts = said.split(".")
    numbers = tuple(int(part) for part in parts[:2] if part.isdecimal())
    if len(numbers) < 2:
        return doubt("version", f"their version is {said[:40]!r}", "only 22.05 was tried")
    if numbers != TESTED:
        cure = "only 22.05 was tried; try --run, and look at a few jobs"
        return doubt("version", f"Slurm {said}", cure)
    return good("version", f"Slurm {said}")


def clock(configuration: dict[str, str], now: float) -> Finding:
    """Returns whether the controller's clock agrees with this host's."""
    said = configuration["as of"]
    if not said.isdecimal():
        return doubt("clock", f"the controller says {said[:40]!r}", "compare it with `date` here")
    off = int(said) - now
    if abs(off) > CLOCK_S:
        text = f"the controller's is {abs(off):.0f} s {'ahead' if off > 0 else 'behind'}"
        return missing("clock", text, "let both hosts follow one clock (NTP); munge needs that too")
    return good("clock", "the controller's is as here")


def partitions(rows: Sequence[dict[str, str]], wanted: Sequence[str]) -> list[Finding]:
    """Returns the state of the site's partitions; `wanted` are their names, none for the default one."""
    what = "partition"
    by_name = {row.get("PartitionName", ""): row for row in rows}
    default = [name for name, row in by_name.items() if row.get("Default") == "YES"]
    if not wanted and not default:
        cure = "set lrms.partitions, as Slurm has no default one"
        return [missing(what, f"there are: {', '.join(by_name) or 'none'}", cure)]
    found = []
    for name in wanted or default:
        row = by_name.get(name)
        if row is None:
            cure = f"set lrms.partitions to some of: {', '.join(by_name) or 'none'}"
            found.append(missing(what, f"there is no {name!r}", cure))
        elif row.get("State") != "UP":
            cure = f"scontrol update PartitionName={name} State=UP"
            found.append(missing(what, f"{name} is {row.get('State')}", cure))
        else:
            longest = row.get("MaxTime", "")
            text = f"{name}: {row.get('TotalCPUs')} processors, jobs of up to {_limit(longest)}"
            found.append(good(what, text))
    return found


def _limit(text: str) -> str:
    if text == "UNLIMITED":
        return "any length"
    try:
        seconds = read_limit(text)
    except ValueError:
        return text
    return "any length" if seconds is None else f"{seconds / 3600:g} h"


def options_taken(what: str, options: Sequence[str], answer: Answer) -> Finding:
    """Returns whether Slurm would accept a job with the site's options, by `sbatch --test-only`."""
    words = " ".join(options)
    if answer.code == 0:
        return good(what, f"would be taken with {words}")
    cure = "the options come of [lrms]: partitions, account, qos, shape, and the guests' own"
    if NO_NODE in answer.error:
        cure = f"sinfo -R shows nodes that are drained or down, of which Slurm says the same; else {cure}"
    return missing(what, f"{_last(answer.error)}; with {words}", cure)


def unended(
    rules: PreemptionRules, parts: Mapping[str, PreemptedPartition], own: Sequence[str]
) -> Finding:
    """Returns what happens to guests where the site's file says nothing: as to own jobs in these partitions."""
    text = f"guests run to their ends, as lrms.preemption is not set ({PRINTS} has what to add)"
    threatened = [
        part
        for name, part in parts.items()
        if name in own and rules.kind == BY_PARTITION and part.mode != OFF
    ]
    above = sorted(
        name for name, part in parts.items() if any(part.tier > other.tier for other in threatened)
    )
    if rules.ends_nothing:
        text += f"; Slurm ends no jobs for others (PreemptMode={rules.mode})"
    if above:
        modes = "/".join(sorted({part.mode for part in threatened}))
        text += f"; for jobs in {', '.join(above)} Slurm ends them as it ends own jobs ({modes})"
    return good("preemption", text)


def ended_guests(
    rules: PreemptionRules,
    parts: Mapping[str, PreemptedPartition],
    found: SlurmPreemption,
    guests: GuestPartitions,
) -> list[Finding]:
    """Returns who ends guests for other jobs, and what own jobs wait for meanwhile."""
    what, by = "preemption", found.preemption
    lost = [name for name in guests.names if name not in parts]
    if lost:
        text = f"there is no partition {' nor '.join(lost)}; guests that may be ended are refused"
        if rules.ends_nothing:
            text += f"; Slurm ends no jobs for others (PreemptMode={rules.mode})"
        return [missing(what, text, f"{PRINTS} has the lines for slurm.conf")]
    # Where preemption was switched on for guests, own jobs may have become preemptible as well.
    endangered = [
        doubt(
            what,
            f"Slurm ends jobs in {name} for jobs in {', '.join(above)}, too (PreemptMode={parts[name].mode})",
            f"unless that is meant, add PreemptMode=OFF to the line of {name} in slurm.conf",
        )
        for name, above in found.endangered.items()
    ]
    if by.ended_by is not EndedBy.BATCH_SYSTEM:
        text = (
            f"Slurm ends no guests for own jobs (PreemptMode={rules.mode}): {by.why}; the daemon cancels guests when "
            "an own job waits for room, as long as it lives"
        )
        if found.unserved and guests.partition and rules.kind == BY_PARTITION:
            text = f"{by.why}; for these the daemon cancels guests when one waits for room, as long as it lives"
        return [doubt(what, text, f"{PRINTS} has the lines for slurm.conf"), *endangered]
    part = parts[guests.partition]
    text = (
        f"Slurm ends guests in {part.name} for own jobs (PreemptMode={part.mode}, PriorityTier={part.tier}): "
        f"SIGTERM, {by.kill_s:g} s later SIGKILL"
    )
    findings = [good(what, text), *endangered]
    if by.grace_s:
        text = f"GraceTime of {part.name} is {by.grace_s:g} s: own jobs wait for it, and up to 30 s more"
        findings.append(doubt(what, text, "GraceTime=0 in slurm.conf"))
    if rules.exempt_s:
        text = f"PreemptExemptTime is {rules.exempt_s:g} s: own jobs wait that long for guests that have just begun"
        findings.append(doubt(what, text, "leave it out of slurm.conf"))
    return findings


def images(*, said: bool | None, found: str) -> Finding:
    """Returns whether jobs run in container images; see `why_no_images`."""
    what = "images"
    if said is False:
        return good(what, f"jobs with a container image are refused, as {KEY} is false")
    if found:
        return good(what, f"jobs run in container images, by {found}; see that nodes have it too")
    if said is None:
        text = f"jobs with a container image are refused: there is no {OCI} beside slurm.conf, without which Slurm runs them bare"
        return good(what, f"{text}; {KEY} = true where nodes have one")
    text = f"jobs with a container image are taken, as {KEY} is true; this host sees no {OCI} beside slurm.conf"
    return doubt(what, text, f"see that nodes have {OCI}: without it they run such jobs bare")


def places(configuration: Mapping[str, str], *, keep: bool) -> Finding:
    """Returns what place an own job has that a partner sends home; with `keep` it is kept by a marker."""
    what = "places"
    if not keep:
        text = "a job that a partner sends home stands behind all that wait then, as lrms.keep_places is false"
        return good(what, text)
    by = "own jobs that partners may send home wait here by a marker each (PENDING, BeginTime)"
    if not keeps_places(configuration):
        kind = configuration.get("PriorityType", "nothing")
        cure = "PriorityFlags=ACCRUE_ALWAYS in slurm.conf"
        if kind != "priority/multifactor":
            cure = "look where a job stands that waited with a start far ahead; or lrms.keep_places = false"
        text = f"{by}; with PriorityType={kind} their waiting time may count from their return on"
        return doubt(what, text, cure)
    limits = configuration.get("AccountingStorageEnforce", "").split(",")
    most = f"MaxJobCount={configuration.get('MaxJobCount', 'unknown')}"
    counts = f"MaxSubmitJobs and {most}" if "limits" in limits else most
    return good(what, f"{by}, and come back to where they stood; markers count for {counts}")


def untried(line: str) -> Finding:
    """Returns that own users' jobs are submitted through sudo, for which `line` is needed in sudoers."""
    text = (
        "own users' jobs are submitted as these users, through sudo; no user was tried (--as USER)"
    )
    cure = f"visudo -f /etc/sudoers.d/hanse-users, with a group of your users: {line}"
    return doubt("own users", text, cure)


def by_deputies() -> Finding:
    """Returns how own users' jobs are submitted where there is no sudo."""
    text = "own users' jobs are submitted as these users, by their own deputies (grms deputy): those without one wait"
    return good("own users", text)


def lent(account: str, answer: Answer, line: str, *, what: str = "account") -> Finding:
    """Returns why no job can be submitted as another account; `line` is needed in sudoers."""
    cure = "let this account use the partitions, account and qos of [lrms], and reach lrms.spool"
    if answer.by_sudo:
        file = "hanse-guests" if what == "account" else "hanse-users"
        cure = f"visudo -f /etc/sudoers.d/{file}: {line}"
    return missing(what, f"{account}: {_last(answer.error)}", cure)


def hidden(configuration: dict[str, str], *, own: bool = False) -> list[Finding]:
    """Returns whether others' jobs are hidden, without which the queue is unknown; empty if not.

    With `own` the jobs of the site's own users are others' as well.
    """
    words = configuration.get("PrivateData", "").split(",")
    if "jobs" not in (word.strip() for word in words):
        return []
    text = "PrivateData has jobs: Slurm shows this user its own alone, and the site takes the queue for empty"
    if own:
        text += "; its own users' jobs are never seen either, and so never released"
    cure = "sacctmgr modify user set adminlevel=Operator where name=USER, or leave jobs out of PrivateData"
    return [doubt("others' jobs", f"{text}, unless it is an operator", cure)]


def records(configuration: dict[str, str], completion_log: str) -> Finding:
    """Returns whether ends of jobs that the controller has forgotten can be known."""
    what, kind = "records", configuration.get("JobCompType", "")
    place = configuration.get("JobCompLoc", "")
    if completion_log:
        try:
            with Path(completion_log).open("rb"):
                pass
        except OSError as error:
            cure = "let this user read it, or leave lrms.completion_log out"
            return missing(what, f"{completion_log}: {error.strerror or error}", cure)
        if kind != "jobcomp/filetxt" or place != completion_log:
            cure = f"set it to what slurm.conf has: {kind} at {place}"
            return missing(what, f"{completion_log} is not what Slurm writes", cure)
        return good(what, f"{completion_log} says how jobs ended")
    age = configuration.get("MinJobAge", "some time")
    cure = (
        f"set lrms.completion_log = {place!r} where this host can read it"
        if kind == "jobcomp/filetxt"
        else "JobCompType=jobcomp/filetxt in slurm.conf, or lrms.sacct = true with slurmdbd"
    )
    text = f"how a job ended is known for {age} alone; after that it ends as unknown"
    return doubt(what, text, cure)


def held(settle_s: float) -> Finding:
    """Returns whether jobs are held long enough (`settle_s`, seconds) for Slurm not to forget them."""
    if settle_s < WRITTEN_S:
        text = f"jobs are released after {settle_s:g} s; Slurm writes them down within 5 s"
        return doubt("hold", text, "leave lrms.settle_s out, or a crash may lose or repeat jobs")
    return good("hold", f"jobs are released {settle_s:g} s after they were submitted")


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _last(error: str) -> str:
    lines = [line for line in error.splitlines() if line.strip()]
    return lines[-1] if lines else "it says nothing"
