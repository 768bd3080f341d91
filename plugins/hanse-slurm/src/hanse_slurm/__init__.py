"""Slurm's commands for the jobs of a site: programs written for Slurm use them instead of Slurm's own.

`hanse-slurm install FOLDER` puts `sbatch`, `squeue`, `sacct`, `scancel`, `scontrol` and `sinfo` into a folder that
stands first in `PATH`. They reach the site whose socket `HANSE_SOCKET` names. Jobs have the numbers that they have at
the site; what these commands do not know is refused by name, or, where it is not about jobs, left to Slurm's own
commands further along `PATH`.
"""
