"""Scenarios through daemons, from the command line."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from grms.client import Job, SiteUnavailable
from grms.daemon.socket_folder import SocketFolder, remove_left_behind
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import MachineInfo, Schedule
from scenarios.cli.live_cli import live_folder
from scenarios.cli.main import run_command
from scenarios.live.daemons import LINK_TIMEOUT_S
from scenarios.live.detached import down, up
from scenarios.live.folder import STATE, daemons_in
from scenarios.live.live import guarded, on_one_core, run_scaled
from scenarios.live.sites import SiteProcess
from scenarios.report.output import load_run
from scenarios.spec.files import load_spec
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError
from tests.examples import runs
from tests.scenarios.processes import running_with

pytestmark = pytest.mark.usefixtures("forks")

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
@pytest.mark.parametrize(
    ("arguments", "exchanged"),
    [
        (["three-sites-6", "--first", str(runs(1000, 3000))], 60),
        (
            [
                *("three-sites-6-easy", "--first", str(runs(1000, 2000))),
                *("--transfer", "fair-exchange"),
            ],
            30,
        ),
    ],
    ids=["learned", "fair exchange"],
)
def test_recorded_traces_live_are_identical(
    arguments: list[str],
    exchanged: int,
    traces_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """KTH, CTC and SDSC05 with learned rule bases, and with EASY and constraints; `.ci/run` has more of them."""
    assert traces_folder.is_dir()
    output = tmp_path / "run"
    options = ["--live", "--no-html", "--output", str(output)]
    assert run_command(["run", *arguments, *options]) == 0
    said = capsys.readouterr().out
    assert f"Live: {int(arguments[2]):,} jobs through 3 daemons" in said
    assert "The schedule is identical with the replay in one process." in said
    assert load_run(output).jobs_exchanged > exchanged


def test_a_replay_keeps_to_one_core() -> None:
    """With the processes that it starts, and for its time alone."""
    before = os.sched_getaffinity(0)
    with on_one_core():
        (core,) = os.sched_getaffinity(0)
        assert core in before
        asks = "import os; print(*os.sched_getaffinity(0))"
        assert int(subprocess.check_output([sys.executable, "-c", asks])) == core  # noqa: S603  # our own
    assert os.sched_getaffinity(0) == before


def test_a_fast_clock_runs_without_a_coordinator(
    scenario: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Users submit in time, and every job runs."""
    scenario.write_text(SPEC.replace("jobs = 60", "jobs = 8"))
    arguments = ["run", str(scenario), "--live", "--clock", "scaled", "--speed", "1e6", "--no-html"]
    assert run_command(arguments) == 0
    said = capsys.readouterr().out
    assert "Live: 16 jobs through 2 daemons" in said
    assert "All jobs were completed;" in said
    folder = scenario.parent / "out" / "two-live" / "run"
    assert f"scenario report {folder.relative_to(scenario.parent)}" in said
    saved = load_run(folder)
    assert [site.jobs for site in saved.sites] == [8, 8]
    assert (saved.schedule.end_time > saved.schedule.start_time).all()
    # However late the daemons were there: in real seconds no job waited as long as they are waited for.
    waits = saved.schedule.start_time - saved.schedule.jobs.submit_time
    assert -1e6 < waits.min() < 1e6 * LINK_TIMEOUT_S


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
    journals = [folder / "a.journal", folder / "b.journal"]
    with subprocess.Popen(  # noqa: S603  # our own command
        [
            sys.executable,
            "-c",
            listening + "from scenarios.command import main; main()",
            *("run", str(scenario), "--live", "--no-html"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    ) as process:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not all(
            path.exists() and path.stat().st_size > 40_000 for path in journals
        ):
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        assert len(running_with(str(folder))) == 2, process.poll()
        yield process
    deadline = time.monotonic() + 300
    while running_with(str(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running_with(str(folder)) == []


def test_ctrl_c_leaves_nothing_behind(scenario: Path, place: Path) -> None:
    """No process, and no folder for sockets."""
    with replaying(scenario, place) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
    assert list(place.iterdir()) == []


def test_a_daemon_that_is_killed_ends_the_run(scenario: Path, place: Path) -> None:
    """The error names it and its log; nothing else is left behind."""
    with replaying(scenario, place) as process:
        (daemon,) = running_with(str(scenario.parent / "out" / "two-live" / "b.toml"))
        os.kill(daemon, signal.SIGKILL)
        assert process.wait(300) == 2
        assert process.stderr is not None
        assert re.search(r"Error: the daemon of b has ended; see \S*b\.log", process.stderr.read())
    assert list(place.iterdir()) == []


def test_a_run_that_is_killed_takes_its_daemons_with_it(
    scenario: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own folder goes when the next run begins."""
    with replaying(scenario, place) as process:
        process.kill()
        process.wait(300)
    (left,) = place.iterdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    remove_left_behind()
    assert not left.exists()


def test_a_federation_can_be_left_running(scenario: Path) -> None:
    """Its sites know each other, a second one is refused, and `down` ends it by any path to it."""
    folder = scenario.parent / "federation"
    (scenario.parent / "out").mkdir()
    link = scenario.parent / "link"
    link.symlink_to(folder)
    sockets = up(load_spec(scenario), scenario.parent / "out" / ".." / "federation")
    try:
        assert set(sockets) == {"a", "b"}
        assert all(socket.is_socket() for socket in sockets.values())
        assert len(running_with(str(folder))) == 2
        with pytest.raises(LiveError, match="a federation runs in"):
            up(load_spec(scenario), folder)
        moved = folder.rename(scenario.parent / "moved")
        link.unlink()
        link.symlink_to(moved)
    finally:
        assert down(link) == ["a", "b"]
    assert running_with(str(folder)) == []
    assert not (moved / STATE).exists()
    with pytest.raises(LiveError, match="there is no federation in"):
        down(moved)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)], ids=["kill", "term"]
)
def test_no_daemon_is_lost_where_the_start_is_ended(
    scenario: Path, tmp_path: Path, place: Path, number: int, status: int
) -> None:
    """A signal in the middle of it leaves nothing, or what `down` finds and nobody else clears."""
    folder = tmp_path / "federation"
    with subprocess.Popen(  # noqa: S603  # our own command
        [
            *(sys.executable, "-c", "from scenarios.command import main; main()"),
            *("up", str(scenario), "--folder", str(folder)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(place)},
    ) as process:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not running_with(str(folder)):
            time.sleep(0.005)
        process.send_signal(number)
        assert process.wait(300) == status
    if number == signal.SIGKILL:
        with pytest.raises(LiveError, match="a federation runs in"):
            up(load_spec(scenario), folder)
        assert down(folder)
    assert running_with(str(folder)) == []
    assert not (folder / STATE).exists()
    assert list(place.iterdir()) == []


def test_a_daemon_that_is_being_started_is_ended_too(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has started it is gone, and it does not look like a daemon yet when `down` looks first."""
    monkeypatch.setattr("tempfile.tempdir", str(place))
    folder = tmp_path / "federation"
    folder.mkdir()
    sockets = SocketFolder()
    sockets.share()
    state = {"folder": str(folder), "sockets": str(sockets.path)}
    (folder / STATE).write_text(json.dumps(state))
    waits = "import sys, time; print('it serves', flush=True); time.sleep(600)"
    with subprocess.Popen(  # noqa: S603  # this very interpreter
        ["/bin/sh", "-c", f'read word; exec {sys.executable} -c "{waits}" serve "$CONFIG"'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "CONFIG": str(folder / "a.toml")},
        close_fds=False,
    ) as process:
        sockets.leave()
        seen: list[dict[str, int]] = []

        def look(at: Path) -> dict[str, int]:
            seen.append(daemons_in(at))
            if len(seen) == 1:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(b"go\n")
                process.stdin.flush()
                process.stdout.readline()
            return seen[-1]

        monkeypatch.setattr("scenarios.live.detached.daemons_in", look)
        assert down(folder) == ["a"]
        assert process.wait(300) == -signal.SIGTERM
    assert seen[:2] == [{}, {"a": process.pid}]
    assert list(place.iterdir()) == []


class Gone(SiteProcess):
    """A daemon that has ended."""

    async def ended(self) -> None:
        """Returns at once."""


class Steady(SiteProcess):
    """A daemon that goes on."""

    async def ended(self) -> None:
        """Never returns."""
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        (Gone, None, r"the daemon of a has ended; see \S*a\.log"),
        (Steady, SiteUnavailable("UNAVAILABLE", "no room"), "users ask: no room"),
    ],
    ids=["gone", "refused"],
)
def test_users_of_a_fast_clock_do_not_wait_for_the_dead(
    tmp_path: Path, kind: type[SiteProcess], error: Exception | None, text: str
) -> None:
    """A daemon that ends, or refuses a job, ends the run at once and with one error."""

    async def submissions() -> list[Job]:
        async with asyncio.TaskGroup() as group:
            group.create_task(submission())
        return []

    async def submission() -> None:
        if error is None:
            await asyncio.Event().wait()
        else:
            raise error

    with pytest.raises(LiveError, match=text):
        asyncio.run(guarded([kind("a", tmp_path, tmp_path)], submissions()))


def test_the_first_job_of_a_slow_clock_is_awaited_a_lifetime_at_most(tmp_path: Path) -> None:
    """Otherwise the clock would begin before all clocks do."""
    jobs = JobTable.from_columns(
        submit_time=[1e6], processors=[1], run_time=[1], requested_time=[1]
    )
    here = np.array([0], np.int16)
    expected = Schedule(
        jobs=jobs,
        start_time=jobs.submit_time,
        end_time=jobs.submit_time + 1,
        machines=(MachineInfo("a", 1),),
        submitted_to=here,
        executed_on=here,
        log_job_id=jobs.job_id,
    )
    spec = ScenarioSpec.model_validate(tomllib.loads(SPEC))
    with pytest.raises(LiveError, match=r"at speed 1e-06 the first job comes in 3\.17e\+04 years"):
        run_scaled(spec, expected, tmp_path / "slow", 1e-6)
    assert not (tmp_path / "slow").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--clock", "scaled"], "--clock is of the daemons"),
        (["--clock", "virtual"], "--clock is of the daemons"),
        (["--speed", "5"], "--speed is of a scaled clock"),
        (["--live", "--speed", "5"], "--speed is of a scaled clock"),
        (["--live", "--clock", "virtual", "--speed", "5"], "--speed is of a scaled clock"),
        (["--live", "--clock", "scaled", "--speed", "nan"], "'--speed': nan is no finite number"),
        (["--live", "--clock", "scaled", "--speed", "inf"], "'--speed': inf is not in the range"),
        (["--live", "--clock", "scaled", "--speed", "1e12"], "is not in the range 0<x<=10000000"),
        (["--live", "--clock", "scaled", "--speed", "0"], "is not in the range 0<x<=1000000000"),
        (["--live", "--output", "mine/run"], "run-live has other files, such as thesis.tex"),
    ],
)
def test_what_a_live_run_cannot_do_is_said_before_the_replay(
    scenario: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    """Options without effect, speeds that are none, and folders of others."""
    (scenario.parent / "mine" / "run-live").mkdir(parents=True)
    (scenario.parent / "mine" / "run-live" / "thesis.tex").write_text("precious")
    assert run_command(["run", str(scenario), "--no-html", *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert text in error
    assert not (scenario.parent / "out").exists()


@pytest.mark.parametrize(
    ("folder", "place"), [("run", "run-live"), (".", "../here-live"), ("..", "../../up-live")]
)
def test_daemons_work_beside_the_folder_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, place: str
) -> None:
    """However that is named; the root has nothing beside it."""
    (tmp_path / "up" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "up" / "here")
    assert live_folder(Path(folder)).resolve() == Path(place).resolve()
    with pytest.raises(LiveError, match="there is no room beside /"):
        live_folder(Path("/"))


def test_the_users_files_are_left_alone(scenario: Path) -> None:
    """A folder that no federation has left is not cleared, whatever its files are called."""
    names = ["kth.journal", "site.log", scenario.name]
    for name in names[:2]:
        (scenario.parent / name).write_text("precious")
    with pytest.raises(LiveError, match=r"\. has other files, such as kth.journal"):
        up(load_spec(scenario), Path())
    assert sorted(path.name for path in scenario.parent.iterdir()) == names


def test_a_copy_of_a_federations_folder_ends_nobody(tmp_path: Path) -> None:
    """It says where the federation itself is."""
    folder, copy = tmp_path / "one", tmp_path / "two"
    for each in (folder, copy):
        each.mkdir()
        (each / STATE).write_text(json.dumps({"folder": str(folder), "sockets": "nowhere"}))
    with pytest.raises(LiveError, match=f"scenario down {folder}"):
        down(copy)
    assert down(folder) == []
