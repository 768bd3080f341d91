"""Free ports, which stay free until who asked for them listens."""

import socket

import pytest

from grms.daemon.ports import free_port, free_ports


def test_ports_are_given_once() -> None:
    """To us; and to nobody else who asks for any, to listen or to connect from."""
    ports = set(free_ports(500))
    assert len(ports) == 500
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(500):
            with socket.socket() as other, socket.create_connection(server.getsockname()) as call:
                other.bind(("127.0.0.1", 0))
                assert not ports & {other.getsockname()[1], call.getsockname()[1]}
                server.accept()[0].close()


def test_a_port_can_be_listened_on() -> None:
    """By servers as ours are; until then nobody answers there."""
    port = free_port()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with (
        socket.create_server(("127.0.0.1", port)),
        socket.create_connection(("127.0.0.1", port)) as call,
    ):
        assert call.getpeername() == ("127.0.0.1", port)
