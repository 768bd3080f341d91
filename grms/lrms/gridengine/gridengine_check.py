"""Checks of a site's Grid Engine, without changing anything.

`qsub -w v` says whether a job would ever run with the site's options, without submitting one.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from grms.lrms.base import LrmsUnavailableError
from grms.lrms.batch.subprocesses import Answer, Programs
from grms.lrms.checks import Finding, doubt, good, missing, named_partitions
from grms.lrms.gridengine.gridengine import UTC, GridEngineSettings
from grms.lrms.gridengine.gridengine_nodes import read_instances
from grms.lrms.gridengine.gridengine_preemption import (
    GridPreemption,
    find_preemption,
    read_configurations,
)
from grms.lrms.preemption import EndedBy

PROGRAMS: Final = ("qstat", "qsub", "qrls", "qhold", "qdel", "qconf")
"""Programs that a site runs; `qconf` only here."""

TESTED: Final = "8.1."
"""Prefix of the tested versions."""

FLUSH_S: Final = 15.0
"""Default interval at which the accounting file is written."""

PRINTS: Final = "grms lrms preemption"
"""Prints what to do for preemption."""

_INFINITY = "INFINITY"

_FLUSH_TIMES = tuple(
    re.compile(rf"{word}=(\d+):(\d+):(\d+)")
    for word in ("accounting_flush_time", r"(?<!accounting_)flush_time")
)


PLACES: Final = (
    "a job that a partner sends home stands by its priority; its waiting time counts from then on"
)


class GridEngineCheck:
    """Checks a Grid Engine.

    `folder` must exist, for the script passed to qsub; `named` are queues that tables of names name.
    """

    def __init__(
        self,
        programs: Programs,
        settings: GridEngineSettings,
        records_s: float,
        folder: Path,
        *,
        named: Sequence[str] = (),
    ) -> None:
        self._programs = programs
        self._settings = settings
        self._records_s = records_s
        self._folder = folder
        self._named = named

    async def findings(self) -> list[Finding]:
        """Returns what was found, up to the first thing without which nothing else can be known."""
        settings = self._settings
        answers = {}
        for program in PROGRAMS:
            try:
                answers[program] = await self._programs.run(program, "-help", also=UTC)
            except LrmsUnavailableError as error:
                cure = "install its clients (Debian: gridengine-client), or set lrms.programs"
                return [missing("programs", error.reason, cure)]
        found = [version(_text(answers["qstat"]))]
        queues = await self._asked("qconf", "-sql")
        if queues.code != 0:
            cure = "start its master; are lrms.root, lrms.cell and the ports those of the cell?"
            return [*found, missing("master", _said(queues), cure)]
        hosts = await self._asked("qconf", "-ss")
        found.append(submit_host(_text(hosts) if hosts.code == 0 else "", _said(hosts)))
        names = _text(queues).split()
        for name in (*(settings.queues or names), *filter(None, [settings.guests])):
            shown = await self._asked("qconf", "-sq", name)
            known = read_fields(_text(shown)) if shown.code == 0 and name in names else None
            found.append(queue(name, known, names, settings.parallel_environment))
        found += named_partitions(names, self._named, "queue")
        name = settings.parallel_environment
        shown = await self._asked("qconf", "-sp", name)
        found.append(parallel(name, read_fields(_text(shown)) if shown.code == 0 else None))
        found += await self._options()
        found += await self._preemption()
        found.append(good("places", PLACES))
        cell = await self._asked("qconf", "-sconf")
        found.append(flush(read_fields(_text(cell)), self._records_s))
        return found

    async def _options(self) -> list[Finding]:
        # Only qsub reads this script.
        settings, script, found = self._settings, self._folder / "check.sh", []
        script.write_text("#!/bin/sh\n", encoding="utf-8")
        try:
            partners = settings.guest_project or settings.project
            cases = [
                ("own jobs", settings.queues, settings.project, 0),
                ("partners' jobs", settings.queues, partners, settings.guest_priority),
            ]
            if settings.guests:
                what = f"guests in {settings.guests}"
                cases.append((what, (settings.guests,), partners, settings.guest_priority))
            for what, queues, project, priority in cases:
                words = ["-l", "h_rt=60"]
                words += ["-q", ",".join(queues)] if queues else []
                words += ["-P", project] if project else []
                words += ["-p", str(priority)] if priority else []
                answer = await self._asked("qsub", "-w", "v", *words, str(script))
                found.append(options_taken(what, words, answer))
        finally:
            script.unlink()
        return found

    async def _preemption(self) -> list[Finding]:
        settings = self._settings
        if settings.guests is None:
            text = f"guests run to their ends, as lrms.preemption is not set ({PRINTS} has what to add)"
            return [good("preemption", text)]
        queues, hosts = (
            await self._asked("qconf", "-sq", "*"),
            await self._asked("qstat", "-f", "-xml"),
        )
        if queues.code != 0 or hosts.code != 0:
            why = _said(queues if queues.code != 0 else hosts)
            return [doubt("preemption", why, "look at qconf -sq '*' and qstat -f")]
        found = find_preemption(
            read_configurations(_text(queues)),
            read_instances(_text(hosts)),
            settings.queues,
            settings.guests,
        )
        shares = [name for name in (settings.memory, settings.gpus) if name]
        return ended_guests(found, settings.guests, shares)

    async def _asked(self, *words: str) -> Answer:
        try:
            return await self._programs.run(*words, also=UTC)
        except LrmsUnavailableError as error:
            return Answer(1, b"", error.reason)


# --- what is made of the answers -----------------------------------------------------------------


def read_fields(text: str) -> dict[str, str]:
    """Returns the fields that `qconf` prints: a word, blanks, and a value that may go on over lines."""
    found = {}
    for line in text.replace("\\\n", " ").splitlines():
        name, _, value = line.partition(" ")
        if name and not name.startswith("#"):
            found[name] = " ".join(value.split())
    return found


def version(text: str) -> Finding:
    """Returns whether it is a version that this was tried with; `text` is the first line of a help."""
    first = text.strip().partition("\n")[0]
    said = re.search(r"\d+\.\d+[\w.]*", first)
    if said is None:
        return doubt("version", f"their version is {first[:40]!r}", "only 8.1 was tried")
    if not said[0].startswith(TESTED):
        cure = "only 8.1 was tried; try --run, and look at a few jobs"
        return doubt("version", f"Grid Engine {said[0]}", cure)
    return good("version", f"Grid Engine {said[0]}")


def submit_host(text: str, problem: str) -> Finding:
    """Returns whether there is a submit host; `qsub` shows whether this is one."""
    if not text.split():
        cure = "as a manager of the cell: qconf -as HOST, with this host's name"
        return missing("submit hosts", problem or "there are none", cure)
    return good("submit hosts", ", ".join(text.split())[:200])


def queue(
    name: str, fields: dict[str, str] | None, names: Sequence[str], environment: str
) -> Finding:
    """Returns how a queue of the site is configured; `fields` come from `qconf -sq`, `None` without a queue."""
    what = "queue"
    if fields is None:
        cure = f"set lrms.queues to some of: {', '.join(names) or 'none'}"
        return missing(what, f"there is no {name!r}", cure)
    if environment not in fields.get("pe_list", "").replace(",", " ").split():
        cure = f"as a manager of the cell: qconf -aattr queue pe_list {environment} {name}"
        text = f"{name}: jobs of more than one processor do not run in it"
        return missing(what, text, cure)
    if fields.get("calendar", "NONE") != "NONE":
        text = f"{name}: it is open by a calendar, which the site does not know"
        return doubt(what, text, "use a queue without a calendar, or know why jobs wait")
    limit = fields.get("h_rt", _INFINITY)
    length = "any length" if limit.startswith(_INFINITY) else limit
    return good(what, f"{name}: {fields.get('slots', '?')} slots, jobs of up to {length}")


def parallel(name: str, fields: dict[str, str] | None) -> Finding:
    """Returns how the parallel environment is configured; `fields` come from `qconf -sp`."""
    what = "parallel"
    if fields is None:
        cure = "set lrms.parallel_environment to one of: qconf -spl; or make one: qconf -ap"
        return missing(what, f"there is no parallel environment {name!r}", cure)
    slots = fields.get("slots", "0")
    if not slots.isdecimal() or int(slots) < 2:  # or nothing is parallel
        cure = f"as a manager of the cell: qconf -mp {name}, slots"
        return missing(what, f"{name} has {slots} slots", cure)
    return good(what, f"{name}: {slots} slots, {fields.get('allocation_rule', '?')}")


def options_taken(what: str, options: Sequence[str], answer: Answer) -> Finding:
    """Returns whether a job with the site's options would ever run, by the answer of `qsub -w v`."""
    words = " ".join(options)
    if answer.code == 0:
        return good(what, f"would be taken with {words}")
    cure = "as a manager of the cell: qconf -as HOST where it is about the host; else see [lrms]"
    return missing(what, f"{_said(answer)}; with {words}", cure)


