"""The programs of the folder: which there are, what stands in them, and how each starts."""

import os
import sys
from pathlib import Path
from typing import Final

NAMES: Final = ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo", "srun")

PROLOG: Final = "hanse-task-prolog"
"""A program of the folder that Slurm runs before a task, and whose lines `export NAME=value` the task gets."""

_PROLOG_TEXT: Final = """\
#!/bin/sh
# Written by hanse-slurm install, for hanse_slurm.programs: tasks find the number of their job at the site.
number=${HANSE_JOB_ID##*-}
test -z "$number" || printf 'export %s\\n' "SLURM_JOB_ID=$number" "SLURM_JOBID=$number"
"""

_MARK: Final = "hanse_slurm.programs"
_MARK_BYTES: Final = 1024

_TEXT: Final = """\
#!/bin/sh
# Written by hanse-slurm install: {name} for the jobs of a site.
exec '{python}' -I -c 'import sys; sys.path.append("{place}"); from hanse_slurm.programs import main; main("{name}")' "$@"
"""


def program_text(name: str) -> str:
    """Returns the file by which a shell starts a program with this Python and this package.

    Raises:
        ValueError: they have quotes in their paths.
    """
    if name == PROLOG:
        return _PROLOG_TEXT
    place = str(Path(__file__).parent.parent)
    if {"'", "\\", '"', "\n"} & {*sys.executable, *place}:
        raise ValueError(f"{sys.executable} and {place} cannot stand in a program: quotes")
    return _TEXT.format(name=name, python=sys.executable, place=place)


def real(name: str) -> str:
    """Returns the path of Slurm's own program: the first along `PATH` that is none of these; empty if there is none."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = Path(folder or ".", name)
        try:
            if not os.access(path, os.X_OK) or path.is_dir():
                continue
            with path.open("rb") as file:
                if _MARK.encode() not in file.read(_MARK_BYTES):
                    return str(path)
        except OSError:
            continue
    return ""


def main(name: str) -> None:
    """Runs one of the programs with the arguments of this process, and ends the process."""
    from lrms_sim.util.process_guard import run  # noqa: PLC0415  # after the path is set

    # gRPC's own lines say nothing that our errors do not.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    run(f"hanse_slurm.{name}")
