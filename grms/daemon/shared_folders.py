"""Folders shared by this site and some partners, and files that jobs use there in place.

A given path is accepted only below a folder that this site has declared, and only if nothing in it leads elsewhere:
no `.`, no `..`, and on the disk no link.
"""

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from grms.daemon.job_files import OWN_NAMES, FileProblem, FileProblemError, check_name, opened

SCRIPT: Final = "program"
"""Name of a job's script in its folder."""


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file that a job uses in place.

    Attributes:
        name: of the link to it in the job's folder; `SCRIPT` for the program.
        path: begins with `/`; the same at both sites.
        written: the job writes it, so that it need not exist.
    """

    name: str
    path: str
    written: bool = False

    @property
    def runs(self) -> bool:
        """Whether it is the job's script."""
        return self.name == SCRIPT


class NotSharedError(Exception):
    """A file cannot be used in place here; the text says why, for a person."""


def check_shared(file: SharedFile) -> SharedFile:
    """Returns a file that is valid for some site; `ValueError` if its path or its name is invalid."""
    if not file.path.startswith("/"):
        raise ValueError(f"{file.path[:80]!r} must be a path that begins with /")
    check_name(file.path[1:])
    if file.runs:
        if file.written:
            raise ValueError("a script is not written by its own job")
    elif check_name(file.name) in OWN_NAMES:
        raise ValueError(f"{file.name!r} is a name that the site itself uses in the job's folder")
    return file


class SharedFolders:
    """The folders that a site shares with its partners.

    `partners` have the same folders under the same paths; `roots` must not be links.
    """

    def __init__(self, roots: Iterable[str] = (), partners: Iterable[str] = ()) -> None:
        self._roots = tuple(roots)
        self.partners = frozenset(partners)

    def look(self, file: SharedFile) -> None:
        """Checks that a file can be used in place; accesses the disk.

        Raises:
            NotSharedError: it lies elsewhere, is missing, or a link is on its path.
        """
        try:
            path = check_shared(file).path
        except ValueError as error:
            raise NotSharedError(str(error)) from error
        for root in self._roots:
            if path.startswith(f"{root.rstrip('/')}/"):
                break
        else:
            raise NotSharedError(f"{path} is below no shared folder of this site")
        try:
            _look(Path(root), path.removeprefix(root).lstrip("/"), file)
        except OSError as error:
            raise NotSharedError(f"{path}: {error.strerror or error}") from error


def _look(root: Path, name: str, file: SharedFile) -> None:
    try:
        found = opened(root, name)
    except FileProblemError as error:
        if error.problem is FileProblem.MISSING and file.written:
            _look_for_folder(root, name, file)
            return
        why = (
            "is not here"
            if error.problem is FileProblem.MISSING
            else "is no plain file, or a link leads to it"
        )
        raise NotSharedError(f"{file.path} {why}") from error
    try:
        mode = os.fstat(found).st_mode
    finally:
        os.close(found)
    if file.runs and not mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH):
        raise NotSharedError(f"{file.path} cannot be run; chmod +x it")


def _look_for_folder(root: Path, name: str, file: SharedFile) -> None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    here = os.open(root, flags)
    try:
        *folders, last = name.split("/")
        for part in folders:
            before, here = here, os.open(part, flags, dir_fd=here)
            os.close(before)
        try:
            os.stat(last, dir_fd=here, follow_symlinks=False)
        except FileNotFoundError:
            return
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise NotSharedError(f"there is no folder for {file.path}") from error
        raise
    finally:
        os.close(here)
    raise NotSharedError(f"{file.path} is a link that leads nowhere")
