"""Jobs that users have handed to the batch system itself, and that a site may move to a partner.

Such a job is the *original*; the site makes a job of its own of it. Exactly one of the two may run. Which one is
decided once, in a file that is on the disk before anything follows from it: `HOME` lifts the original's
hold, and the site's job is never submitted; `AWAY` cancels the original, and the site's job runs, wherever that is. The
original is held from before the site's job is known until one of the two has happened, so that
whatever is undone by a crash of the batch system is a job that is held.
"""

import json
import secrets
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from grms.lrms.port import LrmsUnavailableError
from lrms_sim.text_files import write_durable

VARIABLE: Final = "HANSE_ORIGINAL"
"""Variable of a site's job that says which original it was made of, by a token that means nothing to others."""


class Fate(Enum):
    """Which of the two runs: the original at home, or the site's job."""

    HOME = "home"
    AWAY = "away"


def word_of(number: str, submitted: int) -> str:
    """Returns what names a job at its batch system for ever: numbers are used again.

    Args:
        number: the batch system's.
        submitted: when it was handed over, seconds since 1970.
    """
    return f"{number}@{submitted}"


@dataclass(frozen=True, slots=True)
class Original:
    """What is kept of an original.

    Attributes:
        token: names it, and means nothing to others.
        number: the batch system's.
        submitted: when it was handed to the batch system, seconds since 1970; a number may be used twice.
        user: whose it is.
        held_at: just after the hold that keeps it from starting, seconds since 1970; 0 before.
        job_id: of the site's job; empty before it is known.
        fate: which of the two runs; None where that is open.
        done: the original has been seen to go its way at home; nobody touches it any more.
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
        """See `word_of`."""
        return word_of(self.number, self.submitted)


class OriginalNotes:
    """The files; every method touches the disk.

    Args:
        folder: where they are.

    Raises:
        LrmsUnavailableError: by every method that reads: a file is damaged.
        OSError: by every method: one cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def all(self) -> list[Original]:
        """Returns what is kept, in no order that means anything."""
        if not self._folder.is_dir():
            return []
        found = [self._read(path.name) for path in sorted(self._folder.iterdir())]
        return [original for original in found if original is not None]

    def begin(self, number: str, submitted: int, user: str) -> Original:
        """Notes an original before it is held."""
        original = Original(secrets.token_hex(16), number, submitted, user)
        with self._lock:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._write(original)
        return original

    def change(self, token: str, **values: object) -> Original:
        """Notes more of an original, but of its fate; it is on the disk when this returns."""
        assert "fate" not in values
        with self._lock:
            original = self._read(token)
            assert original is not None
            changed = replace(original, **values)  # type: ignore[arg-type]  # of its fields
            self._write(changed)
        return changed

    def choose(self, token: str, fate: Fate) -> Fate | None:
        """Returns which of the two runs: `fate` where nobody has said, and what was said first otherwise.

        None of an original that is not known here.
        """
        with self._lock:
            original = self._read(token)
            if original is None:
                return None
            if original.fate is None:
                original = replace(original, fate=fate)
                self._write(original)
            return original.fate

    def of(self, token: str) -> Original | None:
        """Returns what is kept of an original; None of one that is not known here."""
        return self._read(token)

    def forget(self, token: str) -> None:
        """Deletes the note of an original of which nothing is left to do."""
        with self._lock:
            self._place(token).unlink(missing_ok=True)

    def _place(self, token: str) -> Path:
        return self._folder / token

    def _read(self, token: str) -> Original | None:
        if len(token) != 32 or not token.isalnum():  # digits of `token_hex(16)`
            return None  # a user may have set the variable
        place = self._place(token)
        try:
            said = json.loads(place.read_text(encoding="utf-8"))
            fate = None if said["fate"] is None else Fate(said["fate"])
            return Original(**{**said, "fate": fate})
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            # Not taken for one that is unknown: what was decided would be decided again.
            raise LrmsUnavailableError(
                f"{place}: the note of a job is damaged: {error!r}"
            ) from error

    def _write(self, original: Original) -> None:
        said = asdict(original)
        said["fate"] = None if original.fate is None else original.fate.value
        write_durable(self._place(original.token), said)


# --- what a batch system does for it -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OriginalRow:
    """A job in the batch system's table, whoever's it is.

    Attributes:
        number: the batch system's.
        submitted: seconds since 1970.
        user: whose it is.
        waiting: it has not started, and may.
        cancelled: it was ended by somebody.
        held: it waits for the end of a hold, its owner's or an operator's.
        held_here: it waits for the end of an operator's hold, which its owner cannot lift.
        offered: its user, or the batch system for its user, has put it at the site's disposal.
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
        """See `word_of`."""
        return word_of(self.number, self.submitted)


@dataclass(frozen=True, slots=True)
class OriginalWanted:
    """What a site's job is made of.

    Attributes:
        name: the user's word for it.
        processors: that it needs.
        requested_time_s: seconds that it may run.
        script: its text.
        reason: why it stays at home; empty where it can go.
    """

    name: str
    processors: int
    requested_time_s: float
    script: str
    reason: str = ""


class OriginalSystem(Protocol):
    """A batch system whose jobs are watched; calls raise `LrmsError` where they are not answered or refused."""

    async def rows(self) -> Sequence[OriginalRow]:
        """Returns the jobs that were offered, and all that have ended a moment ago or not at all."""

    async def wanted(self, row: OriginalRow) -> OriginalWanted:
        """Returns what a job asks for."""

    async def hold(self, number: str) -> None:
        """Keeps a waiting job from starting, whoever's it is."""

    async def release(self, number: str) -> None:
        """Lifts that hold."""

    async def cancel(self, number: str) -> None:
        """Ends a job that waits, and no other."""

    async def gone(self, number: str, submitted: int) -> bool:
        """Returns whether the batch system itself says that it does not have a job.

        Args:
            number: of the job.
            submitted: when, seconds since 1970; a number may have been given away anew.
        """

    async def tell(self, number: str, text: str) -> None:
        """Says something of a job where its user finds it; nothing rests on it."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is needed to watch a batch system.

    Attributes:
        system: it.
        notes: of its originals.
        poll_s: seconds from look to look.
        settle_s: so old a hold must be that a crash of the batch system cannot undo it.
    """

    system: OriginalSystem
    notes: OriginalNotes
    poll_s: float
    settle_s: float


@runtime_checkable
class WithOriginals(Protocol):
    """An LRMS whose own users' jobs may be watched."""

    @property
    def watched(self) -> Watched | None:
        """What is needed for that; None where it is not wanted."""
