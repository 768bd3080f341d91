"""The relay's process: the port of sites, and the tunnels that wait there.

TLS says who comes, as at any site's port, and who may meet whom is in the file. What is passed on is TLS of the two sites:
the relay has none of its keys. What it learns, and logs, is who has called whom, when, and how many bytes went there and back.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import structlog

from grms.daemon.process import notify, signals
from grms.daemon.tunnel.hub import TunnelHub
from grms.relay.config import RelayConfig, load_relay
from grms.relay.traffic import TrafficLog
from grms.security.certificates import PkiError
from grms.security.tls import CertificateTrust, ServerTls, TlsFiles
from grms.site.config.load import ConfigError
from grms.site.gateway.connection_budget import KEPT, PER_CONNECTION, available
from grms.site.gateway.peer_listener import PartnerPort, PortLimits
from grms.site.gateway.rejection_log import RejectionLog
from grms.util.names import parse_endpoint

Log = structlog.typing.FilteringBoundLogger


def check_keys(config: RelayConfig, path: Path) -> ServerTls:
    """Returns the TLS of a relay's file.

    Raises:
        ConfigError: its keys cannot be used.
    """
    files = TlsFiles.of(config.tls)
    try:
        files.check(site=config.name, now=time.time())
        return ServerTls(files)
    except PkiError as error:
        raise ConfigError(f"{path}: tls: {error}") from error


class RelayDaemon:
    """A relay that serves as soon as it runs.

    Attributes:
        hub: the tunnels that wait.
        port: where sites connect.
        ready: it takes connections.

    Raises:
        ConfigError: its keys cannot be used.
    """

    hub: TunnelHub
    port: PartnerPort

    def __init__(self, config: RelayConfig, path: Path, log: Log) -> None:
        self._config = self._begun = config
        self._path = path
        self._log = log
        self._tls = check_keys(config, path)
        self._trust = CertificateTrust(TlsFiles.of(config.tls), config.tls.refused)
        self._stop = asyncio.Event()
        self.ready = asyncio.Event()

    def stop(self) -> None:
        """Begins to end; whoever is connected connects anew when there is a relay again."""
        self._stop.set()

    def reload(self) -> None:
        """Reads anew who may meet whom, and which certificates are refused; what cannot be used is logged.

        Calls of those that may not meet any more end.
        """
        try:
            config = load_relay(self._path)
        except ConfigError as error:
            self._log.error("not_reloaded", problem=str(error))  # the operator's, and said in full
            return
        fixed = ("name", "listen", "limits", "logging")
        changed = [key for key in fixed if getattr(config, key) != getattr(self._begun, key)]
        if TlsFiles.of(config.tls) != TlsFiles.of(self._begun.tls):
            changed.append("tls")  # other files; what is in them is read anew as it is
        self._config = config
        self._trust.refused = frozenset(config.tls.refused)
        self.port.check(config.sites)
        self.hub.check()
        self._log.info("reloaded", sites=len(config.sites), restart_needed=changed)

    async def run(self) -> None:
        """Serves until `stop`.

        Raises:
            OSError: the address cannot be listened on.
        """
        config = self._config
        port = self.port = PartnerPort(
            parse_endpoint(config.listen), self._tls, self._limits(), trust=self._trust
        )
        port.serves = False
        rejections = RejectionLog(lambda _: None, None, self._log)
        port.on_refused = lambda reason, limit: rejections.refused("relay", reason, limit)
        port.on_exhausted = rejections.exhausted
        port.on_handshake_failed = rejections.handshake_failed
        port.on_distrusted = rejections.distrusted
        traffic = TrafficLog(self._log)
        hub = self.hub = port.tunnels = TunnelHub(
            port.folder / "tunnels",
            port.site,
            refuses=self._refuses,
            forbids=self._forbids,
            on_refused=port.refuse,
            on_ended=traffic.ended,
        )
        await hub.open()
        sums = asyncio.create_task(traffic.run(), name="traffic")
        try:
            async with AsyncExitStack() as stack:
                try:
                    await stack.enter_async_context(port)
                except OSError as error:
                    text = (
                        f"cannot listen on {config.listen}: {error.strerror or error}; "
                        "is the address in use, or another's?"
                    )
                    raise OSError(text) from error
                self._log.info("serving", listen=config.listen, sites=len(config.sites))
                notify("READY=1", "STATUS=serving")
                self.ready.set()
                await self._stop.wait()
        finally:
            sums.cancel()
            rejections.stop()
            await hub.close()
            traffic.flush()
        self._log.info("stopped")

    def _limits(self) -> PortLimits:
        limits = self._config.limits
        most = max(1, (available() - KEPT) // PER_CONNECTION)
        if most < limits.connections:
            remedy = "raise the limit of open files (ulimit -n, LimitNOFILE=)"
            self._log.warning("descriptors_limit_connections", connections=most, remedy=remedy)
        return PortLimits(
            connections=min(most, limits.connections),
            connections_per_site=limits.connections_per_site,
            handshake_s=limits.handshake_timeout_s,
        )

    def _refuses(self, site: str) -> str:
        return "" if site in self._config.sites else f"{site} is not among those that meet here"

    def _forbids(self, caller: str, site: str) -> str:
        if self._config.may_meet(caller, site):
            return ""
        # Nobody learns here who else there is.
        return f"{caller} may not call {site} here"


def serve(config: RelayConfig, path: Path, log: Log) -> None:
    """Runs a relay until it is stopped by a signal; SIGHUP has it read its file anew.

    Raises:
        ConfigError: its keys cannot be used.
        OSError: the address cannot be listened on.
    """

    async def main() -> None:
        relay = RelayDaemon(config, path, log)
        async with signals(relay.stop, relay.reload):
            await relay.run()

    asyncio.run(main())
