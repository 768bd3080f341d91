"""Keys by URL: fetched, followed when they change, and what becomes of them where they cannot be fetched."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from grms.security.issuer_keys import AGAIN_S, AGE_MAX_S, FetchedKeys, fetch
from grms.security.tokens import (
    KEYS_BYTES_MAX,
    Issuer,
    KeysError,
    TokenCheck,
    TokenError,
    TokenFlaw,
    key_set,
)

KEYS = {name: rsa.generate_private_key(65537, 2048) for name in ("one", "two")}
NAME, AUDIENCE = "https://issuer.example", "hanse-north"
NOW = 1_700_000_000


def key_document(*names: str) -> bytes:
    """Returns a key set."""
    keys = []
    for name in names:
        key = jwt.algorithms.RSAAlgorithm.to_jwk(KEYS[name].public_key(), as_dict=True)
        keys.append({**key, "kid": name, "use": "sig", "alg": "RS256"})
    return json.dumps({"keys": keys}).encode()


def token(name: str) -> str:
    """Returns a token that is signed with a key."""
    claims = {"iss": NAME, "aud": AUDIENCE, "sub": "ann", "iat": NOW, "exp": NOW + 10**9}
    return jwt.encode(claims, KEYS[name], "RS256", headers={"kid": name})


class Place:
    """Where a set is; it says what the test says.

    Attributes:
        content: what it is; an error is raised.
        asked: how often it was asked for.
        now: the time, seconds.
    """

    def __init__(self, *names: str) -> None:
        self.content: bytes | Exception = key_document(*names)
        self.asked = 0
        self.now = 0.0
        self.gate = threading.Event()
        self.gate.set()
        self.keys = FetchedKeys("https://x", "RS256", get=self._get, clock=lambda: self.now)
        issuer = Issuer(NAME, AUDIENCE, "RS256", self.keys, lifetime_max_s=2e9)
        self.check = TokenCheck([issuer])

    def _get(self, _url: str) -> bytes:
        self.asked += 1
        assert self.gate.wait(60.0)
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    def takes(self, name: str) -> bool:
        """Returns whether a token signed with a key is taken now."""
        with suppress(TokenError):
            return self.check.bearer(token(name), NOW).user == "ann"
        with pytest.raises(TokenError) as raised:
            self.check.bearer(token(name), NOW)
        assert raised.value.flaw is TokenFlaw.KEY
        assert raised.value.keys is self.keys
        return False


async def test_keys_rotate() -> None:
    """A new one is found when it is used, and one that is gone signs no more, whatever it has signed before."""
    place = Place("one")
    assert not place.takes("one")
    assert await place.keys.renewed()
    assert (place.takes("one"), place.takes("two")) == (True, False)
    place.content = key_document("one", "two")
    place.now = AGAIN_S
    assert await place.keys.renewed()
    assert (place.takes("one"), place.takes("two")) == (True, True)
    place.content = key_document("two")
    place.now = 2 * AGAIN_S
    await place.keys.fetched()
    assert (place.takes("one"), place.takes("two")) == (False, True)
    version = place.keys.version
    await place.keys.fetched()
    assert place.keys.version == version


async def test_keys_that_are_not_known_are_fetched_seldom_and_for_all_who_wait() -> None:
    """Anybody can invent one."""
    place = Place("one")
    place.gate.clear()
    waiting = [asyncio.create_task(place.keys.renewed()) for _ in range(50)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    place.gate.set()
    assert await asyncio.gather(*waiting[1:]) == [True] * 49
    assert place.asked == 1
    for moment in range(int(AGAIN_S)):
        place.now = float(moment)
        assert not await place.keys.renewed()
    assert place.asked == 1
    place.now = AGAIN_S
    assert not await place.keys.renewed()
    assert place.asked == 2


@pytest.mark.parametrize(
    "content",
    [
        KeysError("https://x: answers 500"),
        b"<html>",
        b"[]",
        b'{"keys": 5}',
        b'{"keys": [1]}',
        b'{"keys": []}',
        b"[" * 5000,
        b"\xff",
        b"",
    ],
)
async def test_what_came_last_counts_until_it_is_too_old(content: bytes | Exception) -> None:
    """Whatever the other side says; it is said, and what is good again is taken."""
    place = Place("one")
    await place.keys.fetched()
    assert place.keys.problem == ""
    place.content = content
    place.now = AGE_MAX_S
    await place.keys.fetched()
    assert place.keys.problem
    assert place.takes("one")
    place.now += 1.0
    assert not place.takes("one")
    assert not place.keys
    place.content = key_document("one")
    await place.keys.fetched()
    assert place.keys.problem == ""
    assert place.takes("one")


async def test_it_is_followed_until_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it fails in between."""
    monkeypatch.setattr("grms.security.issuer_keys.EVERY_S", 0.001)
    monkeypatch.setattr("grms.security.issuer_keys.AGAIN_S", 0.001)
    place = Place("one")
    follows = asyncio.create_task(place.keys.follow())
    async with asyncio.timeout(60.0):
        for content in (KeysError("no"), key_document("two"), OSError("odd"), key_document("one")):
            place.content, asked = content, place.asked
            while place.asked < asked + 2:  # noqa: ASYNC110  # of another thread
                await asyncio.sleep(0.001)
            assert bool(place.keys.problem) is isinstance(content, Exception)
    follows.cancel()
    await asyncio.wait([follows])
    assert follows.cancelled()


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda some: (
            st.lists(some, max_size=3)
            | st.dictionaries(
                st.sampled_from(["keys", "kty", "kid", "n", "e", "use", "alg"]), some, max_size=4
            )
        ),
        max_leaves=8,
    ).map(lambda each: json.dumps(each).encode())
)
def test_whatever_there_is_makes_an_error_of_one_kind(content: bytes) -> None:
    """None of it is a set."""
    with pytest.raises(KeysError):
        key_set("x", content, "RS256")


