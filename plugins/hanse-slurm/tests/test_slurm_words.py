"""What the programs print and take, without a cluster: states, times, columns, lists, and how they find Slurm's own."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.lrms.slurm.job_rows import (
    CANCELLED,
    COMPLETED,
    FAILED,
    OPEN,
    PENDING,
    RUNNING,
    STATES,
    TIMEOUT,
    Row,
    minutes,
    read_states,
    row_of,
    together,
)
from grms.util.job_arrays import ArraySpec
from grms.v1 import job_pb2, request_pb2
from hanse_slurm import programs
from hanse_slurm.command import run_command
from hanse_slurm.options import UsageError, parse, with_variables
from hanse_slurm.queue_fields import in_order, lines, read_letters, read_names
from hanse_slurm.srun import with_told_names
from hanse_slurm.times import duration, long_duration, moment, read_moment
from hanse_slurm.variables import job_words
from tests.programs import run_program


def job(job_id: str = "home-12", **more: object) -> job_pb2.Job:
    """Returns a job that waits, unless more is said of it."""
    made = job_pb2.Job(job_id=job_id, name="n", user="root", submit_time_s=100.0)
    made.request.processors = 2
    made.request.requested_time_s = 90.0
    made.state = job_pb2.JOB_STATE_QUEUED
    for name, value in more.items():
        setattr(made, name, value)
    return made


def element(index: int, **more: object) -> Row:
    """Returns an element of array 12 that waits."""
    made = job(f"home-12_{index}", array_id="home-12", array_index=index, **more)
    return row_of(made, 1000.0)


# --- states --------------------------------------------------------------------------------------


def test_every_state_has_a_word_of_slurms() -> None:
    """Whatever the phase: open ones stay open, and what a later version calls an end is one."""
    for state in job_pb2.JobState.values():
        for phase in request_pb2.JobPhase.values():
            row = row_of(job(state=state, phase=phase, executed_on="away"), 1000.0)
            assert (row.state in OPEN) == (state != job_pb2.JOB_STATE_ENDED)
    for outcome in request_pb2.Outcome.values():
        row = row_of(job(state=job_pb2.JOB_STATE_ENDED, outcome=outcome), 1000.0)
        assert row.state in STATES
        assert row.state not in OPEN
    lost = row_of(
        job(state=job_pb2.JOB_STATE_ENDED, outcome=request_pb2.OUTCOME_LOST, exit_code=0), 9.0
    )
    assert (lost.state, lost.reason) == (FAILED, "SystemFailure")


def test_a_job_at_a_partner_stands_where_that_has_said() -> None:
    """It waits until the partner says that it runs; then the partner's name stands for its nodes."""
    waits = job(state=job_pb2.JOB_STATE_DELEGATED, executed_on="away")
    assert (row_of(waits, 9.0).state, row_of(waits, 9.0).place) == (PENDING, "(None)")
    runs = job(
        state=job_pb2.JOB_STATE_DELEGATED,
        executed_on="away",
        phase=request_pb2.JOB_PHASE_RUNNING,
        start_time_s=200.0,
    )
    row = row_of(runs, 260.5)
    assert (row.state, row.place, row.elapsed_s, row.end_s) == (RUNNING, "away", 60.5, 290.0)
    ended = job(
        state=job_pb2.JOB_STATE_ENDED,
        outcome=request_pb2.OUTCOME_TIMEOUT,
        executed_on="away",
        start_time_s=200.0,
        end_time_s=290.0,
        signal=15,
    )
    row = row_of(ended, 9999.0)
    assert (row.state, row.place, row.exit, row.elapsed_s) == (TIMEOUT, "(TimeLimit)", "0:15", 90.0)


def test_what_a_job_waits_for_is_its_reason() -> None:
    """Other jobs, its array's limit, or what keeps it from ever starting."""
    held = job(state=job_pb2.JOB_STATE_HELD)
    assert row_of(held, 9.0).reason == "JobArrayTaskLimit"
    held.dependencies.add(kind=job_pb2.DEPENDENCY_KIND_AFTEROK, job_id="home-7")
    held.dependencies.add(kind=job_pb2.DEPENDENCY_KIND_SINGLETON)
    row = row_of(held, 9.0)
    assert (row.reason, row.dependency) == (
        "Dependency",
        "afterok:7(unfulfilled),singleton(unfulfilled)",
    )
    assert row_of(job(stuck="no partner"), 9.0).reason == "BadConstraints"


