"""The command `grms submit`: a job of numbers, or one that is written for Slurm.

A job that is written for Slurm (`grms submit [options of sbatch] job.sh [arguments]`) is read by Slurm
alone: `sbatch --test-only` says what its options and its lines `#SBATCH` come to, as the user and on the
user's host, and submits nothing. From then on it is a job as any other. One that asks for what a partner
cannot be told is handed to `sbatch` as it is, and is none of the site's.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from grms.names import printable
from grms.site_cli import job_words, site_option, timeout_option

if TYPE_CHECKING:
    from grms.client import Job
    from grms.lrms.batch.sbatch_text import DryRun, SbatchWords

OWN: Final = {
    "--socket": True,
    "--site": True,
    "--timeout": True,
    "--env": True,
    "--result": True,
    "--input": True,
    "--key": True,
    "--without": True,
    "--shared": False,
    "--wait": False,
    "-W": False,
    "-h": False,
    "--help": False,
}
"""Options of this command that mean the same for a job that is written for Slurm; True: with a value."""

NUMBERS: Final = {"--script": True, "--processors": True, "--run-time": True, "--name": True}
"""Options by which one knows the other kind of job: sbatch has none of these."""

SBATCH_TIMEOUT_S: Final = 60.0
"""Slurm's programs try for some ten seconds to reach its controller."""

NAME_MAX: Final = 128
"""Most characters of a job's name at a site."""

_SLURM: Final = "hanse.sbatch"
_OPTIONS: Final = {"outputs": "result", "inputs": "input"}


class _Submit(click.Command):
    # Two forms in one command: of the second click is shown what is this command's own.
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from grms.lrms.batch.sbatch_text import (  # noqa: PLC0415  # see the module's docstring
            UnknownOptionError,
            split_words,
        )

        try:
            mine, slurm = split_words(args, OWN | NUMBERS)
        except UnknownOptionError as error:
            if not _is_for_slurm(args):
                return super().parse_args(ctx, args)
            raise click.UsageError(str(error), ctx) from error
        if slurm is None or any(word.partition("=")[0] in NUMBERS for word in mine):
            return super().parse_args(ctx, args)
        ctx.meta[_SLURM] = slurm
        return super().parse_args(ctx, ["--wait" if word == "-W" else word for word in mine])


def _is_for_slurm(words: list[str]) -> bool:
    # What has an option that nobody knows: click says what this command has, where it is one of numbers.
    return not any(word.partition("=")[0] in NUMBERS for word in words)


