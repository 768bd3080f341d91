"""One replay: whose days, what is late, and that it repeats itself."""

import pickle
from dataclasses import replace

import pytest

from grms.federation.federation import Federation
from lrms_sim.workload.jobs import SECONDS_PER_DAY
from scenarios.studies.questions_and_delays.replays import (
    ALL,
    BLOCKS,
    FIRST_BLOCKS,
    HALF_YEAR,
    LOGS,
    PERIOD,
    TEN_DAYS,
    Case,
    Replays,
    blocks,
)
from tests.scenarios.studies.questions_and_delays.logs import small_logs

SOME = Case(TEN_DAYS, "easy", rounds=False, asked=2, draw=2)


def test_draws_have_days_of_their_own() -> None:
    """Three spans of a log that do not overlap; the first draw is given, the others are drawn alike."""
    for log in LOGS:
        assert blocks(log, 1) == FIRST_BLOCKS
        for draw in range(2, 9):
            chosen = blocks(log, draw)
            assert chosen == blocks(log, draw)
            assert len(set(chosen)) == 3
            assert 0 <= min(chosen) <= max(chosen) < BLOCKS
    assert len({blocks(log, draw) for log in LOGS for draw in range(2, 9)}) > 15


def test_sites_have_one_time() -> None:
    """Each begins with its span; a half year is moved by whole days in all draws but the first."""
    replays = Replays(small_logs())
    sites = replays.sites(SOME)
    assert len(sites) == 9
    assert all(site.jobs.submit_time.max() < 10 * SECONDS_PER_DAY for site in sites)
    assert {site.partners_asked for site in sites} == {2}
    assert {site.partners_asked for site in replays.sites(replace(SOME, asked=ALL))} == {None}
    again = replays.sites(replace(SOME, rounds=True))
    assert {getattr(site.reoffer, "period", None) for site in again} == {PERIOD}
    half = Case(HALF_YEAR, "fcfs", rounds=False, asked=ALL, draw=1)
    first, second = replays.sites(half), replays.sites(replace(half, draw=2))
    assert [site.name for site in first] == [f"{log}-{day}" for log in LOGS for day in (20, 179)]
    shifts = {
        float(other.jobs.submit_time[0] - one.jobs.submit_time[0]) / SECONDS_PER_DAY
        for one, other in zip(first, second, strict=True)
    }
    assert len(shifts) > 2
    assert all(shift == pytest.approx(round(shift)) and 0 <= shift <= 13 for shift in shifts)


def test_without_delay_the_kernel_replays() -> None:
    """What is counted is of its schedule."""
    replays = Replays(small_logs())
    found = replays(SOME)
    expected = Federation(replays.sites(SOME)).exchange()
    assert found["offers"] == sum(expected.offers) > 0
    assert found["jobs"] == len(expected.schedule.jobs)
    assert 0 < found["moved"] <= found["jobs"]
    assert len(found["gain"]) == 9


@pytest.mark.parametrize(
    "case",
    [
        replace(SOME, delay=60.0),
        replace(SOME, delay=5.0, late=0.5, extra=3000.0),
        replace(SOME, delay=5.0, apart=7200.0),
        replace(SOME, delay=60.0, rounds=True),
    ],
)
def test_what_is_late_is_drawn_alike_again(case: Case) -> None:
    """In another process too; and it is another replay than the one without delay."""
    assert not case.at_once
    replays = Replays(small_logs())
    found = replays(case)
    assert found == pickle.loads(pickle.dumps(replays))(case)  # noqa: S301  # our own
    assert found != replays(replace(SOME, rounds=case.rounds))


def test_half_the_answers_later_by_nothing_is_at_once() -> None:
    """And so is no answer later by much."""
    assert replace(SOME, late=0.5).at_once
    assert replace(SOME, extra=300.0).at_once
    assert SOME.key != replace(SOME, draw=3).key