@pytest.mark.parametrize(
    ("code", "number", "reason"),
    [(0, 9, "JobLaunchFailure"), (137, 0, "NonZeroExitCode"), (1, 9, "NonZeroExitCode")],
)
def test_a_script_that_a_signal_has_ended_has_slurms_reason(
    code: int, number: int, reason: str
) -> None:
    """Which is another than that of an exit code."""
    ended = job(
        state=job_pb2.JOB_STATE_ENDED,
        outcome=request_pb2.OUTCOME_FAILED,
        exit_code=code,
        signal=number,
    )
    assert row_of(ended, 9.0).reason == reason


def test_states_are_named_in_any_way() -> None:
    """Words and letters, large and small; those that no job of a site is in are known and match none."""
    assert read_states("pd,Running,CD") == frozenset((PENDING, RUNNING, COMPLETED))
    assert read_states("all") is None
    assert read_states("PREEMPTED,dl") == frozenset()
    for text, word in (("", ""), ("X", "X"), ("PD,", ""), ("R,PENDING;R", "PENDING;R")):
        with pytest.raises(ValueError, match=f"^{word}$"):
            read_states(text)


# --- arrays --------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 300), min_size=1))
@settings(deadline=None)
def test_elements_that_wait_stand_in_one_line(indices: set[int]) -> None:
    """Which names exactly them, as sites read such names."""
    (row,) = together(element(index) for index in indices)
    assert row.number == f"12_[{row.index}]"
    assert set(ArraySpec.parse(row.index)) == indices
    assert job_words([row.number]) == [row.number]


def test_only_what_waits_for_the_same_stands_together() -> None:
    """In the place of the first; what runs or has ended has a line each."""
    ended = {"state": job_pb2.JOB_STATE_ENDED, "outcome": request_pb2.OUTCOME_CANCELLED}
    rows = [
        element(1, state=job_pb2.JOB_STATE_RUNNING),
        element(2),
        row_of(job(), 9.0),
        element(3, **ended),
        element(5),
        element(6, state=job_pb2.JOB_STATE_HELD),
    ]
    assert [row.number for row in together(rows)] == ["12_1", "12_[2,5]", "12", "12_3", "12_[6]"]


@pytest.mark.parametrize("word", ["x", "", "12.batch", "-1", "12_", "12_[]", "12+1", "1;2", "１２"])
def test_what_names_no_job_is_refused(word: str) -> None:
    """Before the site is asked."""
    with pytest.raises(UsageError, match="Invalid job id"):
        job_words([word])


def test_a_job_is_itself_by_the_number_of_its_batch_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within it, and where it knows its name at the site."""
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.delenv("HANSE_JOB_ID", raising=False)
    assert job_words(["77,home-3", "5_[1,3]"]) == ["77", "home-3", "5_[1,3]"]
    monkeypatch.setenv("HANSE_JOB_ID", "home-12")
    assert job_words(["77,77_1"]) == ["home-12", "77_1"]


# --- times ---------------------------------------------------------------------------------------


def test_times_are_printed_as_slurm_prints_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short in queues, long in accounts; limits in whole minutes."""
    day = 86400
    assert [duration(s) for s in (0, 59, 60, 3599, 3600, day + 3723)] == [
        *("0:00", "0:59", "1:00", "59:59", "1:00:00", "1-01:02:03"),
    ]
    assert [long_duration(s) for s in (-1, 61, 3600, day)] == [
        *("00:00:00", "00:01:01", "01:00:00", "1-00:00:00"),
    ]
    assert [minutes(s) for s in (0.1, 60, 60.1, 119)] == [1, 1, 2, 2]
    assert moment(None) == "N/A"
    monkeypatch.setenv("SLURM_TIME_FORMAT", "%Y")
    assert moment(86400.0 * 366) == "1971"
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    with pytest.raises(UsageError, match="SLURM_TIME_FORMAT=relative"):
        moment(1.0)


@given(st.integers(86400, 4_000_000_000))
@settings(deadline=None)
def test_moments_are_read_as_they_are_printed(second: int) -> None:
    """But for the hour that a clock goes through twice."""
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(second))
    assert abs(read_moment(text, 0.0) - second) in {0, 3600}


def test_moments_are_read_in_slurms_forms() -> None:
    """Days, times of today, and so long ago; others are refused."""
    now = time.mktime((2026, 11, 29, 13, 5, 7, 0, 0, -1))
    midnight = now - 13 * 3600 - 5 * 60 - 7
    assert read_moment("today", now) == read_moment("midnight", now) == midnight
    assert read_moment("2026-11-29", now) == midnight
    assert read_moment("12:30", now) == midnight + 12.5 * 3600
    assert read_moment("now", now) == now
    assert read_moment("now-2days", now) == now - 2 * 86400
    assert read_moment("now-1hour", now) == now - 3600
    assert read_moment("now+30", now) == now + 30
    for wrong in ("", "now-", "yesterday", "2026-13-01", "25", "now-1year"):
        with pytest.raises(UsageError, match="Invalid time"):
            read_moment(wrong, now)


