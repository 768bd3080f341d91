"""A Slurm of one's own whose controller hangs, and loses what it was not yet to have forgotten."""

import subprocess
from pathlib import Path

import pytest

from scenarios.prove.slurm_cluster import SlurmCluster, wait_for
from tests.clusters.slurm import need_slurm
from tests.clusters.up import up
from tests.programs import run_program


def states(cluster: SlurmCluster) -> dict[str, str]:
    """Returns the states of all jobs, by name."""
    lines = cluster.ask("squeue", "-h", "-a", "-t", "all", "-o", "%j %T").splitlines()
    return dict(line.split() for line in lines)


def submitted(
    name: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Submits a job that is held, as a user does."""
    words = [
        "sbatch",
        "--hold",
        "--parsable",
        "--output=/dev/null",
        f"--job-name={name}",
        "--wrap=true",
    ]
    return run_program(words, env=environment)


@pytest.mark.services
def test_a_controller_that_hangs_and_one_that_loses_its_state(tmp_path: Path) -> None:
    """What a user gave up is taken all the same; what was submitted after the last save is forgotten; drained nodes are resumed."""
    need_slurm()
    cluster = SlurmCluster(tmp_path, name="lab", silence_s=40)
    with up(cluster):
        impatient = cluster.impatient(1)
        cluster.hang_controller()
        given_up = submitted("given-up", impatient)
        assert (given_up.returncode, given_up.stdout) == (1, "")
        assert "Socket timed out" in given_up.stderr
        cluster.wake_controller()
        wait_for("given-up" in states(cluster) for _ in iter(int, 1))
        assert not cluster.is_idle()

        cluster.save_state()
        assert submitted("forgotten", impatient).returncode == 0
        assert set(states(cluster)) == {"given-up", "forgotten"}
        cluster.lose_state()
        cluster.wake_controller()  # does nothing: there is none
        cluster.start_controller()
        assert set(states(cluster)) == {"given-up"}

        cluster.ask("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
        cluster.resume_nodes()
        wait_for("drain" not in cluster.ask("sinfo", "-h", "-N", "-o", "%T") for _ in iter(int, 1))
        cluster.ask("scancel", "--name=given-up")
        wait_for(cluster.is_idle() for _ in iter(int, 1))
    assert cluster.processes == {}
