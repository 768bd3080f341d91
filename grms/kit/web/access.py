"""Who may look at a daemon's pages: sessions that end with the process, and what a reverse proxy shows.

A session begins with a link that is good once and for a minute, and that the daemon gives to operators
alone, over its Unix socket. It has two secrets: a folder in all its addresses, and a cookie for that folder. A
browser sends a cookie to every port of a host, but only below its folder: so another program's port is shown
nothing, and whoever binds this one while the daemon is down is shown what no daemon knows any more.
"""

import contextlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from grms.names import parse_endpoint
from lrms_sim.text_files import write_secret

LINK_S: Final = 60.0
"""How long a link is good, seconds."""

LINKS_MAX: Final = 64
"""Links that wait to be used; the oldest is dropped beyond."""

SESSION_S: Final = 12 * 3600.0
"""How long a session lasts, seconds."""

SESSIONS_MAX: Final = 64
"""Sessions at one time; the oldest is dropped beyond."""

TOKEN_LENGTH_MIN: Final = 32
"""Shortest token that is taken over from a file."""


@dataclass(frozen=True, slots=True)
class PageSession:
    """A browser that has been let in.

    Attributes:
        folder: the first part of all paths that it asks for.
        secret: its cookie.
        end: when it is over, seconds of the sessions' clock.
    """

    folder: str
    secret: str
    end: float


class PageSessions:
    """The links and sessions of one process, for its threads.

    Args:
        clock: seconds, never going back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._links: dict[str, float] = {}
        self._sessions: dict[str, PageSession] = {}

    def link(self) -> str:
        """Returns the secret of a new link, with which one session can be begun within `LINK_S`."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._links[secret] = self._clock() + LINK_S
            while len(self._links) > LINKS_MAX:
                del self._links[next(iter(self._links))]
        return secret

    def begin(self, link: str) -> PageSession | None:
        """Returns a new session for the secret of a link, which is used up; None where it is none, or too old."""
        now = self._clock()
        with self._lock:
            end = self._links.pop(link, None)
            if end is None or now > end:
                return None
            session = PageSession(
                secrets.token_urlsafe(24), secrets.token_urlsafe(32), now + SESSION_S
            )
            self._sessions[session.folder] = session
            while len(self._sessions) > SESSIONS_MAX:
                del self._sessions[next(iter(self._sessions))]
        return session

    def knows(self, folder: str, secret: str) -> bool:
        """Returns whether somebody with these two secrets may look."""
        with self._lock:
            session = self._sessions.get(folder)
            if session is not None and self._clock() > session.end:
                del self._sessions[folder]
                session = None
        return session is not None and hmac.compare_digest(secret.encode(), session.secret.encode())


def write_token(path: Path, address: str) -> str:
    """Writes what a reverse proxy has to show, for the daemon's user alone; returns the token.

    Args:
        path: of the file; the token of one that is there stays, as a proxy has it.
        address: of the pages.

    Raises:
        OSError: it cannot be written.
    """
    token = ""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        token = str(json.loads(path.read_text(encoding="utf-8"))["token"])
    token = token if len(token) >= TOKEN_LENGTH_MIN else secrets.token_urlsafe(32)
    write_secret(path, {"address": address, "token": token})
    return token


def loopback(address: str) -> tuple[str, int]:
    """Returns host and port of an address at which pages may be served.

    Args:
        address: "HOST:PORT".

    Raises:
        ValueError: it is no address, or none of loopback: pages tell how busy a site is.
    """
    endpoint = parse_endpoint(address)
    if not endpoint.is_loopback:
        raise ValueError(
            f"{address} is not of loopback, and pages tell how busy one is; put a reverse proxy "
            "before them"
        )
    return endpoint.host, endpoint.port
