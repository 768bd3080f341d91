"""Records of jobs, for tests of what a dashboard makes of them."""

from collections.abc import Iterator

from grms.site.model import records
from grms.site.model.jobs import GuestRef, Load, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import Record
from grms.site.monitoring.dashboard_events import Decided, Noted, PartnerFigures, Sampled
from grms.site.monitoring.dashboard_state import DashboardState

OFFER = OfferId(0xABC, 7)


def partner(name: str = "away", **more: object) -> PartnerFigures:
    """Returns figures of a partner."""
    values = {
        "processors": 8,
        "state": "reachable",
        "problem": "",
        "asked": 5,
        "accepted": 3,
        "declined": 1,
        "undecided": 1,
        "open": 2,
        "ended": 1,
        "awrt_s": 12.5,
        "guests_offered": 4,
        "guests_accepted": 3,
        "guests_declined": 1,
        "guests_open": 1,
        "latency_s": 0.01,
        "latency_max_s": 0.2,
        "last_heard_s": 9.0,
        **more,
    }
    return PartnerFigures(name=name, **values)  # type: ignore[arg-type]  # of a test's own


def sampled(time: float, free: int = 1, waiting: int = 3) -> Sampled:
    """Returns a sample of a site of four processors."""
    return Sampled(time, Load(4, free, waiting), 2, 3, draining=False, partners=(partner(),))


def received(job: int, time: float = 0.0, name: str = "", user: str = "anna") -> Record:
    """Returns the arrival of a job of two processors."""
    return records.JobReceived(time, job, user, f"key {job}", name, Request(2, 60.0), b"")


def delegated_story(job: int = 1) -> Iterator[Record]:
    """Yields the records of a job that one partner declines and another one runs."""
    yield received(job, 10.0, "render")
    yield records.JobOffered(11.0, job, "away", 1)
    yield records.JobDeclined(12.0, job)
    yield records.JobOffered(12.0, job, "beyond", 1)
    yield records.JobDelegated(13.0, job)
    yield records.JobEnded(50.0, job, Outcome.COMPLETED, 48.0, 30.0, "")


def home_story(job: int = 2) -> Iterator[Record]:
    """Yields the records of a job that fails at home."""
    yield received(job, 20.0)
    yield records.JobKept(21.0, job)
    yield records.JobStarted(22.0, job, 22.0)
    yield records.JobEnded(30.0, job, Outcome.FAILED, 29.0, 7.0, "exit 3")


def guest_story() -> Iterator[Record]:
    """Yields the records of a partner's job."""
    yield records.GuestAccepted(5.0, GuestRef("away", OFFER), 1, Request(1, 30.0), b"")
    yield records.JobStarted(6.0, GuestRef("away", OFFER), 6.0)
    yield records.JobEnded(16.0, GuestRef("away", OFFER), Outcome.COMPLETED, 16.0, 10.0, "")
    yield records.GuestAcknowledged(17.0, GuestRef("away", OFFER))


def told(ledger: DashboardState, *found: Record, decided: Decided | None = None) -> None:
    """Hands records over; a decision rests on what is given."""
    for record in found:
        decides = isinstance(record, records.JobOffered | records.JobKept)
        ledger.take(Noted(record, decided if decides else None))
