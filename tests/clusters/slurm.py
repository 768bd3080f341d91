"""A Slurm cluster of a test's own; it is that of `scenario prove`."""

import pytest

from scenarios.prove.slurm_cluster import (
    DEADLINE_S,
    NEEDS,
    PATH,
    SlurmCluster,
    missing_program,
    wait_for,
)

__all__ = ["DEADLINE_S", "NEEDS", "PATH", "SlurmCluster", "need_slurm", "wait_for"]


def need_slurm() -> None:
    """Skips a test where there is no Slurm."""
    missing = missing_program()
    if missing:
        pytest.skip(f"Slurm is not installed: there is no {missing}")
