"""The daemon's notes of each job outside its folder: its wanted state, and its account.

The notes survive a restart, and a script that empties its own folder at the end: they distinguish a job that has
run from one that was never there. A job that runs as another account cannot reach them.
"""

import errno
import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import structlog

from lrms_sim.util.files import write_durable

ACCOUNTS: Final = ".accounts"
"""In the jobs' folder: which of them run as another account; private to the daemon."""

MARKS: Final = ".marks"
"""Next to it, and as private: the notes of each job."""

PLACES: Final = ".places"
"""Next to it, and as private: the places in the queue of jobs that are elsewhere."""

IDENTITY: Final = "identity"
"""Among these: distinguishes the folders of a site's jobs from an empty folder in their place."""

_OF_ONE: Final = frozenset((errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOENT, errno.ELOOP))
# What one note cannot be read for; all else may be the disk.

_log = structlog.get_logger()

Given = dict[str, str]
"""Files by name, each with a word that changes with the file (`word_of`)."""


@dataclass(frozen=True, slots=True)
class Marks:
    """State of a job that survives a restart; but for `held` it only grows.

    Attributes:
        run: it should run, without waiting for a release by the site.
        released: its submission hold was lifted, or was about to be.
        number: the batch system's id at that time.
        begun: it had begun to run when its folder was cleared.
        limit_s: its requested time; 0 if an older site has submitted it.
        preemptible: it may be ended for another job.
        evicted: the site has ended it for another job, or was about to.
        held: the site has held it again to let it go, or was about to, and has not lifted that hold.
    """

    run: bool
    released: bool = False
    number: str = ""
    begun: bool = False
    limit_s: float = 0.0
    preemptible: bool = False
    evicted: bool = False
    held: bool = False


_EVER: Final = frozenset(("run", "released", "number", "begun", "limit_s"))


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """The place in the queue of a job that is elsewhere.

    Attributes:
        number: the batch system's id of its marker; empty until a poll has shown it.
        key: under which the marker was submitted, and in whose folder it begins.
        released: its submission hold was lifted, or was about to be.
        left: the marker is the job itself, which has left the queue; else it was submitted as a marker.
        back: the key under which the job has come back; empty while it is elsewhere.
    """

    number: str
    key: str
    released: bool = False
    left: bool = False
    back: str = ""


