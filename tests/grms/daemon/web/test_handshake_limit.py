"""Connections whose TLS handshake does not end: so many of one address, and so many of all."""

import socket
from typing import Self

import pytest

from grms.daemon.web import handshake_limit
from grms.daemon.web.handshake_limit import CountedListener
from grms.daemon.web.visitors import listening_at


class Scene:
    """A counted listener, and those who connect to it."""

    def __init__(self) -> None:
        self.listener = CountedListener(listening_at("127.0.0.1", 0))
        self.callers: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (*self.callers, self.listener):
            each.close()

    def connects(self, host: str = "127.0.0.1") -> tuple[socket.socket, socket.socket | None]:
        """Returns a caller's side, and the listener's; None of the latter if it was closed at once."""
        caller = socket.create_connection(
            self.listener.getsockname(), timeout=60.0, source_address=(host, 0)
        )
        self.callers.append(caller)
        try:
            accepted, peer = self.listener.accept()
        except ConnectionAbortedError:
            return caller, None
        assert peer == caller.getsockname()
        self.callers.append(accepted)
        return caller, accepted


def test_one_address_has_so_many_and_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further ones are closed at once; one that has ended its handshake, or is gone, counts no more."""
    monkeypatch.setattr(handshake_limit, "PER_ADDRESS_MAX", 2)
    with Scene() as scene:
        (first, _), (_, second) = scene.connects(), scene.connects()
        refused, none = scene.connects()
        assert none is None
        assert refused.recv(1) == b""
        assert scene.connects("127.0.0.2")[1] is not None
        assert (scene.listener.unfinished, scene.listener.closed) == (3, 1)
        scene.listener.finished(first.getsockname())
        assert scene.connects()[1] is not None
        assert second is not None
        second.close()
        assert scene.connects()[1] is not None
        assert scene.connects()[1] is None


def test_the_oldest_of_all_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its address: who wants to shake hands needs no such time."""
    monkeypatch.setattr(handshake_limit, "UNFINISHED_MAX", 3)
    with Scene() as scene:
        oldest, _ = scene.connects("127.0.0.9")
        for number in range(1, 4):
            assert scene.connects(f"127.0.0.{number}")[1] is not None
        assert oldest.recv(1) == b""
        assert (scene.listener.unfinished, scene.listener.closed) == (3, 1)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%lo", "fe80::2%lo", True),
    ],
)
def test_whose_address_it_is(one: str, other: str, same: bool) -> None:
    """Of IPv6 a host has very many."""
    address = handshake_limit._address
    assert (address((one, 1)) == address((other, 2))) is same
