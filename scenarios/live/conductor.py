"""Replays a scenario through live daemons, in step.

The daemons are processes of their own, with journals of their own, and speak gRPC with each other;
the conductor alone moves their common clock. What it does is the procedure of paper 003: at one
instant completions, then queue starts, on all sites; then arrivals, each decided completely before
the next. It is not told loads or decisions, only where each job went and from which moment on a
site may have an end to report, which is what lets most sites be left alone most of the time.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
import numpy as np
from grpc import aio

from grms.kit.backoff import Backoff, BackoffSettings
from grms.kit.ports import free_ports
from grms.v1 import operator_pb2, operator_pb2_grpc, replay_pb2, replay_pb2_grpc
from lrms_sim.groups import user_groups
from lrms_sim.jobs import JobTable, concatenate
from lrms_sim.schedule import MachineInfo, Schedule
from scenarios.errors import LiveError
from scenarios.live.sites import (
    LiveSettings,
    SiteProcess,
    site_documents,
    stop_all,
)
from scenarios.spec.spec import ScenarioSpec

BLOCK_ROWS: Final = 20_000
"""Rows of a workload in one message."""

ROWS_MAX: Final = 256
"""Arrivals in one message."""

LINK_TIMEOUT_S: Final = 60.0
"""So long daemons have to find each other."""

RECOVERIES_MAX: Final = 10
"""So often a daemon that has ended is brought back before it is given up."""

RECOVERY_PAUSES: Final = BackoffSettings(first_s=0.1, most_s=5.0)
"""Pauses between these: what lets it end, such as a full disk, may pass."""

END_S: Final = 1.0
"""So long after its connection has broken a process may take to be gone."""

PROGRESS_ROWS: Final = 200
"""Arrivals between two calls of a progress function."""

GONE: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
"""What calls end with when a daemon has."""

BROKEN: Final = "Internal error from Core"
"""What gRPC says for INTERNAL where a connection broke before the call had begun; no daemon says it."""

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Conducted:
    """A replay through daemons.

    Attributes:
        schedule: in order of arrival, as a replay in one process has it.
        elapsed_s: real time from the first arrival to the last end.
        messages: messages of the conductor that were answered.
        restarts: how often a daemon was started again.
    """

    schedule: Schedule
    elapsed_s: float
    messages: int
    restarts: int


@dataclass(slots=True)
class _Seat:
    # What the conductor has of one site.
    process: SiteProcess
    rows: list[int]
    groups: list[int]
    arrived: int = 0
    sittings: int = 0
    next_report: float = math.inf
    channel: aio.Channel | None = None
    advances: Any = None
    arrivals: Any = None
    places: list[str] = field(default_factory=list)


class Conductor:
    """Conducts the daemons of one scenario.

    Args:
        processes: the daemons, in site order; they serve.
        tables: workload of each site's users.
        machines: the sites' machines.
        replay_id: names the replay.
        may_restart: whether a daemon that has ended is started again.
        by_group: whether some site orders its queue by the groups of users.
    """

    def __init__(
        self,
        processes: Sequence[SiteProcess],
        tables: Sequence[JobTable],
        machines: Sequence[MachineInfo],
        *,
        replay_id: str,
        may_restart: bool = False,
        by_group: bool = False,
    ) -> None:
        self.jobs, origin, rows = concatenate(tables)
        self._submitted_to = origin.astype(np.int16)
        self._log_job_id = np.array(
            [tables[site].job_id[row] for site, row in zip(origin, rows, strict=True)], np.int64
        )
        self._machines = tuple(machines)
        self._index = {machine.name: index for index, machine in enumerate(machines)}
        self._seats = [
            _Seat(
                process,
                np.flatnonzero(origin == index).tolist(),
                user_groups(tables[index]).tolist() if by_group else [],
            )
            for index, process in enumerate(processes)
        ]
        self._replay_id = replay_id
        self._may_restart = may_restart
        self._messages = 0
        self._restarts = 0
        self._recovering = asyncio.Lock()
        self._backoff = Backoff(RECOVERY_PAUSES, np.random.default_rng())
        # Plain lists: element by element they are several times faster than arrays.
        self._submit_time: list[float] = self.jobs.submit_time.tolist()
        self._run_time: list[float] = self.jobs.run_time.tolist()
        self._origin: list[int] = origin.tolist()

    @property
    def arrived(self) -> int:
        """How many jobs have arrived and been decided, at all sites."""
        return sum(seat.arrived for seat in self._seats)

    @property
    def places(self) -> list[list[str]]:
        """Where the jobs of each site went, in order of arrival, as the site has said."""
        return [seat.places for seat in self._seats]

    async def conduct(self, progress: Progress | None = None) -> Conducted:
        """Replays the whole workload.

        Args:
            progress: called now and then with the number of jobs that have arrived.

        Raises:
            LiveError: a daemon has ended or does not do what it should.
        """
        try:
            for seat in self._seats:
                await self._sit_down(seat)
            await self._until_linked()
            return await self._replay_and_keep(progress)
        except aio.AioRpcError as error:
            raise LiveError(
                f"a daemon answers {error.code().name}: {error.details()}; see the logs in "
                f"{self._seats[0].process.folder}"
            ) from error
        finally:
            for seat in self._seats:
                await self._get_up(seat)

    async def _replay(self, progress: Progress | None) -> Conducted:
        begin = time.perf_counter()
        await self._arrivals(progress)
        await self._drain()
        elapsed = time.perf_counter() - begin
        schedule = await self._collect()
        return Conducted(schedule, elapsed, self._messages, self._restarts)

    async def _replay_and_keep(self, progress: Progress | None) -> Conducted:
        try:
            async with asyncio.TaskGroup() as group:
                keepers = [
                    group.create_task(self._keep(seat), name=f"keep {seat.process.name}")
                    for seat in self._seats
                ]
                done = await self._replay(progress)
                for keeper in keepers:
                    keeper.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return done

    async def _keep(self, seat: _Seat) -> None:
        # A daemon may wait for what only one that is dead can say, and the conductor for that
        # daemon; so nobody may be left dead until somebody speaks to it.
        while True:
            await seat.process.ended()
            if not self._may_restart:
                raise LiveError(
                    f"the daemon of {seat.process.name} has ended; see {seat.process.log_path}"
                )
            async with self._recovering:
                if not seat.process.pid:
                    await self._bring_back(seat, ConnectionError(f"{seat.process.name} has ended"))

    # --- the procedure -------------------------------------------------------------------------

    async def _arrivals(self, progress: Progress | None) -> None:
        submit_time, run_time, origin = self._submit_time, self._run_time, self._origin
        count, row = len(origin), 0
        next_progress = PROGRESS_ROWS
        while row < count:
            home = self._seats[origin[row]]
            moment = submit_time[row]
            # Ends that are due count in the decision, so they are reported first.
            due = [seat for seat in self._seats if seat is not home and seat.next_report <= moment]
            if len(due) == 1:
                await self._advance(due[0], moment)
            elif due:
                await asyncio.gather(*(self._advance(seat, moment) for seat in due))
            # The home site takes further arrivals by itself until another site has a part in it.
            until = min((s.next_report for s in self._seats if s is not home), default=math.inf)
            last = row + 1
            while (
                last < count
                and last - row < ROWS_MAX
                and self._seats[origin[last]] is home
                and submit_time[last] < until
            ):
                last += 1
            for place in await self._arrive(home, last - row):
                if place != home.process.name:
                    there = self._seats[self._index[place]]
                    earliest = submit_time[row] + run_time[row]
                    there.next_report = min(there.next_report, earliest)
                row += 1
            if progress is not None and (row >= next_progress or row == count):
                next_progress = row + PROGRESS_ROWS
                progress(row)

    async def _drain(self) -> None:
        await asyncio.gather(*(self._advance(seat, math.inf) for seat in self._seats))
        # An end that was reported meanwhile leaves nothing to be done, but it may have come late.
        await asyncio.gather(*(self._advance(seat, math.inf) for seat in self._seats))

    async def _advance(self, seat: _Seat, moment: float) -> None:
        async def ask() -> replay_pb2.AdvanceResponse:
            await seat.advances.write(replay_pb2.AdvanceRequest(to_s=moment))
            answer: replay_pb2.AdvanceResponse = _answer(await seat.advances.read(), seat)
            return answer

        answer = await self._asked(seat, ask)
        seat.next_report = answer.next_report_time_s

    async def _arrive(self, seat: _Seat, rows: int) -> Sequence[str]:
        async def ask() -> replay_pb2.ArriveResponse:
            await seat.arrivals.write(replay_pb2.ArriveRequest(first_row=seat.arrived, rows=rows))
            answer: replay_pb2.ArriveResponse = _answer(await seat.arrivals.read(), seat)
            return answer

        answer = await self._asked(seat, ask)
        seat.next_report = answer.next_report_time_s
        places: list[str] = list(answer.executed_on)
        if not 1 <= len(places) <= rows or not self._index.keys() >= set(places):
            raise LiveError(f"the daemon of {seat.process.name} says jobs went to {places}")
        seat.arrived += len(places)
        seat.places += places
        return places

    async def _asked(self, seat: _Seat, ask: Callable[[], Awaitable[Any]]) -> Any:
        self._messages += 1
        while True:
            sitting = seat.sittings
            try:
                if seat.advances is None:
                    # It is being brought back, on behalf of somebody else.
                    raise ConnectionError(f"{seat.process.name} is not there")  # noqa: TRY301  # as below
                return await ask()
            except (aio.AioRpcError, asyncio.InvalidStateError, ConnectionError) as error:
                await self._recover(seat, sitting, error)
            except asyncio.CancelledError as error:
                # So a stream ends as well when its channel is closed here.
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                await self._recover(seat, sitting, ConnectionError(str(error)))

    # --- daemons come and go -------------------------------------------------------------------

    async def _recover(self, seat: _Seat, sitting: int, error: Exception) -> None:
        if isinstance(error, aio.AioRpcError) and not _gone(error):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(seat.process.ended(), END_S)
            if seat.process.pid:
                raise LiveError(
                    f"the daemon of {seat.process.name} answers {error.code().name}: "
                    f"{error.details()}"
                ) from error
        if not self._may_restart:
            raise LiveError(
                f"the daemon of {seat.process.name} has ended; see {seat.process.log_path}"
            ) from error
        async with self._recovering:
            if seat.sittings == sitting:
                await self._bring_back(seat, error)

    async def _bring_back(self, seat: _Seat, error: Exception) -> None:
        self._backoff.reset()
        await self._get_up(seat)
        for _ in range(RECOVERIES_MAX):
            # It may end again before it is where it was, and others may end meanwhile.
            try:
                for each in self._seats:
                    if each.advances is None or not each.process.pid:
                        await self._restart(each)
                await self._until_linked()
            except (aio.AioRpcError, LiveError, TimeoutError) as again:
                error = again
                await asyncio.sleep(self._backoff.next_s())
            else:
                return
        raise LiveError(
            f"the daemon of {seat.process.name} does not come back: {error}; see "
            f"{seat.process.log_path}"
        ) from error

    async def _restart(self, seat: _Seat) -> None:
        await self._get_up(seat)
        await seat.process.kill()
        await seat.process.start()
        self._restarts += 1
        await self._sit_down(seat)

    async def _sit_down(self, seat: _Seat) -> None:
        channel = aio.insecure_channel(
            seat.process.conductor_address,
            options=[
                ("grpc.max_receive_message_length", 64 << 20),
                ("grpc.use_local_subchannel_pool", 1),
            ],
        )
        seat.channel = channel
        stub: Any = replay_pb2_grpc.ReplayServiceStub(channel)
        await stub.Load(self._blocks(seat))
        seat.advances = stub.Advance()
        seat.arrivals = stub.Arrive()
        seat.sittings += 1

    async def _blocks(self, seat: _Seat) -> AsyncIterator[replay_pb2.LoadRequest]:
        jobs, rows = self.jobs, np.array(seat.rows, np.int64)
        for begin in range(0, max(1, len(rows)), BLOCK_ROWS):
            part = rows[begin : begin + BLOCK_ROWS]
            yield replay_pb2.LoadRequest(
                replay_id=self._replay_id,
                jobs_total=len(rows),
                submit_time_s=jobs.submit_time[part].tolist(),
                processors=jobs.processors[part].tolist(),
                requested_time_s=jobs.requested_time[part].tolist(),
                run_time_s=jobs.run_time[part].tolist(),
                user_group=seat.groups[begin : begin + BLOCK_ROWS],
            )

    async def _get_up(self, seat: _Seat) -> None:
        for call in (seat.advances, seat.arrivals):
            if call is not None:
                call.cancel()
        seat.advances = seat.arrivals = None
        if seat.channel is not None:
            await seat.channel.close(None)
            seat.channel = None

    async def _until_linked(self) -> None:
        """Returns when every daemon can reach every partner."""
        await asyncio.gather(*(until_linked(seat.process) for seat in self._seats))

    # --- the result ----------------------------------------------------------------------------

    async def _collect(self) -> Schedule:
        count = len(self.jobs)
        start, end = np.full(count, np.nan), np.full(count, np.nan)
        executed_on = np.full(count, -1, np.int16)
        delegated: dict[tuple[str, str, int], int] = {}
        guests: dict[tuple[str, str, int], tuple[float, float]] = {}
        for seat in self._seats:
            name = seat.process.name
            assert seat.channel is not None
            stub: Any = replay_pb2_grpc.ReplayServiceStub(seat.channel)
            async for block in stub.Finish(replay_pb2.FinishRequest()):
                for own in block.own:
                    row = seat.rows[own.row]
                    executed_on[row] = self._index[own.executed_on]
                    if own.executed_on == name:
                        start[row], end[row] = own.start_time_s, own.end_time_s
                    else:
                        delegated[own.executed_on, name, own.offer_number] = row
                for guest in block.guests:
                    key = (name, guest.home, guest.offer_number)
                    guests[key] = (guest.start_time_s, guest.end_time_s)
        if delegated.keys() != guests.keys():
            lost, surplus = delegated.keys() - guests.keys(), guests.keys() - delegated.keys()
            raise LiveError(
                f"{len(lost)} delegated jobs did not run where they went, {len(surplus)} ran "
                "without having been delegated"
            )
        for key, row in delegated.items():
            start[row], end[row] = guests[key]
        return Schedule(
            jobs=self.jobs,
            start_time=start,
            end_time=end,
            machines=self._machines,
            submitted_to=self._submitted_to,
            executed_on=executed_on,
            log_job_id=self._log_job_id,
        )


def _gone(error: aio.AioRpcError) -> bool:
    broken = error.code() is grpc.StatusCode.INTERNAL and (error.details() or "").startswith(BROKEN)
    return broken or error.code() in GONE


def _answer(answer: Any, seat: _Seat) -> Any:
    if answer is aio.EOF:
        raise ConnectionError(f"{seat.process.name} has hung up")
    return answer


async def until_linked(process: SiteProcess) -> None:
    """Returns when a daemon can reach every partner of its.

    Raises:
        LiveError: it has ended, or cannot reach them in time.
    """
    deadline = time.monotonic() + LINK_TIMEOUT_S
    async with aio.insecure_channel(process.users_address) as channel:
        stub: Any = operator_pb2_grpc.OperatorServiceStub(channel)
        while True:
            try:
                answer = await stub.Partners(operator_pb2.PartnersRequest(), timeout=10)
            except aio.AioRpcError:
                answer = None
            if answer is not None and all(partner.reachable for partner in answer.partners):
                return
            if not process.pid:
                raise LiveError(f"the daemon of {process.name} has ended; see {process.log_path}")
            if time.monotonic() > deadline:
                raise LiveError(
                    f"the daemon of {process.name} does not reach its partners after "
                    f"{LINK_TIMEOUT_S:g} s; see {process.log_path}"
                )
            await asyncio.sleep(0.05)


@asynccontextmanager
async def daemons(
    spec: ScenarioSpec,
    settings: LiveSettings,
    amend: Callable[[dict[str, dict[str, Any]]], Awaitable[None]] | None = None,
) -> AsyncIterator[list[SiteProcess]]:
    """Yields the serving daemons of a scenario, and ends them whatever happens.

    Args:
        spec: the scenario.
        settings: how they run; the folders exist.
        amend: changes their configurations, by site, before they are written.

    Raises:
        LiveError: a daemon does not serve.
    """
    documents = site_documents(spec, settings, free_ports(len(spec.sites)))
    if amend is not None:
        await amend(documents)
    processes = [SiteProcess(site.name, settings.folder, settings.sockets) for site in spec.sites]
    try:
        for process in processes:
            process.configure(documents[process.name])
        await asyncio.gather(*(process.start() for process in processes))
        yield processes
    finally:
        # The end goes on even where it is cancelled once more: nothing is to be left behind.
        await asyncio.shield(asyncio.ensure_future(stop_all(processes)))
