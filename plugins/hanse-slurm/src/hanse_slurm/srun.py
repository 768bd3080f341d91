"""The program `srun`: Slurm's own, also within a job that finds its number at the site in `SLURM_JOB_ID`.

Such a job (`HANSE_SLURM_TOLD_ID=1`) has its number in the batch system in another variable, and by that Slurm finds its
nodes. A prolog gives the tasks the number that the job has been told; names of files get it here.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from grms.lrms.told_number import LRMS_ID
from hanse_slurm.options import leave, run
from hanse_slurm.programs import PROLOG

_TASK_PROLOG: Final = "SLURM_TASK_PROLOG"
_FILES: Final = ("--output", "--error", "--input", "-o", "-e", "-i")
_WITH_VALUE: Final = frozenset(
    (
        *(
            "--cpu-bind",
            "--debugger-test",
            "--epilog",
            "--het-group",
            "--jobid",
            "--max-exit-timeout",
        ),
        *("--max-threads", "--mpi", "--msg-timeout", "--network", "--prolog", "--relative"),
        *("--resv-ports", "--slurmd-debug", "--task-epilog", "--task-prolog", "--threads", "-r"),
        *("-T", "-K"),
    )
)
"""Options of srun alone whose value is the next word."""


def run_command(words: Sequence[str]) -> int:
    """Starts Slurm's own program in the place of this process; returns 1 where there is none."""
    return run("srun", srun, words)


def srun(words: Sequence[str]) -> int:
    """Starts Slurm's own program, with the number by which it knows the job.

    Raises:
        UsageError: there is none.
    """
    number, told = os.environ.get(LRMS_ID, ""), os.environ.get("SLURM_JOB_ID", "")
    if number and told:
        os.environ["SLURM_JOB_ID"] = os.environ["SLURM_JOBID"] = number
        prolog = _prolog()
        if prolog:
            os.environ.setdefault(_TASK_PROLOG, prolog)
        words = with_told_names(words, told)
    leave("srun", words)


def with_told_names(words: Sequence[str], number: str) -> list[str]:
    """Returns the words of a command line in which a number stands for `%j` in names of files, up to the program."""
    from grms.lrms.slurm.sbatch_text import with_number  # noqa: PLC0415  # in such jobs alone

    found = list(words)
    at = 0
    while at < len(found) and found[at].startswith("-") and found[at] != "--":
        name, is_given, value = found[at].partition("=")
        if name in _FILES and is_given and name.startswith("--"):
            found[at] = f"{name}={with_number(value, number)}"
        elif name in _FILES:
            at += 1
            found[at : at + 1] = [with_number(word, number) for word in found[at : at + 1]]
        elif name[:2] in _FILES:
            found[at] = name[:2] + with_number(found[at][2:], number)
        elif _takes_next(found[at]):
            at += 1
        at += 1
    return found


def _takes_next(word: str) -> bool:
    from grms.lrms.slurm.sbatch_words import UnknownOptionError, has_value  # noqa: PLC0415  # as above

    try:
        return word in _WITH_VALUE or has_value(word)
    except UnknownOptionError:
        return False


def _prolog() -> str:
    # In the folder of this program, which is one of PATH.
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder, PROLOG)
        if folder and os.access(path, os.X_OK):
            return str(path.resolve())
    return ""
