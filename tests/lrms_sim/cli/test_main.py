import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, get_args, get_type_hints

import click
import pytest

from lrms_sim.cli import generate_command, log_options, run_command
from lrms_sim.cli import main as cli
from lrms_sim.cli.running import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_PIPE
from lrms_sim.kernel import _schedule_csv
from lrms_sim.machine import machine
from lrms_sim.scheduling.disciplines import DISCIPLINES
from lrms_sim.util.version import __version__
from lrms_sim.workload import schedule_files
from lrms_sim.workload.jobs import JOBS_MAX, Shift
from lrms_sim.workload.preparation import PreparationOptions
from lrms_sim.workload.schedule import MachineInfo, Schedule
from lrms_sim.workload.swf import read_swf
from tests.programs import run_program
from tests.schemas import printed

# Two processors. Job 2 waits for job 1; job 4 ran longer than requested; job 5 never ran.
LOG = """\
; Version: 2.2
; Computer: test [bold]machine[/bold]
; MaxProcs: 2
; UnixStartTime: 0
1 0 -1 10 2 -1 -1 2 20 -1 1 1 1 -1 1 -1 -1 -1
2 1 -1 5 1 -1 -1 1 9 -1 1 2 1 -1 1 -1 -1 -1
3 100000 -1 5 1 -1 -1 1 9 -1 1 2 1 -1 1 -1 -1 -1
4 100001 -1 50 1 -1 -1 1 9 -1 1 2 1 -1 1 -1 -1 -1
5 100002 -1 0 1 -1 -1 1 9 -1 5 2 1 -1 1 -1 -1 -1
"""

