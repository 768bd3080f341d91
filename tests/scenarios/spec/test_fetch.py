import fcntl
import hashlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scenarios.spec import fetch as fetch_module
from scenarios.spec.fetch import fetch
from scenarios.spec.traces import Trace
from scenarios.util.errors import FetchError

CONTENT = bytes(itertools.islice(itertools.cycle(range(251)), 300_000))
OTHER = CONTENT[::-1]

TRACE = Trace(
    key="test",
    file="TEST-1.swf.gz",
    archive_folder="l_test",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    size_bytes=len(CONTENT),
    machine="a machine in a test",
    processors=4,
)


class Archive(ThreadingHTTPServer):
    """A web server with one log, and with the faults a test asks for.

    Attributes:
        content: what it serves.
        ranges: whether it knows Range.
        cut_after: body bytes after which each answer breaks off, None for never.
        lengths: whether it says how much it will send.
        shift: how far the range it sends is off the range that was asked for.
        requests: the Range header of each request, "" for none.
    """

    daemon_threads = True
    content = CONTENT
    ranges = True
    cut_after: int | None = None
    lengths = True
    shift = 0
    requests: list[str]

    @property
    def base(self) -> str:
        """Its address, as `--from` takes it."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/workload"

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing when a client goes away, which some tests make happen."""


class Handler(BaseHTTPRequestHandler):
    """Answers as the archive's attributes say."""

    server: Archive

    def do_GET(self) -> None:
        """Sends the log, or what a test asked for instead."""
        server = self.server
        wanted = self.headers.get("Range", "")
        server.requests.append(wanted)
        if self.path != "/workload/l_test/TEST-1.swf.gz":
            self.send_error(404)
            return
        first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and server.ranges else 0
        if first >= len(server.content):
            self.send_error(416)
            return
        first += server.shift if wanted else 0
        body = server.content[first:]
        self.send_response(206 if first else 200)
        if first:
            end = len(server.content)
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{end}")
        if server.lengths:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.cut_after])

    def log_message(self, *_: object) -> None:
        """Keeps the test's output clean."""


@pytest.fixture
def archive() -> Iterator[Archive]:
    with Archive(("127.0.0.1", 0), Handler) as server:
        server.requests = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return tmp_path / "TEST-1.swf.gz.part"


def test_a_log_is_downloaded_under_its_name_and_no_part_is_left(
    archive: Archive, tmp_path: Path
) -> None:
    """The whole file arrives, in a folder that is made, and progress ends at its size."""
    seen: list[tuple[int, int | None]] = []

    def progress(done: int, total: int | None) -> None:
        seen.append((done, total))

    folder = tmp_path / "new" / "traces"
    fetched = fetch(TRACE, folder, base_url=archive.base, progress=progress)
    assert fetched.downloaded
    assert fetched.path.read_bytes() == CONTENT
    assert [path.name for path in folder.iterdir()] == ["TEST-1.swf.gz"]
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert seen == sorted(seen)


def test_a_log_that_is_there_is_not_downloaded_again(archive: Archive, tmp_path: Path) -> None:
    """A file with the right checksum makes no connection."""
    (tmp_path / TRACE.file).write_bytes(CONTENT)
    assert not fetch(TRACE, tmp_path, base_url=archive.base).downloaded
    assert archive.requests == []


def test_another_file_under_the_final_name_is_left_alone(archive: Archive, tmp_path: Path) -> None:
    """The user's own file is neither replaced nor taken for the log."""
    (tmp_path / TRACE.file).write_bytes(b"mine")
    with pytest.raises(FetchError, match=f"another file: SHA-256 .* expected {TRACE.sha256}"):
        fetch(TRACE, tmp_path, base_url=archive.base)
    assert (tmp_path / TRACE.file).read_bytes() == b"mine"


