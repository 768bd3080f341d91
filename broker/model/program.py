"""What a task runs: a script with arguments, what it asks for, the files that it is given and those that it leaves.

The estimate of its time is the task's work; the time after which it is killed is the wall time of its request.
"""

import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, Self

from broker.model.workflow import WORK_MAX, Task, Workflow
from grms.daemon.job_files import check_inputs, check_name, check_wanted
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request, check_names

COMMAND_SCRIPT: Final = '#!/bin/sh\nexec "$@"\n'
"""The script of a command, whose words are its arguments."""

SCRIPT_BYTES_MAX: Final = 1 << 20
WORDS_MAX: Final = 10_000
"""Most arguments of a script, and most variables that it is given."""

LIMIT_FACTOR: Final = 2.0
LIMIT_LEAST_S: Final = 600.0
"""A program of which nobody says when it is killed has twice its estimate, and at least ten minutes."""

URLS: Final = ("https://", "http://")
"""How the path of a file begins that is fetched where the workflow is handed in."""

RUNS_MAX: Final = 100

RERUN_OUTCOMES: Final = (
    "node_fail",
    "timeout",
    "out_of_memory",
    "lost",
    "unknown",
    "cancelled",
    "preempted",
)
"""Ends, beside exit codes, after which a program can be asked to be run again."""

SHA256_BYTES: Final = 32

CALLED_MAX: Final = 120
"""Most characters of what a program is known by."""

_INTERPRETER: Final = re.compile(
    r"(python|perl|ruby|node|julia|Rscript|java|bash|dash|sh|zsh)[\d.]*"
)


_STARTERS: Final = frozenset(
    {"command", "env", "exec", "mpiexec", "mpirun", "nice", "nohup", "srun", "time", "timeout"}
)
"""These start another program, which is what is known."""

_FOR_STARTER: Final = re.compile(r"-|\w+=|[\d.:]+[smhd]?$")
"""An option, a variable, a number or a time before that program."""

_TEXT: Final = re.compile(r"-\w*[ce]")
_TEXT_FOR_SHELL: Final = re.compile(r"-\w*c")
"""Options of interpreters that are followed by a text to run."""


_LOOKED_AT: Final = 64
"""So many words say what is called: a line may have hundreds of thousands."""


class HasPath(Protocol):
    """A path, as `pathlib.Path` is."""

    def __fspath__(self) -> str:
        """Returns it as text."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file that lies in the folder of a program before it begins; one of three kinds.

    Attributes:
        name: in that folder, `/` between its parts.
        size: bytes of a content that the broker has.
        sha256: of that content, 32 bytes; empty for the other kinds.
        task: the predecessor that leaves the file; empty for the other kinds.
        output: the name by which that task has declared it.
        path: of a file here, or a URL, that is still to be handed over; empty for the other kinds.

    Raises:
        ValueError: the name is none, or it is not of one kind.
    """

    name: str
    size: int = 0
    sha256: bytes = b""
    task: str = ""
    output: str = ""
    path: str = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        kinds = (bool(self.sha256), bool(self.task), bool(self.path))
        if sum(kinds) != 1:
            text = "is a content, a file here, or the output of a task: one of them"
            raise ValueError(f"the input {self.name!r} {text}")
        if self.sha256 and (len(self.sha256) != SHA256_BYTES or self.size < 0):
            raise ValueError(f"the input {self.name!r} has no SHA-256 of {SHA256_BYTES} bytes")
        if self.task:
            check_name(self.output)


