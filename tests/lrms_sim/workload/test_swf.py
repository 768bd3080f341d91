import gzip
import io
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.kernel import _swf
from lrms_sim.util import log_files
from lrms_sim.workload import swf
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.swf import FIELD_NAMES, SwfError, SwfHeader, SwfLog, read_swf, write_swf

LINE = b"7 100 5 60 4 55.25 1024 8 120 -1 1 3 2 1 0 -1 6 30\n"
WHOLE_32 = {
    "processors_allocated",
    "processors_requested",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
}
WHOLE_64 = {"job_id", "preceding_job"}


def read(content: bytes) -> SwfLog:
    return read_swf(io.BytesIO(content))


def columns(log: SwfLog) -> dict[str, list[float]]:
    return {name: getattr(log, name).tolist() for name in FIELD_NAMES}


def outcome(content: bytes) -> tuple[int | None, SwfError | None]:
    """Returns the number of jobs, or the error."""
    try:
        return len(read(content)), None
    except SwfError as error:
        return None, error


def line_with(field: int, token: bytes) -> bytes:
    """Returns a good line with one field, counted from 1, replaced."""
    tokens = LINE.split()
    tokens[field - 1] = token
    return b" ".join(tokens) + b"\n"


# --- what is read --------------------------------------------------------------------------------


def test_fields_are_read_in_the_order_of_the_standard() -> None:
    """Each of the 18 numbers of a line is found in the column of its name."""
    assert columns(read(LINE)) == {
        "job_id": [7],
        "submit_time": [100.0],
        "wait_time": [5.0],
        "run_time": [60.0],
        "processors_allocated": [4],
        "cpu_time": [55.25],
        "memory_used": [1024.0],
        "processors_requested": [8],
        "requested_time": [120.0],
        "memory_requested": [-1.0],
        "status": [1],
        "user": [3],
        "group": [2],
        "executable": [1],
        "queue": [0],
        "partition": [-1],
        "preceding_job": [6],
        "think_time": [30.0],
    }


@pytest.mark.parametrize(
    "content",
    [
        LINE.rstrip(b"\n"),
        LINE.replace(b"\n", b"\r\n"),
        b"  \t" + LINE.replace(b" ", b" \t  ").replace(b"\n", b"   \n"),
        b"\n\n" + LINE + b"   \n\r\n",
        b"\xef\xbb\xbf" + LINE,
        LINE.replace(b"\n", b" ; an afterthought\n"),
        LINE.replace(b"\n", b";1 2 3\n"),
        b"; 1 2 3\n" + LINE + b";4 5 6",
        LINE.replace(b" 8 ", b" +8.0 ").replace(b" 60 ", b" 6e1 ").replace(b"7 ", b"0007 ", 1),
    ],
    ids=[
        "no last line end",
        "Windows line ends",
        "blanks and tabs",
        "blank lines",
        "byte order mark",
        "comment behind",
        "comment behind without blank",
        "comment lines",
        "other spellings",
    ],
)
def test_spelling_does_not_matter(content: bytes) -> None:
    """Line ends, blanks, comments and other ways of writing a number change nothing."""
    assert columns(read(content)) == columns(read(LINE))


def test_comments_are_kept_wherever_they_stand() -> None:
    """Comment lines are the header, whole and in their order, even between jobs."""
    content = b"; MaxProcs: 8  \r\n" + LINE + b"  ; Note: in between\n" + LINE + b";end"
    log = read(content)
    assert log.header.lines == ("; MaxProcs: 8  ", "; Note: in between", ";end")
    assert log.header.max_procs == 8
    assert len(log) == 2


def test_header_in_latin_1_is_read() -> None:
    """Old logs are not in UTF-8; their header is readable all the same."""
    log = read("; Installation: Universität\n".encode("latin-1") + "; Note: é\n".encode())
    assert log.header.lines == ("; Installation: Universität", "; Note: é")


def test_log_without_jobs_is_a_log() -> None:
    """A file that has only comments has no jobs, and is no error."""
    log = read(b"; MaxProcs: 8\n")
    assert len(log) == 0
    assert log.header.max_procs == 8


def test_gzip_is_recognized_by_content(tmp_path: Path) -> None:
    """Packed and plain files are told apart by what they hold, whatever their names."""
    packed = tmp_path / "log.swf"
    packed.write_bytes(gzip.compress(LINE))
    plain = tmp_path / "log.gz"
    plain.write_bytes(LINE)
    assert columns(read_swf(packed)) == columns(read_swf(str(plain))) == columns(read(LINE))
    assert read_swf(packed).path == str(packed)


