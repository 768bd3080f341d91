"""The files that travel with a job: where they are here, and their names in the job's folder."""

import os
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from grms.daemon.job_files import FILES_MAX, WORKING_FOLDER

SOURCES: Final = ".hanse-sources.tar.gz"
"""What the workflow itself consists of, in the folder of each job."""

_NOT_FILES: Final = ("pipe", "service")


def name_of(path: str) -> str:
    """Returns the name of a file in a job's folder, which is its path from the working directory.

    Raises:
        ValueError: it is elsewhere, so that no job can have it under that name.
    """
    name = os.path.normpath(path)
    if Path(name).is_absolute() or name.split("/", 1)[0] == "..":
        raise ValueError(
            f"{path} is not below the working directory: it cannot travel with a job; "
            "move it there, or use a storage plugin for it"
        )
    return name


def inputs_of(job: Any) -> dict[str, str]:
    """Returns the files that a job is given, by their names in its folder; of a folder, all files below it.

    Raises:
        ValueError: one cannot travel.
    """
    found: dict[str, str] = {}
    for path in _plain(job.input):
        name = name_of(path)
        if not Path(name).is_dir():
            found[name] = name
            continue
        for folder, _, files in os.walk(name):
            found |= {at: at for at in (f"{folder}/{each}" for each in files)}
    return found


def local_files(job: Any) -> list[str]:
    """Returns the files that a job reads and that are here; of a folder, also all files below it."""
    found = []
    for path in map(str, _plain(job.input)):
        found.append(path)
        if Path(path).is_dir():
            found += [f"{folder}/{each}" for folder, _, files in os.walk(path) for each in files]
    return found


def reads_storage(job: Any) -> bool:
    """Returns whether a job reads a file of a storage, of which nothing here says whether it has changed."""
    return any(getattr(file, "is_storage", False) for file in job.input)


def logs_of(job: Any) -> frozenset[str]:
    """Returns the files in which the rules of a job log.

    Raises:
        ValueError: one cannot travel.
    """
    each = job.jobs if job.is_group() else (job,)
    return frozenset(name_of(file) for one in each for file in _plain(one.log))


def outputs_of(job: Any) -> dict[str, bool]:
    """Returns the files that a job leaves, folders with a `/` at their end; whether each has to be there.

    Logs and benchmarks may be missing, and files that Snakemake itself deletes when nothing needs them.

    Raises:
        ValueError: one cannot travel.
    """
    found: dict[str, bool] = {}
    for each in job.jobs if job.is_group() else (job,):
        for file in _plain(each.output):
            name = name_of(file) + ("/" if _flags(file).get("directory") else "")
            found[name] = not _flags(file).get("temp")
        logs = [*each.log, *([each.benchmark] if getattr(each, "benchmark", None) else [])]
        for file in _plain(logs):
            found.setdefault(name_of(file), False)
    return found


def declared(names: Iterable[str]) -> list[str]:
    """Returns what a job declares as its results; where a site takes no such number of names, the folders that have them."""
    each = list(names)
    if len(each) <= FILES_MAX:
        return each
    folders = {name.rstrip("/").rpartition("/")[0] for name in each}
    if "" in folders or len(folders) > FILES_MAX:
        return [WORKING_FOLDER]
    return [f"{folder}/" for folder in sorted(folders)]


def pack(sources: Iterable[str], archive: Path) -> None:
    """Writes what a workflow consists of into an archive.

    Raises:
        ValueError: a file is not below the working directory.
        OSError: one cannot be read.
    """
    with tarfile.open(archive, "w:gz") as packed:
        for name in sorted({name_of(path) for path in sources}):
            packed.add(name, recursive=False)


def _plain(files: Iterable[Any]) -> Iterator[Any]:
    # What is in a storage the node gets from there itself.
    for file in files:
        flags = _flags(file)
        if not getattr(file, "is_storage", False) and not any(map(flags.get, _NOT_FILES)):
            yield file


def _flags(file: Any) -> dict[str, Any]:
    found: dict[str, Any] = getattr(file, "flags", {})
    return found
