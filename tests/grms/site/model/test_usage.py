"""What jobs have used: months, weights, records and sums."""

import math
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from grms.simulation.fault_run import Trial
from grms.site.model import records, usage
from grms.site.model.jobs import Exit, GuestRef, OfferId, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import Record
from grms.site.model.settings import PartnerSettings, SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.model.usage import (
    MONTHS_KEPT,
    OTHERS,
    Committed,
    UsageBook,
    UsageRecord,
    Used,
    Weights,
    cost,
    held_time,
    month_of,
    total,
)
from grms.site.scheduler.state import SiteState
from lrms_sim.workload.requests import Gpus, Memory
from lrms_sim.workload.requests import Request as Needs
from tests.examples import runs
from tests.grms.site.accounting.stories import at_home, at_partner, guest, received
from tests.grms.site.jobs import home_job

SETTINGS = SiteSettings("home", 8, partners=(PartnerSettings("near", 8), PartnerSettings("far", 8)))
NEW_YEAR = 1_767_225_600.0
"""The first second of 2026."""


def told(
    story: list[Record], settings: SiteSettings = SETTINGS
) -> tuple[list[UsageRecord], UsageBook]:
    """Returns the usage records of a journal, and the sums in the memory that it makes."""
    found: list[UsageRecord] = []
    memory = StateTables(settings)
    memory.on_usage = found.append
    for record in story:
        memory.apply(record)
    return found, memory.usage


@pytest.mark.parametrize(
    ("time", "month"),
    [
        (0.0, "1970-01"),
        (NEW_YEAR - 0.001, "2025-12"),
        (NEW_YEAR, "2026-01"),
        (NEW_YEAR + 31 * 86400 - 1, "2026-01"),
        (NEW_YEAR + 31 * 86400, "2026-02"),
        (1_709_164_800.0, "2024-02"),  # a 29 February
        (-5.0, "1970-01"),
        (1e300, "9998-12"),
    ],
)
def test_a_month_is_one_of_utc(time: float, month: str) -> None:
    """Whatever zone the machine is in; times that no calendar has are in the first or last."""
    assert month_of(time) == month


def test_weights_count_what_a_job_has() -> None:
    """Processors alone by default; of memory each GiB."""
    needs = Needs(4, 2, memory=Memory(512, "core"), gpus=Gpus(1, "task"), wall_time=100.0)
    used = Used.by(Request.of(needs), 10.0)
    assert used == Used(1, 80.0, 40_960.0, 40.0)
    assert used.cost(Weights()) == 80.0
    assert used.cost(Weights(0.0, 1.0, 0.0)) == 40.0
    assert used.cost(Weights(1.0, 0.5, 20.0)) == 80.0 + 20.0 + 800.0
    assert Weights().plain
    assert not Weights(gpus=1.0).plain
    for wrong in ((0.0, 0.0, 0.0), (-1.0, 1.0, 0.0), (1.0, math.nan, 0.0), (1.0, 0.0, math.inf)):
        with pytest.raises(ValueError, match="weights are"):
            Weights(*wrong)


def test_a_sum_has_each_of_its_parts() -> None:
    """Fields that all differ: none is left out, subtracted, or taken for another."""
    assert Used(1, 20.0, 300.0, 4000.0).and_(Used(5, 60.0, 700.0, 8000.0)) == Used(
        6, 80.0, 1000.0, 12_000.0
    )
    needs = Request.of(Needs(4, 2, memory=Memory(512, "core"), gpus=Gpus(1, "task"), wall_time=9.0))
    open_ones = Committed()
    open_ones.add(needs)
    open_ones.add(Request(3, 100.0))
    assert open_ones.used == Used(2, 72.0 + 300.0, 36_864.0, 36.0)
    open_ones.add(needs, -1)
    assert open_ones == Committed(1, 300_000)