def test_gzip_of_several_members_and_padding_is_read() -> None:
    """Members one after the other are one log, and zeros at the end are padding."""
    content = gzip.compress(LINE) + gzip.compress(b"") + gzip.compress(LINE) + b"\0" * 512
    assert len(read(content)) == 2


def test_long_logs_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the pieces of a file end does not matter, packed or plain."""
    content = b"; Version: 2\n" + b"".join(line_with(1, b"%d" % job) for job in range(1, 40))
    whole = columns(read(content))
    packed = gzip.compress(content)
    for size in (1, 2, 7, 50, 51, 1000):
        monkeypatch.setattr(log_files, "BLOCK_BYTES", size)
        monkeypatch.setattr(log_files, "PACKED_BYTES", size)
        assert columns(read(content)) == whole
        assert columns(read(packed)) == whole
        assert read(packed).header.lines == ("; Version: 2",)


@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.decimals(-(10**20), 10**20, places=3).map(str),
        st.integers(-(10**30), 10**30).map(str),
        st.from_regex(r"-?[0-9]{0,20}\.[0-9]{1,20}", fullmatch=True),
    ).filter(lambda text: abs(Decimal(text)) < Decimal("1e308"))
)
def test_real_numbers_are_correctly_rounded(text: str) -> None:
    """A decimal is read as the nearest double, as Python reads it, by the fast and slow path."""
    value = read(line_with(4, text.encode())).run_time[0]
    assert struct.pack("d", value) == struct.pack("d", float(text))


@given(st.integers(-(2**64), 2**64), st.sampled_from(["", ".", ".0", ".000"]))
def test_whole_numbers_are_exact_or_refused(number: int, tail: str) -> None:
    """A job number is kept to the last digit, and refused outside of 64 bits."""
    content = line_with(1, f"{number}{tail}".encode())
    if -(2**63) <= number < 2**63 and (not tail or abs(number) < 10**15):
        assert read(content).job_id[0] == number
    elif not tail:
        with pytest.raises(SwfError, match=r"expected a whole number between -9223372036854775808"):
            read(content)


@pytest.mark.parametrize("number", [-(2**31), 2**31 - 1, 2**31, -(2**31) - 1])
def test_limits_of_narrow_fields(number: int) -> None:
    """The users -2147483648 to 2147483647 can be read, others are an error and do not wrap."""
    content = line_with(12, b"%d" % number)
    if -(2**31) <= number < 2**31:
        assert read(content).user[0] == number
    else:
        with pytest.raises(
            SwfError,
            match=rf"<stream>:1: field 12 \(user\) is '{number}'; expected a whole number between "
            r"-2147483648 and 2147483647",
        ):
            read(content)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            line_with(5, b"abc"),
            "field 5 (allocated processors) is 'abc'; expected a whole number",
        ),
        (line_with(5, b"1.5"), "field 5 (allocated processors) is '1.5'; expected a whole number"),
        (line_with(5, b"15e-1"), "field 5 (allocated processors) is '15e-1'; expected a whole"),
        (line_with(4, b"nan"), "field 4 (run time) is 'nan'; expected a number"),
        (line_with(4, b"-inf"), "field 4 (run time) is '-inf'; expected a number"),
        (line_with(4, b"1e999"), "field 4 (run time) is '1e999'; expected a finite number"),
        (line_with(4, b"9" * 310), "expected a finite number"),
        (line_with(4, b"9" * 500), "and 460 more bytes; expected a number"),
        (line_with(4, b"-"), "field 4 (run time) is '-'; expected a number"),
        (line_with(4, b"."), "field 4 (run time) is '.'; expected a number"),
        (line_with(4, b"1_000"), "field 4 (run time) is '1_000'; expected a number"),
        (line_with(4, b"0x10"), "field 4 (run time) is '0x10'; expected a number"),
        (line_with(4, b"10:30"), "field 4 (run time) is '10:30'; expected a number"),
        (line_with(4, b"1,5"), "field 4 (run time) is '1,5'; expected a number"),
        (line_with(1, b"\x00\x01"), "field 1 (job number) is '\\x00\\x01'; expected a whole"),
        (b"1 2 3\n", "3 fields; expected 18 numbers apart by blanks"),
        (b"1\n", "1 field; expected 18 numbers"),
        (b"1 2 ; 3\n", "2 fields; expected 18 numbers"),
    ],
)
def test_malformed_line_is_named(line: bytes, problem: str, tmp_path: Path) -> None:
    """The error says file, line, field, what was found and what was expected."""
    path = tmp_path / "KTH.swf"
    path.write_bytes(b"; comment\n\n" + LINE + line + LINE)
    with pytest.raises(SwfError) as caught:
        read_swf(path)
    assert str(caught.value).startswith(f"{path}:4: ")
    assert problem in str(caught.value)
    assert caught.value.line == 4
    assert caught.value.path == str(path)


def test_line_numbers_are_right_behind_the_first_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault far down in a long log is found in the right line."""
    monkeypatch.setattr(log_files, "BLOCK_BYTES", 64)
    with pytest.raises(SwfError, match=r"<stream>:1001: field 2 \(submit time\) is 'x'"):
        read(LINE * 1000 + line_with(2, b"x") + LINE)


