"""Slurm, by its own programs: `squeue`, `sinfo`, `sbatch`, `scontrol`, `scancel`.

One `squeue` and one `sinfo` are a look. `squeue` shows the jobs of all partitions, those that are hidden too: an
operator may move a job, or hide where it runs. A single job is asked for by its number only where it has ended, or
is not shown; Slurm then answers with the same status as when its controller is down, and the text
says which. How a job has ended is in the completion log (`JobCompType=jobcomp/filetxt`) where this host can read it, else
`scontrol show job` as long as the controller remembers the job, else `sacct` where the site has it.
"""

import asyncio
import contextlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import structlog

from grms.lrms.batch.launch import ENVIRONMENT, KEY
from grms.lrms.batch.log_file import FollowedRecords
from grms.lrms.batch.programs import ERROR_CHARACTERS_MAX, Answer, Programs, SilentError
from grms.lrms.batch.sbatch_text import options_at_home
from grms.lrms.batch.slurm_machine import (
    PARTS_FORMAT,
    SIZES_FORMAT,
    SlurmMachine,
    hindrance,
    read_scheduler,
    read_slurm_machine,
    whole_minutes,
)
from grms.lrms.batch.slurm_text import (
    MARK,
    TABLE_FORMAT,
    Logged,
    Queue,
    ending_of,
    logged_ending,
    read_accounting,
    read_job,
    read_log,
    read_queue,
)
from grms.lrms.batch.table import Ending, JobRow, Question, Table
from grms.lrms.job_names import shown_name, tag_of
from grms.lrms.partitions import Partitions
from grms.lrms.plan import QueuePlan
from grms.lrms.port import LrmsJob, LrmsPhase, LrmsRefusedError, LrmsUnavailableError

_log = structlog.get_logger()

SETTLE_S: Final = 6.0
"""Slurm's controller writes its state at the latest some 5 s after a change."""

LONG_TEXT: Final = 100_000
"""A table of more characters is read in a thread."""

LOGGED_MAX: Final = 50_000
"""Jobs of this site whose lines of the completion log are kept."""

WANTED_MAX: Final = 50_000
"""Jobs of this site of which it is kept how much they have asked for."""

SCHEDULER_AGE_S: Final = 600.0
"""Which scheduler Slurm has is asked again after so long, real seconds."""

SHAPE: Final = ("--ntasks={processors}",)
"""Options that ask for processors, where a site's file has no others."""

OUTPUT: Final = "slurm-%j.out"
"""Where sbatch has a job print that says nothing of it."""

SECONDS: Final = {"SLURM_TIME_FORMAT": "%s"}
"""Moments as seconds since 1970; jobs are not given this, so `sbatch` is not either."""

_UNAVAILABLE = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "No route to host",
    "Zero Bytes were transmitted",
    "Communication connection failure",
    "backup controller",
    "standby mode",
    "temporarily unable to accept job",
    "Resource temporarily unavailable",
    "authentication",  # Munge is down, or clocks differ
    "Munge",
    "Unspecified error",
    "error writing",
    "Message send failure",
    "Message receive failure",
    "Transport endpoint is not connected",
    "Broken pipe",
    "Network is unreachable",
    "Host is down",
)
"""What Slurm's programs say when nobody has answered them; everything else is an answer."""

_RETRIES = "sleeping and retrying"
"""What sbatch says where the controller has all the jobs that it may have."""

_PASSING = (
    "Required partition not available",
    "Requested partition configuration not available now",
    "Requested node configuration is not available now",
    "SubmitJob",  # AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit, …
    "job submit limit",
    "submission failed: Unspecified error",  # a site's own job_submit plugin
    "sleeping and retrying",  # the controller has all the jobs that it may have
    "No space left on device",
    "Disk quota exceeded",
)
"""What Slurm's programs say when they refuse a job for what is no matter of the job, and passes."""

_NO_JOB = "Invalid job id"

_OVER = (_NO_JOB, "already finished", "already completing")
"""What is said of a job that has ended, and need not be ended any more."""


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """What a site says of its Slurm.

    Attributes:
        site: name of the site, which is part of the names of its jobs.
        account: user that submits and whose jobs the site's are, but for those lent to others.
        partitions: which are used; the default one, and all processors, where there is none.
        slurm_account: which Slurm charges; empty for the user's own.
        qos: quality of service; empty for the default.
        guest_account: the same for partners' jobs; empty for as above.
        guest_qos: same.
        guest_nice: added to the priority's disadvantage of partners' jobs, 0 or more.
        shape: options of sbatch that ask for processors; `{processors}` stands for their number.
        requeue: whether Slurm may run a job anew when a node fails or it is preempted.
        completion_log: path of the file of jobcomp/filetxt; empty for none.
        sacct: whether to ask `sacct`.
    """

    site: str
    account: str
    partitions: tuple[str, ...] = ()
    slurm_account: str = ""
    qos: str = ""
    guest_account: str = ""
    guest_qos: str = ""
    guest_nice: int = 0
    shape: tuple[str, ...] = SHAPE
    requeue: bool = False
    completion_log: str = ""
    sacct: bool = False


