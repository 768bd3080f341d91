"""Scenarios through daemons, from the command line."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scenarios.cli import run_command
from scenarios.errors import LiveError
from scenarios.live import STATE, down, up
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


def test_a_fast_clock_runs_without_a_conductor(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Users submit in time, and every job runs."""
    scenario.write_text(SPEC.replace("jobs = 60", "jobs = 8"))
    arguments = ["run", str(scenario), "--live", "--clock", "scaled", "--speed", "1e6", "--no-html"]
    assert run_command(arguments) == 0
    assert "Live: 16 jobs through 2 daemons" in capsys.readouterr().out


def test_ctrl_c_leaves_no_process_behind(scenario: Path) -> None:
    """Whenever it comes: while daemons start, and while jobs arrive."""
    # Where tests run in the background, processes are born deaf to Ctrl-C.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    scenario.write_text(SPEC.replace("jobs = 60", "jobs = 5000"))
    folder = scenario.parent / "out" / "two-live"
    with subprocess.Popen(  # noqa: S603  # our own command
        [
            sys.executable,
            "-c",
            listening + "from scenarios.cli import main; main()",
            "run",
            str(scenario),
            "--live",
            "--no-html",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 60
        while len(running_with(str(folder))) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(running_with(str(folder))) == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    while running_with(str(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running_with(str(folder)) == []


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