def test_truncated_gzip_is_an_error_wherever_it_ends() -> None:
    """No beginning of a packed log passes for the log."""
    lines = b"".join(line_with(1, b"%d" % (job * 7919 % 1009)) for job in range(200))
    packed = gzip.compress(lines)
    for size in [*range(3, 40), *range(40, len(packed), 37), *range(len(packed) - 9, len(packed))]:
        with pytest.raises(SwfError, match="<stream>: is cut off: the gzip data end after"):
            read(packed[:size])
    assert len(read(packed)) == 200


def test_damaged_gzip_is_an_error() -> None:
    """A flipped bit and rubbish behind the data are seen."""
    packed = bytearray(gzip.compress(LINE * 50))
    packed[-6] ^= 1
    with pytest.raises(SwfError, match=r"is damaged: its checksum \(CRC\) is not that of"):
        read(bytes(packed))
    with pytest.raises(SwfError, match=r"is damaged: .*incorrect header"):
        read(gzip.compress(LINE) + b"rubbish")


def test_what_stands_behind_field_18_is_counted() -> None:
    """Such records are read as far as the standard goes, whatever the others' fields are."""
    text = b"1 2 3\n".join([LINE]) + LINE.rstrip() + b" 19 20\n" + LINE.rstrip() + b" x:y ; z\n"
    log = read(text)
    assert columns(log) == columns(read(LINE * 3))
    assert (log.longer_records, log.title_lines) == (2, 0)


