"""Connections that are not taken: all are counted, and few are logged."""

import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict

from grms.security.handshakes import Handshake
from grms.site.gateway.rejection_log import RejectionLog


class Scene:
    """What was counted, and what was logged."""

    def __init__(self, *, measured: bool = True) -> None:
        self.counted: list[str] = []
        self.handshakes: list[Handshake] = []
        self.told = RejectionLog(
            self.counted.append,
            self.handshakes.append if measured else None,
            structlog.get_logger(),
        )


def test_all_are_counted_and_one_of_each_kind_is_logged() -> None:
    """With the limit of the configuration that it is about, if it is about one."""
    scene = Scene()
    with capture_logs() as logged:
        for number in range(3):
            scene.told.refused("connections", f"user {number}", "connections_per_user")
            scene.told.refused("partner_connections", f"site {number}")
    assert scene.counted == ["connections", "partner_connections"] * 3
    assert logged == [
        {
            "event": "connection_refused",
            "log_level": "warning",
            "reason": "user 0",
            "limit": "limits.connections_per_user",
        },
        {
            "event": "connection_refused",
            "log_level": "warning",
            "reason": "site 0",
        },
    ]


def test_who_connects_while_the_daemon_ends_is_no_matter_of_the_log() -> None:
    """Partners do, at each restart; it is counted as what it is."""
    scene = Scene()
    scene.told.stop()
    with capture_logs() as logged:
        scene.told.refused("partner_connections", "the daemon's own socket: No such file")
    assert (scene.counted, logged) == (["stopping"], [])


def test_that_nothing_is_left_is_an_error() -> None:
    """Logged once in a minute, and counted each time."""
    scene = Scene()
    with capture_logs() as logged:
        for _ in range(3):
            scene.told.exhausted("no descriptors")
    assert scene.counted == ["descriptors"] * 3
    assert [(one["event"], one["log_level"], one["problem"]) for one in logged] == [
        ("no_connection_can_be_taken", "error", "no descriptors")
    ]


def test_a_handshake_is_logged_once_for_each_reason_and_address() -> None:
    """It counts among handshakes, not among refusals."""
    scene = Scene()
    failed = [
        (Handshake.SLOW, "10.0.0.1"),
        (Handshake.SLOW, "10.0.0.1"),
        (Handshake.CLOSED, "10.0.0.1"),
        (Handshake.SLOW, "10.0.0.2"),
    ]
    with capture_logs() as logged:
        for handshake, address in failed:
            scene.told.handshake_failed(handshake, "why", address)
    assert scene.handshakes == [handshake for handshake, _ in failed]
    assert scene.counted == []

    def said(one: EventDict) -> tuple[str, str]:
        return one["reason"], one["address"]

    kept = [failed[0], failed[2], failed[3]]
    assert [said(one) for one in logged] == [(str(reason), address) for reason, address in kept]
    assert {one["event"] for one in logged} == {"handshake_failed"}


def test_without_figures_a_handshake_is_logged_all_the_same() -> None:
    """A site may measure nothing."""
    scene = Scene(measured=False)
    with capture_logs() as logged:
        scene.told.handshake_failed(Handshake.SLOW, "it takes long", "10.0.0.1")
    assert [one["problem"] for one in logged] == ["it takes long"]


def test_who_is_refused_again_and_again_hides_nobody_else() -> None:
    """Each by his name; the next entry of one says how many of his were left out."""
    scene = Scene()
    with capture_logs() as logged:
        for number in range(5):
            scene.told.refused("partner_connections", f"eve has {number} calls open", "calls")
        scene.told.refused("partner_connections", "mallory has 9 calls open", "calls")
    assert [each["reason"] for each in logged] == [
        "eve has 0 calls open",
        "mallory has 9 calls open",
    ]
