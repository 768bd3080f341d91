"""Job tables and schedules as frames, slices and text; names at the packages' top."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import grms
import lrms_sim
from lrms_sim import Easy, JobTable, simulate
from lrms_sim.workload.frames import JOB_COLUMNS, METADATA, SCHEDULE_COLUMNS
from lrms_sim.workload.jobs import concatenate
from lrms_sim.workload.schedule import MachineInfo, Schedule
from tests.strategies import OneMachine, one_machine

JOBS = lrms_sim.generate(16, jobs=30, seed=1)


def same(one: JobTable, other: JobTable) -> bool:
    """Returns whether two tables are equal to the bit."""
    return all(getattr(one, n).tobytes() == getattr(other, n).tobytes() for n in JOB_COLUMNS)


@given(case=one_machine())
def test_tables_come_back_from_every_frame(case: OneMachine) -> None:
    """pandas, polars, Arrow and a mapping give back every bit."""
    jobs = case.jobs
    frames: list[Any] = [jobs.to_pandas(), jobs.to_polars(), jobs.to_arrow()]
    frames += [pl.DataFrame(jobs), {name: getattr(jobs, name) for name in JOB_COLUMNS}]
    assert all(same(JobTable.from_frame(frame), jobs) for frame in frames)


def test_a_schedule_names_machines() -> None:
    """Its frame has the columns of the jobs and what became of them."""
    schedule = simulate(JOBS, 16, Easy(), name="kth")
    frame = schedule.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert tuple(frame.columns) == SCHEDULE_COLUMNS
    assert set(frame["executed_on"]) == {"kth"}
    assert frame["wait_time"].to_numpy().tolist() == schedule.wait_time.tolist()
    assert pa.table(schedule).num_rows == schedule.to_polars().height == 30


def test_schedules_come_back_from_every_frame(tmp_path: Path) -> None:
    """Arrow and Parquet have the machines with them; pandas, polars and mappings are given them."""
    jobs, site, row = concatenate([JOBS, JOBS[::2]])
    table = (MachineInfo("kth", 16), MachineInfo("ö, 2", 64))
    ran = np.where(np.arange(len(jobs)) % 3 == 0, 1 - site, site).astype(np.int16)
    start = jobs.submit_time + 0.1
    of_log = np.where(site == 0, row + 1, 2 * row + 1)
    whole = Schedule(jobs, start, start + jobs.run_time, table, site.astype(np.int16), ran, of_log)
    whole.to_parquet(tmp_path / "schedule.parquet")
    for found in (
        Schedule.from_parquet(tmp_path / "schedule.parquet"),
        Schedule.from_frame(whole.to_arrow()),
        Schedule.from_frame(pa.table(whole)),
        Schedule.from_frame(whole.to_pandas().iloc[::-1], table),
        Schedule.from_frame(whole.to_polars(), table),
        Schedule.from_frame(whole.columns(), table),
        Schedule.from_frame(pd.read_parquet(tmp_path / "schedule.parquet"), table),
    ):
        assert found.machines == table
        assert same(found.jobs, jobs)
        for name in ("start_time", "end_time", "submitted_to", "executed_on", "log_job_id"):
            assert getattr(found, name).tobytes() == getattr(whole, name).tobytes()
    few = {name: whole.columns()[name] for name in ("submit_time", "processors", "run_time")}
    alone = Schedule.from_frame(few | {"start_time": start}, table[:1])
    assert alone.end_time.tobytes() == whole.end_time.tobytes()
    assert alone.log_job_id.tolist() == alone.jobs.job_id.tolist() == list(range(1, 46))
    assert not alone.executed_on.any()


def test_what_is_missing_in_a_schedules_frame_is_said(tmp_path: Path) -> None:
    """Sizes of machines, a machine, a start, an order of times; a file that is no Parquet."""
    schedule = simulate(JOBS, 16, name="kth")
    columns = schedule.columns()
    late = columns | {"start_time": columns["start_time"] + np.where(JOBS.job_id == 4, 1e9, 0)}
    bare = {name: columns[name] for name in columns if name != "executed_on"}
    broken = schedule.to_arrow().replace_schema_metadata({METADATA: '{"machines": 3}'})
    for frame, machines, words in (
        (columns, None, "does not say the sizes of machines"),
        (broken, None, "metadata cannot be read"),
        (columns, (MachineInfo("ctc", 1),), "there is no machine 'kth'; there are: ctc"),
        (bare, (MachineInfo("kth", 1), MachineInfo("b", 1)), "no column 'executed_on', and 2 mach"),
        (JOBS.columns(), schedule.machines, "no column 'start_time'"),
        (late, schedule.machines, "job 4 starts at"),
    ):
        with pytest.raises(ValueError, match=words):
            Schedule.from_frame(frame, machines)
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(ValueError, match=r"x.parquet: no Parquet file"):
        JobTable.from_parquet(tmp_path / "x.parquet")
    with pytest.raises(OSError, match="none"):
        JobTable.from_parquet(tmp_path / "none.parquet")


def test_tables_come_back_from_parquet(tmp_path: Path) -> None:
    """Every bit, also of no jobs, and the same jobs give the same bytes."""
    for jobs in (JOBS, JobTable.empty()):
        for name in ("a", "b"):
            jobs.to_parquet(tmp_path / name)
        assert same(JobTable.from_parquet(tmp_path / "a"), jobs)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        assert pl.read_parquet(tmp_path / "a").columns == list(JOB_COLUMNS)


def test_what_is_missing_in_a_frame_is_said() -> None:
    """The column is named, whatever library the frame is of."""
    for frame in (JOBS.to_pandas(), JOBS.to_polars(), JOBS.to_arrow()):
        rest = frame.drop(columns="run_time") if isinstance(frame, pd.DataFrame) else frame
        rest = rest if rest is not frame else rest.drop(["run_time"])
        with pytest.raises(ValueError, match="the frame has no column 'run_time'"):
            JobTable.from_frame(rest)
    holes = pa.table({"submit_time": [0, None], "processors": [1, 1], "run_time": [1, 1]})
    with pytest.raises(ValueError, match=r"submit_time.*(missing|nan)"):
        JobTable.from_frame(holes)


def test_an_index_of_pandas_is_a_column() -> None:
    """Where it has the name of one: ids do not become 1, 2, 3 because a frame is indexed by them."""
    jobs = JobTable.from_columns(
        submit_time=[0, 1, 2], processors=[1, 2, 3], run_time=[5, 6, 7], job_id=[70, 90, 40]
    )
    frame = jobs.to_pandas()
    assert JobTable.from_frame(frame.set_index("job_id")).job_id.tolist() == [70, 90, 40]
    indexed = frame.set_index(["job_id", "submit_time"])
    assert JobTable.from_frame(indexed).submit_time.tolist() == [0, 1, 2]
    # One that is there as a column, too, and one of another name, say nothing.
    both = frame.set_index("job_id", drop=False).set_axis([1, 2, 3]).rename_axis("job_id")
    assert JobTable.from_frame(both).job_id.tolist() == [70, 90, 40]
    assert JobTable.from_frame(frame.rename_axis("row")).job_id.tolist() == [70, 90, 40]
    schedule = simulate(jobs, 3)
    again = Schedule.from_frame(schedule.to_pandas().set_index("job_id"), schedule.machines)
    assert again.jobs.job_id.tolist() == [70, 90, 40]
    assert again.start_time.tolist() == schedule.start_time.tolist() == [0, 1, 7]


def test_slices_and_text() -> None:
    """A slice is a table, and a table says what it holds in a few lines."""
    assert same(JOBS[5:9], JOBS.select(np.arange(5, 9)))
    assert len(JOBS[::10]) == 3
    schedule = simulate(JOBS, 16)
    assert schedule[3:5].start_time.tolist() == schedule.start_time[3:5].tolist()
    with pytest.raises(TypeError, match="a slice is expected"):
        JOBS[3]  # type: ignore[index]  # the mistake
    with pytest.raises(ValueError, match="the step is -1"):
        JOBS[::-1]
    assert repr(JOBS).startswith("JobTable of 30 jobs in ")
    assert len(repr(JOBS).splitlines()) == 9
    assert repr(schedule[:2]).startswith("Schedule of 2 jobs on machine (16)")
    assert repr(JobTable.empty()).startswith("JobTable of 0 jobs")


def test_notebooks_show_tables() -> None:
    """The same rows as in text; a name of a machine is text, whatever it looks like."""
    page = simulate(JOBS, 16, name="<b>&")._repr_html_()
    assert page.count("<tr>") == 1 + 6 + 1
    assert "Schedule of 30 jobs on &lt;b&gt;&amp; (16)" in page
    assert page.count("<td>&lt;b&gt;&amp;</td>") == 2 * 6
    assert JOBS[:2]._repr_html_().count("<tr>") == 1 + 2
    assert JobTable.empty()._repr_html_().count("<tr>") == 1


@pytest.mark.parametrize("package", [lrms_sim, grms])
def test_public_names_are_there(package: Any) -> None:
    """Every name of the packages' top can be imported, and a wrong one is refused."""
    assert {name for name in package.__all__ if name != "__version__"} == set(package._HOMES)
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        package.simulat  # noqa: B018  # the mistake


