"""A clock that a test moves."""


class Clock:
    """Time that stands still until it is set.

    Args:
        now: its first moment, seconds.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Returns the time, seconds."""
        return self.now
