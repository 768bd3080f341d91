"""A small web server for a daemon's own operators: read-only pages, in a thread of its own.

The thread has an event loop of its own, so that pages cannot block the daemon's. As the content reveals a site's
load and users, it listens on loopback only, and as every local user can reach a loopback port, requests need a
session (`access`), or a token in a file that only the daemon's user can read, for a reverse proxy.

Pages load nothing from elsewhere, which the Content-Security-Policy enforces. Needs the extra `dashboard`.
"""

import asyncio
import contextlib
import hmac
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from importlib import resources
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import parse_qs

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grms.daemon.process import BACKLOG
from grms.daemon.web.access import SESSION_S, PageSessions, write_token
from grms.daemon.web.visitors import Visitor, listening_at
from grms.util.names import is_loopback

SHARED: Final = Path(__file__).with_name("static")
"""Style of all pages, and shared scripts."""

COLORS: Final = Path(str(resources.files("lrms_sim.report") / "colors.css"))
"""Their colours, which are those of reports."""

LINK_WORD: Final = "login"
"""Query parameter of a link's secret."""

STREAMS_MAX: Final = 16
"""Most concurrent event streams."""

END_S: Final = 3.0
"""How long a stopping daemon waits for its pages."""

LOOK_S: Final = 0.2
"""Interval at which a stream checks for changes or the end."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Browsers may load only these pages."""

HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_MEDIA: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}

_CLOSED: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Not let in</title>
<h1>These pages are for operators</h1>
<p>Open the address that <code>{how}</code> prints. It is good once, for a minute; what it opens lasts until the
daemon ends, twelve hours at most.</p>
</html>
"""


@dataclass(frozen=True, slots=True)
class PagesSettings:
    """Where pages are served, and to whom.

    Attributes:
        name: of the daemon; names the cookie.
        port: 0 for any free one.
        token: file of a reverse proxy's token, if there are `hosts`; an existing one stays.
        how: the command that prints a link.
        hosts: further names, of a reverse proxy.

    Raises:
        ValueError: the host is not loopback.
    """

    name: str
    host: str
    port: int
    token: Path
    how: str
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not is_loopback(self.host):
            raise ValueError(
                f"pages on {self.host!r} would tell others how busy this site is; use a loopback "
                "address, and a proxy that asks who it is if need be"
            )


class AccessCheck:
    """Admits read-only requests with a session or the token, and adds headers to every answer."""

    def __init__(
        self, app: ASGIApp, settings: PagesSettings, port: int, sessions: PageSessions, token: str
    ) -> None:
        self._app = app
        self._settings = settings
        self._sessions = sessions
        self._token = token
        name = "".join(c if c.isalnum() else "_" for c in settings.name)
        self._cookie = f"hanse_{name}_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        answer = self._refusal(scope, headers)
        if answer is None and not self._is_proxy(headers):
            folder, _, rest = scope["path"].removeprefix("/").partition("/")
            if self._sessions.knows(folder, self._secret(headers)):
                scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
            else:
                answer = self._begun(scope) or HTMLResponse(
                    _CLOSED.format(how=self._settings.how), 401
                )
        await (answer or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._is_known(headers.get("host", "")):
            # A foreign name that was made to point here; it must not read anything.
            return PlainTextResponse("this is another server's name\n", 421)
        if scope["method"] not in {"GET", "HEAD"}:
            return PlainTextResponse("these pages are to be looked at\n", 405)
        return None

    def _begun(self, scope: Scope) -> Response | None:
        # Begins a session for a link. A prefetch (HEAD) does not use it up.
        if scope["path"] != "/" or scope["method"] != "GET":
            return None
        link = parse_qs(scope["query_string"].decode("latin-1")).get(LINK_WORD, [""])[0]
        session = self._sessions.begin(link) if link else None
        if session is None:
            return None
        cookie = (
            f"{self._cookie}={session.secret}; Path=/{session.folder}/; Max-Age={SESSION_S:.0f}; "
            "HttpOnly; SameSite=Strict"
        )
        where = {"location": f"./{session.folder}/", "set-cookie": cookie}
        return Response(status_code=303, headers=where)

    def _is_known(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        name = name.strip("[]")
        return name == "localhost" or is_loopback(name) or name in self._settings.hosts

    def _is_proxy(self, headers: Headers) -> bool:
        kind, _, word = headers.get("authorization", "").partition(" ")
        shown = word.strip().encode()
        return (
            bool(self._token)
            and kind.lower() == "bearer"
            and hmac.compare_digest(shown, self._token.encode())
        )

    def _secret(self, headers: Headers) -> str:
        cookies: SimpleCookie = SimpleCookie()
        with contextlib.suppress(CookieError):
            cookies.load(headers.get("cookie", ""))
        return cookies[self._cookie].value if self._cookie in cookies else ""


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sent


class PageServer:
    """Serves pages while it is entered.

    Args:
        routes: handled in the server's thread.
        work: runs in the server's thread from begin to end.

    Attributes:
        port: once entered.
        token: for a reverse proxy, once entered; empty without `hosts`.
    """

    def __init__(
        self,
        settings: PagesSettings,
        routes: Sequence[Route],
        work: Callable[[], Awaitable[None]],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self.port = settings.port
        self.token = ""
        self._settings = settings
        self._routes = list(routes)
        self._work = work
        self._log = log
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._sessions = PageSessions()

    @property
    def address(self) -> str:
        """Where the pages are."""
        host = self._settings.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def link(self) -> str:
        """Returns a link for one browser, valid once and within `LINK_S`; empty if nothing is served."""
        if self._thread is None or not self._thread.is_alive() or self.ending:
            return ""
        return f"{self.address}?{LINK_WORD}={self._sessions.link()}"

    def __enter__(self) -> Self:
        """Starts listening, and writes the token of a reverse proxy.

        Raises:
            OSError: the address is taken, or the file cannot be written.
        """
        settings = self._settings
        listening = listening_at(settings.host, settings.port)
        try:
            self.port = int(listening.getsockname()[1])
            if settings.hosts:
                self.token = write_token(settings.token, self.address)
            else:
                settings.token.unlink(missing_ok=True)
        except BaseException:
            listening.close()
            raise
        self._socket = listening
        self._server = uvicorn.Server(
            uvicorn.Config(
                AccessCheck(
                    Starlette(routes=self._routes), settings, self.port, self._sessions, self.token
                ),
                lifespan="off",
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                http=Visitor,
                backlog=BACKLOG,
                timeout_graceful_shutdown=1,
            )
        )
        # A daemon thread, so that it cannot keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="pages", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stops listening; waits only briefly for the thread."""
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join(END_S)
        if self._thread.is_alive():
            self._log.warning("pages_do_not_end", seconds=END_S)

    @property
    def ending(self) -> bool:
        """Whether the server is to end."""
        return self._server is None or self._server.should_exit

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001  # the daemon goes on without its pages
            self._log.error("pages_failed", exc_info=error)
        finally:
            # Here, as the loop of a thread that does not end in time still listens.
            assert self._socket is not None
            self._socket.close()

    async def _serve(self) -> None:
        assert self._server is not None
        assert self._socket is not None
        work = asyncio.ensure_future(self._work())
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work


