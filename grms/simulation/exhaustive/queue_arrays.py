"""Arrays below a site that is explored: the real driver of Slurm above programs of Slurm that are values.

What concerns arrays is in the driver (`grms.lrms.slurm.slurm`): which jobs go together, how elements get their own names, how
one is ended and no other, and what it means that one is not there. So the driver is the real one, and its programs
answer in text, by a `Cluster`. Its look at the machine is left out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from grms.lrms.base import LrmsUnavailableError
from grms.lrms.base import Program as Script
from grms.lrms.batch.queue_snapshot import QueueSnapshot
from grms.lrms.batch.subprocesses import Answer, Programs
from grms.lrms.slurm.slurm import Slurm, SlurmSettings
from grms.lrms.slurm.slurm_arrays import element_name
from grms.lrms.slurm.slurm_nodes import SlurmRules
from grms.lrms.slurm.slurm_text import TABLE_FORMAT
from grms.simulation.exhaustive.choices import ViolationError
from grms.simulation.exhaustive.cluster import (
    CANCELLED,
    DONE,
    HELD,
    NOW,
    OPERATOR,
    RUNS,
    SITE_NAME,
    SUBMISSION,
    TIMEOUT,
    WAITS,
    Job,
    array_name,
    moment,
)
from grms.simulation.exhaustive.queue_steps import Below, Controller, Folders, QueueStep

_ACCOUNT: Final = "hanse"
_NUMBER: Final = 7
"""Whose the jobs are."""

_PREFIX: Final = f"hanse:{SITE_NAME}:"
_DRAWN: Final = "0a1b"
"""Begins each row."""
_ENDED_AT: Final = NOW + 0.5

_STATES: Final = {
    HELD: ("PD", "PENDING"),
    WAITS: ("PD", "PENDING"),
    RUNS: ("R", "RUNNING"),
    DONE: ("CD", "COMPLETED"),
    CANCELLED: ("CA", "CANCELLED"),
    TIMEOUT: ("TO", "TIMEOUT"),
}
"""By phase, in both forms; every other one is a failure."""

_GONE: Final = "Invalid job id specified"
_TOO_LATE: Final = "Job is no longer pending execution"


class SlurmPrograms(Programs):
    """Slurm's programs, which know as much as the driver asks for."""

    def __init__(self, step: QueueStep) -> None:
        super().__init__({})
        self._step = step
        self._world = step.world
        self._controller = Controller(step)
        self._pick = step.choices.pick

    async def run(  # noqa: PLR0911  # one for each program
        self, program: str, *arguments: str, typed: bytes = b"", **more: Any
    ) -> Answer:
        """See `Programs.run`."""
        del more
        words = [word for word in arguments if not word.startswith("--")]
        match program, words:
            case "squeue", _ if "-j" in arguments:
                return self._names(arguments)
            case "squeue", _:
                return self._squeue()
            case "sbatch", _:
                return await self._sbatch(arguments)
            case "scancel", _:
                return self._told("a cancellation", partial(self._scancel, arguments))
            case "scontrol", []:
                return self._told("new names", partial(self._named, typed.decode().splitlines()))
            case "scontrol", ["show", "job", number]:
                return self._show(number)
            case "scontrol", ["release", numbers]:
                return self._told("a release", partial(self._each, self._release, numbers))
            case "scontrol", ["hold", number]:
                return self._told("a hold", partial(self._each, self._hold, number))
        raise ViolationError(f"nobody has such a program: {program} {' '.join(arguments)}")

    def _told(self, what: str, carry_out: Callable[[], str]) -> Answer:
        error = self._controller.tells(what, carry_out)
        return Answer(int(bool(error)), b"", error)

    def _job(self, number: str) -> Job | None:
        return next((job for job in self._world.value.jobs if job.shown_number == number), None)

    # --- what it says --------------------------------------------------------------------------

    def _squeue(self) -> Answer:
        self._controller.answers("a poll")
        form = f"{_DRAWN}|{TABLE_FORMAT}"
        lines = {job.shown_number: _line(form, _values(job)) for job in self._world.value.jobs}
        ways = [("an empty table", "partial")] if lines else []
        if len(lines) > 1:
            ways += [(f"a table without {number}", "partial") for number in lines]
        word = self._pick("", *ways)
        if word == "an empty table":
            lines = {}
        elif word:
            del lines[word.rpartition(" ")[2]]
        return Answer(0, "\n".join(lines.values()).encode(), "")

    def _names(self, arguments: Sequence[str]) -> Answer:
        # Whose the numbers are that a change is about to go by. It is always told: where it is not, the change is not made, as
        # where that is not answered.
        numbers = arguments[arguments.index("-j") + 1].split(",")
        jobs = [job for job in self._world.value.jobs if job.shown_number in numbers]
        lines = [_line(arguments[-1], _values(job)) for job in jobs]
        if not lines and len(numbers) == 1:
            return Answer(1, b"", "slurm_load_jobs error: Invalid job id specified")
        return Answer(0, "\n".join(lines).encode(), "")

    def _show(self, number: str) -> Answer:
        self._controller.answers(f"what it knows of {number}")
        if self._pick("", (f"it does not say what it knows of {number}", "partial")):
            return Answer(1, b"", "Access/permission denied")
        jobs = self._world.value.jobs
        those = [job for job in jobs if number in {job.shown_number, str(job.number)}]
        elements = [job for job in jobs if job.element and str(job.element.array) == number]
        if elements or those:
            return Answer(0, "\n".join(map(_shown, elements or those)).encode(), "")
        array = number.partition("_")[0]
        if any(job.element and str(job.element.array) == array for job in jobs):
            return Answer(1, f"Job {number} not found".encode(), "")
        return Answer(1, b"", f"slurm_load_jobs error: {_GONE}")

    # --- what it does --------------------------------------------------------------------------

    async def _sbatch(self, arguments: Sequence[str]) -> Answer:
        said = dict(word.split("=", 1) for word in arguments if "=" in word)
        name, indices = said["--job-name"], _indices(said.get("--array", ""))
        names = [element_name(name, f"0_{index}") for index in indices] or [name]
        keys = [each.removeprefix(_PREFIX) for each in names]
        self._step.may_die("it submits")
        refusals = ("it is refused for now", "refuse"), ("it is refused for good", "deny")
        refusal = self._pick("", *refusals)
        if refusal == refusals[0][0]:
            return Answer(1, b"", "Required partition not available (inactive or drain)")
        if refusal:
            if not indices:
                self._world.deny(keys[0])
            return Answer(1, b"", "Batch job submission failed: Invalid job array specification")
        if self._world.value.down:
            raise LrmsUnavailableError("the controller is down")
        if self._pick("", ("the submission comes later", "late")):
            coming = (array_name(keys[0]), " ".join(keys))
            arriving = [*self._world.value.arriving, coming if indices else (keys[0], "")]
            self._world.value = self._world.value._replace(arriving=tuple(sorted(arriving)))
            await self._step.meanwhile()
            raise LrmsUnavailableError("timed out")
        submits = partial(self._world.submit_array, keys)
        if not indices:
            submits = partial(self._world.submit, keys[0])
        number = self._controller.tells("a submission", submits)
        await self._step.meanwhile()
        return Answer(0, f"{number}\n".encode(), "")

    def _each(self, act: Callable[[Job], str], numbers: str) -> str:
        # What is refused of one keeps no other waiting.
        errors = []
        for number in numbers.split(","):
            job = self._job(number)
            error = _GONE if job is None or not job.live else act(job)
            errors += [f"{error} for job {number}"] * bool(error)
        return "\n".join(errors)

    def _release(self, job: Job) -> str:
        if job.holder == OPERATOR:
            raise ViolationError(f"an operator holds job {job.key}, and it is released")
        self._world.release(job.number)
        return ""

    def _hold(self, job: Job) -> str:
        return "" if self._world.hold(job.number) else _TOO_LATE

    def _named(self, lines: Sequence[str]) -> str:
        errors = []
        for line in lines:
            _, number, name = line.split()
            job = self._job(number.partition("=")[2])
            if job is None or not job.live:
                error = _GONE if job is None else _TOO_LATE
                errors.append(f"{number.partition('=')[2]}: {error}")
            elif name.partition("=")[2] != f"{_PREFIX}{job.key}":
                raise ViolationError(f"job {job.key} gets the name {name}")
            else:
                self._world.part(job.number, named=True)
        return "\n".join(errors)

    def _scancel(self, arguments: Sequence[str]) -> str:
        # With a filter it ends all elements of an array that are not parted, instead of one.
        said = dict(word.split("=", 1) for word in arguments if word.startswith("--"))
        errors = []
        for number in (word for word in arguments if not word.startswith("--")):
            job = self._job(number)
            if job is None or not job.live:
                error = _GONE if job is None else "Job/step already completing or completed"
                errors.append(f"Kill job error on job id {number}: {error}")
                continue
            name = said.get("--name")
            if name is not None and name != f"{_PREFIX}{job.shown_key}":
                continue
            if job.is_unparted:
                assert job.element is not None
                those = self._world.unparted(job.element.array) if said else [job]
                self._world.leave_array(those)
                continue
            if "--state" in said and job.phase == RUNS:
                continue
            script = job.phase == RUNS and self._world.has_script(job.number)
            if script and not self._step.wanted(job.key):
                raise ViolationError(
                    f"job {job.key} runs, and is ended, and nobody has wanted that"
                )
            self._world.cancel(job.number, job.key, only_waiting=False)
        return "\n".join(errors)


