"""Downloads recorded logs from the Parallel Workloads Archive or a mirror of it.

A download grows in a `.part` file and gets its final name only after its SHA-256 was verified, so a
file under the final name is always complete. An interrupted download is resumed (HTTP Range).
Servers that ignore Range, or whose file has changed since, only cost a second full download: the
checksum, not the protocol, decides what is right.
"""

import fcntl
import hashlib
import http.client
import io
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lrms_sim import __version__
from scenarios.spec.traces import ARCHIVE_URL, FOLDER_VARIABLE, Trace, file_sha256
from scenarios.util.errors import FetchError

TIMEOUT_S = 30.0
"""In seconds, for a silent server."""

DOWNLOAD_BYTES_MAX = 64 << 20
"""Most bytes taken from a server for one log; the largest log has 1.6 MB."""

_CHUNK_BYTES = 1 << 16
_USER_AGENT = f"hanse/{__version__}"

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and their total, `None` if unknown."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A log's file; `downloaded` is false if it was there already."""

    path: Path
    downloaded: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """Where one log comes from.

    Attributes:
        timeout_s: how long a silent server is waited for, in seconds.
        advice: what the user can do where this source fails.
    """

    trace: Trace
    url: str
    timeout_s: float
    advice: str

    def error(self, what: str) -> FetchError:
        return FetchError(f"cannot fetch {self.url}: {what}; {self.advice}")


class _RangeRefusedError(Exception):
    """The server has nothing to send from that byte on (HTTP 416)."""


def fetch(
    trace: Trace,
    folder: Path,
    *,
    base_url: str = ARCHIVE_URL,
    timeout_s: float = TIMEOUT_S,
    progress: Progress | None = None,
) -> Fetched:
    """Downloads a log into a folder, made if missing, unless it is there; returns its file.

    The file's SHA-256 is that of `trace`. `base_url` is the archive or a mirror with its folders,
    http or https; `timeout_s` limits the wait for a silent server, in seconds.

    Raises:
        FetchError: there is no network, the server has no such file, the connection broke without a
            byte gained, the folder cannot be written to, or what came is another file. A download
            that was begun stays and is continued by the next call.
    """
    if not base_url.startswith(("http://", "https://")):
        raise FetchError(f"--from is {base_url!r}; it must begin with http:// or https://")
    final = folder / trace.file
    advice = (
        f"download it by hand into {folder}, or set {FOLDER_VARIABLE} to a folder that "
        f"has {trace.file}"
    )
    source = _Source(trace, trace.url(base_url), timeout_s, advice)
    try:
        if final.exists():
            return _already_there(trace, final)
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{trace.file}.part"
        with _locked(part) as stream:
            _fill_checked(source, stream, part, progress)
            os.fsync(stream.fileno())
            part.replace(final)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FetchError(f"cannot write {final}: {reason}; name another --folder") from error
    return Fetched(final, downloaded=True)


def _already_there(trace: Trace, final: Path) -> Fetched:
    found = file_sha256(final)
    if found != trace.sha256:
        raise FetchError(
            f"{final} is there, but is another file: SHA-256 {found}, expected {trace.sha256}; "
            f"move it away and fetch again"
        )
    return Fetched(final, downloaded=False)


@contextmanager
def _locked(part: Path) -> Iterator[io.FileIO]:
    """Opens the unfinished download for this process alone.

    Raises:
        FetchError: another process is downloading it.
        OSError: it cannot be opened.
    """
    descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with io.FileIO(descriptor, "r+b") as stream:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between open and lock the other process may have given the file its final name.
            still_ours = part.exists() and os.path.samestat(os.fstat(descriptor), part.stat())
        except BlockingIOError:
            still_ours = False
        if not still_ours:
            raise FetchError(f"{part} is being downloaded by another process; wait for it to end")
        yield stream