@pytest.mark.parametrize(
    ("changes", "now", "held"),
    [
        ({}, 50.0, math.nan),
        ({"start_time": 20.0, "state": JobState.RUNNING}, 50.0, 30.0),
        ({"start_time": 20.0, "state": JobState.RUNNING}, 15.0, 0.0),  # by a clock that is behind
        ({"start_time": 20.0, "state": JobState.ENDED, "run_time": 12.0}, 50.0, 12.0),
    ],
)
def test_a_job_holds_its_processors_from_its_start(
    changes: dict[str, Any], now: float, held: float
) -> None:
    """As far as is known: up to now while it runs, and then as long as it has run."""
    job = home_job(Request(4, 100.0), **changes)
    assert held_time(job, now) == pytest.approx(held, nan_ok=True)
    assert cost(job, now, Weights(2.0)) == pytest.approx(8 * held, nan_ok=True)


def test_every_job_that_ends_leaves_a_record() -> None:
    """Own ones, wherever they ran or did not, and partners'."""
    exit_3 = records.JobExited(0.0, GuestRef("near", OfferId(1, 5)), Exit(3))
    story = [
        *at_home(1, 10.0, 20.0, 30.0, 4),
        *at_partner(2, 10.0, 40.0, 60.0, 2),
        *guest(5, 10.0, 20.0, 40.0, 8)[:2],
        records.GuestNamed(25.0, GuestRef("near", OfferId(1, 5)), "0f" * 16),
        exit_3,
        guest(5, 10.0, 20.0, 40.0, 8)[2],
        received(3, 50.0),
        records.JobEnded(60.0, 3, Outcome.CANCELLED, 60.0, 0.0, ""),
    ]
    found, sums = told(story)
    assert [(one.job_id, one.home, one.user, one.site) for one in found] == [
        ("home-1", "home", "anna", "home"),
        ("home-2", "home", "anna", "near"),
        ("near/1/5", "near", "0f" * 16, "home"),
        ("home-3", "home", "anna", ""),
    ]
    assert [one.used.processor_s for one in found] == [120.0, 120.0, 320.0, 0.0]
    assert [one.start_time for one in found] == [20.0, 40.0, 20.0, None]
    assert [one.offer for one in found] == ["", "home/1/2", "near/1/5", ""]
    assert [one.exit_code for one in found] == [None, None, 3, None]
    assert found[3].outcome is Outcome.CANCELLED
    # Who asks for no memory and no GPUs has had none.
    assert {(one.memory_mib, one.gpus) for one in found} == {(0, 0)}
    assert sums.taken == {"1970-01": {("near", "0f" * 16): Used(1, 320.0)}}
    assert sums.given == {"1970-01": {("near", "anna"): Used(1, 120.0)}}


def test_an_element_is_recorded_under_its_name() -> None:
    """And with the key that it has, though a partner's lease has changed that."""
    needs = Needs(2, memory=Memory(100, "node"), account="physics", wall_time=100.0)
    array = records.ArrayReceived(1.0, 1, "4,6", "ann", "k", "sweep", Request.of(needs), b"")
    element = records.JobReceived(
        1.0, 2, "ann", "k", "sweep", Request.of(needs), b"", array=1, index=6
    )
    first = changed(element, job=1, index=4)
    ended = records.JobEnded(9.0, 2, Outcome.CANCELLED, 9.0, 0.0, "")
    (one,), _ = told([array, first, element, ended])
    assert (one.job_id, one.name, one.account, one.memory_mib) == (
        "home-1_6",
        "sweep",
        "physics",
        100,
    )


def test_a_job_belongs_to_the_month_in_which_it_ended() -> None:
    """With all that it has used, however long it ran before, and whenever that was heard."""
    begin, end = NEW_YEAR - 3 * 86400.0, NEW_YEAR + 86400.0
    (one,), sums = told(guest(1, begin, begin, end - begin, 2))
    assert month_of(one.end_time) == "2026-01"
    assert total(sums.taken, "2026-01", partner="near").processor_s == 8 * 86400.0
    assert total(sums.taken, "2025-12") == Used()
    late = [*at_partner(1, 0.0, NEW_YEAR - 100.0, 50.0)]
    late[-1] = records.JobEnded(NEW_YEAR + 9e5, 1, Outcome.COMPLETED, NEW_YEAR - 50.0, 50.0, "")
    _, sums = told(late)
    assert total(sums.given, "2025-12", partner="near", user="anna").jobs == 1


