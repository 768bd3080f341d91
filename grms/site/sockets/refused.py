"""What is logged and counted of connections that are not taken.

All are counted. Whoever knocks again and again fills no log: the same is told now and then.
"""

from collections.abc import Callable
from typing import Final

import structlog

from grms.handshakes import Handshake
from grms.site.sockets.door import Rate

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
        self._refusals_logged = Rate(REFUSALS_LOGGED_PER_S)
        self._exhaustion_logged = Rate(EXHAUSTION_LOGGED_PER_S)

    def refused(self, kind: str, reason: str) -> None:
        """Tells of a connection that is closed or not taken.

        Args:
            kind: which limit of the configuration it is about.
            reason: for a person.
        """
        if self._refusals_logged.wait_s(kind) == 0.0:
            self._log.warning("connection_refused", reason=reason, limit=f"limits.{kind}")
        self._count(kind)

    def exhausted(self, why: str) -> None:
        """Tells that no connection can be taken for now."""
        if self._exhaustion_logged.wait_s("") == 0.0:
            self._log.error("no_connection_can_be_taken", problem=why)
        self._count("descriptors")

    def handshake_failed(self, handshake: Handshake, problem: str, address: str) -> None:
        """Tells of a handshake that has failed.

        Args:
            handshake: what it was.
            problem: the same in words.
            address: from where.
        """
        if self._handshake is not None:
            self._handshake(handshake)
        if self._refusals_logged.wait_s(f"{handshake} {address}") == 0.0:
            self._log.warning(
                "handshake_failed", reason=str(handshake), problem=problem, address=address
            )
