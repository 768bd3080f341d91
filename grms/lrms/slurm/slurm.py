"""Slurm by its own programs: `squeue`, `sbatch`, `scontrol`, `scancel`.

A poll is one `squeue`, and one `scontrol` each for nodes, partitions and reservations. `squeue` shows the jobs of all partitions, including hidden ones: an
operator may move a job, or hide where it runs. A single job is only queried by number if it has ended or is
missing; Slurm then answers with the same status as when its controller is down, and the text decides. A job's end
is taken from the completion log (`JobCompType=jobcomp/filetxt`) if this host can read it, else from `scontrol show
job` while the controller remembers the job, else from `sacct` if the site has it.
"""

import asyncio
import contextlib
import math
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import structlog

from grms.daemon.pacing import pause_after
from grms.daemon.user_names import user_number
from grms.lrms.base import (
    LrmsEnd,
    LrmsJob,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
    UserAwayError,
)
from grms.lrms.batch.guests_to_end import WaitingJob
from grms.lrms.batch.guests_without_room import GuestsWithoutRoom
from grms.lrms.batch.launcher import ENVIRONMENT, KEY, place_key
from grms.lrms.batch.log_file import FollowedRecords
from grms.lrms.batch.queue_snapshot import Ending, JobRow, Question, QueueSnapshot
from grms.lrms.batch.subprocesses import ERROR_CHARACTERS_MAX, Answer, Programs, SilentError
from grms.lrms.exit_status import NOT_LAUNCHED
from grms.lrms.immediate_start import QueuePlan
from grms.lrms.job_names import shown_name, tag_of
from grms.lrms.node_groups import NodeGroup
from grms.lrms.nodes import NodeTable
from grms.lrms.partitions import Charged, Partitions
from grms.lrms.preemption import Preemption
from grms.lrms.slurm.sbatch_text import options_at_home
from grms.lrms.slurm.slurm_arrays import (
    SIZE,
    ArrayElements,
    array_folder,
    array_of,
    array_tag,
    array_words,
    element_name,
    refused_elements,
)
from grms.lrms.slurm.slurm_images import find_oci, why_no_images
from grms.lrms.slurm.slurm_limits import whole_minutes
from grms.lrms.slurm.slurm_machine import REQUEUED_HELD, hindrance
from grms.lrms.slurm.slurm_nodes import (
    SlurmMachine,
    SlurmRules,
    read_licences,
    read_reservations,
    read_rules,
    read_slurm_machine,
)
from grms.lrms.slurm.slurm_preemption import (
    OFF,
    WAITING_FORMAT,
    GuestPartitions,
    SlurmPreemption,
    find_preemption,
    read_preempted_partitions,
    read_waiting,
)
from grms.lrms.slurm.slurm_request import shape_options
from grms.lrms.slurm.slurm_text import (
    MARK,
    TABLE_FORMAT,
    KnownJob,
    Logged,
    Queue,
    ending_of,
    is_no_answer,
    logged_ending,
    read_accounting,
    read_job,
    read_log,
    read_queue,
)
from grms.lrms.told_number import told_number
from grms.util.job_arrays import element_in
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request

_log = structlog.get_logger()

SETTLE_S: Final = 6.0
"""Slurm's controller saves its state within some 5 s of a change."""

LONG_TEXT: Final = 100_000
"""Longer output, in characters, is parsed in a thread."""

LOGGED_MAX: Final = 50_000
"""Jobs of this site whose completion log lines are kept."""

WANTED_MAX: Final = 50_000
"""Jobs of this site whose requests are kept."""

RULES_AGE_S: Final = 600.0
"""How long Slurm's configuration is cached, real seconds."""

PREEMPTION_AGE_S: Final = 60.0
"""The same where it says what happens to guests."""

SHAPE: Final = ("--ntasks={processors}",)
"""Default options that request processors."""

HELD_BY_PLUGIN: Final = ":held"
"""Suffix of the comment of a job at the site's disposal if the job submit plugin has held it at once."""

OUTPUT: Final = "slurm-%j.out"
"""Default output file of sbatch."""

SECONDS: Final = {"SLURM_TIME_FORMAT": "%s"}
"""Prints moments as seconds since 1970; `sbatch` does not get it, as jobs would inherit it."""

FAR: Final = "now+365days"
"""The start of a job that is set aside; should the daemon be away for so long, its launcher ends it."""

NO_ARRAYS_FIRST_S: Final = 10.0
"""After an array was refused, how long jobs are submitted one by one, real seconds; it doubles with each in a row."""

NO_ARRAYS_S: Final = 600.0
"""The longest such time; also how long it is after an element was refused a name of its own."""

_IN_ARRAY: Final = "(array)"
"""Names, among the fields of a job, that of its array, which it has still."""

_AWAY: Final = ":away"
"""Ends the tag of a marker, which is no job's tag."""

_RETRIES = "sleeping and retrying"
"""Message of sbatch when the controller has its maximum of jobs."""

_FULL = (
    "SubmitJob",  # AssocMaxSubmitJobLimit, QOSMaxSubmitJobPerUserLimit, …
    "job submit limit",
    _RETRIES,
)
"""Messages of refusals because of the number of jobs in the queue."""

