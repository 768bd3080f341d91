"""Jobs that users submit to the batch system itself, and that a site may move to a partner.

Such a job is the *original*; the site makes a job of its own from it. Exactly one of the two may run. The choice is
made once, in a file that is durable before anything follows from it: `HOME` releases the native job, and the site's
job is never submitted; `AWAY` cancels the native job, and the site's job runs, wherever that is. The native job is held
from before the site's job is known until one of the two has happened, so that whatever a crash of the batch system
undoes is a held job.
"""

import json
import secrets
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from grms.lrms.base import LrmsUnavailableError
from lrms_sim.util.files import write_durable
from lrms_sim.workload.requests import Request

VARIABLE: Final = "HANSE_ORIGINAL"
"""Variable of a site's job that names its original by an opaque token."""


class Fate(Enum):
    """Which of the two runs: the native job at home, or the site's job."""

    HOME = "home"
    AWAY = "away"


def word_of(number: str, submitted: int) -> str:
    """Returns a unique name of a job at its batch system, which reuses numbers; `submitted` is seconds since 1970."""
    return f"{number}@{submitted}"


@dataclass(frozen=True, slots=True)
class NativeJob:
    """Note about an native job.

    Attributes:
        token: opaque name.
        submitted: to the batch system, seconds since 1970; a number may be reused.
        held_at: just after the hold that prevents its start, seconds since 1970; 0 before.
        job_id: of the site's job; empty until known.
        fate: which of the two runs; `None` while undecided.
        done: the native job was seen to proceed at home and is left alone.
    """

    token: str
    number: str
    submitted: int
    user: str
    held_at: float = 0.0
    job_id: str = ""
    fate: Fate | None = None
    done: bool = False

    @property
    def word(self) -> str:
        """Its unique name (`word_of`)."""
        return word_of(self.number, self.submitted)


class NativeJobNotes:
    """The notes' files; every method accesses the disk.

    Raises:
        LrmsUnavailableError: by every reading method: a file is damaged.
        OSError: by every method: a file cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def all(self) -> list[NativeJob]:
        """Returns what is kept, in no order that means anything."""
        if not self._folder.is_dir():
            return []
        found = [self._read(path.name) for path in sorted(self._folder.iterdir())]
        return [native_job for native_job in found if native_job is not None]

    def begin(self, number: str, submitted: int, user: str) -> NativeJob:
        """Notes an original before it is held."""
        native_job = NativeJob(secrets.token_hex(16), number, submitted, user)
        with self._lock:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._write(native_job)
        return native_job

    def change(self, token: str, **values: object) -> NativeJob:
        """Notes more of an native job, but of its fate; it is on the disk when this returns."""
        assert "fate" not in values
        with self._lock:
            native_job = self._read(token)
            assert native_job is not None
            changed = replace(native_job, **values)  # type: ignore[arg-type]  # of its fields
            self._write(changed)
        return changed

    def choose(self, token: str, fate: Fate) -> Fate | None:
        """Returns which of the two runs: `fate` if undecided, the first decision otherwise.

        Returns `None` if the native job is unknown here.
        """
        with self._lock:
            native_job = self._read(token)
            if native_job is None:
                return None
            if native_job.fate is None:
                native_job = replace(native_job, fate=fate)
                self._write(native_job)
            return native_job.fate

    def of(self, token: str) -> NativeJob | None:
        """Returns the note about an native job; `None` if it is unknown here."""
        return self._read(token)

    def forget(self, token: str) -> None:
        """Deletes the note of an original that is done with."""
        with self._lock:
            self._place(token).unlink(missing_ok=True)

    def _place(self, token: str) -> Path:
        return self._folder / token

    def _read(self, token: str) -> NativeJob | None:
        if len(token) != 32 or not token.isalnum():  # digits of `token_hex(16)`
            return None  # a user may have set the variable
        place = self._place(token)
        try:
            said = json.loads(place.read_text(encoding="utf-8"))
            fate = None if said["fate"] is None else Fate(said["fate"])
            return NativeJob(**{**said, "fate": fate})
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            # Not treated as unknown: the decision would be made again.
            raise LrmsUnavailableError(
                f"{place}: the note of a job is damaged: {error!r}"
            ) from error

    def _write(self, native_job: NativeJob) -> None:
        said = asdict(native_job)
        said["fate"] = None if native_job.fate is None else native_job.fate.value
        write_durable(self._place(native_job.token), said)


# --- what a batch system does for it -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NativeJobRow:
    """A job in the batch system's queue, of any user.

    Attributes:
        submitted: seconds since 1970.
        waiting: it has not started, and may.
        cancelled: it was ended by somebody.
        held: by its owner or an operator.
        held_here: by an operator, which its owner cannot lift.
        offered: put at the site's disposal by its user, or by the batch system for its user.
    """

    number: str
    submitted: int
    user: str
    waiting: bool
    cancelled: bool
    held: bool
    held_here: bool
    offered: bool

    @property
    def word(self) -> str:
        """Its unique name (`word_of`)."""
        return word_of(self.number, self.submitted)


@dataclass(frozen=True, slots=True)
class NativeJobRequest:
    """What a site's job is made of.

    Attributes:
        reason: why it stays at home; empty if it can go.
        request: all that it asks for; `None` for processors alone, and where it stays.
    """

    name: str
    processors: int
    requested_time_s: float
    script: str
    reason: str = ""
    request: Request | None = None


class NativeJobSystem(Protocol):
    """A batch system whose jobs are watched; calls raise `LrmsError` where they are not answered or refused."""

    async def rows(self) -> Sequence[NativeJobRow]:
        """Returns the jobs that were offered, and all that have ended a moment ago or not at all."""

    async def wanted(self, row: NativeJobRow) -> NativeJobRequest:
        """Returns what a job asks for."""

    async def hold(self, number: str) -> None:
        """Holds a waiting job of any user."""

    async def release(self, number: str) -> None:
        """Lifts that hold."""

    async def cancel(self, number: str) -> None:
        """Ends a job that waits, and no other."""

    async def gone(self, number: str, submitted: int) -> bool:
        """Returns whether the batch system itself says that it does not have a job.

        A number may have been reused since `submitted`, seconds since 1970.
        """

    async def tell(self, number: str, text: str) -> None:
        """Shows a message about a job to its user; nothing depends on it."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is needed to watch a batch system.

    Polls come every `poll_s` seconds; holds older than `settle_s` seconds survive a crash of the batch system.
    """

    system: NativeJobSystem
    notes: NativeJobNotes
    poll_s: float
    settle_s: float


@runtime_checkable
class WithNativeJobs(Protocol):
    """An LRMS whose own users' jobs may be watched."""

    @property
    def watched(self) -> Watched | None:
        """What is needed for that, if configured."""