def _indices(text: str) -> list[int]:
    parts = (word.partition("-") for word in text.split(",") if word)
    return [
        index for first, _, last in parts for index in range(int(first), int(last or first) + 1)
    ]


def _reason(job: Job) -> str:
    if job.phase == HELD:
        return "JobHeldAdmin" if job.holder == OPERATOR else "JobHeldUser"
    return "Priority" if job.phase == WAITS else "None"


def _started(job: Job) -> str:
    return "N/A" if job.started < 0 else f"{moment(job.started)}"


def _values(job: Job) -> Mapping[str, str]:
    # As squeue prints it. Moments have fractions, as all here have.
    node = "n1" if job.started >= 0 else ""
    end = "N/A" if job.live else f"{_ENDED_AT}"
    return {
        "i": job.shown_number,
        "t": _STATES.get(job.phase, ("F", ""))[0],
        "C": "1",
        "V": f"{moment(job.submitted)}",
        "S": _started(job),
        "e": end,
        "r": _reason(job),
        "u": _ACCOUNT,
        "U": str(_NUMBER),
        "N": node,
        "Y": "(null)",
        "P": "main",
        "j": f"{_PREFIX}{job.shown_key}",
    }


def _line(form: str, values: Mapping[str, str]) -> str:
    for letter, value in values.items():
        form = form.replace(f"%{letter}", value)
    return form