# --- columns -------------------------------------------------------------------------------------


def test_columns_are_placed_as_they_are_told() -> None:
    """Cut and filled to their width, left or right, with the text between them."""
    row = row_of(job(), 9.0)
    assert list(lines(*read_letters("<%5i|%.5t|%.1j%T>"), [row], head=True)) == [
        "<JOBID|   ST|NSTATE>",
        "<12   |   PD|nPENDING>",
    ]
    assert list(lines(*read_names("JobArrayID:3|,state:.8:"), [row], head=False)) == [
        "12 | PENDING:"
    ]
    # A colon alone: as wide as the text.
    assert list(lines(*read_names("State:|,Name:"), [row], head=True)) == [
        "STATE|NAME",
        f"PENDING|{row.name}",
    ]
    # Slurm cuts lists of nodes and durations to the left alone, and heads of durations.
    limited = replace(row, limit_s=93_784.0)
    assert list(lines(*read_letters("%.3l|%3l|%.3N|%.2M"), [limited], head=True)) == [
        "TIM|TIM|NODELIST|TI",
        "1-02:04:00|1-0|   |0:00",
    ]
    for wrong in ("%", "%5", "%!", "%y", "%.i%", "%é"):
        with pytest.raises(UsageError, match="Invalid job format"):
            read_letters(wrong)
    for wrong in ("", "JobID,", "JobID , Name", "nothing", "JobID:99999"):
        with pytest.raises(UsageError, match="Invalid job format"):
            read_names(wrong)


def test_jobs_are_sorted_as_told() -> None:
    """By partition and state unless told; a minus turns the order round."""
    rows = [
        row_of(job(f"home-{number}", state=state, name=name), 9.0)
        for number, state, name in (
            (2, job_pb2.JOB_STATE_RUNNING, "b"),
            (10, job_pb2.JOB_STATE_QUEUED, "a"),
            (9, job_pb2.JOB_STATE_QUEUED, "c"),
        )
    ]
    assert [row.number for row in in_order(rows, "")] == ["10", "9", "2"]
    assert [row.number for row in in_order(rows, "i")] == ["2", "9", "10"]
    assert [row.number for row in in_order(rows, "-i")] == ["10", "9", "2"]
    assert [row.number for row in in_order(rows, "t,-j")] == ["9", "10", "2"]


@given(st.sampled_from(["", "-o", "-O", "-l", "--json"]), st.booleans(), st.booleans())
def test_a_variable_counts_where_nothing_was_typed(typed: str, letters: bool, names: bool) -> None:
    """Of two that say the same the first counts, and an empty one says nothing."""
    options = ("-o", "--format", "-O", "-l", "--json")
    variables = {"SQUEUE_A": ("--format", *options), "SQUEUE_B": ("--Format", *options)}
    given_ones = [(typed, "x")] if typed else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQUEUE_A", "a" if letters else "")
        patch.setenv("SQUEUE_B", "b" if names else "")
        found = with_variables("squeue", given_ones, variables)
    more = [("--format", "a")] if letters else [("--Format", "b")] if names else []
    assert found == given_ones + ([] if typed else more)


# --- programs ------------------------------------------------------------------------------------


def test_options_that_are_not_known_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With where Slurm's own program is, if there is one."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match=r"^option --reservation is not known .* a site$"):
        parse("squeue", ["--reservation=x"], "h", ["noheader"])
    with pytest.raises(UsageError, match="option -w is not known"):
        parse("squeue", ["-hw", "n1"], "h", ["noheader"])
    with pytest.raises(UsageError, match="requires argument"):
        parse("squeue", ["-o"], "o:", [])
    assert parse("squeue", ["1", "--nohead", "2"], "h", ["noheader"]) == (
        [("--noheader", "")],
        ["1", "2"],
    )


