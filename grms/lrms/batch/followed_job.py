"""A job that is followed in a batch system: what this site wants of it, and what looks have shown. Pure data."""

import enum
from dataclasses import dataclass

from grms.lrms.batch.table import JobRow
from grms.lrms.port import LrmsEnd


class Want(enum.Enum):
    """What this site wants of a job.

    NOTHING: nobody has said; the job was there before this process.
    HELD: that it waits for a release.
    RUN: that it runs.
    GONE: that it ends.
    OVER: that it does not run once more, as it has begun; what runs may run.
    """

    NOTHING = "nothing"
    HELD = "held"
    RUN = "run"
    GONE = "gone"
    OVER = "over"


@dataclass(slots=True)
class FollowedJob:
    """A job that is followed.

    Attributes:
        key: of the job.
        want: what this site wants of it.
        number: the batch system's id; empty while it is not known whether it was taken.
        acknowledged_at: when that was, seconds.
        row: what the last look that showed it has shown.
        shown_s: for how long looks have shown it, by steps of no more than `STEP_S`.
        start_time: that was told; None where none was, or it waits again.
        accepted: whether that was told.
        released_at: when a release was acknowledged, seconds; None where none was.
        left_hold: a look has shown it otherwise than held.
        hold_stays: somebody else holds it.
        end: how it ended, once told.
        maybe_released: a release was tried, and may have been carried out.
        missing: looks one after the other that have not shown it.
        missing_since: when the first of them began, seconds.
        missing_s: how long that is, by steps of no more than `STEP_S`.
        pause: looks after which it is asked about again, once it was.
        ask_in: looks until then.
        asked: the last look after which it was asked about; 0 where it was not.
        doubt: why it is not known where it stands, as told last; empty where it is.
        doubt_at: when that began, seconds.
        doubt_s: how long that is, by steps of no more than `STEP_S`.
        forgotten: that the batch system has forgotten its run was noticed.
        fenced: that a second run of it was turned away was noticed.
        ran_again: runs that nobody had ordered, as far as they were noticed.
        came_back: that it is there after its end was noticed.
        hindered: what it waits for, where that is no room, as was told.
    """

    key: str
    want: Want
    number: str = ""
    acknowledged_at: float = 0.0
    row: JobRow | None = None
    shown_s: float = 0.0
    start_time: float | None = None
    accepted: bool = False
    released_at: float | None = None
    left_hold: bool = False
    hold_stays: bool = False
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