def test_a_begun_download_goes_on_where_it_stopped(
    archive: Archive, tmp_path: Path, part: Path
) -> None:
    """Only the missing bytes are asked for."""
    part.write_bytes(CONTENT[:1234])
    fetch(TRACE, tmp_path, base_url=archive.base)
    assert archive.requests == ["bytes=1234-"]
    assert (tmp_path / TRACE.file).read_bytes() == CONTENT


def test_a_complete_part_needs_no_connection(archive: Archive, tmp_path: Path, part: Path) -> None:
    """A download interrupted just before its end only gets its name."""
    part.write_bytes(CONTENT)
    assert fetch(TRACE, tmp_path, base_url=archive.base).downloaded
    assert archive.requests == []


def test_a_part_that_is_too_long_starts_again(archive: Archive, tmp_path: Path, part: Path) -> None:
    """More bytes than the log has cannot be its beginning."""
    part.write_bytes(CONTENT + b"x")
    fetch(TRACE, tmp_path, base_url=archive.base)
    assert archive.requests == [""]
    assert (tmp_path / TRACE.file).read_bytes() == CONTENT


def test_a_server_that_ignores_range_sends_all(
    archive: Archive, tmp_path: Path, part: Path
) -> None:
    """The answer 200 replaces the beginning instead of being appended to it."""
    archive.ranges = False
    part.write_bytes(CONTENT[:1234])
    fetch(TRACE, tmp_path, base_url=archive.base)
    assert len(archive.requests) == 1
    assert (tmp_path / TRACE.file).read_bytes() == CONTENT


def test_a_server_that_sends_another_range_is_asked_for_all(
    archive: Archive, tmp_path: Path, part: Path
) -> None:
    """A range that begins elsewhere is not appended."""
    archive.shift = 7
    part.write_bytes(CONTENT[:1234])
    fetch(TRACE, tmp_path, base_url=archive.base)
    assert archive.requests == ["bytes=1234-", ""]
    assert (tmp_path / TRACE.file).read_bytes() == CONTENT


def test_a_refused_range_starts_again(archive: Archive, tmp_path: Path, part: Path) -> None:
    """After 416 the file is asked for from its beginning, once, and judged by its checksum."""
    archive.content = CONTENT[:1000]
    part.write_bytes(CONTENT[:1234])
    with pytest.raises(FetchError, match=r"another file and was not kept: 1000 bytes"):
        fetch(TRACE, tmp_path, base_url=archive.base)
    assert archive.requests[:2] == ["bytes=1234-", ""]
    assert list(tmp_path.iterdir()) == []


def test_a_beginning_of_an_older_file_costs_one_full_download(
    archive: Archive, tmp_path: Path, part: Path
) -> None:
    """If beginning and rest do not make the log, the whole is downloaded."""
    part.write_bytes(OTHER[:1234])
    fetch(TRACE, tmp_path, base_url=archive.base)
    assert archive.requests == ["bytes=1234-", ""]
    assert (tmp_path / TRACE.file).read_bytes() == CONTENT


def test_broken_connections_are_continued(archive: Archive, tmp_path: Path) -> None:
    """A server that breaks off every 100,000 bytes is asked until the log is whole."""
    archive.cut_after = 100_000
    fetch(TRACE, tmp_path, base_url=archive.base)
    assert archive.requests == ["", "bytes=100000-", "bytes=200000-"]
    assert (tmp_path / TRACE.file).read_bytes() == CONTENT


def test_a_connection_that_brings_nothing_is_an_error_and_the_part_stays(
    archive: Archive, tmp_path: Path, part: Path
) -> None:
    """The next fetch goes on with what there is."""
    archive.cut_after = 0
    part.write_bytes(CONTENT[:1234])
    with pytest.raises(FetchError, match=r"broke after 1234 of 300000 bytes .*goes on there"):
        fetch(TRACE, tmp_path, base_url=archive.base)
    assert part.read_bytes() == CONTENT[:1234]
    assert not (tmp_path / TRACE.file).exists()


def test_a_server_without_lengths_is_judged_by_the_checksum(
    archive: Archive, tmp_path: Path
) -> None:
    """The end of the connection is the end of the file."""
    archive.lengths = False
    fetch(TRACE, tmp_path, base_url=archive.base)
    assert (tmp_path / TRACE.file).read_bytes() == CONTENT


