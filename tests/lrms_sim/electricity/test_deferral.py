import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrms_sim.electricity.power import DeferralRule, EasyDeferred
from lrms_sim.electricity.series import Series
from lrms_sim.electricity.synthetic import PRICE
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.lublin import generate

HOUR = 3600.0


def jobs(*rows: tuple[float, int, float]) -> JobTable:
    """Returns jobs of (hour of submission, processors, hours)."""
    submit, width, length = zip(*rows, strict=True)
    return JobTable.from_frame(
        {
            "submit_time": HOUR * np.array(submit),
            "processors": np.array(width),
            "run_time": HOUR * np.array(length),
            "requested_time": HOUR * np.array(length),
        }
    )


CHEAP_AT_THREE = Series(HOUR * np.array([0.0, 3, 5, 24]), np.array([10.0, 2, 10, 10]), 48 * HOUR)


def test_a_job_waits_for_the_cheap_hour() -> None:
    """It starts when its whole request costs least, as early as that is so, and not beyond the bound."""
    table = jobs((0, 4, 2), (1, 4, 1), (4, 4, 1), (10, 4, 1))
    found = simulate(table, 16, EasyDeferred(CHEAP_AT_THREE, DeferralRule(6 * HOUR)))
    assert (found.start_time / HOUR).tolist() == [3, 3, 4, 10]
    near = simulate(table, 16, EasyDeferred(CHEAP_AT_THREE, DeferralRule(2 * HOUR)))
    assert (near.start_time / HOUR).tolist() == [2, 3, 4, 10]


def test_a_saving_that_is_too_small() -> None:
    """A delay has to save its part of the cost."""
    table = jobs((0, 1, 10))
    rule = DeferralRule(6 * HOUR, saving=0.2)
    assert simulate(table, 1, EasyDeferred(CHEAP_AT_THREE, rule)).start_time[0] == 0
    rule = DeferralRule(6 * HOUR, saving=0.1)
    # From 0 h on the job has both cheap hours already.
    assert simulate(table, 1, EasyDeferred(CHEAP_AT_THREE, rule)).start_time[0] == 0
    # What is looked at is the first two hours alone.
    rule = DeferralRule(6 * HOUR, saving=0.2, look_ahead=2 * HOUR)
    assert simulate(table, 1, EasyDeferred(CHEAP_AT_THREE, rule)).start_time[0] == 3 * HOUR


def test_jobs_that_are_planned_hold_nothing() -> None:
    """Others run meanwhile; a planned job takes its place by order of arrival when its time has come."""
    table = jobs((0, 4, 1), (2.5, 4, 0.25), (2.75, 4, 4), (2.8, 4, 2))
    found = simulate(table, 4, EasyDeferred(CHEAP_AT_THREE, DeferralRule(0.5 * HOUR)))
    # The third has both cheap hours as it comes, and nobody keeps it a place.
    assert (found.start_time / HOUR).tolist() == [0, 6.75, 2.75, 7]


@pytest.mark.parametrize(
    "rate", [Series.constant(5.0), Series.constant(-5.0), Series.constant(0.0)]
)
def test_a_flat_rate_is_easy(rate: Series) -> None:
    """Where nothing can be saved, no job is delayed: the schedule is that of EASY to the bit."""
    table = generate(jobs=600, processors=64, seed=3)
    easy = simulate(table, 64, Easy())
    assert (
        simulate(table, 64, EasyDeferred(rate, DeferralRule(saving=0))).start_time.tolist()
        == easy.start_time.tolist()
    )


def test_no_delay_is_easy() -> None:
    """With a bound of 0 the schedule is that of EASY to the bit."""
    table = generate(jobs=600, processors=64, seed=4)
    prices = PRICE.series(30, seed=1)
    found = simulate(table, 64, EasyDeferred(prices, DeferralRule(0.0)))
    assert found.start_time.tolist() == simulate(table, 64, Easy()).start_time.tolist()


def test_deferring_is_cheaper() -> None:
    """On a machine with room, jobs that wait for cheap hours cost less, and wait at most for the bound there."""
    table = generate(jobs=400, processors=64, seed=5)
    prices = PRICE.series(60, seed=1)
    wide = simulate(table, 6400, EasyDeferred(prices, DeferralRule(8 * HOUR)))
    cost = prices.integral(wide.start_time, wide.end_time) * table.processors
    now = prices.integral(table.submit_time, table.submit_time + table.run_time) * table.processors
    assert cost.sum() < 0.95 * now.sum()
    assert wide.wait_time.max() <= 8 * HOUR


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(-100, 100)), min_size=1, max_size=6),
    st.integers(-5_000, 20_000),
    st.integers(1, 8_000),
    st.integers(0, 8_000),
)
def test_planned_start_is_the_best(
    steps: list[tuple[int, int]], now: int, request: int, delay: int
) -> None:
    """No start on a grid is cheaper than the planned one, which no earlier one equals."""
    edges = np.cumsum([0, *(length for length, _ in steps)]).astype(np.float64)
    rate = Series(edges[:-1], np.array([value for _, value in steps], np.float64), float(edges[-1]))
    rule = DeferralRule(float(delay), saving=0.0, look_ahead=6_000.0)
    scheduler = EasyDeferred(rate, rule).scheduler()
    found = scheduler.planned_start(float(now), float(now + delay), float(request))
    length = min(request, 6_000)
    starts = now + np.linspace(0, delay, 200)
    costs = rate.integral(starts, starts + length)
    planned = float(rate.integral(found, found + length))
    noise = 1e-6 * (1 + rate.scale * length)
    assert now <= found <= now + delay
    assert planned <= costs.min() + noise
    assert (costs[starts < found - 1] > planned - noise).all()
    assert scheduler.cost(found, float(request)) == pytest.approx(planned, abs=noise)


@pytest.mark.parametrize("seed", range(20))
def test_a_machine_foretells_what_it_does(seed: int) -> None:
    """The answer whether a job would start now is what its submission shows; jobs leave the queue unstarted."""
    rng = np.random.default_rng(seed)
    rate = PRICE.series(3, seed=seed)
    machine = Machine(16, EasyDeferred(rate, DeferralRule(4 * HOUR)))
    now, answers, left = 0.0, [], set()
    for number in range(60):
        now += float(rng.exponential(HOUR))
        width, hours = int(rng.integers(1, 13)), float(rng.exponential(3.0))
        machine.advance(now)
        answers.append(machine.starts_now(processors=width, requested_time=hours * HOUR))
        machine.submit(
            submit_time=now,
            processors=width,
            requested_time=hours * HOUR,
            run_time=0.7 * hours * HOUR,
        )
        machine.advance(now)
        assert (machine.start_time[number] == now) == answers[-1]
        row = int(rng.integers(0, number + 1))
        if rng.random() < 0.2 and machine.withdraw(row):
            left.add(row)
    machine.advance(np.inf)
    started = set(np.flatnonzero(np.isfinite(machine.start_time)).tolist())
    assert started == set(range(60)) - left
    assert left
    assert len(set(answers)) == 2


@pytest.mark.parametrize(
    "wrong", [{"delay_max": -1}, {"saving": 2}, {"look_ahead": 0}, {"saving": np.nan}]
)
def test_no_rule(wrong: dict[str, float]) -> None:
    """Numbers out of their bounds are refused."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DeferralRule(**wrong)
