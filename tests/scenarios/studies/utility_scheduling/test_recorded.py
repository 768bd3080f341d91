import pytest

from scenarios.spec.traces import find_trace
from scenarios.studies.utility_scheduling import recorded
from scenarios.studies.utility_scheduling.recorded import (
    LogCase,
    Logs,
    log_cases,
    missing_logs,
    run_log_case,
)
from scenarios.studies.utility_scheduling.reference import LOG_POLICIES, LOGS


def test_logs_that_are_not_there_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """And named."""
    monkeypatch.setattr(recorded, "find_trace", lambda _: None)
    assert list(log_cases()) == []
    assert missing_logs() == list(LOGS)


@pytest.mark.traces
@pytest.mark.skipif(find_trace("kth") is None, reason="the log kth is not there")
def test_policies_on_kth_come_out_as_known() -> None:
    """Shares within what an independent program found; aggressive suspends ten times as often."""
    logs = Logs()
    found = {
        name: run_log_case(LogCase("kth", "lenient", name), logs)[0]
        for name in ("easy", "best-fit", "both-aggressive", "replan")
    }
    assert all(name in LOG_POLICIES for name in found)
    assert found["replan"]["share"] > found["both-aggressive"]["share"] > found["easy"]["share"]
    assert found["both-aggressive"]["suspensions"] == pytest.approx(14_800, rel=0.05)
    assert found["replan"]["suspensions"] == pytest.approx(1_320, rel=0.05)
    assert found["best-fit"]["completed"] + found["best-fit"]["left"] == 11_775
