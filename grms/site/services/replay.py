"""A replay under a conductor: the site's users' workload, arriving when the conductor says.

The order in which a replay happens is in `proto/grms/v1/replay.proto`. A response is given when the
site is at rest: what it says is in the journal, and what has ended was reported. Everything that
must outlive the daemon is in the journal as well: rows that have arrived are the home jobs there,
and the schedule is read from its records in the end.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import grpc

from grms.kit.refusals import Context, refuse
from grms.lrms.immediate import ReplayableLrms
from grms.site.engine.clock import VirtualClock
from grms.site.engine.engine import Engine
from grms.site.engine.journal import Journal
from grms.site.facts.commands import Command, PublishRound
from grms.site.facts.events import Event, LrmsAccepted, RoundDue, Submit
from grms.site.facts.jobs import GuestJob, HomeJob, Request
from grms.site.facts.lifecycle import JobState
from grms.site.facts.wire import executed_on
from grms.site.links.partner_links import PartnerLinks
from grms.site.services.replay_schedule import guest_rows, own_rows
from grms.v1 import replay_pb2, replay_pb2_grpc, request_pb2
from lrms_sim.groups import GROUPS

USER: Final = "replay"
"""Whose the jobs of a replay are."""

NOTE: Final = "replay"
"""Under which the journal keeps the replay's id."""

BLOCK_ROWS: Final = 20_000
"""Rows in one block of a schedule."""

ROWS_MAX: Final = 50_000_000
"""Most jobs of one workload."""

_UNDECIDED = (JobState.RECEIVED, JobState.OFFERING, JobState.RESOLVING, JobState.WITHDRAWING)


@dataclass(slots=True)
class _Workload:
    # Columns in order of arrival.
    replay_id: str = ""
    total: int = 0
    submit_time: list[float] = field(default_factory=list)
    processors: list[int] = field(default_factory=list)
    requested_time: list[float] = field(default_factory=list)
    run_time: list[float] = field(default_factory=list)
    user_group: list[int] = field(default_factory=list)


