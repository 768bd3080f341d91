"""What the coordinator has of one daemon: the workload of its users, and the calls by which it is led."""

import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from grpc import aio

from grms.v1 import replay_pb2, replay_pb2_grpc
from lrms_sim.workload.jobs import JobTable
from scenarios.live.sites import SiteProcess

BLOCK_ROWS: Final = 20_000


@dataclass(slots=True)
class AgentSession:
    """A daemon, as the coordinator knows it.

    Attributes:
        rows: which of them are of this site's users.
        groups: of the users of these; empty if nobody looks at them.
        sittings: how often its workload was handed over.
        next_report: from then on it may have an end to report, seconds.
        channel: to it; None while it is away.
        advances: the open call that moves its clock; None while it is away.
        arrivals: the open call by which jobs arrive; None while it is away.
        period: of its rounds of offers, seconds; infinity for none.
        next_round: when it holds the next, seconds; minus infinity before the first arrival.
        waits: whether a job may wait there.
        steps: guests are sent home in this replay.
        next_event: when its machine next does something; of a replay with `steps`, as the next two.
        next_look: when it looks at the account that it keeps of itself, seconds; infinity if it keeps none.
        looks_every: period of these looks, seconds.
    """

    process: SiteProcess
    replay_id: str
    jobs: JobTable
    rows: list[int]
    groups: list[int]
    arrived: int = 0
    sittings: int = 0
    next_report: float = math.inf
    channel: aio.Channel | None = None
    advances: Any = None
    arrivals: Any = None
    places: list[str] = field(default_factory=list)
    period: float = math.inf
    next_round: float = -math.inf
    waits: bool = False
    steps: bool = False
    next_event: float = math.inf
    next_look: float = math.inf
    looks_every: float = math.inf

    async def sit_down(self) -> None:
        """Connects with the daemon and hands it its workload.

        Raises:
            grpc.aio.AioRpcError: it does not take the workload.
        """
        self.channel = aio.insecure_channel(
            self.process.coordinator_address,
            options=[
                ("grpc.max_receive_message_length", 64 << 20),
                ("grpc.use_local_subchannel_pool", 1),
            ],
        )
        stub: Any = replay_pb2_grpc.ReplayServiceStub(self.channel)
        await stub.Load(self._blocks())
        self.advances = stub.Advance()
        self.arrivals = stub.Arrive()
        self.sittings += 1

    async def _blocks(self) -> AsyncIterator[replay_pb2.LoadRequest]:
        jobs, rows = self.jobs, np.array(self.rows, np.int64)
        for begin in range(0, max(1, len(rows)), BLOCK_ROWS):
            part = rows[begin : begin + BLOCK_ROWS]
            yield replay_pb2.LoadRequest(
                replay_id=self.replay_id,
                jobs_total=len(rows),
                submit_time_s=jobs.submit_time[part].tolist(),
                processors=jobs.processors[part].tolist(),
                requested_time_s=jobs.requested_time[part].tolist(),
                run_time_s=jobs.run_time[part].tolist(),
                user_group=self.groups[begin : begin + BLOCK_ROWS],
                place=(part + 1).tolist() if self.steps else [],
            )

    async def get_up(self) -> None:
        """Ends the calls and the connection."""
        for call in (self.advances, self.arrivals):
            if call is not None:
                call.cancel()
        self.advances = self.arrivals = None
        if self.channel is not None:
            await self.channel.close(None)
            self.channel = None

    async def advance(self, moment: float) -> Any:
        """Moves the daemon's clock; returns its answer."""
        await self.advances.write(replay_pb2.AdvanceRequest(to_s=moment))
        return await self._read(self.advances)

    async def arrive(self, rows: int) -> Any:
        """Lets at most so many jobs arrive; returns the daemon's answer."""
        await self.arrivals.write(replay_pb2.ArriveRequest(first_row=self.arrived, rows=rows))
        return await self._read(self.arrivals)

    async def hold_round(self, moment: float) -> Any:
        """Has the daemon offer its waiting jobs again; returns its answer."""
        assert self.channel is not None
        stub: Any = replay_pb2_grpc.ReplayServiceStub(self.channel)
        return await stub.HoldRound(replay_pb2.HoldRoundRequest(at_s=moment))

    async def step(self, moment: float, kind: replay_pb2.StepKind) -> Any:
        """Moves the daemon's machine on by a step; returns its answer."""
        assert self.channel is not None
        stub: Any = replay_pb2_grpc.ReplayServiceStub(self.channel)
        return await stub.Step(replay_pb2.StepRequest(at_s=moment, kind=kind))

    async def _read(self, call: Any) -> Any:
        answer = await call.read()
        if answer is aio.EOF:
            raise ConnectionError(f"{self.process.name} has hung up")
        return answer
