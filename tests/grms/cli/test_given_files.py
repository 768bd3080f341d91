"""The input files of a job: files, folders, patterns and URLs."""

import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import pytest

from grms.cli import download as module
from grms.cli.download import DownloadError, brought, parse
from grms.cli.given_files import given_files
from grms.daemon.job_files import INPUTS_MAX

CONTENT = hashlib.shake_256(b"some file").digest(700_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data/a.csv", "data/b.csv", "data/.hidden", "data/deep/c.csv", "x[1].txt", "one"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("one", ["one"]),
        ("./one", ["one"]),
        ("data", ["data/.hidden", "data/a.csv", "data/b.csv", "data/deep/c.csv"]),
        ("data/", ["data/.hidden", "data/a.csv", "data/b.csv", "data/deep/c.csv"]),
        ("data/*.csv", ["data/a.csv", "data/b.csv"]),
        ("data/**/*.csv", ["data/a.csv", "data/b.csv", "data/deep/c.csv"]),
        ("x[1].txt", ["x[1].txt"]),
        ("{}/one", ["one"]),
        ("{}/data/deep", ["deep/c.csv"]),
        ("{}/data/*.csv", ["a.csv", "b.csv"]),
        ("file://{}/one", ["one"]),
    ],
)
def test_files_are_named_as_they_lie(tmp_path: Path, word: str, names: list[str]) -> None:
    """Relative ones by their path, others by their last part; a folder brings all below it."""
    found = given_files([word.format(tmp_path)], tmp_path / "none")
    assert sorted(found) == names
    assert all(path.read_text().endswith(name) for name, path in found.items())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["none"], "there is no file none"),
        (["none/*"], "nothing matches none/*"),
        (["one", "./one"], "one comes twice"),
        (["data", "data/a.csv"], "data/a.csv comes twice"),
        (["pipes"], "pipes/fifo is no plain file"),
        (["pipes/gone"], "pipes/gone is no plain file"),
        (["many"], f"more than {INPUTS_MAX} files; pack them"),
        (["file:///none/x"], "/none/x does not exist"),
        (["file://elsewhere/x"], "a file of another host"),
        (["https://host/"], "does not end with the name"),
        (["https:///x"], "names no host"),
        (["https://ann:secret@host/x"], "a password in a URL"),
        (["https://host/x#sha256=12"], "64 hexadecimal digits"),
        (["https://host/a%5Cb"], "not allowed in a file's name"),
    ],
)
def test_what_is_no_input_is_said(tmp_path: Path, words: list[str], text: str) -> None:
    """Before anything is asked for."""
    Path("pipes").mkdir()
    os.mkfifo("pipes/fifo")
    Path("pipes/gone").symlink_to("nowhere")
    Path("many").mkdir()
    for number in range(INPUTS_MAX + 1):
        Path(f"many/{number}").touch()
    with pytest.raises(click.BadParameter) as told:
        given_files(words, tmp_path)
    assert text in told.value.message


class Server(ThreadingHTTPServer):
    """Serves one content.

    Attributes:
        cuts: after how many bytes further answers are cut off.
        ranges: from where it was asked for.
        tag: of the content.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.cuts: list[int] = []
        self.ranges: list[str] = []
        self.tag = '"one"'

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers."""

    server: Server

    def do_GET(self) -> None:  # http.server's
        """Sends the content, or leads elsewhere."""
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        if self.path != "/x.bin":
            self.send_error(404)
            return
        asked = self.headers.get("Range", "")
        self.server.ranges.append(asked)
        goes_on = bool(asked) and self.headers["If-Range"] == self.server.tag
        begin = int(asked.removeprefix("bytes=").removesuffix("-")) if goes_on else 0
        self.send_response(206 if goes_on else 200)
        self.send_header("ETag", self.server.tag)
        self.send_header("Content-Length", str(len(CONTENT) - begin))
        self.end_headers()
        end = begin + self.server.cuts.pop(0) if self.server.cuts else None
        self.wfile.write(CONTENT[begin:end])

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(name="server")
def _server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    monkeypatch.setenv("no_proxy", "*")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_file_comes_by_its_url(server: Server, tmp_path: Path) -> None:
    """Whole, through redirects, and as the digest says."""
    found = given_files([f"{server.url}/to/{server.url}/x.bin#sha256={DIGEST.upper()}"], tmp_path)
    assert found["x.bin"].read_bytes() == CONTENT


def test_a_download_that_was_cut_off_goes_on(server: Server, tmp_path: Path) -> None:
    """Where it stopped, unless the content is another one by now."""
    server.cuts = [300_000, 300_000]
    brought(parse(f"{server.url}/x.bin"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.ranges == ["", "bytes=300000-", "bytes=600000-"]
    server.cuts, server.tag = [300_000], 'W/"weak"'
    brought(parse(f"{server.url}/x.bin"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.ranges[3:] == ["", ""]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/none.bin", "404"),
        ("/x.bin#sha256=" + "0" * 64, f"its SHA-256 is {DIGEST}"),
        ("/to/file:///etc/passwd", "url 'file:///etc/passwd' is not allowed"),
        ("/to/ftp://host/x", "leads on to ftp://host/x"),
    ],
)
def test_what_does_not_come_is_said(server: Server, tmp_path: Path, path: str, text: str) -> None:
    """Nothing of this host is read for a server that leads there."""
    with pytest.raises(DownloadError, match=text):
        brought(parse(f"{server.url}{path}"), tmp_path / "x")


def test_a_server_that_never_answers_is_not_asked_for_ever(server: Server, tmp_path: Path) -> None:
    """After some attempts without a byte it is given up; a file that is too large is not begun."""
    server.cuts = [0] * 10
    with pytest.raises(DownloadError, match="after 5 attempts: 0 of 700000 bytes"):
        brought(parse(f"{server.url}/x.bin"), tmp_path / "x")
    server.cuts = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BYTES_MAX", 1000)
        with pytest.raises(DownloadError, match="at most 1000 are taken"):
            brought(parse(f"{server.url}/x.bin"), tmp_path / "x")
