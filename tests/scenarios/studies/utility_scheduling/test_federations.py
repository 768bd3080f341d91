import pytest

from scenarios.spec.traces import find_trace
from scenarios.studies.utility_scheduling import federations
from scenarios.studies.utility_scheduling.federations import (
    FederationCase,
    federation_cases,
    run_federation,
)
from scenarios.studies.utility_scheduling.page import render
from scenarios.studies.utility_scheduling.recorded import Logs
from scenarios.studies.utility_scheduling.study import Study

GRID = ("kth", "ctc")


def test_exchanges_without_logs_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid is run if all of its logs are there."""
    monkeypatch.setattr(federations, "find_trace", lambda log: None if log == "sdsc05" else log)
    assert {case.grid for case in federation_cases()} == {GRID}
    keys = [case.key for case in federation_cases()]
    assert len(keys) == len(set(keys)) == 12


def test_the_page_counts_who_got_more() -> None:
    """The sentence is computed from the table below it."""

    def found(first: float, second: float) -> dict[str, object]:
        return {
            "shares": [first, second],
            "total": 0.9,
            "given": [1, 2],
            "taken": [2, 1],
            "suspensions": [10, 1000],
        }

    results = (
        (FederationCase(GRID, "tight", "replan", "awf"), found(0.8, 0.9)),
        (FederationCase(GRID, "tight", "replan", "value"), found(0.81, 0.89)),
    )
    options = {"experiments": 2, "sweep": 2, "reachable": 0}
    page = render(Study(options, (), (), results))
    assert "In 1 of 2 cases a site’s users got more by value" in page
    assert '81.0 %<span class="of">1 / 2</span>' in page
    assert "1,010" in page


@pytest.mark.traces
@pytest.mark.skipif(
    any(find_trace(log) is None for log in GRID), reason="the logs kth and ctc are not there"
)
def test_sites_gain_by_exchanging_jobs_of_logs() -> None:
    """Both sites' users get more with partners than alone, whoever decides how."""
    logs = Logs()
    alone = run_federation(FederationCase(GRID, "lenient", "replan", "keep"), logs)
    for transfer in ("awf", "value"):
        found = run_federation(FederationCase(GRID, "lenient", "replan", transfer), logs)
        assert all(a < b for a, b in zip(alone["shares"], found["shares"], strict=True))
        assert found["given"][0] == found["taken"][1] > 0