class Slurm:
    """Slurm as a batch system.

    Args:
        programs: runs Slurm's.
        settings: of the site.
        account_of: says as which account a job runs, by its key; empty for the one of `settings`.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        programs: Programs,
        settings: SlurmSettings,
        account_of: Callable[[str], str] = lambda _key: "",
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._programs = programs
        self._settings = settings
        self._account_of = account_of
        self._clock = clock
        self._prefix = f"hanse:{settings.site}:"
        self._wanted: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._scheduler, self._scheduler_asked_at = "", -SCHEDULER_AGE_S
        self._log: FollowedRecords[Logged] | None = None
        if settings.completion_log:
            self._log = FollowedRecords(settings.completion_log, self._logged, most=LOGGED_MAX)

    @property
    def forgets(self) -> bool:
        """See `BatchSystem.forgets`: in a crash of the controller, and what has ended after `MinJobAge`."""
        return True

    def encode(self, key: str) -> str:
        """See `BatchSystem.encode`."""
        return self._prefix + key

    def decode(self, name: str) -> str | None:
        """See `BatchSystem.decode`."""
        key = tag_of(name, self._prefix, MARK).removeprefix(self._prefix)
        return key if KEY.fullmatch(key) else None

    async def open(self) -> None:
        """See `BatchSystem.open`."""

    async def look(self) -> Table:
        """See `BatchSystem.look`."""
        began_at = self._clock()
        token = secrets.token_hex(8)
        table, machine = await asyncio.gather(
            self._ask("squeue", "-h", "-r", "-a", "-t", "all", "-o", f"{token}|{TABLE_FORMAT}"),
            self._machine(),
        )
        everything, free = machine.everything, machine.free
        try:
            text = _text(table.output)
            if len(text) > LONG_TEXT:
                queue = await asyncio.to_thread(self._read, text, token, everything)
            else:
                queue = self._read(text, token, everything)
        except ValueError as error:
            raise LrmsUnavailableError(f"Slurm's answer cannot be read: {error}") from error
        taken_at = self._clock()
        plan = None
        if queue.planned and await self._backfills():
            plan = QueuePlan(taken_at, free, queue.running, queue.planned, step_s=60.0)
        return Table(
            began_at,
            taken_at,
            machine.working,
            everything,
            free,
            queue.waiting_others,
            tuple(self._with_hindrance(row, machine.partitions) for row in queue.rows),
            plan,
            machine.partitions,
        )

    async def _machine(self) -> SlurmMachine:
        # In the look of the queue: what an operator changes of partitions counts at once.
        used = self._partitions() or ["-a"]
        parts, sizes = await asyncio.gather(
            self._ask("sinfo", "-h", "-e", *used, "-o", PARTS_FORMAT),
            self._ask("sinfo", "-h", *used, "-o", SIZES_FORMAT),
        )
        names = self._settings.partitions
        try:
            return read_slurm_machine(_text(parts.output), _text(sizes.output), names)
        except ValueError as error:
            raise LrmsUnavailableError(f"Slurm's answer cannot be read: {error}") from error

    def _with_hindrance(self, row: JobRow, partitions: Partitions) -> JobRow:
        if row.phase is not LrmsPhase.WAITING:
            return row
        why = hindrance(row.reason, partitions, self._wanted.get(self._tag(row.name)))
        return replace(row, hindered=why) if why else row

    def _read(self, text: str, token: str, processors: int) -> Queue:
        return read_queue(
            text,
            token=token,
            account=self._account,
            prefix=self._prefix,
            processors=processors,
            partitions=self._settings.partitions,
        )

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """See `BatchSystem.submit`."""
        minutes = whole_minutes(job.requested_time)
        shown = shown_name(job.name, name, MARK)
        arguments = ["--parsable", "--hold", f"--job-name={shown}", "--comment=hanse"]
        arguments.append("--input=/dev/null")
        begin, launch = str(folder), [f"{folder}/launch"]
        streams = [f"--output={folder}/stdout", f"--error={folder}/stderr", "--open-mode=append"]
        if job.home is None:
            arguments.append("--export=ALL")
        else:
            said = options_at_home(job.home.options, job.name, job.processors)
            arguments += [f"--export-file={folder}/{ENVIRONMENT}", *said.others]
            if job.home.folder:
                begin, launch = job.home.folder, [f"{folder}/launch", str(folder)]
                streams = list(said.streams) or [f"--output={begin}/{OUTPUT}"]
        arguments += [f"--chdir={begin}", *streams, f"--time={minutes}"]
        arguments.append("--requeue" if self._settings.requeue else "--no-requeue")
        arguments += self.options(
            processors=job.processors, guest=bool(job.partner), shaped=job.home is not None
        )
        try:
            answer = await self._programs.run(
                "sbatch",
                *arguments,
                *launch,
                dies_with_us=True,
                account=job.account,
                folder=begin,
                umask=-1 if job.home is None else job.home.umask,
            )
        except SilentError as error:
            # It goes on trying for two minutes. Should the last attempt have come through, the job is held.
            if _RETRIES in error.said:
                raise failure("sbatch", Answer(1, b"", error.said)) from error
            raise
        if answer.code != 0:
            raise failure("sbatch", answer)
        number = _text(answer.output).strip().split(";")[0]
        if not number.isdecimal():
            raise LrmsUnavailableError(f"sbatch has printed {number[:80]!r} for a job's id")
        self._wanted[name] = (job.processors, job.requested_time)
        if len(self._wanted) > WANTED_MAX:
            self._wanted.popitem(last=False)
        return number

    def options(self, *, processors: int, guest: bool, shaped: bool = False) -> list[str]:
        """Returns the options of sbatch that come of the site's configuration.

        Args:
            processors: of the job.
            guest: it is a partner's.
            shaped: how it asks for them its user has said, which counts unless the site's file says it.
        """
        settings = self._settings
        words = () if shaped and settings.shape == SHAPE else settings.shape
        shape = [word.format(processors=processors) for word in words]
        options = {
            "partition": ",".join(settings.partitions),
            "account": (guest and settings.guest_account) or settings.slurm_account,
            "qos": (guest and settings.guest_qos) or settings.qos,
            "nice": str(settings.guest_nice) if guest and settings.guest_nice else "",
        }
        return shape + [f"--{name}={value}" for name, value in options.items() if value]

    async def release(self, row: JobRow) -> None:
        """See `BatchSystem.release`."""
        await self._ask("scontrol", "release", row.number, account=self._other(row.name))

    async def hold(self, row: JobRow) -> None:
        """See `BatchSystem.hold`."""
        await self._ask("scontrol", "hold", row.number, account=self._other(row.name))

    async def cancel(self, row: JobRow) -> None:
        """See `BatchSystem.cancel`."""
        # The name as well: after a crash of the controller the number may be another job's.
        name, account = row.name, self._other(row.name)
        if row.phase is LrmsPhase.UNKNOWN:
            # No table has shown what its user calls it.
            fields = await self._shown(row.number, name, account=account)
            if fields is None:
                return
            name = fields["JobName"]
        try:
            words = (f"--name={name}", *_only(row), row.number)
            await self._ask("scancel", *words, account=account)
        except LrmsRefusedError as error:
            if not any(word in error.reason for word in _OVER):
                raise

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """See `BatchSystem.cancel_all`.

        `scancel` takes one name for all. Names are there for numbers that are given away again after a crash, which
        only those are that the controller had not yet saved; a user's own jobs alone are touched in any case.
        """
        numbers: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for row in rows:
            numbers.setdefault((self._other(row.name), _only(row)), []).append(row.number)
        for (account, only), those in numbers.items():
            words = (f"--user={account or self._settings.account}", *only, *those)
            answer = await self._programs.run("scancel", *words, also=SECONDS, account=account)
            if answer.code != 0 and not _all_over(answer.error):
                raise failure("scancel", answer)

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """See `BatchSystem.held_since_submission`.

        A job that could ever start has a moment from which it accrues age; a hold that comes later
        leaves that. A release that was undone has left none.
        """
        del released  # Slurm may have undone it
        fields = await self._said(row.number, row.name)
        if fields is None:
            return False
        return fields.get("AccrueTime") == "Unknown" and fields.get("Priority") == "0"

    async def ending(self, question: Question) -> Ending | None:
        """See `BatchSystem.ending`."""
        if self._log is not None:
            await asyncio.to_thread(self._log.read)
        ending = self._of_log(question)
        if ending is None and question.row is not None:
            fields = await self._said(question.number, question.name)
            ending = None if fields is None else ending_of(fields)
        if ending is None and self._settings.sacct and question.number:
            ending = await self._of_accounting(question)
        return ending

    async def knows(self, question: Question) -> Ending | bool | None:
        """See `BatchSystem.knows`: as the job's own user, to whom it cannot be hidden."""
        if not question.number:
            return None
        account = self._other(question.name)
        try:
            fields = await self._shown(question.number, question.name, account=account)
        except LrmsRefusedError:
            return None
        return False if fields is None else ending_of(fields) or True

    def _of_log(self, question: Question) -> Ending | None:
        lines = () if self._log is None else self._log.of(self._tag(question.name))
        zone = -time.localtime(self._clock()).tm_gmtoff
        return logged_ending(lines, question.number, question.submit_time, zone)

    async def _of_accounting(self, question: Question) -> Ending | None:
        fields = "JobIDRaw,State,ExitCode,Submit,Start,End,NodeList,JobName"
        try:
            answer = await self._ask(
                *("sacct", "-n", "-P", "-X", "-D", "-j", question.number, "-o", fields)
            )
        except LrmsRefusedError as error:
            # It keeps no records, or shows none to this user: what else there is has to do.
            _log.warning("lrms.no_records", reason=error.reason)
            return None
        return read_accounting(_text(answer.output), self._tag(question.name), question.submit_time)

    async def _said(self, number: str, name: str) -> dict[str, str] | None:
        # None also where it may not be said.
        with contextlib.suppress(LrmsRefusedError):
            return await self._shown(number, name)
        return None

    async def _shown(self, number: str, name: str, *, account: str = "") -> dict[str, str] | None:
        # None of a job that Slurm does not know, by its own word.
        words = ("show", "job", "--all", "--oneliner", number)
        try:
            answer = await self._ask("scontrol", *words, account=account)
        except LrmsRefusedError as error:
            if _NO_JOB not in error.reason:
                raise
            return None
        fields = read_job(_text(answer.output))
        tag = self._tag(name)
        return fields if tag_of(fields.get("JobName", ""), tag, MARK) == tag else None

    async def _backfills(self) -> bool:
        # Whether the planned starts are those of a scheduler that lets others go first that do not delay them.
        if time.monotonic() - self._scheduler_asked_at >= SCHEDULER_AGE_S:
            self._scheduler = ""
            with contextlib.suppress(
                LrmsRefusedError
            ):  # one that does not say is not taken for one
                answer = await self._ask("scontrol", "show", "config")
                self._scheduler = read_scheduler(_text(answer.output))
            self._scheduler_asked_at = time.monotonic()
        return self._scheduler == "backfill"

    def _logged(self, lines: list[str]) -> Iterable[tuple[str, Logged]]:
        for line in read_log(lines, account=self._account, prefix=self._prefix):
            yield line.name, line

    def _tag(self, name: str) -> str:
        return tag_of(name, self._prefix, MARK)

    def _partitions(self) -> list[str]:
        names = ",".join(self._settings.partitions)
        return ["-p", names] if names else []

    def _other(self, name: str) -> str:
        # As whom a job runs that is not this process's own.
        key = self.decode(name)
        return "" if key is None else self._account_of(key)

    def _account(self, name: str) -> str:
        return self._other(name) or self._settings.account

    async def _ask(self, program: str, *arguments: str, account: str = "") -> Answer:
        return await asked(self._programs, program, *arguments, account=account)


