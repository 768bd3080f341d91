"""A socket that somebody listens on is left alone."""

import socket
import threading
from pathlib import Path

import pytest

from grms.kit.unix_sockets import SocketInUseError, await_socket, remove_stale_socket


def test_only_what_nobody_listens_on_is_removed(tmp_path: Path) -> None:
    """A dead process's socket goes; a live one's, and what is no socket, stay."""
    path = tmp_path / "users.sock"
    remove_stale_socket(path)
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(path))
        held.listen()
        with pytest.raises(SocketInUseError, match=r"another process listens on .*users\.sock"):
            remove_stale_socket(path)
        assert path.is_socket()
    remove_stale_socket(path)
    assert not path.exists()
    path.write_text("precious")
    with pytest.raises(SocketInUseError, match="is no socket"):
        remove_stale_socket(path)
    assert path.read_text() == "precious"


def test_a_socket_is_waited_for(tmp_path: Path) -> None:
    """What is left of the time is told; None where it did not come, also where no path is so long."""
    path = tmp_path / "users.sock"
    assert await_socket(path, 0.1) is None
    assert await_socket(Path("x" * 5000), 0.1) is None
    maker = threading.Timer(0.15, path.touch)
    maker.start()
    left_s = await_socket(path, 60.0)
    maker.join()
    assert left_s is not None
    assert 0.1 <= left_s < 60.0
    assert await_socket(path, 2.5) == 2.5
