"""A socket that somebody listens on is left alone."""

import math
import socket
import threading
from pathlib import Path

import pytest

from grms.client.unary import await_socket
from grms.daemon.socket_folder import SocketInUseError, remove_stale_socket


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
    """For as long as is said; not at all where that is no number, or no path is so long."""
    path = tmp_path / "users.sock"
    assert not await_socket(path, 0.1)
    assert not await_socket(path, math.nan)
    assert not await_socket(Path("x" * 5000), 0.1)
    maker = threading.Timer(0.15, path.touch)
    maker.start()
    assert await_socket(path, 60.0)
    maker.join()
    assert await_socket(path, 0.0)