@click.command(cls=_Submit)
@site_option
@timeout_option
@click.option("-p", "--processors", type=click.IntRange(1))
@click.option(
    "-t",
    "--time",
    "requested_time_s",
    type=click.FloatRange(0, min_open=True),
    help="It may run, seconds.",
)
@click.option("--run-time", "run_time_s", type=float, help="It does run, where simulated; seconds.")
@click.option(
    "--script",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What runs; a simulated batch system does not run it.",
)
@click.option(
    "--env",
    "environment",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A variable of the script; without a value, as it is here. May come several times.",
)
@click.option(
    "--result",
    "outputs",
    multiple=True,
    metavar="FILE",
    help="A file that the script leaves in its folder and that you want; may come several times.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="FILE",
    help="A file that the script finds in its folder, under the same relative path, or of one that begins "
    "with / under its last part. May come several times.",
)
@click.option(
    "--shared",
    "in_place",
    is_flag=True,
    help="Script, --input and --result are used where they lie, in folders that sites have in common; nothing "
    "of them travels.",
)
@click.option("--name", default="", help="A word of your own.")
@click.option("--key", help="The same key is the same job.  [default: a new one]")
@click.option(
    "--without",
    default="",
    metavar="OPTION[,OPTION]",
    help="Options of sbatch that a partner cannot be told, and without which the job may run.",
)
@click.option(
    "--wait",
    is_flag=True,
    help="Return when it has ended, with the exit status of its script: 128 and the signal where one "
    "ended it, 1 where it did not complete in another way.",
)
@click.argument("arguments", nargs=-1)
@click.pass_context
def submit(
    ctx: click.Context,
    /,
    socket: Path,
    *,
    timeout_s: float,
    script: Path | None,
    environment: tuple[str, ...],
    arguments: tuple[str, ...],
    without: str,
    in_place: bool,
    wait: bool,
    **wanted: Any,
) -> None:
    """Hand in a job; its id is printed.

    ARGUMENTS are the script's; put -- before the first one that begins with a dash.

    \b
    On a host with Slurm, without --script, -p and -t, as with sbatch:
      grms submit [OPTIONS OF SBATCH] job.sh [ARGUMENTS]

    Then Slurm reads the options and the lines #SBATCH (-p is a partition and -t are minutes); --env,
    --input, --result, --key, --without and --wait are as here. A job that asks for what a partner cannot be told
    stays at home: it is handed to sbatch, and why is said.
    """  # noqa: D301  # click's mark for a block that is not wrapped
    given = _environment(environment)
    wanted["inputs"] = _inputs(wanted["inputs"])
    if (slurm := ctx.meta.get(_SLURM)) is not None:
        left_out = frozenset(word.removeprefix("--") for word in without.split(",") if word)
        asked = tuple(name for name in ("inputs", "outputs", "key") if wanted[name])
        asked += ("shared",) if in_place else ()
        found = _for_slurm(slurm, left_out, given, asked=asked, wait=wait)
        script, arguments = Path(slurm.script), slurm.arguments
        wanted |= {name: found[name] for name in ("processors", "requested_time_s", "name")}
        given = found["environment"]
    elif without:
        raise click.UsageError("--without goes with a job that is written for Slurm")
    for name, words in (("processors", "-p / --processors"), ("requested_time_s", "-t / --time")):
        if wanted[name] is None:
            raise click.UsageError(f"Missing option '{words}'.")
    asked_for = environment or arguments or wanted["outputs"] or wanted["inputs"] or in_place
    if script is None and asked_for:
        raise click.UsageError("arguments, --env, --input, --result and --shared go with --script")
    text = None if script is None or in_place else _script(script)
    wanted |= {"arguments": arguments, "environment": given}
    _check_text(wanted)
    if in_place and script is not None:
        wanted |= _shared(script, wanted["inputs"], wanted["outputs"])
    job = _handed_in(socket, timeout_s, wanted | {"script": text}, wait=wait)
    if wait and (status := exit_status(job)):
        ctx.exit(status)


def _check_text(wanted: Mapping[str, Any]) -> None:
    texts = (
        *wanted["arguments"],
        *wanted["outputs"],
        *wanted["inputs"],
        *wanted["environment"].values(),
    )
    for shown, word in (
        *((printable(text), text) for text in texts),
        *((f"--{name}", str(wanted[name])) for name in ("name", "key")),
    ):
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise click.UsageError(f"{shown} is not UTF-8") from error


def _handed_in(socket: Path, timeout_s: float, wanted: dict[str, Any], *, wait: bool) -> "Job":
    from grms.client import SyncClient  # noqa: PLC0415  # see the module's docstring

    with SyncClient(socket, timeout_s=timeout_s) as site:
        try:
            job = site.submit(**wanted)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        click.echo(job.job_id)
        if wait:
            job = site.wait(job.job_id)
            click.echo(job_words(job), err=True)
    return job


def exit_status(job: "Job") -> int:
    """Returns the status with which a command ends that has waited for a job."""
    if job.signal is not None:
        return 128 + job.signal
    return job.exit_code or int(job.outcome != "completed")


