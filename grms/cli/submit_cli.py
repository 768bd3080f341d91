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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from grms.cli.job_table import job_words
from grms.cli.needs_options import NAMES, needs_of, needs_options
from grms.cli.site_connection import await_site, client_of, site_option
from grms.daemon.timeout_option import timeout_option
from lrms_sim.util.errors import HanseError
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from grms.client import Job, Preview, SyncClient
    from grms.lrms.base import HomeRun
    from grms.lrms.slurm.sbatch_text import DryRun
    from grms.lrms.slurm.sbatch_words import SbatchWords

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
"""Options of this command that mean the same for a job written for Slurm; True: with a value."""

NUMBERS: Final = {"--script": True, "--processors": True, "--run-time": True, "--name": True}
"""Options that identify the other kind of job: sbatch has none of these."""

SBATCH_TIMEOUT_S: Final = 60.0
"""Slurm's programs try for some ten seconds to reach its controller."""

NAME_MAX: Final = 128
"""In characters."""

SCRIPT_BYTES_MAX: Final = 256 << 10
"""A longer script is for sbatch alone."""

HOME_BYTES_MAX: Final = 256 << 10
"""Likewise if its user's variables are larger."""

_SLURM: Final = "hanse.sbatch"
_STDIN: Final = "hanse.stdin"
_ARRAY_HELP: Final = "An array: a job for each index, such as 0-15:4 or 1,3,5-7; 1-1000%50 has at most 50 under way at a time."
_DEPENDENCY_HELP: Final = (
    "It waits for other jobs, elements or arrays of yours at this site: afterok:JOB[:JOB…], afterany, afternotok, "
    "aftercorr (element by element), singleton (those of its name); several with commas."
)
_OF_SCRIPTS: Final = ("outputs", "inputs", "output", "error", "open_mode")
_OPTIONS: Final = {"outputs": "result", "inputs": "input"}


class _Submit(click.Command):
    # Two forms in one command: of the second click is shown what is this command's own.
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
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
    --input, --result, --key, --without and --wait are as here. A job with options that partners do not know
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
        left_out = frozenset(word.removeprefix("--") for word in without.split(",") if word)
        asked = tuple(name for name in ("inputs", "outputs", "key") if wanted[name])
        asked += ("shared",) if in_place else ()
        travels = not in_place and not any(word.startswith("/") or "://" in word for word in names)
        stdin = ctx.meta.get(_STDIN)
        found = _for_slurm(
            _Handed(slurm, stdin, socket), left_out, given, asked=asked, wait=wait, travels=travels
        )
        script, arguments = Path(slurm.script or "-"), slurm.arguments
        given, wait = found.pop("environment"), found.pop("wait")
        tell, nowhere = found.pop("tell"), found.pop("nowhere")
        test_only = found.pop("test_only")
        tell()
        text = None if in_place else found["script"]
        wanted |= found
    elif without:
        raise click.UsageError("--without goes with a job that is written for Slurm")
    _check_size(wanted)
    asked_needs = {name: wanted.pop(name) for name in NAMES}
    if slurm is None:
        wanted["needs"] = needs_of(wanted["processors"], wanted["requested_time_s"], asked_needs)
    asked_for = environment or arguments or in_place
    asked_for = asked_for or any(wanted[name] for name in _OF_SCRIPTS)
    if script is None and asked_for:
        text = "arguments, --env, --input, --result, --shared, --output, --error and --open-mode go with --script"
        raise click.UsageError(text)
    if slurm is None and script is not None:
        text = None if in_place else _script(script)
        wanted["name"] = wanted["name"] or script.name[:NAME_MAX]
    wanted |= {"arguments": arguments, "environment": given}
    _check_text(wanted)
    if in_place and script is not None:
        wanted |= _shared(script, wanted["inputs"], wanted["outputs"])
    wanted |= {"script": text}
    if test_only:
        _preview(socket, timeout_s, wanted, nowhere=nowhere)
        return
    job = _handed_in(socket, timeout_s, wanted, wait=wait, nowhere=nowhere)
    if job is not None:
        # A job that was ended by a signal has status 1 with `sbatch --wait`.
        ctx.exit(1 if slurm is not None and job.signal is not None else exit_status(job))


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