@pytest.mark.parametrize("zone", [None, "Europe/Stockholm"])
def test_dates_and_spans_of_frames(zone: str | None) -> None:
    """From every kind of frame they become seconds, with a time zone too, over a change of the clock."""
    submit = pd.to_datetime(["2024-03-31T00:30:00", "2024-03-31T03:30:00"]).tz_localize(zone)
    run = pd.to_timedelta([5, 6.25], unit="s")
    frame = pd.DataFrame({"submit_time": submit, "processors": [1, 2], "run_time": run})
    later = 10800 if zone is None else 7200
    frames = [frame, frame.astype(object), pl.from_pandas(frame), pa.Table.from_pandas(frame)]
    for each in frames:
        jobs = JobTable.from_frame(each)
        assert jobs.submit_time.tolist() == [0, later]
        assert jobs.run_time.tolist() == [5, 6.25]
    starts = frame.assign(start_time=submit + pd.Timedelta("1min"), job_id=[4, 3])
    schedule = Schedule.from_frame(starts, [MachineInfo("m", 4)])
    assert schedule.start_time.tolist() == [60, later + 60]
    assert schedule.end_time.tolist() == [65, later + 66.25]
    with pytest.raises(ValueError, match="submit_time is of dates and start_time is not"):
        Schedule.from_frame(frame.assign(start_time=[0, 1]), [MachineInfo("m", 4)])


def test_what_is_missing_in_a_column_is_named() -> None:
    """By its row, whichever way a frame says that something is missing."""
    columns: dict[str, Any] = {"submit_time": [0, 1], "processors": [1, 2], "run_time": [5, 6]}
    for wrong in (
        pd.DataFrame(columns | {"submit_time": pd.to_datetime(["2024-01-01", None])}),
        pd.DataFrame(columns | {"submit_time": pd.array([0, None], dtype="Int64")}),
        pl.DataFrame(columns | {"submit_time": [timedelta(1), None]}),
        columns | {"submit_time": np.ma.array([0, 1], mask=[False, True])},
    ):
        with pytest.raises(
            ValueError, match=r"submit_time in row 1 is (missing|masked)|\(row 1\) is nan"
        ):
            JobTable.from_frame(wrong)
