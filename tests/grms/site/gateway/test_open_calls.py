"""Frames of both sides of a connection: which calls are open, which are half sent, and whose answers are not read."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from grms.site.gateway.open_calls import PREFACE_BYTES, WINDOW_BYTES, OpenCalls
from tests.grms.site.gateway.raw_http2 import (
    END_HEADERS,
    END_STREAM,
    PREFACE,
    data,
    frame,
    reset,
    settings,
    window_update,
)

DATA, HEADERS, RST_STREAM, SETTINGS, CONTINUATION = 0, 1, 3, 4, 9


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


def after(*frames: bytes) -> OpenCalls:
    """Returns what has followed frames behind the preface, at the moment 10."""
    sent = OpenCalls()
    sent.asked(PREFACE + b"".join(frames), 10.0)
    return sent


def test_the_preface_is_awaited() -> None:
    """A connection that says nothing is half sent from its beginning."""
    sent = OpenCalls()
    assert sent.half_sent_since(3.0) == 3.0
    sent.asked(PREFACE[:5], 4.0)
    assert sent.half_sent_since(3.0) == 3.0
    sent.asked(PREFACE[5:], 5.0)
    assert sent.half_sent_since(3.0) == float("inf")
    assert len(PREFACE) == PREFACE_BYTES


def test_a_request_is_half_sent_until_its_stream_ends() -> None:
    """By its data, by its headers, or because the client gives it up."""
    begun = frame(HEADERS, END_HEADERS, 1, b"head")
    assert after(begun).half_sent == 1
    assert after(begun).half_sent_since(0.0) == 10.0
    assert after(begun, frame(DATA, 0, 1, b"half")).half_sent == 1
    assert after(begun, frame(DATA, END_STREAM, 1, b"all")).half_sent == 0
    assert after(begun, frame(DATA, END_STREAM, 1, b"")).half_sent_since(0.0) == float("inf")
    assert after(begun, frame(RST_STREAM, 0, 1, b"\0\0\0\x08")).half_sent == 0
    assert after(frame(HEADERS, END_HEADERS | END_STREAM, 3, b"head")).half_sent == 0
    assert after(frame(SETTINGS, 0, 0, b"")).half_sent == 0


def test_the_oldest_of_several_counts() -> None:
    """It is half sent for the longest time; a frame that is cut off is half sent by itself."""
    sent = OpenCalls()
    sent.asked(PREFACE, 1.0)
    for stream, now in ((1, 10.0), (3, 20.0), (5, 30.0)):
        sent.asked(frame(HEADERS, END_HEADERS, stream, b"head"), now)
    for stream, since in ((1, 20.0), (3, 30.0), (5, float("inf"))):
        sent.asked(frame(DATA, END_STREAM, stream, b"all"), 35.0)
        assert sent.half_sent_since(0.0) == since
    sent.asked(frame(DATA, 0, 1, b"half")[:4], 40.0)
    assert sent.half_sent_since(0.0) == 40.0


def test_headers_that_never_end_are_half_sent() -> None:
    """Though their stream is to end with them."""
    head = frame(HEADERS, END_STREAM, 5, b"a")
    assert after(head).half_sent == 1
    assert after(head, frame(CONTINUATION, 0, 5, b"b")).half_sent == 1
    assert after(head, frame(CONTINUATION, END_HEADERS, 5, b"c")).half_sent == 0


def test_a_frame_that_never_ends_is_half_sent() -> None:
    """Though its head says that it is the last one."""
    whole = frame(HEADERS, END_HEADERS, 1, b"h") + frame(DATA, END_STREAM, 1, b"x" * 100)
    for missing in (1, 50, 104):
        sent = OpenCalls()
        sent.asked(PREFACE, 1.0)
        sent.asked(whole[:-missing], 7.0)
        assert sent.half_sent_since(0.0) == 7.0
        sent.asked(whole[-missing:], 8.0)
        assert sent.half_sent_since(0.0) == float("inf")


def test_it_does_not_matter_how_the_bytes_come() -> None:
    """In any pieces the same is known at the end."""
    frames = b"".join(
        frame(HEADERS, END_HEADERS, stream, bytes(stream)) + frame(DATA, stream % 2, stream, b"d")
        for stream in range(1, 40)
    )
    whole = after(frames)
    rng = random.Random(7)  # noqa: S311  # nothing is kept secret by it
    for _ in range(50):
        sent, left = OpenCalls(), PREFACE + frames
        while left:
            step = rng.randint(1, 30)
            sent.asked(left[:step], 10.0)
            left = left[step:]
        assert sent.half_sent == whole.half_sent == 19
        assert sent.half_sent_since(0.0) == whole.half_sent_since(0.0)
