"""How long calls of a site are tried, and the pauses between attempts."""

import time
from typing import Final

from grms.daemon.backoff import Backoff, BackoffSettings

TIMEOUT_S: Final = 30.0
"""Default timeout of a call with its retries, seconds."""

PAUSES: Final = BackoffSettings(first_s=0.1, most_s=2.0)
"""Between attempts to reach the daemon."""


class Attempts:
    """The attempts of calls; `timeout_s` is the timeout of a call with its retries, seconds."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s

    def attempts(self, timeout_s: float | None = None) -> tuple[float, Backoff]:
        """Returns until when a call is tried (`time.monotonic`), and the pauses between attempts.

        `timeout_s` is what is left of the timeout, seconds; by default all of it.
        """
        left_s = self.timeout_s if timeout_s is None else timeout_s
        return time.monotonic() + left_s, Backoff(PAUSES)