def _fill_checked(
    source: _Source, stream: io.FileIO, part: Path, progress: Progress | None
) -> None:
    resumed = os.fstat(stream.fileno()).st_size > 0
    _fill(source, stream, progress)
    found = _stream_sha256(stream)
    if found != source.trace.sha256 and resumed:
        # The old beginning and the new rest are not one file; only a whole download can tell.
        stream.truncate(0)
        _fill(source, stream, progress)
        found = _stream_sha256(stream)
    if found != source.trace.sha256:
        size = os.fstat(stream.fileno()).st_size
        part.unlink()
        raise source.error(
            f"what came is another file and was not kept: {size} bytes with SHA-256 {found}, "
            f"expected {source.trace.size_bytes} bytes with {source.trace.sha256}"
        )


def _fill(source: _Source, stream: io.FileIO, progress: Progress | None) -> None:
    """Downloads what is missing, over as many connections as each gain something."""
    range_refused = False
    while True:
        have = os.fstat(stream.fileno()).st_size
        if have == source.trace.size_bytes:
            return
        if have > source.trace.size_bytes:
            stream.truncate(0)
            have = 0
        try:
            total = _receive(source, stream, have, progress)
        except _RangeRefusedError:
            if range_refused:
                raise source.error("the server refuses to send it (416)") from None
            range_refused = True
            stream.truncate(0)
            continue
        now = os.fstat(stream.fileno()).st_size
        if total is None or now >= total:
            return
        if now <= have:
            raise source.error(
                f"the connection broke after {now} of {total} bytes (the next fetch goes on there)"
            )


def _receive(
    source: _Source, stream: io.FileIO, have: int, progress: Progress | None
) -> int | None:
    """Appends what one connection brings; returns the file's size on the server.

    The size is `None` if unknown; then the end of the connection was the end of the file.
    """
    headers = {"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(source.url, headers=headers)  # noqa: S310  # fetch() checked the scheme
    try:
        response = urllib.request.urlopen(request, timeout=source.timeout_s)  # noqa: S310  # same
    except urllib.error.HTTPError as error:
        with error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
                raise _RangeRefusedError from None
            raise source.error(f"the server answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise source.error(f"no connection ({_reason(error.reason)})") from error
    except (OSError, http.client.HTTPException) as error:
        raise source.error(f"no usable answer ({_reason(error)})") from error
    with response:
        start = _first_byte(response, have)
        stream.truncate(start)
        stream.seek(start)
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else None
        for chunk in _chunks(response, source, chunked=total is None):
            stream.write(chunk)
            if progress is not None:
                progress(stream.tell(), total)
            if stream.tell() > DOWNLOAD_BYTES_MAX:
                stream.truncate(0)
                raise source.error(f"the server sends more than {DOWNLOAD_BYTES_MAX} bytes")
    return total


def _first_byte(response: http.client.HTTPResponse, have: int) -> int:
    if not have or response.status != http.HTTPStatus.PARTIAL_CONTENT:
        return 0
    # "bytes 100-199/200"; a server that sends another range than asked is not resumed from.
    span = response.headers.get("Content-Range", "").removeprefix("bytes ")
    first = span.partition("-")[0]
    if first != str(have):
        raise _RangeRefusedError
    return have


def _chunks(
    response: http.client.HTTPResponse, source: _Source, *, chunked: bool
) -> Iterator[bytes]:
    """Yields the body until it ends or the connection breaks.

    Raises:
        FetchError: the connection broke and the length is unknown, so that nobody else notices.
    """
    while True:
        try:
            chunk = response.read(_CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            if chunked:
                raise source.error(f"the connection broke ({_reason(error)})") from error
            return
        if not chunk:
            return
        yield chunk


def _stream_sha256(stream: io.FileIO) -> str:
    digest = hashlib.sha256()
    stream.seek(0)
    while chunk := stream.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def _reason(error: BaseException | str) -> str:
    with suppress(AttributeError):
        if error.strerror:  # type: ignore[union-attr]  # OSErrors have it, the others are suppressed
            return str(error.strerror)  # type: ignore[union-attr]  # same
    return str(error) or type(error).__name__
