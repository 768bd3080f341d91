import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.analysis.electricity import machine_consumption, span_of
from lrms_sim.electricity.power import Power, Supply, consumption
from lrms_sim.electricity.series import Series
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.workload.lublin import generate

HOUR = 3600.0
PRICES = Series(HOUR * np.arange(3, dtype=np.float64), np.array([100.0, -50.0, 20.0]), 3 * HOUR)


def test_a_bill_by_hand() -> None:
    """Two processors of ten are busy for the second half of the first and all of the second hour."""
    supply = Supply(PRICES, Series.constant(500.0), Power(100, 300))
    steps = (np.array([0.5 * HOUR, 2 * HOUR]), np.array([2, 0]))
    found = consumption(supply, 10, steps, (0.0, 3 * HOUR))
    # 1000 W for three hours, and 400 W more for one and a half.
    assert found.energy_kwh == pytest.approx(3.6)
    assert found.cost == pytest.approx((1.2 * 100 - 1.4 * 50 + 1.0 * 20) / 1000)
    assert found.carbon_kg == pytest.approx(1.8)
    off = Supply(PRICES, None, Power(100, 300, power_off=True, off_watts=5))
    found = consumption(off, 10, steps, (0.0, 3 * HOUR))
    assert found.energy_kwh == pytest.approx((3 * 50 + 1.5 * 2 * 295) / 1000)
    assert math.isnan(found.carbon_kg)


def test_nodes_fill_up() -> None:
    """Busy processors take as few nodes as can hold them; a node that is on draws its idle watts."""
    power = Power(80, 160, processors_per_node=4, power_off=True)
    assert power.watts([0, 1, 4, 5, 10], 10).tolist() == [0, 100, 160, 260, 440]
    assert Power(80, 160, processors_per_node=4).watts([0, 10], 10).tolist() == [240, 440]
    assert (power.added_watts, power.moved_watts) == (20, 40)
    assert Power(80, 160, processors_per_node=4).moved_watts == 20


@given(
    st.lists(
        st.tuples(st.integers(0, 20_000), st.integers(0, 8)), max_size=8, unique_by=lambda x: x[0]
    ),
    st.tuples(*[st.integers(-5_000, 25_000)] * 3).map(sorted),
    st.booleans(),
)
def test_bills_add_up(steps: list[tuple[int, int]], moments: list[int], off: bool) -> None:
    """The bill of two adjacent intervals is that of both."""
    steps = sorted(steps)
    busy = (
        np.array([at for at, _ in steps], np.float64),
        np.array([n for _, n in steps], np.int64),
    )
    supply = Supply(PRICES, Series.constant(1.0), Power(50, 150, power_off=off))
    first, middle, last = map(float, moments)

    def bill(begin: float, end: float) -> np.ndarray:
        # Those that are busy when an interval begins began before.
        found = consumption(supply, 8, busy, (begin, end))
        return np.array([found.energy_kwh, found.cost, found.carbon_kg])

    assert bill(first, middle) + bill(middle, last) == pytest.approx(bill(first, last), abs=1e-9)


def test_bill_of_a_schedule() -> None:
    """With idle power always paid and a flat price, the bill follows from work and time alone."""
    schedule = simulate(generate(jobs=300, processors=64, seed=5), 64, Easy())
    supply = Supply(Series.constant(80.0), None, Power(100, 250))
    begin, end = span_of(schedule)
    work = float(schedule.jobs.resource_consumption.sum())
    kwh = (64 * 100 * (end - begin) + 150 * work) / 3.6e6
    found = machine_consumption(schedule, supply)
    assert found.energy_kwh == pytest.approx(kwh)
    assert found.cost == pytest.approx(0.08 * kwh)
    later = machine_consumption(schedule, supply, span=(begin, end + 10 * HOUR))
    assert later.energy_kwh == pytest.approx(kwh + 64)


@pytest.mark.parametrize(
    "wrong",
    [
        {"idle_watts": 300, "busy_watts": 200},
        {"idle_watts": -1},
        {"off_watts": 150},
        {"busy_watts": math.inf},
        {"processors_per_node": 0},
    ],
)
def test_no_power(wrong: dict[str, float]) -> None:
    """A node draws least when it is off and most when it is busy."""
    with pytest.raises(ValueError, match=r"node"):
        Power(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_bad_bills() -> None:
    """An interval has a length, and no more processors are busy than there are."""
    steps = (np.array([0.0]), np.array([3]))
    with pytest.raises(ValueError, match="before it begins"):
        consumption(Supply(PRICES), 10, steps, (1.0, 0.0))
    with pytest.raises(ValueError, match="3 processors are busy on a machine of 2"):
        consumption(Supply(PRICES), 2, steps, (0.0, 1.0))
