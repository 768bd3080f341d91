"""The start of a daemon as a process: what users, operators and the service manager hear."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from grms.client import Outcome, SyncClient
from grms.site.gateway.user_listener import user_of
from grms.site.model.jobs import Request
from grms.site.model.records import JobKept, JobReceived, Record
from grms.site.runtime.journal import Journal
from grms.v1 import request_pb2
from lrms_sim.util.files import to_toml
from tests.grms.keys import new_federation
from tests.grms.site.daemons import document
from tests.programs import run_program

pytestmark = pytest.mark.services

JOBS = 30_000


def _one_job(moment: float, *, run_time_s: float, number: int = 1) -> list[Record]:
    # A job that waits, received at that moment.
    message = request_pb2.JobRequest()
    message.simulated.run_time_s = run_time_s
    payload, request = message.SerializeToString(), Request(1, 60.0)
    user = str(user_of(os.getuid()).name)
    return [
        JobReceived(moment, number, user, f"k{number}", "", request, payload),
        JobKept(moment, number),
    ]


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
def served(
    folder: Path, configuration: dict[str, Any], *options: str
) -> Iterator[subprocess.Popen[str]]:
    """Yields a process that serves; it is killed at the end if it is still there."""
    path = folder / "home.toml"
    path.write_text(to_toml(configuration))
    process = subprocess.Popen(  # noqa: S603  # a daemon of the test's own
        [
            sys.executable,
            "-c",
            "from grms.command import main; main()",
            "serve",
            str(path),
            *options,
        ],
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


def test_a_hangup_reads_the_configuration_anew(tmp_path: Path) -> None:
    """Whenever it comes: while the journal is read, and while the daemon serves; nothing ends by it.

    What cannot be used is said, and then nothing has changed.
    """
    configuration = document(
        tmp_path,
        limits={"open_jobs": 10 * JOBS, "open_jobs_per_user": 10 * JOBS},
        logging={"format": "json"},
        mqtt={"enabled": False},
    )
    long_journal(tmp_path / "home.journal")
    path = tmp_path / "home.toml"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(120)
        with served(tmp_path, configuration) as process:
            manager.recv(1000)
            path.write_text(to_toml({**configuration, "operators": ["ann"]}))
            process.send_signal(signal.SIGHUP)
            said = entries(process)
            event = ""
            while event != "serving":
                event = next(said)["event"]
            found = next(said)
            assert (found["event"], found["restart_needed"]) == ("reloaded", [])
            path.write_text(to_toml({**configuration, "processors": 0}))
            process.send_signal(signal.SIGHUP)
            found = next(said)
            assert found["event"] == "not_reloaded"
            assert "processors: is 0" in found["problem"]
            path.write_text(to_toml({**configuration, "processors": 8}))
            process.send_signal(signal.SIGHUP)
            found = next(said)
            assert (found["event"], found["restart_needed"]) == ("reloaded", ["processors"])
            assert health(tmp_path) == health_pb2.HealthCheckResponse.SERVING
            process.send_signal(signal.SIGTERM)
            assert process.wait(300) == 0


def test_a_site_goes_on_after_its_clock_was_ahead(tmp_path: Path) -> None:
    """The journal's last record is an hour ahead: it is said, jobs run, and no moment is before another.

    A month ahead takes the word of an operator; another journal is never asked for.
    """
    configuration = document(tmp_path, logging={"format": "json"}, mqtt={"enabled": False})
    ahead = time.time() + 3600.0
    with Journal(tmp_path / "home.journal", "home", durability="process") as journal:
        journal.append(_one_job(ahead, run_time_s=0.1))
        journal.set_note("clock", "wall")
    with served(tmp_path, configuration) as process:
        events = []
        for entry in entries(process):
            events.append(entry)
            if entry["event"] == "serving":
                break
        behind = [entry for entry in events if entry["event"] == "clock_behind_journal"]
        assert [3500 < entry["ahead_s"] <= 3600 for entry in behind] == [True]
        with SyncClient(tmp_path / "home.sock", timeout_s=300) as site:
            first = site.wait("home-1")
            second = site.submit(processors=1, requested_time_s=60, run_time_s=0.1)
            second = site.wait(second.job_id)
            for job in (first, second):
                assert job.outcome is Outcome.COMPLETED
                assert job.start_time_s is not None
                assert job.end_time_s is not None
                assert ahead <= job.submit_time_s <= job.start_time_s <= job.end_time_s
            assert 3400 < site.status().clock_ahead_s <= 3600
        shown = run_program(
            [sys.executable, "-m", "grms", "status", "--socket", str(tmp_path / "home.sock")],
            check=True,
        )
        assert "s ahead, as its journal is; it goes at half its speed" in shown.stdout
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    month = ahead + 30 * 86_400.0
    with Journal(tmp_path / "home.journal", "home", durability="process") as journal:
        journal.append(_one_job(month, run_time_s=0.1, number=3))
    with served(tmp_path, configuration) as process:
        _, error = process.communicate(timeout=300)
        assert process.returncode == 2
        assert "start once with --behind" in error
        assert "another journal" not in error
    with served(tmp_path, configuration, "--behind") as process:
        assert any(entry["event"] == "serving" for entry in entries(process))


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
