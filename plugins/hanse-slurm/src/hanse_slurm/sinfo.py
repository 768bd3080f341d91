"""The program `sinfo`: nodes and partitions are those of Slurm, whose own program says what they are."""

from collections.abc import Sequence

from hanse_slurm.options import leave, run


def run_command(words: Sequence[str]) -> int:
    """Starts Slurm's own program in the place of this process; returns 1 where there is none."""
    return run("sinfo", lambda given: leave("sinfo", given), words)