def test_programs_are_installed_and_find_slurms_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behind their folder, and behind any other of them; again replaces them, and nothing else is replaced."""
    first, second, slurms = (tmp_path / name for name in ("first", "second", "slurms"))
    slurms.mkdir()
    (slurms / "sinfo").write_text('#!/bin/sh\necho "slurm: $*"\n')
    (slurms / "sinfo").chmod(0o755)
    for folder in (first, second, first):
        assert run_command(["install", str(folder)]) == 0
    assert sorted(path.name for path in first.iterdir()) == sorted(
        (*programs.NAMES, programs.PROLOG)
    )
    capsys.readouterr()
    assert run_command(["env", str(first)]) == 0
    line = capsys.readouterr().out
    command = f"{line}sinfo -o '%P %l'"
    environment = {"PATH": f"{second}:{slurms}:/usr/bin:/bin"}
    said = run_program(["/bin/sh", "-c", command], env=environment, check=True)
    assert said.stdout == "slurm: -o %P %l\n"
    environment["PATH"] = f"{second}:/nowhere"
    for name in ("sinfo", "sbatch", "scontrol", "srun"):
        said = run_program([first / name, "--version"], env=environment)
        assert said.returncode == 1
        assert f"this is for Slurm's own {name}, and there is none along PATH" in said.stderr

    (second / "squeue").write_text("mine\n")
    assert run_command(["install", str(second)]) == 2
    assert "squeue is there, and is no program of hanse-slurm" in capsys.readouterr().err
    assert (second / "squeue").read_text() == "mine\n"
    assert run_command(["env", str(slurms)]) == 2
    assert "has no sbatch" in capsys.readouterr().err


@pytest.mark.parametrize("name", programs.NAMES)
@pytest.mark.parametrize("way", ["exec ", ""])
def test_a_wrapper_of_a_program_is_not_taken_for_slurms_own_for_ever(
    tmp_path: Path, name: str, way: str
) -> None:
    """As a site may have one that logs all calls: who finds it in the place of Slurm's own says so."""
    first, wrappers = tmp_path / "first", tmp_path / "wrappers"
    assert run_command(["install", str(first)]) == 0
    wrappers.mkdir()
    (wrappers / name).write_text(f'#!/bin/sh\n{way}{first}/{name} "$@"\n')
    (wrappers / name).chmod(0o755)
    said = run_program(
        [first / name, *(["--wrap=true"] if name == "sbatch" else ["--version"])],
        env={"PATH": f"{wrappers}:/usr/bin:/bin", "HANSE_SOCKET": "/nowhere"},
        timeout=120,
    )
    assert said.returncode == 1
    assert (
        f"{wrappers}/{name} is to be Slurm's own {name}, and starts this one again" in said.stderr
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("-o", "%j_%t.out", "x", "-o", "%j"), ("-o", "12_%t.out", "x", "-o", "%j")),
        (("--output=%j", "--error", "%3j", "x"), ("--output=12", "--error", "012", "x")),
        (
            ("-e%j", "-n", "2", "--mpi", "none", "-u", "x"),
            ("-e12", "-n", "2", "--mpi", "none", "-u", "x"),
        ),
        (
            ("--unbuffered", "-i", "%%j", "--", "-o", "%j"),
            ("--unbuffered", "-i", "%%j", "--", "-o", "%j"),
        ),
        (("-n2", "--label", "-o"), ("-n2", "--label", "-o")),
        ((), ()),
    ],
)
def test_names_of_files_get_the_told_number(words: tuple[str, ...], found: tuple[str, ...]) -> None:
    """Those that srun itself writes; what the program is told is its own."""
    assert with_told_names(words, "12") == list(found)


def test_a_program_cannot_have_quotes_in_its_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a line of a shell and of Python."""
    monkeypatch.setattr("sys.executable", "/it's/python")
    with pytest.raises(ValueError, match="quotes"):
        programs.program_text("sbatch")


def test_a_program_looks_where_packages_are_installed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the present folder of who has installed it, nor in those of that user's PYTHONPATH."""
    for name in ("given", "installed", "present"):
        (tmp_path / name).mkdir()
        monkeypatch.syspath_prepend(tmp_path / name)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/given:")
    text = programs.program_text("sbatch")
    assert f'"{tmp_path}/installed"' in text
    assert f"{tmp_path}/present" not in text
    assert f"{tmp_path}/given" not in text


def test_cancelled_jobs_that_never_ran_have_no_place() -> None:
    """As with Slurm; they have neither start nor run time."""
    ended = job(
        state=job_pb2.JOB_STATE_ENDED,
        outcome=request_pb2.OUTCOME_CANCELLED,
        executed_on="home",
        end_time_s=150.0,
    )
    row = row_of(ended, 9.0)
    assert (row.state, row.place, row.elapsed_s, row.start_s) == (CANCELLED, "", 0.0, None)