Result = tuple[int, str, str]
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Returns a function that runs the command line: status, standard output, standard error."""
    (tmp_path / "log.swf").write_text(LOG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str) -> Result:
        status = cli.run_command(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def process(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Runs the command as a process of its own."""
    code = "from lrms_sim.command import main; main()"
    return run_program(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_run_prints_metrics_and_preparation(run: Run) -> None:
    """The tables hold the metrics, and each dropped or altered record by reason, in 80 columns."""
    status, out, err = run("run", "log.swf")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    words = " ".join(out.split())
    assert "log, 2 processors (MaxProcs of the log)" in words
    # (20·10 + 5·14 + 5·5 + 9·9) / 39
    assert "AWRT 9.6410 s" in words
    assert "5 records read, 1 dropped, 4 jobs prepared" in words
    assert "run time 0 s 1 dropped" in words
    assert "killed at the request 1 altered" in words


def test_run_writes_schedule_and_log(run: Run, tmp_path: Path) -> None:
    """The files of a run hold its jobs, under the machine's name, and are named in the output."""
    status, out, _ = run(
        "run", "log.swf", "--schedule", "a.csv", "--swf", "a.swf.gz", "--name", "two"
    )
    assert status == 0
    assert out.endswith("\nWritten to a.csv\nWritten to a.swf.gz\n")
    machines = [MachineInfo("two", 2)]
    schedule = schedule_files.read_csv(tmp_path / "a.csv", machines)
    assert schedule.start_time.tolist() == [0, 10, 100000, 100001]
    log = read_swf(tmp_path / "a.swf.gz")
    assert log.wait_time.tolist() == [0, 9, 0, 0]
    assert log.header.fields["Computer"] == "test [bold]machine[/bold]"
    assert log.header.fields["Note"] == f"Schedule simulated with lrms-sim {__version__}"


def test_an_ending_that_is_not_known_is_said_with_what_the_file_is(
    run: Run, tmp_path: Path
) -> None:
    """It is written all the same; a name without an ending is meant so."""
    status, _, err = run("run", "log.swf", "--schedule", "a.csv.zz", "--swf", "a.xz")
    assert status == 0
    assert err.splitlines() == [
        "warning: a.csv.zz is written as .csv, unpacked: its ending is none of .csv, .csv.gz, .parquet",
        "warning: a.xz is written as .swf, unpacked: its ending is none of .swf, .swf.gz",
    ]
    assert run("run", "log.swf", "--schedule", "b.csv", "--swf", "plain")[2] == ""
    assert (tmp_path / "a.csv.zz").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert (tmp_path / "a.xz").read_bytes() == (tmp_path / "plain").read_bytes()


def test_a_schedule_as_parquet(run: Run, tmp_path: Path) -> None:
    """It is the one that is written as CSV, and has its machine with it."""
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    for path in (csv, parquet):
        assert run("run", "log.swf", "--schedule", str(path))[0] == 0
    found = Schedule.from_parquet(parquet)
    written = schedule_files.read_csv(csv, found.machines)
    assert found.start_time.tolist() == written.start_time.tolist()
    assert [machine.name for machine in found.machines] == ["log"]


def test_run_as_json(run: Run) -> None:
    """With --json standard output is one JSON object with the metrics and the report."""
    status, out, err = run("run", "log.swf", "--json", "--discipline", "easy")
    assert (status, err) == (0, "")
    values = printed("lrms-sim-run", out)
    assert values["discipline"] == "easy"
    assert values["jobs_executed"] == 4
    assert values["awrt_s"] == 376 / 39
    assert values["makespan_s"] == 100010
    assert [group["jobs"] for group in values["user_groups"]] == [4, 0, 0, 0, 0]
    assert values["user_groups"][1]["awrt_s"] is None
    assert values["preparation"]["records_read"] == 5


@pytest.mark.parametrize(
    ("arguments", "jobs", "makespan", "origin"),
    [
        (("--window-days", ":1"), 2, 15, 0),
        (("--window-days", "1:"), 2, 10, 100000),
        (("--window-days", "1:2", "--first-jobs", "1"), 1, 5, 100000),
        (("--window-days", "1:", "--shift", "window"), 2, 13610, 0),
        (("--window-days", "1:", "--shift", "first_job"), 2, 10, 0),
        (("--first-jobs", "3"), 3, 100005, 0),
        # Day 0 is time 0: as without a first day.
        (("--window-days", "0:1", "--first-jobs", "1"), 1, 10, 0),
        (("--window-days", "0:"), 4, 100010, 0),
    ],
)
def test_windows(
    run: Run, arguments: tuple[str, ...], jobs: int, makespan: float, origin: float
) -> None:
    """A window selects jobs; unless it shifts the clock its makespan counts from its first job."""
    _, out, _ = run("run", "log.swf", "--json", *arguments)
    values = json.loads(out)
    assert values["jobs_executed"] == jobs
    assert values["makespan_s"] == makespan
    assert values["makespan_origin_s"] == origin


def test_part_of_a_log_is_said(run: Run) -> None:
    """The table of a window says of how many jobs these are, and where the makespan begins."""
    _, out, _ = run("run", "log.swf", "--window-days", "1:")
    words = " ".join(out.split())
    assert "jobs 2 of 4 prepared" in words
    assert "makespan 10 s from the first submission" in words


def test_preparation_options_reach_the_preparation(run: Run) -> None:
    """Each rule's option changes what the rule does."""
    _, out, _ = run(
        "run", "log.swf", "--json", "--run-time-zero", "one_second", "--overrun", "extend"
    )
    values = json.loads(out)
    assert values["jobs_executed"] == 5
    assert values["makespan_s"] == 100051


def test_options_are_those_of_the_modules() -> None:
    """Options, choices, defaults and disciplines on the command line are those that there are."""
    hints = get_type_hints(PreparationOptions)
    params = {param.name: param for param in cli.cli.commands["info"].params}
    for field in fields(PreparationOptions):
        option = params[field.name]
        assert isinstance(option.type, click.Choice)
        assert tuple(option.type.choices) == get_args(hints[field.name])
        assert option.default == field.default
    for field in fields(PreparationOptions):
        assert get_args(hints[field.name])[0] == field.default
    assert list(cli.SENTENCES) == list(DISCIPLINES)
    (shift,) = (option for option in cli.cli.commands["run"].params if option.name == "shift")
    assert tuple(shift.type.choices) == get_args(Shift)  # type: ignore[attr-defined]  # a Choice
    assert generate_command.JOBS_MAX == JOBS_MAX


def test_disciplines_are_listed(run: Run) -> None:
    """Each discipline has one line with one sentence."""
    status, out, _ = run("disciplines")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == list(DISCIPLINES)
    assert all(line.endswith(".") and len(line) <= 80 for line in out.splitlines())
    told = printed("lrms-sim-disciplines", run("disciplines", "--json")[1])["disciplines"]
    assert [each["name"] for each in told] == list(DISCIPLINES)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_every_discipline_runs(run: Run, discipline: str) -> None:
    """Every listed discipline can be asked for."""
    status, out, _ = run("run", "log.swf", "--discipline", discipline)
    assert status == 0
    assert discipline in out


def test_info(run: Run) -> None:
    """The description of a log has its header, counts and load, as table and as JSON."""
    status, out, _ = run("info", "log.swf")
    words = " ".join(out.split())
    assert status == 0
    assert "test [bold]machine[/bold] Time 0 is 1970-01-01T00:00:00+00:00." in words
    assert "jobs 4 of 5 records" in words
    _, out, _ = run("info", "log.swf", "--json", "--processors", "4")
    values = printed("lrms-sim-info", out)
    assert values["processors"] == 4
    assert values["users"] == 2
    assert values["load"] == 39 / (4 * 100001)
    assert values["preparation"]["jobs_prepared"] == 4


def test_generate_and_replay(run: Run, tmp_path: Path) -> None:
    """A generated log is the same for the same seed, and runs without further options."""
    for name, seed in (("a.swf", "7"), ("b.swf", "7"), ("c.swf", "8")):
        arguments = ("--processors", "64", "--jobs", "500", "--load", "0.8", "--seed", seed)
        status, out, err = run("generate", *arguments, "-o", name)
        assert (status, err) == (0, "")
        assert out.startswith("500 jobs over ")
    assert (tmp_path / "a.swf").read_bytes() == (tmp_path / "b.swf").read_bytes()
    assert (tmp_path / "a.swf").read_bytes() != (tmp_path / "c.swf").read_bytes()
    _, out, _ = run("info", "a.swf", "--json")
    assert json.loads(out)["load"] == pytest.approx(0.8, rel=0.05)
    status, out, _ = run("run", "a.swf", "--discipline", "conservative", "--json")
    assert json.loads(out)["jobs_executed"] == 500


def test_generate_by_days(run: Run, tmp_path: Path) -> None:
    """With --days the log is that long, whatever the number of jobs."""
    status, _, _ = run("generate", "--processors", "64", "--days", "20", "-o", "days.swf.gz")
    assert status == 0
    log = read_swf(tmp_path / "days.swf.gz")
    assert 10 * 86400 < log.submit_time[-1] < 20 * 86400


def test_a_window_from_day_0_is_one_without_a_first_day(run: Run, tmp_path: Path) -> None:
    """Both count the makespan from time 0, also where the log's first days are empty."""
    (tmp_path / "late.swf").write_text("\n".join(LOG.splitlines()[:4] + LOG.splitlines()[6:7]))
    one, other = (
        run("run", "late.swf", "--json", "--window-days", window)[1] for window in ("0:150", ":150")
    )
    assert one == other
    assert json.loads(one)["makespan_s"] == 100005


def test_a_log_without_jobs(run: Run, tmp_path: Path) -> None:
    """Where there is nothing to replay, the status says so, and no schedule is written."""
    assert run("generate", "--processors", "4", "--jobs", "0", "-o", "none.swf")[0] == 0
    for arguments in (("run", "none.swf", "--schedule", "none.csv"), ("info", "none.swf")):
        status, _, err = run(*arguments)
        assert (status, err) == (log_options.EXIT_NOTHING, "Error: none.swf: holds no job\n")
    assert not (tmp_path / "none.csv").exists()


def test_a_window_without_jobs(run: Run) -> None:
    """The error says where the jobs are."""
    status, out, err = run("run", "log.swf", "--window-days", "7:")
    assert (status, out) == (log_options.EXIT_NOTHING, "")
    assert err == (
        "Error: log.swf: none of 4 jobs is within --window-days and --first-jobs; they are "
        "submitted from day 0.0 to day 1.2\n"
    )


def test_a_log_without_requested_times(run: Run, tmp_path: Path) -> None:
    """The error names what was lost and the option that keeps it; `info` describes the log as it is."""
    unsaid = re.sub(r"^(\d+ \d+ -1 \d+ \d -1 -1 \d) \d+", r"\1 -1", LOG, flags=re.MULTILINE)
    (tmp_path / "unsaid.swf").write_text(unsaid)
    said = (
        "Error: unsaid.swf: no job is left: 5 of 5 records (100.0%) were dropped: 4 requested "
        "time missing (--requested-time-missing run_time keeps them), 1 run time 0 s "
        "(--run-time-zero one_second keeps them)\n"
    )
    status, _, err = run("run", "unsaid.swf")
    assert (status, err) == (log_options.EXIT_NOTHING, said)
    status, _, err = run("info", "unsaid.swf", "--requested-time-missing", "drop")
    assert (status, err) == (log_options.EXIT_NOTHING, said)
    status, out, err = run("info", "unsaid.swf", "--json")
    assert status == 0
    assert err == (
        "warning: 4 jobs have no requested time; `lrms-sim run` drops them "
        "(--requested-time-missing run_time keeps them)\n"
    )
    found = json.loads(out)
    assert (found["jobs"], found["run_time_median_s"]) == (4, 7.5)
    assert run("run", "unsaid.swf", "--requested-time-missing", "run_time")[::2] == (0, "")


def test_longer_records_titles_and_nodes(run: Run, tmp_path: Path) -> None:
    """What is not read is counted once in the report; a log that counts in nodes is as large as it has nodes."""
    nodes = re.sub(
        r"-1$", "-1 7 node:excl", LOG.replace("MaxProcs", "MaxNodes"), flags=re.MULTILINE
    )
    (tmp_path / "long.swf").write_text(f"Job Submit Wait\n{nodes}")
    status, out, err = run("run", "long.swf", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["processors"] == 2
    entries = {
        one["reason"]: (one["count"], one["treatment"]) for one in found["preparation"]["entries"]
    }
    assert entries["longer-record"] == (5, "ignored")
    assert entries["title"] == (1, "ignored")
    assert "log" not in run("run", "long.swf", "--name", "x")[2]
    assert "x, 2 processors (MaxNodes of the log)" in " ".join(
        run("run", "long.swf", "--name", "x")[1].split()
    )
    (tmp_path / "many.swf").write_text(LOG.replace("MaxProcs: 2", "MaxNodes: many"))
    assert "says 'many' for MaxNodes, which is no whole number" in run("run", "many.swf")[2]


def test_dependencies(run: Run, tmp_path: Path) -> None:
    """Ignored and counted, or followed: a job comes its think time after the end of the one before."""
    lines = LOG.splitlines()
    lines[5] = (
        lines[5].replace("-1 -1 -1", "-1 1 500") if lines[5].endswith("-1 -1 -1") else lines[5]
    )
    (tmp_path / "chain.swf").write_text("\n".join(lines))
    assert lines[5].startswith("2 1 -1 5")
    assert "names the job before it, submitted as recorded" in run("run", "chain.swf")[1]
    status, out, _ = run("run", "chain.swf", "--dependencies", "--swf", "out.swf")
    assert status == 0
    assert "submitted once the job before it has ended" in out
    assert read_swf("out.swf").submit_time.tolist() == [0, 510, 100000, 100001]
    status, _, err = run("run", "chain.swf", "--dependencies", "--repeat", "2")
    assert (status, "--repeat would shift" in err) == (EXIT_ERROR, True)


def test_a_log_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash is its name."""
    monkeypatch.setattr(
        sys, "stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(LOG.encode())))
    )
    status, out, err = run("run", "-", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["machine"] == "machine"


@pytest.mark.parametrize("command", ["run", "info"])
def test_much_that_was_lost_is_said(run: Run, command: str) -> None:
    """Beside the figures of what is left, a warning says what is not in them."""
    status, out, err = run(command, "log.swf", "--processors", "1", "--json")
    assert status == 0
    assert json.loads(out)["preparation"]["jobs_prepared"] == 3
    assert err == (
        "warning: 2 of 5 records (40.0%) were dropped: 1 run time 0 s (--run-time-zero one_second "
        "keeps them), 1 wider than the machine (1)\n"
    )
    assert run(command, "log.swf")[2] == ""


HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202e end"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_text_of_a_header_does_not_steer_the_terminal(
    run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Escape sequences in a log are shown, never obeyed; so are those in its name."""
    name = "evil\x1b[2J\x9b.swf"
    (tmp_path / name).write_text(LOG.replace("test [bold]machine[/bold]", HOSTILE))
    for arguments in (("info", name), ("run", name, "--swf", "copy.swf"), ("info", "copy.swf")):
        status, out, err = run(*arguments, *options, "--processors", "2")
        assert status == 0
        assert all(character.isprintable() or character == "\n" for character in out + err)
        if arguments[0] == "info":
            assert r"\x1b]0;owned\x07\x1b[31mred\x9b2J\u202e end" in out.replace("\\\\", "\\")
    status, _, err = run("info", "none" + name)
    assert status == EXIT_ERROR
    assert err.strip("\n").isprintable()


def test_one_processor(run: Run) -> None:
    """A machine of one processor works through what fits on it, and says what does not."""
    _, out, _ = run("run", "log.swf", "--processors", "1")
    assert "log, 1 processor\n" in out
    assert "wider than the machine (1)" in out


BAD: list[tuple[tuple[str, ...], str]] = [
    (("run", "missing.swf"), "missing.swf: cannot be read: No such file"),
    (("run", "cut.swf.gz"), "cut.swf.gz: is cut off"),
    (("run", "rubbish.swf"), "rubbish.swf:1: "),
    (("run", "empty.swf"), "empty.swf: is empty"),
    (("run", "short.swf"), "short.swf:2: 3 fields; expected 18"),
    (("run", "silent.swf"), "the header does not say MaxProcs; give .* --processors"),
    (("run", "none.swf"), "the header says 0 for MaxProcs"),
    (("info", "silent.swf"), "MaxProcs"),
    (("run", "."), "'.' is a directory"),
    (("run", "log.swf", "--discipline", "srpt"), "'srpt'; there are: fcfs, list, easy"),
    (("run", "log.swf", "--processors", "0"), "0 is not in the range"),
    (("run", "log.swf", "--processors", "1", "--too-wide", "error"), "job 1 needs 2 processors"),
    (("run", "log.swf", "--window-days", "5:3"), "'5:3' ends on day 3, which is not after day 5"),
    (("run", "log.swf", "--window-days", "5:5"), "'5:5' ends on day 5, which is not after day 5"),
    (("run", "many.swf"), "says 'many' for MaxProcs, which is no whole number; give .* --proc"),
    (("info", "two.swf"), "header says MaxProcs 2 times: 128, 256; give the machine's size with"),
    (("run", "bundle.swf"), "bundle.swf: is a zstd file; unpack it: zstd -d"),
    (("run", "broken.swf.gz"), r"is damaged: its checksum \(CRC\) is not that of its content"),
    (("run", "far.swf"), r"far.swf: submit time of job 2 is 9.0072e\+15 s; beyond 2\*\*53 s"),
    (("run", "log.swf", "--window-days", "5"), "'5' is not two days A:B"),
    (("run", "log.swf", "--window-days", "a:b"), "'a:b' is not two days A:B"),
    (("run", "log.swf", "--window-days", "nan:"), "first_day is nan"),
    (("run", "log.swf", "--first-jobs", "-1"), "-1 is not in the range"),
    (("run", "log.swf", "--shift", "up"), "'up' is not one of"),
    (("run", "log.swf", "--schedule", "no/a.csv"), "no/a.csv: .*there is no folder no"),
    (("run", "log.swf", "--schedule", "."), "'.' is a directory"),
    (("run", "log.swf", "--schedule", "/dev/full"), "/dev/full: cannot be written: No space"),
    (("run", "log.swf", "--swf", "log.swf"), "log.swf: is read here, and would be overwritten"),
    (("run", "log.swf", "--html", "log.swf"), "log.swf: is read here, and would be overwritten"),
    (("run", "log.swf", "--strategy", "many.swf", "--html", "many.swf"), "many.swf: is read here"),
    (("run", "log.swf", "--nodes", "many.swf", "--html", "many.swf"), "many.swf: is read here"),
    (("run", "log.swf", "--schedule", "s", "--swf", "./s"), "s: two outputs would be written to"),
    (("import", "sacct", "log.swf", "-o", "log.swf"), "log.swf: is read here"),
    (("import", "sacct", "log.swf", "-o", "s", "--requests", "s"), "s: two outputs"),
    (("export", "batsim", "log.swf", "-o", "log.swf"), "log.swf: is read here"),
    (("run",), "Missing argument 'TRACE'"),
    (("walk",), "No such command 'walk'"),
    (("run", "log.swf", "--fast"), "No such option"),
    (("generate", "--processors", "4", "-o", "x.swf"), "one of --jobs and --days"),
    (("generate", "--processors", "4", "--jobs", "1"), "Missing option '-o'"),
    (("generate", "--processors", "4", "--jobs", "9", "-o", "no/x.swf"), "no folder no"),
    (("generate", "--processors", "4", "--jobs", "9", "--load", "0", "-o", "x.swf"), "--load"),
    (("generate", "--processors", "4", "--jobs", "9", "-o", "/dev/full"), "No space"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_input_is_one_line(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    """Whatever is wrong with the input: one line that says it, status 2, and no file."""
    (tmp_path / "cut.swf.gz").write_bytes(gzip.compress(LOG.encode())[:-12])
    (tmp_path / "rubbish.swf").write_bytes(bytes(range(1, 256)) * 20)
    (tmp_path / "empty.swf").write_bytes(b"")
    (tmp_path / "short.swf").write_text("; MaxProcs: 4\n1 2 3\n")
    (tmp_path / "silent.swf").write_text("; no size\n")
    (tmp_path / "none.swf").write_text("; MaxProcs: 0\n")
    (tmp_path / "many.swf").write_text(LOG.replace("MaxProcs: 2", "MaxProcs: many"))
    (tmp_path / "two.swf").write_text("; MaxProcs: 128\n; MaxProcs: 256\n")
    (tmp_path / "bundle.swf").write_bytes(b"(\xb5/\xfd" + LOG.encode())
    (tmp_path / "far.swf").write_text(LOG.replace("2 1 -1 5", f"2 {2**53 + 2} -1 5"))
    broken = bytearray(gzip.compress(LOG.encode()))
    broken[-6] ^= 1
    (tmp_path / "broken.swf.gz").write_bytes(broken)
    before = sorted(tmp_path.iterdir())
    status, out, err = run(*arguments)
    assert (status, out) == (EXIT_ERROR, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert re.search(words, err)
    assert sorted(tmp_path.iterdir()) == before


def test_unwritable_folder_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be written is refused before the work begins."""
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    status, _, err = run("run", "log.swf", "--schedule", "a.csv")
    assert (status, err) == (2, "Error: a.csv: cannot be written: permission denied\n")


def raising(error: BaseException) -> Callable[..., object]:
    """Returns a function that raises."""

    def call(*_: object, **__: object) -> object:
        raise error

    return call


@pytest.mark.parametrize("at", ["simulate", "write_csv"])
def test_interrupt_ends_cleanly(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: Literal["simulate", "write_csv"]
) -> None:
    """Ctrl-C in the middle gives status 130, one word, and no half-written file."""
    if at == "simulate":
        monkeypatch.setattr(machine, "simulate", raising(KeyboardInterrupt()))
    else:
        monkeypatch.setattr(_schedule_csv, "write_rows", raising(KeyboardInterrupt()))
    status, out, err = run("run", "log.swf", "--schedule", "a.csv")
    assert (status, out) == (EXIT_INTERRUPTED, "")
    assert err.split() == ["interrupted"]
    assert [path.name for path in tmp_path.iterdir()] == ["log.swf"]


def test_no_memory_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload that does not fit the memory is an error like others."""
    monkeypatch.setattr(machine, "simulate", raising(MemoryError()))
    status, _, err = run("run", "log.swf")
    assert (status, err) == (2, "Error: not enough memory; replay fewer jobs at a time\n")


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        """Tells that it is one."""
        return True


@pytest.mark.parametrize("long", [True, False])
def test_long_work_shows_how_far_it_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, long: bool
) -> None:
    """On a terminal long work has bars on standard error; short work has none."""
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    if long:
        monkeypatch.setattr(run_command, "LONG_JOBS", 0)
        monkeypatch.setattr(log_options, "LONG_BYTES", 0)
    status, out, _ = run("run", "log.swf", "--schedule", "a.csv")
    assert status == 0
    assert "AWRT" in out
    shown = terminal.getvalue()
    for words in ("reading", "replaying", "writing a.csv"):
        assert (words in shown) == long
    assert (tmp_path / "a.csv").exists()


def test_a_long_log_that_is_damaged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading with a bar names the file in errors, as reading without one does."""
    monkeypatch.setattr(log_options, "LONG_BYTES", 0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    Path("bad.swf").write_text("1 2 3\n")
    assert run("run", "bad.swf")[0] == 2
    assert "Error: bad.swf:1: 3 fields" in terminal.getvalue()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-h",), ["Usage: lrms-sim", "lrms-sim generate --processors 256", "disciplines"]),
        (("run", "--help"), ["lrms-sim run CTC-SP2-1996-3.1-cln.swf.gz", "--overrun", "kill"]),
        (("generate", "--help"), ["--load", "Examples:"]),
    ],
)
def test_help_teaches(run: Run, arguments: tuple[str, ...], words: list[str]) -> None:
    """Help has examples."""
    status, out, err = run(*arguments)
    assert (status, err) == (0, "")
    for word in words:
        assert word in out


def test_as_a_process(tmp_path: Path) -> None:
    """The command works as a process: files, statuses, nothing on standard error."""
    (tmp_path / "log.swf").write_text(LOG)
    done = process("run", "log.swf", "--json", "--schedule", "a.csv", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["jobs_executed"] == 4
    assert (tmp_path / "a.csv").read_text().count("\n") == 5
    failed = process("run", "none.swf", folder=tmp_path)
    assert failed.returncode == 2
    assert failed.stderr == "Error: none.swf: cannot be read: No such file or directory\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_nobody_reads_on(tmp_path: Path, unbuffered: str) -> None:
    """Where the reader of a pipe has gone the process ends quietly, as shells expect it."""
    (tmp_path / "log.swf").write_text(LOG)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", "from lrms_sim.command import main; main()", "run", "log.swf"],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONUNBUFFERED": unbuffered,
            },
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (EXIT_PIPE, b"")


@pytest.mark.traces
@pytest.mark.parametrize(("discipline", "awrt"), [("fcfs", None), ("easy", "52937.9601")])
def test_recorded_log(run: Run, traces_folder: Path, discipline: str, awrt: str | None) -> None:
    """A recorded log gives the published figure, all jobs in the file and the same bytes twice."""
    trace = str(traces_folder / "CTC-SP2-1996-3.1-cln.swf.gz")
    arguments = ("run", trace, "--processors", "430", "--discipline", discipline, "--json")
    for name in ("a.csv", "b.csv"):
        _, out, _ = run(*arguments, "--schedule", name)
    values = json.loads(out)
    assert values["jobs_executed"] == 77199
    assert awrt is None or f"{values['awrt_s']:.4f}" == awrt
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert Path("a.csv").read_bytes().count(b"\n") == 77200
