"""Jobs that are written for Slurm, as Slurm itself reads them.

`sbatch --test-only` says on the user's host, and as the user, what options and `#SBATCH` lines amount to, and submits
nothing. From then on it is a job like any other. Heavy modules are imported by the functions that need them.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lrms_sim.util.errors import HanseError
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from grms.lrms.home_run import HomeRun
    from grms.lrms.slurm.sbatch_text import DryRun
    from grms.lrms.slurm.sbatch_words import SbatchWords

NAME_MAX: Final = 128
"""Of a job's name, in characters."""

SBATCH_TIMEOUT_S: Final = 60.0
"""Slurm's programs try for some ten seconds to reach its controller."""

NODES_TIMEOUT_S: Final = 30.0
"""For so long a trial is repeated while a controller that has just started does not know its nodes yet, seconds."""

NODES_PAUSE_S: Final = 0.5
"""Between two such trials, seconds."""

THERE: Final = frozenset(("idle", "mix", "alloc", "comp", "plnd"))
"""States of nodes that run jobs, as sinfo shortens them."""

STATE_MARKS: Final = "~#%!$@^-"
"""Marks behind the state of a node that is powered up or down, kept, or started again; one that does not answer has `*`."""

READS: Final = "HANSE_READS_JOB"
"""Is set for Slurm's programs that say what a job is; whoever stands for one of them is not to ask again."""

SCRIPT_BYTES_MAX: Final = 256 << 10
"""A longer script is for sbatch alone."""

HOME_BYTES_MAX: Final = 256 << 10
"""Likewise if its user's variables are larger."""


class Handed(NamedTuple):
    """What was handed in.

    Attributes:
        words: of sbatch.
        stdin: the script where it came by standard input.
        sbatch: Slurm's own program; a name is looked for along `PATH`.
        numbers: jobs that a dependency names by numbers alone are the site's, and not Slurm's.
    """

    words: "SbatchWords"
    stdin: bytes | None = None
    sbatch: str = "sbatch"
    numbers: bool = False

    @property
    def name(self) -> str:
        """Of the job, if no option has one."""
        if self.words.script:
            return Path(self.words.script).name
        return "sbatch" if self.stdin is not None else "wrap"

    def command(self, options: Sequence[str]) -> list[str]:
        """Returns the words for sbatch, with these options."""
        words = self.words
        script = [_path(words.script), *words.arguments] if words.script else []
        return [*options, *script]

    def text(self) -> bytes:
        """Returns the script.

        Raises:
            OSError: it cannot be read.
        """
        from grms.lrms.slurm.sbatch_words import wrapped  # noqa: PLC0415  # see the module's docstring

        if self.words.script:
            return Path(self.words.script).read_bytes()
        return os.fsencode(wrapped(self.words.options)) if self.stdin is None else self.stdin


class SlurmJobError(HanseError):
    """A job cannot be read, or Slurm does not answer."""


class StaysHomeError(Exception):
    """A job that sbatch alone can submit.

    Attributes:
        job: without a dependency on jobs of a site.
        trial: what Slurm has said of it.
        reasons: why, by option; of the script or as a whole by another name, or none.
        dependency: that it had.
    """

    def __init__(
        self, job: Handed, trial: "DryRun", reasons: Mapping[str, str], dependency: str
    ) -> None:
        super().__init__("; ".join(reasons.values()))
        self.job = job
        self.trial = trial
        self.reasons = reasons
        self.dependency = dependency

    def lines(self) -> Iterator[str]:
        """Yields a line for each reason, to stand behind what becomes of the job."""
        for name, reason in self.reasons.items():
            value = self.trial.options.get(name, "set")
            shown = f"--{name}" if value == "set" else f"--{name}={printable(value)}"
            is_option = name in self.trial.options or name == "hetjob"
            shown = f" for {shown}" if is_option else f" for its {name}"
            yield f"{shown if name else ''}: {printable(reason)}"


class SlurmJob(NamedTuple):
    """A job as Slurm has read it.

    Attributes:
        wanted: arguments of `grms.client.Client.submit`.
        environment: variables of the script, of which a partner learns.
        trial: what Slurm has said of it.
        without: options without which it may run.
        unfit: why this cluster can never run it; empty if it can.
        nowhere: hands it to sbatch where no site can run it, if sbatch might.
        wait: a line of the script asks to wait for its end.
        test_only: it is not to be submitted.
    """

    wanted: dict[str, Any]
    environment: dict[str, str]
    trial: "DryRun"
    without: frozenset[str]
    unfit: str
    nowhere: Callable[[str], None] | None
    wait: bool
    test_only: bool

    def not_carried(self) -> Iterator[str]:
        """Yields what does not travel with it, a line for each kind."""
        return _not_carried(self.trial, self.without, self.unfit)


