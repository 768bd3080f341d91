"""The HTTP server of users: it listens, and ends with the servers of gRPC.

It runs on the daemon's own event loop, as its answers come from the daemon's state. Needs the extra `rest`.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import structlog
import uvicorn

from grms.daemon.process import BACKLOG, REST_MAX, beside
from grms.daemon.web.handshake_limit import CountedListener
from grms.daemon.web.visitors import Visitor, listening_at
from grms.security.issuer_keys import FetchedKeys
from grms.security.tokens import Algorithm, Issuer, KeysError, Scopes, TokenCheck, read_keys
from grms.site.config.load import ConfigError
from grms.site.config.rest_table import RestConfig, RestIssuerConfig
from grms.site.config.schema import SiteConfig
from grms.site.gateway.admission import Admission
from grms.site.gateway.open_calls import CallShares
from grms.site.rest.api import RestApi
from grms.site.rpc.job_service import JobService
from grms.util.names import parse_endpoint

Log = structlog.typing.FilteringBoundLogger

CIPHERS: Final = "ECDHE+aECDSA+AESGCM:ECDHE+aRSA+AESGCM:ECDHE+aECDSA+CHACHA20:ECDHE+aRSA+CHACHA20"
"""Of TLS 1.2, in OpenSSL's words: what was recorded stays secret if the key is known later (RFC 9325, section 4.2).

