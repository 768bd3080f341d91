"""Requests that are begun and not finished, as the frames of a connection show them."""

import random

from grms.site.sockets.half_sent import PREFACE_BYTES, HalfSent

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, CONTINUATION = 0, 1, 3, 4, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """Returns a frame."""
    head = len(content).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4)
    return head + content


def after(*frames: bytes) -> HalfSent:
    """Returns what has followed frames behind the preface, at the moment 10."""
    sent = HalfSent()
    sent.feed(PREFACE + b"".join(frames), 10.0)
    return sent


def test_the_preface_is_awaited() -> None:
    """A connection that says nothing is half sent from its beginning."""
    sent = HalfSent()
    assert sent.since(3.0) == 3.0
    sent.feed(PREFACE[:5], 4.0)
    assert sent.since(3.0) == 3.0
    sent.feed(PREFACE[5:], 5.0)
    assert sent.since(3.0) == float("inf")
    assert len(PREFACE) == PREFACE_BYTES


def test_a_request_is_half_sent_until_its_stream_ends() -> None:
    """By its data, by its headers, or because the client gives it up."""
    begun = frame(HEADERS, END_HEADERS, 1, b"head")
    assert after(begun).count == 1
    assert after(begun).since(0.0) == 10.0
    assert after(begun, frame(DATA, 0, 1, b"half")).count == 1
    assert after(begun, frame(DATA, END_STREAM, 1, b"all")).count == 0
    assert after(begun, frame(DATA, END_STREAM, 1)).since(0.0) == float("inf")
    assert after(begun, frame(RST_STREAM, 0, 1, b"\0\0\0\x08")).count == 0
    assert after(frame(HEADERS, END_HEADERS | END_STREAM, 3, b"head")).count == 0
    assert after(frame(SETTINGS, 0, 0)).count == 0


def test_the_oldest_of_several_counts() -> None:
    """It is half sent for the longest time; a frame that is cut off is half sent by itself."""
    sent = HalfSent()
    sent.feed(PREFACE, 1.0)
    for stream, now in ((1, 10.0), (3, 20.0), (5, 30.0)):
        sent.feed(frame(HEADERS, END_HEADERS, stream, b"head"), now)
    for stream, since in ((1, 20.0), (3, 30.0), (5, float("inf"))):
        sent.feed(frame(DATA, END_STREAM, stream, b"all"), 35.0)
        assert sent.since(0.0) == since
    sent.feed(frame(DATA, 0, 1, b"half")[:4], 40.0)
    assert sent.since(0.0) == 40.0


def test_headers_that_never_end_are_half_sent() -> None:
    """Though their stream is to end with them."""
    head = frame(HEADERS, END_STREAM, 5, b"a")
    assert after(head).count == 1
    assert after(head, frame(CONTINUATION, 0, 5, b"b")).count == 1
    assert after(head, frame(CONTINUATION, END_HEADERS, 5, b"c")).count == 0


def test_a_frame_that_never_ends_is_half_sent() -> None:
    """Though its head says that it is the last one."""
    whole = frame(HEADERS, END_HEADERS, 1, b"h") + frame(DATA, END_STREAM, 1, b"x" * 100)
    for missing in (1, 50, 104):
        sent = HalfSent()
        sent.feed(PREFACE, 1.0)
        sent.feed(whole[:-missing], 7.0)
        assert sent.since(0.0) == 7.0
        sent.feed(whole[-missing:], 8.0)
        assert sent.since(0.0) == float("inf")


def test_it_does_not_matter_how_the_bytes_come() -> None:
    """In any pieces the same is known at the end."""
    frames = b"".join(
        frame(HEADERS, END_HEADERS, stream, bytes(stream)) + frame(DATA, stream % 2, stream, b"d")
        for stream in range(1, 40)
    )
    whole = after(frames)
    rng = random.Random(7)  # noqa: S311  # nothing is kept secret by it
    for _ in range(50):
        sent, left = HalfSent(), PREFACE + frames
        while left:
            step = rng.randint(1, 30)
            sent.feed(left[:step], 10.0)
            left = left[step:]
        assert sent.count == whole.count == 19
        assert sent.since(0.0) == whole.since(0.0)