class Waiter:
    """Waits for conditions on the site's state, which are looked at after every event.

    Args:
        engine: whose events they are.
    """

    def __init__(self, engine: Engine) -> None:
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        engine.on_event(lambda _event, _commands: self.look())

    def look(self) -> None:
        """Wakes those whose condition holds."""
        if not self._waiting:
            return
        still = []
        for condition, future in self._waiting:
            if future.done():
                continue
            if condition():
                future.set_result(None)
            else:
                still.append((condition, future))
        self._waiting = still

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when a condition holds."""
        if condition():
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((condition, future))
        await future


class Replay:
    """The site's part of a replay.

    Args:
        engine: of the site.
        journal: of the site.
        lrms: the machine.
        clock: the common clock, as this site knows it.
        links: to the partners.
    """

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        lrms: ReplayableLrms,
        clock: VirtualClock,
        links: PartnerLinks,
    ) -> None:
        self._engine = engine
        self._journal = journal
        self._lrms = lrms
        self._clock = clock
        self._links = links
        self._waiter = Waiter(engine)
        for book in engine.state.partners.values():
            for guest in book.guests.values():
                lrms.follow(guest.lrms_key)
        engine.on_event(self._follow_guest)
        self._round: asyncio.Future[None] | None = None
        engine.on_round(self._round_over)
        self.workload: _Workload | None = None

    def _follow_guest(self, event: Event, _commands: list[Command]) -> None:
        # The ends of partners' jobs alone are reported to somebody.
        if isinstance(event, LrmsAccepted):
            job = self._engine.state.memory.at_lrms.get(event.lrms_key)
            if isinstance(job, GuestJob):
                self._lrms.follow(event.lrms_key)

    @property
    def rows_arrived(self) -> int:
        """How many rows of the workload have arrived."""
        return self._engine.state.memory.next_job - 1

    def advance(self, to: float) -> None:
        """Brings the site to a moment; one that is past changes nothing.

        Args:
            to: seconds.
        """
        if to == math.inf:
            # Event by event, so that the clock shows the last one in the end.
            while (moment := self._lrms.next_event_time) < math.inf:
                self._clock.advance(max(moment, self._clock.now()))
                self._lrms.finish(moment)
                self._engine.catch_up()
        else:
            self.set_clock(to)
            self._engine.catch_up()

    def set_clock(self, to: float) -> None:
        """Sets the clock to a moment; one that is past changes nothing.

        What is due by then happens when the next event comes that can lead to a decision: so the
        records of both are written together.

        Args:
            to: seconds, not infinite.
        """
        if to > self._clock.now():
            self._clock.advance(to)

    async def rest(self) -> None:
        """Returns when every end was reported and everything is in the journal."""
        await self._waiter.until(lambda: self._links.reports_open == 0)
        if self._engine.commit.pending:
            await self._engine.commit.settled()

    @property
    def now(self) -> float:
        """The common clock, as this site knows it, seconds."""
        return self._clock.now()

    @property
    def site(self) -> str:
        """Name of this site."""
        return self._engine.state.settings.name

    @property
    def processors(self) -> int:
        """Size of the machine."""
        return self._engine.state.settings.processors

    def problem_of(self, first_row: int, rows: int) -> str:
        """Returns why rows cannot arrive, nothing where they can."""
        if self.workload is None:
            return "no workload has been loaded"
        if first_row > self.rows_arrived:
            return f"row {self.rows_arrived} is next, not {first_row}"
        if first_row + rows > self.workload.total:
            return f"the workload has {self.workload.total} rows, not {first_row + rows}"
        return ""

    def next_report_time(self) -> float:
        """Returns before which moment no partner's job ends here, seconds."""
        return self._lrms.first_end()

    @property
    def next_event_time(self) -> float:
        """When the machine next does something by itself, seconds."""
        return self._lrms.next_event_time

    async def arrive(self, row: int) -> str:
        """Lets one job arrive, unless it has; returns where it went, once that is decided."""
        assert self.workload is not None
        engine, work = self._engine, self.workload
        if engine.commit.pending:
            # The batch system gets the row before once that is in the journal.
            await engine.commit.settled()
        if row == self.rows_arrived:
            self.set_clock(work.submit_time[row])
            program = request_pb2.JobRequest()
            program.simulated.run_time_s = work.run_time[row]
            if work.user_group:
                program.simulated.user_group = work.user_group[row]
            engine.tell(
                Submit,
                USER,
                str(row),
                "",
                Request(work.processors[row], work.requested_time[row]),
                program.SerializeToString(),
            )
        job = engine.state.memory.jobs.get(row + 1)
        if job is None:
            return ""
        if job.state in _UNDECIDED:
            await self._waiter.until(lambda: job.state not in _UNDECIDED)
        return executed_on(job, engine.state.settings.name)

    def schedule(self) -> tuple[list[replay_pb2.OwnRow], list[replay_pb2.GuestRow]]:
        """Returns what became of the workload, and which guests ran here, from the journal."""
        records = self._journal.records
        return own_rows(self.site, records()), guest_rows(records())

    @property
    def holds_rounds(self) -> bool:
        """Whether waiting jobs are offered again here."""
        return self._engine.state.settings.reoffer is not None

    @property
    def waits(self) -> bool:
        """Whether a job waits here, at a site that holds rounds."""
        return self.holds_rounds and self._lrms.load_now().waiting > 0

    async def hold_round(self, at: float) -> list[replay_pb2.MovedRow]:
        """Offers again what waits at a moment; returns what has left the queue, and where it is.

        A round that was cut off goes on with what still waits.

        Args:
            at: seconds; one that is past changes nothing.
        """
        engine, lrms = self._engine, self._lrms
        if engine.commit.pending:
            await engine.commit.settled()
        self.advance(at)
        waiting = [job for job in engine.state.memory.at_lrms.values() if isinstance(job, HomeJob)]
        # What leaves the queue makes room for others there only when all have had their turn.
        lrms.hold_passes()
        try:
            self._round = asyncio.get_running_loop().create_future()
            engine.tell(RoundDue)
            await self._round
            for job in waiting:
                await self._waiter.until(lambda job=job: job.state not in _UNDECIDED)  # type: ignore[misc]  # binds the loop's value
        finally:
            self._round = None
            lrms.make_pass()
        engine.catch_up()
        places = [(job.job - 1, executed_on(job, self.site)) for job in waiting]
        return [
            replay_pb2.MovedRow(row=row, executed_on=place)
            for row, place in places
            if place not in {"", self.site}
        ]

    def _round_over(self, _: PublishRound) -> None:
        if self._round is not None and not self._round.done():
            self._round.set_result(None)

    @property
    def is_over(self) -> bool:
        """Whether every job has arrived and ended."""
        engine = self._engine
        return (
            self.workload is not None
            and self.rows_arrived == self.workload.total
            and engine.state.memory.jobs_open == 0
            and not engine.state.memory.at_lrms
        )

    def begin(self, workload: _Workload) -> str:
        """Takes a workload; returns what is wrong with that, nothing where all is well."""
        noted = self._journal.note(NOTE)
        if noted not in {None, workload.replay_id}:
            return f"this journal belongs to the replay {noted!r}, not to {workload.replay_id!r}"
        if noted is None and self._journal.count:
            return "this journal has jobs of users already, and is not one of a replay"
        if noted is None:
            self._journal.set_note(NOTE, workload.replay_id)
        self.workload = workload
        return ""


