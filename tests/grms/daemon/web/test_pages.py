"""The web server for operators: who gets in, what every answer has, and that it ends."""

import asyncio
import http.client
import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.testing import capture_logs

from grms.daemon.web import pages
from grms.daemon.web.pages import (
    HEADERS,
    PageServer,
    PagesSettings,
    Streams,
    document,
    files,
    written,
)


async def nothing() -> None:
    """Is the work of a server that has none."""


async def hello(_: Request) -> Response:
    """Answers."""
    return document({"hello": "world"})


def settings(folder: Path, **more: object) -> PagesSettings:
    """Returns settings of a server on any free port, with a reverse proxy before it."""
    values = {"name": "home", "host": "127.0.0.1", "port": 0, "how": "x", "hosts": ("p",), **more}
    return PagesSettings(token=folder / "token", **values)  # type: ignore[arg-type]  # of a test's own


@contextmanager
def serving(folder: Path, *routes: Route, **more: object) -> Iterator[PageServer]:
    """Yields a server that serves."""
    every = [Route("/", hello), *routes]
    with PageServer(settings(folder, **more), every, nothing, structlog.get_logger()) as server:
        yield server


def ask(
    server: PageServer, path: str = "/", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Returns status, headers and content of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, path, headers=named)
    answer = connection.getresponse()
    found = {key.lower(): value for key, value in answer.getheaders()}
    content = answer.read()
    connection.close()
    return answer.status, found, content


def test_a_link_lets_one_browser_in(tmp_path: Path) -> None:
    """It leaves a cookie that is sent below the session's own folder alone, and is used up."""
    with serving(tmp_path) as server:
        link = server.link().removeprefix(server.address)
        assert ask(server, f"/{link}", "HEAD")[0] == 401, "a look ahead opens nothing"
        status, headers, _ = ask(server, f"/{link}")
        assert status == 303
        folder = headers["location"].removeprefix(".")
        said, *parts = headers["set-cookie"].split("; ")
        assert set(parts) == {
            f"Path={folder}",
            "Max-Age=43200",
            "HttpOnly",
            "SameSite=Strict",
        }
        name, _, secret = said.partition("=")
        assert name == f"hanse_home_{server.port}"
        assert len(folder) > 30
        assert secret not in folder
        assert ask(server, folder, cookie=said)[2] == b'{"hello":"world"}'
        assert ask(server, folder, "HEAD", cookie=said)[0] == 200
        # The link again, one of the two secrets alone, and the cookie at another place.
        for path, cookie in (
            (f"/{link}", ""),
            (folder, ""),
            (folder, f"{name}=wrong"),
            (folder, f"hanse_home={secret}"),
            ("/", said),
            (f"/wrong{folder}", said),
        ):
            assert ask(server, path, cookie=cookie)[0] == 401, (path, cookie)
        assert ask(server, "/?login=wrong")[0] == 401
        assert b"good once" in ask(server)[2]


def test_routes_below_a_session_are_those_of_the_server(tmp_path: Path) -> None:
    """Pages name what they load relative to where they are."""
    with serving(tmp_path, Route("/api/x", hello)) as server:
        _, headers, _ = ask(server, "/" + server.link().removeprefix(server.address))
        folder, cookie = headers["location"].removeprefix("."), headers["set-cookie"]
        assert ask(server, f"{folder}api/x", cookie=cookie.partition(";")[0])[0] == 200
        assert ask(server, f"{folder}api/y", cookie=cookie.partition(";")[0])[0] == 404


def test_a_session_dies_with_its_server(tmp_path: Path) -> None:
    """What a browser sends to whoever binds the port next opens nothing when the daemon is back."""
    with serving(tmp_path) as server:
        port, link = server.port, server.link().removeprefix(server.address)
        unused = server.link().removeprefix(server.address)
        _, headers, _ = ask(server, f"/{link}")
    assert server.link() == ""
    with serving(tmp_path, port=port) as again:
        assert again.port == port
        folder, cookie = headers["location"].removeprefix("."), headers["set-cookie"]
        assert ask(again, folder, cookie=cookie.partition(";")[0])[0] == 401
        assert ask(again, f"/{unused}")[0] == 401


def test_a_reverse_proxy_shows_a_token(tmp_path: Path) -> None:
    """There is one only where a proxy's name is configured, and no cookie and no address has it."""
    with serving(tmp_path) as server:
        assert ask(server, authorization="Bearer wrong")[0] == 401
        assert ask(server, authorization=f"Bearer {server.token}")[2] == b'{"hello":"world"}'
        assert ask(server, f"/?token={server.token}")[0] == 401
        assert ask(server, cookie=f"hanse_home_{server.port}={server.token}")[0] == 401
        assert (tmp_path / "token").exists()
        assert server.token not in server.link()
    with serving(tmp_path, hosts=()) as server:
        assert server.token == ""
        assert not (tmp_path / "token").exists()
        for word in ("Bearer", "Bearer ", "Bearer x"):
            assert ask(server, authorization=word)[0] == 401


