"""How many arrivals one step of a replay lets come."""

import math

from grms.site.services.replay_site import Replay
from grms.site.services.replay_steps import Steps
from grms.site.services.replay_workload import ReplayWorkload
from grms.v1 import replay_pb2
from tests.grms.site.services.test_replay import block
from tests.waiting import run


def arrive(first_row: int, rows: int) -> replay_pb2.ArriveRequest:
    """Returns a step in which rows arrive."""
    return replay_pb2.ArriveRequest(first_row=first_row, rows=rows)


def test_rows_after_one_that_went_away_come_before_it_can_have_ended() -> None:
    """They need no request of their own; the first that comes at its earliest end does."""

    class Away(Replay):
        """A site whose rows 1 and 2 go to a partner."""

        def __init__(self) -> None:
            self.workload = ReplayWorkload()
            self.workload.take(block())

        site = "home"
        next_event_time, waits = math.inf, False

        def problem_of(self, first_row: int, rows: int) -> str:  # noqa: ARG002  # as there
            """Finds none."""
            return ""

        async def arrive(self, row: int) -> str:
            """Says where a row goes."""
            return "away" if row in {1, 2} else "home"

        async def rest(self) -> None:
            """Is at rest."""

        def next_report_time(self) -> float:
            """Has nothing to report."""
            return math.inf

    async def scene() -> None:
        steps = Steps(Away())
        # Rows 1 and 2 come at 1 and may end at 6 and 4; row 3 comes at 2, row 4 at 50.
        places = (await steps.arrive(arrive(0, 5))).executed_on
        assert list(places) == ["home", "away", "away", "home"]
        rest = (await steps.arrive(arrive(4, 1))).executed_on
        assert list(rest) == ["home"]

    run(scene)
