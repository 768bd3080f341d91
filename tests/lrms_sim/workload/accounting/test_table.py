"""Tables of anybody, by the names of their columns: CSV and Parquet, times of every kind, products of columns."""

import csv
import io
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.cli.main import run_command
from lrms_sim.workload.accounting.importing import (
    READERS,
    import_lines,
    import_records,
    import_table,
)
from lrms_sim.workload.accounting.records import LOST, AccountingError, Import, Reading
from lrms_sim.workload.accounting.table import Layout, read_csv
from lrms_sim.workload.requests import Gpus, Memory, Request
from lrms_sim.workload.swf import read_swf

CORES = {"submit_time": "submitted", "run_time": "elapsed", "processors": "cores"}


def read(
    text: str, columns: dict[str, str], *, strict: bool = False, zone: Any = UTC, **layout: Any
) -> Import:
    """Returns what a CSV says."""
    reading = Reading("jobs.csv", zone, strict=strict)
    lines = text.splitlines()
    return import_records(
        read_csv(lines, Layout(columns, **layout), reading), reading, of_table=True
    )


def test_seconds_and_names() -> None:
    """What nobody names is left alone; a run time alone says nothing of the wait."""
    text = "id,submitted,elapsed,cores,who\n1,100,5,2,zoe\n2,90,7.5,4,ann\n\n3,110,1,1,zoe\n"
    found = read(text, CORES | {"user": "who"}, strict=True)
    assert found.counts == {"wait": 3, "request": 3}
    assert found.log.submit_time.tolist() == [0, 10, 20]
    assert found.log.run_time.tolist() == [7.5, 5, 1]
    assert found.log.processors_allocated.tolist() == [4, 2, 1]
    assert found.log.user.tolist() == [1, 2, 2]
    assert found.log.wait_time.tolist() == [-1, -1, -1]
    assert found.log.header.unix_start_time is None


@pytest.mark.parametrize(
    ("columns", "wait", "run"),
    [
        ({"start_time": "b", "end_time": "c"}, 10, 100),
        ({"start_time": "b", "run_time": "d"}, 10, 90),
        ({"wait_time": "e", "run_time": "d"}, 20, 90),
        ({"wait_time": "e", "end_time": "c"}, 20, 90),
        ({"end_time": "c", "run_time": "d"}, 20, 90),
        ({"run_time": "d"}, -1, 90),
        ({"start_time": "b", "end_time": "c", "run_time": "d"}, 10, 90),
    ],
)
def test_ways_to_say_a_course(columns: dict[str, str], wait: float, run: float) -> None:
    """Start, end, wait and run time, whichever of them there are."""
    text = "a,b,c,d,e\n1000,1010,1110,90,20\n"
    log = read(text, {"submit_time": "a", "processors": "1"} | columns, strict=True).log
    assert (log.wait_time[0], log.run_time[0]) == (wait, run)
    assert log.processors_allocated.tolist() == [1]


def test_what_has_not_started_or_ended() -> None:
    """No end is an open job; no start where a column has it is a job that never ran."""
    text = "a,b,c,s\n1000,1010,1110,DONE\n1001,,1005,CANCELLED by 7\n1002,1003,,RUNNING\n1004,,,PENDING\n,1,2,DONE\n"
    columns = {
        "submit_time": "a",
        "start_time": "b",
        "end_time": "c",
        "processors": "2",
        "status": "s",
    }
    found = read(text, columns)
    assert found.counts == {"open": 2, "moment": 1, "never": 1, "request": 2}
    assert found.log.status.tolist() == [1, 5]
    only_starts = read("b,c\n10,20\n", {"start_time": "b", "end_time": "c", "processors": "1"})
    assert (only_starts.log.wait_time[0], only_starts.log.run_time[0]) == (-1, 10)
    assert only_starts.counts == {"wait": 1, "request": 1}


