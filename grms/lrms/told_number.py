"""Whether a job is to find, in Slurm's variables and file names, the number that its site has told its user. Pure."""

from collections.abc import Mapping
from typing import Final

TOLD_ID: Final = "HANSE_SLURM_TOLD_ID"
"""A job that has it with the value 1 finds its number at the site in `SLURM_JOB_ID`, and in names of its output."""

LRMS_ID: Final = "HANSE_LRMS_JOB_ID"
"""There such a job finds its number in the batch system."""


def told_number(environment: Mapping[str, str]) -> str:
    """Returns the number that a job's variables say is to stand for Slurm's; empty for none.

    Elements have no number of their own at the site; they are known by array and index.
    """
    number = environment.get("HANSE_JOB_ID", "").rpartition("-")[2]
    return number if environment.get(TOLD_ID) == "1" and number.isdecimal() else ""