def test_every_answer_says_what_a_browser_may_load(tmp_path: Path) -> None:
    """Also the one that lets nobody in."""
    with serving(tmp_path) as server:
        for headers in (ask(server)[1], ask(server, authorization=f"Bearer {server.token}")[1]):
            assert {(k.decode(), v.decode()) for k, v in HEADERS} <= set(headers.items())
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "http" not in headers["content-security-policy"]


def test_nothing_can_be_changed(tmp_path: Path) -> None:
    """Whoever has the token may look, and no more."""
    with serving(tmp_path) as server:
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert ask(server, method=method, authorization=f"Bearer {server.token}")[0] == 405


def test_a_name_of_elsewhere_is_not_answered(tmp_path: Path) -> None:
    """A page that had its own name lead here would otherwise read what the cookie lets it."""
    with serving(tmp_path, hosts=("watch.example.org",)) as server:
        word = f"Bearer {server.token}"
        for name, status in {
            "evil.example.org": 421,
            "127.0.0.1.evil.example.org": 421,
            "watch.example.org": 200,
            "watch.example.org:443": 200,
            "localhost:9480": 200,
            "[::1]:9480": 200,
        }.items():
            assert ask(server, host=name, authorization=word)[0] == status, name


def test_pages_listen_on_loopback_alone(tmp_path: Path) -> None:
    """They tell how busy a site is."""
    with pytest.raises(ValueError, match="loopback"):
        settings(tmp_path, host="192.0.2.1")


def test_a_taken_port_is_an_error(tmp_path: Path) -> None:
    """Whoever enters it decides what that means."""
    with (
        serving(tmp_path) as server,
        pytest.raises(OSError, match="in use"),
        serving(tmp_path, port=server.port),
    ):
        pass


def test_a_browser_is_told_what_is_new(tmp_path: Path) -> None:
    """Each number once, and a stream that is left gives its place back."""
    numbers = iter([1, 1, 2, 3, 3])
    streams = Streams(lambda: next(numbers, 4), lambda: {"x": 1.5}, lambda: False, most=1)
    with serving(tmp_path, Route("/events", streams.answer)) as server:
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
            connection.request(
                "GET", "/events", headers={"authorization": f"Bearer {server.token}"}
            )
            answer = connection.getresponse()
            while answer.status == 503:  # the other one is not noticed to be gone yet
                connection.close()
                connection.request(
                    "GET", "/events", headers={"authorization": f"Bearer {server.token}"}
                )
                answer = connection.getresponse()
            assert answer.getheader("content-type", "").startswith("text/event-stream")
            lines = [answer.readline().decode().strip() for _ in range(6)]
            assert json.loads(lines[4].removeprefix("data: ")) == {"x": 1.5}
            assert ask(server, "/events", authorization=f"Bearer {server.token}")[0] == 503
            answer.close()
            connection.close()


def test_the_end_does_not_wait_for_a_page_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread is left to itself, and that is logged."""
    monkeypatch.setattr(pages, "END_S", 0.05)
    begun, go_on = threading.Event(), threading.Event()

    async def hang(_: Request) -> Response:
        begun.set()
        go_on.wait(300)
        return Response()

    with capture_logs() as log, serving(tmp_path, Route("/hang", hang)) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
        connection.request("GET", "/hang", headers={"authorization": f"Bearer {server.token}"})
        assert begun.wait(300)
    assert "pages_do_not_end" in {entry["event"] for entry in log}
    go_on.set()
    connection.close()
    thread = server._thread
    assert thread is not None
    thread.join(60)


def test_a_failure_of_the_thread_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else would hear of it."""

    async def fail(self: PageServer) -> None:  # noqa: ARG001  # as a method has it
        await asyncio.sleep(0)
        raise RuntimeError("broken")

    monkeypatch.setattr(PageServer, "_serve", fail)
    with capture_logs() as log, serving(tmp_path) as server:
        assert server._thread is not None
        server._thread.join(60)
    assert [entry["event"] for entry in log] == ["pages_failed"]


def test_what_is_not_finite_is_null() -> None:
    """JSON has no word for it, and browsers refuse what is not JSON."""
    content = {"a": [math.inf, 1.5], "b": (math.nan,), "c": {"d": -math.inf}}
    assert json.loads(written(content)) == {"a": [None, 1.5], "b": [None], "c": {"d": None}}


def test_files_are_those_that_pages_have(tmp_path: Path) -> None:
    """Others in the folder are not served; the first page is at the root too."""
    for name in ("index.html", "x.js", "x.css", "x.svg", "secret.txt", ".hidden"):
        (tmp_path / name).write_text(name)
    shared = {"/colors.css", "/common.js", "/mark.svg", "/style.css"}
    own = {"/index.html", "/", "/x.css", "/x.js", "/x.svg"}
    assert {route.path for route in files(tmp_path)} == own | shared