def test_units_dates_and_spans() -> None:
    """Of one field or of all; ISO dates with a zone or in that of the site; spans as batch systems write them."""
    text = "a,d,l\n1704067200000,90000,30\n1704067201500,1000,UNLIMITED\n"
    columns = {"submit_time": "a", "run_time": "d", "requested_time": "l", "processors": "1"}
    units = {"submit_time": "ms", "run_time": "ms", "requested_time": "min"}
    log = read(text, columns, units=units, strict=True).log
    assert log.submit_time.tolist() == [0, 1.5]
    assert log.run_time.tolist() == [90, 1]
    assert log.requested_time.tolist() == [1800, -1]
    assert log.header.unix_start_time == 1704067200
    dates = "a;d;l\n2024-01-01 01:00:00;1-00:00:01;0 days 02:00:00\n2024-01-01T00:00:05Z;00:10:00;-1\n2024-01-01 00:00:06 UTC;5;9\n"
    log = read(dates, columns, zone=ZoneInfo("Europe/Stockholm"), strict=True).log
    assert log.submit_time.tolist() == [0, 5, 6]
    assert log.run_time.tolist() == [86401, 600, 5]
    assert log.requested_time.tolist() == [7200, -1, 9]
    american = read("a\tb\n01/31/2024 20:00\t5\n", {"submit_time": "a", "run_time": "b", "processors": "1"}, time_format="%m/%d/%Y %H:%M")  # fmt: skip
    assert american.log.header.unix_start_time == 1706731200


def test_products_and_fractions() -> None:
    """A field may be computed; a part of a processor holds the whole of it."""
    text = "t,d,cpu,n,zero\n1,5,250.0,2,0\n2,5,50,1,0\n3,5,,1,0\n4,5,x,1,0\n"
    columns = {"submit_time": "t", "run_time": "d", "processors": "cpu*n/100"}
    found = read(text, columns)
    assert found.log.processors_allocated.tolist() == [5, 1]
    assert found.counts == {"unreadable": 1, "width": 1, "wait": 2, "request": 2, "fraction": 1}
    assert read(text, columns | {"processors": "n/zero"}).counts == {"unreadable": 4}


def test_ends_of_jobs() -> None:
    """Words of batch systems and of others, numbers of the standard, codes of processes."""
    words = [
        "Pass",
        "Killed",
        "Terminated",
        "COMPLETED",
        "failed",
        "CANCELLED",
        "success",
        "5",
        "9",
        "null",
    ]
    text = "t,s\n" + "".join(f"{place},{word}\n" for place, word in enumerate(words))
    columns = {"submit_time": "t", "run_time": "9", "processors": "1"}
    status = read(text, columns | {"status": "s"}).log.status
    assert status.tolist() == [1, 0, 1, 1, 0, 5, 1, 5, -1, -1]
    codes = "t,s\n1,0\n2,0:0\n3,1:0\n4,0:9\n5,143.0\n"
    assert read(codes, columns | {"exit_code": "s"}).log.status.tolist() == [1, 1, 0, 0, 0]


def test_odd_lines() -> None:
    """Quotes, line ends within, names that come again, too many columns: read or left out and counted."""
    text = '\nsubmitted,elapsed,cores,name\n1,5,2,"a, b\nc"\n2,5,2\n3,5,2,x,y\nsubmitted,elapsed,cores,name\n4,5,0,x\n5,-5,1,x\n6,5,2,x\n'
    found = read(text, CORES)
    assert found.counts == {"columns": 2, "moment": 1, "width": 1, "wait": 2, "request": 2}
    assert found.log.submit_time.tolist() == [0, 5]
    assert found.examples["columns"] == (5, "3 columns, there are 4 names")
    with pytest.raises(AccountingError, match=r"jobs\.csv:5: 3 columns, there are 4 names"):
        read(text, CORES, strict=True)
    with pytest.raises(
        AccountingError, match="no column 'elapsed' for run_time; there are: submitted, cores"
    ):
        read("submitted,cores\n1,2\n", CORES)
    bare = read("1,5,2\n2,6,3\n", CORES, names=("submitted", "elapsed", "cores"))
    assert bare.log.run_time.tolist() == [5, 6]
    assert read(
        "1,5,2\n", CORES, names=("submitted", "elapsed", "cores"), delimiter=";"
    ).counts == {"columns": 1}


def test_a_job_counts_once_by_its_id() -> None:
    """Where a column has ids that are of one job; where none is named, rows alike are several jobs."""
    text = "id,submitted,elapsed,cores\n1,100,5,2\n1,100,5,2\n2,100,5,2\n"
    assert len(read(text, CORES).log) == 3
    assert read(text, CORES | {"job_id": "id"}).counts["repeated"] == 1
    # Tasks of an array under its id began together, and are several.
    text = "id,submitted,elapsed,cores\n1,100,5,2\n1,100,6,2\n1,100,5,3\n"
    assert len(read(text, CORES | {"job_id": "id"}).log) == 3


