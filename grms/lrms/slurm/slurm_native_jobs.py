"""Slurm's side of native jobs: users' `sbatch` jobs at the site's disposal, by comment or partition.

Holds, releases and cancels need operator privileges. Slurm gives operators a job's script, but neither its
environment nor its original arguments: a job with arguments stays at home, and variables do not travel.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from grms.lrms.base import LrmsRefusedError, LrmsUnavailableError
from grms.lrms.batch.subprocesses import Answer, Programs
from grms.lrms.checks import Finding, doubt, good, missing
from grms.lrms.native_jobs import NativeJobRequest, NativeJobRow
from grms.lrms.slurm.slurm import HELD_BY_PLUGIN, asked
from grms.lrms.slurm.slurm_limits import read_limit
from grms.lrms.slurm.slurm_nodes import SlurmRules, default_memory, read_rules
from grms.lrms.slurm.slurm_request import read_fields
from grms.lrms.slurm.slurm_text import read_job
from lrms_sim.workload.requests import Request, RequestError

FORMAT: Final = "%i|%t|%V|%u|%r|%P|%k"
"""Format of squeue, after the token: id, state, moment of submission, user, reason, partition, comment."""

NO_JOB: Final = "67108863"
"""Larger than any job id (slurm.conf(5), MaxJobId)."""

OTHERS_TRIED: Final = 5
"""Most jobs of others tested, of which one must have a script."""

_FIELDS = 8
_NONE = frozenset(("", "(null)", "N/A"))


class SlurmNativeJobs:
    """Watches one Slurm, by programs with operator privileges.

    A job is at the site's disposal by the word `comment` or by its `partition`; either may be empty.
    """

    def __init__(self, programs: Programs, *, comment: str, partition: str) -> None:
        self._programs = programs
        self._comment = comment
        self._partition = partition

    async def rows(self) -> Sequence[NativeJobRow]:
        """Returns the queue of all jobs."""
        token = secrets.token_hex(8)
        text = await self._ask("squeue", "-h", "-a", "-t", "all", "-o", f"{token}|{FORMAT}")
        return read_rows(text, token=token, comment=self._comment, partition=self._partition)

    async def wanted(self, row: NativeJobRow) -> NativeJobRequest:
        """Returns what a job requests."""
        fields = read_job(await self._ask("scontrol", "show", "job", "--oneliner", row.number))
        script = await self._ask("scontrol", "write", "batch_script", row.number, "-")
        wanted = read_wanted(fields, script)
        if wanted.request is None:
            return wanted
        request = await self._without_usual(wanted.request, fields.get("Partition", ""))
        return replace(wanted, request=request)

    async def _without_usual(self, request: Request, names: str) -> Request:
        # Slurm shows a job with what it has filled in for it: the default partition, that one's memory, and whether
        # jobs may be run again.
        name = names.partition(",")[0]
        text = await self._ask("scontrol", "show", "partition", "--all", "--oneliner", name)
        rules = read_rules(await self._ask("scontrol", "show", "config")) or SlurmRules()
        part = read_job(text)
        if request.memory == default_memory(part, rules, gpus=request.gpus is not None):
            request = replace(request, memory=None)
        if request.requeue is rules.requeue:
            request = replace(request, requeue=None)
        if names == self._partition or part.get("Default") == "YES":
            names = ""
        return replace(request, partition=names)

    async def hold(self, number: str) -> None:
        """Holds a job."""
        await self._ask("scontrol", "hold", number)

    async def release(self, number: str) -> None:
        """Releases a job."""
        await self._ask("scontrol", "release", number)

    async def cancel(self, number: str) -> None:
        """Cancels a job."""
        await self._ask("scancel", "--state=PENDING", number)

    async def gone(self, number: str, submitted: int) -> bool:
        """Returns whether Slurm says that it has no such job."""
        try:
            text = await self._ask("scontrol", "show", "job", "--oneliner", number)
        except LrmsRefusedError as error:
            return "Invalid job id" in error.reason
        return read_job(text).get("SubmitTime", str(submitted)) != str(submitted)

    async def tell(self, number: str, text: str) -> None:
        """Writes a message to the job's AdminComment."""
        await self._ask("scontrol", "update", f"JobId={number}", f"AdminComment={text}")

    async def _ask(self, program: str, *arguments: str) -> str:
        answer = await asked(self._programs, program, *arguments)
        return answer.output.decode("utf-8", "replace")


# --- what is made of the answers -----------------------------------------------------------------


def read_rows(text: str, *, token: str, comment: str, partition: str) -> list[NativeJobRow]:
    """Returns the queue of all jobs, without arrays.

    `text` has rows in `FORMAT` after the token and a bar, as comments may contain line feeds. `comment` and
    `partition` put a job at the site's disposal; either may be empty.
    """
    rows = []
    for line in text.split("\n"):
        fields = line.split("|", _FIELDS - 1)
        if len(fields) < _FIELDS or fields[0] != token:
            continue
        _, number, state, submitted, user, reason, place, said = fields
        if not number.isdecimal() or not submitted.isdecimal():
            continue  # an array, of which a part may run
        by_user = bool(comment and said == comment) or bool(partition and place == partition)
        by_plugin = bool(comment) and said == comment + HELD_BY_PLUGIN
        held = reason in {"JobHeldUser", "JobHeldAdmin"}
        rows.append(
            NativeJobRow(
                number,
                int(submitted),
                user,
                waiting=state == "PD",
                cancelled=state == "CA",
                held=held,
                held_here=state == "PD" and reason == "JobHeldAdmin",
                # A job held by its own user should not start anywhere; one whose user has no name now, as the directory
                # is away, would be nobody's, and waits for another poll.
                offered=(by_plugin or (by_user and not held)) and not _is_nameless(user),
            )
        )
    return rows


