"""The command `grms submit`: a job given by numbers, or one written for Slurm.

A job written for Slurm (`grms submit [options of sbatch] job.sh [arguments]`) is parsed by Slurm
itself: `sbatch --test-only` reports what its options and `#SBATCH` lines amount to, as the user and
on the user's host, and submits nothing. From then on it is a job like any other. One whose
requirements cannot be expressed to a partner is handed to `sbatch` as it is, and is none of the
site's.

Heavy modules are imported by the commands that need them, so that help and errors come at once.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from grms.cli.handing_in import checked, exit_status, hand_in, preview_lines
from grms.cli.site_connection import client_of, site_option
from grms.daemon.timeout_option import timeout_option
from lrms_sim.util.messages import duration_of, printable
from lrms_sim.util.option_fields import FINITE, FloatRange

if TYPE_CHECKING:
    from grms.cli.slurm_jobs import SlurmJob, StaysHomeError
    from lrms_sim.workload.requests import Request


F = TypeVar("F", bound=Callable[..., Any])

NAMES: Final = (
    *("nodes", "cores_per_task", "tasks_per_node", "memory", "gpus", "features", "exclusive"),
    *("licences", "image", "partition", "account", "qos", "modules", "signal", "requeue"),
)
"""Parameters of a command that has these options."""


def needs_options(command: F) -> F:
    """Adds the options to a command; their values are for `needs_of`."""
    for option in reversed(
        (
            click.option("--nodes", metavar="N[-M]", help="On so many nodes, or from N to M."),
            click.option(
                "--cores-per-task", type=click.IntRange(1), help="Cores that are on one node."
            ),
            click.option(
                "--tasks-per-node", type=click.IntRange(1), help="At most so many on one node."
            ),
            click.option(
                "--memory", metavar="SIZE[/node|core|gpu]", help="Such as 4G; of each core."
            ),
            click.option(
                "--gpus", metavar="[TYPE:]N[/node|task]", help="In all, or of each node or task."
            ),
            click.option(
                "--feature",
                "features",
                multiple=True,
                metavar="NAME",
                help="That its nodes must have. May come several times, as the next three.",
            ),
            click.option("--licence", "licences", multiple=True, metavar="NAME[:N]"),
            click.option("--module", "modules", multiple=True, metavar="NAME"),
            click.option("--exclusive", is_flag=True, help="No other job on its nodes."),
            click.option("--image", default="", metavar="NAME", help="Container image."),
            click.option("--partition", default="", metavar="NAME[,NAME]"),
            click.option("--account", default="", metavar="NAME"),
            click.option("--qos", default="", metavar="NAME"),
            click.option(
                "--signal",
                default="",
                metavar="[B:]SIGNAL[@SECONDS]",
                help="Sent to it before its time is over, such as USR1@120; B: to the script alone.",
            ),
            click.option(
                "--requeue/--no-requeue",
                default=None,
                help="Whether it may be run again, from its start or its --checkpoint.",
            ),
        )
    ):
        command = option(command)
    return command


def needs_of(processors: int, requested_time_s: float, values: dict[str, Any]) -> "Request | None":
    """Returns what a job asks for besides processors; `None` for nothing.

    Raises:
        click.BadParameter: an option cannot be read, or they contradict each other.
    """
    given = {name: values[name] for name in NAMES if values.get(name) or values.get(name) is False}
    if given.get("exclusive") is False:
        del given["exclusive"]
    if not given:
        return None
    from dataclasses import replace  # noqa: PLC0415  # most jobs ask for nothing else, and are to be submitted fast

    from lrms_sim.workload.requests import Request, RequestError, check_names  # noqa: PLC0415  # same

    cores = given.pop("cores_per_task", 1)
    if processors % cores:
        text = f"{processors} processors are no whole number of tasks with {cores} cores each"
        raise click.BadParameter(text, param_hint="'--cores-per-task'")
    try:
        request = Request(tasks=processors // cores, cores_per_task=cores)
        said: dict[str, Any] = {}
        for name, value in given.items():
            said |= _said(name, value)
        request = replace(request, wall_time=requested_time_s, **said)
        check_names(request)
    except RequestError as error:
        raise click.UsageError(str(error)) from error
    return request


def _said(name: str, value: Any) -> dict[str, Any]:
    # What an option says, by the fields of a request.
    from lrms_sim.workload import requests  # noqa: PLC0415  # as in `needs_of`
    from lrms_sim.workload.requests import RequestError  # noqa: PLC0415  # same

    try:
        match name:
            case "nodes":
                least, most = requests.nodes_of(value)
                return {"nodes_min": least, "nodes_max": most}
            case "memory":
                return {name: requests.memory_of(value)}
            case "gpus":
                return {name: requests.gpus_of(value)}
            case "signal":
                from grms.lrms.slurm.slurm_request import read_signal  # noqa: PLC0415  # same

                signal, before_s = read_signal(value)
                return {"signal": signal, "signal_before": before_s}
            case "licences":
                return {name: tuple(map(requests.licence_of, value))}
    except (RequestError, ValueError) as error:
        option = name.removesuffix("s") if name == "licences" else name
        raise click.BadParameter(str(error), param_hint=f"'--{option}'") from error
    return {name: value}


OWN: Final = {
    "--socket": True,
    "--site": True,
    "--timeout": True,
    "--env": True,
    "--result": True,
    "--input": True,
    "--key": True,
    "--without": True,
    "--at": True,
    "--checkpoint": True,
    "--checkpoint-file": True,
    "--home-only": False,
    "--shared": False,
    "--wait": False,
    "-W": False,
    "-h": False,
    "--help": False,
}
"""Options of this command that mean the same for a job written for Slurm; True: with a value."""

NUMBERS: Final = {"--script": True, "--processors": True, "--run-time": True, "--name": True}
"""Options that identify the other kind of job: sbatch has none of these."""

NAME_MAX: Final = 128
"""In characters."""

_SLURM: Final = "hanse.sbatch"
_STDIN: Final = "hanse.stdin"
_ARRAY_HELP: Final = "An array: a job for each index, such as 0-15:4 or 1,3,5-7; 1-1000%50 has at most 50 under way at a time."
_DEPENDENCY_HELP: Final = (
    "It waits for other jobs, elements or arrays of yours at this site: afterok:JOB[:JOB…], afterany, afternotok, "
    "aftercorr (element by element), singleton (those of its name); several with commas."
)
_OF_SCRIPTS: Final = (
    *("outputs", "inputs", "output", "error", "open_mode", "checkpoint", "checkpoint_files"),
)


class _Submit(click.Command):
    # Two forms in one command: of the second click is shown what is this command's own.
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if _begins_with_numbers(args):
            return super().parse_args(ctx, args)
        from grms.lrms.slurm.sbatch_words import UnknownOptionError, has_option, split_words  # noqa: PLC0415  # see the module's docstring

        try:
            mine, slurm = split_words(args, OWN | NUMBERS)
        except UnknownOptionError as error:
            if not _is_for_slurm(args):
                return super().parse_args(ctx, args)
            raise click.UsageError(str(error), ctx) from error
        if any(word.partition("=")[0] in {*NUMBERS, "-h", "--help"} for word in mine):
            return super().parse_args(ctx, args)
        if not (slurm.script or has_option(slurm.options, "wrap")):
            # As sbatch does; but not where the words make a job of numbers, as many stdins are somebody else's.
            text = b"" if _has_numbers(slurm.options) else _standard_input()
            if not text:
                return super().parse_args(ctx, args)
            ctx.meta[_STDIN] = text
        ctx.meta[_SLURM] = slurm
        return super().parse_args(ctx, ["--wait" if word == "-W" else word for word in mine])

    def invoke(self, ctx: click.Context) -> Any:
        if _SLURM not in ctx.meta:
            return super().invoke(ctx)
        from grms.cli.slurm_jobs import StaysHomeError  # noqa: PLC0415  # see the module's docstring

        try:
            return super().invoke(ctx)
        except StaysHomeError as stays:
            return _stay(stays, ctx.params)


def _begins_with_numbers(words: list[str]) -> bool:
    # Whether one of a job of numbers is among the options that come before all that may be sbatch's.
    at = 0
    while at < len(words):
        name, is_given, _ = words[at].partition("=")
        if name in NUMBERS:
            return True
        if name not in OWN:
            return False
        at += 2 if OWN[name] and not is_given else 1
    return False


def _is_for_slurm(words: list[str]) -> bool:
    # What has an option that nobody knows: click says what this command has, where it is one of numbers.
    return not any(word.partition("=")[0] in NUMBERS for word in words)


def _has_numbers(options: tuple[str, ...]) -> bool:
    # Whether both are there without which there is no job of numbers.
    given = {word[:2]: word[2:] for word in options if not word.startswith("--")}
    is_timed = "-t" in given or any(word.startswith("--time") for word in options)
    if "-p" not in given or not is_timed:
        return False
    value = given["-p"] or options[options.index("-p") + 1 : options.index("-p") + 2]
    return "".join(value).isdecimal()  # else it is a partition


def _standard_input() -> bytes:
    try:
        return b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    except (AttributeError, OSError, ValueError):
        return b""  # there is none


@click.command(cls=_Submit)
@site_option
@timeout_option
@click.option("-p", "--processors", type=click.IntRange(1))
@click.option(
    "-t",
    "--time",
    "requested_time_s",
    type=FloatRange(0, min_open=True),
    help="It may run, seconds.",
)
@click.option(
    "--run-time", "run_time_s", type=FINITE, help="It does run, where simulated; seconds."
)
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
    help="What the script leaves in its folder and you want: a file, a folder (out/), a pattern ('*.csv', "
    "'out/**/*.h5'), or all that is new (./). May come several times.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="FILE",
    help="What the script finds in its folder: a file, a folder or a pattern ('data/*.csv'), under the same relative "
    "path, or of one that begins with / under its last part; or an http(s) URL, which this command downloads, with "
    "#sha256=HEX behind it to be checked. May come several times.",
)
@click.option(
    "--shared",
    "in_place",
    is_flag=True,
    help="Script, --input and --result are used where they lie, in folders that sites have in common; nothing "
    "of them travels.",
)
@click.option(
    "--name", default="", help="A word of your own.  [default: the script's, if there is one]"
)
@needs_options
@click.option("--array", "array", default="", metavar="INDICES", help=_ARRAY_HELP)
@click.option("-d", "--dependency", "dependency", default="", metavar="LIST", help=_DEPENDENCY_HELP)
@click.option(
    "--at",
    "sites",
    multiple=True,
    metavar="SITE",
    help="A site that may run it, a partner or this one: no other does. May come several times.",
)
@click.option(
    "--home-only", is_flag=True, help="This site alone runs it, whatever its policies say."
)
@click.option("--parsable", is_flag=True, help="Print the id alone, as is done in any case.")
@click.option(
    "--test-only",
    "test_only",
    is_flag=True,
    help="Submit nothing, and print which site would take it and why.",
)
@click.option(
    "-o",
    "--output",
    default="",
    metavar="PATTERN",
    help="Name of its standard output where it is brought, with %j (number), %x (name), %A and %a (array) as in sbatch; "
    "without --error also of its standard error.",
)
@click.option(
    "-e", "--error", default="", metavar="PATTERN", help="Likewise of its standard error."
)
@click.option(
    "--open-mode",
    type=click.Choice(["append", "truncate"]),
    default=None,
    help="append: it is added to a file of that name that is there; truncate: where the job runs anew it begins anew.",
)
@click.option(
    "--checkpoint",
    "checkpoint",
    default="",
    metavar="DURATION",
    help="It writes its state so often at least (1h, 15min), in the files of --checkpoint-file, and goes on from them where "
    "HANSE_RESTART_COUNT is above 0: so a partner may end it for a job of its own.",
)
@click.option(
    "--checkpoint-file",
    "checkpoint_files",
    multiple=True,
    metavar="FILE",
    help="A file, a folder or a pattern ('state*') of that state, in its folder. May come several times.",
)
@click.option("--key", help="The same key is the same job.  [default: a new one]")
@click.option(
    "--without",
    default="",
    metavar="OPTION[,OPTION]",
    help="Options of sbatch not known to partners, and without which the job may run.",
)
@click.option(
    "--wait",
    is_flag=True,
    help="Return when it has ended, with the exit status of its script: 128 and the signal where one "
    "ended it (1, as with sbatch, of a job that is written for Slurm), 1 where it did not complete in another way.",
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
    parsable: bool,  # noqa: ARG001  # what is printed is so in any case
    test_only: bool,
    **wanted: Any,
) -> None:
    """Hand in a job; its id is printed.

    ARGUMENTS are the script's; put -- before the first one that begins with a dash.

    \b
    On a host with Slurm, without --script, -p and -t, as with sbatch:
      grms submit [OPTIONS OF SBATCH] job.sh [ARGUMENTS]

    Then Slurm reads the options and the lines #SBATCH (-p is a partition and -t are minutes); --env,
    --input, --result, --key, --without, --at, --home-only and --wait are as here. A job with options that partners do not know
    stays at home: it is handed to sbatch, with a message why. The script may come from standard input. An array
    is the site's, and so is a dependency on jobs that this command has printed; one on numbers of Slurm's own is
    for sbatch.

    The key is printed first, to standard error: where no answer comes (status 75), the same command with --key
    KEY is the same job, whether the site has taken it before or not.

    --test-only submits nothing: the site says where it would run the job by the load of now, and which
    partners it would offer it to. Partners are not asked, as they hear of no job that is not offered.
    """  # noqa: D301  # click's mark for a block that is not wrapped
    given = _environment(environment)
    wanted["open_mode"] = wanted["open_mode"] or ""
    names = wanted["inputs"]
    wanted["inputs"] = _inputs(ctx, names)
    text: str | None = None
    nowhere: Callable[[str], None] | None = None
    if (slurm := ctx.meta.get(_SLURM)) is not None:
        from grms.cli.slurm_jobs import Handed, read_job  # noqa: PLC0415  # see the module's docstring

        left_out = frozenset(word.removeprefix("--") for word in without.split(",") if word)
        travels = not in_place and not any(word.startswith("/") or "://" in word for word in names)
        job = read_job(Handed(slurm, ctx.meta.get(_STDIN)), left_out, given, travels=travels)
        script, arguments = Path(slurm.script or "-"), slurm.arguments
        given, wait = job.environment, wait or job.wait
        test_only, nowhere = job.test_only, job.nowhere
        _tell(job)
        text = None if in_place else job.wanted["script"]
        wanted |= job.wanted
    elif without:
        raise click.UsageError("--without goes with a job that is written for Slurm")
    _check_size(wanted)
    asked_needs = {name: wanted.pop(name) for name in NAMES}
    if slurm is None:
        wanted["needs"] = needs_of(wanted["processors"], wanted["requested_time_s"], asked_needs)
    asked_for = environment or arguments or in_place
    asked_for = asked_for or any(wanted[name] for name in _OF_SCRIPTS)
    if script is None and asked_for:
        text = "arguments, --env, --input, --result, --shared, --output, --error, --open-mode and --checkpoint go with --script"
        raise click.UsageError(text)
    if slurm is None and script is not None:
        text = None if in_place else _script(script)
        wanted["name"] = wanted["name"] or script.name[:NAME_MAX]
    wanted |= {"arguments": arguments, "environment": given}
    _check_text(wanted)
    if in_place and script is not None:
        wanted |= _shared(script, wanted["inputs"], wanted["outputs"])
    wanted |= {"script": text, "checkpoint_s": _checkpoint_s(wanted.pop("checkpoint"))}
    if test_only:
        _preview(socket, timeout_s, wanted, nowhere=nowhere)
        return
    ended = hand_in(
        socket,
        timeout_s,
        wanted,
        tell=click.echo,
        tell_key=lambda key: click.echo(f"key {key}", err=True),
        wait=wait,
        nowhere=nowhere,
    )
    if ended is not None:
        from grms.cli.job_table import job_words  # noqa: PLC0415  # see the module's docstring

        click.echo(job_words(ended), err=True)
        # A job that was ended by a signal has status 1 with `sbatch --wait`.
        ctx.exit(1 if slurm is not None and ended.signal is not None else exit_status(ended))


def _tell(job: "SlurmJob") -> None:
    if job.test_only and job.trial.estimate:
        click.echo(job.trial.estimate, err=True)
    for line in job.not_carried():
        click.echo(line, err=True)


def _preview(
    socket: Path,
    timeout_s: float,
    wanted: dict[str, Any],
    *,
    nowhere: Callable[[str], None] | None,
) -> None:
    # Prints what would become of a job.
    with checked(wanted, nowhere), client_of(socket, timeout_s) as site:
        for line in preview_lines(site.preview(**wanted)):
            click.echo(printable(line))


def _check_size(wanted: Mapping[str, Any]) -> None:
    for name, words in (("processors", "-p / --processors"), ("requested_time_s", "-t / --time")):
        if wanted[name] is None:
            raise click.UsageError(f"Missing option '{words}'.")


def _check_text(wanted: Mapping[str, Any]) -> None:
    texts = (
        *wanted["arguments"],
        *wanted["outputs"],
        *wanted["inputs"],
        *wanted["environment"].values(),
    )
    for shown, word in (
        *((printable(text), text) for text in texts),
        *((f"--{name}", str(wanted[name])) for name in ("name", "key", "output", "error")),
    ):
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise click.UsageError(f"{shown} is not UTF-8") from error


def _checkpoint_s(text: str) -> float | None:
    if not text:
        return None
    seconds = duration_of(text)
    if seconds is None:
        raise click.BadParameter(
            f"{printable(text)} is no duration, such as 90s, 15min or 1h",
            param_hint="'--checkpoint'",
        )
    return seconds


def _environment(words: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for word in words:
        name, is_given, value = word.partition("=")
        if not is_given and name not in os.environ:
            raise click.BadParameter(f"{name} is not set here", param_hint="'--env'")
        found[name] = value if is_given else os.environ[name]
    return found


def _inputs(ctx: click.Context, words: tuple[str, ...]) -> dict[str, Path]:
    if not words:
        return {}
    from tempfile import TemporaryDirectory  # noqa: PLC0415  # see the module's docstring

    from grms.cli.given_files import given_files, is_url  # noqa: PLC0415  # same

    folder = Path()
    if any(map(is_url, words)):
        folder = Path(ctx.with_resource(TemporaryDirectory(prefix="grms-submit-")))
    return given_files(words, folder)


def _absolute(path: str | Path) -> str:
    # As it is called, without looking: it is the site that refuses links.
    return os.path.abspath(path)  # noqa: PTH100  # `resolve` would follow them


def _shared(script: Path, inputs: Mapping[str, Path], outputs: tuple[str, ...]) -> dict[str, Any]:
    # What is said of files that are used in place; links in these paths are for the site to refuse.
    from grms.daemon.job_files import is_pattern  # noqa: PLC0415  # same
    from grms.daemon.shared_folders import SCRIPT, SharedFile  # noqa: PLC0415  # see the module's docstring

    shared = [SharedFile(SCRIPT, _absolute(script))]
    shared += [SharedFile(name, _absolute(path)) for name, path in inputs.items()]
    for word in outputs:
        if is_pattern(word):
            text = f"{printable(word)}: with --shared a result is one file, which is written where it lies"
            raise click.BadParameter(text, param_hint="'--result'")
        name = Path(word).name if word.startswith("/") else word
        shared.append(SharedFile(name, _absolute(word), written=True))
    return {"inputs": {}, "outputs": (), "shared": shared}


def _script(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        text = f"{path}: byte {error.start} is not UTF-8; a script is text"
        raise click.BadParameter(text, param_hint="'--script'") from error


def _stay(stays: "StaysHomeError", given: Mapping[str, Any]) -> None:
    # Hands a job to sbatch, with a message why; `given` are the parameters of the command.
    for line in stays.lines():
        click.echo(f"it stays at home{line}", err=True)
    named = {"inputs": "input", "outputs": "result", "key": "key", "in_place": "shared"}
    named |= {"environment": "env", "sites": "at"}
    named |= {"checkpoint": "checkpoint", "checkpoint_files": "checkpoint-file"}
    asked = [f"--{word}" for name, word in named.items() if given[name]]
    asked += ["--dependency"] if stays.dependency else []
    if asked:
        text = f"{', '.join(asked)}: for a job that a site runs; this one is for sbatch alone, and was not submitted"
        raise click.UsageError(text)
    import subprocess  # noqa: PLC0415  # see the module's docstring

    from grms.cli.slurm_jobs import found  # noqa: PLC0415  # same

    # It writes for itself: with --wait the number has to be there at once.
    job, wait = stays.job, ["--wait"] if given["wait"] else []
    words = [found("sbatch"), *wait, *job.command(job.words.options)]
    ended = subprocess.run(words, input=job.stdin or b"", check=False)  # noqa: S603  # as asked
    click.get_current_context().exit(ended.returncode)