@pytest.mark.parametrize("odd", ['"bad', 'x","y', '"'])
def test_a_quote_that_stands_alone_takes_no_other_line_with_it(odd: str) -> None:
    """A cell may have line ends; what is spoilt is one line, and it is counted by its number."""
    lines = [f"{place},5,2,name" for place in range(1000)]
    lines[2] = f"2,5,2,{odd}"
    lines[40] = '40,5,2,"several\nlines, and a ""word"""'
    lines[90] = f"90,5,2,{odd}"
    lines[500] = '500,5,2,5" disk'
    found = read("\n".join(["submitted,elapsed,cores,name", *lines]), CORES)
    assert len(found.log) == 998
    assert sum(count for rule, count in found.counts.items() if rule in LOST) == 2
    with pytest.raises(AccountingError, match=r"jobs.csv:4: "):
        read("\n".join(["submitted,elapsed,cores,name", *lines]), CORES, strict=True)


def test_a_code_makes_no_success_of_what_has_none() -> None:
    """Slurm writes 0:0 of what was cancelled and of what ran out of time."""
    columns = CORES | {"status": "state", "exit_code": "code"}
    rows = (
        ("COMPLETED", "0:0", 1),
        ("COMPLETED", "3:0", 0),
        ("CANCELLED by 5", "0:0", 5),
        ("TIMEOUT", "0:0", 0),
        ("", "0:0", 1),
        ("", "0:9", 0),
        ("", "", -1),
        ("COMPLETED", "", 1),
    )
    text = "\n".join(f"{place},5,2,{state},{code}" for place, (state, code, _) in enumerate(rows))
    status = read(f"submitted,elapsed,cores,state,code\n{text}", columns).log.status
    assert status.tolist() == [wanted for *_, wanted in rows]


def test_a_wait_that_is_missing_is_not_taken_for_none() -> None:
    """Where the run time is what is left of the time between submission and end, nothing says it."""
    columns = {"submit_time": "s", "wait_time": "w", "end_time": "e", "processors": "p"}
    found = read("s,w,e,p\n0,60,100,4\n0,,100,4", columns)
    assert (found.log.run_time.tolist(), found.counts["moment"]) == ([40], 1)


@pytest.mark.parametrize("nothing", ["", "0", "-1", "1970-01-01T00:00:00"])
def test_a_moment_that_never_came(nothing: str) -> None:
    """By a clock that began long ago a zero is none; by one that began with the log it is a moment."""
    columns = {"submit_time": "s", "start_time": "b", "end_time": "e", "processors": "p"}
    found = read(f"s,b,e,p\n1600000000,{nothing},1600000100,4", columns)
    assert (found.counts, found.log.status.tolist()) == ({"never": 1, "request": 1}, [5])
    found = read(f"s,b,e,p\n1600000000,1600000000,{nothing},4", columns)
    assert (len(found.log), found.counts) == (0, {"open": 1})
    assert read("s,b,e,p\n0,0,5,4", columns).log.run_time.tolist() == [5]


@pytest.mark.parametrize(
    ("columns", "units", "words"),
    [
        ({"width": "x"}, {}, "a job has no 'width'; there are: submit_time"),
        (
            {"run_time": "d", "processors": "c"},
            {},
            "name the column of submit_time, or of start_time",
        ),
        (
            {"submit_time": "a", "end_time": "b", "processors": "c"},
            {},
            "name the column of run_time, or of",
        ),
        (
            {"submit_time": "a", "run_time": "b"},
            {},
            "name the column of processors; processors=1 is",
        ),
        (CORES, {"run_time": "weeks"}, "unit 'weeks' of 'run_time' is not known; units are ns"),
        (CORES, {"user": "s"}, "unit 's' of 'user' is not known"),
    ],
)
def test_what_is_too_little(columns: dict[str, str], units: dict[str, str], words: str) -> None:
    """The error says what has to be named."""
    with pytest.raises(ValueError, match=words):
        Layout(columns, units=units)