def test_sums_of_old_months_go() -> None:
    """The last ones stay; what is heard of an older one then is not counted."""
    book = UsageBook()
    for month in range(12):
        book.take("near", "x", NEW_YEAR + month * 31 * 86400.0, Used(1, 1.0))
    assert len(book.taken) == MONTHS_KEPT
    kept = book.rows()
    book.take("near", "x", NEW_YEAR, Used(1, 1.0))
    assert book.rows() == kept
    other = UsageBook()
    other.restore(kept)
    assert other == book


def test_of_very_many_users_most_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partner that names another for each job makes nobody remember more."""
    assert usage.USERS_MAX == 10_000
    monkeypatch.setattr(usage, "USERS_MAX", users := 500)
    book = UsageBook()
    for number in range(users + 5):
        book.take("near", f"u{number}", 0.0, Used(1, 1.0))
    book.take("far", "u", 0.0, Used(1, 1.0))
    sums = book.taken["1970-01"]
    assert len(sums) == users + 2
    assert sums["near", OTHERS].jobs == 5
    assert total(book.taken, "1970-01").jobs == users + 6


class Heard:
    """Makes the states of sites, and hears of what jobs have used.

    Attributes:
        found: by site and key. What a crash has taken back happens again, and is then what counts.
    """

    def __init__(self) -> None:
        self.found: dict[str, dict[str, UsageRecord]] = {}

    def __call__(self, settings: SiteSettings, records: Any = ()) -> SiteState:
        """Returns a state."""
        state, of_site = SiteState(settings, records), self.found.setdefault(settings.name, {})

        def keep(record: UsageRecord) -> None:
            of_site[record.key] = record

        state.memory.on_usage = keep
        return state


@pytest.mark.parametrize("on_lost", ["wait", "resubmit"])
def test_records_add_up_to_what_the_books_say(on_lost: Literal["wait", "resubmit"]) -> None:
    """In runs with faults, restarts and compaction: the sums of the records are those of the accounts."""
    ran = 0
    for seed in range(runs(40, 400)):
        heard = Heard()
        trial = Trial(seed, heard, None, on_lost)
        trial.run()
        for name, site in trial.sites.items():
            if name == trial._byzantine:  # the test knows what the trial knows
                continue  # its journal may have been put back: what it had known then is gone
            memory = SiteState(site.settings, site.journal).memory
            ended = heard.found[name].values()
            own = [one for one in ended if one.home == name]
            assert memory.own_work == pytest.approx(sum(one.used.processor_s for one in own))
            for partner, book in memory.books.items():
                guests = [one for one in ended if one.home == partner]
                there = [one for one in own if one.site == partner and one.offer]
                open_here = sum(
                    each.request.processors * each.request.requested_time
                    for each in book.guests.values()
                    if each.outcome is None
                )
                here = sum(one.used.processor_s for one in guests)
                assert book.taken == pytest.approx(open_here + here)
                assert book.given == pytest.approx(sum(one.used.processor_s for one in there))
                for months, those in ((memory.usage.taken, guests), (memory.usage.given, there)):
                    counted = total(months, "1970-01", partner=partner)
                    assert counted.jobs == sum(one.run_time > 0 for one in those)
                    assert counted.processor_s == pytest.approx(
                        sum(one.used.processor_s for one in those)
                    )
                ran += len(there)
    assert ran > 10


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["near", "far"]),
            st.sampled_from("abc"),
            st.integers(0, 200),
            st.floats(0.0, 1e6),
        ),
        max_size=40,
    ),
    st.integers(0, 40),
)
def test_sums_that_are_put_back_go_on(jobs: list[tuple[str, str, int, float]], cut: int) -> None:
    """A journal that was compacted anywhere leads to the same."""
    whole, part = UsageBook(), UsageBook()
    for place, (partner, user, day, work) in enumerate(jobs):
        if place == cut:
            part.restore(part.rows())
        for book in (whole, part):
            book.take(partner, user, day * 86400.0, Used(1, work, 2.0 * work, 3.0))
            book.give(partner, user, day * 43200.0, Used(2, work, 5.0, 7.0 * work))
    assert whole == part
