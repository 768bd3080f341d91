"""States of blocks, with Parsl's numbers."""

from dataclasses import dataclass
from enum import IntEnum


class JobState(IntEnum):
    """Where a block stands."""

    PENDING = 1
    RUNNING = 2
    CANCELLED = 3
    COMPLETED = 4
    FAILED = 5
    TIMEOUT = 6
    HELD = 7
    MISSING = 8
    SCALED_IN = 9


@dataclass
class JobStatus:
    """Where a block stands, and why."""

    state: JobState
    message: str | None = None
    exit_code: int | None = None
    stdout_path: str | None = None
    stderr_path: str | None = None

    @property
    def terminal(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state not in {JobState.PENDING, JobState.RUNNING, JobState.HELD}