@pytest.mark.parametrize("zone", [None, "Europe/Stockholm"])
def test_parquet(tmp_path: Path, zone: str | None) -> None:
    """Times of its own kinds, missing values, dictionaries; the same jobs as of a CSV."""
    moments = [
        datetime(2024, 1, 1, hour, tzinfo=ZoneInfo(zone) if zone else None) for hour in (0, 1)
    ]
    table = pa.table(
        {
            "submitted": pa.array([*moments, None], pa.timestamp("ns", zone)),
            "elapsed": pa.array(
                [timedelta(seconds=90), timedelta(hours=1), timedelta(1)], pa.duration("ms")
            ),
            "cores": pa.array([2, 4, 8], pa.int32()),
            "who": pa.array(["zoe", "ann", "zoe"]).dictionary_encode(),
            "left_alone": [1, 2, 3],
        }
    )
    path = tmp_path / "jobs"
    pq.write_table(table, path)
    layout = Layout(CORES | {"user": "who"})
    found = import_table(path, layout, name="jobs", zone=ZoneInfo("Europe/Stockholm"))
    assert found.counts == {"moment": 1, "wait": 2, "request": 2}
    assert found.examples["moment"].line == 3
    assert found.log.submit_time.tolist() == [0, 3600]
    assert found.log.run_time.tolist() == [90, 3600]
    assert found.log.header.unix_start_time == 1704063600
    with pytest.raises(
        AccountingError, match="jobs: no column 'nodes' for processors; there are: submitted"
    ):
        import_table(path, Layout(CORES | {"processors": "nodes"}), name="jobs")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(AccountingError, match="jobs: no Parquet file"):
        import_table(path, layout, name="jobs")


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns, units and formats by options; Parquet and CSV from a file or a pipe, packed or not."""
    log = tmp_path / "jobs.swf"
    named = [f"--column={word}={column}" for word, column in CORES.items()]
    text = "1704067200000,90,2\n1704067205000,600,4\n"
    (tmp_path / "jobs.csv").write_text(text)
    names = [
        "--format",
        "submitted,elapsed,cores",
        "--unit",
        "submit_time=ms",
        "--unit",
        "run_time=min",
    ]
    options = [*named, *names, "-o", str(log)]
    assert run_command(["import", "table", str(tmp_path / "jobs.csv"), *options]) == 0
    assert read_swf(log).run_time.tolist() == [5400, 36000]
    assert read_swf(log).submit_time.tolist() == [0, 5]
    out = io.BytesIO()
    pq.write_table(pa.table({"submitted": [1, 2], "elapsed": [5, 6], "cores": [1, 2]}), out)
    for content in (out.getvalue(), b"submitted,elapsed,cores\n1,5,1\n2,6,2\n"):
        pipe = io.BufferedReader(io.BytesIO(content))  # as a pipe is
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
        assert run_command(["import", "table", "-", *named, "-o", str(log)]) == 0
        assert read_swf(log).run_time.tolist() == [5, 6]
    capsys.readouterr()
    file = str(tmp_path / "jobs.csv")
    for arguments, words in (
        (["table", file, "--column", "x"], "'x' is not FIELD=COLUMN"),
        (["table", file, "--delimiter", "||", *named], "'||' is not one character"),
        (["table", file, "--column", "run_time=elapsed"], "name the column of submit_time"),
        (["pbs", file, *named], "alibaba-2025 alone, not for pbs"),
        (["pbs", file, "--unit", "ms"], "--unit is for table, f-data, pm100"),
        (["eagle", file, "--delimiter", ";"], "--delimiter is for table alone, not for eagle"),
    ):
        assert run_command(["import", *arguments, "-o", str(log)]) == 2
        assert words in capsys.readouterr().err


def test_a_long_field_ends_nothing() -> None:
    """What the reader of CSV refuses is left out and counted."""
    long = "x" * (csv.field_size_limit() + 1)
    found = read(f'submitted,elapsed,cores\n1,"{long}",2\n2,5,2\n', CORES)
    assert found.counts["unreadable"] == 1
    assert found.log.run_time.tolist() == [5]


PIECES = st.sampled_from(
    [
        *(
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            '"',
            "\\",
            "|",
            ";",
            " ",
            "=",
            "\n",
            "-",
            "1",
            "1704067200",
            "x",
            "²",
        ),
        *(
            "JobID|Submit|Start|End|State|AllocCPUS\n",
            "COMPLETED",
            "2024-01-01T00:00:00",
            "JOB_FINISH",
            "E",
        ),
        *(
            '"jobs": [',
            '"time"',
            "start=1 end=2 qtime=1 ",
            "exec_host=n1/0-",
            "state,job_id\n",
            "Terminated",
        ),
    ]
)


@pytest.mark.parametrize("kind", [kind for kind in READERS if kind != "htcondor"])
@given(pieces=st.lists(PIECES, max_size=30), strict=st.booleans())
def test_any_text_is_read_or_refused(kind: str, pieces: list[str], strict: bool) -> None:  # drawn
    """No file ends an import in another way than with its name and what is wrong."""
    lines = "".join(pieces).split("\n")
    try:
        import_lines(kind, lines, name="file", unreadable="error" if strict else "drop")
    except AccountingError as error:
        assert str(error).startswith("file")  # noqa: PT017  # either way is right


def test_requests_of_tables() -> None:
    """Memory and GPUs round up; words for what they are; what no job could ask for is left out of it."""
    columns = CORES | {
        "memory_mib": "kb/1024",
        "memory_per": "node",
        "gpus": "gpus",
        "gpu_type": "type",
        "nodes_max": "1",
        "features": "wants",
    }
    text = """submitted,elapsed,cores,kb,gpus,type,wants