uvicorn's own choice has been all of TLS 1.0, and with it ciphers without encryption.
"""

END_S = 3.0
"""How long connections may take to close, seconds."""


class _Visitor(Visitor):
    most: ClassVar[int] = REST_MAX


def _counted_by(listener: CountedListener) -> type[_Visitor]:
    class Counted(_Visitor):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
            listener.finished(transport.get_extra_info("peername"))
            super().connection_made(transport)

    return Counted


class _Uvicorn(uvicorn.Server):
    # Signals are the daemon's.

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def token_check(
    config: RestConfig, fetched: Mapping[tuple[str, Algorithm], FetchedKeys]
) -> TokenCheck:
    """Returns what checks tokens as a configuration says it; the files of keys are read.

    `fetched` are the keys of issuers that have a URL of these, by that and the algorithm.

    Raises:
        ConfigError: one of the files cannot be used.
    """
    try:
        return TokenCheck([_issuer(each, fetched) for each in config.issuers])
    except KeysError as error:
        raise ConfigError(f"rest.issuers.keys: {error}") from error


def _check_certificate(rest: RestConfig) -> None:
    if rest.certificate is None or rest.key is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            rest.certificate, rest.key
        )
    except OSError as error:  # also of the library of TLS
        text = f"rest.certificate, rest.key: cannot be used: {error.strerror or error}"
        raise ConfigError(text) from error


def _fetched(
    config: RestConfig, before: Mapping[tuple[str, Algorithm], FetchedKeys]
) -> dict[tuple[str, Algorithm], FetchedKeys]:
    # The keys that are fetched; where they were fetched before they stay.
    wanted = [(each.jwks, each.algorithm) for each in config.issuers if each.jwks is not None]
    return {each: before.get(each) or FetchedKeys(*each) for each in wanted}


def _issuer(
    table: RestIssuerConfig, fetched: Mapping[tuple[str, Algorithm], FetchedKeys]
) -> Issuer:
    keys: Mapping[str, Any]
    if table.jwks is not None:
        keys = fetched[table.jwks, table.algorithm]
    else:
        assert table.keys is not None
        keys = read_keys(Path(table.keys), table.algorithm)
    return Issuer(
        table.issuer,
        table.audience,
        table.algorithm,
        keys,
        table.user_claim,
        None if table.claim_is_user else dict(table.users),
        Scopes(
            table.scope_claim,
            table.read_scope,
            table.write_scope,
            frozenset(table.other_scopes),
        ),
        table.lifetime_max_s,
    )


class RestServer:
    """Serves users over HTTP; begins and ends as a server of gRPC does.

    Attributes:
        port: once it listens.

    Raises:
        ConfigError: keys or the certificate cannot be used.
    """

    def __init__(self, config: SiteConfig, log: Log) -> None:
        assert config.rest is not None
        self._config = config
        self._rest = config.rest
        self._log = log
        self._fetched = _fetched(config.rest, {})
        self._follows: list[asyncio.Task[None]] = []
        self._tokens = token_check(config.rest, self._fetched)
        _check_certificate(config.rest)
        self._api: RestApi | None = None
        self._socket: CountedListener | None = None
        self._server: _Uvicorn | None = None
        self._task: asyncio.Task[None] | None = None
        self.port = 0

    def listen(self, jobs: JobService, admission: Admission) -> None:
        """Opens the port; nothing is answered before `start`.

        Raises:
            OSError: the address cannot be listened on.
        """
        limits, rest = self._config.limits, self._rest
        self._api = RestApi(
            self._config.name,
            self._tokens,
            jobs,
            admission,
            # A call has a connection here, of which one user must not have all.
            shares=CallShares.of(min(limits.calls, beside(REST_MAX)), limits.message_bytes),
            body_bytes=limits.message_bytes,
            log=self._log,
        )
        endpoint = parse_endpoint(rest.listen)
        try:
            listening = CountedListener(listening_at(endpoint.host, endpoint.port))
        except OSError as error:
            text = f"cannot listen on rest.listen, {rest.listen}: {error.strerror or error}"
            raise OSError(text) from error
        self._socket = listening
        self.port = int(listening.getsockname()[1])
        options = uvicorn.Config(
            self._api,
            lifespan="off",
            ws="none",
            loop="none",
            log_config=None,
            log_level="critical",  # whoever connects could have lines written
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=_counted_by(listening),
            backlog=BACKLOG,
            timeout_graceful_shutdown=1,
            ssl_certfile=rest.certificate,
            ssl_keyfile=rest.key,
            ssl_ciphers=CIPHERS,
        )
        options.load()
        if options.ssl is not None:
            options.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        self._server = _Uvicorn(options)

    async def start(self) -> None:
        """Begins to answer, and to fetch keys."""
        self._follow()
        assert self._socket is not None
        assert self._server is not None
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="rest")
        self._task.add_done_callback(self._ended)
        self._log.info("rest", listen=self._rest.listen, tls=self._rest.certificate is not None)

    async def stop(self, grace: float | None) -> None:
        """Answers what is under way for `grace` seconds at most, and closes the port."""
        for each in self._follows:
            each.cancel()
        if self._task is not None and not self._task.done():
            assert self._server is not None
            self._server.config.timeout_graceful_shutdown = int(grace or 0)
            self._server.should_exit = True
            await asyncio.wait([self._task], timeout=(grace or 0.0) + END_S)
            self._task.cancel()
        if self._socket is not None:
            self._socket.close()

    def reloaded(self, config: SiteConfig) -> Callable[[], None]:
        """Returns what puts the issuers, keys and the certificate of a configuration in force.

        Raises:
            ConfigError: they cannot be used.
        """
        if config.rest is None:
            return lambda: None  # that needs a restart
        fetched, rest = _fetched(config.rest, self._fetched), self._rest
        tokens = token_check(config.rest, fetched)
        _check_certificate(rest)

        def put_in_force() -> None:
            self._tokens, self._fetched = tokens, fetched
            self._follow()
            if self._api is not None:
                self._api.tokens = tokens
            if self._server is not None and rest.certificate and self._server.config.ssl:
                self._server.config.ssl.load_cert_chain(rest.certificate, rest.key)

        return put_in_force

    def _follow(self) -> None:
        # All are fetched now, those that were there before as well.
        for each in self._follows:
            each.cancel()
        self._follows = [
            asyncio.create_task(keys.follow(), name=f"keys of {keys.url}")
            for keys in self._fetched.values()
        ]

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("rest_failed", exc_info=error)