def _shown(job: Job) -> str:
    # As scontrol shows it.
    end = job.end()
    held = job.holder == SUBMISSION
    code = 0 if end is None or end.exit_code is None else end.exit_code
    fields: Mapping[str, object] = {
        "JobId": job.number,
        "JobName": f"{_PREFIX}{job.shown_key}",
        "UserId": f"{_ACCOUNT}({_NUMBER})",
        "Priority": 0 if job.phase == HELD else 1,
        "JobState": _STATES.get(job.phase, ("", "FAILED"))[1],
        "Reason": _reason(job),
        "ExitCode": f"{code}:0",
        "SubmitTime": f"{moment(job.submitted):.0f}",
        "AccrueTime": "Unknown" if held else f"{moment(job.submitted):.0f}",
        "StartTime": _started(job),
        "EndTime": "Unknown" if end is None else f"{_ENDED_AT}",
        "Partition": "main",
        "NodeList": "n1" if job.started >= 0 else "(null)",
    }
    return " ".join(f"{name}={value}" for name, value in fields.items())


class ArraySystem(Slurm):
    """The real driver of Slurm, without a look at the machine."""

    def __init__(self, step: QueueStep) -> None:
        settings = SlurmSettings(SITE_NAME, _ACCOUNT)
        super().__init__(SlurmPrograms(step), settings, clock=step.clock)
        self._rules = SlurmRules(array_size=1001)
        self._numbers = {_ACCOUNT: _NUMBER}

    async def look(self) -> QueueSnapshot:
        """See `Slurm.look`."""
        began_at = self._clock()
        self._elements.look_begins()
        table = await self._ask("squeue")
        queue = self._read(table.output.decode(), _DRAWN, 8)
        rows = tuple(self._elements.told_in(queue.rows))
        return QueueSnapshot(began_at, self._clock(), 8, 8, 8, 0, rows)


class _Folder(NamedTuple):
    # Of a job, as a path has it.
    parent: str
    name: str

    def __str__(self) -> str:
        return f"{self.parent}/{self.name}"


class ArrayFolders(Folders):
    """The jobs' folders, whose names say how those of the elements of an array are found."""

    def prepare(self, key: str, program: Script, **more: Any) -> Any:
        """See `Spool.prepare`."""
        super().prepare(key, program, **more)
        return _Folder("/jobs", key.replace("/", "+"))

    def begun_of(self, keys: Iterable[str]) -> set[str]:
        """See `Spool.begun_of`."""
        return {key for key in keys if self.runs(key)}


ARRAYS: Final = Below(ArraySystem, ArrayFolders, arrays=True)
"""Below an adapter that submits jobs as arrays."""
