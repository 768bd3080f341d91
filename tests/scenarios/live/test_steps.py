"""Answers to steps reach who has asked, and nobody waits for a daemon that is gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc import aio

from grms.site.sockets.frames import Frames, framed
from grms.v1 import replay_pb2
from scenarios.live.steps import StepLine
from tests.waiting import run

Writer = asyncio.StreamWriter


@asynccontextmanager
async def daemon(folder: Path) -> AsyncIterator[tuple[StepLine, asyncio.StreamReader, Writer]]:
    """Yields a connection, and the daemon's end of it."""
    path = str(folder / "s")
    ends: asyncio.Queue[tuple[asyncio.StreamReader, Writer]] = asyncio.Queue()
    server = await asyncio.start_unix_server(lambda *end: ends.put_nowait(end), path)
    async with server:
        line = await StepLine.to(path)
        reader, writer = await ends.get()
        try:
            yield line, reader, writer
        finally:
            line.close()
            writer.close()


def advance(moment: float) -> replay_pb2.StepRequest:
    """Returns a step."""
    return replay_pb2.StepRequest(advance=replay_pb2.AdvanceRequest(to_s=moment))


def answer(moment: float) -> bytes:
    """Returns the answer to one."""
    advanced = replay_pb2.AdvanceResponse(next_event_time_s=moment)
    return framed(replay_pb2.StepResponse(advance=advanced).SerializeToString())


async def asked(reader: asyncio.StreamReader, count: int) -> list[float]:
    """Returns to which moments the next steps are to go."""
    frames = Frames(100)
    found: list[bytes] = []
    while len(found) < count:
        found += frames.feed(await reader.read(1000))
    return [replay_pb2.StepRequest.FromString(each).advance.to_s for each in found]


def test_answers_come_in_order_and_passed_over_where_nobody_waits(tmp_path: Path) -> None:
    """One who has gone leaves the answers of the others where they belong."""

    async def scene() -> None:
        async with daemon(tmp_path) as (line, reader, writer):
            asking = [asyncio.ensure_future(line.ask(advance(moment))) for moment in (1, 2, 3)]
            assert await asked(reader, 3) == [1, 2, 3]
            asking[1].cancel()
            await asyncio.wait([asking[1]])
            whole = answer(10) + answer(20) + answer(30)
            writer.write(whole[:-1])
            assert (await asking[0]).advance.next_event_time_s == 10
            writer.write(whole[-1:])
            assert (await asking[2]).advance.next_event_time_s == 30

    run(scene)


def test_a_refusal_is_that_of_a_call(tmp_path: Path) -> None:
    """With state and text; an answer to something else is none."""

    async def scene() -> None:
        async with daemon(tmp_path) as (line, reader, writer):
            refused = replay_pb2.StepRefused(code=9, text="not yet")
            for response, code, text in (
                (
                    replay_pb2.StepResponse(refused=refused),
                    grpc.StatusCode.FAILED_PRECONDITION,
                    "not yet",
                ),
                (
                    replay_pb2.StepResponse(arrive=replay_pb2.ArriveResponse()),
                    grpc.StatusCode.UNKNOWN,
                    "a step is answered by arrive",
                ),
            ):
                asking = asyncio.ensure_future(line.ask(advance(1)))
                await asked(reader, 1)
                writer.write(framed(response.SerializeToString()))
                with pytest.raises(aio.AioRpcError) as error:
                    await asking
                assert error.value.details() == text
                assert error.value.code() is code

    run(scene)


@pytest.mark.parametrize("how", ["hangs up", "is given up", "rambles", "says too much"])
def test_nobody_waits_for_who_is_gone(tmp_path: Path, how: str) -> None:
    """What is under way fails, and so does what is asked afterwards."""

    async def scene() -> None:
        async with daemon(tmp_path) as (line, reader, writer):
            asking = asyncio.ensure_future(line.ask(advance(1)))
            await asked(reader, 1)
            if how == "hangs up":
                writer.close()
            elif how == "is given up":
                line.close()
            elif how == "rambles":
                writer.write(framed(b"\xff\xff"))
            else:
                writer.write(answer(1) + answer(2))
                await asking
                asking = asyncio.ensure_future(line.ask(advance(1)))
            with pytest.raises(ConnectionError, match="hung up"):
                await asking
            with pytest.raises(ConnectionError, match="hung up"):
                await line.ask(advance(2))

    run(scene)