def _is_nameless(user: str) -> bool:
    # What Slurm prints for a number that the directory does not know (`uid_to_string`), by its version.
    return user == "nobody" or user.isdecimal()


def read_wanted(fields: Mapping[str, str], script: str) -> NativeJobRequest:
    """Returns what a job requests, from `scontrol show job` and `scontrol write batch_script`.

    Raises:
        LrmsRefusedError: they are incomplete.
    """
    try:
        processors, limit_s = (
            int(fields["NumCPUs"].partition("-")[0]),
            read_limit(fields["TimeLimit"]),
        )
        request, unsaid = read_fields(fields), ""
    except RequestError as error:
        request, unsaid = None, str(error)
    except (KeyError, ValueError) as error:
        raise LrmsRefusedError(f"what it asks for cannot be read: {error}") from error
    if not script.strip():
        raise LrmsRefusedError("Slurm hands out no script of it")  # with status 0
    name, reason = fields.get("JobName", ""), _kept(fields, limit_s) or unsaid
    # squeue and scontrol append line feeds.
    script = script.rstrip("\n") + "\n"
    return NativeJobRequest(
        name, processors, limit_s or 0.0, script, reason, None if reason else request
    )


def _kept(fields: Mapping[str, str], limit_s: float | None) -> str:
    if limit_s is None:
        return "it has no time limit"
    command = fields.get("Command", "")
    if command in _NONE:
        return "it has no script of its own"
    if " " in command:
        return "it has arguments, which Slurm does not hand out as they were"
    return ""


# --- whether it has the rights -------------------------------------------------------------------


async def check_rights(programs: Programs, account: str) -> list[Finding]:
    """Returns whether the watcher's programs have the rights they need, without using them.

    `account` is the daemon's own, whose jobs it may change anyway.
    """
    found = []
    for words in _watcher_words(NO_JOB):
        finding = may(words, await _asked(programs, *words))
        if finding is not None:
            found.append(finding)
    return found or [await _rights(programs, account)]


async def _rights(programs: Programs, account: str) -> Finding:
    # Only a job's owner and operators get its script; nothing else shows the privilege without a change.
    answer = await _asked(programs, "squeue", "-h", "-t", "all", "-o", "%i|%u")
    rows = [line.partition("|") for line in _text(answer).splitlines()]
    numbers = [number for number, _, user in rows if user != account and number.isdecimal()]
    for number in numbers[:OTHERS_TRIED]:
        words = ("scontrol", "write", "batch_script", number, "-")
        finding = rights(number, await _asked(programs, *words))
        if finding is not None:
            return finding
    text = (
        "there is no job of another user's, by which it could be seen whether this is an operator"
    )
    return doubt(_WATCH, text, "as another user: sbatch --hold --wrap=true; then look again")


async def _asked(programs: Programs, *words: str) -> Answer:
    try:
        return await programs.run(*words)
    except LrmsUnavailableError as error:
        return Answer(1, b"", error.reason)


_WATCH = "watch"


def _watcher_words(number: str) -> list[tuple[str, ...]]:
    # Commands that the watcher must be able to run on a job.
    return [
        ("scontrol", "hold", number),
        ("scontrol", "release", number),
        ("scontrol", "show", "job", "--oneliner", number),
        ("scontrol", "write", "batch_script", number, "-"),
        ("scontrol", "update", f"JobId={number}", "AdminComment=hanse-check"),
        ("scancel", "--state=PENDING", number),
    ]


def may(words: Sequence[str], answer: Answer) -> Finding | None:
    """Returns why a command on a missing job cannot be run for the watcher; `None` if it can.

    `answer` is that of Slurm's program, or of sudo before it.
    """
    if answer.code == 0 or "Invalid job id" in answer.error:
        return None
    cure = "let lrms.watch.programs run this through sudo, by the line that the page on operating shows"
    said = " ".join(words).replace(NO_JOB, "N")
    return missing(_WATCH, f"{said}: {_last(answer.error)}", cure)


def rights(number: str, answer: Answer) -> Finding | None:
    """Returns whether the watcher has operator privileges; `None` if this job does not show it.

    `answer` is that of `scontrol write batch_script` for another user's job.
    """
    if answer.code == 0 and answer.output:
        text = f"users' jobs can be held, released, cancelled and marked (seen by job {number})"
        return good(_WATCH, text)
    if "denied" not in answer.error and "user id" not in answer.error:
        return None  # it has no script, or has ended; Slurm's status is 0 even where it refuses
    cure = (
        "sacctmgr modify user set adminlevel=Operator where name=USER; or set lrms.watch.programs"
    )
    return missing(_WATCH, f"another user's job {number}: {_last(answer.error)}", cure)


def _text(answer: Answer) -> str:
    return answer.output.decode("utf-8", "replace")


def _last(error: str) -> str:
    lines = [line for line in error.splitlines() if line.strip()]
    return lines[-1] if lines else "it says nothing"
