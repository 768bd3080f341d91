"""Frames of both sides of a connection: which calls are open, and whose answers are not read."""

import math

from hypothesis import given
from hypothesis import strategies as st

from grms.site.sockets.open_calls import WINDOW_BYTES, OpenCalls
from tests.grms.site.sockets.raw_http2 import (
    END_HEADERS,
    END_STREAM,
    PREFACE,
    data,
    frame,
    reset,
    settings,
    window_update,
)

HEADERS = 1


def headers(stream: int, *, ends: bool = False) -> bytes:
    """Returns the frame that begins, or ends, a call."""
    return frame(HEADERS, END_HEADERS | (END_STREAM if ends else 0), stream, b"\x82")


def test_a_call_is_open_until_either_side_ends_it() -> None:
    """By trailers, by the end of its data or by a reset; trailers of the client's own open none."""
    calls = OpenCalls()
    calls.asked(PREFACE + settings(), 0.0)
    for stream in (1, 3, 5, 7):
        calls.asked(headers(stream) + data(stream, b"ask", ends=True), 1.0)
    assert calls.count == 4
    assert calls.asked_bytes == {1: 4, 3: 4, 5: 4, 7: 4}
    assert calls.total_bytes == 16
    calls.answered(settings() + headers(1) + data(1, b"answer") + headers(1, ends=True), 2.0)
    assert list(calls.asked_bytes) == [3, 5, 7]
    calls.answered(headers(3) + data(3, b"answer", ends=True), 2.0)
    calls.asked(reset(5), 2.0)
    calls.answered(reset(7), 2.0)
    calls.asked(headers(7, ends=True), 2.0)
    assert (calls.count, calls.asked_bytes, calls.total_bytes) == (0, {}, 0)


@given(cuts=st.lists(st.integers(0, 400), max_size=8))
def test_frames_come_in_any_pieces(cuts: list[int]) -> None:
    """What is known afterwards is the same."""
    said = PREFACE + settings(initial=0)
    said += b"".join(headers(s) + data(s, b"x" * 50, ends=True) for s in (1, 3))
    said += window_update(0, 10) + window_update(1, 7) + settings(initial=5)
    calls, at = OpenCalls(), 0
    for cut in [*sorted(min(cut, len(said)) for cut in cuts), len(said)]:
        calls.asked(said[at:cut], 3.0)
        at = cut
    assert calls.asked_bytes == {1: 51, 3: 51}
    assert {stream: window.left for stream, window in calls._windows.items()} == {1: 12, 3: 5}
    assert calls._connection.left == WINDOW_BYTES + 10


def test_who_takes_nothing_does_not_read() -> None:
    """Since the call began; as soon as it takes something, it reads, until that is used up."""
    calls = OpenCalls()
    calls.asked(PREFACE + settings(initial=0), 0.0)
    assert calls.unread_since() == math.inf
    calls.asked(headers(1), 5.0)
    assert calls.unread_since() == 5.0
    calls.asked(window_update(1, 10), 6.0)
    assert calls.unread_since() == math.inf
    calls.answered(headers(1) + data(1, b"x" * 10), 7.0)
    assert calls.unread_since() == 7.0
    calls.answered(headers(1, ends=True), 8.0)
    assert calls.unread_since() == math.inf


def test_a_window_of_the_whole_connection_counts_for_all_calls() -> None:
    """Also where each call's own is large."""
    calls = OpenCalls()
    calls.asked(PREFACE + settings(initial=2**30) + headers(1) + headers(3), 1.0)
    for number in range(4):
        calls.answered(data(3, b"x" * 16_384), 2.0 + number)
    assert calls.unread_since() == 5.0
    calls.asked(window_update(0, 100_000), 9.0)
    assert calls.unread_since() == math.inf
    calls.answered(headers(1, ends=True) + headers(3, ends=True), 10.0)
    calls.answered(data(3, b"x" * 200_000), 11.0)
    assert calls.unread_since() == math.inf
