"""A site in lock-step: its users' workload arrives, and its clock advances, as the coordinator says.

A step is over when the site is at rest: what it says is in the journal, and what has ended was
reported. Everything that must outlive the daemon is in the journal as well: rows that have arrived
are the home jobs there, and the schedule is read from its records in the end.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Final

from grms.daemon.clock import VirtualClock
from grms.lrms import base
from grms.lrms.simulated.immediate import ReplayableLrms
from grms.site.model.commands import Command, PublishRound
from grms.site.model.events import AccountDue, Event, LrmsTold, RoundDue, Submit
from grms.site.model.jobs import GuestJob, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.peers.peers import PeerClients
from grms.site.rpc.replay_schedule import OF_SCHEDULES, read_schedule
from grms.site.rpc.replay_workload import ReplayWorkload
from grms.site.runtime.event_loop import Engine
from grms.site.runtime.journal import Journal
from grms.site.wire.convert import executed_on
from grms.v1 import replay_pb2, request_pb2

USER: Final = "replay"
"""The user of a replay's jobs."""

NOTE: Final = "replay"
"""Key of the replay's id in the journal."""

_UNDECIDED = (JobState.RECEIVED, JobState.OFFERING, JobState.RESOLVING, JobState.WITHDRAWING)


class Waiter:
    """Waits for conditions on the site's state, which are looked at after every event."""

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
        clock: the common clock, as this site knows it.
    """

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        lrms: ReplayableLrms,
        clock: VirtualClock,
        links: PeerClients,
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
        self.workload: ReplayWorkload | None = None
        self._sent_home = 0

    def _follow_guest(self, event: Event, _commands: Sequence[Command]) -> None:
        # The ends of partners' jobs alone are reported to somebody.
        if isinstance(event, LrmsTold) and isinstance(event.news, base.Ended):
            self._sent_home += event.news.end.outcome is Outcome.PREEMPTED
        if isinstance(event, LrmsTold) and isinstance(event.news, base.Accepted):
            key = event.news.key
            if isinstance(self._engine.state.memory.at_lrms.get(key), GuestJob):
                self._lrms.follow(key)

    @property
    def rows_arrived(self) -> int:
        """How many rows of the workload have arrived."""
        return self._engine.state.memory.next_job - 1

    def advance(self, to: float) -> None:
        """Brings the site to a moment; one that is past changes nothing.

        `to` is in seconds.
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
        """Sets the clock to a finite moment in seconds; one that is past changes nothing.

        What is due by then happens at the next event that can lead to a decision, so that the
        records of both are written together.
        """
        if to > self._clock.now():
            self._clock.advance(to)

    async def reported(self) -> None:
        """Returns when every end was reported.

        Starts and ends of own jobs need not be in the journal yet: a site that has lost them finds
        them again when its clock is advanced, wherever the clock then stands.
        """
        if self._links.reports_open:
            await self._waiter.until(lambda: self._links.reports_open == 0)

    async def rest(self) -> None:
        """Returns when every end was reported and everything is in the journal."""
        await self.reported()
        await self._settled()

    async def _settled(self) -> None:
        engine = self._engine
        if engine.pending:
            engine.flush()
            await engine.settled()

    async def step(self, at: float, kind: replay_pb2.StepKind) -> bool:
        """Moves the machine on at a moment, seconds; returns whether guests were sent home."""
        engine, lrms = self._engine, self._lrms
        self.set_clock(at)
        before = self._sent_home
        if kind == replay_pb2.STEP_KIND_CLOCK:
            lrms.move_clock()
        elif kind == replay_pb2.STEP_KIND_ACCOUNT:
            engine.tell(AccountDue(engine.new_id()))
            await self._settled()  # nobody asks for this look once more
        else:
            lrms.step()
            engine.catch_up()
        await self.reported()
        return self._sent_home > before

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
        """Returns why rows cannot arrive, nothing if they can."""
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

    async def arrive_all(self, first: int, rows: int) -> list[str]:
        """Lets jobs arrive, each decided before the next; returns where they went.

        At most `rows` from row `first` arrive. Another site may have an end to report from the
        moment on at which a job that was given to it ends if it starts at once; later arrivals are
        left for another step.
        """
        work = self.workload
        assert work is not None
        until, places = math.inf, list[str]()
        for row in range(first, first + rows):
            submit_time = work.submit_time[row]
            if submit_time >= until:
                break
            places.append(await self.arrive(row))
            if places[-1] != self.site:
                until = min(until, submit_time + work.run_time[row])
        await self.rest()
        return places

    async def arrive(self, row: int) -> str:
        """Lets one job arrive, unless it has; returns where it went, once decided."""
        assert self.workload is not None
        engine, work = self._engine, self.workload
        if row == self.rows_arrived:
            self.set_clock(work.submit_time[row])
            program = request_pb2.JobRequest()
            program.simulated.run_time_s = work.run_time[row]
            if work.user_group:
                program.simulated.user_group = work.user_group[row]
            if work.place:
                program.simulated.place = work.place[row]
            engine.tell(
                Submit(
                    *engine.stamp(),
                    USER,
                    str(row),
                    "",
                    Request(work.processors[row], work.requested_time[row]),
                    program.SerializeToString(),
                )
            )
        job = engine.state.memory.jobs.get(row + 1)
        if job is None:
            return ""
        if job.state in _UNDECIDED:
            await self._waiter.until(lambda: job.state not in _UNDECIDED)
        return executed_on(job, engine.state.settings.name)

    def schedule(self) -> tuple[list[replay_pb2.OwnRow], list[replay_pb2.GuestRow]]:
        """Returns what became of the workload, and which guests ran here, from the journal."""
        return read_schedule(self.site, self._journal.records(OF_SCHEDULES))

    @property
    def steps(self) -> bool:
        """Whether guests are sent home in this replay, so that its machine moves as it is told alone (`step`)."""
        return self.workload is not None and bool(self.workload.place)

    @property
    def holds_rounds(self) -> bool:
        """Whether waiting jobs are offered again here."""
        return self._engine.state.settings.reoffer is not None

    @property
    def waits(self) -> bool:
        """Whether a job waits here, at a site that holds rounds."""
        return (self.holds_rounds or self.steps) and self._lrms.load_now().waiting > 0

    async def hold_round(self, at: float) -> list[replay_pb2.MovedRow]:
        """Offers waiting jobs again at a moment; returns those that left the queue, and their places.

        An interrupted round is continued; a completed one returns the same answer again. A moment,
        in seconds, that is past changes nothing.
        """
        engine, lrms = self._engine, self._lrms
        await self._settled()
        self.advance(at)
        memory = engine.state.memory
        rounds = memory.rounds
        # What leaves the queue makes room for others there only when all have had their turn.
        if not self.steps:
            lrms.hold_passes()
        try:
            if rounds.open or rounds.begun < at:
                self._round = asyncio.get_running_loop().create_future()
                engine.tell(RoundDue(*engine.stamp()))
                await self._round
            moved = [memory.jobs[job] for job in rounds.moved] if rounds.begun >= at else []
            for job in moved:
                await self._waiter.until(lambda job=job: job.state not in _UNDECIDED)  # type: ignore[misc]  # binds the loop's value
        finally:
            self._round = None
            if not self.steps:
                lrms.make_pass()
        engine.catch_up()
        return [
            replay_pb2.MovedRow(row=job.job - 1, executed_on=place)
            for job in moved
            if (place := executed_on(job, self.site)) not in {"", self.site}
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

    def begin(self, workload: ReplayWorkload) -> str:
        """Takes a workload; returns what is wrong with it, or nothing."""
        noted = self._journal.note(NOTE)
        if noted not in {None, workload.replay_id}:
            return f"this journal belongs to the replay {noted!r}, not to {workload.replay_id!r}"
        if noted is None and self._journal.count:
            return "this journal has jobs of users already, and is not one of a replay"
        if noted is None:
            self._journal.set_note(NOTE, workload.replay_id)
        self.workload = workload
        if self.steps:
            self._lrms.begin_steps()
        return ""
