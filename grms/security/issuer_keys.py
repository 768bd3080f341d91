"""The keys of an issuer of tokens, fetched from its JSON Web Key Set (RFC 7517) by URL, and followed when they change.

PyJWT's own client (`PyJWKClient`) blocks who asks, reads answers of any length, and after an error has no keys where its
copy has grown old. Here a thread fetches at a steady pace, in limits of time and length, and what came last counts until it
is too old. A `kid` that is not known has the set fetched at once, but seldom: anybody can invent one.

Redirects are not followed, and certificates are checked against the host's authorities (`SSL_CERT_FILE` names others).
Needs the extra `rest`.
"""

import asyncio
import http.client
import os
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar, cast
from urllib.error import HTTPError, URLError

import structlog

from grms.security.tokens import (
    KEYS_BYTES_MAX,
    Algorithm,
    ChangingKeys,
    KeysError,
    key_set,
)
from lrms_sim.util.messages import printable, shorten

EVERY_S: Final = 300.0
"""Pace at which a set is fetched, seconds."""

AGAIN_S: Final = 30.0
"""Pace after a failure, and shortest time between a fetch and one for a key that is not known, seconds."""

FETCH_S: Final = 10.0
"""Longest time for a fetch once there is a connection, which may take as long once more, seconds."""

AGE_MAX_S: Final = 86400.0
"""How long keys count that could not be fetched again, seconds: as long as tokens are valid by default."""

_CHUNK_BYTES: Final = 1 << 16
_SHOWN_MAX: Final = 200

T = TypeVar("T")

_log = structlog.get_logger()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_words: Any) -> None:
        return None


def fetch(url: str, timeout_s: float = FETCH_S) -> bytes:
    """Returns what is at an address; blocks.

    Raises:
        KeysError: there is no answer in time, another one than 200, or a too long one.
    """
    try:
        return _read(url, timeout_s)
    except HTTPError as error:
        error.close()
        more = ", and redirects are not followed" if 300 <= error.code < 400 else ""
        raise KeysError(f"{url}: answers {error.code}{more}") from error
    except TimeoutError as error:
        raise KeysError(f"{url}: has not answered within {timeout_s:g} s") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, TimeoutError):
            raise KeysError(f"{url}: has not answered within {timeout_s:g} s") from error
        text = shorten(printable(str(reason) or type(reason).__name__), _SHOWN_MAX)
        raise KeysError(f"{url}: cannot be read: {text}") from error


class _Limit:
    # Ends a connection when its time is over, wherever a read waits: the time limit of a socket is one of each read, and a
    # head may come a byte at a time, or after interim answers (1xx) without end.

    def __init__(self, timeout_s: float) -> None:
        self.is_over = False
        self._timer = threading.Timer(timeout_s, self._end)
        self._timer.daemon = True
        self._socket: socket.socket | None = None

    def begin(self, connection: socket.socket) -> None:
        # A descriptor of its own, as TLS takes the other.
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        self._timer.start()

    def _end(self) -> None:
        self.is_over = True
        assert self._socket is not None
        with suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._timer.cancel()
        if self._socket is not None:
            if self._timer.is_alive():
                self._timer.join()
            self._socket.close()


class _Plain(http.client.HTTPConnection):
    limit: _Limit

    def connect(self) -> None:
        super().connect()
        self.limit.begin(self.sock)


class _Secure(
    http.client.HTTPSConnection, _Plain
):  # which connects as the latter, and then shakes hands
    pass


class _Opened(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    def __init__(self, limit: _Limit) -> None:
        super().__init__()
        self._limit = limit

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._made, _Plain), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._made, _Secure), req)

    def _made(self, kind: type[_Plain], host: str, **words: Any) -> _Plain:
        made = kind(host, **words)
        made.limit = self._limit
        return made


def _read(url: str, timeout_s: float) -> bytes:
    limit = _Limit(timeout_s)
    try:
        content = _content(url, timeout_s, limit)
    except (OSError, http.client.HTTPException) as error:
        if limit.is_over:
            raise TimeoutError from error
        raise
    finally:
        limit.close()
    if limit.is_over:
        raise TimeoutError
    return content


