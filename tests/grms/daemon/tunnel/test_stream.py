"""What is said over a tunnel, and connections that become one."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.daemon.tunnel import stream as module
from grms.daemon.tunnel.stream import LINE_BYTES_MAX, NO, OK, WAIT, TunnelError, join
from tests.grms.daemon.tunnel.ends import pair
from tests.waiting import run, until


async def test_a_line_is_a_word_and_what_follows_it() -> None:
    """An empty one is a line too; a long text is cut, and stays one line."""
    one, other = await pair()
    for words in ((WAIT,), (), ("GO", "south"), (NO, "a reason\nof two lines")):
        one.say(*words)
    one.say(NO, "x" * 9999)
    assert [await other.line(60.0) for _ in range(4)] == [
        ("WAIT", ""),
        ("", ""),
        ("GO", "south"),
        ("NO", "a reason of two lines"),
    ]
    assert await other.line(60.0) == ("NO", "x" * (LINE_BYTES_MAX - 4))
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (b"no end", "hung up"),
        (b"\xff\n", "no line of a tunnel"),
        (b"NO \x1b[2Jall is well\n", "no line of a tunnel"),
        (b"x" * LINE_BYTES_MAX + b"\n", "no line of a tunnel"),
        (b"x" * (1 << 20), "broken"),
    ],
)
async def test_what_is_no_line_is_none(said: bytes, problem: str) -> None:
    """Whatever comes, it is an error of the other side and no more."""
    one, other = await pair()
    one.writer.write(said)
    one.close()
    with pytest.raises(TunnelError, match=problem):
        await other.line(60.0)
    one.abort()
    other.close()


async def test_an_answer_that_is_not_the_wanted_one_closes() -> None:
    """With its reason, where it has one; so does silence."""
    for said, problem in (
        ((NO, "you may not"), "^you may not$"),
        (("HUH",), "'HUH'"),
        (None, "has said nothing for 0.01 s"),
    ):
        one, other = await pair()
        if said is not None:
            other.say(*said)
        with pytest.raises(TunnelError, match=problem):
            await one.ask(WAIT, wanted=OK, timeout_s=60.0 if said else 0.01)
        assert await other.line(60.0) == (WAIT, "")
        with pytest.raises(TunnelError):
            await other.line(60.0)
        other.close()


@settings(max_examples=10, deadline=None)
@given(
    there=st.lists(st.binary(min_size=1, max_size=100_000), max_size=5),
    back=st.lists(st.binary(min_size=1, max_size=100_000), max_size=5),
)
def test_what_is_joined_says_the_same_to_both(there: list[bytes], back: list[bytes]) -> None:
    """Every byte arrives, in order; the end of one is the end of the other."""

    async def scene() -> None:
        (one, near), (far, other) = await pair(), await pair()
        task = asyncio.create_task(join(near, far))
        for end, parts in ((one, there), (other, back)):
            for part in parts:
                end.writer.write(part)
        assert await other.reader.readexactly(len(b"".join(there))) == b"".join(there)
        assert await one.reader.readexactly(len(b"".join(back))) == b"".join(back)
        one.close()
        assert await other.reader.read() == b""
        await task
        assert (near.carried, far.carried) == (len(b"".join(there)), len(b"".join(back)))
        other.close()

    run(scene)


async def test_a_slow_reader_holds_up_the_writer() -> None:
    """Nothing piles up in between."""
    (one, near), (far, other) = await pair(), await pair()
    task = asyncio.create_task(join(near, far))
    total = 64 * module.CHUNK_BYTES
    for _ in range(64):
        one.writer.write(bytes(module.CHUNK_BYTES))
    before = -1
    while before != near.carried:
        before = near.carried
        await asyncio.sleep(0.05)
    assert near.carried < total // 2
    assert near.writer.transport.get_write_buffer_size() == 0
    await other.reader.readexactly(total)
    assert near.carried == total
    other.close()
    await task
    await until(one.reader.at_eof)
    one.close()
