"""Charts of one run: bars of a few jobs, means of many, and what they say to those who cannot see."""

import re

import numpy as np
import pytest

from lrms_sim import JobTable
from lrms_sim.report import run_charts
from lrms_sim.workload.schedule import MachineInfo, Schedule
from tests.pictures import svg_texts

HOUR = 3600.0


def three_jobs() -> Schedule:
    """Returns jobs on 4 processors of which the last waits an hour."""
    jobs = JobTable.from_columns(
        submit_time=[0, 0, HOUR], processors=[2, 2, 4], run_time=[2 * HOUR] * 3, user=[0, 1, 9]
    )
    start = np.array([0.0, 0.0, 2 * HOUR])
    here = np.zeros(3, np.int16)
    machine = (MachineInfo("one", 4),)
    return Schedule(jobs, start, start + jobs.run_time, machine, here, here, jobs.job_id)


def test_load_and_queue() -> None:
    """The machine is full for four hours; the axes say processors, percent and hours."""
    drawn = run_charts.over_time(three_jobs())
    assert run_charts.span(three_jobs()) == (0.0, 4 * HOUR)
    assert "Over the run the utilization is 100.0%." in drawn
    texts = svg_texts(drawn)
    assert {"Processors the waiting jobs ask for", "Utilization of the machine", "100%"} <= set(
        texts
    )
    assert "hours since time 0" in texts


def test_a_bar_for_each_job() -> None:
    """In the colours of their users, of which there are eight."""
    drawn = run_charts.gantt(three_jobs())
    assert re.findall(r'class="bar (c\d) deep"', drawn) == ["c0", "c1", "c1"]
    assert "<title>job 3: 4 processors for 2 h, after a wait of 1 h</title>" in drawn


def test_no_bars_for_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of jobs nor of bars."""
    for limit in ("GANTT_JOBS_MAX", "GANTT_BARS_MAX"):
        with monkeypatch.context() as patched:
            patched.setattr(run_charts, limit, 2)
            assert run_charts.gantt(three_jobs()) == ""


def test_waits() -> None:
    """Two of three jobs start at once; the third, with half of the work, after an hour."""
    drawn = run_charts.waits(three_jobs())
    assert "66.7% of the jobs start within a second, half of all within 0 s." in drawn
    texts = svg_texts(drawn)
    assert {"Share of jobs started within", "Share of work started within", "1 h"} <= set(texts)