def test_a_title_before_the_jobs_is_counted() -> None:
    """Words, names of columns, a rule beneath them: no job begins so, and up to 20 of them are passed over."""
    title = b"Frontier 2024\n2024 jobs of it\n; MaxProcs: 8\n\nJob Submit Wait\n-----\n"
    log = read(title + LINE)
    assert (len(log), log.title_lines, log.header.max_procs) == (1, 4, 8)
    with pytest.raises(SwfError, match=r"<stream>:8: field 1 \(job number\) is 'Job'"):
        read(title + LINE + b"Job Submit\n")
    with pytest.raises(SwfError, match=r"<stream>:1: field 1 \(job number\) is 'Frontier'"):
        read(title)
    with pytest.raises(SwfError, match="<stream>:1: field 1"):
        read(title + b"1 2 3\n")
    with pytest.raises(SwfError, match="<stream>:1: field 1"):
        read(b"word\n" * 20 + b"word\n" + LINE)
    assert len(read(b"word\n" * 20 + LINE)) == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_wide_text_is_read(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    """What some editors call Unicode is a log like any other."""
    log = read(pack(f"; Note: é\r\n{LINE.decode()}".encode(encoding)))
    assert columns(log) == columns(read(LINE))
    assert log.header.fields["Note"] == "é"


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf"])
def test_empty_file_is_an_error(content: bytes) -> None:
    """A file of nothing is no log: something went wrong before."""
    with pytest.raises(SwfError, match="<stream>: is empty"):
        read(content)


def test_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without line ends is refused before it fills the memory."""
    monkeypatch.setattr(log_files, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(swf, "LINE_BYTES_MAX", 5000)
    file = io.BytesIO(b"1" * 100_000)
    with pytest.raises(SwfError, match="has a line of more than 5000 bytes"):
        read_swf(file)
    assert file.tell() < 20_000 + log_files.PACKED_BYTES


@given(st.binary(max_size=300))
def test_binary_rubbish_is_an_error_and_nothing_worse(content: bytes) -> None:
    """Any bytes are either a log or a SwfError."""
    jobs, error = outcome(content)
    # What passes for a log holds blanks and comments only: chance writes no 18 numbers.
    assert jobs == 0 or str(error).startswith("<stream>")


@given(st.text("0123456789 .-+eE;\n\r\tnaif", max_size=400))
def test_text_rubbish_is_read_as_a_plain_reader_would(text: str) -> None:
    """Lines are accepted and refused, and numbered, as by a slow and obvious reader."""
    jobs, bad_line, hidden = 0, None, False
    for number, line in enumerate(text.split("\n"), 1):
        tokens = line.split(";")[0].split()
        if not tokens:
            hidden = hidden or (";" in line and "\r" in line.lstrip().rstrip("\r"))
            continue
        if len(tokens) != 18 or not all(is_number(token) for token in tokens):
            bad_line = number
            break
        jobs += 1
    found, error = outcome(text.encode())
    if bad_line is None and not hidden and text:
        assert found == jobs
    else:
        assert error is not None
        assert error.line == bad_line


def is_number(token: str) -> bool:
    try:
        return math.isfinite(float(token))
    except ValueError:
        return False


@given(st.lists(st.sampled_from([LINE.decode(), ";\n", "\n", "1 2\n", "x\n"]), max_size=6))
def test_lines_are_counted_as_a_plain_reader_would(lines: list[str]) -> None:
    """Whole lines good and bad in any order: the first bad one is the one that is named."""
    first = next((at for at, line in enumerate(lines) if line in {LINE.decode(), "1 2\n"}), 0)
    titles = first if first and lines[first] == LINE.decode() else 0
    bad = [
        number
        for number, line in enumerate(lines, 1)
        if line == "1 2\n" or (line == "x\n" and number > titles)
    ]
    found, error = outcome("".join(lines).encode())
    if error is None:
        assert not bad
        assert found == lines.count(LINE.decode())
    else:
        assert error.line == (bad[0] if bad else None)
        assert bad or not lines


def test_lone_carriage_returns_are_refused() -> None:
    """Lines that an old line end hides in a comment are not dropped in silence."""
    with pytest.raises(SwfError, match="has lone carriage returns in a comment"):
        read(b"; Version: 2\r" + LINE.replace(b"\n", b"\r"))


def test_missing_file_and_directory_are_clear_errors(tmp_path: Path) -> None:
    """What cannot be opened is one kind of error, with the reason of the system."""
    with pytest.raises(SwfError, match=r"nowhere\.swf: cannot be read: No such file or directory"):
        read_swf(tmp_path / "nowhere.swf")
    with pytest.raises(SwfError, match="cannot be read: Is a directory"):
        read_swf(tmp_path)


def test_compiled_reader_refuses_shapes_that_do_not_fit() -> None:
    """The compiled half never writes outside of its arrays."""
    reals, longs, ints = np.empty((8, 1)), np.empty((2, 1), np.int64), np.empty((8, 1), np.int32)
    kinds, slots = swf._KINDS, swf._SLOTS
    with pytest.raises(ValueError, match="no room for more than 1 rows"):
        _swf.parse_block(LINE * 2, 0, kinds, slots, reals, longs, ints, [])
    with pytest.raises(ValueError, match="does not end with a line end"):
        _swf.parse_block(LINE.strip(), 0, kinds, slots, reals, longs, ints, [])
    with pytest.raises(ValueError, match="no row for field"):
        _swf.parse_block(LINE, 0, kinds, slots, reals[:7], longs, ints, [])
    with pytest.raises(ValueError, match="need 18 entries"):
        _swf.parse_block(LINE, 0, kinds[:17], slots, reals, longs, ints, [])
    with pytest.raises(ValueError, match="differ in length"):
        _swf.parse_block(LINE, 0, kinds, slots, reals, longs, np.empty((8, 2), np.int32), [])
    assert _swf.parse_block(b"", 3, kinds, slots, reals, longs, ints, []) == (0, 3, None, 0)
    assert _swf.parse_block(LINE, 3, kinds, slots, reals, longs, ints, []) == (1, 4, None, 0)


# --- what is written -----------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn) -> SwfLog:
    """Draws a log of any values that the format can say."""
    count = draw(st.integers(0, 6))
    reals = st.one_of(
        st.sampled_from([-1.0, 0.0, 0.5, 1e15, -1e15, 2.0**53, 5e-324, 1.7e308]),
        st.integers(-(10**9), 10**9).map(float),
        st.floats(allow_nan=False, allow_infinity=False),
    )
    values: dict[str, list[float]] = {}
    for name in FIELD_NAMES:
        numbers: st.SearchStrategy[float] = reals
        if name in WHOLE_32:
            numbers = st.integers(-(2**31), 2**31 - 1)
        elif name in WHOLE_64:
            numbers = st.integers(-(2**63), 2**63 - 1)
        values[name] = draw(st.lists(numbers, min_size=count, max_size=count))
    remarks = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))
    header = draw(st.lists(remarks.map(lambda text: f";{text}"), max_size=3))
    arrays = {
        name: np.array(
            column,
            np.int32 if name in WHOLE_32 else np.int64 if name in WHOLE_64 else np.float64,
        )
        for name, column in values.items()
    }
    return SwfLog.from_columns(arrays, SwfHeader(tuple(header)))


@given(logs(), st.sampled_from(["log.swf", "log.swf.gz"]))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, log: SwfLog, name: str
) -> None:
    """Every log survives writing and reading to the last digit, header and all."""
    path = tmp_path_factory.getbasetemp() / name
    write_swf(path, log)
    again = read_swf(path)
    assert columns(again) == columns(log)
    assert again.header.lines == (log.header.lines or (() if len(log) else (";",)))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 100).map(float),
            st.integers(1, 64),
            st.one_of(st.integers(1, 1000).map(float), st.floats(0.001, 1e6)),
            st.integers(0, 1000).map(float),
            st.integers(-1, 5),
        ),
        max_size=10,
    )
)
def test_job_tables_survive(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, int, float, float, int]]
) -> None:
    """A job table that is written, read and prepared is the same table, nothing dropped."""
    jobs = JobTable.from_columns(
        submit_time=[row[0] for row in rows],
        processors=[row[1] for row in rows],
        run_time=[row[2] for row in rows],
        requested_time=[row[2] + row[3] for row in rows],
        user=[row[4] for row in rows],
    )
    path = tmp_path_factory.getbasetemp() / "jobs.swf.gz"
    write_swf(path, jobs)
    prepared = prepare(read_swf(path), 64)
    assert prepared.report.entries == ()
    for name in ("job_id", "submit_time", "processors", "requested_time", "run_time", "user"):
        assert getattr(prepared.jobs, name).tolist() == getattr(jobs, name).tolist()


def test_written_text_is_plain(tmp_path: Path) -> None:
    """Whole numbers have no decimals, fields are apart by one blank, the header comes first."""
    path = tmp_path / "one.swf"
    write_swf(path, {"submit_time": [10, 20.5], "user": [3, -1]}, SwfHeader(("; MaxProcs: 4",)))
    assert path.read_text() == (
        "; MaxProcs: 4\n"
        "1 10 -1 -1 -1 -1 -1 -1 -1 -1 -1 3 -1 -1 -1 -1 -1 -1\n"
        "2 20.5 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n"
    )


def test_header_left_out_says_version_and_number(tmp_path: Path) -> None:
    """A log written without a header still says what it is."""
    path = tmp_path / "one.swf"
    write_swf(path, {"submit_time": [1, 2]})
    assert read_swf(path).header.fields == {"Version": "2.2", "MaxJobs": "2", "MaxRecords": "2"}


def test_same_jobs_give_the_same_bytes(tmp_path: Path) -> None:
    """Neither the file's name nor the time of writing is in a packed log."""
    for name in ("a.swf.gz", "b.swf.gz"):
        write_swf(tmp_path / name, {"submit_time": np.arange(100.0)})
    first, second = ((tmp_path / name).read_bytes() for name in ("a.swf.gz", "b.swf.gz"))
    assert first == second
    assert first[:2] == b"\x1f\x8b"
    assert first[4:8] == b"\0\0\0\0"


def test_long_logs_are_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one piece ends and the next begins does not show."""
    jobs = {"submit_time": np.arange(10.0), "user": np.arange(10)}
    write_swf(tmp_path / "whole.swf", jobs)
    monkeypatch.setattr(swf, "WRITE_ROWS", 3)
    write_swf(tmp_path / "pieces.swf", jobs)
    assert (tmp_path / "pieces.swf").read_bytes() == (tmp_path / "whole.swf").read_bytes()


def test_bad_columns_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    """A column that the format cannot say leaves no file behind."""
    path = tmp_path / "bad.swf"
    with pytest.raises(ValueError, match="run_time in row 1 is nan"):
        write_swf(path, {"run_time": [1.0, float("nan")]})
    assert not path.exists()


def test_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    """A file that cannot be written is the system's error, with its reason."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_swf(tmp_path / "nowhere" / "log.swf", {"submit_time": [1.0]})
