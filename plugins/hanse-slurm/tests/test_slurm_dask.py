"""A cluster of Dask over a site above a real Slurm; where dask-jobqueue is installed."""

from pathlib import Path

import pytest

from slurm_lab import lab_in
from tests.clusters.slurm import need_slurm

pytest.importorskip("dask_jobqueue", reason="hanse-slurm[dask] is not installed")

from distributed import Client

from hanse_slurm.dask_cluster import HanseCluster


@pytest.mark.services
def test_workers_are_jobs_of_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They compute, and are cancelled with the cluster; Slurm's own programs are not in the way."""
    need_slurm()
    with lab_in(tmp_path) as lab:
        for name, value in lab.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(lab.folder / "work")
        words = {"cores": 1, "memory": "200MB", "walltime": "00:05:00", "job_cpu": 1}
        words |= {"interface": "lo", "scheduler_options": {"dashboard_address": "127.0.0.1:0"}}
        with HanseCluster(**words) as cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
            cluster.scale(jobs=2)
            client.wait_for_workers(2, timeout=100)
            assert client.gather(client.map(abs, range(-20, 0))) == list(range(20, 0, -1))
            jobs = lab.ours("squeue", "-h", "-o", "%j %T").lines
            assert jobs == ["dask-worker RUNNING"] * 2
        lab.wait(lambda: not lab.ours("squeue", "-h").lines)
        ends = lab.ours("sacct", "-n", "-X", "-P", "-o", "State").lines
        assert len(ends) == 2
        assert {each.partition(" ")[0] for each in ends} <= {"CANCELLED", "COMPLETED"}
