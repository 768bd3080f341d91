import csv
import errno
import gzip
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.kernel import _schedule_csv
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import Easy, discipline_by_name
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.schedule import MachineInfo, Schedule
from lrms_sim.workload.schedule_files import (
    COLUMNS,
    ScheduleFileError,
    read_csv,
    schedule_log,
    write_csv,
)
from lrms_sim.workload.swf import read_swf, write_swf
from tests.strategies import DISCIPLINES, UNITS, job_draws, table

# In the order in which evalys lists them; it looks them up by name.
EVALYS_COLUMNS = (
    "job_id",
    "workload_name",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
)


def replayed(
    jobs: JobTable, hosts: list[int], homes: list[int], sizes: list[int], discipline: str
) -> Schedule:
    """Returns the schedule of jobs that are assigned to machines beforehand."""
    start, end = np.empty(len(jobs)), np.empty(len(jobs))
    host, home = np.array(hosts, np.int16), np.array(homes, np.int16)
    for machine, processors in enumerate(sizes):
        rows = host == machine
        part = simulate(jobs.select(rows), processors, discipline_by_name(discipline))
        start[rows], end[rows] = part.start_time, part.end_time
    machines = tuple(MachineInfo(f"m{number}", size) for number, size in enumerate(sizes))
    several = len(set(homes)) > 1
    log_job_id = jobs.job_id if not several else jobs.job_id[::-1] * 3
    return Schedule(jobs, start, end, machines, home, host, log_job_id)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Draws a schedule of one to three machines; the last words of the bitmaps are partial."""
    sizes = draw(st.lists(st.sampled_from((1, 3, 8, 63, 64, 65, 130)), min_size=1, max_size=3))
    draws = draw(st.lists(job_draws(min(sizes)), max_size=14))
    # Wide jobs fragment the processors of the larger machines.
    which = st.integers(0, len(sizes) - 1)
    hosts = draw(st.lists(which, min_size=len(draws), max_size=len(draws)))
    homes = draw(st.lists(which, min_size=len(draws), max_size=len(draws)))
    widths = [
        draw(st.integers(1, sizes[host])) if draw(st.booleans()) else job[1]
        for job, host in zip(draws, hosts, strict=True)
    ]
    unit = draw(st.sampled_from(UNITS))
    # The table sorts by submission, so hosts and widths are put in that order beforehand.
    order = sorted(range(len(draws)), key=lambda row: draws[row][0])
    jobs = table(
        [(draws[row][0], widths[row], draws[row][2], draws[row][3]) for row in order], unit
    )
    discipline = draw(st.sampled_from(DISCIPLINES))
    return replayed(jobs, [hosts[r] for r in order], [homes[r] for r in order], sizes, discipline)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder that the examples of a property may share."""
    return tmp_path_factory.mktemp("schedules")


def one(
    submit: list[float],
    processors: list[int],
    run: list[float],
    size: int = 4,
    request: list[float] | None = None,
) -> Schedule:
    """Returns the FCFS schedule of some jobs on one machine."""
    jobs = JobTable.from_columns(
        submit_time=submit, processors=processors, run_time=run, requested_time=request
    )
    return simulate(jobs, size, name="kth")


