"""What is logged and counted of connections that are not taken.

All are counted. Whoever knocks again and again fills no log: the same is told now and then.
"""

from collections.abc import Callable
from typing import Final

import structlog

from grms.daemon.pacing import Seldom
from grms.security.handshakes import Handshake

Log = structlog.typing.FilteringBoundLogger

REFUSALS_LOGGED_PER_S: Final = 0.1
"""Rate of logging refused connections; all are counted."""

EXHAUSTION_LOGGED_PER_S: Final = 1 / 60
"""Rate of logging a lack of descriptors."""


class RejectionLog:
    """Reports refused connections of users and partners.

    `count` counts a refusal by its reason, `handshake` a failed one; `None` if nothing is measured.
    """

    def __init__(
        self, count: Callable[[str], None], handshake: Callable[[Handshake], None] | None, log: Log
    ) -> None:
        self._count = count
        self._handshake = handshake
        self._log = log
        self._stopping = False
        self._refusals_logged = Seldom(REFUSALS_LOGGED_PER_S)
        self._exhaustion_logged = Seldom(EXHAUSTION_LOGGED_PER_S)

    def stop(self) -> None:
        """Notes that the daemon ends: later connections are not logged."""
        self._stopping = True

    def refused(self, kind: str, reason: str, limit: str = "") -> None:
        """Reports a connection that is closed or not accepted.

        The first word of `reason` is the peer, if known; `limit` is the key of the configuration,
        or empty.
        """
        if self._stopping:
            self._count("stopping")
            return
        # Whoever is refused again and again does not hide others: a reason begins with who it is.
        who = reason.partition(" ")[0]
        left_out = self._refusals_logged.to_tell(f"{kind} {limit} {who}")
        if left_out is not None:
            more = {"limit": f"limits.{limit}"} if limit else {}
            self._log.warning("connection_refused", reason=reason, **more, **left_out)
        self._count(kind)

    def exhausted(self, why: str) -> None:
        """Tells that no connection can be taken for now."""
        if (left_out := self._exhaustion_logged.to_tell("")) is not None:
            self._log.error("no_connection_can_be_taken", problem=why, **left_out)
        self._count("descriptors")

    def distrusted(self, site: str, address: str, reason: str) -> None:
        """Reports a connection that is ended, as its peer is no longer trusted."""
        self._count("distrusted")
        left_out = self._refusals_logged.to_tell(f"distrusted {site} {reason}")
        if left_out is not None:
            self._log.warning(
                "connection_distrusted", partner=site, address=address, reason=reason, **left_out
            )

    def handshake_failed(self, handshake: Handshake, problem: str, address: str) -> None:
        """Tells of a handshake that has failed.

        `problem` is the same in words.
        """
        if self._handshake is not None:
            self._handshake(handshake)
        left_out = self._refusals_logged.to_tell(f"{handshake} {address}")
        if left_out is not None:
            self._log.warning(
                "handshake_failed",
                reason=str(handshake),
                problem=problem,
                address=address,
                **left_out,
            )
