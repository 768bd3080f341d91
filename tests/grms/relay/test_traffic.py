"""What a relay logs of what it has carried, and how little of it."""

import structlog
from structlog.testing import capture_logs

from grms.relay.traffic import LINE_S, TrafficLog


def test_a_pair_has_a_line_now_and_then_and_no_byte_is_left_out() -> None:
    """However often one calls the other; pairs do not wait for each other, and there and back are two pairs."""
    now = 0.0
    with capture_logs() as log:
        traffic = TrafficLog(structlog.get_logger(), lambda: now)
        for _ in range(1000):
            traffic.ended("north", "south", 3, 2)
        traffic.ended("south", "north", 1, 0)
        assert [(one["caller"], one["calls"]) for one in log] == [("north", 1), ("south", 1)]
        now += LINE_S
        traffic.ended("north", "south", 5, 0)
        assert (log[-1]["calls"], log[-1]["bytes_there"], log[-1]["bytes_back"]) == (
            1000,
            3 * 999 + 5,
            2 * 999,
        )
        traffic.ended("north", "south", 7, 8)
        assert len(log) == 3
        traffic.flush()
        traffic.flush()
    assert len(log) == 4
    assert {
        name: log[-1][name] for name in ("event", "to", "calls", "bytes_there", "bytes_back")
    } == {
        "event": "carried",
        "to": "south",
        "calls": 1,
        "bytes_there": 7,
        "bytes_back": 8,
    }