class JobNotes:
    """The notes of all jobs. All methods access the disk, except for what has been read.

    `folder` has one for each job, whose name is the job's here. `known` is a file elsewhere that identifies that
    folder; `None` without this check.
    """

    def __init__(self, folder: Path, known: Path | None = None) -> None:
        self._folder = folder
        self._known = known
        self._accounts: dict[str, str] | None = None
        self._opened = False

    @property
    def is_open(self) -> bool:
        """Whether this process has made or found the folder of the notes."""
        return self._opened

    def open(self) -> None:
        """Creates the folder of the notes; if it is missing later, the disk is away.

        Raises:
            FileNotFoundError: it is not the folder that was there before.
            OSError: it cannot be created.
        """
        if not self._opened:
            (self._folder / MARKS).mkdir(mode=0o700, exist_ok=True)
            self._recognise()
            self._opened = True

    def _recognise(self) -> None:
        if self._known is None:
            return
        own = self._folder / MARKS / IDENTITY
        found = own.read_text() if own.exists() else ""
        if not self._known.exists():
            if not found:
                write_durable(own, secrets.token_hex(16))
            write_durable(self._known, json.loads(own.read_text()))
        elif found != self._known.read_text():
            text = "these are not the jobs' folders that were here before; is a file system not mounted?"
            cure = f"where they were moved or deleted on purpose, delete {self._known}"
            raise FileNotFoundError(errno.ENOENT, f"{text} ({cure})", str(self._folder))

    def check_there(self) -> None:
        """Ensures that a missing note is truly missing, rather than on a disk that is away.

        Raises:
            FileNotFoundError: what this process has opened, or an earlier one, is gone.
        """
        if self._opened or self._known is not None:
            if self._opened and (self._folder / MARKS).is_dir():
                return
            text = "the jobs' folders are not there any more; is a file system not mounted?"
            raise FileNotFoundError(errno.ENOENT, text, str(self._folder))

    def account(self, name: str) -> str:
        """Returns the account as which a job runs; empty for this process's own.

        Raises:
            OSError: the note is unreadable or damaged.
        """
        return self._known_accounts().get(name, "")

    def runs_as(self, name: str, account: str) -> None:
        """Keeps as which account a job runs, empty for this process's own; it is on the disk when this returns."""
        if self.account(name) == account:
            return
        if not account:
            self._forget_account(name)  # of an attempt that a crash has ended
        else:
            notes = self._folder / ACCOUNTS
            notes.mkdir(mode=0o700, exist_ok=True)
            write_durable(notes / name, account)
            if self._accounts is not None:
                self._accounts[name] = account

    def forget(self, name: str) -> None:
        """Deletes what is kept of a job."""
        self._place(name).unlink(missing_ok=True)
        self._given(name).unlink(missing_ok=True)
        if self.account(name):
            self._forget_account(name)

    def _forget_account(self, name: str) -> None:
        (self._folder / ACCOUNTS / name).unlink(missing_ok=True)
        if self._accounts is not None:
            self._accounts.pop(name, None)

    def marks(self, name: str) -> Marks | None:
        """Returns the marks of a job; `None` if it was never submitted here."""
        try:
            return Marks(**json.loads(self._place(name).read_text()))
        except FileNotFoundError:
            self.check_there()
            return None
        except (ValueError, TypeError):
            # Notes are replaced atomically, so a partial file is not ours. Assume the worst.
            return Marks(run=True, released=True)

    def keep(self, name: str, marks: Marks) -> None:
        """Keeps what is wanted of a job; it is on the disk when this returns."""
        self.check_there()
        path = self._place(name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # An older version, which may read it again, knows no others than it has had.
        said = {name: value for name, value in asdict(marks).items() if value or name in _EVER}
        write_durable(path, said)

    def given(self, name: str) -> Given:
        """Returns the files in a job's folder before it began; empty if unknown."""
        try:
            return dict(json.loads(self._given(name).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return {}

    def keep_given(self, name: str, given: Given) -> None:
        """Keeps what lies in a job's folder before it begins."""
        if given:
            write_durable(self._given(name), given)
        else:
            self._given(name).unlink(missing_ok=True)

    def keep_place(self, name: str, place: KeptPlace) -> None:
        """Keeps the place of a job; it is on the disk when this returns."""
        self.check_there()
        (self._folder / PLACES).mkdir(mode=0o700, exist_ok=True)
        write_durable(self._folder / PLACES / f"{name}.json", asdict(place))

    def forget_place(self, name: str) -> None:
        """Deletes the place of a job."""
        (self._folder / PLACES / f"{name}.json").unlink(missing_ok=True)

    def places(self) -> dict[str, KeptPlace]:
        """Returns all places by the jobs' names here; one that cannot be read is left out, and its marker is then ended.

        Raises:
            OSError: the folder cannot be read.
        """
        folder, found = self._folder / PLACES, dict[str, KeptPlace]()
        with suppress(FileNotFoundError):
            os.scandir(folder).close()  # `glob` leaves out what may not be read
        for note in folder.glob("*+*+*.json"):
            try:
                found[note.stem] = KeptPlace(**json.loads(note.read_text()))
            except (OSError, ValueError, TypeError) as error:
                if isinstance(error, OSError) and error.errno not in _OF_ONE:
                    raise
                _log.warning("lrms.place_unreadable", note=str(note), problem=str(error))
        self.check_there()
        return found

    def names(self, before: float) -> list[str]:
        """Returns the jobs whose notes have not changed since a moment, seconds since 1970."""
        notes = (self._folder / MARKS).glob("*+*+*.json")
        return [note.stem for note in notes if note.lstat().st_mtime < before]

    def _known_accounts(self) -> dict[str, str]:
        if self._accounts is None:
            known = {}
            for note in (self._folder / ACCOUNTS).glob("*+*+*"):
                try:
                    known[note.name] = str(json.loads(note.read_text()))
                except ValueError as error:
                    # The job's account is never guessed.
                    raise OSError(errno.EIO, "a note is damaged", str(note)) from error
            self.check_there()
            if not self._opened:
                return known
            self._accounts = known
        return self._accounts

    def _place(self, name: str) -> Path:
        return self._folder / MARKS / f"{name}.json"

    def _given(self, name: str) -> Path:
        return self._folder / MARKS / f"{name}.given"
