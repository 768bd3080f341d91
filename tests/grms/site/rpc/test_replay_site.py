"""How many arrivals one step of a replay lets come."""

from grms.site.rpc.replay_site import Replay
from grms.site.rpc.replay_workload import ReplayWorkload
from tests.grms.site.rpc.test_replay import block


async def test_rows_after_one_that_went_away_come_before_it_can_have_ended() -> None:
    """They need no request of their own; the first that comes at its earliest end does."""

    class Away(Replay):
        """A site whose rows 1 and 2 go to a partner."""

        def __init__(self) -> None:
            self.workload = ReplayWorkload()
            self.workload.take(block())

        site = "home"

        async def arrive(self, row: int) -> str:
            """Says where a row goes."""
            return "away" if row in {1, 2} else "home"

        async def rest(self) -> None:
            """Is at rest."""

    site = Away()
    # Rows 1 and 2 come at 1 and may end at 6 and 4; row 3 comes at 2, row 4 at 50.
    assert await site.arrive_all(0, 5) == ["home", "away", "away", "home"]
    assert await site.arrive_all(4, 1) == ["home"]