@dataclass(frozen=True, slots=True)
class Output:
    """A file that a program has left.

    Attributes:
        size: bytes.
        sha256: of its content, 32 bytes.
    """

    name: str
    size: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Rerun:
    """When a program is run again.

    Attributes:
        runs: most runs in all; 1 for never again.
        exit_codes: after which it is run again, 1 to 255.
        outcomes: ends after which it is run again, of `RERUN_OUTCOMES`.

    Raises:
        ValueError: a number or a word has no meaning, or it is not said after what.
    """

    runs: int = 1
    exit_codes: tuple[int, ...] = ()
    outcomes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.runs <= RUNS_MAX:
            raise ValueError(f"rerun: runs is {self.runs}; it must be from 1 to {RUNS_MAX}")
        for code in self.exit_codes:
            if not 1 <= code <= 255:
                raise ValueError(f"rerun: the exit code {code}; it must be from 1 to 255")
        for word in self.outcomes:
            if word not in RERUN_OUTCOMES:
                raise ValueError(
                    f"rerun: the outcome {word!r}; it must be one of {', '.join(RERUN_OUTCOMES)}"
                )
        if (self.runs > 1) != bool(self.exit_codes or self.outcomes):
            raise ValueError(
                "rerun: runs and exit_codes (or outcomes) go together: how often, and after what"
            )

    def wanted(self, runs: int, outcome: str, exit_code: int | None) -> bool:
        """Returns whether there is another run after so many, of which the last ended so."""
        after = outcome in self.outcomes or (outcome == "failed" and exit_code in self.exit_codes)
        return runs < self.runs and after


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A program writes its state, and goes on from it where the variable `HANSE_RESTART_COUNT` is above 0.

    Attributes:
        every: at least so often, seconds, at least 1.
        files: in which it does, as names, folders and patterns.

    Raises:
        ValueError: they are none.
    """

    every: float
    files: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1.0 <= self.every < math.inf:
            raise ValueError(f"checkpoint: every is {self.every:g}; it must be at least 1 s")
        if not check_wanted(self.files).declared:
            raise ValueError("checkpoint: files are missing, in which it writes its state")


@dataclass(frozen=True, slots=True)
class Program:
    """What one task runs.

    Attributes:
        task: its name.
        script: text, with its first line (`#!`).
        arguments: of the script.
        environment: variables, sorted by name.
        request: what it asks for; its wall time is when it is killed, seconds.
        inputs: files in its folder before it begins.
        outputs: files that it leaves in its folder: without one of them it has failed.
        rerun: when it is run again.
        checkpoint: how it goes on where a site has ended it for another job; `None` from its start.

    Raises:
        ValueError: it could run nowhere; the text says why.
    """

    task: str
    script: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    request: Request = field(default_factory=Request)
    inputs: tuple[Input, ...] = ()
    outputs: tuple[str, ...] = ()
    rerun: Rerun = Rerun()
    checkpoint: Checkpoint | None = None

    def __post_init__(self) -> None:
        limit = self.request.wall_time
        if self.checkpoint is not None and limit is not None and self.checkpoint.every > limit:
            text = f"checkpoint: every is {self.checkpoint.every:g}, after the limit of {limit:g} s"
            raise ValueError(text)
        self._check_script()
        self._check_words()
        if patterns := check_wanted(self.outputs).patterns:
            text = "a task's output is one file, as others are given it; no folder and no pattern"
            raise ValueError(f"{patterns[0]!r}: {text}")
        given = check_inputs(each.name for each in self.inputs)
        if both := sorted(set(given) & set(self.outputs)):
            raise ValueError(f"{both[0]!r} is an input and an output; name one of them otherwise")
        check_names(self.request)

    def _check_script(self) -> None:
        if not self.script.startswith("#!"):
            raise ValueError("its script has no first line that says what runs it, as #!/bin/sh")
        size = len(self.script.encode(errors="replace"))
        if size > SCRIPT_BYTES_MAX:
            raise ValueError(f"its script has {size} bytes; at most {SCRIPT_BYTES_MAX}")

    def _check_words(self) -> None:
        if len(self.arguments) > WORDS_MAX or len(self.environment) > WORDS_MAX:
            raise ValueError(f"it has more than {WORDS_MAX} arguments or variables")
        names = [name for name, _ in self.environment]
        for word in (*self.arguments, *(value for _, value in self.environment), self.script):
            if "\0" in word:
                raise ValueError("an argument, a variable or the script has the character NUL")
            try:
                word.encode()
            except UnicodeEncodeError:
                raise ValueError(f"{word[:80]!r} is no text in UTF-8") from None
        for name in names:
            if not name.isprintable() or not name or "=" in name:
                raise ValueError(f"{name[:80]!r} is no name of an environment variable")
        if names != sorted(set(names)):
            raise ValueError("its variables are not sorted, or one comes twice")

    @classmethod
    def of_command(
        cls,
        task: str,
        command: Sequence[str] = (),
        *,
        script: str = "",
        environment: Mapping[str, str] | None = None,
        request: Request | None = None,
        limit: float | None = None,
        inputs: Mapping[str, str | HasPath | tuple[str, str]] | None = None,
        outputs: Iterable[str] = (),
        rerun: Rerun | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Returns the program of a task.

        Args:
            task: its name.
            command: its words; with a script, the arguments of that.
            script: text, with its first line; by default one that runs the command.
            environment: variables.
            request: what it asks for; one processor by default.
            limit: seconds after which it is killed, instead of the request's wall time.
            inputs: by their names in its folder: paths of files here, or task and output of a predecessor.
            outputs: files that it has to leave.
            rerun: when it is run again; never by default.
            checkpoint: how it goes on where a site has ended it for another job; from its start by default.

        Raises:
            ValueError: it could run nowhere, or there is neither command nor script.
        """
        if not script and not command:
            raise ValueError("there is neither a command nor a script")
        asked = request or Request()
        return cls(
            task,
            script or COMMAND_SCRIPT,
            tuple(command),
            tuple(sorted((environment or {}).items())),
            asked if limit is None else replace(asked, wall_time=limit),
            tuple(_input(name, source) for name, source in (inputs or {}).items()),
            tuple(outputs),
            rerun or Rerun(),
            checkpoint,
        )

    def limited(self, work: float) -> "Program":
        """Returns it with a limit, for an estimate of so many seconds where it says none."""
        if self.request.wall_time is not None:
            return self
        limit = min(WORK_MAX, max(LIMIT_LEAST_S, LIMIT_FACTOR * work))
        return replace(self, request=replace(self.request, wall_time=limit))

    @property
    def called(self) -> str:
        """What it is known by from run to run: what it calls, without arguments, and on how many processors.

        A script of more than one line is known by its text, and of what an interpreter is given the file or module counts.
        """
        request = self.request
        processors = request.tasks * request.cores_per_task
        name = _called(self.script, self.arguments)[:CALLED_MAX]
        return name if processors == 1 else f"{name} on {processors} processors"

    @property
    def limit(self) -> float:
        """Seconds after which it is killed."""
        assert self.request.wall_time is not None  # limited() comes before
        return self.request.wall_time


