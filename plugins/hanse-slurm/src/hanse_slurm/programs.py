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
# Written by hanse-slurm install, for hanse_slurm.programs: {name} for the jobs of a site.
exec '{python}' -I -S -c '
import sys
sys.path += {places}
try:
    import grms, hanse_slurm.programs
except ImportError:
    import site
    site.main()
from hanse_slurm.programs import main
main("{name}")
' "$@"
"""
# What stands in site-packages is found without Python's `site`, which takes as long as a fifth of all else; where
# packages have moved since, it is asked where they are.


def program_text(name: str) -> str:
    """Returns the file by which a shell starts a program with this Python and this package.

    Raises:
        ValueError: they have quotes in their paths.
    """
    if name == PROLOG:
        return _PROLOG_TEXT
    places = _places()
    if {"'", "\\", '"', "\n"} & {*sys.executable, *"".join(places)}:
        shown = ", ".join((sys.executable, *places))
        raise ValueError(f"{shown} cannot stand in a program: quotes")
    listed = ", ".join(f'"{place}"' for place in places)
    return _TEXT.format(name=name, python=sys.executable, places=f"[{listed}]")


def program_words(name: str) -> list[str]:
    """Returns what starts a program with this Python and this package, without a folder of programs."""
    text = f"import sys; sys.path += {_places()!r}; from hanse_slurm.programs import main; main({name!r})"
    return [sys.executable, "-I", "-S", "-c", text]


def _places() -> list[str]:
    # Folders in which packages are, without those in which this Python looks in any case.
    from importlib.util import find_spec  # noqa: PLC0415  # of the installation alone
    from sysconfig import get_path  # noqa: PLC0415  # same

    found = [str(Path(__file__).parent.parent)]
    for package in ("grms", "lrms_sim"):
        spec = find_spec(package)
        assert spec is not None
        found += [str(Path(each).parent) for each in spec.submodule_search_locations or ()]
    own = {Path(get_path(each)) for each in ("stdlib", "platstdlib")}
    passing = _passing()
    for place in map(Path, sys.path):
        is_own = own & {place, place.parent} and place.name not in {
            "site-packages",
            "dist-packages",
        }
        if place.is_dir() and place.is_absolute() and not is_own and place not in passing:
            found.append(str(place))
    return list(dict.fromkeys(found))


def _passing() -> set[Path]:
    # Folders in which this process alone looks: the present one, or that of its program, and those of its user. Others
    # who run the programs need not trust who can write there.
    from site import getsitepackages  # noqa: PLC0415  # as in `_places`

    found = set[Path]()
    if not sys.flags.ignore_environment:
        said = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        found.update(Path(each).absolute() for each in said if each)
    if not sys.flags.safe_path:
        found.add(Path(sys.path[0]).absolute())
    return found - set(map(Path, getsitepackages()))


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
    from lrms_sim.util.lazy_names import load_later  # noqa: PLC0415  # after the path is set
    from lrms_sim.util.process_guard import run  # noqa: PLC0415  # same

    load_later("inspect")  # `dataclasses` wants it for classes without a docstring alone
    # gRPC's own lines say nothing that our errors do not.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        run(f"hanse_slurm.{name}")
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        # There is nothing more to do, which Python would take some milliseconds to see.
        os._exit(end.code)