def read_job(
    job: Handed, without: frozenset[str], environment: Mapping[str, str], *, travels: bool
) -> SlurmJob:
    """Returns what a site is asked for.

    Args:
        job: as it was handed in.
        without: options not known to partners, and without which it may run.
        environment: variables of the script, besides those that its options name.
        travels: its files are not used in place, and have names that sbatch would find.

    Raises:
        StaysHomeError: sbatch alone can submit it.
        SlurmJobError: it cannot be read, or Slurm does not answer.
    """
    from grms.lrms.slurm.sbatch_text import (  # noqa: PLC0415  # see the module's docstring
        ESSENTIAL,
        SINGLETON,
        exported,
        kept_at_home,
        read_dry_run,
        says_test_only,
        take_dependency,
    )
    from grms.lrms.slurm.sbatch_words import has_option, without_quiet  # noqa: PLC0415  # same

    if needed := sorted(without & ESSENTIAL):
        text = f"without --{needed[0]} it would be another job; it cannot be left out"
        raise SlurmJobError(f"--without: {text}")
    try:
        options, dependency = take_dependency(job.words.options, numbers=job.numbers)
    except ValueError as error:
        raise SlurmJobError(f"--dependency: {error}") from error
    job = job._replace(words=job.words._replace(options=options))
    given = dependency
    try:
        script = job.text()
    except OSError as error:
        shown = printable(job.words.script)
        text = f"there is no script {shown}" if not Path(shown).exists() else f"{shown}: {error}"
        raise SlurmJobError(text) from error
    words = ("--test-only", "--verbose", "--verbose", *job.command(without_quiet(options)))
    end_s = time.monotonic() + NODES_TIMEOUT_S
    while True:
        answer = _run(job.sbatch, *words, given=job.stdin)
        trial = read_dry_run(answer.stderr, answer.returncode)
        if not trial.too_much or time.monotonic() > end_s or not _waits_for_nodes(job.sbatch):
            break
        time.sleep(NODES_PAUSE_S)
    reasons = kept_at_home(trial, without) | _too_much(script, job.words.arguments)
    too_much = trial.problem if trial.too_much else ""
    # Of nodes that are away now Slurm says the same: whether one of them could run it the site knows.
    unfit = "" if trial.fits_no_node and _nodes_are_away(job.sbatch) else too_much
    if trial.processors is None and not reasons and not too_much:
        # What a trial is refused for Slurm may take all the same, as where a partition is down.
        reasons = {"": f"a trial of it has ended with: {trial.problem}"}
    if reasons:
        raise StaysHomeError(job, trial, reasons, given)
    from dataclasses import replace  # noqa: PLC0415  # same

    request = replace(trial.request(without), wall_time=_limit_s(trial, job.sbatch))
    if trial.options.get("dependency") == SINGLETON:
        dependency = ",".join(filter(None, (dependency, SINGLETON)))

    def nowhere(reason: str) -> None:
        raise StaysHomeError(job, trial, {"": reason}, given)

    wanted = {
        "processors": request.processors,
        "requested_time_s": request.wall_time,
        "needs": request,
        "unfit": unfit,
        "name": trial.options.get("job-name", job.name)[:NAME_MAX],
        "script": script.decode(),
        "home": _at_home(trial, environment) if travels else None,
        "array": trial.options.get("array", ""),
        "dependency": dependency,
        **_streams(trial),
    }
    return SlurmJob(
        wanted,
        exported(trial.options.get("export", ""), os.environ) | dict(environment),
        trial,
        without,
        unfit,
        nowhere if too_much else None,
        "wait" in trial.options,
        has_option(options, "test-only") or says_test_only(script.decode()),
    )


def _streams(trial: "DryRun") -> dict[str, Any]:
    options = trial.options
    mode = options.get("open-mode", "")
    return {
        "output": options.get("output", ""),
        "error": options.get("error", ""),
        "open_mode": {"a": "append", "t": "truncate"}.get(mode, mode),
        "merged": "error" not in options,
    }


def _too_much(script: bytes, arguments: Sequence[str]) -> dict[str, str]:
    # Why a script is for sbatch alone, whatever its options are.
    found = {}
    if len(script) > SCRIPT_BYTES_MAX:
        found["script"] = f"it has {len(script)} bytes, and a site takes {SCRIPT_BYTES_MAX}"
    try:
        script.decode()
        "".join(arguments).encode()
    except UnicodeError:
        found["script"] = "it, or an argument, is not UTF-8"
    if sum(len(name) + len(value) + 2 for name, value in os.environb.items()) > HOME_BYTES_MAX:
        found["environment"] = f"a site takes {HOME_BYTES_MAX} bytes"
    return found


def _not_carried(trial: "DryRun", without: frozenset[str], unfit: str) -> Iterator[str]:
    from grms.lrms.slurm.sbatch_text import AT_HOME, STREAMS, is_all, not_told  # noqa: PLC0415  # as above

    options = trial.options
    if unfit:
        yield f"for partners alone, as this cluster cannot run it: {printable(unfit)}"
    if streams := sorted(STREAMS & options.keys()):
        words = ", ".join(f"--{name}" for name in streams)
        yield f"at a partner {words}: for grms fetch, which brings what it prints"
    gone = not_told(trial, without)
    for where, names in (
        ("at a partner it", [name for name in gone if name in AT_HOME]),
        ("it", [name for name in gone if name not in AT_HOME]),
    ):
        if names:
            words = ", ".join(f"--{name}={options[name]}" for name in names)
            yield f"{where} goes without {printable(words)}"
    if (value := options.get("export", "")) and is_all(value):
        yield f"at a partner it has no variables but those named: --export={printable(value)}"


