"""What a conductor asks of a site in a replay, over gRPC.

The order in which a replay happens is in `proto/grms/v1/replay.proto`; what a step does, in `replay_steps`.
"""

from collections.abc import AsyncIterator, Awaitable
from typing import Final, TypeVar

import grpc

from grms.kit.refusals import Context, refuse
from grms.site.services.replay_site import Replay
from grms.site.services.replay_steps import StepRefusedError, Steps
from grms.site.services.replay_workload import ReplayWorkload
from grms.v1 import replay_pb2, replay_pb2_grpc

BLOCK_ROWS: Final = 20_000
"""Rows in one block of a schedule."""

Answer = TypeVar("Answer")


class ReplayService(replay_pb2_grpc.ReplayServiceServicer):
    """See `proto/grms/v1/replay.proto`.

    Args:
        replay: the site's part.
        steps: of the site.
    """

    def __init__(self, replay: Replay, steps: Steps) -> None:
        self._replay = replay
        self._steps = steps

    async def Load(  # noqa: N802  # gRPC's name
        self, request_iterator: AsyncIterator[replay_pb2.LoadRequest], context: Context
    ) -> replay_pb2.LoadResponse:
        """Takes the workload of the site's users."""
        workload = ReplayWorkload()
        async for block in request_iterator:
            problem = workload.take(block)
            if problem:
                await _invalid(context, problem)
        problem = workload.problem(self._replay.processors)
        if problem:
            await _invalid(context, problem)
        problem = self._replay.begin(workload)
        if problem:
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, problem)
        return replay_pb2.LoadResponse(
            rows_arrived=self._replay.rows_arrived, now_s=self._replay.now
        )

    async def Advance(  # noqa: N802  # gRPC's name
        self, request_iterator: AsyncIterator[replay_pb2.AdvanceRequest], context: Context
    ) -> AsyncIterator[replay_pb2.AdvanceResponse]:
        """Brings the site to moments, one after the other."""
        async for request in request_iterator:
            yield await _made(context, self._steps.advance(request))

    async def Arrive(  # noqa: N802  # gRPC's name
        self, request_iterator: AsyncIterator[replay_pb2.ArriveRequest], context: Context
    ) -> AsyncIterator[replay_pb2.ArriveResponse]:
        """Lets jobs arrive, each decided before the next."""
        async for request in request_iterator:
            yield await _made(context, self._steps.arrive(request))

    async def HoldRound(  # noqa: N802  # gRPC's name
        self, request: replay_pb2.HoldRoundRequest, context: Context
    ) -> replay_pb2.HoldRoundResponse:
        """Offers waiting jobs again."""
        return await _made(context, self._steps.hold_round(request))

    async def Finish(  # noqa: N802  # gRPC's name
        self,
        request: replay_pb2.FinishRequest,  # noqa: ARG002  # gRPC hands it over
        context: Context,
    ) -> AsyncIterator[replay_pb2.FinishResponse]:
        """Sends what became of the workload and which guests ran here."""
        replay = self._replay
        await replay.rest()
        if not replay.is_over:
            reason = "jobs of the workload have not arrived or not ended yet"
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, reason)
        own, guests = replay.schedule()
        for begin in range(0, max(len(own), len(guests)), BLOCK_ROWS):
            end = begin + BLOCK_ROWS
            yield replay_pb2.FinishResponse(own=own[begin:end], guests=guests[begin:end])


async def _made(context: Context, step: Awaitable[Answer]) -> Answer:
    try:
        return await step
    except StepRefusedError as error:
        await refuse(context, error.code, str(error))


async def _invalid(context: Context, reason: str) -> None:
    await refuse(context, grpc.StatusCode.INVALID_ARGUMENT, reason)
