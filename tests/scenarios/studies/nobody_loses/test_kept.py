"""What is kept of the study."""

import json

from scenarios.studies.nobody_loses.drawings import rank_chart
from scenarios.studies.nobody_loses.kept import figures_of
from scenarios.studies.nobody_loses.study import COMPARISON
from tests.scenarios.studies.nobody_loses.measured import small_study


def test_every_line_is_kept_and_parts_that_were_not_run_are_empty() -> None:
    """Gains of the made-up study are 10, 11, … percent, and the last site of each replay loses 1."""
    kept = json.loads(figures_of(small_study(("random", "strict-jitter"))))
    assert list(kept["random"]) == list(COMPARISON)
    line = kept["random"]["strict-exchange"]
    assert (line["worst"], line["losers"], line["month_worst"]) == (-1.0, 8, -7.0)
    assert line["months"] == [8, 2 * line["results"]]
    assert kept["jitter"]["results"] == 168
    assert kept["short"] == kept["restarts"] == kept["byzantine"] == kept["adoption"] == {}
    assert json.loads(figures_of(small_study(("short",))))["jitter"] is None


def test_losers_are_counted_above_their_dots() -> None:
    """Far losses stand at the lower edge; their number and the worst are in words."""
    chart = rank_chart([("a", [-90.0, 5.0, 1.0]), ("b", [2.0, 3.0])], key="k", title="t")
    assert "1 of 3 lose, worst −90.0 %" in chart
    assert "0 of 2 lose, worst 2.0 %" in chart
    assert chart == rank_chart([("a", [1.0, 5.0, -90.0]), ("b", [3.0, 2.0])], key="k", title="t")