def _called(script: str, arguments: Sequence[str]) -> str:
    words = list(arguments)
    if script != COMMAND_SCRIPT:
        lines = [line.strip() for line in script.splitlines()[1:]]
        lines = [line for line in lines if line and not line.startswith(("#", "set "))]
        by_text = f"script {hashlib.sha256(script.encode()).hexdigest()[:12]}"
        if len(lines) != 1:
            return by_text
        # What a shell makes of several commands in a line is not guessed.
        if re.search(r"[;&|`]|\$\(|^\W*\w+=", lines[0]):
            return by_text
        words = lines[0].split()
    return _called_by(words[:_LOOKED_AT])


def _base(words: list[str]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def _called_by(words: list[str]) -> str:
    first = _base(words)
    while first in _STARTERS:
        started = list(itertools.dropwhile(_FOR_STARTER.match, words[1:]))
        if not started:
            break
        words, first = started, _base(started)
    if not _INTERPRETER.fullmatch(first):
        return first or "?"
    options = list(itertools.takewhile(lambda word: word.startswith("-"), words[1:]))
    given = next(iter(words[1 + len(options) :]), "")
    text = _TEXT_FOR_SHELL if first.rstrip("0123456789.").endswith("sh") else _TEXT
    if any(map(text.fullmatch, options)) or not given:
        return f"{first} -c" if given else first
    return f"{first} {given.rpartition('/')[2]}"


def _input(name: str, source: str | HasPath | tuple[str, str]) -> Input:
    if isinstance(source, tuple):
        return Input(name, task=source[0], output=source[1])
    return Input(name, path=source if isinstance(source, str) else source.__fspath__())


def ending_words(outcome: Outcome, exit_code: int | None, signal: int | None, limit: float) -> str:
    """Returns why a program has not come to a good end, for a person; empty if it has."""
    words = {
        Outcome.TIMEOUT: f"it was killed at its limit of {limit:g} s",
        Outcome.CANCELLED: "it was ended at its site, not by the broker",
        Outcome.NODE_FAIL: "what it ran on failed",
        Outcome.OUT_OF_MEMORY: "it was ended as it needed more memory than it had",
        Outcome.LOST: "its batch system has forgotten it before it started",
        Outcome.UNKNOWN: "it is over, and nobody can say how",
        Outcome.PREEMPTED: "its batch system has ended it for another job",
    }
    if outcome is not Outcome.FAILED:
        return words.get(outcome, "")
    if signal is not None:
        return f"it was ended by signal {signal}"
    return "it has failed" if exit_code is None else f"it has ended with exit code {exit_code}"


def needed_outputs(programs: Iterable[Program]) -> dict[str, frozenset[str]]:
    """Returns those outputs of tasks, by their names, that others of their workflow are given."""
    found: dict[str, set[str]] = {}
    for program in programs:
        for each in program.inputs:
            if each.task:
                found.setdefault(each.task, set()).add(each.output)
    return {task: frozenset(outputs) for task, outputs in found.items()}


def check_programs(workflow: Workflow, programs: Sequence[Program]) -> None:
    """Checks that programs belong to a workflow's tasks, and are given what predecessors leave.

    Raises:
        ValueError: they do not; the text names the task.
    """
    tasks = {task.name: task for task in workflow.tasks}
    known: dict[str, Program] = {}
    for program in programs:
        if program.task not in tasks:
            raise ValueError(f"there is no task {program.task!r}, which is to run a program")
        if program.task in known:
            raise ValueError(f"task {program.task!r} has two programs")
        known[program.task] = program
    for program in programs:
        for problem in problems_of(program, tasks[program.task], known):
            raise ValueError(f"task {program.task!r}: {problem}")


def problems_of(program: Program, task: Task, known: Mapping[str, Program]) -> Iterator[str]:
    """Yields why a task's program cannot be given what it asks for; `known` are the programs of all tasks, by name."""
    for each in program.inputs:
        if not each.task:
            continue
        if each.task not in task.predecessors:
            yield f"it is given {each.output!r} of {each.task!r}, which is none of its predecessors"
        other = known.get(each.task)
        if other is None:
            yield f"it is given {each.output!r} of {each.task!r}, which runs no program"
        elif each.output not in other.outputs:
            said = ", ".join(other.outputs) or "none"
            yield f"it is given {each.output!r} of {each.task!r}, whose outputs are: {said}"
