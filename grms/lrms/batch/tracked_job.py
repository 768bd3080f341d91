"""A tracked job: what this site wants of it, and what polls have shown. Pure data."""

import enum
from dataclasses import dataclass

from grms.lrms.base import LrmsEnd, LrmsPhase
from grms.lrms.batch.queue_snapshot import JobRow


class Want(enum.Enum):
    """What this site wants of a job.

    NOTHING: unknown; the job was there before this process, and stays held until it is looked up (`looked_up`).
    HELD: wait for a release.
    RUN: run.
    GONE: end.
    OVER: not run again, as it has begun; a present run may continue.
    """

    NOTHING = "nothing"
    HELD = "held"
    RUN = "run"
    GONE = "gone"
    OVER = "over"


@dataclass(slots=True)
class TrackedJob:
    """A job that is followed.

    Attributes:
        number: the batch system's id; empty until acknowledged.
        acknowledged_at: when, seconds.
        row: of the last poll that showed it.
        shown_s: how long polls have shown it, in steps of at most `STEP_S`.
        start_time: as emitted; `None` if none was, or it waits again.
        phase: of a started job, as emitted.
        accepted: whether `Accepted` was emitted.
        restarted: whether `Requeued` was emitted since its last start.
        released_at: when a release was acknowledged, seconds; `None` if none was.
        left_hold: a poll has shown it not held.
        hold_stays: somebody else holds it.
        refused: why the batch system does not lift its submission hold; empty if it was not asked, or has done it.
        refused_s: how long that has been so, in steps of at most `STEP_S`.
        let_go: this process was about to hold it, to let it go.
        looked_up: the site has asked for it, and wants it here.
        end: as emitted.
        maybe_released: a release was attempted, and may have been carried out.
        missing: consecutive polls that have not shown it.
        missing_since: start of the first of them, seconds.
        missing_s: how long that is, in steps of at most `STEP_S`.
        pause: polls between questions about it, after the first.
        ask_in: polls until the next question.
        asked: the last poll after which it was asked about; 0 if none.
        doubt: why its state is unknown, as last emitted; empty if it is known.
        doubt_at: when that began, seconds.
        doubt_s: how long that is, in steps of at most `STEP_S`.
        forgotten: it was recorded that the batch system forgot its run.
        fenced: it was recorded that a second run was fenced.
        ran_again: recorded runs that were not ordered.
        came_back: it was recorded that it reappeared after its end.
        hindered: what it waits for other than room, as emitted.
        evicted: this site has ended it for another job, or was about to.
    """

    key: str
    want: Want
    number: str = ""
    acknowledged_at: float = 0.0
    row: JobRow | None = None
    shown_s: float = 0.0
    start_time: float | None = None
    phase: LrmsPhase = LrmsPhase.RUNNING
    accepted: bool = False
    restarted: bool = False
    released_at: float | None = None
    left_hold: bool = False
    hold_stays: bool = False
    refused: str = ""
    refused_s: float = 0.0
    let_go: bool = False
    looked_up: bool = False
    end: LrmsEnd | None = None
    maybe_released: bool = False
    missing: int = 0
    missing_since: float = 0.0
    missing_s: float = 0.0
    pause: int = 1
    ask_in: int = 0
    asked: int = 0
    doubt: str = ""
    doubt_at: float = 0.0
    doubt_s: float = 0.0
    forgotten: bool = False
    fenced: bool = False
    ran_again: int = 0
    came_back: bool = False
    hindered: str = ""
    evicted: bool = False

    def is_deferred(self, row: JobRow) -> bool:
        """Returns whether it waits, by a row of it, as somebody has told the batch system; after a restart no hold says whose it is.

        What the site has not asked for is over, or elsewhere: nobody waits for it, and it would run a second time.
        """
        if not (self.want is Want.RUN or self.looked_up):
            return False
        held = row.phase is LrmsPhase.HELD and self.left_hold and not self.let_go
        return row.deferred or held

    @property
    def is_unwanted(self) -> bool:
        """Whether it is held, and the site has not asked for it: for the site it is over, or elsewhere."""
        if self.row is None or self.row.phase is not LrmsPhase.HELD:
            return False
        return self.want is Want.HELD or (self.want is Want.NOTHING and not self.looked_up)
