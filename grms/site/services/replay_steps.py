"""The steps of a replay, each answered when the site is at rest.

That the clock was moved need not be in the journal by then, where it will be moved again.
"""

import math

import grpc

from grms.site.services.replay_site import Replay
from grms.v1 import replay_pb2


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
