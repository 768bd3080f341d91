"""Local accounts for partners' jobs: by user, if both sites' files say so, or by home site.

The home site decides whether a partner gets its users' names (`partners[].tell_users`), the guest's
site whom it knows (`guests.users`, a map). Without the former no name is sent, without the latter
none is stored or looked up.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from grms.lrms.account_mapping import common_group
from grms.lrms.base import LrmsRefusedError
from grms.site.config.load import ConfigError
from grms.site.config.schema import SiteConfig
from grms.util.names import ACCOUNT, check_site_name
from lrms_sim.util.files import read_bytes

MAP_BYTES_MAX: Final = 16 << 20
"""Largest map, in bytes: some 300,000 users."""

USER: Final = re.compile(r"[^\s@:\x00-\x1f\x7f](?:[^\s\x00-\x1f\x7f]{0,254})")
"""A user's name at another site: anything without blanks."""


class NoAccountError(Exception):
    """A job is not run here, as there is no account for it."""


@dataclass(frozen=True, slots=True)
class GuestAccounts:
    """The accounts of partners' jobs.

    Attributes:
        users: account by (home site, user's name there).
        partners: account by home site, of those whose user has none of his own.
        refuse_others: jobs of users that are not in `users` are not run.
        check: raises `LrmsRefusedError` where an account may not run jobs.
    """

    users: Mapping[tuple[str, str], str] = field(default_factory=dict)
    partners: Mapping[str, str] = field(default_factory=dict)
    refuse_others: bool = False
    check: Callable[[str], object] = common_group

    def of(self, partner: str, user: str) -> str:
        """Returns the account as which a job runs; empty for the daemon's own.

        `user` is the name given by the home site, or empty.

        Raises:
            NoAccountError: the job must not run here.
        """
        account = self.users.get((partner, user), "")
        if not account and self.refuse_others:
            raise NoAccountError("its user has no account here")
        account = account or self.partners.get(partner, "")
        if account:
            try:
                self.check(account)
            except LrmsRefusedError as error:
                raise NoAccountError(f"its account cannot be used: {error.reason}") from error
        return account

    @property
    def needs_sudo(self) -> list[str]:
        """Keys of the site's file by which jobs run as other accounts."""
        kept = (("guests.users", self.users), ("partners.account", self.partners))
        return [key for key, accounts in kept if accounts]

    def as_daemon(self, partners: Iterable[str]) -> list[str]:
        """Returns those of some partners of whom jobs run as the daemon's user."""
        return (
            [] if self.refuse_others else [name for name in partners if name not in self.partners]
        )

    @property
    def accounts(self) -> list[str]:
        """All accounts there are, in order."""
        return sorted({*self.users.values(), *self.partners.values()})


def guest_accounts(config: SiteConfig) -> GuestAccounts:
    """Returns the accounts of a site's file and of its map.

    Raises:
        ConfigError: the map cannot be used.
    """
    guests = config.guests
    users: dict[tuple[str, str], str] = {}
    if guests.users is not None:
        data = read_bytes(Path(guests.users), MAP_BYTES_MAX, ConfigError)
        try:
            users = read_users(data.decode("utf-8"))
        except ValueError as error:
            raise ConfigError(f"{guests.users}: {error}") from error
    return GuestAccounts(users, config.accounts, guests.unknown_users == "refuse")


def read_users(text: str) -> dict[tuple[str, str], str]:
    """Parses a map file.

    A line has a partner's user, as `USER@SITE`, and the local account, separated by blanks; a `#`
    begins a comment.

    Raises:
        ValueError: a line is malformed; the text says which.
    """
    found: dict[tuple[str, str], str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            raise ValueError(f"line {number}: it must be USER@SITE and a local account")
        user, at, site = words[0].rpartition("@")
        if not at or USER.fullmatch(user) is None:
            raise ValueError(f"line {number}: {words[0][:80]!r} is not USER@SITE")
        try:
            check_site_name(site)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        if (site, user) in found:
            raise ValueError(f"line {number}: {words[0][:80]!r} comes twice")
        if words[1] == "root" or ACCOUNT.fullmatch(words[1]) is None:
            raise ValueError(f"line {number}: {words[1][:80]!r} is no local account for jobs")
        found[site, user] = words[1]
    return found
