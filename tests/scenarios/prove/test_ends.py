"""What a run has begun is over when it is: whatever is still under way in a thread, and where nothing came up."""

import asyncio
import re
import socket
import threading
from pathlib import Path

import pytest

from scenarios.prove.proof import _to_its_end
from scenarios.prove.simulated_slurm import FakeSlurm
from scenarios.prove.slurm_cluster import wait_for
from tests.clusters.up import up
from tests.scenarios.prove.processes import named_in_commands


def test_a_simulated_batch_system_that_is_down_starts_nothing(tmp_path: Path) -> None:
    """Also if somebody still asks it; one that is not up can be ended, too."""
    cluster = FakeSlurm(tmp_path / "cluster", nodes=1, cpus=1)
    cluster.down()
    cluster.up()
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nsleep 300\n")
    script.chmod(0o755)
    for name in ("first", "second"):
        cluster.ask("sbatch", f"--job-name={name}", "--time=9", "--output=/dev/null", str(script))
    wait_for(len(named_in_commands(str(script))) == 1 for _ in iter(int, 1))
    cluster.down()
    assert not cluster.machine.is_idle()  # a job waits
    with pytest.raises(ValueError, match="Unable to contact"):
        cluster.ask("squeue")
    assert named_in_commands(str(script)) == []


def test_a_program_that_is_ended_while_it_asks_is_no_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed of it, and others are answered."""
    cluster = FakeSlurm(tmp_path / "cluster")
    with up(cluster):
        (port,) = set(
            re.findall(r"127\.0\.0\.1\D+(\d+)", Path(cluster.programs, "squeue").read_text())
        )
        with socket.create_connection(("127.0.0.1", int(port))) as asking:
            asking.sendall(b"squeue")
            asking.shutdown(socket.SHUT_WR)
            assert asking.recv(1) == b""
        assert cluster.ask("squeue", "-h", "-o", "%i") == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_thread_has_begun_comes_to_its_end(*, fails: bool) -> None:
    """Before who waits for it is cancelled."""
    begun, goes_on, done = threading.Event(), threading.Event(), threading.Event()

    def act() -> None:
        begun.set()
        goes_on.wait(300)
        done.set()
        if fails:
            raise OSError("nobody is told any more")

    task = asyncio.create_task(_to_its_end(act))
    await asyncio.to_thread(begun.wait, 300)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()