def _content(url: str, timeout_s: float, limit: _Limit) -> bytes:
    content = bytearray()
    wanted = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310  # HTTPS or loopback, as the configuration checks
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect(), _Opened(limit)]
    if wanted.type == "http":
        handlers.append(urllib.request.ProxyHandler({}))  # what is on loopback no proxy may say
    with urllib.request.build_opener(*handlers).open(wanted, timeout=timeout_s) as answer:
        while some := answer.read1(_CHUNK_BYTES):
            content += some
            if len(content) > KEYS_BYTES_MAX:
                raise KeysError(f"{url}: has more than {KEYS_BYTES_MAX} bytes")
    return bytes(content)


class FetchedKeys(ChangingKeys):
    """Keys by their `kid`, as they were when they could last be fetched; none before.

    Attributes:
        url: where the set is; HTTPS, or loopback.
        algorithm: of its keys.

    Args:
        get: returns the content of an address, and may block.
        clock: steady, in seconds.
    """

    def __init__(
        self,
        url: str,
        algorithm: Algorithm,
        *,
        get: Callable[[str], bytes] = fetch,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self.algorithm = algorithm
        self._problem = ""
        self._get = get
        self._clock = clock
        self._keys: dict[str, Any] = {}
        self._version = 0
        self._good_at = 0.0
        self._tried_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    @property
    def version(self) -> int:
        """Another number whenever the keys have changed."""
        self._forget_old()
        return self._version

    @property
    def problem(self) -> str:
        """Why the last fetch has failed; empty if it has not."""
        return self._problem

    def __getitem__(self, kid: str) -> Any:
        """Returns a key."""
        self._forget_old()
        return self._keys[kid]

    def __iter__(self) -> Iterator[str]:
        """Yields the names of the keys."""
        self._forget_old()
        return iter(self._keys)

    def __len__(self) -> int:
        """Returns the number of keys."""
        self._forget_old()
        return len(self._keys)

    def _forget_old(self) -> None:
        if self._keys and self._clock() - self._good_at > AGE_MAX_S:
            self._keys = {}
            self._version += 1
            _log.error("token_keys_too_old", url=self.url, problem=self.problem)

    async def follow(self) -> None:
        """Fetches the keys again and again, until cancelled."""
        while True:
            await self.fetched()
            await asyncio.sleep(AGAIN_S if self.problem else EVERY_S)

    async def renewed(self) -> bool:
        """Fetches the keys because one is not known; returns whether they are others now.

        If they were asked for a moment ago, that has to do.
        """
        version = self.version
        tried_at = self._tried_at
        if self._fetching is None and tried_at is not None and self._clock() - tried_at < AGAIN_S:
            return False
        await self.fetched()
        return self.version != version

    async def fetched(self) -> None:
        """Fetches the keys, with all who wait for that; a failure is a `problem`."""
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetched(), name="keys of tokens")
        # Who gives up does not end it for the others.
        await asyncio.shield(self._fetching)

    async def _fetched(self) -> None:
        try:
            self._tried_at = self._clock()
            keys = await _apart(lambda: key_set(self.url, self._get(self.url), self.algorithm))
        except Exception as error:  # noqa: BLE001  # the last line of defence: keys are to be followed on
            text = str(error) if isinstance(error, KeysError) else f"{self.url}: {error!r}"
            if self.problem != text:
                _log.warning("token_keys_not_fetched", problem=text, kept=len(self._keys))
            self._problem = text
        else:
            if self.problem or keys != self._keys:
                _log.info("token_keys", url=self.url, keys=len(keys))
            if keys != self._keys:
                self._keys = keys
                self._version += 1
            self._good_at, self._problem = self._clock(), ""
        finally:
            self._fetching = None


async def _apart(work: Callable[[], T]) -> T:
    # In a thread for which the end of the process does not wait, as the other side may take its time.
    loop, done = asyncio.get_running_loop(), asyncio.Future[T]()

    def tell(result: T | None, error: BaseException | None) -> None:
        if error is not None and not done.done():
            done.set_exception(error)
        elif not done.done():
            done.set_result(cast("T", result))

    def run() -> None:
        result, problem = None, None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001  # who waits has it
            problem = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, result, problem)

    threading.Thread(target=run, name="keys of tokens", daemon=True).start()
    return await done