def ended_guests(found: GridPreemption, guest: str, shares: Sequence[str]) -> list[Finding]:
    """Returns who ends guests for other jobs, and for which jobs nobody does.

    Args:
        found: what happens to guests.
        guest: their queue; empty if the site's file names none.
        shares: resources that hosts give to jobs of all their queues.
    """
    what = "preemption"
    if found.preemption.ended_by is not EndedBy.BATCH_SYSTEM:
        text = (
            f"Grid Engine ends no guests for own jobs: {found.preemption.why}; they run in the queues of own jobs, and the "
            "daemon deletes some when an own job waits for slots, as long as it lives"
        )
        return [doubt(what, text, f"{PRINTS} has the commands")]
    text = f"Grid Engine ends all guests in {guest} on a host when own jobs start there, and these do not wait for it"
    findings = [good(what, text)]
    if found.unserved:
        text = f"jobs in {', '.join(found.unserved)} end no guests on the hosts that they share with {guest}"
        cure = f"as a manager of the cell: qconf -aattr queue subordinate_list {guest}=1 {found.unserved[0]}"
        findings.append(doubt(what, text, cure))
    if found.open:
        text = f"{guest} takes jobs of all users: one that names no queue may come into it, and be ended"
        cure = f"as a manager of the cell: qconf -aattr queue user_lists LIST {guest}, with this account alone in LIST"
        findings.append(doubt(what, text, cure))
    if shares:
        text = f"own jobs may wait for {' and '.join(shares)} of guests, whom Grid Engine ends for slots alone"
        cure = "let guests ask for none, or accept it: they are ended once an own job starts on their host"
        findings.append(doubt(what, text, cure))
    return findings


