"""Access to a daemon's pages: sessions that end with the process, and a reverse proxy's token.

A session begins with a link that is valid once and for a minute, which the daemon gives only to operators, over its
Unix socket. It has two secrets: a folder in all its addresses, and a cookie for that folder. A browser sends a
cookie to every port of a host, but only below its folder: so other programs' ports get nothing, and a program that
takes this port while the daemon is down gets secrets that are no longer valid.
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

from grms.util.names import parse_endpoint
from lrms_sim.util.files import write_secret

LINK_S: Final = 60.0
"""Validity of a link, seconds."""

LINKS_MAX: Final = 64
"""Most unused links; beyond, the oldest is dropped."""

SESSION_S: Final = 12 * 3600.0
"""Duration of a session, seconds."""

SESSIONS_MAX: Final = 64
"""Most sessions; beyond, the oldest is dropped."""

TOKEN_LENGTH_MIN: Final = 32
"""Shortest token accepted from a file."""


@dataclass(frozen=True, slots=True)
class PageSession:
    """A browser that has been admitted.

    Attributes:
        folder: the first part of all its paths.
        secret: its cookie.
        end: expiry, seconds of the sessions' clock.
    """

    folder: str
    secret: str
    end: float


class PageSessions:
    """The links and sessions of one process, thread-safe; `clock` is monotonic, in seconds."""

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
        """Returns a new session for the secret of a link, which is used up; `None` if it is invalid or expired."""
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
        """Returns whether a session has these two secrets."""
        with self._lock:
            session = self._sessions.get(folder)
            if session is not None and self._clock() > session.end:
                del self._sessions[folder]
                session = None
        return session is not None and hmac.compare_digest(secret.encode(), session.secret.encode())


def write_token(path: Path, address: str) -> str:
    """Writes the token of a reverse proxy, private to the daemon's user, and returns it.

    An existing token stays, as a proxy uses it. `address` is that of the pages.

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
    """Returns host and port of "HOST:PORT", at which pages may be served.

    Raises:
        ValueError: it is invalid, or not loopback: pages reveal a site's load.
    """
    endpoint = parse_endpoint(address)
    if not endpoint.is_loopback:
        raise ValueError(
            f"{address} is not of loopback, and pages tell how busy one is; put a reverse proxy "
            "before them"
        )
    return endpoint.host, endpoint.port
