"""The program `srun`: Slurm's own, also within a job that finds its number at the site in `SLURM_JOB_ID`.

Such a job (`HANSE_SLURM_TOLD_ID=1`) has its number in the batch system in another variable, and by that Slurm finds its
nodes. A prolog gives the tasks the number that the job has been told.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hanse_slurm.options import leave, run
from hanse_slurm.programs import PROLOG

_NUMBER: Final = "HANSE_LRMS_JOB_ID"
_PROLOG: Final = "SLURM_TASK_PROLOG"


def run_command(words: Sequence[str]) -> int:
    """Starts Slurm's own program in the place of this process; returns 1 where there is none."""
    return run("srun", srun, words)


def srun(words: Sequence[str]) -> int:
    """Starts Slurm's own program, with the number by which it knows the job.

    Raises:
        UsageError: there is none.
    """
    number = os.environ.get(_NUMBER, "")
    if number and "SLURM_JOB_ID" in os.environ:
        os.environ["SLURM_JOB_ID"] = os.environ["SLURM_JOBID"] = number
        prolog = _prolog()
        if prolog:
            os.environ.setdefault(_PROLOG, prolog)
    leave("srun", words)


def _prolog() -> str:
    # In the folder of this program, which is one of PATH.
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder, PROLOG)
        if folder and os.access(path, os.X_OK):
            return str(path.resolve())
    return ""