def flush(fields: dict[str, str], records_s: float) -> Finding:
    """Returns whether the site waits long enough (`records_s`, seconds) for the accounting file."""
    what = "flush"
    params = fields.get("reporting_params", "")
    if re.search(r"accounting=false", params):
        cure = "as a manager of the cell: qconf -mconf, reporting_params accounting=true"
        return missing(what, "the cell writes no accounting file: every job ends as unknown", cure)
    # Without a time of its own, the accounting file has that of all reports.
    said = next(filter(None, (pattern.search(params) for pattern in _FLUSH_TIMES)), None)
    hours, minutes, seconds = (0, 0, FLUSH_S) if said is None else map(int, said.groups())
    seconds += 3600.0 * hours + 60.0 * minutes
    if seconds >= records_s:
        text = f"the accounting file is written every {seconds:g} s; the site waits {records_s:g} s"
        return missing(what, text, f"set lrms.records_s = {2 * seconds + 1:g}")
    return good(what, f"the accounting file is written every {seconds:g} s")


def _text(answer: Answer) -> str:
    return answer.output.decode("utf-8", "replace")


def _said(answer: Answer) -> str:
    # Some of these programs report errors on standard output.
    lines = [line for line in f"{answer.error}\n{_text(answer)}".splitlines() if line.strip()]
    return lines[0][:200] if lines else "it says nothing"