_PASSING = (
    "Required partition not available",
    "Requested partition configuration not available now",
    "Requested node configuration is not available now",
    *_FULL,
    "submission failed: Unspecified error",  # a site's own job_submit plugin
    "Unable to create job record, try again",
    "No space left on device",
    "Disk quota exceeded",
    "Unable to open file",  # of the job's folder: its user cannot pass through one above it
    "Invalid user id",  # the controller, or the directory behind it, does not know the user
)
"""Messages of temporary refusals that are independent of the job."""

_NO_JOB = "Invalid job id"

_NOT_FOUND = re.compile(r"Job [0-9_]+ not found")
"""What scontrol prints of an element that is not, or no more, in an array that it has."""


_NUMBER = re.compile(r"[0-9]{1,20}")
"""A job's id, as sbatch prints it."""

_PLAIN = re.compile(r"[A-Za-z0-9_.@:/-]+")
"""A name as a site gives it: one word of what scontrol reads."""

ASKED_S: Final = 5.0
"""Longest wait for what a user's own process says of a job, seconds."""

_OVER = (_NO_JOB, "already finished", "already completing")
"""Messages about a job that has ended and need not be cancelled."""


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """Slurm as a site configures it.

    `account` submits, and owns the site's jobs except those lent to others; the other values are those of
    the table `[lrms]`, with `slurm_account` being its `account`, and `watched_…` those of `[lrms.watch]`. `guests` are
    the partitions of `[lrms.preemption]`, `None` without that table, `switch` its words before those of scontrol, and
    `guest_wait_s` its `wait_s`, seconds; 0: guests wait in these partitions without end. `configuration` is the path of
    slurm.conf, empty for Slurm's own.
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
    watched_comment: str = ""
    watched_partition: str = ""
    guests: GuestPartitions | None = None
    switch: tuple[str, ...] = ()
    guest_wait_s: float = 0.0
    configuration: str = ""
    images: bool | None = None


class Slurm:
    """Slurm as a batch system.

    `account_of` returns the account as which a job runs by its key, empty for the one of `settings`; `clock` is in
    seconds since 1970.
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
        self._wanted: OrderedDict[str, Request] = OrderedDict()
        self._numbers: dict[str, int] = {}
        self._elements = ArrayElements()
        self._no_arrays_until = -math.inf
        self._arrays_refused = 0  # in a row
        self._rules: SlurmRules | None = None
        self._rules_asked_at = -RULES_AGE_S
        self._no_images = why_no_images(said=settings.images, found="")
        self._preemption = SlurmPreemption(Preemption())
        self._groups: tuple[NodeGroup, ...] = ()
        self._guest_numbers: set[str] = set()
        self._known: dict[str, KnownJob] = {}  # what the last poll has shown, by number
        self._no_room = GuestsWithoutRoom(
            self._guest_partitions, settings.guest_wait_s, self._is_own
        )
        self._log: FollowedRecords[Logged] | None = None
        if settings.completion_log:
            self._log = FollowedRecords(settings.completion_log, self._logged, most=LOGGED_MAX)

    @property
    def forgets(self) -> bool:
        """In a crash of the controller, and ended jobs after `MinJobAge`."""
        return True

    def encode(self, key: str) -> str:
        """Returns the unique tag of a job's name."""
        return self._prefix + key

    def decode(self, name: str) -> str | None:
        """Returns the key in a name."""
        key = tag_of(name, self._prefix, MARK).removeprefix(self._prefix)
        return key if KEY.fullmatch(key) else None

    async def open(self) -> None:
        """Does nothing."""

    async def look(self) -> QueueSnapshot:
        """Polls the queue and the machine."""
        began_at = self._clock()
        token = secrets.token_hex(8)
        self._elements.look_begins()
        rules = await self._known_rules()
        table, machine = await asyncio.gather(
            self._ask("squeue", "-h", "-r", "-a", "-t", "all", "-o", f"{token}|{TABLE_FORMAT}"),
            self._machine(rules),
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
        rows = self._elements.told_in(queue.rows)
        self._known = dict(self._known_jobs(rows))
        self._guest_numbers = {row.number for row in rows if not self._is_own(row)}
        plan = None
        if queue.planned and rules is not None and rules.scheduler == "backfill":
            plan = QueuePlan(taken_at, free, queue.running, queue.planned, step_s=60.0)
        nodes = self._nodes(machine, queue)
        return QueueSnapshot(
            began_at,
            taken_at,
            machine.working,
            everything,
            free,
            queue.waiting_others,
            self._no_room.told([self._with_request(row, machine) for row in rows]),
            plan,
            machine.partitions,
            None if rules is None else nodes,
        )

    def _known_jobs(self, rows: Iterable[JobRow]) -> Iterable[tuple[str, KnownJob]]:
        for row in rows:
            key = row.known_as or self.decode(row.name)
            if key is not None and row.submit_time is not None:
                yield row.number, KnownJob(key, row.submit_time)

    def _nodes(self, machine: SlurmMachine, queue: Queue) -> NodeTable:
        # A job of this site that was released a moment ago has no plan yet, and is known by what it asks for.
        settings, unplanned, before = self._settings, set(queue.unplanned), []
        for name, parts in queue.own_unplanned:
            request = self._wanted.get(self._tag(name))
            if request is None:
                unplanned |= parts
            else:
                before.append(request)
        return replace(
            machine.nodes,
            promised=(*machine.nodes.promised, *queue.promised),
            unplanned=frozenset(unplanned),
            before=tuple(before),
            no_images=self._no_images,
            own=Charged(settings.slurm_account, settings.qos),
            guests=Charged(
                settings.guest_account or settings.slurm_account, settings.guest_qos or settings.qos
            ),
        )

    async def _machine(self, rules: SlurmRules | None) -> SlurmMachine:
        # In the same poll as the queue: an operator's changes to partitions count at once.
        shown = ["node --detail", "partition", "reservation"]
        shown += ["license"] if rules is not None and rules.has_licences else []
        answers = await asyncio.gather(*(self._show(what) for what in shown))
        try:
            machine = await asyncio.to_thread(
                read_slurm_machine,
                answers[0],
                answers[1],
                self._settings.partitions,
                rules or SlurmRules(),
            )
            promised = read_reservations(answers[2])
            licences = read_licences(answers[3]) if len(answers) > 3 else {}
            self._groups = machine.nodes.groups
            if self._settings.guests is not None:
                kinds = (rules or SlurmRules()).preemption
                parts = read_preempted_partitions(answers[1])
                self._preemption = find_preemption(
                    kinds, parts, self._groups, self._settings.guests
                )
        except ValueError as error:
            raise LrmsUnavailableError(f"Slurm's answer cannot be read: {error}") from error
        return replace(machine, nodes=replace(machine.nodes, promised=promised, licences=licences))

    async def _show(self, what: str) -> str:
        answer = await self._ask("scontrol", "--all", "--oneliner", "show", *what.split())
        return _text(answer.output)

    async def _known_rules(self) -> SlurmRules | None:
        # `None` if it does not say, for which no rules are assumed.
        most = RULES_AGE_S if self._settings.guests is None else PREEMPTION_AGE_S
        if time.monotonic() - self._rules_asked_at >= most:
            self._rules = None
            with contextlib.suppress(LrmsRefusedError):
                answer = await self._ask("scontrol", "show", "config")
                self._rules = read_rules(_text(answer.output))
            self._no_images = await asyncio.to_thread(self._why_no_images)
            self._rules_asked_at = time.monotonic()
        return self._rules

    def _why_no_images(self) -> str:
        settings, rules = self._settings, self._rules or SlurmRules()
        found = find_oci(settings.configuration, rules.configuration)
        return why_no_images(said=settings.images, found=found)

    def _with_request(self, row: JobRow, machine: SlurmMachine) -> JobRow:
        # With what it asks for, and what it waits for.
        if row.phase is LrmsPhase.HELD and self._is_own(row):
            why = self._programs.waits_for(self._whose(row))
            row = replace(row, hindered=why) if why else row
        request = self._wanted.get(self._tag(row.name))
        partitions = machine.partitions
        if request is not None:
            row = replace(row, request=request)
            partitions = Partitions(machine.nodes.chosen(request))
        if row.phase is not LrmsPhase.WAITING:
            return row
        why = hindrance(row.reason, partitions, request)
        return replace(row, hindered=why) if why else row

    def _read(self, text: str, token: str, processors: int) -> Queue:
        return read_queue(
            text,
            token=token,
            is_owner=self._is_owner,
            prefix=self._prefix,
            processors=processors,
            partitions=self._used,
            preemptible=self._guest_partitions,
            known=self._known,
        )

    @property
    def _guest_partitions(self) -> tuple[str, ...]:
        return () if self._settings.guests is None else self._settings.guests.names

    @property
    def _used(self) -> tuple[str, ...]:
        # Partitions whose jobs count: guests take processors of the others'.
        used = self._settings.partitions
        return (*used, *self._guest_partitions) if used else ()

    # --- guests that may be ended ------------------------------------------------------------------

    @property
    def preemption(self) -> Preemption:
        """What happens to preemptible guests, by the last poll."""
        return self._preemption.preemption

    def placed(self, job: LrmsJob) -> LrmsJob:
        """Returns a preemptible guest with its partition."""
        guests = self._settings.guests
        if guests is None or not guests.partition:
            return job
        partition = guests.protected if job.protected else guests.partition
        request = job.request or Request.of_processors(job.processors, job.requested_time)
        return replace(job, request=replace(request, partition=partition))

    def is_spared(self, row: JobRow) -> bool:
        """Returns whether a job is in the partition of protected guests."""
        guests = self._settings.guests
        return guests is not None and bool(row.partition) and row.partition == guests.protected

    async def keep_protection(self, *, on: bool) -> bool:
        """Switches the partition of protected guests as a whole."""
        guests, mode = self._settings.guests, self._preemption.mode
        if guests is None or not mode or (mode == OFF) == on:
            return False
        words = ("update", f"partitionname={guests.protected}")
        word = "off" if on else "cancel"
        program, *first = self._settings.switch
        await asked(self._programs, program, *first, *words, f"preemptmode={word}")
        return True

    async def waiting(self) -> list[WaitingJob]:
        """Returns the jobs that wait for room and take none from guests, but for guests themselves."""
        words = ("-h", "-r", "-a", "-t", "PD", "-S", "-p,i", "-o", WAITING_FORMAT)
        answer = await self._ask("squeue", *words)
        try:
            found = read_waiting(_text(answer.output), self._groups)
        except ValueError as error:
            raise LrmsUnavailableError(f"Slurm's answer cannot be read: {error}") from error
        unserved = self._preemption.unserved
        return [
            job
            for job in found
            if job.partitions & unserved and job.number not in self._guest_numbers
        ]

    def free(self) -> Mapping[str, int]:
        """Returns the processors that no job had at the last poll, by node."""
        groups = (group for group in self._groups if not group.away)
        return {name: group.free_cores for group in groups for name in group.names}

    async def submit(self, name: str, job: LrmsJob, folder: Path) -> str:
        """Submits a job held."""
        begin, launch = str(folder), [f"{folder}/launch"]
        streams = _streams(job, str(folder))
        shown = shown_name(job.name, name, MARK)
        if job.home is None:
            words = ["--export=ALL"]
        else:
            variables = {} if job.program is None else job.program.environment
            array, number = element_in(variables), told_number(variables)
            said = options_at_home(job.home.options, job.name, job.processors, array, number)
            others = [word for word in said.others if not self._watched(word)]
            words = [f"--export-file={folder}/{ENVIRONMENT}", *others]
            if job.home.folder:
                begin, launch = job.home.folder, [f"{folder}/launch", str(folder)]
                output = f"slurm-{number}.out" if number else OUTPUT
                output = output if array is None else f"slurm-{array[0]}_{array[1]}.out"
                streams = list(said.streams) or [f"--output={begin}/{output}"]
        number = await self._handed_in(
            job,
            [*self._arguments(job, shown, words, f"--chdir={begin}", *streams), *launch],
            # Another user's own folder may be closed to this process.
            begin if launch == [f"{folder}/launch"] or not job.account else "/",
        )
        self._want(name, job)
        return number

    def _arguments(self, job: LrmsJob, shown: str, words: list[str], *places: str) -> list[str]:
        # What sbatch is told of a job, or of several that are alike in it.
        arguments = ["--parsable", "--hold", f"--job-name={shown}", "--comment=hanse"]
        arguments.append("--input=/dev/null")
        if job.aside:
            arguments.append(f"--begin={FAR}")
        arguments += [*words, *places, f"--time={whole_minutes(job.requested_time)}"]
        again = self._settings.requeue and not job.once and not job.preemptible
        arguments.append("--requeue" if again else "--no-requeue")
        return arguments + self.options(job, arguments)

    async def _handed_in(self, job: LrmsJob, arguments: list[str], folder: str) -> str:
        if job.request is not None and job.request.image and self._no_images:
            # Who submits it may not have known: its nodes are asked for where Slurm's rules are known alone.
            # While Slurm does not say where its slurm.conf is, nobody knows what is beside that.
            unknown = self._rules is None and self._settings.images is None
            raise LrmsRefusedError(
                f"{self._no_images}; it asks for {job.request.image}", passing=unknown
            )
        try:
            answer = await self._programs.run(
                "sbatch",
                *arguments,
                dies_with_us=True,
                account=job.account,
                folder=folder,
                umask=-1 if job.home is None else job.home.umask,
            )
        except SilentError as error:
            # It retries for two minutes. Should the last attempt have succeeded, the job is held.
            if _RETRIES in error.said:
                raise failure("sbatch", Answer(1, b"", error.said)) from error
            raise
        if answer.by_sudo and not job.partner:
            # An operator can cure it, so the job waits.
            text = f"it cannot be submitted as {job.account}: {answer.error}"
            cure = f"grms lrms check --as {job.account}"
            raise LrmsRefusedError(
                f"{text}; the site's operator is told what is missing by {cure}", passing=True
            )
        if answer.code != 0:
            raise failure("sbatch", answer)
        number = _text(answer.output).strip().split(";")[0]
        if _NUMBER.fullmatch(number) is None:
            text = f"sbatch has printed {number[:80]!r} for a job's id"
            raise UserAwayError(text) if answer.theirs else LrmsUnavailableError(text)
        return number

    def _want(self, name: str, job: LrmsJob) -> None:
        self._wanted[name] = job.request or Request.of_processors(
            job.processors, job.requested_time
        )
        if len(self._wanted) > WANTED_MAX:
            self._wanted.popitem(last=False)

    # --- arrays --------------------------------------------------------------------------------------

    def alike(self, name: str, job: LrmsJob, folder: Path) -> Hashable:
        """Returns a word that is the same for jobs that can be elements of one array; `None` for a job alone."""
        rules, array = self._rules, array_tag(name)
        if rules is None or rules.array_size < SIZE or time.monotonic() < self._no_arrays_until:
            return None
        if array is None or job.account or job.home is not None or job.aside or job.preemptible:
            return None
        return tuple(self._array_arguments(array[0], job, folder))

    def _array_arguments(self, tag: str, job: LrmsJob, folder: Path) -> list[str]:
        begin, word, pad = array_folder(folder)
        # Only the launcher knows where an element runs.
        places = ("--chdir=/", *_streams(job, begin + pad))
        shown = shown_name(job.name, tag, MARK)
        return [*self._arguments(job, shown, ["--export=ALL", *places]), begin, word]

    async def submit_all(self, jobs: Sequence[tuple[str, LrmsJob, Path]]) -> list[str]:
        """Submits jobs that are alike as a held array, and returns their numbers."""
        _, job, folder = jobs[0]
        tag, indices = array_of([each for each, _, _ in jobs])
        *arguments, begin, word = self._array_arguments(tag, job, folder)
        arguments.append(f"--array={array_words(indices)}")
        try:
            number = await self._handed_in(job, [*arguments, f"{folder}/launch", begin, word], "/")
        except LrmsRefusedError as error:
            # It may be the array: whoever submits them one by one finds out.
            self._arrays_refused += 1
            for_s = pause_after(self._arrays_refused, NO_ARRAYS_FIRST_S, NO_ARRAYS_S)
            self._give_up_arrays(error.reason, for_s)
            raise
        self._arrays_refused = 0
        numbers = [f"{number}_{index}" for index in indices]
        for each, one, _ in jobs:
            self._want(each, one)
        names = [shown_name(one.name, each, MARK) for each, one, _ in jobs]
        self._elements.keep(number, dict(zip(numbers, names, strict=True)))
        return numbers

    def _give_up_arrays(self, reason: str, for_s: float = NO_ARRAYS_S) -> None:
        _log.warning("lrms.no_arrays", reason=reason, for_s=for_s)
        # What is refused once for a short time shortens no longer one, as after names were refused.
        self._no_arrays_until = max(self._no_arrays_until, time.monotonic() + for_s)

    async def _parted(self, rows: Sequence[JobRow]) -> list[JobRow]:
        # Gives elements their own names, by which they are parted from each other, and returns the rows as they are then.
        # What is refused a name may be parted all the same, as where a plugin refuses it, or not: it is asked for by its number
        # alone.
        for row in rows:
            if row.in_array:
                self._elements.part(row.number)
        unnamed = [row for row in rows if row.in_array and _PLAIN.fullmatch(row.name)]
        if not unnamed:
            return list(rows)
        words = "".join(f"update JobId={row.number} JobName={row.name}\n" for row in unnamed)
        answer = await self._programs.run("scontrol", also=SECONDS, typed=words.encode())
        refused = set[str]()
        if answer.code != 0:
            error = failure("scontrol", answer)
            if isinstance(error, LrmsUnavailableError):
                raise error
            is_cut = len(answer.error) >= ERROR_CHARACTERS_MAX
            said = refused_elements(answer.error, is_cut=is_cut)
            refused = {row.number for row in unnamed} if said is None else said
            if not _all_over(answer.error):
                self._give_up_arrays(error.reason)
        named = {row.number for row in unnamed} - refused
        return [replace(row, in_array=row.in_array and row.number not in named) for row in rows]

    def options(self, job: LrmsJob, said: Sequence[str] = ()) -> list[str]:
        """Returns the options of sbatch that follow from the site's configuration and from what a job asks for.

        `said` are those that its user has given, which go before the configuration's.
        """
        settings, guest = self._settings, bool(job.partner)
        asked = job.request if job.home is None and job.request is not None else Request()
        options = {
            "partition": asked.partition or ",".join(settings.partitions),
            "account": asked.account
            or (guest and settings.guest_account)
            or settings.slurm_account,
            "qos": asked.qos or (guest and settings.guest_qos) or settings.qos,
            "nice": str(settings.guest_nice) if guest and settings.guest_nice else "",
        }
        given = {word.partition("=")[0] for word in said}
        words = {f"--{name}": value for name, value in options.items() if value}
        return self._shape(job) + [f"{name}={words[name]}" for name in words if name not in given]

    def _shape(self, job: LrmsJob) -> list[str]:
        # A user's own words for processors count unless the site's file has some.
        shape = self._settings.shape
        words = [word.format(processors=job.processors) for word in shape]
        if job.home is not None:
            return [] if shape == SHAPE else words
        if job.request is None:
            return words
        asked = shape_options(job.request)
        return words + asked[1:] if job.request.processors_alone else asked

    def _watched(self, word: str) -> bool:
        # By these words the watcher knows jobs that their users have submitted, which the site's own are not.
        settings = self._settings
        option, _, value = word.partition("=")
        if option == "--comment" and settings.watched_comment:
            return value.removesuffix(HELD_BY_PLUGIN) == settings.watched_comment
        return option == "--partition" and value == settings.watched_partition

    async def release(self, row: JobRow) -> None:
        """Lifts the submission hold."""
        await self._check_still([row])
        await self._parted([row])
        await self._ask("scontrol", "release", row.number, account=self._whose(row))

    async def release_all(self, rows: Sequence[JobRow]) -> None:
        """Lifts submission holds, in one call for each account; `scontrol` goes on where it is refused one."""
        there = await self._still(rows)
        refused = None if len(there) == len(rows) else _not_there(rows, there)
        await self._parted(there)
        numbers: dict[str, list[str]] = {}
        for row in there:
            numbers.setdefault(self._whose(row), []).append(row.number)
        for account, those in numbers.items():
            try:
                await self._ask("scontrol", "release", ",".join(those), account=account)
            except LrmsRefusedError as error:
                refused = error
        if refused is not None:
            raise refused

    async def hold(self, row: JobRow) -> None:
        """Holds a job again."""
        await self._check_still([row])
        await self._parted([row])
        await self._ask("scontrol", "hold", row.number, account=self._whose(row))

    @property
    def keeps_places(self) -> bool:
        """Whether Slurm's priorities let a job that was set aside stand where it stood; False before the first poll."""
        return self._rules is not None and self._rules.keeps_places

    def place_name(self, key: str) -> str:
        """Returns the tag of a job's marker."""
        return f"{self.encode(place_key(key))}{_AWAY}"

    def place_of(self, name: str) -> str | None:
        """Returns the key in the name of a marker."""
        tag = self._tag(name)
        return self.decode(tag.removesuffix(_AWAY)) if tag.endswith(_AWAY) else None

    def shown_as(self, name: str, key: str) -> str:
        """Returns a job's name with the same word before another tag."""
        return _renamed(name, self.encode(key))

    def is_aside(self, row: JobRow) -> bool:
        """Returns whether a job waits for a moment."""
        return row.phase is LrmsPhase.WAITING and row.reason == "BeginTime"

    async def set_aside(self, row: JobRow, name: str) -> None:
        """Gives a waiting job a start far ahead, with which it keeps its place; a hold would lose it."""
        await self._changed(row, f"JobName={_renamed(row.name, name)}", f"StartTime={FAR}")

    async def rename(self, row: JobRow, name: str) -> None:
        """Gives a job another name, or tag."""
        await self._changed(row, f"JobName={_renamed(row.name, name)}")

    async def give_tag(self, row: JobRow) -> None:
        """Gives a job that somebody has renamed its tag again, behind the word that he has given it."""
        name = shown_name(row.name, self.encode(row.known_as), MARK)
        await self._changed(row, f"JobName={name}")

    async def start_now(self, row: JobRow) -> None:
        """Lets a job start in its turn."""
        await self._changed(row, "StartTime=now")

    async def _still(self, rows: Sequence[JobRow]) -> list[JobRow]:
        # Those whose numbers are theirs at this moment. `scontrol` goes by numbers alone, and a controller that comes back with an
        # older state gives them away again: another's job would be released, held, or renamed to one of this site's.
        token = secrets.token_hex(8)
        numbers = ",".join(row.number for row in rows)
        words = ("-h", "-r", "-a", "-t", "all", "-j", numbers, "-o", f"{token}|%i|%j")
        try:
            answer = await self._ask("squeue", *words)
        except LrmsRefusedError as error:
            if _NO_JOB in error.reason:
                return []
            raise
        lines = [line.split("|", 2) for line in _text(answer.output).split("\n")]
        names = {words[1]: words[2] for words in lines if len(words) == 3 and words[0] == token}
        return [row for row in rows if self._is_name_of(row, names.get(row.number))]

    def _is_name_of(self, row: JobRow, name: str | None) -> bool:
        # Its user's word before the tag may have changed, and the tag may be there again that somebody has taken away.
        if name is None:
            return False
        name = element_name(name, row.number)
        key, tag = self.decode(name), self._tag(name)
        return (
            name == row.name
            or (bool(tag) and tag == self._tag(row.name))
            or (key is not None and key == row.known_as)
        )

    async def _check_still(self, rows: Sequence[JobRow]) -> None:
        there = await self._still(rows)
        if len(there) < len(rows):
            raise _not_there(rows, there)

    async def _changed(self, row: JobRow, *words: str) -> None:
        await self._check_still([row])
        job = f"JobId={row.number}"
        await self._ask("scontrol", "update", job, *words, account=self._whose(row))

    async def cancel(self, row: JobRow) -> bool:
        """Ends a job; returns whether Slurm still had it."""
        # With the name: after a crash of the controller the number may belong to another job.
        name, account = row.name, self._whose(row)
        if row.phase is LrmsPhase.UNKNOWN or row.in_array:
            # No poll has shown its full name; or it is to get its own, which another job must not get by its number.
            fields = await self._shown(row.number, name, account=account)
            if fields is None:
                return False
            name = fields["JobName"]
            row = replace(row, name=name, in_array=_IN_ARRAY in fields)
        row = (await self._parted([row]))[0]
        try:
            # With a filter all are ended that are not parted.
            sure = () if row.in_array else (f"--name={name}", *_only(row))
            words = (*sure, row.number)
            await self._ask("scancel", *words, account=account)
        except LrmsRefusedError as error:
            if not any(word in error.reason for word in _OVER):
                raise
            # That it is over already may also be the answer to scancel's own second attempt.
            return _NO_JOB not in error.reason
        return True

    async def cancel_all(self, rows: Sequence[JobRow]) -> None:
        """Ends jobs in one call.

        `scancel` takes one name for all. The name protects numbers that are given away again after a crash, which
        are only those not yet saved by the controller; in any case only the user's own jobs are affected.
        """
        numbers: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for row in await self._parted(rows):
            account = self._whose(row)
            user = (account or self._settings.account).removeprefix("#")
            only = () if row.in_array else (f"--user={user}", *_only(row))
            numbers.setdefault((account, only), []).append(row.number)
        for (account, only), those in numbers.items():
            words = (*only, *those)
            answer = await self._programs.run("scancel", *words, also=SECONDS, account=account)
            if answer.code != 0 and not _all_over(answer.error):
                raise failure("scancel", answer)

    async def held_since_submission(self, row: JobRow, *, released: bool) -> bool:
        """Returns whether a job is held by its submission hold.

        A job that was ever eligible has a moment from which it accrues age, which a later hold leaves. An undone
        release leaves none.
        """
        del released  # Slurm may have undone it
        fields = await self._shown(row.number, row.name)
        if fields is None or fields.get("Reason", "").replace("_", " ") == REQUEUED_HELD:
            return False
        return fields.get("AccrueTime") == "Unknown" and fields.get("Priority") == "0"

    async def ending(self, question: Question) -> Ending | None:
        """Looks up the end of a job in Slurm's records."""
        if self._log is not None:
            await asyncio.to_thread(self._log.read)
        ending = self._of_log(question)
        if ending is None and question.row is not None:
            fields = await self._said(question.number, question.name)
            ending = None if fields is None else self._ending_of(fields)
        if ending is None and self._settings.sacct and question.number:
            ending = await self._of_accounting(question)
        row_end = None if question.row is None else question.row.end
        not_launched = row_end is not None and row_end.reason == NOT_LAUNCHED
        if ending is not None and not_launched and not ending.end.reason:
            # The completion log has no reason. Of others the code says more than Slurm's word.
            ending = replace(ending, end=replace(ending.end, reason=NOT_LAUNCHED))
        return ending

    async def knows(self, question: Question) -> Ending | bool | None:
        """Asks Slurm for one job, as its own user, from whom it cannot be hidden."""
        if not question.number:
            return None
        account = self._other(question.name)
        try:
            # All others wait as well for what a user's own process says.
            async with asyncio.timeout(ASKED_S if account and self._programs.by_others else None):
                names = self._tags(question.name)
                fields = await self._shown(question.number, *names, account=account)
        except (LrmsRefusedError, UserAwayError, TimeoutError):
            return None
        if fields is None:
            return await self._left_array(question) or False
        ending = self._ending_of(fields)
        # What waits or runs under its marker's name is for whoever keeps its place.
        return ending or self._tag(fields["JobName"]) == names[0]

    async def _left_array(self, question: Question) -> Ending | None:
        # Slurm keeps no record of an element that somebody ends while it is not parted: the array is there without it.
        # Under its number may be another array, to which a crash has given it.
        number, array = question.number.partition("_")[0], array_tag(self._tag(question.name))
        if question.ran or array is None or not self._elements.waits(question.number):
            return None
        at = question.submit_time
        if at is None:  # it was ended before a look has shown it
            at = self._elements.submitted(question.number)
        for line in (await self._shown_text(number) or "").splitlines():
            fields = read_job(line)
            tag, submitted = self._tag(fields.get("JobName", "")), fields.get("SubmitTime")
            if tag != array[0] and (array_tag(tag) or ("",))[0] != array[0]:
                continue
            if at is not None and submitted == f"{at:.0f}":
                reason = "it was cancelled before it began"
                return Ending(None, LrmsEnd(Outcome.CANCELLED, self._clock(), 0.0, reason=reason))
        return None

    def _ending_of(self, fields: dict[str, str]) -> Ending | None:
        return ending_of(fields, self._zone(), self._guest_partitions)

    def _of_log(self, question: Question) -> Ending | None:
        log, names = self._log, self._tags(question.name)
        lines = [] if log is None else [line for name in names for line in log.of(name)]
        return logged_ending(lines, question.number, question.submit_time, self._zone())

    def _zone(self) -> float:
        # What makes of local time, in seconds, those since 1970; sudo keeps no variable that asks for the latter.
        return -time.localtime(self._clock()).tm_gmtoff

    async def _of_accounting(self, question: Question) -> Ending | None:
        fields = "JobIDRaw,State,ExitCode,Submit,Start,End,NodeList,JobName"
        try:
            answer = await self._ask(
                *("sacct", "-n", "-P", "-X", "-D", "-j", question.number, "-o", fields)
            )
        except LrmsRefusedError as error:
            # It keeps no records, or hides them from this user: other sources have to do.
            _log.warning("lrms.no_records", reason=error.reason)
            return None
        text, number, submitted = _text(answer.output), question.number, question.submit_time
        found = (read_accounting(text, tag, number, submitted) for tag in self._tags(question.name))
        return next((ending for ending in found if ending is not None), None)

    async def _said(self, number: str, name: str) -> dict[str, str] | None:
        # `None` also if access is denied.
        with contextlib.suppress(LrmsRefusedError):
            return await self._shown(number, name)
        return None

    async def _shown(self, number: str, *names: str, account: str = "") -> dict[str, str] | None:
        # `None` for a job that Slurm says it does not know, by one of these names.
        text = await self._shown_text(number, account)
        if text is None:
            return None
        fields = read_job(text)
        said, tags = fields.get("JobName", ""), [self._tag(name) for name in names]
        fields["JobName"] = element_name(said, number)
        if fields["JobName"] != said:
            fields[_IN_ARRAY] = said
        # A name without a tag is that of a job which somebody has renamed, and is asked for as it is.
        is_it = fields["JobName"] in names or any(
            tag and tag_of(fields["JobName"], tag, MARK) == tag for tag in tags
        )
        return fields if is_it else None

    def _tags(self, name: str) -> list[str]:
        # Under which the end of a job may be recorded: one that is ended as it is to leave has its marker's name then.
        key = self.decode(name)
        return [self._tag(name), *([] if key is None else [self.place_name(key)])]

    async def _shown_text(self, number: str, account: str = "") -> str | None:
        words = ("show", "job", "--all", "--oneliner", number)
        answer = await self._programs.run("scontrol", *words, also=SECONDS, account=account)
        text = _text(answer.output)
        if answer.code == 0:
            return text
        if _NO_JOB in answer.error or (not answer.error and _NOT_FOUND.fullmatch(text.strip())):
            return None
        raise failure("scontrol", answer)

    def _logged(self, lines: list[str]) -> Iterable[tuple[str, Logged]]:
        for line in read_log(lines, is_owner=self._is_owner, prefix=self._prefix):
            yield line.name, line

    def _tag(self, name: str) -> str:
        return tag_of(name, self._prefix, MARK)

    def _other(self, name: str) -> str:
        # The account of a job, if not this process's own.
        key = self.decode(name) or self.place_of(name)
        return "" if key is None else self._account_of(key)

    def _whose(self, row: JobRow) -> str:
        # By its name as long as that has a key.
        key = self.decode(row.name) or self.place_of(row.name) or row.known_as
        return self._account_of(key) if key else ""

    def _is_own(self, row: JobRow) -> bool:
        # Whether it is a job of a user of this site's; partners' are told that they wait in another way.
        key = self.decode(row.name) or row.known_as
        return key.startswith(f"{self._settings.site}/")

    def _is_owner(self, name: str, shown: str) -> bool:
        # By the number, as another user may have a name that is cut off, or written in digits.
        wanted = self._other(name) or self._settings.account
        said, _, number = shown.removesuffix(")").rpartition("(")
        known = self._number(wanted)
        return said == wanted if known is None else number == str(known)

    def _number(self, account: str) -> int | None:
        # `None` while the directory does not know it.
        if account not in self._numbers:
            with contextlib.suppress(KeyError):
                self._numbers[account] = user_number(account)
        return self._numbers.get(account)

    async def _ask(self, program: str, *arguments: str, account: str = "") -> Answer:
        return await asked(self._programs, program, *arguments, account=account)


async def asked(programs: Programs, program: str, *arguments: str, account: str = "") -> Answer:
    """Returns the answer of one of Slurm's programs, with moments as seconds since 1970.

    `account` is the user as whom it runs; empty for this process's own.

    Raises:
        LrmsError: it was refused or unanswered.
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
    if answer.by_sudo:
        # Whatever the words: the controller was not asked, and others' jobs do not wait for that.
        return LrmsRefusedError(f"{program}: {text}", passing=True)
    whole = answer.error
    passing = any(word.lower() in whole.lower() for word in _PASSING)
    unavailable = is_no_answer(whole)
    if not lines or (unavailable and not passing):
        # Of another user's process that says something of that user's jobs alone: anybody can write one.
        kind = UserAwayError if answer.theirs else LrmsUnavailableError
        return kind(f"{program}: {text}")
    full = any(word.lower() in whole.lower() for word in _FULL)
    return LrmsRefusedError(f"{program}: {text}", passing=passing, full=full)


def _not_there(rows: Sequence[JobRow], there: Sequence[JobRow]) -> LrmsRefusedError:
    numbers = ", ".join(row.number for row in rows if row not in there)
    return LrmsRefusedError(f"squeue: {numbers}: no job of this site has that number any more")


def _renamed(name: str, tag: str) -> str:
    # A job's name with another tag; the word before it is for people.
    if MARK in tag:
        return tag
    word, mark, _ = name.partition(MARK)
    return f"{word}{MARK}{tag}" if mark else tag


def _only(row: JobRow) -> tuple[str, ...]:
    # A held one may have been released and started since: a poll will then show it, and it is ended if wanted.
    return ("--state=PENDING",) if row.phase is LrmsPhase.HELD else ()


def _all_over(error: str) -> bool:
    # The end of the message, with a line per job.
    lines = [line for line in error.splitlines() if line.strip()]
    if len(error) >= ERROR_CHARACTERS_MAX:
        lines = lines[1:]  # cut
    return bool(lines) and all(any(word in line for word in _OVER) for line in lines)


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _streams(job: LrmsJob, folder: str) -> list[str]:
    # Of a job that prints into its own folder.
    program = job.program or Program("")
    words = [f"--output={folder}/stdout", *([] if program.merged else [f"--error={folder}/stderr"])]
    return [*words, f"--open-mode={'truncate' if program.truncated else 'append'}"]
