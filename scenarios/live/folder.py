"""The folder in which the daemons of a scenario work: claimed, cleared, and locked.

Only files left by daemons of a scenario are removed: a file says whose folder it is and which sites
had their files in it, and without that file a folder must be empty. The same file is locked while
the folder is in use.
"""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from grms.daemon.socket_folder import is_held
from grms.site.config.schema import DASHBOARD_FILE_END, PSEUDONYMS_END
from grms.site.runtime.usage_log import END as USAGE_END
from scenarios.report.output import FILES
from scenarios.util.errors import LiveError

MARK: Final = ".scenario-sites"
"""The file that marks a folder: the names of the sites with files in it."""

STATE: Final = "federation.json"
"""In the folder of a federation that was left running: the places of its daemons and sockets."""

RUN: Final = "run"
"""In the folder: the saved run on a scaled clock (`scenarios.report.output`)."""

LEFT_BEHIND: Final = (
    *(".toml", ".log", ".watch.json", DASHBOARD_FILE_END, PSEUDONYMS_END),
    *(".journal", ".journal.lock", ".journal.new", USAGE_END),
)
"""Suffixes, after a site's name, of the files that its daemon leaves, and of the folder with what was used."""


@contextmanager
def claimed(folder: Path, sites: Sequence[str]) -> Iterator[None]:
    """Makes a folder for daemons, or clears one that earlier ones left, and keeps others out of it.

    Raises:
        LiveError: it has other files, daemons work there, or it cannot be written to.
    """
    check_claim(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark = os.open(folder / MARK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise LiveError(f"{folder} cannot be used: {error.strerror or error}") from error
    try:
        _lock(mark, folder)
        # Somebody may have come between.
        check_claim(folder)
        _clear(folder)
        os.truncate(mark, 0)
        os.pwrite(mark, json.dumps(list(sites)).encode(), 0)
        yield
    finally:
        os.close(mark)


def check_claim(folder: Path) -> None:
    """Checks that daemons may work in a folder, without changing it; raises as `claimed` does."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise LiveError(f"{folder} is a file; name a folder") from error
    except OSError as error:
        raise LiveError(f"{folder} cannot be read: {error.strerror or error}") from error
    if STATE in names and MARK in names and _may_live(folder):
        raise LiveError(f"a federation runs in {folder}; end it first: scenario down {folder}")
    running = sorted(daemons_in(folder))
    if running:
        raise LiveError(f"the daemon of {running[0]} runs in {folder}; name another folder")
    ours = {MARK, STATE, RUN, *_left_by(_sites(folder))} if MARK in names else set()
    strange = [name for name in names if name not in ours]
    if strange:
        raise LiveError(f"{folder} has other files, such as {strange[0]}; name another folder")
    run = folder / RUN
    if run.is_symlink() or (run.exists() and not run.is_dir()):
        raise LiveError(f"{run} is not the folder of a run; name another folder")
    others = {path.name for path in run.iterdir()} - set(FILES) if run.is_dir() else set()
    if others:
        raise LiveError(f"{run} has other files, such as {min(others)}; name another folder")


@dataclass(frozen=True, slots=True)
class Federation:
    """Daemons that were left running, or were to be.

    Attributes:
        place: the folder in which they were started.
        sockets: the folder of their sockets, which each holds until it ends, and who starts them until
            all serve.
    """

    place: Path
    sockets: Path

    @property
    def lives(self) -> bool:
        """Whether one of them runs, or is being started."""
        return is_held(self.sockets) or bool(daemons_in(self.place))


def federation_in(folder: Path) -> Federation:
    """Returns the federation that was started in a folder.

    Raises:
        LiveError: there is none, this is a copy of its folder, or what is written there is damaged.
    """
    path = folder / STATE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        found = Federation(Path(state["folder"]), Path(state["sockets"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"{path.name}: {error!r}"
        raise LiveError(f"there is no federation in {folder}: {reason}") from error
    place = found.place
    if place != folder.resolve() and (place / STATE).exists():
        raise LiveError(f"{folder} is a copy; end the federation in {place}: scenario down {place}")
    return found


def _may_live(folder: Path) -> bool:
    try:
        return federation_in(folder).lives
    except LiveError:
        return True


def daemons_in(folder: Path) -> dict[str, int]:
    """Returns the processes of the site daemons whose configurations are in a folder, by name.

    Relative paths and links are resolved, as they are when daemons are started.
    """
    place = os.fsencode(folder.resolve())
    found: dict[str, int] = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        # A process may be gone by now; one that is dead and not yet buried has no command line.
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            where, _, config = words[-1].rpartition(b"/")
            if b"serve" in words and where == place and config.endswith(b".toml"):
                found[os.fsdecode(config.removesuffix(b".toml"))] = int(process.name)
    return found


def _lock(mark: int, folder: Path) -> None:
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LiveError(f"another scenario works in {folder}; name another folder") from None
    except OSError:
        # Some file systems have no locks. Two at one time are then noticed by their daemons.
        return


def _sites(folder: Path) -> list[str]:
    try:
        names = json.loads((folder / MARK).read_bytes() or b"[]")
    except (OSError, ValueError):
        # It is damaged, so nothing is known to be ours.
        return []
    return [str(name) for name in names] if isinstance(names, list) else []


def _left_by(sites: Sequence[str]) -> set[str]:
    # The last is what a daemon that was killed has not moved to its place yet.
    left = {name + end for name in sites for end in LEFT_BEHIND}
    left |= {f"{name}{DASHBOARD_FILE_END}.new" for name in sites}
    return left | {f".{name}.watch.json.new" for name in sites}


def _clear(folder: Path) -> None:
    # Only names that are there: what the mark says can then never lead out of the folder.
    ours = {STATE, *_left_by(_sites(folder))}
    for place, names in ((folder, ours), (folder / RUN, set(FILES))):
        for path in list(place.iterdir()) if place.is_dir() else []:
            if path.name in names:
                if path.name.endswith(USAGE_END) and path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
    with contextlib.suppress(FileNotFoundError):
        (folder / RUN).rmdir()
