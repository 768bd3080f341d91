"""The program `sbatch`: Slurm's own reads the options and the script, and the site takes the job.

A job that only Slurm could run is refused by name, with the reason: its number would be one of Slurm's, and all other
commands would take that for a number of the site's.
"""

import os
import re
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from grms.cli.handing_in import OpenError, checked, exit_status, hand_in, preview_lines
from grms.cli.slurm_jobs import READS, Handed, StaysHomeError, read_job
from grms.lrms.slurm.sbatch_words import SbatchWords, UnknownOptionError, has_option, split_words
from grms.lrms.told_number import TOLD_ID
from hanse_slurm.options import LEFT, UsageError, leave, run
from hanse_slurm.programs import real
from hanse_slurm.variables import own_name, socket, timeout_s, where_to_run
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from grms.cli.slurm_jobs import SlurmJob

_OWN: Final = {"--wait": False, "-W": False, "--parsable": False}
_NUMBER: Final = r"\d+"
_SHORT_DEPENDENCY: Final = "-d"
_PAUSE_S: Final = 0.5
"""Between two trials while Slurm's controller does not answer, seconds."""


def run_command(words: Sequence[str]) -> int:
    """Runs the command line and returns the exit status."""
    return run("sbatch", _sbatch, words)


def _sbatch(words: Sequence[str]) -> int:
    try:
        return sbatch(words)
    except OpenError as error:
        text = "whether the site has taken the job is not known: look with squeue before you submit it again"
        raise UnknownOutcomeError(f"{error.reason}\n{text}") from error
    except StaysHomeError as stays:
        lines = "\n".join(f"it is not submitted{line}" for line in stays.lines())
        raise UsageError(f"{lines}\nSlurm's own command is {real('sbatch')}") from stays


class UnknownOutcomeError(UsageError):
    """The site may have taken the job; nobody knows."""

    exit_status = OpenError.exit_status


def sbatch(words: Sequence[str]) -> int:
    """Hands a job in, and prints its number; with `--wait` returns the status of its script.

    Raises:
        SlurmJobError: it cannot be read.
        UnfitError: no site could take it.
        StaysHomeError: only Slurm itself can run it.
        UsageError: an option is not known.
        SiteError: the site refuses it, or cannot be reached.
    """
    try:
        own, slurm = split_words(words, _OWN)
    except UnknownOptionError as error:
        raise UsageError(str(error)) from error
    if LEFT & set(slurm.options):
        leave("sbatch", words)
    if READS in os.environ:
        raise UsageError(f"{real('sbatch')} is to be Slurm's own sbatch, and starts this one again")
    where, limit_s, placing = socket(), timeout_s(), where_to_run()
    slurm = slurm._replace(options=_with_own_names(slurm.options))
    program = real("sbatch")
    if not program:
        raise UsageError("there is no sbatch of Slurm's along PATH, which has to read the options")
    stdin = None if slurm.script or has_option(slurm.options, "wrap") else _script()
    job = _read(Handed(slurm, stdin, program, numbers=True), limit_s)
    wanted = {**job.wanted, "inputs": {}, "outputs": (), "shared": (), "run_time_s": None}
    told = {TOLD_ID: "1"} if os.environ.get(TOLD_ID) == "1" else {}
    wanted |= {"arguments": slurm.arguments, "environment": job.environment | told, "key": None}
    wanted |= placing
    if has_option(slurm.options, "verbose") or "-v" in slurm.options:
        for line in job.not_carried():
            print(f"sbatch: {line}", file=sys.stderr)
    if job.test_only:
        return _preview(job, wanted)
    options = job.trial.options
    is_short = "--parsable" in own or "parsable" in options
    is_quiet = not is_short and _is_quiet(slurm)
    tell = partial(_tell, short=is_short, quiet=is_quiet)
    wait = job.wait or bool({"--wait", "-W"} & set(own))
    ended = hand_in(
        where, limit_s, wanted, tell=tell, tell_key=None, wait=wait, nowhere=job.nowhere
    )
    if ended is None:
        return 0
    return 1 if ended.signal is not None else exit_status(ended)


def _read(job: Handed, limit_s: float) -> "SlurmJob":
    # A trial submits nothing: where the controller does not answer, it can be repeated.
    end_s = time.monotonic() + limit_s
    while True:
        try:
            return read_job(job, frozenset(), {}, travels=True)
        except StaysHomeError as stays:
            from grms.lrms.slurm.slurm_text import is_no_answer  # noqa: PLC0415  # seldom needed

            is_silent = [*stays.reasons] == [""] and is_no_answer(stays.trial.problem)
            if not is_silent or time.monotonic() + _PAUSE_S > end_s:
                raise
        time.sleep(_PAUSE_S)


def _with_own_names(options: Sequence[str]) -> tuple[str, ...]:
    # A dependency on the job in which this runs, by the number that its batch system has given it.
    found, after = [], False
    for word in options:
        is_dependency = after or word.startswith(("--dependency=", _SHORT_DEPENDENCY))
        found.append(re.sub(_NUMBER, _own, word) if is_dependency else word)
        after = word in {"--dependency", _SHORT_DEPENDENCY}
    return tuple(found)


def _own(number: re.Match[str]) -> str:
    return own_name(number[0])


def _script() -> bytes:
    if sys.stdin.isatty():
        raise UsageError("Batch job submission failed: no script was given")
    return sys.stdin.buffer.read()


def _is_quiet(words: SbatchWords) -> bool:
    return has_option(words.options, "quiet") or any(
        re.fullmatch(r"-[a-zA-Z]*Q.*", word) is not None for word in words.options
    )


def _tell(job_id: str, *, short: bool, quiet: bool) -> None:
    number = job_id.rpartition("-")[2]
    if short:
        print(number, flush=True)
    elif not quiet:
        print(f"Submitted batch job {number}", flush=True)


def _preview(job: "SlurmJob", wanted: dict[str, Any]) -> int:
    from grms.client import SyncClient  # noqa: PLC0415  # slow, and seldom needed

    if job.trial.estimate:
        print(job.trial.estimate, file=sys.stderr)
    with checked(wanted, job.nowhere), SyncClient(socket(), timeout_s=timeout_s()) as site:
        for line in preview_lines(site.preview(**wanted)):
            print(f"sbatch: {printable(line)}", file=sys.stderr)
    return 0
