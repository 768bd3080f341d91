"""Steps asked at their socket are those of the calls, with the same refusals."""

import asyncio
import math
from pathlib import Path

import grpc

from grms.site.services.replay_site import Replay
from grms.site.services.replay_steps import LINES_MAX, STEP_BYTES_MAX, Steps
from grms.site.services.replay_workload import ReplayWorkload
from grms.site.sockets.frames import Frames, framed
from grms.v1 import replay_pb2
from lrms_sim.machine import simulate
from tests.grms.site.services.test_replay import JOBS, block, conducted
from tests.waiting import run


def arrive(first_row: int, rows: int) -> replay_pb2.StepRequest:
    """Returns a step in which rows arrive."""
    request = replay_pb2.ArriveRequest(first_row=first_row, rows=rows)
    return replay_pb2.StepRequest(arrive=request)


def advance(moment: float) -> replay_pb2.StepRequest:
    """Returns a step to a moment."""
    return replay_pb2.StepRequest(advance=replay_pb2.AdvanceRequest(to_s=moment))


def hold(moment: float) -> replay_pb2.StepRequest:
    """Returns a round of offers."""
    return replay_pb2.StepRequest(hold_round=replay_pb2.HoldRoundRequest(at_s=moment))


class Asker:
    """The conductor's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._frames = Frames(1 << 20)

    @classmethod
    async def at(cls, users_address: str) -> "Asker":
        """Connects to the socket of a daemon."""
        path = users_address.removeprefix("unix:") + ".steps"
        assert Path(path).stat().st_mode & 0o777 == 0o600
        return cls(*await asyncio.open_unix_connection(path))

    async def ask(self, *steps: replay_pb2.StepRequest | bytes) -> list[replay_pb2.StepResponse]:
        """Writes steps all at once; returns the answers."""
        for step in steps:
            content = step if isinstance(step, bytes) else step.SerializeToString()
            self.writer.write(framed(content))
        found: list[bytes] = []
        while len(found) < len(steps):
            data = await self._reader.read(1 << 16)
            if not data:
                raise ConnectionError
            found += self._frames.feed(data)
        return [replay_pb2.StepResponse.FromString(each) for each in found]

    async def hung_up(self) -> bool:
        """Returns whether the daemon has ended the connection."""
        try:
            return await self._reader.read(1) == b""
        except ConnectionError:
            return True


def test_steps_at_the_socket_make_the_schedule_of_the_simulator(tmp_path: Path) -> None:
    """One that is written before the answer to the one before waits for its turn."""

    async def scene() -> None:
        async with conducted(tmp_path) as (site, stub):
            await stub.Load(iter([block()]))
            asker = await Asker.at(site.users_address)
            first, second, last = await asker.ask(arrive(0, 2), arrive(2, 3), advance(math.inf))
            assert list(first.arrive.executed_on) == ["home"] * 2
            assert list(second.arrive.executed_on) == ["home"] * 3
            assert first.arrive.next_event_time_s == 10.0
            assert last.advance.next_report_time_s == math.inf
            own = [
                row
                async for answer in stub.Finish(replay_pb2.FinishRequest())
                for row in answer.own
            ]
            own.sort(key=lambda row: row.row)
            assert [row.start_time_s for row in own] == simulate(JOBS, 4).start_time.tolist()
            asker.writer.close()

    run(scene)


def test_a_step_that_cannot_be_made_is_refused_and_the_next_one_is_made(tmp_path: Path) -> None:
    """With the state of the call of the same name; bytes that are no step are refused as well."""

    async def scene() -> None:
        async with conducted(tmp_path, reoffer=900) as (site, stub):
            asker = await Asker.at(site.users_address)
            early, nothing, garbled, nowhere, never = await asker.ask(
                arrive(0, 1), b"", b"\xff", advance(math.nan), hold(math.inf)
            )
            status = grpc.StatusCode
            for answer, code, text in (
                (early, status.FAILED_PRECONDITION, "no workload has been loaded"),
                (nothing, status.UNIMPLEMENTED, "there is no such step"),
                (garbled, status.INVALID_ARGUMENT, "the bytes are no step"),
                (nowhere, status.INVALID_ARGUMENT, "to_s is not a number"),
                (never, status.INVALID_ARGUMENT, "at_s is inf; it must be finite"),
            ):
                assert (answer.refused.code, answer.refused.text) == (code.value[0], text)
            await stub.Load(iter([block()]))
            arrived, held, ended = await asker.ask(arrive(0, 2), hold(1.5), advance(10.0))
            assert arrived.arrive.waits
            assert (held.hold_round.next_event_time_s, held.hold_round.waits) == (10.0, True)
            assert not ended.advance.waits
            asker.writer.close()

    run(scene)


def test_connections_and_messages_have_limits(tmp_path: Path) -> None:
    """One connection too many is closed, and one over which a long message comes."""

    async def scene() -> None:
        async with conducted(tmp_path) as (site, stub):
            await stub.Load(iter([block()]))
            askers = [await Asker.at(site.users_address) for _ in range(LINES_MAX)]
            for asker in askers:
                await asker.ask(advance(0.0))
            surplus = await Asker.at(site.users_address)
            assert await surplus.hung_up()
            askers[0].writer.write(framed(bytes(STEP_BYTES_MAX + 1)))
            assert await askers[0].hung_up()
            assert (await askers[1].ask(arrive(0, 1)))[0].arrive.executed_on == ["home"]
            # What was closed makes room.
            another = await Asker.at(site.users_address)
            await another.ask(advance(0.0))
            for asker in (*askers, surplus, another):
                asker.writer.close()

    run(scene)


def test_the_file_of_the_socket_goes_with_the_daemon(tmp_path: Path) -> None:
    """And whoever is connected is told by the end of the connection."""

    async def scene() -> None:
        async with conducted(tmp_path) as (site, _):
            asker = await Asker.at(site.users_address)
            await asker.ask(advance(0.0))
            path = Path(site.users_address.removeprefix("unix:") + ".steps")
        assert not path.exists()
        assert await asker.hung_up()
        asker.writer.close()

    run(scene)


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
        places = (await steps.arrive(arrive(0, 5).arrive)).executed_on
        assert list(places) == ["home", "away", "away", "home"]
        rest = (await steps.arrive(arrive(4, 1).arrive)).executed_on
        assert list(rest) == ["home"]

    run(scene)
