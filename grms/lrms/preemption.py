"""What a batch system can do with guests whose processors a job of the site's own users needs.

The port of that, beside `Lrms`, for adapters that can have guests ended (`LrmsJob.preemptible`). A guest that was ended ends
as PREEMPTED, once, like any other end. Three kinds of batch systems:

- The batch system itself ends guests when it starts another job on their processors, whether or not a daemon lives. What
  own jobs see is then its decision alone.
- It does not, and the daemon cancels guests when it sees that an own job waits for room. That holds only while the
  daemon lives.
- Neither: guests run to their ends.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable


class EndedBy(StrEnum):
    """Who ends a preemptible guest for another job."""

    BATCH_SYSTEM = "batch-system"
    DAEMON = "daemon"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Preemption:
    """What happens to preemptible guests.

    Attributes:
        ended_by: who ends them.
        grace_s: grace time: how long a guest goes on after it was chosen, seconds. Own jobs wait for it.
        kill_s: how long after SIGTERM it is killed, seconds.
        protects: some of them can be protected (`LrmsJob.protected`).
        why: why it is not the batch system that ends them, or protects none, for people; empty if there is nothing to say.
    """

    ended_by: EndedBy = EndedBy.NOBODY
    grace_s: float = 0.0
    kill_s: float = 0.0
    protects: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class FileLines:
    """Lines that an operator adds to a file, so that the batch system ends guests.

    Attributes:
        what: where in the file, or what for.
        then: a command, or what to do, that makes them count; empty if more follows for the same file.
    """

    file: str
    what: str
    lines: tuple[str, ...]
    then: str = ""


CANNOT: Final = Preemption(why="this kind of batch system ends no guests for other jobs")


@runtime_checkable
class WithPreemption(Protocol):
    """An LRMS that may end guests for other jobs."""

    @property
    def preemption(self) -> Preemption:
        """What happens to preemptible guests, as the last poll has it."""

    def protect(self, *, on: bool) -> None:
        """Protects the protected guests, all at once, or no longer.

        At first they are not. It returns at once; a poll brings it about, and again should the batch system forget it.
        A guest that has been chosen already is ended all the same.
        """


def preemption_of(lrms: object) -> Preemption:
    """Returns what an LRMS does with preemptible guests; of one without this port that it ends none."""
    return lrms.preemption if isinstance(lrms, WithPreemption) else CANNOT
