"""How often a partner may have its accepted offers lead to nothing."""

from hypothesis import given
from hypothesis import strategies as st

from grms.site.model.partner_conduct import RUNS_WINDOW_H, UNUSED_WINDOW_S, AcceptanceBudget

HOUR = 3600.0


def test_what_runs_nothing_has_so_many_an_hour() -> None:
    """And again as many when the hour is over, one after the other."""
    budget = AcceptanceBudget()
    assert budget.left(0.0, 3) == 3
    for now in (0.0, 10.0, 20.0, 30.0):
        budget.note_unused(now)
    assert (budget.left(30.0, 3), budget.unused_lately(30.0)) == (0, 4)
    assert budget.left(UNUSED_WINDOW_S, 3) == 0
    assert budget.left(UNUSED_WINDOW_S + 10.0, 3) == 1
    assert budget.left(UNUSED_WINDOW_S + 30.0, 3) == 3


def test_each_job_that_has_begun_allows_one_more_for_a_day() -> None:
    """By whole hours: those of the hour a day ago count no more."""
    budget = AcceptanceBudget()
    for _ in range(5):
        budget.note_run(0.5 * HOUR)
    budget.note_run(2.0 * HOUR)
    assert budget.left(2.0 * HOUR, 3) == 9
    assert budget.left((RUNS_WINDOW_H - 0.1) * HOUR, 3) == 9
    assert budget.left(RUNS_WINDOW_H * HOUR, 3) == 4
    budget.note_run((RUNS_WINDOW_H + 1) * HOUR)
    assert sorted(budget.runs) == [2, RUNS_WINDOW_H + 1]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5000)), max_size=60), st.integers(1, 10))
def test_it_is_what_a_plain_count_says(steps: list[tuple[bool, int]], per_hour: int) -> None:
    """Of all that was ever noted."""
    budget, now = AcceptanceBudget(), 0.0
    unused: list[float] = []
    runs: list[float] = []
    for is_run, pause in steps:
        now += pause
        (runs if is_run else unused).append(now)
        (budget.note_run if is_run else budget.note_unused)(now)
        lately = sum(now - each < UNUSED_WINDOW_S for each in unused)
        ran = sum(now // HOUR - each // HOUR < RUNS_WINDOW_H for each in runs)
        assert budget.unused_lately(now) == lately
        assert budget.left(now, per_hour) == max(0, per_hour + ran - lately)
