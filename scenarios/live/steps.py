"""Asks a daemon for the steps of a replay, at its socket for these."""

import asyncio
from collections import deque
from typing import Final, cast

import grpc
from google.protobuf.message import DecodeError
from grpc import aio

from grms.site.sockets.frames import Frames, FrameTooLongError, framed
from grms.v1 import replay_pb2

ANSWER_BYTES_MAX: Final = 64 << 20
"""Longest answer. That to a round of offers names every job that has left the queue."""

_REFUSALS = {code.value[0]: code for code in grpc.StatusCode if code is not grpc.StatusCode.OK}


class StepLine(asyncio.Protocol):
    """A connection over which steps are asked for; answers come in the order of the questions."""

    def __init__(self) -> None:
        self._frames = Frames(ANSWER_BYTES_MAX)
        self._waiting: deque[asyncio.Future[replay_pb2.StepResponse]] = deque()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def to(cls, path: str) -> "StepLine":
        """Returns a connection to the socket at a path.

        Raises:
            OSError: nobody is there.
        """
        _, line = await asyncio.get_running_loop().create_unix_connection(cls, path)
        return line

    async def ask(self, step: replay_pb2.StepRequest) -> replay_pb2.StepResponse:
        """Asks for a step; returns what answers it.

        Raises:
            ConnectionError: the daemon has ended, or `close` was called.
            grpc.aio.AioRpcError: it makes no such step; the state and the text are those of the call.
        """
        if self._transport is None:
            raise ConnectionError("the daemon has hung up")
        answer = self._loop.create_future()
        self._waiting.append(answer)
        self._transport.write(framed(step.SerializeToString()))
        response: replay_pb2.StepResponse = await answer
        found = response.WhichOneof("answer")
        if found != step.WhichOneof("step"):
            code = _REFUSALS.get(response.refused.code, grpc.StatusCode.UNKNOWN)
            text = response.refused.text or f"a step is answered by {found or 'nothing'}"
            raise aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details=text)
        return response

    def close(self) -> None:
        """Ends the connection; what has no answer fails."""
        if self._transport is not None:
            self._transport.abort()
        self._hang_up()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes note of the connection."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Hands each answer to who waits for it."""
        try:
            for message in self._frames.feed(data):
                response = replay_pb2.StepResponse.FromString(message)
                answer = self._waiting.popleft()
                if not answer.done():
                    answer.set_result(response)
        except (FrameTooLongError, DecodeError, IndexError):
            # That is no daemon, or one that is out of its mind.
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # either way it is over
        """Fails what has no answer."""
        self._hang_up()

    def _hang_up(self) -> None:
        self._transport = None
        while self._waiting:
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(ConnectionError("the daemon has hung up"))
