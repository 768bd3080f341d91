"""The steps of a replay, each answered when the site is at rest, and the socket where they are asked.

That the clock was moved need not be in the journal by then, where it will be moved again.

A step takes so little that gRPC would cost several times as much: each message there takes a thread of
its own and several turns of the loop. So the conductor, which is on the same machine and the same user,
writes its steps to a socket (`proto/grms/v1/replay.proto`), one turn of the loop for each.
"""

import asyncio
import math
import socket
from collections import deque
from typing import Any, Final, cast

import grpc
import structlog
from google.protobuf.message import DecodeError

from grms.site.services.replay_site import Replay
from grms.site.sockets.frames import Frames, FrameTooLongError, framed
from grms.site.sockets.relay import Listener
from grms.v1 import replay_pb2

STEP_BYTES_MAX: Final = 1024
"""Longest request of a step; the longest that means anything has 30."""

LINES_MAX: Final = 4
"""Connections at one time. One is enough; the one before may be ending."""


class StepRefusedError(Exception):
    """A step that cannot be made; the text says why.

    Attributes:
        code: as the status of a call.
    """

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class Steps:
    """Makes the steps of one site.

    Args:
        replay: the site's part.
    """

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    async def make(self, request: replay_pb2.StepRequest) -> replay_pb2.StepResponse:
        """Makes the one step that a request asks for.

        Raises:
            StepRefusedError: it asks for none, or it cannot be made.
        """
        kind = request.WhichOneof("step")
        if kind == "arrive":
            return replay_pb2.StepResponse(arrive=await self.arrive(request.arrive))
        if kind == "advance":
            return replay_pb2.StepResponse(advance=await self.advance(request.advance))
        if kind == "hold_round":
            return replay_pb2.StepResponse(hold_round=await self.hold_round(request.hold_round))
        raise StepRefusedError(grpc.StatusCode.UNIMPLEMENTED, "there is no such step")

    async def advance(self, request: replay_pb2.AdvanceRequest) -> replay_pb2.AdvanceResponse:
        """Brings the site to a moment.

        Raises:
            StepRefusedError: it is none.
        """
        replay = self._replay
        if math.isnan(request.to_s):
            raise StepRefusedError(grpc.StatusCode.INVALID_ARGUMENT, "to_s is not a number")
        replay.advance(request.to_s)
        # After the last move nobody moves its clock any more.
        await (replay.rest() if request.to_s == math.inf else replay.reported())
        return replay_pb2.AdvanceResponse(
            next_event_time_s=replay.next_event_time,
            next_report_time_s=replay.next_report_time(),
            waits=replay.waits,
        )

    async def arrive(self, request: replay_pb2.ArriveRequest) -> replay_pb2.ArriveResponse:
        """Lets jobs arrive, each decided before the next.

        Raises:
            StepRefusedError: they cannot now.
        """
        replay, first, rows = self._replay, request.first_row, request.rows
        problem = replay.problem_of(first, rows)
        if problem:
            raise StepRefusedError(grpc.StatusCode.FAILED_PRECONDITION, problem)
        site, until = replay.site, math.inf
        places: list[str] = []
        for row in range(first, first + rows):
            if replay.submit_time(row) >= until:
                break
            place = await replay.arrive(row)
            places.append(place)
            if place != site:
                # Another site may have an end to report from then on, and not before.
                until = min(until, replay.first_end_of(row))
        await replay.rest()
        return replay_pb2.ArriveResponse(
            executed_on=places,
            next_event_time_s=replay.next_event_time,
            next_report_time_s=replay.next_report_time(),
            waits=replay.waits,
        )

    async def hold_round(
        self, request: replay_pb2.HoldRoundRequest
    ) -> replay_pb2.HoldRoundResponse:
        """Offers waiting jobs again.

        Raises:
            StepRefusedError: the site holds no rounds, or the moment is none.
        """
        replay = self._replay
        if not math.isfinite(request.at_s):
            text = f"at_s is {request.at_s}; it must be finite"
            raise StepRefusedError(grpc.StatusCode.INVALID_ARGUMENT, text)
        if not replay.holds_rounds:
            text = f"{replay.site} holds no rounds of offers"
            raise StepRefusedError(grpc.StatusCode.FAILED_PRECONDITION, text)
        moved = await replay.hold_round(request.at_s)
        await replay.rest()
        return replay_pb2.HoldRoundResponse(
            moved=moved,
            next_event_time_s=replay.next_event_time,
            next_report_time_s=replay.next_report_time(),
            waits=replay.waits,
        )


class StepSocket:
    """Answers steps at a socket until it is closed.

    Args:
        steps: of the site.
        listening: the socket, bound.
        log: where what nobody expects is told.
    """

    def __init__(
        self,
        steps: Steps,
        listening: socket.socket,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self.steps = steps
        self.log = log
        self.lines: set[_Line] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listener = Listener([listening], LINES_MAX, self._accepted, self._exhausted)

    def close(self) -> None:
        """Breaks off what is under way, and takes no more."""
        self._listener.close()
        for begun in self._tasks:
            begun.cancel()
        for line in list(self.lines):
            line.close()

    def _exhausted(self, why: str) -> None:
        self.log.warning("steps_exhausted", reason=why)

    def _accepted(self, connection: socket.socket) -> None:
        if len(self.lines) >= LINES_MAX:
            connection.close()
            return
        line = _Line(self)
        self.lines.add(line)
        loop = asyncio.get_running_loop()
        begun = loop.create_task(
            loop.connect_accepted_socket(lambda: line, connection), name="steps"
        )
        self._tasks.add(begun)
        begun.add_done_callback(self._tasks.discard)


class _Line(asyncio.Protocol):
    # One connection of a conductor: a step is made when the one before has its answer.

    def __init__(self, owner: StepSocket) -> None:
        self._owner = owner
        self._frames = Frames(STEP_BYTES_MAX)
        self._asked: deque[bytes] = deque()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._asked += self._frames.feed(data)
        except FrameTooLongError as error:
            self._owner.log.warning("steps_garbled", reason=str(error))
            self.close()
            return
        if self._task is None and self._asked:
            self._task = asyncio.get_running_loop().create_task(self._work(), name="step")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # either way it is over
        self._transport = None
        self._asked.clear()
        if self._task is not None:
            self._task.cancel()
        self._owner.lines.discard(self)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        if self._task is not None:
            self._task.cancel()
        self._owner.lines.discard(self)

    async def _work(self) -> None:
        try:
            while self._asked:
                answer = await self._answer(self._asked.popleft())
                if self._transport is not None:
                    self._transport.write(framed(answer.SerializeToString()))
        finally:
            self._task = None

    async def _answer(self, asked: bytes) -> replay_pb2.StepResponse:
        try:
            return await self._owner.steps.make(replay_pb2.StepRequest.FromString(asked))
        except StepRefusedError as error:
            code, text = error.code, str(error)
        except DecodeError:
            code, text = grpc.StatusCode.INVALID_ARGUMENT, "the bytes are no step"
        except Exception as error:
            self._owner.log.exception("unexpected_error", method="step")
            code, text = grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"
        refused = replay_pb2.StepRefused(code=code.value[0], text=text)
        return replay_pb2.StepResponse(refused=refused)
