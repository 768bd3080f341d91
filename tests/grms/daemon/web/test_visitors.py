"""Connections to pages, as every local user may make them."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from grms.daemon.web import visitors
from grms.daemon.web.pages import PageServer
from tests.grms.daemon.web.test_pages import ask, serving

FEW = 12
HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\nX"


def connected(server: PageServer, stack: ExitStack, said: bytes = b"") -> socket.socket:
    """Returns a connection to the pages, over which something was said."""
    each = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 300))
    each.sendall(said)
    return each


@pytest.mark.parametrize("said", [b"", HALF])
def test_connections_that_ask_for_nothing_do_not_add_up(
    tmp_path: Path, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that has waited longest makes room, and who asks at once is answered."""
    monkeypatch.setattr(visitors.Visitor, "most", FEW)
    with serving(tmp_path) as server, ExitStack() as stack:
        idle = [connected(server, stack, said) for _ in range(3 * FEW)]
        for _ in range(3):
            assert ask(server, authorization=f"Bearer {server.token}")[0] == 200
        for each in idle[:FEW]:
            with contextlib.suppress(ConnectionResetError):  # over, in either way
                assert each.recv(1) == b""


def test_who_is_being_answered_is_not_sent_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser that is kept informed stays, whoever comes."""
    monkeypatch.setattr(visitors.Visitor, "most", FEW)

    async def events() -> AsyncIterator[str]:
        yield "first\n"
        while not server.ending:  # noqa: ASYNC110  # it has no event of its own
            await asyncio.sleep(0.01)
        yield "last\n"

    async def answer(_: Request) -> Response:
        return StreamingResponse(events())

    with ExitStack() as stack:
        server = stack.enter_context(serving(tmp_path, Route("/events", answer)))
        word = f"Authorization: Bearer {server.token}\r\n".encode()
        browser = connected(
            server, stack, b"GET /events HTTP/1.1\r\nHost: localhost\r\n" + word + b"\r\n"
        )
        heard = b""
        while b"first" not in heard:
            heard += browser.recv(1000)
        idle = [connected(server, stack) for _ in range(2 * FEW)]
        assert idle[0].recv(1) == b""
        browser.setblocking(False)
        with pytest.raises(BlockingIOError):
            browser.recv(1)


@pytest.mark.parametrize("said", [b"", HALF, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + HALF])
def test_who_does_not_say_what_they_want_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """Neither at first nor after an answer, however slowly something comes."""
    monkeypatch.setattr(visitors, "REQUEST_S", 0.2)
    with serving(tmp_path) as server, ExitStack() as stack:
        slow = connected(server, stack, said)
        slow.settimeout(0.02)
        over = False
        while not over:
            try:
                slow.send(b"x") if said else None
                over = slow.recv(1000) == b""
            except TimeoutError:
                continue
            except OSError:
                over = True
