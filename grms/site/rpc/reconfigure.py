"""Reloads the configuration of a running daemon.

That covers what an operator changes regularly: policies, partners and their addresses, operators, a
renewed certificate, and revoked certificates. Everything is validated before anything is changed:
all or none. Other changes in the file need a restart, and are named.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import structlog

from grms.policy.transfer import rounds_in_force
from grms.security.certificates import PkiError
from grms.security.tls import TlsFiles
from grms.site.config.load import (
    ConfigError,
    given_by_user,
    load_config,
    partners_of,
    place_held,
    policies_of,
    translation_of,
    weights_of,
)
from grms.site.config.schema import SiteConfig
from grms.site.gateway.admission import Admission
from grms.site.gateway.open_call_shares import CallShares
from grms.site.model.events import PoliciesChanged
from grms.site.peers.accounts import guest_accounts
from grms.site.peers.peers import PeerClients
from grms.site.peers.pseudonyms import GuestOwners
from grms.site.peers.tunnels import Tunnels
from grms.site.runtime.event_loop import Engine

CHANGEABLE: Final = frozenset(
    {
        *("partners", "location", "operators", "partners_asked"),
        *("rails", "reoffer", "requeue", "guests", "usage"),
    }
)
"""Keys of a configuration that can be reloaded."""

CHANGEABLE_WITHIN: Final = frozenset({"tls.refused", "rest.issuers"})
"""The same within tables that otherwise need a restart."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What is in force after a reload.

    Attributes:
        policies: name of the transfer policy by partner.
        restart_needed: keys that need a restart: changed ones, and `limits.calls` where it is to be shared out
            among more partners than connections have been told of.
    """

    policies: dict[str, str]
    restart_needed: tuple[str, ...]


class Reload:
    """What a daemon does when it is told to read its configuration anew.

    Args:
        config: as the daemon was started.
        admission: is told who may come in.
        owners: are told whose jobs are banned, and as which accounts jobs run.
        tunnels: are told how partners are called now.
        files: keys and certificates; None without TLS.
        on_partners: are told of the configuration with other partners.
        on_rest: checks what a configuration says of users over HTTP, and returns what puts it in force.
    """

    def __init__(
        self,
        config: SiteConfig,
        path: Path,
        *,
        engine: Engine,
        links: PeerClients,
        tunnels: Tunnels,
        admission: Admission,
        owners: GuestOwners,
        files: TlsFiles | None,
        on_partners: Sequence[Callable[[SiteConfig], None]],
        on_rest: Callable[[SiteConfig], Callable[[], None]] = lambda _: lambda: None,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._config = config
        self._path = path
        self._engine = engine
        self._links = links
        self._tunnels = tunnels
        self._admission = admission
        self._owners = owners
        self._files = files
        self._on_partners = on_partners
        self._on_rest = on_rest
        self._log = log
        self._shown = self._certificate()
        self._partners_at_start = len(config.partners)

    def __call__(self) -> Reloaded:
        """Reloads everything; `ConfigError` if some of it is unusable; then nothing has changed."""
        shown, engine = str(self._path), self._engine
        config = load_config(self._path)
        transfer, location = policies_of(config, shown)
        partners = partners_of(config)
        try:
            replace(
                engine.state.settings,
                transfer=transfer,
                location=location,
                partners=partners,
                partners_asked=config.partners_asked,
                reoffer=rounds_in_force(config.reoffer, transfer.values()),
            )
        except ValueError as error:
            raise ConfigError(f"{shown}: {error}") from error
        certificate, accounts = self._checked_certificate(), guest_accounts(config)
        serve_over_http = self._on_rest(config)
        changed = differences(self._config, config)
        restart_needed = tuple(sorted(changed | self._outgrown(config)))
        engine.tell(
            PoliciesChanged(
                engine.new_id(),
                transfer,
                location,
                partners,
                config.partners_asked,
                rounds_in_force(config.reoffer, transfer.values()),
                place_held(config),
                translation_of(config),
                weights_of(config),
                given_by_user(config),
                config.requeue,
                config.guests.preemptible,
            )
        )
        self._admission.partners = frozenset(partner.name for partner in partners)
        self._admission.operators = frozenset(config.operators)
        trust, refused = self._links.trust, False
        if trust is not None and config.tls is not None:
            refused = trust.refused != frozenset(config.tls.refused)
            trust.refused = frozenset(config.tls.refused)
        serve_over_http()
        self._admission.trust_changed()
        self._owners.banned = frozenset(config.guests.banned)
        self._owners.accounts = accounts
        self._links.list_partners(self._tunnels.places(config.partners))
        if config.partners != self._config.partners:
            for tell in self._on_partners:
                tell(config)
        if certificate != self._shown or refused:
            self._shown = certificate
            self._links.renew()
            self._tunnels.renew()
        self._config = self._config.model_copy(
            update={key: getattr(config, key) for key in CHANGEABLE}
        )
        self._log.info("reloaded", partners=len(partners), restart_needed=restart_needed)
        policies = {name: policy.name for name, policy in transfer.items()}
        return Reloaded(policies, restart_needed)

    def _outgrown(self, config: SiteConfig) -> set[str]:
        # gRPC takes the number of calls that a connection may have open when its server begins, and never anew.
        limits, brokers = self._config.limits, len(self._config.brokers)
        shares = CallShares.of(limits.calls, limits.message_bytes)
        now = shares.per_connection(len(config.partners) + brokers)
        told = shares.per_connection(self._partners_at_start + brokers)
        return {"limits.calls"} if self._config.is_called and now < told else set()

    def _checked_certificate(self) -> tuple[bytes, ...]:
        if self._files is None:
            return ()
        try:
            self._files.check(site=self._config.name, now=time.time())
        except PkiError as error:
            raise ConfigError(str(error)) from error
        return self._certificate()

    def _certificate(self) -> tuple[bytes, ...]:
        files = self._files
        if files is None:
            return ()
        return tuple(path.read_bytes() for path in (files.authority, files.certificate, files.key))


def differences(before: SiteConfig, after: SiteConfig) -> set[str]:
    """Returns the keys in which two configurations differ, but those that are read anew."""
    one, other = before.model_dump(), after.model_dump()
    return {
        key
        for name in one
        if name not in CHANGEABLE
        for key in _differ(name, one[name], other[name])
        if key not in CHANGEABLE_WITHIN
    }


def _differ(key: str, one: Any, other: Any) -> set[str]:
    if one == other:
        return set()
    if isinstance(one, dict) and isinstance(other, dict):
        return {found for name in one for found in _differ(f"{key}.{name}", one[name], other[name])}
    return {key}