# --- over loopback -------------------------------------------------------------------------------


@contextmanager
def served(
    answer: Callable[[BaseHTTPRequestHandler], None], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Yields the address of a server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # of the class above
            answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def plainly(
    status: int, content: bytes, **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    """Returns what answers so."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def test_what_is_at_an_address_is_read() -> None:
    """As it is there."""
    with served(plainly(200, key_document("one", "two"))) as url:
        assert set(key_set(url, fetch(url), "RS256")) == {"one", "two"}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (plainly(404, b""), "answers 404"),
        (plainly(302, b"", Location="http://127.0.0.1:1/x"), "answers 302, and redirects are not"),
        (plainly(200, bytes(KEYS_BYTES_MAX + 1)), f"has more than {KEYS_BYTES_MAX} bytes"),
        (lambda handler: handler.wfile.write(b"\0\n" * 9), "cannot be read"),
    ],
)
def test_what_is_no_answer_is_said(
    answer: Callable[[BaseHTTPRequestHandler], None], problem: str
) -> None:
    """With the address."""
    with served(answer) as url, pytest.raises(KeysError, match=problem) as raised:
        fetch(url)
    assert url in str(raised.value)
    with pytest.raises(KeysError, match="cannot be read"):
        fetch(url)


@pytest.mark.parametrize(
    ("begin", "drip"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n{", b""),
        (b"HTTP/1.0 200 OK\r\n\r\n{", b" "),
        (b"HTTP/1.0 200 OK\r\nX: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.0 404 Not Found\r\nX: ", b"x"),
    ],
)
def test_a_slow_answer_is_not_waited_for(begin: bytes, drip: bytes) -> None:
    """Neither one that does not come, nor one whose head or content comes bit by bit without end."""
    over = threading.Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(begin)
        while drip and not over.wait(0.01):
            try:
                handler.wfile.write(drip)
            except OSError:
                return
        over.wait(60.0)

    with served(answer) as url:
        try:
            with pytest.raises(KeysError, match=r"not answered within 0\.1 s"):
                fetch(url, 0.1)
        finally:
            over.set()


def test_no_proxy_is_asked_for_what_is_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """It could say other keys."""
    own, other = (plainly(200, key_document(name)) for name in ("one", "two"))
    with served(own) as url, served(other) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy)
        assert set(key_set(url, fetch(url), "RS256")) == {"one"}