class ReplayService(replay_pb2_grpc.ReplayServiceServicer):
    """See `proto/grms/v1/replay.proto`.

    Args:
        replay: the site's part.
    """

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    async def Load(  # noqa: N802  # gRPC's name
        self, request_iterator: AsyncIterator[replay_pb2.LoadRequest], context: Context
    ) -> replay_pb2.LoadResponse:
        """Takes the workload of the site's users."""
        workload = _Workload()
        async for block in request_iterator:
            if not workload.replay_id:
                workload.replay_id, workload.total = block.replay_id, block.jobs_total
            columns = (
                block.submit_time_s,
                block.processors,
                block.requested_time_s,
                block.run_time_s,
            )
            if len({len(column) for column in columns}) != 1:
                await _invalid(context, "the columns of a block have different lengths")
            workload.submit_time.extend(block.submit_time_s)
            workload.processors.extend(block.processors)
            workload.requested_time.extend(block.requested_time_s)
            workload.run_time.extend(block.run_time_s)
            workload.user_group.extend(block.user_group)
            if len(workload.submit_time) > min(workload.total, ROWS_MAX):
                await _invalid(context, f"more rows than jobs_total, {workload.total}")
        problem = _problem(workload, self._replay.processors)
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
            await replay.rest()
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
            problem = replay.problem_of(request.first_row, request.rows)
            if problem:
                await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, problem)
            places: list[str] = []
            for row in range(request.first_row, request.first_row + request.rows):
                places.append(await replay.arrive(row))
                if places[-1] != replay.site:
                    # From now on another site may have an end to report before the next row.
                    break
            await replay.rest()
            yield replay_pb2.ArriveResponse(
                executed_on=places,
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
            text = f"{replay.site} holds no rounds of offers"
            await refuse(context, grpc.StatusCode.FAILED_PRECONDITION, text)
        moved = await replay.hold_round(request.at_s)
        await replay.rest()
        return replay_pb2.HoldRoundResponse(
            moved=moved,
            next_event_time_s=replay.next_event_time,
            next_report_time_s=replay.next_report_time(),
            waits=replay.waits,
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


def _problem(workload: _Workload, processors: int) -> str:
    if not workload.replay_id:
        return "the first block has no replay_id"
    if len(workload.submit_time) != workload.total:
        return f"{len(workload.submit_time)} rows came; jobs_total is {workload.total}"
    if workload.user_group and len(workload.user_group) != workload.total:
        return f"{len(workload.user_group)} rows have a user_group; all or none must"
    for row, group in enumerate(workload.user_group):
        if group not in GROUPS:
            return f"row {row}: user_group is {group}; it must be from 1 to {GROUPS[-1]}"
    return _first_problem(workload, processors)


def _first_problem(workload: _Workload, processors: int) -> str:
    before = -math.inf
    columns: Sequence[Sequence[float]] = (
        workload.submit_time,
        workload.processors,
        workload.requested_time,
        workload.run_time,
    )
    for row, (submit, width, request, run) in enumerate(zip(*columns, strict=True)):
        if not (math.isfinite(submit) and submit >= before):
            return f"row {row}: submit_time_s is {submit}; rows are in order of arrival"
        if not 1 <= width <= processors:
            return f"row {row}: processors is {width}; this site has {processors}"
        if not (0 < run <= request < math.inf):
            return f"row {row}: run_time_s is {run}, requested_time_s {request}; 0 < run ≤ request"
        before = submit
    return ""
