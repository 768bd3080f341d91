"""What a service manager is told."""

import socket
from pathlib import Path

import pytest

from grms.daemon.process import VARIABLE, notify, status


def test_the_manager_gets_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One datagram with a line for each, to a path or to an abstract name."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "n"))
        monkeypatch.setenv(VARIABLE, str(tmp_path / "n"))
        assert notify("READY=1", "STATUS=serving")
        assert manager.recv(100) == b"READY=1\nSTATUS=serving"
        status("reading", seconds=2.0)
        assert manager.recv(100) == b"STATUS=reading\nEXTEND_TIMEOUT_USEC=2000000"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0hanse-test-{tmp_path.name}")
        monkeypatch.setenv(VARIABLE, f"@hanse-test-{tmp_path.name}")
        assert notify("STOPPING=1")
        assert manager.recv(100) == b"STOPPING=1"


def test_nobody_need_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a manager, or with one that is gone, nothing happens."""
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not notify("READY=1")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    assert not notify("READY=1")
