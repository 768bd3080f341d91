"""Whose a guest's job is, without a name: a pseudonym that home gives each of its users, and a partner may ban.

Home makes it of the user's name and the partner's with a key that nobody else has: the same user is the same
to one partner for ever, and two partners cannot tell that they have the same. It goes with the program, so
only to the partner that has accepted the job. There it is kept beside the journal as long as the job lives.
"""

import asyncio
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from grms.names import PSEUDONYM
from grms.site.engine.lrms_driver import ProgramGoneError
from lrms_sim.text_files import write_new

KEY_BYTES: Final = 32


class Pseudonyms:
    """Names a site's users to its partners.

    Args:
        key: of the site.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, partner: str, user: str) -> str:
        """Returns what a user is called at a partner: 32 hexadecimal digits.

        The first half of HMAC-SHA256 (RFC 2104) of both names.
        """
        text = f"{partner}\0{user}".encode("utf-8", "surrogateescape")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()[:32]


def read_key(path: Path) -> bytes:
    """Returns a site's key, which is made where there is none; its owner alone may read it.

    Raises:
        OSError: it cannot be read or written.
        ValueError: it is none, or others may read it.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        key = secrets.token_bytes(KEY_BYTES)
        write_new(path, key)
        return key
    with os.fdopen(number, "rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise ValueError(f"{path}: others may read this key; chmod 600 it")
        key = file.read(KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise ValueError(
            f"{path}: it has no key of {KEY_BYTES} bytes; remove it, and users get new pseudonyms"
        )
    return key


class GuestOwners:
    """Remembers whose guests' jobs are, and keeps out who is banned.

    Args:
        folder: where it is remembered, a file for each job.
        banned: `PARTNER:PSEUDONYM` of those whose jobs are not run here.
    """

    def __init__(self, folder: Path, banned: Iterable[str] = ()) -> None:
        self._folder = folder
        self.banned = frozenset(banned)
        self._known: dict[str, str] = {}

    async def take(self, partner: str, key: str, owner: str) -> None:
        """Remembers whose a job is.

        Args:
            partner: its home site.
            key: of the job.
            owner: as the home site has called its user; anything that is no pseudonym counts as none.

        Raises:
            ProgramGoneError: its user is banned.
            OSError: it cannot be kept.
        """
        owner = owner if PSEUDONYM.fullmatch(owner) else ""
        if f"{partner}:{owner}" in self.banned:
            raise ProgramGoneError("its user is banned here", unwanted=True)
        self._known[key] = owner
        await asyncio.to_thread(self._keep, key, owner)

    def _keep(self, key: str, owner: str) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._place(key).write_text(owner, encoding="ascii")

    def _place(self, key: str) -> Path:
        return self._folder / key.replace("/", "+")

    def of(self, key: str) -> str:
        """Returns whose a job is; empty where nobody has said."""
        if key not in self._known:
            try:
                self._known[key] = self._place(key).read_text(encoding="ascii")
            except (OSError, ValueError):
                self._known[key] = ""
        return self._known[key]

    def sweep(self, lives: Callable[[str], bool]) -> None:
        """Forgets jobs that do not live any more.

        Args:
            lives: says whether one does, by its key.
        """
        self._known = {key: owner for key, owner in self._known.items() if lives(key)}
        if self._folder.is_dir():
            for path in list(self._folder.iterdir()):
                if not lives(path.name.replace("+", "/")):
                    path.unlink(missing_ok=True)
