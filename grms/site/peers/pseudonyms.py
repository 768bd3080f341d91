"""Owners of guests' jobs without names: pseudonyms that home gives its users, and a partner may ban.

Home derives a pseudonym from the user's name and the partner's with a secret key: one user stays
the same to one partner for ever, and two partners cannot tell that they have the same user. It goes
with the program, so only to the partner that has accepted the job, which keeps it beside the
journal as long as the job lives. The name itself goes the same way, only to partners that the
site's file names for that (`tell_users`); it is not stored there, except as the local account in
the partner's own file.
"""

import asyncio
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from grms.lrms.base import LrmsRefusedError
from grms.site.config.schema import SiteConfig
from grms.site.peers.accounts import GuestAccounts, NoAccountError
from grms.site.runtime.executor_driver import ProgramGoneError
from grms.util.names import PSEUDONYM
from lrms_sim.util.files import write_new, write_text

KEY_BYTES: Final = 32


class Pseudonyms:
    """Names a site's users to its partners; those in `told` get the names as well."""

    def __init__(self, key: bytes, told: Iterable[str] = ()) -> None:
        self._key = key
        self.told = frozenset(told)

    def name(self, partner: str, user: str) -> str:
        """Returns a user's name for a partner; empty for one that is not to know it."""
        return user if partner in self.told else ""

    def of(self, partner: str, user: str) -> str:
        """Returns what a user is called at a partner: 32 hexadecimal digits.

        The first half of HMAC-SHA256 (RFC 2104) of both names.
        """
        text = f"{partner}\0{user}".encode("utf-8", "surrogateescape")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()[:32]


def told_names(config: SiteConfig) -> frozenset[str]:
    """Returns the partners that get users' names."""
    return frozenset(partner.name for partner in config.partners if partner.tell_users)


def read_key(path: Path) -> bytes:
    """Returns a site's key, which is made if there is none; its owner alone may read it.

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


class _Known(NamedTuple):
    # Of a guest's job: its user's pseudonym, and its account; None where that was never chosen.
    owner: str
    account: str | None


Limited = Callable[[str, str, str, frozenset[str]], str]
"""Says why a job of a partner's user is not run here now; empty if it is."""


class GuestOwners:
    """Remembers whose guests' jobs are, and keeps out who is banned.

    Args:
        banned: `PARTNER:PSEUDONYM` of those whose jobs are not run here.
        accounts: as which jobs run.
        limited: returns why a job of a partner's user is not run here now, by the partner, the key of the job, the
            pseudonym, and keys of jobs that were taken for the same user; empty if it is.
    """

    def __init__(
        self,
        folder: Path,
        banned: Iterable[str] = (),
        accounts: GuestAccounts | None = None,
        limited: Limited = lambda _partner, _key, _owner, _taken: "",
    ) -> None:
        self._limited = limited
        self._folder = folder
        self.banned = frozenset(banned)
        self.accounts = accounts or GuestAccounts()
        self._known: dict[str, _Known] = {}
        self._taken: dict[str, str] = {}  # whose jobs are, as soon as they have passed the limits

    async def take(self, partner: str, key: str, owner: str, user: str = "") -> None:
        """Remembers whose a job is, and as which account it is to run.

        An `owner` that is no pseudonym counts as none; `user` is the name there, or empty if the
        home site has not told it.

        Raises:
            ProgramGoneError: its user is banned, has used up what the month allows, or has no account here.
            OSError: it cannot be stored.
        """
        owner = owner if PSEUDONYM.fullmatch(owner) else ""
        if f"{partner}:{owner}" in self.banned:
            raise ProgramGoneError("its user is banned here", unwanted=True)
        taken = frozenset(one for one, whose in self._taken.items() if whose == owner) - {key}
        if owner and (why := self._limited(partner, key, owner, taken)):
            raise ProgramGoneError(why, unwanted=True)
        self._taken[key] = owner
        try:
            account = await asyncio.to_thread(self.accounts.of, partner, user)
        except NoAccountError as error:
            raise ProgramGoneError(str(error), unwanted=True) from error
        known = _Known(owner, account)
        await asyncio.to_thread(self._keep, key, known)
        self._known[key] = known

    def _keep(self, key: str, known: _Known) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        text = known.owner if known.account is None else f"{known.owner}\n{known.account}"
        write_text(self._place(key), text)

    def _place(self, key: str) -> Path:
        return self._folder / key.replace("/", "+")

    def of(self, key: str) -> str:
        """Returns whose a job is; empty if unknown or unreadable now."""
        try:
            return self._of(key).owner
        except OSError:
            return ""

    def account(self, partner: str, key: str) -> str:
        """Returns the account as which a job is to run; empty for the daemon's own.

        Args:
            partner: its home site.
            key: of the job; one whose program has come with its offer has not been taken here.

        Raises:
            LrmsRefusedError: it is not to be run.
            OSError: what was chosen cannot be read now.
        """
        known = self._of(key).account
        if known is not None:
            return known
        try:
            return self.accounts.of(partner, "")
        except NoAccountError as error:
            raise LrmsRefusedError(str(error)) from error

    def _of(self, key: str) -> _Known:
        if key not in self._known:
            try:
                owner, line, account = self._place(key).read_text(encoding="ascii").partition("\n")
                self._known[key] = _Known(owner, account if line else None)
            except (FileNotFoundError, ValueError):
                self._known[key] = _Known("", None)
        return self._known[key]

    def sweep(self, lives: Callable[[str], bool]) -> None:
        """Forgets jobs that do not live any more.

        `lives` says whether the job of a key is alive.
        """
        self._known = {key: known for key, known in self._known.items() if lives(key)}
        self._taken = {key: owner for key, owner in self._taken.items() if lives(key)}
        if self._folder.is_dir():
            for path in list(self._folder.iterdir()):
                if not lives(path.name.replace("+", "/")):
                    path.unlink(missing_ok=True)