def _handed_in(
    socket: Path,
    timeout_s: float,
    wanted: dict[str, Any],
    *,
    wait: bool,
    nowhere: Callable[[str], None] | None,
) -> "Job | None":
    # Returns a job that was waited for.
    has_key = wanted["key"] is not None
    with _checked(wanted, nowhere):
        await_site(socket, timeout_s)
        if not has_key:
            # Before all else: whoever is stopped here, or gets no answer, knows how to hand in the same job again.
            click.echo(f"key {wanted['key']}", err=True)
        job_id = _quickly(socket, timeout_s, wanted)
        if job_id is not None:
            click.echo(job_id)
            if not wait:
                return None
        with client_of(socket, timeout_s) as site:
            if job_id is None:
                job_id = _answered(site, wanted)
                click.echo(job_id)
            if not wait:
                return None
            job = site.wait(job_id)
            click.echo(job_words(job), err=True)
    return job


class _OpenError(HanseError):
    """Nobody knows whether the site has taken a job; EX_TEMPFAIL of sysexits.h."""

    exit_status = 75


def _answered(site: "SyncClient", wanted: Mapping[str, Any]) -> str:
    from shlex import quote  # noqa: PLC0415  # see the module's docstring

    from grms.client.errors import SiteUnavailable  # noqa: PLC0415  # same

    try:
        return site.submit(**wanted).job_id
    except SiteUnavailable as error:
        raise _OpenError(
            f"{error}\nwhether the site has taken the job is not known; "
            f"hand it in again with --key {quote(wanted['key'])}, and it is one job"
        ) from error


@contextmanager
def _checked(wanted: dict[str, Any], nowhere: Callable[[str], None] | None) -> Iterator[None]:
    # Checks what is wanted, and says what a site refuses; `nowhere` is told why no site at all can run a job, and does
    # not return.
    from grms.client.errors import SiteError  # noqa: PLC0415  # see the module's docstring
    from grms.client.submission import check_values  # noqa: PLC0415  # see the module's docstring

    names = ("processors", "script", "run_time_s", "key", "array", "dependency")
    try:
        check_values(**{name: wanted[name] for name in names})
        wanted["key"] = wanted["key"] or os.urandom(16).hex()
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except SiteError as error:
        if nowhere is not None and error.code == "INVALID_ARGUMENT":
            nowhere(error.reason)
        raise


def _preview(
    socket: Path,
    timeout_s: float,
    wanted: dict[str, Any],
    *,
    nowhere: Callable[[str], None] | None,
) -> None:
    # Prints what would become of a job.
    with _checked(wanted, nowhere), client_of(socket, timeout_s) as site:
        for line in _preview_lines(site.preview(**wanted)):
            click.echo(printable(line))


def _preview_lines(preview: "Preview") -> Iterator[str]:
    if preview.known:
        yield f"nothing new: the key is that of {preview.known}"
        return
    if preview.held:
        yield f"held first: {preview.held}; what follows is by the load of now"
    home = preview.site if preview.kept else f"it waits at {preview.site}, to be offered again"
    if preview.asked:
        yield f"offered to {', then '.join(preview.asked)}: {preview.reason}"
        yield "whether one of them accepts is not known: a partner hears of a job when it is offered"
        yield f"if none accepts: {home}"
    else:
        yield f"{home}: {preview.reason}"
    for partner, reason in preview.passed_over.items():
        yield f"not offered to {partner}: {reason}"


def _quickly(socket: Path, timeout_s: float, wanted: dict[str, Any]) -> str | None:
    from grms.client.submission import submit_quickly  # noqa: PLC0415  # see the module's docstring

    if wanted["inputs"]:
        return None  # these go first
    rest = {name: value for name, value in wanted.items() if name != "inputs"}
    return submit_quickly(socket, timeout_s, **rest)


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
    from grms.daemon.shared_folders import SCRIPT, SharedFile  # noqa: PLC0415  # see the module's docstring
    from grms.daemon.wanted_files import is_pattern  # noqa: PLC0415  # same

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