def files(folder: Path) -> list[Route]:
    """Returns routes to the files of a folder, read now, plus the shared ones; `index.html` is also the root."""
    routes = []
    for path in sorted([*folder.iterdir(), *SHARED.iterdir(), COLORS]):
        media = _MEDIA.get(path.suffix)
        if media is None:
            continue
        answer = _file(path.read_bytes(), media)
        routes.append(Route(f"/{path.name}", answer))
        if path.name == "index.html":
            routes.append(Route("/", answer))
    return routes


def _file(content: bytes, media: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        return Response(content, media_type=media)

    return answer


def document(content: Any, status: int = 200) -> Response:
    """Returns an answer of JSON; what is not finite is null, as JSON has nothing else for it."""
    return Response(written(content), status, media_type="application/json")


def written(content: Any) -> str:
    """Returns a document as JSON; numbers that are not finite become null."""
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(_finite(content), allow_nan=False, separators=(",", ":"))


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if abs(content) < float("inf") else None
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return content


class Streams:
    """Server-sent events: each browser gets changes at its own pace.

    There is no queue: a slow browser gets the latest state. `number` returns a number that grows with every change,
    `content` the state; `ending` says whether the server should end; `most` limits the browsers.
    """

    def __init__(
        self,
        number: Callable[[], int],
        content: Callable[[], Any],
        ending: Callable[[], bool],
        most: int = STREAMS_MAX,
    ) -> None:
        self._number = number
        self._content = content
        self._ending = ending
        self._most = most
        self._open = 0

    async def answer(self, _: Request) -> Response:
        """Answers who wants to be kept informed."""
        if self._open >= self._most:
            return PlainTextResponse("too many browsers are kept informed already\n", 503)
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncIterator[str]:
        self._open += 1
        try:
            told = -1
            yield "retry: 2000\n\n"
            while not self._ending():
                number = self._number()
                if number != told:
                    told = number
                    yield f"id: {number}\nevent: now\ndata: {written(self._content())}\n\n"
                await asyncio.sleep(LOOK_S)
        finally:
            self._open -= 1
