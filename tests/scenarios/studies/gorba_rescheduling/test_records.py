"""Figures that follow from a run."""

from tests.scenarios.studies.gorba_rescheduling.measured import record


def test_success_is_a_plan_without_violations() -> None:
    """Late, too dear and unplanned each spoil it; the factor is against the best heuristic."""
    assert record("sweep", "gleam").keeps_all_limits
    for word in ("late", "over_budget", "unplanned"):
        assert not record("sweep", "gleam", **{word: 1}).keeps_all_limits
    assert record("sweep", "gleam", fitness=30.0, heuristic=20.0).factor == 1.5
    assert record("sweep", "gleam", fitness=30.0, heuristic=0.0).factor == 1.0