def _at_home(trial: "DryRun", environment: Mapping[str, str]) -> "HomeRun | None":
    # How the job runs where it stays with its site, as sbatch would have had it run here.
    from grms.lrms.home_run import HomeRun  # noqa: PLC0415  # as above
    from grms.lrms.slurm.sbatch_text import exported, is_all, words_at_home  # noqa: PLC0415  # as above

    try:
        folder = trial.options.get("chdir") or os.getcwd()  # noqa: PTH109  # the same, as text
    except FileNotFoundError:
        return None
    value, options = trial.options.get("export", ""), words_at_home(trial)
    given = {os.fsencode(name): os.fsencode(text) for name, text in environment.items()}
    named = {os.fsencode(k): os.fsencode(v) for k, v in exported(value, os.environ).items()}
    if is_all(value):
        variables = {**os.environb, **named, **given}
    else:
        # Those of a login, and Slurm's own.
        options = (*options, "--get-user-env")
        slurms = {k: v for k, v in os.environb.items() if k.startswith((b"SLURM_", b"SPANK_"))}
        variables = {**slurms, **named, **given}
    if variables.get(b"GRPC_VERBOSITY") == b"NONE":
        del variables[b"GRPC_VERBOSITY"]  # this command's own
    variables |= {name.encode(): text.encode() for name, text in trial.propagated.items()}
    if value.upper() not in {"", "ALL"}:
        variables[b"SLURM_EXPORT_ENV"] = os.fsencode(value)
    pairs = tuple(name + b"=" + text for name, text in variables.items())
    return HomeRun(folder, pairs, options)


def _waits_for_nodes(sbatch: str) -> bool:
    # Whether nodes have still to tell a controller that has just started what they have: a trial is refused for that, while
    # sbatch itself takes the job.
    return any(state.startswith("unk") for state in _node_states(sbatch))


def _nodes_are_away(sbatch: str) -> bool:
    # Whether some nodes are drained, down, or else take no jobs now: for them, too, sbatch itself takes the job.
    return not {state.rstrip(STATE_MARKS) for state in _node_states(sbatch)} <= THERE


def _node_states(sbatch: str) -> list[str]:
    answer = _run(str(Path(sbatch).with_name("sinfo")), "-h", "-a", "-o", "%t")
    return answer.stdout.split() if answer.returncode == 0 else []


def _limit_s(trial: "DryRun", sbatch: str) -> float:
    # As an option says, else as the partition has it.
    from grms.lrms.slurm.sbatch_text import read_default_limit  # noqa: PLC0415  # as above

    try:
        found = trial.limit_s
        if found is None:
            partition = trial.partition or trial.options.get("partition", "")
            where = ("-p", partition) if partition else ()
            answer = _run(str(Path(sbatch).with_name("sinfo")), "-h", *where, "-o", "%L|%l")
            found = read_default_limit(answer.stdout) if answer.returncode == 0 else None
    except ValueError as error:
        raise SlurmJobError(f"Slurm's time limit cannot be read: {error}") from error
    if found is None:
        text = f"partition {partition} has no time limit; say how long it may run with --time"
        raise SlurmJobError(text)
    return found


def _path(script: str) -> str:
    # sbatch would look along PATH for a name alone.
    return script if "/" in script else f"./{script}"


def found(program: str) -> str:
    """Returns the path of a program of Slurm's.

    Raises:
        SlurmJobError: there is none.
    """
    if "/" in program and os.access(program, os.X_OK):
        return program
    import shutil  # noqa: PLC0415  # see the module's docstring

    path = shutil.which(program)
    if path is None:
        text = f"there is no {program} here; without Slurm say -p, -t and --script"
        raise SlurmJobError(text)
    return path


def _run(program: str, *words: str, given: bytes | None = None) -> "CompletedProcess[str]":
    import subprocess  # noqa: PLC0415  # see the module's docstring

    try:
        ended = subprocess.run(  # noqa: S603  # Slurm's own
            [found(program), *words],
            env={**os.environ, READS: "1"},
            input=given or b"",
            capture_output=True,
            check=False,
            timeout=SBATCH_TIMEOUT_S,
        )
        said, error = (each.decode("utf-8", "replace") for each in (ended.stdout, ended.stderr))
        return subprocess.CompletedProcess(ended.args, ended.returncode, said, error)
    except subprocess.TimeoutExpired as error:
        text = f"{program} has not answered within {SBATCH_TIMEOUT_S:g} s"
        raise SlurmJobError(text) from error