# --- jobs that are written for Slurm -------------------------------------------------------------


class _Handed(NamedTuple):
    # What was handed in: words of sbatch, the script where it came by standard input, and the site's socket.
    words: "SbatchWords"
    stdin: bytes | None
    socket: Path

    @property
    def name(self) -> str:
        if self.words.script:
            return Path(self.words.script).name
        return "sbatch" if self.stdin is not None else "wrap"

    @property
    def wrapped(self) -> str:
        from grms.lrms.slurm.sbatch_words import wrapped  # noqa: PLC0415  # as above

        return wrapped(self.words.options)

    def command(self, options: Sequence[str]) -> list[str]:
        words = self.words
        script = [_path(words.script), *words.arguments] if words.script else []
        return [*options, *script]

    def text(self) -> bytes:
        if self.words.script:
            return Path(self.words.script).read_bytes()
        return os.fsencode(self.wrapped) if self.stdin is None else self.stdin


def _for_slurm(
    job: _Handed,
    without: frozenset[str],
    environment: Mapping[str, str],
    *,
    asked: tuple[str, ...],
    wait: bool,
    travels: bool,
) -> dict[str, Any]:
    # What the site is asked for; does not return where the job stays at home.
    from dataclasses import replace  # noqa: PLC0415  # see the module's docstring

    from grms.lrms.slurm.sbatch_text import (  # noqa: PLC0415  # same
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
        raise click.BadParameter(text, param_hint="'--without'")
    try:
        options, dependency = take_dependency(job.words.options)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--dependency'") from error
    job = job._replace(words=job.words._replace(options=options))
    try:
        script = job.text()
    except OSError as error:
        shown = printable(job.words.script)
        text = f"there is no script {shown}" if not Path(shown).exists() else f"{shown}: {error}"
        raise click.UsageError(text) from error
    asked = (*asked, *(["env"] if environment else ()), *(["dependency"] if dependency else ()))
    answer = _run(
        "sbatch",
        "--test-only",
        "--verbose",
        "--verbose",
        *job.command(without_quiet(options)),
        given=job.stdin,
    )
    trial = read_dry_run(answer.stderr, answer.returncode)
    reasons = kept_at_home(trial, without) | _too_much(script, job.words.arguments)
    unfit = trial.problem if trial.too_much else ""
    if trial.processors is None and not reasons and not unfit:
        # What a trial is refused for Slurm may take all the same, as where a partition is down.
        reasons = {"": f"a trial of it has ended with: {trial.problem}"}
    if reasons:
        _stay(job, trial, reasons, asked=asked, wait=wait)
    request = replace(trial.request(without), wall_time=_limit_s(trial))

    if trial.options.get("dependency") == SINGLETON:
        dependency = ",".join(filter(None, (dependency, SINGLETON)))

    def nowhere(reason: str) -> None:
        _stay(job, trial, {"": reason}, asked=asked, wait=wait)

    test_only = has_option(options, "test-only") or says_test_only(script.decode())
    if test_only and trial.estimate:
        click.echo(trial.estimate, err=True)
    return {
        "tell": partial(_tell, trial, without, unfit),
        "nowhere": nowhere if unfit else None,
        "test_only": test_only,
        "processors": request.processors,
        "requested_time_s": request.wall_time,
        "needs": request,
        "unfit": unfit,
        "name": trial.options.get("job-name", job.name)[:NAME_MAX],
        "environment": exported(trial.options.get("export", ""), os.environ) | dict(environment),
        "script": script.decode(),
        "home": _at_home(trial, environment) if travels else None,
        "wait": wait or "wait" in trial.options,
        "array": trial.options.get("array", ""),
        "dependency": dependency,
        **_streams(trial),
    }


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


def _tell(trial: "DryRun", without: frozenset[str], unfit: str) -> None:
    # What is not carried, a line for each kind.
    from grms.lrms.slurm.sbatch_text import AT_HOME, STREAMS, is_all, not_told  # noqa: PLC0415  # as above

    options = trial.options
    if unfit:
        click.echo(
            f"for partners alone, as this cluster cannot run it: {printable(unfit)}", err=True
        )
    if streams := sorted(STREAMS & options.keys()):
        words = ", ".join(f"--{name}" for name in streams)
        click.echo(f"at a partner {words}: for grms fetch, which brings what it prints", err=True)
    gone = not_told(trial, without)
    for where, names in (
        ("at a partner it", [name for name in gone if name in AT_HOME]),
        ("it", [name for name in gone if name not in AT_HOME]),
    ):
        if names:
            words = ", ".join(f"--{name}={options[name]}" for name in names)
            click.echo(f"{where} goes without {printable(words)}", err=True)
    if (value := options.get("export", "")) and is_all(value):
        text = f"at a partner it has no variables but those named: --export={printable(value)}"
        click.echo(text, err=True)


def _at_home(trial: "DryRun", environment: Mapping[str, str]) -> "HomeRun | None":
    # How the job runs where it stays with its site, as sbatch would have had it run here.
    from grms.lrms.base import HomeRun  # noqa: PLC0415  # as above
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


def _stay(
    job: _Handed,
    trial: "DryRun",
    reasons: Mapping[str, str],
    *,
    asked: tuple[str, ...],
    wait: bool,
) -> None:
    for name, reason in reasons.items():
        value = trial.options.get(name, "set")
        shown = f"--{name}" if value == "set" else f"--{name}={printable(value)}"
        shown = f" for {shown}" if name in trial.options or name == "hetjob" else f" for its {name}"
        click.echo(f"it stays at home{shown if name else ''}: {printable(reason)}", err=True)
    if asked:
        words = ", ".join(f"--{_OPTIONS.get(word, word)}" for word in asked)
        text = f"{words}: for a job that a site runs; this one is for sbatch alone, and was not submitted"
        raise click.UsageError(text)
    _hand_over(job, wait=wait)


def _hand_over(job: _Handed, *, wait: bool) -> None:
    import subprocess  # noqa: PLC0415  # see the module's docstring

    # It writes for itself: with --wait the number has to be there at once.
    words = [_found("sbatch"), *(["--wait"] if wait else []), *job.command(job.words.options)]
    ended = subprocess.run(words, input=job.stdin or b"", check=False)  # noqa: S603  # as asked
    click.get_current_context().exit(ended.returncode)


def _limit_s(trial: "DryRun") -> float:
    # As an option says, else as the partition has it.
    from grms.lrms.slurm.sbatch_text import read_default_limit  # noqa: PLC0415  # as above

    try:
        found = trial.limit_s
        if found is None:
            partition = trial.partition or trial.options.get("partition", "")
            where = ("-p", partition) if partition else ()
            answer = _run("sinfo", "-h", *where, "-o", "%L|%l")
            found = read_default_limit(answer.stdout) if answer.returncode == 0 else None
    except ValueError as error:
        raise click.ClickException(f"Slurm's time limit cannot be read: {error}") from error
    if found is None:
        text = f"partition {partition} has no time limit; say how long it may run with --time"
        raise click.ClickException(text)
    return found


def _path(script: str) -> str:
    # sbatch would look along PATH for a name alone.
    return script if "/" in script else f"./{script}"


def _found(program: str) -> str:
    import shutil  # noqa: PLC0415  # see the module's docstring

    found = shutil.which(program)
    if found is None:
        text = f"there is no {program} here; without Slurm say -p, -t and --script"
        raise click.UsageError(text)
    return found


def _run(program: str, *words: str, given: bytes | None = None) -> "CompletedProcess[str]":
    import subprocess  # noqa: PLC0415  # see the module's docstring

    try:
        ended = subprocess.run(  # noqa: S603  # Slurm's own
            [_found(program), *words],
            input=given or b"",
            capture_output=True,
            check=False,
            timeout=SBATCH_TIMEOUT_S,
        )
        said, error = (each.decode("utf-8", "replace") for each in (ended.stdout, ended.stderr))
        return subprocess.CompletedProcess(ended.args, ended.returncode, said, error)
    except subprocess.TimeoutExpired as error:
        text = f"{program} has not answered within {SBATCH_TIMEOUT_S:g} s"
        raise click.ClickException(text) from error
