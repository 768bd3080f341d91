"""Messages come out of a stream as they went in, however it is cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.site.sockets.frames import Frames, FrameTooLongError, framed


@given(
    st.lists(st.binary(max_size=300), max_size=8),
    st.lists(st.integers(0, 2500), max_size=8),
)
def test_messages_survive_any_cut(messages: list[bytes], cuts: list[int]) -> None:
    """Empty ones too, and those that come in many pieces."""
    stream = b"".join(framed(message) for message in messages)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    frames = Frames(300)
    found: list[bytes] = []
    for begin, end in pairwise(places):
        found += frames.feed(stream[begin:end])
    assert found == messages
    assert frames.feed(b"") == []


def test_a_message_is_told_as_soon_as_it_is_whole() -> None:
    """And what follows is kept until then."""
    frames = Frames(5)
    assert frames.feed(framed(b"one")[:-1]) == []
    assert frames.feed(b"e" + framed(b"three") + b"\0") == [b"one", b"three"]
    assert frames.feed(b"\0\0\1!") == [b"!"]


def test_what_is_too_long_is_not_waited_for() -> None:
    """Its length alone is enough: it is not kept."""
    with pytest.raises(FrameTooLongError, match="a message of 6 bytes; the longest has 5"):
        Frames(5).feed(framed(b"123456")[:4])
    assert Frames(5).feed(framed(b"12345")) == [b"12345"]
