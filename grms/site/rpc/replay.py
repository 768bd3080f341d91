"""The coordinator's requests to a site in a replay, over gRPC.

`proto/grms/v1/replay.proto` has the order of a replay. A step is answered when the site is at rest;
a moved clock need not be in the journal by then, as it will be moved again.
"""

import math
from collections.abc import AsyncIterator
from typing import Final

import grpc

from grms.daemon.rpc.requests import Context, refuse
from grms.site.rpc.replay_site import Replay
from grms.site.rpc.replay_workload import ReplayWorkload
from grms.v1 import replay_pb2, replay_pb2_grpc

BLOCK_ROWS: Final = 20_000
"""Rows in one block of a schedule."""


class ReplayService(replay_pb2_grpc.ReplayServiceServicer):
    """Implements `proto/grms/v1/replay.proto`."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

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
        replay = self._replay
        async for request in request_iterator:
            if math.isnan(request.to_s):
                await _invalid(context, "to_s is not a number")
            replay.advance(request.to_s)
            # After the last move nobody moves its clock any more.
            await (replay.rest() if request.to_s == math.inf else replay.reported())
            yield replay_pb2.AdvanceResponse(
                next_event_time_s=replay.next_event_time,
                next_report_time_s=replay.next_report_time(),
                waits=replay.waits,
            )

    async def Arrive(  # noqa: N802  # gRPC's name
        self, request_iterator: AsyncIterator[replay_pb2.ArriveRequest], context: Context
    ) -> AsyncIterator[replay_pb2.ArriveResponse]:
        """Lets jobs arrive, each decided before the next."""
        replay = self._replay
        async for request in request_iterator:
            first, rows = request.first_row, request.rows
            problem = replay.problem_of(first, rows)
            if problem:
                await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, problem)
            yield replay_pb2.ArriveResponse(
                executed_on=await replay.arrive_all(first, rows),
                next_event_time_s=replay.next_event_time,
                next_report_time_s=replay.next_report_time(),
                waits=replay.waits,
            )

    async def HoldRound(  # noqa: N802  # gRPC's name
        self, request: replay_pb2.HoldRoundRequest, context: Context
    ) -> replay_pb2.HoldRoundResponse:
        """Offers waiting jobs again."""
        replay = self._replay
        if not math.isfinite(request.at_s):
            await _invalid(context, f"at_s is {request.at_s}; it must be finite")
        if not replay.holds_rounds:
            reason = f"{replay.site} holds no rounds of offers"
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, reason)
        moved = await replay.hold_round(request.at_s)
        await replay.rest()
        return replay_pb2.HoldRoundResponse(
            moved=moved,
            next_event_time_s=replay.next_event_time,
            next_report_time_s=replay.next_report_time(),
            waits=replay.waits,
        )

    async def Step(  # noqa: N802  # gRPC's name
        self, request: replay_pb2.StepRequest, context: Context
    ) -> replay_pb2.StepResponse:
        """Moves the machine on by one step."""
        replay = self._replay
        if not math.isfinite(request.at_s):
            await _invalid(context, f"at_s is {request.at_s}; it must be finite")
        if (problem := problem_of_step(request)) is not None:
            await _invalid(context, problem)
        if not replay.steps:
            reason = "no workload has been loaded in which guests are sent home"
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, reason)
        sent_home = await replay.step(request.at_s, request.kind)
        return replay_pb2.StepResponse(
            next_event_time_s=replay.next_event_time, waits=replay.waits, sent_home=sent_home
        )

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


async def _invalid(context: Context, reason: str) -> None:
    await refuse(context, grpc.StatusCode.INVALID_ARGUMENT, reason)


def problem_of_step(request: replay_pb2.StepRequest) -> str | None:
    """Returns what is wrong with the kind of a step; `None` if it is known."""
    known = [value for value in replay_pb2.StepKind.values() if value]
    return None if request.kind in known else f"kind is {request.kind}; it must be one of {known}"
