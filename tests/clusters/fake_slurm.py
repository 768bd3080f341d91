"""Slurm's programs without Slurm, for tests; they are those of `scenario prove`."""

from scenarios.prove.simulated_slurm import PROGRAMS, FakeSlurm, Machine, Part

__all__ = ["PROGRAMS", "FakeSlurm", "Machine", "Part"]
