"""Connections to the outside: straight, or through a proxy that knows CONNECT; with TLS, or as they are."""

import asyncio
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from grms.daemon.tunnel.stream import KEEP_ALIVE, Stream, TunnelError
from grms.security.certificates import PkiError
from grms.security.tls import TUNNEL_PROTOCOL, CertificateTrust, client_context
from grms.util.names import Endpoint, tls_name

EYEBALLS_S: Final = 0.25
"""A host's next address is tried so much later than the one before (RFC 8305)."""

ANSWER_BYTES_MAX: Final = 1 << 14
"""Longest answer of a proxy."""


@dataclass(frozen=True, slots=True)
class Outside:
    """How what is outside is connected to.

    Attributes:
        proxy: an HTTP proxy that knows CONNECT; None for none.
        timeout_s: for each connection.
    """

    proxy: Endpoint | None = None
    timeout_s: float = 10.0

    async def connect(self, endpoint: Endpoint) -> Stream:
        """Returns a connection without TLS.

        Raises:
            TunnelError: none comes about.
        """
        return await self._opened(endpoint)

    async def tunnel(self, endpoint: Endpoint, name: str, trust: CertificateTrust) -> Stream:
        """Returns a tunnel to the one of that name, by its certificate.

        Raises:
            TunnelError: none comes about, or whoever is there knows no tunnels.
        """
        try:
            context = client_context(trust.files, TUNNEL_PROTOCOL)
            server = tls_name(name)
        except (PkiError, ValueError) as error:
            raise TunnelError(str(error)) from error
        authority = trust.authority()
        stream = await self._opened(endpoint, ssl=context, server_hostname=server)
        tls: ssl.SSLObject = stream.writer.get_extra_info("ssl_object")
        shown = ssl.DER_cert_to_PEM_cert(tls.getpeercert(binary_form=True) or b"").encode()
        if problem := trust.problem(shown, authority, now=time.time()):
            stream.abort()
            raise TunnelError(f"the certificate of {name} is not believed: {problem}")
        if tls.selected_alpn_protocol() != TUNNEL_PROTOCOL:
            stream.abort()
            raise TunnelError(f"{name} knows no tunnels; is its version older?")
        return stream

    async def _opened(self, endpoint: Endpoint, **tls: Any) -> Stream:
        via = "" if self.proxy is None else f" through the proxy {self.proxy}"
        try:
            async with asyncio.timeout(self.timeout_s):
                if self.proxy is None:
                    tls["happy_eyeballs_delay"] = EYEBALLS_S
                    found = await asyncio.open_connection(endpoint.host, endpoint.port, **tls)
                else:
                    tls["sock"] = await _through(self.proxy, endpoint)
                    found = await asyncio.open_connection(**tls)
        except TimeoutError:
            raise TunnelError(
                f"{endpoint} has not answered{via} within {self.timeout_s:g} s"
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise TunnelError(f"TLS with {endpoint}: {error.verify_message}") from error
        except OSError as error:
            text = error.strerror or str(error) or "it has hung up"
            raise TunnelError(f"not connected to {endpoint}{via}: {text}") from error
        keep_alive(found[1].get_extra_info("socket"))
        return Stream(*found)


def keep_alive(connection: Any) -> None:
    """Lets the kernel find out where the other side of a TCP connection has gone."""
    for option, level, value in KEEP_ALIVE:
        with suppress(OSError):
            connection.setsockopt(getattr(socket, level), getattr(socket, option), value)


async def _through(proxy: Endpoint, endpoint: Endpoint) -> socket.socket:
    loop = asyncio.get_running_loop()
    connection = await _connected(proxy)
    try:
        asked = f"CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n\r\n"
        await loop.sock_sendall(connection, asked.encode("ascii"))
        answer = b""
        # Whoever is behind the proxy speaks second, with TLS: nothing follows the answer's empty line.
        while b"\r\n\r\n" not in answer and len(answer) < ANSWER_BYTES_MAX:
            if not (part := await loop.sock_recv(connection, 1024)):
                break
            answer += part
        _check_proxy(answer)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_proxy(answer: bytes) -> None:
    status = answer.split(b"\r\n", 1)[0].decode("ascii", "replace")
    words = status.split(" ", 2)
    if not (words[0].startswith("HTTP/1.") and words[1:2] and words[1].startswith("2")):
        raise ConnectionError(f"it answers {status[:200]!r}")
    if not answer.endswith(b"\r\n\r\n"):
        raise ConnectionError("its answer does not end as HTTP has it")


async def _connected(endpoint: Endpoint) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    problem: OSError = ConnectionError("it has no address")
    for family, kind, protocol, _, address in found:
        connection = socket.socket(family, kind, protocol)
        connection.setblocking(False)
        try:
            await loop.sock_connect(connection, address)
        except OSError as error:
            connection.close()
            problem = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise problem