def rows_of(path: Path) -> list[dict[str, str]]:
    """Returns the lines of a CSV file by column, read by Python's own reader."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def processors_of(text: str) -> list[int]:
    """Returns the processors of an interval set such as `0-3 7`."""
    bounds = (part.partition("-") for part in text.split(" "))
    spans = ((int(first), int(last or first)) for first, _, last in bounds)
    return [number for first, last in spans for number in range(first, last + 1)]


def interval_set(processors: list[int]) -> str:
    """Returns the canonical text of a set of processors, built one by one."""
    parts: list[list[int]] = []
    for number in sorted(processors):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def test_a_file_by_hand(tmp_path: Path) -> None:
    """Every column holds what its description says."""
    schedule = one([0, 1.5, 2], [3, 2, 1], [10, 2.25, 4], request=[10, 3, 5])
    write_csv(schedule, tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_text() == (
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,"
        "requested_time,success,final_state,starting_time,execution_time,finish_time,"
        "waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,metadata,"
        "submitted_to,executed_on,user\n"
        "1,kth,delay,0,3,10,0,COMPLETED_WALLTIME_REACHED,0,10,10,0,10,1,0-2,-1,,kth,kth,-1\n"
        "2,kth,delay,1.5,2,3,1,COMPLETED_SUCCESSFULLY,10,2.25,12.25,8.5,10.75,"
        "4.777777777777778,0-1,-1,,kth,kth,-1\n"
        "3,kth,delay,2,1,5,1,COMPLETED_SUCCESSFULLY,10,4,14,8,12,3,2,-1,,kth,kth,-1\n"
    )


def test_columns_of_evalys_and_batsim_are_there() -> None:
    """The columns that evalys names are among ours, under the same names."""
    assert set(EVALYS_COLUMNS) <= set(COLUMNS)
    assert COLUMNS[-3:] == ("submitted_to", "executed_on", "user")


@given(schedules())
def test_no_processor_is_held_twice(folder: Path, schedule: Schedule) -> None:
    """At no instant do two jobs hold a processor, and each job holds as many as it asked for."""
    write_csv(schedule, folder / "jobs.csv")
    held: dict[int, list[tuple[float, float]]] = {}
    total = sum(machine.processors for machine in schedule.machines)
    for row in rows_of(folder / "jobs.csv"):
        numbers = processors_of(row["allocated_resources"])
        assert len(set(numbers)) == len(numbers) == int(row["requested_number_of_resources"])
        assert all(0 <= number < total for number in numbers)
        span = float(row["starting_time"]), float(row["finish_time"])
        for number in numbers:
            held.setdefault(number, []).append(span)
    for spans in held.values():
        spans.sort()
        for (_, end), (start, _) in pairwise(spans):
            assert end <= start


@given(schedules())
def test_processors_are_the_lowest_free_ones(folder: Path, schedule: Schedule) -> None:
    """Each job gets the lowest free processors of its machine, ends before starts, by row."""
    write_csv(schedule, folder / "jobs.csv")
    sizes = [machine.processors for machine in schedule.machines]
    first = np.cumsum([0, *sizes]).tolist()
    free = [set(range(first[k], first[k] + size)) for k, size in enumerate(sizes)]
    running: list[tuple[float, int, list[int]]] = []
    expected = [""] * len(schedule)
    for row in sorted(range(len(schedule)), key=lambda row: (schedule.start_time[row], row)):
        now = schedule.start_time[row]
        for _, machine, numbers in [job for job in running if job[0] <= now]:
            free[machine] |= set(numbers)
        running = [job for job in running if job[0] > now]
        machine = int(schedule.executed_on[row])
        taken = sorted(free[machine])[: schedule.jobs.processors[row]]
        free[machine] -= set(taken)
        running.append((schedule.end_time[row], machine, taken))
        expected[row] = interval_set(taken)
    assert [row["allocated_resources"] for row in rows_of(folder / "jobs.csv")] == expected


@given(schedules())
def test_columns_agree_with_each_other(folder: Path, schedule: Schedule) -> None:
    """The derived columns are what Batsim defines them to be, to the last digit."""
    write_csv(schedule, folder / "jobs.csv")
    rows = rows_of(folder / "jobs.csv")
    assert len(rows) == len(schedule)
    for number, row in enumerate(rows):
        submit, start, end = (
            float(row[name]) for name in ("submission_time", "starting_time", "finish_time")
        )
        assert int(row["job_id"]) == schedule.log_job_id[number]
        assert row["workload_name"] == row["submitted_to"]
        assert float(row["waiting_time"]) == start - submit
        assert float(row["turnaround_time"]) == end - submit
        assert float(row["stretch"]) == (end - submit) / float(row["execution_time"])
        killed = float(row["execution_time"]) >= float(row["requested_time"])
        assert row["success"] == ("0" if killed else "1")


@given(schedules())
def test_csv_reads_back_the_same(folder: Path, schedule: Schedule) -> None:
    """A schedule read from its file equals the one written, all digits and machines included."""
    write_csv(schedule, folder / "jobs.csv")
    back = read_csv(folder / "jobs.csv", schedule.machines)
    assert back.machines == schedule.machines
    for name in ("start_time", "end_time", "submitted_to", "executed_on", "log_job_id"):
        np.testing.assert_array_equal(getattr(back, name), getattr(schedule, name))
    for name in ("job_id", "submit_time", "processors", "requested_time", "run_time", "user"):
        np.testing.assert_array_equal(getattr(back.jobs, name), getattr(schedule.jobs, name))


@given(st.floats(1e-300, 1e300), st.floats(-1e17, 1e17), st.integers(-(2**31), 2**31 - 1))
def test_numbers_have_the_fewest_digits(folder: Path, run: float, submit: float, user: int) -> None:
    """Whole seconds are written as integers, all others as Python writes them."""
    jobs = JobTable.from_columns(
        submit_time=[submit], processors=[1], run_time=[run], user=[user], job_id=[-(2**63)]
    )
    schedule = simulate(jobs, 1)
    write_csv(schedule, folder / "jobs.csv")
    (row,) = rows_of(folder / "jobs.csv")

    def text(value: float) -> str:
        return str(int(value)) if value == 0 else repr(value).removesuffix(".0")

    assert row["submission_time"] == text(submit)
    assert row["execution_time"] == text(run)
    assert row["finish_time"] == text(float(schedule.end_time[0]))
    assert row["user"] == str(user)
    assert row["job_id"] == str(-(2**63))


def test_same_schedule_same_bytes(tmp_path: Path) -> None:
    """Two files of one schedule are equal byte for byte, compressed ones too."""
    schedule = one([0, 1, 2], [3, 2, 1], [10, 2, 4])
    for name in ("a.csv", "b.csv", "a.csv.gz", "b.csv.gz", "a.swf.gz", "b.swf.gz"):
        if "swf" in name:
            write_swf(tmp_path / name, schedule)
        else:
            write_csv(schedule, tmp_path / name)
    for kind in ("csv", "csv.gz", "swf.gz"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    unpacked = gzip.decompress((tmp_path / "a.csv.gz").read_bytes())
    assert unpacked == (tmp_path / "a.csv").read_bytes()
    assert len(read_csv(tmp_path / "a.csv.gz", schedule.machines)) == 3


def test_machines_are_numbered_one_after_the_other(tmp_path: Path) -> None:
    """The processors of the second machine follow those of the first, in the whole file."""
    jobs = JobTable.from_columns(submit_time=[0, 0], processors=[2, 2], run_time=[5, 5])
    write_csv(replayed(jobs, [0, 1], [0, 1], [10, 4], "fcfs"), tmp_path / "jobs.csv")
    rows = rows_of(tmp_path / "jobs.csv")
    assert [row["allocated_resources"] for row in rows] == ["0-1", "10-11"]
    assert [row["executed_on"] for row in rows] == ["m0", "m1"]


@pytest.mark.parametrize("name", ["a,b", 'the "big" one', "zwei\nZeilen", "Köln", "", "x" * 5000])
def test_any_machine_name_survives(tmp_path: Path, name: str) -> None:
    """Names with commas, quotes, line ends and letters of all kinds are read back."""
    schedule = one([0], [1], [5])
    schedule = replace(schedule, machines=(MachineInfo(name, 4),))
    write_csv(schedule, tmp_path / "jobs.csv")
    assert rows_of(tmp_path / "jobs.csv")[0]["executed_on"] == name
    assert read_csv(tmp_path / "jobs.csv", schedule.machines).machines[0].name == name


def test_a_schedule_without_jobs(tmp_path: Path) -> None:
    """A schedule without jobs is a header, and reads back as one without jobs."""
    schedule = one([], [], [])
    write_csv(schedule, tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_text() == ",".join(COLUMNS) + "\n"
    assert len(read_csv(tmp_path / "jobs.csv", schedule.machines)) == 0
    write_swf(tmp_path / "jobs.swf", schedule)
    assert len(read_swf(tmp_path / "jobs.swf")) == 0


def test_rows_go_out_in_pieces(tmp_path: Path) -> None:
    """A long schedule is handed on piece by piece, and its progress is told."""
    rng = np.random.default_rng(3)
    count = 60_000
    jobs = JobTable.from_columns(
        submit_time=np.sort(rng.integers(0, 10**6, count)),
        processors=rng.integers(1, 64, count),
        run_time=rng.integers(1, 1000, count),
        requested_time=np.full(count, 1000),
    )
    schedule = simulate(jobs, 500, Easy())
    seen: list[int] = []
    write_csv(schedule, tmp_path / "jobs.csv", progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == count
    pieces = (tmp_path / "jobs.csv").stat().st_size / 2**20
    assert pieces > 5
    assert len(seen) >= int(pieces)
    again = read_csv(tmp_path / "jobs.csv", schedule.machines)
    np.testing.assert_array_equal(again.start_time, schedule.start_time)


def test_a_job_with_thousands_of_intervals(tmp_path: Path) -> None:
    """A job scattered over more intervals than a line's usual room is written in full."""
    count = 40_000
    odd = np.arange(count) % 2 == 1
    run = np.append(np.where(odd, 100.0, 10.0), 5.0)
    jobs = JobTable.from_columns(
        submit_time=np.append(np.zeros(count), 20.0),
        processors=np.append(np.ones(count, int), count // 2),
        run_time=run,
    )
    write_csv(simulate(jobs, count), tmp_path / "jobs.csv")
    last = rows_of(tmp_path / "jobs.csv")[-1]
    assert last["allocated_resources"] == " ".join(str(n) for n in range(0, count, 2))


def test_overfull_machine_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    """A schedule with too many jobs at one time is no schedule; the old file stays."""
    schedule = one([0, 0], [3, 2], [10, 10])
    bad = replace(schedule, start_time=np.zeros(2), end_time=np.full(2, 10.0))
    path = tmp_path / "jobs.csv"
    path.write_text("old")
    with pytest.raises(ValueError, match=r"job 2 starts at 0\.0 s on 2 .* kth, .* has 1 free of 4"):
        write_csv(bad, path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["jobs.csv"]


def test_broken_schedules_are_refused(tmp_path: Path) -> None:
    """Times that are not finite or in order and machines that do not exist are named."""
    schedule = one([0, 0], [2, 2], [10, 10])
    path = tmp_path / "jobs.csv"
    for change, words in (
        ({"start_time": np.array([0.0, np.nan])}, "job 2 starts at nan and ends at 10"),
        ({"end_time": np.array([-1.0, 10.0])}, "job 1 starts at 0.0 and ends at -1.0"),
        ({"executed_on": np.array([0, 1], np.int16)}, "executed_on of job 2 is 1; there are 1"),
        ({"submitted_to": np.array([-1, 0], np.int16)}, "submitted_to of job 1 is -1"),
    ):
        with pytest.raises(ValueError, match=words):
            write_csv(replace(schedule, **change), path)
    assert not path.exists()


def test_columns_of_different_length_are_refused() -> None:
    """The compiled writer checks the lengths itself, as it reads past the end otherwise."""
    columns = {"log_job_id": np.zeros(2, np.int64), "submit_time": np.zeros(1)}
    order = np.arange(2, dtype=np.int64)
    with pytest.raises(ValueError, match=r"submit_time has shape \(1,\), order has 2 rows"):
        _schedule_csv.write_rows(print, [b"m"], np.ones(1, np.int64), order, columns)


def test_an_interrupt_leaves_no_file(tmp_path: Path) -> None:
    """Ctrl-C while writing removes the unfinished file."""

    def interrupt(rows: int) -> None:
        raise KeyboardInterrupt(rows)

    with pytest.raises(KeyboardInterrupt):
        write_csv(one([0], [1], [5]), tmp_path / "jobs.csv", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_full_disk_and_missing_folder_are_os_errors(tmp_path: Path) -> None:
    """What the system refuses comes out as OSError, and a device is never replaced by a file."""
    schedule = one([0], [1], [5])
    with pytest.raises(FileNotFoundError):
        write_csv(schedule, tmp_path / "nowhere" / "jobs.csv")
    with pytest.raises(OSError, match="No space") as caught:
        write_csv(schedule, "/dev/full")
    assert caught.value.errno == errno.ENOSPC
    assert Path("/dev/full").is_char_device()
    write_csv(schedule, "/dev/null")
    assert Path("/dev/null").is_char_device()


HEADER = ",".join(COLUMNS)
GOOD = "1,kth,delay,0,3,10,1,,0,9,9,0,9,1,0-2,-1,,kth,kth,7"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty; expected a header with job_id"),
        ("job_id,user\n1,2\n", "column requested_number_of_resources is missing"),
        (f"{HEADER}\n{GOOD}\n1,kth,delay,0\n", "jobs.csv:3: 4 fields"),
        (f"{HEADER}\n{GOOD.replace(',3,', ',3.5,')}\n", "jobs.csv:2: requested_number_of"),
        (f"{HEADER}\n{GOOD.replace(',10,', ',soon,')}\n", "requested_time is 'soon'; .* seconds"),
        (f"{HEADER}\n{GOOD.replace('kth,7', 'ctc,7')}\n", "executed_on is 'ctc'; .* a given mach"),
        (f"{HEADER}\n{GOOD.replace('1,kth', '9' * 30 + ',kth', 1)}\n", "job_id is .* whole number"),
        (f"{HEADER}\n{GOOD}\n{GOOD}\n", "sorted by .submit_time, job_id. without repeats"),
        (f"{HEADER}\n{GOOD.replace(',10,', ',nan,')}\n", "requested_time of job 1 .* is nan"),
        (f"{HEADER}\n{GOOD.replace(',0,9,9,', ',inf,9,9,')}\n", "job 1 starts at inf"),
        (f"{HEADER}\n{GOOD.replace(',3,', ',9999999999,')}\n", "requested_number_of_resources"),
    ],
)
def test_malformed_files_are_named(tmp_path: Path, text: str, words: str) -> None:
    """A file that is no schedule gives an error with the file, and the line where there is one."""
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(ScheduleFileError, match=words) as caught:
        read_csv(path, [MachineInfo("kth", 4)])
    assert str(caught.value).startswith(str(path))


def test_the_line_of_a_mistake_is_named_however_the_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long file is read in pieces; lines are counted over all of them."""
    monkeypatch.setattr("lrms_sim.workload.schedule_files._READ_ROWS", 2)
    path = tmp_path / "jobs.csv"
    rows = [GOOD.replace("1,kth", f"{number},kth", 1) for number in range(1, 6)]
    path.write_text("\n".join([HEADER, *rows, "6,kth,delay,0", ""]))
    with pytest.raises(ScheduleFileError, match=r"jobs\.csv:7: 4 fields"):
        read_csv(path, [MachineInfo("kth", 4)])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("jobs.csv", b"\x00\xff\xfe" * 100, "cannot be read"),
        ("jobs.csv.gz", b"no gzip", "column job_id is missing"),
        ("jobs.csv.gz", gzip.compress(HEADER.encode() * 50, mtime=0)[:-10], "is cut off: the gzip"),
        ("jobs.csv", b"PAR1....", "is a Parquet file"),
    ],
)
def test_files_that_are_no_text_are_named(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    """Binary rubbish and damaged gzip files are errors that name the file."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ScheduleFileError, match=words):
        read_csv(tmp_path / name, [MachineInfo("kth", 4)])


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A file that is not there is an error that names it."""
    with pytest.raises(ScheduleFileError, match=r"none\.csv: cannot be read: No such file"):
        read_csv(tmp_path / "none.csv", [MachineInfo("kth", 4)])


@given(schedules())
def test_swf_prepares_to_the_same_jobs(folder: Path, schedule: Schedule) -> None:
    """The log of a schedule holds its jobs, waits and machines, and can be replayed."""
    write_swf(folder / "jobs.swf", schedule)
    log = read_swf(folder / "jobs.swf")
    np.testing.assert_array_equal(log.wait_time, schedule.wait_time)
    np.testing.assert_array_equal(log.partition, schedule.executed_on + 1)
    assert log.header.max_procs == sum(machine.processors for machine in schedule.machines)
    several = len(set(schedule.submitted_to.tolist())) > 1
    expected = schedule.jobs.job_id if several else schedule.log_job_id
    np.testing.assert_array_equal(log.job_id, expected)
    late = log.submit_time >= 0
    again = prepare(log, 130).jobs
    np.testing.assert_array_equal(again.run_time, schedule.jobs.run_time[late])
    np.testing.assert_array_equal(again.processors, schedule.jobs.processors[late])
    np.testing.assert_array_equal(again.requested_time, schedule.jobs.requested_time[late])


def test_swf_of_one_machine(tmp_path: Path) -> None:
    """Only what a machine executed is written, with its size and partition in the header."""
    jobs = JobTable.from_columns(submit_time=[0, 1, 2], processors=[1, 2, 2], run_time=[5, 5, 5])
    schedule = replayed(jobs, [0, 1, 1], [0, 0, 1], [10, 4], "fcfs")
    write_swf(
        tmp_path / "m1.swf", schedule_log(schedule, executed_on=1, header={"UnixStartTime": 86400})
    )
    log = read_swf(tmp_path / "m1.swf")
    assert log.header.fields == {
        "Version": "2.2",
        "UnixStartTime": "86400",
        "MaxJobs": "2",
        "MaxRecords": "2",
        "MaxProcs": "4",
        "MaxPartitions": "1",
        "Partition": "2 m1 (4 processors)",
    }
    assert log.job_id.tolist() == [2, 3], "jobs of several sites: their numbers may be the same"
    write_swf(tmp_path / "m0.swf", schedule_log(schedule, executed_on=0))
    assert read_swf(tmp_path / "m0.swf").job_id.tolist() == [9], "the log's own number"
    assert log.partition.tolist() == [2, 2]
    with pytest.raises(ValueError, match="machine 2 does not exist; there are 2"):
        write_swf(tmp_path / "m2.swf", schedule_log(schedule, executed_on=2))
