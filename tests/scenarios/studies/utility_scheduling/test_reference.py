from lrms_sim.malleable.policies import POLICIES
from scenarios.studies.utility_scheduling.reference import (
    HIGHEST,
    LOG_POLICIES,
    RATE,
    RATES,
    REACHABLE,
    READINGS,
    SEVEN,
)


def test_what_is_named_is_there() -> None:
    """Policies by name, but for the order whose weights are evolved; readings differ."""
    assert {*SEVEN, *HIGHEST, *REACHABLE, *LOG_POLICIES} - set(POLICIES) == {"replan-weights"}
    assert len(SEVEN) == 7
    assert RATE in RATES
    assert len({(r.options, r.learning) for r in READINGS.values()}) == len(READINGS)
    assert all(reading.options.step == 1.0 for reading in READINGS.values())
