"""Files of jobs brought to a folder of the user's; for the commands that do so."""

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from grms.client.answers import ResultFile
from grms.daemon.job_files import FileProblemError, created
from lrms_sim.util.messages import printable

PROBLEMS: Final = {
    "missing": "the job has left no such file",
    "no_file": "it is no plain file, or behind a link",
    "too_large": "it is larger than the site hands out",
}
"""Why there is no content of a file, in words."""


def bring_file(
    file: ResultFile,
    fetch: Callable[[str], Iterable[bytes]],
    target: Path,
    *,
    force: bool,
) -> str:
    """Brings a file to a folder; returns what went wrong, in words, or nothing.

    Args:
        file: as the site has described it.
        fetch: yields the bytes of a file by its name.
        target: the folder, which exists.
        force: replace a file that is there.
    """
    if file.problem:
        return PROBLEMS.get(file.problem, file.problem)
    if not force and os.path.lexists(target / file.name):
        return "it is there already; --force replaces it"
    digest = hashlib.sha256()
    try:
        with os.fdopen(created(target, file.name, mode=0o644), "wb") as out:
            for some in fetch(file.name):
                digest.update(some)
                out.write(some)
    except (FileProblemError, ValueError, OSError) as error:
        return printable(str(error))
    return "" if digest.digest() == file.sha256 else "its content is not what the site has said"
