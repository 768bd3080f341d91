from broker.gantt.layout import axis_of, lane_height

MONDAY = 1_772_438_400.0
"""2026-03-02, 8:00 UTC."""


def test_lanes_shrink_until_they_would_vanish() -> None:
    """A few share the room; many make the row higher."""
    assert lane_height(1) == 15.0
    assert lane_height(7) == 8.0
    assert lane_height(300) == 3.5


def test_times_of_a_study_count_from_its_beginning() -> None:
    """Those of the calendar are times of day; an axis has a length, whatever is planned."""
    study = axis_of(0.0, 0.0, left=0, right=1, now=0.0)
    assert study.when(90.0) == "1 min 30 s"
    assert study.end > study.begin
    calendar = axis_of(MONDAY, MONDAY + 60, left=0, right=1, now=MONDAY)
    assert calendar.when(MONDAY) == "2 Mar 2026 08:00:00"
