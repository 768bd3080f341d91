"""What is logged and counted of connections that are not taken.

All are counted. Whoever knocks again and again fills no log: the same is told now and then.
"""

from collections.abc import Callable
from typing import Final

import structlog

from grms.handshakes import Handshake
from grms.kit.rates import Seldom

Log = structlog.typing.FilteringBoundLogger

REFUSALS_LOGGED_PER_S: Final = 0.1
"""How often it is logged that connections are refused; all are counted."""

EXHAUSTION_LOGGED_PER_S: Final = 1 / 60
"""How often it is logged that there are no descriptors."""


class RefusedConnections:
    """Tells of connections of users and partners that are refused.

    Args:
        count: counts a refusal by its reason.
        handshake: counts a handshake that has failed; None where nothing is measured.
        log: where it is told.
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
        """Is told that the daemon ends: whoever connects now is no matter of the log."""
        self._stopping = True

    def refused(self, kind: str, reason: str, limit: str = "") -> None:
        """Tells of a connection that is closed or not taken.

        Args:
            kind: by which it is counted.
            reason: for a person; its first word is who it is, where that is known.
            limit: of the configuration that it is about; empty where it is about none.
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
        """Tells of a connection that is ended, as who is there is not believed any more.

        Args:
            site: as its certificate names it.
            address: from where.
            reason: for a person.
        """
        self._count("distrusted")
        left_out = self._refusals_logged.to_tell(f"distrusted {site} {reason}")
        if left_out is not None:
            self._log.warning(
                "connection_distrusted", partner=site, address=address, reason=reason, **left_out
            )

    def handshake_failed(self, handshake: Handshake, problem: str, address: str) -> None:
        """Tells of a handshake that has failed.

        Args:
            handshake: what it was.
            problem: the same in words.
            address: from where.
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
