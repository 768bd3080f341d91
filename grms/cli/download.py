"""Downloads of input files by HTTP: as the user, resumed where a server allows it, and checked.

A URL may end with `#sha256=` and the digest of the content, which is then held against it.
"""

import errno
import hashlib
import http.client
import re
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Final
from urllib.parse import unquote, urlsplit

SILENCE_S: Final = 60.0
"""A server that says nothing for so long is asked anew, seconds."""

ATTEMPTS: Final = 5
"""In a row, without a further byte."""

PAUSE_S: Final = 1.0
PIECE_BYTES: Final = 256 << 10
BYTES_MAX: Final = 1 << 40
REDIRECTS_MAX: Final = 5

_DIGEST: Final = re.compile(r"sha256=([0-9a-fA-F]{64})")
_OF_THIS_DISK: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))
_FAILURES: Final = (OSError, http.client.HTTPException)


class DownloadError(Exception):
    """A file cannot be had by its URL; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file by its URL.

    Attributes:
        url: without the fragment.
        name: last part of its path.
        sha256: of the content, in hexadecimal; empty if not given.
        path: in place of a download; empty for none.
    """

    url: str
    name: str
    sha256: str = ""
    path: str = ""


def parse(url: str) -> Source:
    """Returns a file by its URL.

    Raises:
        ValueError: it is none, or has what does not belong into one.
    """
    parts = urlsplit(url)
    digest = _DIGEST.fullmatch(parts.fragment)
    if parts.fragment and digest is None:
        raise ValueError("after # comes sha256= and 64 hexadecimal digits, or nothing")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "a password in a URL is seen by everybody on this host; download it yourself"
        )
    path = unquote(parts.path)
    name = path.rpartition("/")[2]
    if not name:
        raise ValueError("its path does not end with the name of a file")
    sha256 = "" if digest is None else digest[1].lower()
    if parts.scheme == "file":
        if parts.netloc not in {"", "localhost"}:
            raise ValueError("a file of another host; file:///path is one of this host")
        return Source(url, name, sha256, path)
    if not parts.hostname:
        raise ValueError("it names no host")
    return Source(parts._replace(fragment="").geturl(), name, sha256)


class _Redirects(urllib.request.HTTPRedirectHandler):
    # To HTTP(S) alone, and never from a protected connection to an open one.
    max_redirections = REDIRECTS_MAX

    def redirect_request(  # noqa: PLR0917  # urllib's
        self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after not in {"http", "https"} or (before, after) == ("https", "http"):
            raise DownloadError(f"it leads on to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def brought(source: Source, target: Path) -> None:
    """Downloads a file.

    Raises:
        DownloadError: it cannot be had, or is not what was said.
        OSError: it cannot be written.
    """
    transfer, failures = _Transfer(source.url), 0
    with target.open("wb") as file:
        while True:
            there = file.tell()
            try:
                transfer.go_on(file)
            except urllib.error.HTTPError as error:
                if error.code < 500:
                    raise DownloadError(f"{error.code} {error.reason}") from error
                problem: Exception = error
            except _FAILURES as error:
                if isinstance(error, OSError) and error.errno in _OF_THIS_DISK:
                    raise
                problem = error
            else:
                break
            failures = 0 if file.tell() > there else failures + 1
            if failures == ATTEMPTS:
                reason = getattr(problem, "reason", problem)
                raise DownloadError(f"after {ATTEMPTS} attempts: {reason}") from problem
            time.sleep(PAUSE_S)
    _check(source, target)


class _CutOffError(OSError):
    # Fewer bytes than the server has announced.
    pass


class _Transfer:
    # What goes on after an interruption if the server has the same content still.
    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = urllib.request.build_opener(_Redirects())
        self._validator = ""

    def go_on(self, file: BinaryIO) -> None:
        """Goes on with a file, or begins it anew where the server has another one now or cannot go on."""
        request = urllib.request.Request(self._url, headers={"Accept-Encoding": "identity"})  # noqa: S310  # checked
        there = file.tell()
        if there and self._validator:
            request.add_header("Range", f"bytes={there}-")
            request.add_header("If-Range", self._validator)
        with self._opener.open(request, timeout=SILENCE_S) as answer:
            if answer.status != 206:
                there = 0
                file.seek(0)
                file.truncate()
            found = answer.headers.get("ETag", "")
            self._validator = "" if found.startswith("W/") else found
            length = answer.headers.get("Content-Length")
            size = there + int(length) if length else None
            if (size or 0) > BYTES_MAX:
                raise DownloadError(f"it has {size} bytes; at most {BYTES_MAX} are taken")
            while some := answer.read(PIECE_BYTES):
                file.write(some)
                if file.tell() > BYTES_MAX:
                    raise DownloadError(f"it has more than {BYTES_MAX} bytes")
            if size is not None and file.tell() < size:
                raise _CutOffError(f"{file.tell()} of {size} bytes have come")


def _check(source: Source, target: Path) -> None:
    if not source.sha256:
        return
    with target.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != source.sha256:
        raise DownloadError(f"its SHA-256 is {found}, and not what the URL says")