def test_wrong_content_is_not_kept(archive: Archive, tmp_path: Path) -> None:
    """Another file of the same size leaves nothing behind, and the error tells both checksums."""
    archive.content = OTHER
    other = hashlib.sha256(OTHER).hexdigest()
    with pytest.raises(FetchError, match=f"not kept.*{other}, expected .*{TRACE.sha256}"):
        fetch(TRACE, tmp_path, base_url=archive.base)
    assert list(tmp_path.iterdir()) == []


def test_an_endless_answer_is_cut(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server can fill the disk."""
    monkeypatch.setattr(fetch_module, "DOWNLOAD_BYTES_MAX", 100_000)
    with pytest.raises(FetchError, match="more than 100000 bytes"):
        fetch(TRACE, tmp_path, base_url=archive.base)
    assert not (tmp_path / TRACE.file).exists()


def test_a_missing_file_names_address_and_ways_out(archive: Archive, tmp_path: Path) -> None:
    """404 is told with the address, and with what to do instead."""
    base = archive.base.replace("workload", "elsewhere")
    with pytest.raises(FetchError) as caught:
        fetch(TRACE, tmp_path, base_url=base)
    text = str(caught.value)
    assert f"{base}/l_test/TEST-1.swf.gz" in text
    assert "404 Not Found" in text
    assert "download it by hand" in text
    assert "HANSE_TRACES" in text


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Runs a server that accepts one connection and hands it to `answer`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_no_network_says_what_and_what_to_do(tmp_path: Path) -> None:
    """Nobody listens: one line with address, cause and ways out."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(FetchError, match=r"no connection \(Connection refused\); download it by"):
        fetch(TRACE, tmp_path, base_url=f"http://127.0.0.1:{port}")


def test_rubbish_instead_of_http_is_an_error(tmp_path: Path) -> None:
    """A server of another protocol is not taken for an archive."""

    def rubbish(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"220 mail.example ESMTP\r\n")

    with answering(rubbish) as base, pytest.raises(FetchError, match="no usable answer"):
        fetch(TRACE, tmp_path, base_url=base)


def test_a_silent_server_times_out(tmp_path: Path) -> None:
    """The time-out is the one given, and the error says so."""
    done = threading.Event()

    def silence(_: socket.socket) -> None:
        done.wait(300)

    with answering(silence) as base:
        with pytest.raises(FetchError, match="timed out"):
            fetch(TRACE, tmp_path, base_url=base, timeout_s=0.05)
        done.set()


def test_an_answer_cut_in_the_middle_of_a_chunked_body_is_an_error(tmp_path: Path) -> None:
    """Without a length only the broken encoding shows that something is missing."""

    def cut(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"x" * 16
        )

    with answering(cut) as base, pytest.raises(FetchError, match="the connection broke"):
        fetch(TRACE, tmp_path, base_url=base)


@pytest.mark.parametrize("base", ["file:///etc", "ftp://127.0.0.1/", "archive"])
def test_only_http_is_spoken(tmp_path: Path, base: str) -> None:
    """No other scheme reaches urllib."""
    with pytest.raises(FetchError, match="must begin with http://"):
        fetch(TRACE, tmp_path, base_url=base)


def test_two_fetches_of_one_log_do_not_mix(archive: Archive, tmp_path: Path, part: Path) -> None:
    """While one process holds the unfinished download, another is turned away."""
    with part.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(FetchError, match="by another process"):
            fetch(TRACE, tmp_path, base_url=archive.base)


def test_a_folder_that_cannot_be_made_is_an_error(archive: Archive, tmp_path: Path) -> None:
    """A file where the folder should be: named, with a way out."""
    (tmp_path / "traces").write_text("a file")
    with pytest.raises(FetchError, match=r"cannot write .*name another --folder"):
        fetch(TRACE, tmp_path / "traces", base_url=archive.base)