async def asked(programs: Programs, program: str, *arguments: str, account: str = "") -> Answer:
    """Returns what one of Slurm's programs has answered, with moments as seconds since 1970.

    Args:
        programs: runs Slurm's.
        program: its name.
        arguments: of it.
        account: as which it runs; empty for this process's own.

    Raises:
        LrmsError: it has refused, or nobody answers.
    """
    answer = await programs.run(program, *arguments, also=SECONDS, account=account)
    if answer.code != 0:
        raise failure(program, answer)
    return answer


def failure(program: str, answer: Answer) -> LrmsRefusedError | LrmsUnavailableError:
    """Returns the error of a program that has not done what it was asked."""
    lines = [line.strip() for line in answer.error.splitlines() if line.strip()]
    said = (line.removeprefix(f"{program}: ").removeprefix("error: ") for line in lines)
    text = "; ".join(said) or f"status {answer.code}, and nothing said"
    whole = answer.error
    passing = any(word.lower() in whole.lower() for word in _PASSING)
    unavailable = any(word.lower() in whole.lower() for word in _UNAVAILABLE)
    if not lines or (unavailable and not passing):
        return LrmsUnavailableError(f"{program}: {text}")
    return LrmsRefusedError(f"{program}: {text}", passing=passing)


def _only(row: JobRow) -> tuple[str, ...]:
    # What is held may have been released and have started since: then it is seen so, and ended if it is to.
    return ("--state=PENDING",) if row.phase is LrmsPhase.HELD else ()


def _all_over(error: str) -> bool:
    # The end of what was said, a line for each job.
    lines = [line for line in error.splitlines() if line.strip()]
    if len(error) >= ERROR_CHARACTERS_MAX:
        lines = lines[1:]  # cut
    return bool(lines) and all(any(word in line for word in _OVER) for line in lines)


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
