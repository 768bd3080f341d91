"""The start of a daemon as a process: what users, operators and the service manager hear."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from grms.site.engine.journal import Journal
from grms.site.facts.jobs import Request
from grms.site.facts.records import JobKept, JobReceived, Record
from grms.v1 import request_pb2
from lrms_sim.text_files import to_toml
from tests.grms.keys import new_federation
from tests.grms.site.daemons import document

JOBS = 30_000


def long_journal(path: Path, jobs: int = JOBS) -> None:
    """Writes the journal of a site whose machine is full of jobs that run for a month."""
    message = request_pb2.JobRequest()
    message.simulated.run_time_s = 3e6
    payload, records = message.SerializeToString(), list[Record]()
    for number in range(1, jobs + 1):
        request = Request(4, 3e6)
        records.append(JobReceived(1.7e9, number, "ann", f"k{number}", "", request, payload))
        records.append(JobKept(1.7e9, number))
    with Journal(path, "home", durability="process") as journal:
        journal.append(records)


@contextmanager
def served(folder: Path, configuration: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """Yields a process that serves; it is killed at the end if it is still there."""
    path = folder / "home.toml"
    path.write_text(to_toml(configuration))
    process = subprocess.Popen(  # noqa: S603  # a daemon of the test's own
        [sys.executable, "-c", "from grms.command import main; main()", "serve", str(path)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NOTIFY_SOCKET": str(folder / "notify")},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def entries(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Yields what a process logs."""
    assert process.stderr is not None
    for line in process.stderr:
        yield json.loads(line)


def health(folder: Path) -> int:
    """Returns the health of the daemon, as the standard service tells it."""
    with grpc.insecure_channel(f"unix:{folder / 'home.sock'}") as channel:
        request = health_pb2.HealthCheckRequest()
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(request, timeout=300, wait_for_ready=True)
        return int(answer.status)


def test_a_long_start_is_told_and_answers(tmp_path: Path) -> None:
    """Health is NOT_SERVING while the journal is read; the manager hears READY when it serves."""
    configuration = document(
        tmp_path,
        limits={"open_jobs": 10 * JOBS, "open_jobs_per_user": 10 * JOBS},
        logging={"format": "json"},
        mqtt={"enabled": False},
    )
    long_journal(tmp_path / "home.journal")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(120)
        with served(tmp_path, configuration) as process:
            first = manager.recv(1000).decode()
            assert f"STATUS=reading the journal: {2 * JOBS} records" in first
            assert "EXTEND_TIMEOUT_USEC=" in first
            assert health(tmp_path) == health_pb2.HealthCheckResponse.NOT_SERVING
            word = first
            while "READY=1" not in word:
                word = manager.recv(1000).decode()
            assert health(tmp_path) == health_pb2.HealthCheckResponse.SERVING
            process.send_signal(signal.SIGTERM)
            assert "STOPPING=1" in manager.recv(1000).decode()
            assert process.wait(300) == 0


def test_a_start_can_be_ended(tmp_path: Path) -> None:
    """SIGTERM while the journal is read ends the daemon in order, at once."""
    configuration = document(tmp_path, logging={"format": "json"}, mqtt={"enabled": False})
    long_journal(tmp_path / "home.journal")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(120)
        with served(tmp_path, configuration) as process:
            manager.recv(1000)
            process.send_signal(signal.SIGTERM)
            events = [entry["event"] for entry in entries(process)]
            assert process.wait(300) == 0
    assert events[-1] == "stopped"
    assert "serving" not in events
    assert not (tmp_path / "home.sock").exists()
    with Journal(tmp_path / "home.journal", "home") as journal:
        assert journal.count == 2 * JOBS


@pytest.mark.parametrize(
    ("name", "said"), [("away", "is for the site away, not for home"), ("home", "")]
)
def test_another_sites_certificate_is_refused(tmp_path: Path, name: str, said: str) -> None:
    """Before anything is begun, with the file and whose it is; the own one is taken."""
    files = new_federation(tmp_path).site(name)
    tls = {
        "authority": str(files.authority),
        "certificate": str(files.certificate),
        "key": str(files.key),
    }
    configuration = document(tmp_path, tls=tls, logging={"format": "json"}, mqtt={"enabled": False})
    with served(tmp_path, configuration) as process:
        if not said:
            assert any(entry["event"] == "serving" for entry in entries(process))
            return
        _, error = process.communicate(timeout=300)
        assert said in error
        assert process.returncode == 2
