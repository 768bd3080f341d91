"""Replays a scenario through live daemons, in lock-step.

The daemons are processes of their own, with their own journals, and speak gRPC with each other; the
coordinator alone moves their common clock, by the procedure of paper 003: at one instant
completions, then queue starts, on all sites; then arrivals, each decided completely before the
next. It learns no loads or decisions, only where each job went and from which moment on a site may
have an end to report, so that most sites are left alone most of the time.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np
from grpc import aio

from grms.daemon.pacing import Backoff, BackoffSettings, is_absent
from grms.v1 import replay_pb2, replay_pb2_grpc
from lrms_sim.workload.groups import user_groups
from lrms_sim.workload.jobs import JobTable, concatenate
from lrms_sim.workload.schedule import MachineInfo, Schedule
from scenarios.live.agent_session import AgentSession
from scenarios.live.daemons import until_linked
from scenarios.live.sites import SiteProcess
from scenarios.util.errors import LiveError

ROWS_MAX: Final = 256
RECOVERIES_MAX: Final = 10
"""Restarts of a daemon before it is given up."""

RECOVERY_PAUSES: Final = BackoffSettings(first_s=0.1, most_s=5.0)
"""Pauses between these: the cause, such as a full disk, may pass."""

END_S: Final = 1.0
"""Time for a process to be gone after its connection has broken."""

_next_report = attrgetter("next_report")

CLOCK: Final = replay_pb2.STEP_KIND_CLOCK
DUE: Final = replay_pb2.STEP_KIND_DUE
ACCOUNT: Final = replay_pb2.STEP_KIND_ACCOUNT

PROGRESS_ROWS: Final = 200
"""Arrivals between two calls of a progress function."""

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class LockStepRun:
    """A replay through daemons.

    Attributes:
        schedule: in order of arrival, as a replay in one process has it.
        elapsed_s: real time from the first arrival to the last end.
        messages: messages of the coordinator that were answered.
        restarts: how often a daemon was started again.
    """

    schedule: Schedule
    elapsed_s: float
    messages: int
    restarts: int


class Coordinator:
    """Conducts the daemons of one scenario.

    Args:
        processes: the daemons, in site order; they serve.
        periods: of the sites' rounds of offers, seconds, infinity for none; none hold any if
            omitted.
        accounts: periods at which sites look at the accounts that they keep of themselves, seconds, infinity
            for none; where one does, guests are sent home. None does if omitted.
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
        periods: Sequence[float] = (),
        accounts: Sequence[float] = (),
    ) -> None:
        self.jobs, origin, rows = concatenate(tables)
        self._submitted_to = origin.astype(np.int16)
        self._log_job_id = np.array(
            [tables[site].job_id[row] for site, row in zip(origin, rows, strict=True)], np.int64
        )
        self._machines = tuple(machines)
        self._index = {machine.name: index for index, machine in enumerate(machines)}
        self._seats = [
            AgentSession(
                process,
                replay_id,
                self.jobs,
                np.flatnonzero(origin == index).tolist(),
                user_groups(tables[index]).tolist() if by_group else [],
            )
            for index, process in enumerate(processes)
        ]
        for session, period in zip(self._seats, periods, strict=False):
            session.period = period
        self._strict = min(accounts, default=math.inf) < math.inf
        for session, every in zip(self._seats, accounts, strict=False):
            session.steps, session.looks_every = self._strict, every
        self._holders = [session for session in self._seats if session.period < math.inf]
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
        return sum(session.arrived for session in self._seats)

    @property
    def places(self) -> list[list[str]]:
        """Where the jobs of each site went, in order of arrival, as the site has said."""
        return [session.places for session in self._seats]

    async def conduct(self, progress: Progress | None = None) -> LockStepRun:
        """Replays the whole workload.

        `progress` is called now and then with the number of jobs that have arrived.

        Raises:
            LiveError: a daemon has ended or does not do what it should.
        """
        try:
            for session in self._seats:
                await session.sit_down()
            await self._until_linked()
            return await self._replay_and_keep(progress)
        except aio.AioRpcError as error:
            raise LiveError(
                f"a daemon answers {error.code().name}: {error.details()}; see the logs in "
                f"{self._seats[0].process.folder}"
            ) from error
        finally:
            for session in self._seats:
                await session.get_up()

    async def _replay(self, progress: Progress | None) -> LockStepRun:
        begin = time.perf_counter()
        if self._strict:
            await self._arrivals_in_steps(progress)
        else:
            await self._arrivals(progress)
        await self._drain()
        elapsed = time.perf_counter() - begin
        schedule = await self._collect()
        return LockStepRun(schedule, elapsed, self._messages, self._restarts)

    async def _replay_and_keep(self, progress: Progress | None) -> LockStepRun:
        try:
            async with asyncio.TaskGroup() as group:
                keepers = [
                    group.create_task(self._keep(session), name=f"keep {session.process.name}")
                    for session in self._seats
                ]
                done = await self._replay(progress)
                for keeper in keepers:
                    keeper.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return done

    async def _keep(self, session: AgentSession) -> None:
        # A daemon may wait for what only one that is dead can say, and the coordinator for that
        # daemon; so nobody may be left dead until somebody speaks to it.
        while True:
            await session.process.ended()
            if not self._may_restart:
                raise LiveError(
                    f"the daemon of {session.process.name} has ended; see {session.process.log_path}"
                )
            async with self._recovering:
                if not session.process.pid:
                    await self._bring_back(
                        session, ConnectionError(f"{session.process.name} has ended")
                    )

    # --- the procedure -------------------------------------------------------------------------

    async def _arrivals(self, progress: Progress | None) -> None:
        submit_time, run_time, origin = self._submit_time, self._run_time, self._origin
        count, row = len(origin), 0
        next_progress = PROGRESS_ROWS
        names = [session.process.name for session in self._seats]
        others = [
            [session for session in self._seats if session is not home] for home in self._seats
        ]
        while row < count:
            home = origin[row]
            moment = submit_time[row]
            if self._holders:
                await self._hold_rounds(moment)
            # Ends that are due count in the decision, so they are reported first.
            until = min(map(_next_report, others[home]), default=math.inf)
            if until <= moment:
                await self._report_until(moment, others[home])
                until = min(map(_next_report, others[home]), default=math.inf)
            # The home site takes further arrivals by itself until another site has a part in it.
            for session in self._holders:
                until = min(until, session.next_round)
            last, most = row + 1, min(count, row + ROWS_MAX)
            while last < most and origin[last] == home and submit_time[last] < until:
                last += 1
            name = names[home]
            for place in await self._arrive(self._seats[home], last - row):
                if place != name:
                    there = self._seats[self._index[place]]
                    earliest = submit_time[row] + run_time[row]
                    there.next_report = min(there.next_report, earliest)
                row += 1
            if progress is not None and (row >= next_progress or row == count):
                next_progress = row + PROGRESS_ROWS
                progress(row)

    async def _report_until(self, moment: float, seats: Sequence[AgentSession]) -> None:
        due = [session for session in seats if session.next_report <= moment]
        if len(due) == 1:
            await self._advance(due[0], moment)
        elif due:
            await asyncio.gather(*(self._advance(session, moment) for session in due))

    async def _hold_rounds(self, until: float) -> None:
        # The rounds up to a moment, before its arrivals: each site at the multiples of its period, after
        # what ends at that instant. While nobody waits there is nothing to hold.
        holders = self._holders
        while True:
            now = min((session.next_round for session in holders), default=math.inf)
            waits = any(session.waits for session in holders)
            if now > until or (not waits and until == math.inf):
                return
            if waits:
                await self._report_until(now, self._seats)
            past = now if waits else until
            for session in holders:
                if session.next_round <= now:
                    if session.waits:
                        await self._hold_round(session, now)
                    session.next_round = session.period * (1.0 + math.floor(past / session.period))

    async def _hold_round(self, session: AgentSession, moment: float) -> None:
        answer = await self._asked(session, lambda: session.hold_round(moment))
        session.next_report, session.waits = answer.next_report_time_s, answer.waits
        for moved in answer.moved:
            if moved.executed_on not in self._index or moved.row >= len(session.places):
                raise LiveError(f"the daemon of {session.process.name} says it has moved {moved}")
            session.places[moved.row] = moved.executed_on
            there = self._seats[self._index[moved.executed_on]]
            earliest = moment + self._run_time[session.rows[moved.row]]
            there.next_report = min(there.next_report, earliest)

    async def _drain(self) -> None:
        if not self._strict:
            await self._hold_rounds(math.inf)
        await asyncio.gather(*(self._advance(session, math.inf) for session in self._seats))
        # An end that was reported meanwhile leaves nothing to be done, but it may have come late.
        await asyncio.gather(*(self._advance(session, math.inf) for session in self._seats))

    # --- where guests are sent home ------------------------------------------------------------

    async def _arrivals_in_steps(self, progress: Progress | None) -> None:
        # As the federation kernel does it: at one moment ends, accounts, rounds, then arrivals; and whatever has sent guests home is
        # followed by the passes of their homes.
        count = len(self._origin)
        if count:
            self._begin_accounts(self._submit_time[0])
        for row in range(count):
            moment = self._submit_time[row]
            await self._reach(moment)
            home = self._seats[self._origin[row]]
            for place in await self._arrive(home, 1):
                if place != home.process.name:
                    await self._step(self._seats[self._index[place]], moment, CLOCK)
            await self._make_passes(moment, home)
            if progress is not None and (row % PROGRESS_ROWS == 0 or row + 1 == count):
                progress(row + 1)
        await self._reach(math.inf)

    def _begin_accounts(self, first: float) -> None:
        for session in self._seats:
            if session.looks_every < math.inf:
                session.next_look = session.looks_every * math.ceil(first / session.looks_every)
            session.next_round = math.inf
            if session.period < math.inf:
                session.next_round = session.period * math.ceil(first / session.period)

    async def _reach(self, until: float) -> None:
        while True:
            due = min(min(session.next_look, session.next_round) for session in self._seats)
            if until == math.inf and not any(session.waits for session in self._seats):
                due = math.inf
            now = min(due, *(session.next_event for session in self._seats))
            if now == math.inf or now > until:
                break
            await self._do_what_is_due(now)
            if due <= now:
                await self._look_and_hold_rounds(now)
        if until < math.inf:
            await self._do_what_is_due(until)

    async def _do_what_is_due(self, now: float) -> None:
        await self._set_clocks(now)
        sent_home = False
        for session in self._seats:
            if session.next_event <= now:
                sent_home |= await self._step(session, now, DUE)
        if sent_home:
            await self._make_passes(now)

    async def _look_and_hold_rounds(self, now: float) -> None:
        looked = [session for session in self._seats if session.next_look <= now]
        for session in looked:
            session.next_look += session.looks_every
            await self._step(session, now, ACCOUNT)
        if looked:
            await self._make_passes(now)
        for session in self._holders:
            if session.next_round > now:
                continue
            session.next_round = session.period * (1.0 + math.floor(now / session.period))
            if session.waits:
                await self._hold_round(session, now)
                await self._make_passes(now, session)

    async def _make_passes(self, now: float, first: AgentSession | None = None) -> None:
        # Of one site, and then of all that owe one, in order, again and again until none does.
        if first is not None:
            await self._step(first, now, DUE)
        await self._set_clocks(now)
        while any(session.next_event <= now for session in self._seats):
            for session in self._seats:
                if session.next_event <= now and await self._step(session, now, DUE):
                    await self._set_clocks(now)

    async def _set_clocks(self, now: float) -> None:
        await asyncio.gather(*(self._step(session, now, CLOCK) for session in self._seats))

    async def _step(self, session: AgentSession, now: float, kind: replay_pb2.StepKind) -> bool:
        answer = await self._asked(session, lambda: session.step(now, kind))
        session.next_event, session.waits = answer.next_event_time_s, answer.waits
        sent_home: bool = answer.sent_home
        return sent_home

    async def _advance(self, session: AgentSession, moment: float) -> None:
        answer = await self._asked(session, lambda: session.advance(moment))
        session.next_report, session.waits = answer.next_report_time_s, answer.waits

    async def _arrive(self, session: AgentSession, rows: int) -> Sequence[str]:
        answer = await self._asked(session, lambda: session.arrive(rows))
        session.next_report, session.waits = answer.next_report_time_s, answer.waits
        places: Sequence[str] = answer.executed_on
        if not 1 <= len(places) <= rows or not self._index.keys() >= set(places):
            raise LiveError(
                f"the daemon of {session.process.name} says jobs went to {list(places)}"
            )
        session.arrived += len(places)
        session.places += places
        return places

    async def _asked(self, session: AgentSession, ask: Callable[[], Awaitable[Any]]) -> Any:
        self._messages += 1
        while True:
            sitting = session.sittings
            try:
                if session.advances is None:
                    # It is being brought back, on behalf of somebody else.
                    raise ConnectionError(f"{session.process.name} is not there")  # noqa: TRY301  # as below
                return await ask()
            except (aio.AioRpcError, asyncio.InvalidStateError, ConnectionError) as error:
                await self._recover(session, sitting, error)
            except asyncio.CancelledError as error:
                # So a stream ends as well when its channel is closed here.
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                await self._recover(session, sitting, ConnectionError(str(error)))

    # --- daemons come and go -------------------------------------------------------------------

    async def _recover(self, session: AgentSession, sitting: int, error: Exception) -> None:
        if isinstance(error, aio.AioRpcError) and not is_absent(error):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(session.process.ended(), END_S)
            if session.process.pid:
                raise LiveError(
                    f"the daemon of {session.process.name} answers {error.code().name}: "
                    f"{error.details()}"
                ) from error
        if not self._may_restart:
            raise LiveError(
                f"the daemon of {session.process.name} has ended; see {session.process.log_path}"
            ) from error
        async with self._recovering:
            if session.sittings == sitting:
                await self._bring_back(session, error)

    async def _bring_back(self, session: AgentSession, error: Exception) -> None:
        self._backoff.reset()
        await session.get_up()
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
            f"the daemon of {session.process.name} does not come back: {error}; see "
            f"{session.process.log_path}"
        ) from error

    async def _restart(self, session: AgentSession) -> None:
        await session.get_up()
        await session.process.kill()
        await session.process.start()
        self._restarts += 1
        await session.sit_down()

    async def _until_linked(self) -> None:
        await asyncio.gather(*(until_linked(session.process) for session in self._seats))

    # --- the result ----------------------------------------------------------------------------

    async def _collect(self) -> Schedule:
        count = len(self.jobs)
        start, end = np.full(count, np.nan), np.full(count, np.nan)
        executed_on = np.full(count, -1, np.int16)
        delegated: dict[tuple[str, str, int], int] = {}
        guests: dict[tuple[str, str, int], tuple[float, float]] = {}
        for session in self._seats:
            name = session.process.name
            assert session.channel is not None
            stub: Any = replay_pb2_grpc.ReplayServiceStub(session.channel)
            async for block in stub.Finish(replay_pb2.FinishRequest()):
                for own in block.own:
                    row = session.rows[own.row]
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
