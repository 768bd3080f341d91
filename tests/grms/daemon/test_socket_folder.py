"""Folders for sockets, and what becomes of them when their holders do not end in order."""

import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grms.daemon.socket_folder import LOCK, SocketFolder, is_held, remove, remove_left_behind
from tests.programs import run_program


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yields the folder for temporary files of this test and of processes that it starts."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # its name must be short
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr("tempfile.tempdir", folder)
        yield Path(folder)


def test_a_place_with_a_long_name_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket's path has to fit into 107 bytes."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("long" * 10)))
    with SocketFolder() as folder:
        assert folder.path.parent == Path("/tmp")  # noqa: S108  # as the system has it


def bind(path: Path) -> None:
    """Leaves a socket's file."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def test_a_folder_is_there_as_long_as_it_is_held(place: Path) -> None:
    """Nobody else enters it, who cleans up leaves it alone, and at its end nothing is left."""
    with SocketFolder() as folder:
        assert folder.path.stat().st_mode & 0o777 == 0o700
        bind(folder.path / "a.sock")
        remove_left_behind()
        with SocketFolder() as other:
            assert other.path != folder.path
        assert (folder.path / "a.sock").is_socket()
        assert is_held(folder.path)
    assert not is_held(folder.path)
    assert os.listdir(place) == []  # noqa: PTH208  # names are all that is wanted
    folder.close()


HOLDER = """
import os, signal, subprocess, sys
from grms.daemon.socket_folder import SocketFolder
folder = SocketFolder()
os.mknod(folder.path / "x.sock", 0o140600)
if sys.argv[1] == "share":
    folder.share()
    silent = [(os.POSIX_SPAWN_CLOSE, number) for number in (1, 2)]
    child = os.posix_spawn("/bin/sleep", ["sleep", "600"], {}, file_actions=silent)
    folder.leave()
    print(folder.path, child, flush=True)
else:
    print(folder.path, 0, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def hold(word: str) -> tuple[Path, int]:
    """Runs a process that makes a folder and does not remove it; returns that and its child."""
    done = run_program([sys.executable, "-c", HOLDER, word])
    path, child = done.stdout.split()
    return Path(path), int(child)


def test_the_folder_of_a_process_that_was_killed_goes_with_the_next(place: Path) -> None:
    """Whoever makes another folder removes it."""
    left, _ = hold("kill")
    assert (left / "x.sock").is_socket()
    with SocketFolder() as folder:
        assert list(place.iterdir()) == [folder.path]


def test_a_folder_that_was_shared_is_held_by_the_processes_that_live(place: Path) -> None:
    """It stays when its maker ends, and goes when they have."""
    left, child = hold("share")
    try:
        remove_left_behind()
        assert (left / "x.sock").is_socket()
    finally:
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + 300
    while left.exists() and time.monotonic() < deadline:
        remove_left_behind()
    assert list(place.iterdir()) == []


def test_what_is_not_ours_stays(place: Path) -> None:
    """Folders without the lock, other files beside sockets, and links."""
    (place / "hanse-thesis").mkdir()
    (place / "hanse-thesis" / "text").write_text("precious")
    (place / "hanse-link").symlink_to(place / "hanse-thesis")
    mixed = place / "hanse-mixed"
    mixed.mkdir()
    (mixed / LOCK).touch()
    (mixed / "text").write_text("precious")
    remove_left_behind()
    remove(place / "nowhere")
    assert (place / "hanse-thesis" / "text").read_text() == "precious"
    assert (place / "hanse-link").is_symlink()
    assert (mixed / "text").read_text() == "precious"
