"""A Slurm cluster of a test's own; it is that of `scenario prove`."""

import pytest

from scenarios.prove.slurm_cluster import DEADLINE_S, NEEDS, PATH, SlurmCluster, wait_for
from tests.services import need

__all__ = ["DEADLINE_S", "NEEDS", "PATH", "REAL_SLURM", "SlurmCluster", "need_slurm", "wait_for"]

PACKAGES = "slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"

REAL_SLURM = pytest.param(SlurmCluster, marks=pytest.mark.services)
"""Parameter of tests that go over the fake one too."""


def need_slurm() -> None:
    """Skips a test where there is no Slurm."""
    need(PACKAGES, *NEEDS, path=PATH)
