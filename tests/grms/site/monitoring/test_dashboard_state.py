"""What a dashboard remembers: stories of jobs from records, with a bound on everything."""

import pytest

from grms.site.model import records
from grms.site.model.lifecycle import Outcome
from grms.site.monitoring import dashboard_state as module
from grms.site.monitoring.dashboard_events import CertificateOutput
from grms.site.monitoring.dashboard_state import FAR_EVERY, STEPS_MAX, DashboardState, guest_key
from tests.grms.site.monitoring.notes_of_records import (
    OFFER,
    delegated_story,
    guest_story,
    home_story,
    partner,
    received,
    sampled,
    told,
)


def test_a_job_that_is_given_away_has_its_story() -> None:
    """Who was asked, what was answered, and where it ran; its start follows from its end."""
    ledger = DashboardState("home")
    told(ledger, *delegated_story())
    (entry,) = ledger.jobs.values()
    assert [(step.kind, step.partner) for step in entry.steps] == [
        ("received", ""),
        ("asked", "away"),
        ("declined", "away"),
        ("asked", "beyond"),
        ("accepted", "beyond"),
        ("ended", ""),
    ]
    assert (entry.place, entry.state, entry.outcome) == ("beyond", "ended", "completed")
    assert (entry.start_time, entry.end_time) == (18.0, 48.0)


def test_a_job_at_home_has_its_story() -> None:
    """It waits, runs and fails; the reason is kept."""
    ledger = DashboardState("home")
    told(ledger, *home_story())
    (entry,) = ledger.jobs.values()
    assert [step.kind for step in entry.steps] == ["received", "kept", "started", "ended"]
    assert entry.steps[-1].words == "exit 3"
    assert (entry.place, entry.start_time, entry.end_time) == ("home", 22.0, 29.0)


def test_a_job_that_leaves_the_queue_has_its_story() -> None:
    """That it was asked for in vain, round after round, is none of its steps."""
    ledger = DashboardState("home")
    told(
        ledger,
        received(1),
        records.JobKept(12.0, 1),
        records.JobReoffered(900.0, 1, "away", 1),
        records.JobReofferEnded(900.0, 1, "away", 1, settled=True),
        records.JobReoffered(1800.0, 1, "beyond", 1),
        records.JobLeaving(1800.0, 1),
        records.JobLeft(1801.0, 1),
        records.JobDelegated(1802.0, 1),
    )
    (entry,) = ledger.jobs.values()
    assert [(step.kind, step.partner) for step in entry.steps] == [
        ("received", ""),
        ("kept", ""),
        ("left", "beyond"),
        ("accepted", "beyond"),
    ]
    assert (entry.place, entry.state) == ("beyond", "delegated")


def test_a_partners_job_is_known_by_its_offer() -> None:
    """Of its user the site knows nothing."""
    ledger = DashboardState("home")
    told(ledger, *guest_story())
    entry = ledger.jobs[guest_key("away", OFFER.epoch, OFFER.number)]
    assert [step.kind for step in entry.steps] == ["taken", "started", "ended", "reported"]
    assert (entry.home, entry.place, entry.user) == ("away", "home", "")


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (records.JobTakenBack(14.0, 1, "olga"), "taken back"),
        (records.JobResubmitted(14.0, 1, "olga"), "resubmitted"),
        (records.JobWrittenOff(14.0, 1, "olga"), "written off"),
        (records.JobCancelRequested(14.0, 1), "cancel asked"),
        (records.JobReturned(14.0, 1), "returned"),
        (records.JobSentHome(14.0, 1, "away", 4.0), "sent home"),
        (records.StateCame(14.0, 1, "away", 4.0, b""), "state came"),
        (records.StateMissed(14.0, 1, "away", 4.0, "it has none"), "state missed"),
        (records.JobAbandoned(14.0, 1), "given up"),
    ],
)
def test_what_people_decide_is_a_step(record: records.Record, kind: str) -> None:
    """Each is told, and one that is decided anew is nowhere until then."""
    ledger = DashboardState("home")
    told(ledger, *list(delegated_story())[:-1], record)
    (entry,) = ledger.jobs.values()
    assert entry.steps[-1].kind == kind
    assert (entry.place == "") == (kind in {"returned", "sent home", "given up"})


def test_what_is_not_known_changes_nothing() -> None:
    """Its beginning was forgotten, or not read."""
    ledger = DashboardState("home")
    told(ledger, records.JobEnded(1.0, 5, Outcome.COMPLETED, 1.0, 1.0, ""))
    told(ledger, *list(guest_story())[1:])
    told(ledger, records.PartnerFaulted(1.0, "away", "it lied"))
    assert not ledger.jobs
    assert ledger.revision == 0


def test_the_job_that_changed_longest_ago_is_forgotten() -> None:
    """And every change has its number."""
    ledger = DashboardState("home", jobs_max=2)
    told(ledger, received(1), received(2), records.JobKept(1.0, 1), received(3))
    assert list(ledger.jobs) == ["home-1", "home-3"]
    assert [entry.revision for entry in ledger.jobs.values()] == [3, 4]


def test_a_long_story_keeps_beginning_and_end() -> None:
    """A job that is asked for for ever takes no more room for ever."""
    ledger = DashboardState("home")
    told(ledger, received(1))
    for number in range(STEPS_MAX):
        told(ledger, records.JobOffered(2.0, 1, "away", number), records.JobDeclined(3.0, 1))
    told(ledger, records.JobKept(9.0, 1))
    (entry,) = ledger.jobs.values()
    assert len(entry.steps) == STEPS_MAX
    assert (entry.steps[0].kind, entry.steps[-1].kind) == ("received", "kept")


def test_samples_are_kept_thickly_and_then_thinly() -> None:
    """The far past has one of many; partners are those of the last one."""
    ledger = DashboardState("home")
    for second in range(2 * FAR_EVERY + 1):
        ledger.take(sampled(float(second)))
    assert [each.time for each in ledger.far] == [0.0, FAR_EVERY, 2.0 * FAR_EVERY]
    assert len(ledger.near) == 2 * FAR_EVERY + 1
    assert ledger.partners == (partner(),)
    assert all(each.partners == () for each in ledger.near)


def test_certificates_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has one of the authority's can show it."""
    monkeypatch.setattr(module, "CERTIFICATES_MAX", 1)
    ledger = DashboardState("home")
    for name, pem in (("away", b"1"), ("other", b"2"), ("away", b"3")):
        ledger.take(CertificateOutput(name, pem))
    assert ledger.certificates == {"away": b"3"}


def test_lost_notes_are_told() -> None:
    """Stories may then lack their beginning."""
    ledger = DashboardState("home")
    ledger.lose(0)
    assert not ledger.partial
    ledger.lose(3)
    assert (ledger.partial, ledger.lost) == (True, 3)
