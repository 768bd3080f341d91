"""Pictures of schedules show what is in them."""

import numpy as np
import pytest

from lrms_sim import Fcfs, JobTable, simulate
from lrms_sim.report import plots

JOBS = JobTable.from_columns(
    submit_time=[0, 0, 0], processors=[2, 1, 3], run_time=[86400, 43200, 86400]
)


def test_drawings() -> None:
    """Axes are those that are given or new ones; values are those of the schedule."""
    schedule = simulate(JOBS, 4, Fcfs(), name="kth")
    axes = plots.gantt(schedule)
    assert axes.get_title() == "Gantt chart of kth"
    (boxes,) = axes.collections
    assert len(boxes.get_paths()) == 3
    assert plots.utilization(schedule, axes=axes) is axes
    assert plots.queue(schedule).get_ylabel() == "processors waited for"
    lines = plots.wait_distribution({"one": schedule, "two": schedule}).get_lines()
    assert [line.get_label() for line in lines] == ["one", "two"]
    hours, percent = np.asarray(lines[0].get_xdata()), np.asarray(lines[0].get_ydata())
    assert hours.tolist() == [0, 0, 24]
    assert percent.tolist() == pytest.approx([100 / 3, 200 / 3, 100])
    assert len(plots.wait_distribution(schedule).get_lines()) == 1


def test_too_many_jobs_for_a_gantt_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says to take a slice."""
    monkeypatch.setattr(plots, "GANTT_JOBS_MAX", 2)
    with pytest.raises(ValueError, match="3 jobs; a Gantt chart shows at most 2: take a slice"):
        plots.gantt(simulate(JOBS, 4))
