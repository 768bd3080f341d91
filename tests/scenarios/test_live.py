"""Scenarios through daemons, from the command line."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grms.socket_folder import remove_left_behind
from scenarios.cli import run_command
from scenarios.errors import LiveError
from scenarios.live import STATE, down, on_one_core, up
from scenarios.output import load_run
from scenarios.spec_files import load_spec
from tests.scenarios.processes import running_with

SPEC = """
name = "two"
seed = 4
[[sites]]
name = "a"
processors = 16
discipline = "easy"
workload = { model = "lublin", jobs = 60, load = 0.9 }
[[sites]]
name = "b"
processors = 64
workload = { model = "lublin", jobs = 60, load = 0.7 }
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a scenario file in the folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "two.toml"
    path.write_text(SPEC)
    return path


def test_a_live_run_says_that_it_is_identical(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journals stay, no process does."""
    assert run_command(["run", str(scenario), "--live", "--no-html"]) == 0
    said = capsys.readouterr().out
    assert "Live: 120 jobs through 2 daemons" in said
    assert "The schedule is identical with the replay in one process." in said
    folder = scenario.parent / "out" / "two-live"
    assert (folder / "a.journal").stat().st_size > 0
    assert running_with(str(folder)) == []


@pytest.mark.traces
def test_recorded_traces_live_are_identical(
    traces_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """KTH, CTC and SDSC05 with learned rule bases and AWRT location; `.ci/run` has more of them."""
    assert traces_folder.is_dir()
    output = tmp_path / "run"
    arguments = ["three-sites-6", "--live", "--first", "3000", "--no-html"]
    assert run_command(["run", *arguments, "--output", str(output)]) == 0
    said = capsys.readouterr().out
    assert "Live: 3,000 jobs through 3 daemons" in said
    assert "The schedule is identical with the replay in one process." in said
    assert load_run(output).jobs_exchanged > 200


def test_a_replay_keeps_to_one_core() -> None:
    """With the processes that it starts, and for its time alone."""
    before = os.sched_getaffinity(0)
    with on_one_core():
        (core,) = os.sched_getaffinity(0)
        assert core in before
        asks = "import os; print(*os.sched_getaffinity(0))"
        assert int(subprocess.check_output([sys.executable, "-c", asks])) == core  # noqa: S603  # our own
    assert os.sched_getaffinity(0) == before


def test_a_fast_clock_runs_without_a_conductor(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Users submit in time, and every job runs."""
    scenario.write_text(SPEC.replace("jobs = 60", "jobs = 8"))
    arguments = ["run", str(scenario), "--live", "--clock", "scaled", "--speed", "1e6", "--no-html"]
    assert run_command(arguments) == 0
    assert "Live: 16 jobs through 2 daemons" in capsys.readouterr().out


@pytest.fixture
def place() -> Iterator[Path]:
    """Yields a folder for temporary files whose name is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # see above
        yield Path(folder)


@contextmanager
def replaying(scenario: Path, place: Path) -> Iterator[subprocess.Popen[str]]:
    """Yields a live run in a process of its own, whose daemons serve and have jobs.

    Args:
        scenario: its file.
        place: the folder for temporary files of that process and of its daemons.
    """
    scenario.write_text(SPEC.replace("jobs = 60", "jobs = 5000"))
    # Where tests run in the background, processes are born deaf to Ctrl-C.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    folder = scenario.parent / "out" / "two-live"
    journals = [folder / "a.journal-wal", folder / "b.journal-wal"]
    with subprocess.Popen(  # noqa: S603  # our own command
        [
            sys.executable,
            "-c",
            listening + "from scenarios.cli import main; main()",
            *("run", str(scenario), "--live", "--no-html"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    ) as process:
        deadline = time.monotonic() + 150
        while time.monotonic() < deadline and not all(
            path.exists() and path.stat().st_size > 40_000 for path in journals
        ):
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        assert len(running_with(str(folder))) == 2, process.poll()
        yield process
    while running_with(str(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running_with(str(folder)) == []


def test_ctrl_c_leaves_nothing_behind(scenario: Path, place: Path) -> None:
    """No process, and no folder for sockets."""
    with replaying(scenario, place) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert list(place.iterdir()) == []


def test_a_daemon_that_is_killed_ends_the_run(scenario: Path, place: Path) -> None:
    """The error names it and its log; nothing else is left behind."""
    with replaying(scenario, place) as process:
        (daemon,) = running_with(str(scenario.parent / "out" / "two-live" / "b.toml"))
        os.kill(daemon, signal.SIGKILL)
        assert process.wait(60) == 2
        assert process.stderr is not None
        assert re.search(r"Error: the daemon of b has ended; see \S*b\.log", process.stderr.read())
    assert list(place.iterdir()) == []


def test_a_run_that_is_killed_takes_its_daemons_with_it(
    scenario: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own folder goes when the next run begins."""
    with replaying(scenario, place) as process:
        process.kill()
        process.wait(60)
    (left,) = place.iterdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    remove_left_behind()
    assert not left.exists()


def test_a_federation_can_be_left_running(scenario: Path) -> None:
    """Its sites know each other, a second one is refused, and `down` ends it."""
    folder = scenario.parent / "federation"
    sockets = up(load_spec(scenario), folder)
    try:
        assert set(sockets) == {"a", "b"}
        assert all(socket.is_socket() for socket in sockets.values())
        assert len(running_with(str(folder))) == 2
        with pytest.raises(LiveError, match="a federation runs in"):
            up(load_spec(scenario), folder)
    finally:
        assert down(folder) == ["a", "b"]
    assert running_with(str(folder)) == []
    assert not (folder / STATE).exists()
    with pytest.raises(LiveError, match="there is no federation in"):
        down(folder)


def test_the_users_files_are_left_alone(scenario: Path) -> None:
    """A folder with anything else in it is not cleared."""
    folder = scenario.parent / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(LiveError, match=r"mine has other files, such as thesis.tex"):
        up(load_spec(scenario), folder)
    assert (folder / "thesis.tex").read_text() == "precious"
    assert os.listdir(folder) == ["thesis.tex"]  # noqa: PTH208  # names are all that is wanted
