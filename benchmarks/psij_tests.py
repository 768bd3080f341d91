"""Runs PSI/J's own tests of executors over a site above a real Slurm, by the executor of this repository.

    python -m benchmarks.psij_tests

PSI/J has to be installed in a Python of its own (`--python`), as it asks for older releases than this repository has; its tests
come with its source distribution, which pip gets from the package index. What that leaves out, their options and a few helpers, is
here; so is one more test, of twenty jobs whose site's daemon is killed. They run with three launchers, `single`, `multiple` and `srun`; tests that need another executor or MPI skip themselves.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.batch_sites import Daemon, daemons
from benchmarks.frame import options_of
from tests.clusters.slurm import SlurmCluster

ROOT: Final = Path(__file__).resolve().parents[1]
PLUGIN: Final = ROOT / "plugins/psij-executor-hanse/src"
RELEASE: Final = "psij-python==0.9.11"
TESTS: Final = (
    "test_killed_daemon",
    "test_executor",
    "test_resources",
    "test_nodefile",
    "test_issue_435",
    "test_mpi",
)
"""The first is from here, the others are those of PSI/J's that take any executor."""

KILL_NOW: Final = "kill-now"
"""File that a test makes when the daemon is to be killed."""

HELPERS: Final = {
    "executor_test_params.py": """
from dataclasses import dataclass


@dataclass(frozen=True)
class ExecutorTestParams:
    executor: str
    launcher: str
    url: str
""",
    "_test_tools.py": """
import shutil
import tempfile
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from psij import JobExecutor, JobState

FOLDER = Path.home() / ".psij" / "test"


def _make_test_dir():
    FOLDER.mkdir(parents=True, exist_ok=True)


def _get_timeout(execparams):
    return timedelta(minutes=5)


def assert_completed(job, status, attached=False):
    assert status is not None, "it has not ended in time"
    assert status.state == JobState.COMPLETED, str(status)
    assert status.exit_code == 0


def _get_executor_instance(execparams, job=None):
    if job is not None:
        job.spec.launcher = execparams.launcher
    return JobExecutor.get_instance(execparams.executor, url=execparams.url)


@contextmanager
def _deploy(path):
    _make_test_dir()
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        yield Path(shutil.copy(path, folder))
""",
    "test_killed_daemon.py": '''
import os
from datetime import timedelta
from pathlib import Path

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState


def test_a_killed_daemon_changes_no_end():
    """Twenty jobs; the site's daemon is killed and started again while they wait and run."""
    executor = JobExecutor.get_instance("hanse", url=os.environ["HANSE_SOCKET"])
    told = {}
    executor.set_job_status_callback(lambda job, status: told[job.id].append(status.state))

    def submit(*words, minutes=5):
        job = Job(JobSpec(words[0], list(words[1:])))
        job.spec.attributes = JobAttributes(duration=timedelta(minutes=minutes))
        told[job.id] = []
        executor.submit(job)
        return job

    late = submit("/bin/sleep", "600", minutes=1)
    gone = [submit("/bin/sleep", "600") for _ in range(2)]
    bad = [submit("/bin/bash", "-c", "sleep 2; exit 3") for _ in range(5)]
    good = [submit("/bin/sleep", "2") for _ in range(12)]
    late.wait(target_states=[JobState.ACTIVE])
    Path(os.environ["KILL_NOW"]).touch()
    for job in gone:
        job.cancel()
    jobs = [late, *gone, *bad, *good]
    found = [job.wait(timeout=timedelta(minutes=5)) for job in jobs]
    expected = ["FAILED", *["CANCELED"] * 2, *["FAILED"] * 5, *["COMPLETED"] * 12]
    assert [str(status.state) for status in found] == expected
    assert [status.exit_code for status in found[3:]] == [3] * 5 + [0] * 12
    assert "at the limit of its requested time" in found[0].message
    for states in told.values():
        orders = [state._order for state in states]
        assert orders == sorted(set(orders)), states
''',
    "test_nodefile.sh": """
test "$(grep -c . "$PSIJ_NODEFILE")" -eq "$1"
""",
    "conftest.py": """
import os

from executor_test_params import ExecutorTestParams


def pytest_generate_tests(metafunc):
    if "execparams" in metafunc.fixturenames:
        socket = os.environ["HANSE_SOCKET"]
        launchers = os.environ["LAUNCHERS"].split(",")
        found = [ExecutorTestParams("hanse", each, socket) for each in launchers]
        metafunc.parametrize("execparams", found, ids=launchers)
""",
}


def unpacked(python: str, folder: Path) -> Path:
    """Returns the folder of PSI/J's tests, with what its source distribution leaves out."""
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*command, "--dest", folder, RELEASE], check=True)
    (archive,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder)
    (tests,) = folder.glob("*/tests")
    for name, text in HELPERS.items():
        (tests / name).write_text(text)
    return tests


def run_tests(python: str, tests: Path, socket: Path, home: Path, more: list[str]) -> int:
    """Runs them, and returns the exit status."""
    home.mkdir()
    modules = [f"{name}.py" for name in TESTS]
    variables = {
        "HANSE_SOCKET": str(socket),
        "HOME": str(home),
        "KILL_NOW": str(home / KILL_NOW),
        "LAUNCHERS": "single,multiple,srun",
        "PYTHONPATH": ":".join([str(PLUGIN), str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [python, "-m", "pytest", "-pno:cacheprovider", "-v", "-rs", "--durations=5", *more]
    ended = subprocess.run([*command, *modules], cwd=tests, env=os.environ | variables, check=False)
    return ended.returncode


async def killed(daemon: Daemon, sign: Path) -> None:
    """Kills the daemon when the sign is there, and starts it again."""
    while not await asyncio.to_thread(sign.exists):  # noqa: ASYNC110  # of another process
        await asyncio.sleep(0.1)
    await daemon.end(signal.SIGKILL)
    await daemon.start()


async def _all(folder: Path, python: str, more: list[str]) -> int:
    tests = await asyncio.to_thread(unpacked, python, folder)
    cluster = SlurmCluster(folder / "cluster", nodes=2, cpus=4)
    cluster.up()
    try:
        lrms = {"poll_s": 0.5, "settle_s": 0.0}
        async with daemons(folder, folder, {"home": cluster}, {"home": 8}, lrms=lrms) as (sites, _):
            socket = sites["home"].socket
            home = folder / "psij-home"
            kill = asyncio.create_task(killed(sites["home"], home / KILL_NOW), name="kill")
            try:
                return await asyncio.to_thread(run_tests, python, tests, socket, home, more)
            finally:
                kill.cancel()
    finally:
        cluster.down()


def main() -> None:
    """Runs all of it."""
    parser = options_of(__doc__)
    parser.add_argument("--python", default=sys.executable, help="that has PSI/J and pytest")
    parser.add_argument("--keep", type=Path, help="folder for everything, which stays")
    options, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        raise SystemExit(asyncio.run(_all(folder, str(Path(options.python).absolute()), more)))


if __name__ == "__main__":
    main()
