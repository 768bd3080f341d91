"""Workloads with feedback: who is submitted when, and that without feedback nothing changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.machine.closed_loop import Wait, simulate_closed, waits_of
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Fcfs, discipline_by_name
from lrms_sim.scheduling.user_defined import MachineView
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.swf_log import SwfLog
from tests.strategies import DISCIPLINES, OneMachine, one_machine


def table(submit: list[float], run: list[float], ids: list[int] | None = None) -> JobTable:
    """Returns jobs of one processor."""
    widths = np.ones(len(submit), np.int32)
    return JobTable.from_columns(
        submit_time=submit, processors=widths, run_time=run, job_id=ids, user=widths
    )


@pytest.mark.parametrize("name", DISCIPLINES)
@given(case=one_machine())
def test_without_feedback_it_is_the_same_schedule(name: str, case: OneMachine) -> None:
    """To the last bit, under every discipline."""
    discipline = discipline_by_name(name)
    jobs = JobTable(**case.jobs.columns() | {"user": (case.jobs.job_id % 3).astype(np.int32)})
    plain = simulate(jobs, case.processors, discipline)
    closed = simulate_closed(jobs, case.processors, discipline, waits={})
    assert closed.start_time.tolist() == plain.start_time.tolist()
    assert closed.end_time.tolist() == plain.end_time.tolist()
    assert closed.jobs.job_id.tolist() == jobs.job_id.tolist()


def test_a_job_comes_its_think_time_after_the_end_of_the_one_before() -> None:
    """However long that one waits; jobs behind it in the log may come before it, and chains go on."""
    jobs = table([0, 0, 10, 20, 30], [100, 50, 5, 7, 9], [1, 2, 3, 4, 5])
    waits = {3: Wait(2, 4.0), 4: Wait(3, 0.0)}
    found = simulate_closed(jobs, 1, Fcfs(), waits=waits)
    assert found.log_job_id.tolist() == [1, 2, 5, 3, 4]
    assert found.jobs.submit_time.tolist() == [0, 0, 30, 154, 164]
    assert found.start_time.tolist() == [0, 100, 150, 159, 164]
    assert found.end_time.tolist() == [100, 150, 159, 164, 171]
    assert found.jobs.run_time.tolist() == [100, 50, 9, 5, 7]


def test_who_would_wait_for_ever_is_submitted_as_recorded() -> None:
    """A circle is begun by its first job; one that waits for a job that is not there comes when it came."""
    jobs = table([0, 5, 10, 15], [1, 1, 1, 1], [1, 2, 3, 4])
    waits = {1: Wait(2, 3.0), 2: Wait(1, 3.0), 3: Wait(9, 0.0), 4: Wait(4, 0.0)}
    found = simulate_closed(jobs, 4, waits=waits)
    assert found.jobs.submit_time.tolist() == [0, 4, 10, 15]


@given(case=one_machine(), data=st.data())
def test_every_job_runs_once_and_none_comes_too_early(
    case: OneMachine, data: st.DataObject
) -> None:
    """Whatever waits for whatever: each is submitted as recorded or exactly its think time after an end."""
    jobs, ids = case.jobs, case.jobs.job_id.tolist()
    waits = {
        one: Wait(data.draw(st.sampled_from(ids)), float(data.draw(st.integers(0, 9))))
        for one in ids[1::2]
    }
    found = simulate_closed(jobs, case.processors, waits=waits)
    assert sorted(found.log_job_id.tolist()) == sorted(ids)
    end = dict(zip(found.log_job_id.tolist(), found.end_time.tolist(), strict=True))
    recorded = dict(zip(ids, jobs.submit_time.tolist(), strict=True))
    for one, moment in zip(found.log_job_id.tolist(), found.jobs.submit_time.tolist(), strict=True):
        wait = waits.get(one)
        assert moment == recorded[one] or (wait and moment == end[wait.job_id] + wait.think_time)
    assert (found.start_time >= found.jobs.submit_time).all()


def test_waits_of_a_log() -> None:
    """Fields 17 and 18, of prepared jobs alone; a number that comes again means its first record."""
    log = SwfLog.from_columns(
        {
            "job_id": [1, 2, 3, 3, 4, 5],
            "submit_time": [0, 1, 2, 3, 4, 5],
            "run_time": [9, -1, 9, 9, 9, 9],
            "requested_time": [9] * 6,
            "processors_allocated": [1] * 6,
            "preceding_job": [-1, 1, 2, 1, 3, 5],
            "think_time": [-1, 5, 5, -1, 7, 7],
        }
    )
    prepared = prepare(log, 4, dependencies=True)
    assert prepared.jobs.job_id.tolist() == [1, 3, 6, 4, 5]
    assert prepared.records.tolist() == [0, 2, 3, 4, 5]
    assert waits_of(log, prepared) == {6: Wait(1, 0.0), 4: Wait(3, 7.0)}
    rows = prepared.report.rows()
    assert ("submitted once the job before it has ended", 2, "altered") in rows
    assert ("names the job before it, submitted as recorded", 2, "ignored") in rows
    ignored = prepare(log, 4).report
    assert ("names the job before it, submitted as recorded", 4, "ignored") in ignored.rows()


def test_a_discipline_in_python_knows_the_ids_of_the_log() -> None:
    """Its jobs are numbered as they come, and have the log's ids beside."""
    seen: list[tuple[int, int]] = []

    def decide(view: MachineView) -> None:
        for job in view.waiting:
            if job.processors <= view.processors_free:
                seen.append((job.number, job.job_id))
                view.start(job)

    simulate_closed(
        table([0, 1, 2], [9, 9, 9], [101, 205, 309]), 1, decide, waits={205: Wait(309, 1.0)}
    )
    assert seen == [(0, 101), (1, 309), (2, 205)]


def test_a_discipline_that_never_starts_a_job() -> None:
    """It is named, as without feedback."""
    with pytest.raises(ValueError, match="has left 2 jobs waiting on an idle machine"):
        simulate_closed(table([0, 1], [9, 9]), 1, lambda _view: None, waits={2: Wait(1, 0.0)})
