import numpy as np
import pytest

from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.swf_log import FIELD_NAMES, SwfHeader, SwfLog

LINES = (
    "; Version: 2.2",
    ";Computer: IBM SP2",
    "; Information: http://www.example.org/one",
    ";              http://www.example.org/two",
    "; MaxProcs: 1664 (72, 1368, 224)",
    "; MaxNodes: 184",
    "; MaxJobs: many",
    "; UnixStartTime: 843480031",
    "; TimeZone: -28800",
    "; TimeZoneString: US/Pacific  ",
    "; Queue:  0  interactive",
    "; Queue:  1  express",
    ";",
    ";  a remark: no field",
)


def test_header_fields_are_found_in_comments() -> None:
    """`; Key: value` lines are fields; indented continuations and remarks are not."""
    header = SwfHeader(LINES)
    assert header.lines == LINES
    assert header.fields == {
        "Version": "2.2",
        "Computer": "IBM SP2",
        "Information": "http://www.example.org/one",
        "MaxProcs": "1664 (72, 1368, 224)",
        "MaxNodes": "184",
        "MaxJobs": "many",
        "UnixStartTime": "843480031",
        "TimeZone": "-28800",
        "TimeZoneString": "US/Pacific",
        "Queue": "0  interactive",
    }
    assert header.values("Queue") == ("0  interactive", "1  express")
    assert header.values("Partition") == ()


def test_header_numbers_are_read_with_remarks_behind() -> None:
    """Typed fields give the leading number, and None where there is none."""
    header = SwfHeader(LINES)
    assert header.max_procs == 1664
    assert header.unix_start_time == 843480031
    assert header.time_zone == -28800
    assert header.computer == "IBM SP2"
    assert header.installation is None
    assert SwfHeader().max_procs is None
    assert SwfHeader(("; MaxProcs: 12.5",)).max_procs is None


@pytest.mark.parametrize(
    "value", ["1,024", "1 024", "1_024", "1'024", "1e3", "0x400", "8/16", "8k"]
)
def test_beginning_of_a_number_is_not_taken_for_the_number(value: str) -> None:
    """A number that goes on in a way that is not understood is none, whatever it begins with."""
    assert SwfHeader((f"; MaxProcs: {value}",)).max_procs is None


@pytest.mark.parametrize(
    "remark", ["(72)", " (72)", ", batch", "; batch", " batch 72", "\t72 batch"]
)
def test_remark_behind_a_number_does_no_harm(remark: str) -> None:
    """The number ends where words, brackets or marks of a remark begin."""
    assert SwfHeader((f"; MaxProcs: 80{remark}",)).max_procs == 80


def test_header_from_fields_says_them() -> None:
    """A header that is built from fields has these fields."""
    header = SwfHeader.from_fields({"MaxProcs": 128, "Computer": "generated"})
    assert header.lines == ("; MaxProcs: 128", "; Computer: generated")
    assert header.max_procs == 128


@pytest.mark.parametrize("line", ["MaxProcs: 1", "", "; a\n1 2 3", "; a\r1"])
def test_header_line_that_is_no_comment_is_refused(line: str) -> None:
    """Header lines can never become job lines when they are written."""
    with pytest.raises(ValueError, match="begins with a semicolon"):
        SwfHeader((line,))


def test_columns_left_out_are_unknown() -> None:
    """What is not said of a job is -1, and jobs are numbered."""
    log = SwfLog.from_columns({"submit_time": [5, 7.5], "processors_allocated": [1, 2]})
    assert len(log) == 2
    assert log.path == "<memory>"
    assert log.job_id.tolist() == [1, 2]
    assert log.submit_time.tolist() == [5.0, 7.5]
    unsaid = set(FIELD_NAMES) - {"job_id", "submit_time", "processors_allocated"}
    assert all(getattr(log, name).tolist() == [-1, -1] for name in unsaid)


def test_columns_are_read_only_and_typed() -> None:
    """Every column has the type of its field and cannot be written to, the caller's can."""
    mine = np.array([1.0, 2.0])
    log = SwfLog.from_columns({"submit_time": mine, "user": [3, 4]})
    assert log.user.dtype == np.int32
    assert log.preceding_job.dtype == np.int64
    for name in FIELD_NAMES:
        with pytest.raises(ValueError, match="read-only"):
            getattr(log, name)[0] = 9
    mine[0] = 8.0


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"usr": [1]}, "'usr' is not a column of SWF; there are: job_id, submit_time"),
        ({"user": [1], "queue": [1, 2]}, "has 1 rows|has 2 rows"),
        ({"submit_time": [1.0, np.nan]}, "submit_time in row 1 is nan; it must be a finite number"),
        ({"submit_time": [np.inf]}, "submit_time in row 0 is inf; it must be a finite number"),
        ({"user": [2**31]}, "user in row 0 is 2147483648; it must be a whole number between"),
        ({"user": [0, 1.5]}, "user in row 1 is 1.5; it must be a whole number"),
        ({"job_id": [np.nan]}, "job_id in row 0 is nan"),
        ({"user": [[1]]}, r"user has shape \(1, 1\); it must have one dimension"),
    ],
)
def test_column_that_breaks_a_promise_is_refused(
    columns: dict[str, list[float]], problem: str
) -> None:
    """Bad columns are named, with the row, the value and the bound."""
    with pytest.raises(ValueError, match=problem):
        SwfLog.from_columns(columns)


def test_log_of_jobs_says_what_a_table_knows() -> None:
    """A job table becomes completed jobs that got the processors that they asked for."""
    jobs = JobTable.from_columns(
        submit_time=[3.0], processors=[4], run_time=[10.0], requested_time=[20.0], user=[7]
    )
    log = SwfLog.from_jobs(jobs, SwfHeader(("; hello",)))
    assert log.header.lines == ("; hello",)
    assert {name: getattr(log, name).tolist() for name in FIELD_NAMES} == {
        **{name: [-1] for name in FIELD_NAMES},
        "job_id": [1],
        "submit_time": [3.0],
        "run_time": [10.0],
        "processors_allocated": [4],
        "processors_requested": [4],
        "requested_time": [20.0],
        "status": [1],
        "user": [7],
    }


def test_what_a_header_says_can_be_shown() -> None:
    """Control characters are spelled out in fields; the line itself stays as it stands."""
    line = "; Computer: \x1b[31mSP2\x07\tof \u202eKTH\x9b"
    header = SwfHeader((line,))
    assert header.lines == (line,)
    assert header.computer == r"\x1b[31mSP2\x07 of \u202eKTH\x9b"
    assert header.values("Computer") == (header.computer,)