def _environment(words: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for word in words:
        name, is_given, value = word.partition("=")
        if not is_given and name not in os.environ:
            raise click.BadParameter(f"{name} is not set here", param_hint="'--env'")
        found[name] = value if is_given else os.environ[name]
    return found


def _inputs(words: tuple[str, ...]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for word in words:
        path = Path(word)
        if not path.is_file():
            raise click.BadParameter(f"there is no file {printable(word)}", param_hint="'--input'")
        name = path.name if path.is_absolute() else str(path)
        if name in found:
            raise click.BadParameter(f"{printable(name)} comes twice", param_hint="'--input'")
        found[name] = path
    return found


def _absolute(path: str | Path) -> str:
    # As it is called, without looking: it is the site that refuses links.
    return os.path.abspath(path)  # noqa: PTH100  # `resolve` would follow them


def _shared(script: Path, inputs: Mapping[str, Path], outputs: tuple[str, ...]) -> dict[str, Any]:
    # What is said of files that are used in place; links in these paths are for the site to refuse.
    from grms.kit.shared_folders import SCRIPT, SharedFile  # noqa: PLC0415  # see the module's docstring

    shared = [SharedFile(SCRIPT, _absolute(script))]
    shared += [SharedFile(name, _absolute(path)) for name, path in inputs.items()]
    for word in outputs:
        name = Path(word).name if word.startswith("/") else word
        shared.append(SharedFile(name, _absolute(word), written=True))
    return {"inputs": {}, "outputs": (), "shared": shared}


def _script(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        text = f"{path}: byte {error.start} is not UTF-8; a script is text"
        raise click.BadParameter(text, param_hint="'--script'") from error


# --- jobs that are written for Slurm -------------------------------------------------------------


def _for_slurm(
    words: "SbatchWords",
    without: frozenset[str],
    environment: Mapping[str, str],
    *,
    asked: tuple[str, ...],
    wait: bool,
) -> dict[str, Any]:
    # What the site is asked for; does not return where the job stays at home.
    from grms.lrms.batch.sbatch_text import (  # noqa: PLC0415  # see the module's docstring
        ESSENTIAL,
        STREAMS,
        exported,
        kept_at_home,
        read_dry_run,
    )

    if needed := sorted(without & ESSENTIAL):
        text = f"without --{needed[0]} it would be another job; it cannot be left out"
        raise click.BadParameter(text, param_hint="'--without'")
    if not Path(words.script).is_file():
        raise click.UsageError(f"there is no script {printable(words.script)}")
    command = [*words.options, _path(words.script), *words.arguments]
    answer = _run("sbatch", "--test-only", "--verbose", *command)
    trial = read_dry_run(answer.stderr, answer.returncode)
    if reasons := kept_at_home(trial, without):
        _stay(command, trial, reasons, asked=(*asked, *(["env"] if environment else ())), wait=wait)
    if trial.processors is None:
        raise click.ClickException(f"Slurm does not take it: {printable(trial.problem)}")
    for name in sorted(STREAMS & trial.options.keys()):
        click.echo(f"--{name} is not followed: grms logs shows what the job prints", err=True)
    for name in sorted(without & trial.options.keys()):
        click.echo(f"it goes without --{name}={printable(trial.options[name])}", err=True)
    return {
        "processors": trial.processors,
        "requested_time_s": _limit_s(trial),
        "name": trial.options.get("job-name", Path(words.script).name)[:NAME_MAX],
        "environment": exported(trial.options.get("export", ""), os.environ) | dict(environment),
    }


def _stay(
    command: list[str],
    trial: "DryRun",
    reasons: Mapping[str, str],
    *,
    asked: tuple[str, ...],
    wait: bool,
) -> None:
    for name, reason in reasons.items():
        value = trial.options.get(name, "set")
        shown = f"--{name}" if value == "set" else f"--{name}={printable(value)}"
        click.echo(f"it stays at home for {shown}: {reason}", err=True)
    if asked:
        words = ", ".join(f"--{_OPTIONS.get(word, word)}" for word in asked)
        text = f"{words}: for a job that a site runs; this one is for sbatch alone, and was not submitted"
        raise click.UsageError(text)
    # It writes for itself: with --wait the number has to be there at once.
    words_of_sbatch = [_found("sbatch"), *(["--wait"] if wait else []), *command]
    ended = subprocess.run(words_of_sbatch, stdin=subprocess.DEVNULL, check=False)  # noqa: S603  # as asked
    click.get_current_context().exit(ended.returncode)


def _limit_s(trial: "DryRun") -> float:
    # As an option says, else as the partition has it.
    from grms.lrms.batch.sbatch_text import read_default_limit  # noqa: PLC0415  # as above

    try:
        found = trial.limit_s
        if found is None:
            answer = _run("sinfo", "-h", "-p", trial.partition, "-o", "%L|%l")
            found = read_default_limit(answer.stdout) if answer.returncode == 0 else None
    except ValueError as error:
        raise click.ClickException(f"Slurm's time limit cannot be read: {error}") from error
    if found is None:
        text = f"partition {trial.partition} has no time limit; say how long it may run with --time"
        raise click.ClickException(text)
    return found


def _path(script: str) -> str:
    # sbatch would look along PATH for a name alone.
    return script if "/" in script else f"./{script}"


def _found(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        text = f"there is no {program} here; without Slurm say -p, -t and --script"
        raise click.UsageError(text)
    return found


def _run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603  # Slurm's own
            [_found(program), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=SBATCH_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        text = f"{program} has not answered within {SBATCH_TIMEOUT_S:g} s"
        raise click.ClickException(text) from error