0,10,4,2049,2,a100,ib nvme
1,10,4,,0,,
2,10,4,1024,0.5,V100M16|V100M32,
3,10,4,much,0,,"""
    found = read(text, columns)
    assert found.requests == (
        Request(
            tasks=4,
            nodes_max=1,
            memory=Memory(3, "node"),
            gpus=Gpus(2, "job", "a100"),
            features=("ib", "nvme"),
        ),
        Request(tasks=4, nodes_max=1),
        Request(tasks=4, nodes_max=1, memory=Memory(1, "node"), gpus=Gpus(1)),
    )
    counts = {rule: found.counts[rule] for rule in ("types", "part", "unreadable")}
    assert counts == {"types": 1, "part": 1, "unreadable": 1}
    assert "kb is 'much'" in found.examples["unreadable"].problem


def test_a_request_that_contradicts_itself_is_kept_as_processors() -> None:
    """It is counted; a word of the user's that is none is an error."""
    columns = CORES | {"cores_per_task": "c", "nodes_min": "n"}
    found = read("submitted,elapsed,cores,c,n\n0,1,4,3,1\n0,1,4,2,3\n0,1,4,2,2\n", columns)
    assert found.counts["contradiction"] == 2
    assert found.requests == (None, None, Request(tasks=2, cores_per_task=2, nodes_min=2))
    with pytest.raises(AccountingError, match="no column 'socket' for memory_per"):
        read(
            "submitted,elapsed,cores,m\n0,1,4,3\n",
            CORES | {"memory_mib": "m", "memory_per": "socket"},
        )


def test_requests_from_table_to_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The import writes a log and requests; without a file for these it says what is not carried."""
    table, log, requests = tmp_path / "pods.csv", tmp_path / "pods.swf", tmp_path / "pods.csv.r"
    table.write_text("t,d,c,g\n0,10,4,2\n5,10,4,0\n", encoding="utf-8")
    words = [
        *("import", "table", str(table), "-o", str(log), "--column", "submit_time=t"),
        *("--column", "run_time=d", "--column", "processors=c", "--column", "gpus=g"),
    ]
    assert run_command(words) == 0
    assert "1  jobs ask for nodes, GPUs, features or licences" in capsys.readouterr().out
    assert run_command([*words, "--requests", str(requests)]) == 0
    assert f"1 requests for more than processors written to {requests}" in capsys.readouterr().out
    machine = tmp_path / "machine.toml"
    machine.write_text('[[nodes]]\nkind = "n"\ncount = 1\ncores = 4\ngpus = 2\n', encoding="utf-8")
    run = ["run", str(log), "--nodes", str(machine), "--requests", str(requests)]
    assert run_command([*run, "--requested-time-missing", "run_time"]) == 0
    assert "2 GPUs" in capsys.readouterr().out
