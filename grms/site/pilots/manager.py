"""Pilots of a site: obtains them, gives them what they run, and tells the state what they say.

A pilot's job is one of the site's own user, handed in as any other, so everything that holds for jobs holds for it:
the journal has it before the batch system, and it is found again after a restart. Its key names the pilot.
"""

import asyncio
import math
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from grms.daemon.clock import Clock
from grms.daemon.loop import NotWrittenError
from grms.daemon.user_names import user_name
from grms.lrms.base import LrmsRefusedError
from grms.lrms.batch.launcher import Spool
from grms.site.config.schema import PilotConfig, PilotsConfig, ResourceConfig
from grms.site.model.commands import (
    PilotCommand,
    PilotForget,
    PilotGoes,
    PilotKill,
    PilotKnows,
    PilotMove,
    PilotRun,
    PilotStart,
    PilotWithdraw,
    Refuse,
)
from grms.site.model.events import (
    PilotConnected,
    PilotDrains,
    PilotEnded,
    PilotLeaves,
    PilotTold,
    PilotWanted,
    RunNews,
    RunState,
    Submit,
)
from grms.site.model.jobs import HomeJob, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.pilots import KEY_BEGIN, Pilot, number_of
from grms.site.model.reservations import Reservation
from grms.site.pilots import agent
from grms.site.pilots.hub import Hub, PilotTerms
from grms.site.pilots.messages import Hello, RunTold
from grms.site.pilots.order import Contents, found_in_folder, has_files, news, order
from grms.site.runtime.event_loop import Engine
from grms.util.names import Endpoint, parse_endpoint
from grms.v1 import request_pb2
from lrms_sim.workload.requests import Request as Needs

Log = structlog.typing.FilteringBoundLogger

RUNS: Final = ".runs"
"""In the jobs' folder: those of programs in pilots."""

PILOTS: Final = ".pilots"
"""Likewise: those of the pilots, with their secrets."""

WANTED_S: Final = 120.0
"""So long a broker's word holds that it has work, real seconds."""

LOOKED_AT_S: Final = 2.0
"""Interval of looks for pilots that are wanted, real seconds."""

PAUSE_FIRST_S: Final = 10.0
PAUSE_MOST_S: Final = 600.0
"""Pause before another pilot is asked for where one has ended without ever having been there; it doubles."""

SILENT_S: Final = 60.0
"""So long after its time is over a program of a silent pilot counts as over, real seconds."""

UNDER_WAY_S: Final = 2.0
"""What a pilot has told before its end may still be on its way, real seconds."""


@dataclass(frozen=True, slots=True)
class _Kind:
    # What is asked for one resource.
    processors: int
    pilot: PilotConfig


@dataclass(frozen=True, slots=True)
class PilotUse:
    """What operators are shown of a pilot; `held` and `used` are processor-seconds so far."""

    job_id: str
    processors: int
    connected: bool
    programs: int
    held: float
    used: float


class Pilots:
    """The pilots of a site, whose programs have folders in `spool`.

    `contents` says where files are that programs are given.
    """

    def __init__(
        self,
        resources: list[ResourceConfig],
        settings: PilotsConfig,
        engine: Engine,
        *,
        hub: Hub,
        spool: Spool,
        contents: Contents,
        clock: Clock,
        log: Log,
    ) -> None:
        self._kinds = {
            resource_id: _Kind(each.processors, each.pilot)
            for each in resources
            if each.pilot is not None
            for resource_id in each.ids
        }
        self._labels: dict[str, Mapping[str, str]] = {
            resource_id: each.labels for each in resources for resource_id in each.ids
        }
        self._settings = settings
        self._engine = engine
        self.hub = hub
        self.spool = spool
        self._contents = contents
        self._clock = clock
        self._log = log
        self._user = user_name(os.geteuid())
        self._wanted: dict[str, float] = {}
        self._in_vain: dict[str, int] = {}
        self._parting = asyncio.Event()
        self._starting: set[int] = set()
        self._laying: set[int] = set()
        self._ending: set[int] = set()
        self._used: dict[int, float] = {}
        self._group: asyncio.TaskGroup | None = None
        self._work: list[Callable[[asyncio.TaskGroup], None]] = []
        engine.on_pilot(self._do)
        engine.on_publish(self._job_changed)

    @property
    def _book(self) -> Any:
        return self._engine.state.memory.pilots

    # --- its life ------------------------------------------------------------------------------

    async def open(self) -> None:
        """Listens for pilots.

        Raises:
            OSError: the address cannot be listened on, or the folders cannot be made.
        """
        await asyncio.to_thread(self.spool.open)
        own, given = socket.getfqdn(), self._settings.listen
        # A name may stand for loopback on its own host: then all addresses are listened on, and nodes resolve the name.
        place = Endpoint("0.0.0.0", 0) if given is None else parse_endpoint(given)  # noqa: S104  # pilots alone are let in
        try:
            await self.hub.open(place, own if given is None else place.host, self)
        except OSError as error:
            text = f"cannot listen for pilots on {place}: {error.strerror or error}"
            raise OSError(error.errno, text) from error

    async def run(self) -> None:
        """Asks for pilots that are wanted, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for begin in self._work:
                begin(group)
            self._work.clear()
            while True:  # waits for time, not for an event
                for resource_id in self._due():
                    self._engine.tell(PilotWanted(self._engine.new_id(), resource_id))
                await self._look_at_silent()
                await asyncio.sleep(LOOKED_AT_S)

    def want(self, labels: Mapping[str, str]) -> None:
        """Notes that a broker has work for the resources with these labels."""
        for resource_id, own in self._labels.items():
            if all(own.get(key) == value for key, value in labels.items()):
                self._wanted[resource_id] = time.monotonic()

    def _due(self) -> list[str]:
        memory = self._engine.state.memory
        return [] if memory.draining else [each for each in self._kinds if self._is_due(each)]

    def _is_due(self, resource_id: str) -> bool:
        latest: Pilot | None = self._book.latest(resource_id)
        if latest is not None and not (latest.drained or latest.is_over):
            return False
        wanted = self._wanted.get(resource_id)
        if self._kinds[resource_id].pilot.idle_limit is not None and (
            wanted is None or time.monotonic() - wanted > WANTED_S
        ):
            return False
        tries = self._in_vain.get(resource_id, 0)
        if latest is None or not tries:
            return True
        pause_s = min(PAUSE_MOST_S, PAUSE_FIRST_S * 2.0 ** (tries - 1))
        return self._clock.now() >= latest.over_time + pause_s

    def _begin(self, work: Callable[[], Any], name: str) -> None:
        def begin(group: asyncio.TaskGroup) -> None:
            group.create_task(work(), name=name)

        if self._group is None:
            self._work.append(begin)
        else:
            begin(self._group)

    # --- commands ------------------------------------------------------------------------------

    def _do(self, command: PilotCommand) -> None:
        name = self._name(command.pilot)
        match command:
            case PilotStart():
                self._begin(partial(self._start, command), f"start of {name}")
            case PilotRun():
                self._give(command)
            case PilotMove():
                found = self._run_of(command.reservation)
                if found is not None:
                    self.hub.send(name, moves=[[str(found.number), found.job_begin, found.end]])
            case PilotKill():
                self.hub.send(name, kills=[str(command.reservation)])
            case PilotWithdraw():
                self.hub.send(name, withdraws=[str(command.reservation)])
            case PilotKnows():
                self.hub.send(name, known=[str(number) for number in command.reservations])
            case PilotGoes():
                self.hub.let_go(name)
            case PilotForget():
                self._used.pop(command.pilot, None)
                self.hub.dismiss(name)
                self._begin(partial(asyncio.to_thread, self.hub.remove, name), f"end of {name}")

    def _name(self, pilot: int) -> str:
        known: Pilot | None = self._book.pilots.get(pilot)
        return "" if known is None else known.name

    def _number(self, name: str) -> int:
        return int(name.rpartition("-")[2])

    def _run_of(self, reservation: int) -> Reservation | None:
        return self._engine.state.memory.reservations.open.get(reservation)

    # --- the job of a pilot --------------------------------------------------------------------

    async def _start(self, command: PilotStart) -> None:
        name, kind = self._name(command.pilot), self._kinds.get(command.resource_id)
        pilot: Pilot | None = self._book.present.get(command.pilot)
        if pilot is None or command.pilot in self._starting:
            return
        self._starting.add(command.pilot)
        try:
            await self._start_once(command, pilot, name, kind)
        finally:
            self._starting.discard(command.pilot)

    async def _start_once(
        self, command: PilotStart, pilot: Pilot, name: str, kind: _Kind | None
    ) -> None:
        job = self._job_of(pilot)
        if job is not None and job.state is JobState.ENDED:
            self._job_changed(job)
            return
        if kind is None:
            # Its resource is no longer in the file; what runs there may end.
            if job is None:
                self._end(command.pilot, "its resource is not in the configuration any more")
            return
        try:
            await asyncio.to_thread(self.hub.admit, name, self._terms(kind))
            if job is None:
                await self._hand_in(command, name, kind)
        except OSError as error:
            self._log.error(
                "pilot_not_prepared", pilot=name, problem=str(error)
            )  # no fault of ours
            if job is None:
                self._end(command.pilot, f"its folder cannot be made: {error.strerror or error}")
        except NotWrittenError as error:
            self._log.warning("pilot_not_handed_in", pilot=name, problem=str(error))
            self._end(command.pilot, str(error))

    def _terms(self, kind: _Kind) -> PilotTerms:
        return PilotTerms(
            processors=kind.processors,
            wall_time=kind.pilot.wall_time,
            spare=self._settings.spare_s,
            idle_limit=kind.pilot.idle_limit or 0.0,
            grace=self._settings.grace_s,
        )

    async def _hand_in(self, command: PilotStart, name: str, kind: _Kind) -> None:
        needs = Needs(
            tasks=1,
            cores_per_task=kind.processors,
            wall_time=kind.pilot.wall_time,
            requeue=False,
            partition=kind.pilot.partition,
            account=kind.pilot.account,
        )
        message = request_pb2.JobRequest()
        script = await asyncio.to_thread(Path(agent.__file__).read_text, encoding="utf-8")
        message.program.script = f"#!{self._settings.python}\n{script}"
        message.program.arguments.append(str(self.hub.place(name)))
        message.program.name = f"pilot {command.resource_id}"
        event = Submit(
            *self._engine.stamp(),
            self._user,
            f"{KEY_BEGIN}{command.pilot}",
            f"pilot of {command.resource_id}",
            Request.of(needs),
            message.SerializeToString(deterministic=True),
            here=True,
        )
        reply = await self._engine.ask(event, lambda answer: answer)
        if isinstance(reply, Refuse):
            self._log.warning("pilot_refused_by_site", pilot=name, problem=reply.reason)
            self._end(command.pilot, reply.reason)
        else:
            self._log.info("pilot_asked_for", pilot=name, resource=command.resource_id)

    def _job_of(self, pilot: Pilot) -> HomeJob | None:
        memory = self._engine.state.memory
        number = memory.keys.get((self._user, pilot.key))
        return None if number is None else memory.jobs[number]

    def _job_changed(self, job: HomeJob) -> None:
        number = number_of(job.idempotency_key) if job.here and job.user == self._user else 0
        if job.state is JobState.ENDED and number in self._book.present:
            self._begin(partial(self._job_ended, number, job), f"end of pilot {number}")

    def _end(self, pilot: int, reason: str) -> None:
        # It has no job.
        self._count(pilot)
        self._engine.tell(PilotEnded(self._engine.new_id(), pilot, (), reason, 0.0, 0.0))

    def _count(self, pilot: int) -> None:
        known: Pilot = self._book.pilots[pilot]
        resource_id = known.resource_id
        in_vain = math.isnan(known.open_time)
        self._in_vain[resource_id] = self._in_vain.get(resource_id, 0) + 1 if in_vain else 0

    async def _job_ended(self, number: int, job: HomeJob) -> None:
        if number in self._ending:
            return
        self._ending.add(number)
        try:
            name = self._name(number)
            with suppress(TimeoutError):
                # Its last words may be in the connection.
                async with asyncio.timeout(UNDER_WAY_S):
                    while self.hub.is_there(name):
                        self._parting.clear()
                        await self._parting.wait()
            outcome = "ended" if job.outcome is None else job.outcome.value
            why = f"the job of its pilot, {job.job_id}, is {outcome}" + (
                f": {job.reason}" if job.reason else ""
            )
            runs = await self._left_behind(number, why)
            if number in self._book.present:
                processors = job.request.processors
                self._count(number)
                held = processors * max(0.0, job.run_time or 0.0)
                used = min(self._used.get(number, 0.0), held)
                self._log.info(
                    "pilot_over",
                    pilot=name,
                    reason=why,
                    held_processor_s=round(held),
                    used_processor_s=round(used),
                )
                self._engine.tell(PilotEnded(self._engine.new_id(), number, runs, why, held, used))
        finally:
            self._ending.discard(number)

    async def _look_at_silent(self) -> None:
        # A batch system may take long to say that a job is gone. Until then a pilot that is silent may be cut off, and
        # still run what it has: but nothing beyond its time limit, and nothing that has not begun once that is fenced.
        latest = self._clock.now() - self._settings.grace_s - SILENT_S
        for number, pilot in list(self._book.present.items()):
            if self.hub.is_there(pilot.name):
                continue
            late = [one for one in self._runs_of(number) if latest > _over_by(one)]
            runs = await self._found(late, "its pilot is silent, and its time is over")
            if runs and not self.hub.is_there(pilot.name):
                self._engine.tell(PilotTold(self._engine.new_id(), number, runs))

    def _runs_of(self, pilot: int) -> list[Reservation]:
        book = self._engine.state.memory.reservations
        return [one for one in book.open.values() if one.pilot == pilot]

    async def _left_behind(self, pilot: int, why: str) -> tuple[RunNews, ...]:
        return await self._found(self._runs_of(pilot), why)

    async def _found(self, found: list[Reservation], why: str) -> tuple[RunNews, ...]:
        runs = []
        for one in found:
            place = self.spool.place(one.run_key)
            try:
                runs.append(await asyncio.to_thread(found_in_folder, one, place, why))
            except OSError as error:
                reason = f"its folder cannot be looked at ({error.strerror or error}): {why}"
                unknown = partial(RunNews, one.number, RunState.ENDED)
                runs.append(unknown(outcome=Outcome.UNKNOWN, reason=reason))
        return tuple(runs)

    # --- programs ------------------------------------------------------------------------------

    def _give(self, command: PilotRun) -> None:
        found = self._run_of(command.reservation)
        if found is None or not self.hub.is_there(self._name(command.pilot)):
            return  # it is given when the pilot is there again
        if has_files(found.payload):
            if found.number not in self._laying:
                self._laying.add(found.number)
                self._begin(partial(self._lay, command), f"files of run {found.number}")
            return
        self._send(command, lambda: order(found, self.spool, self._contents))

    def _send(self, command: PilotRun, make: Callable[[], dict[str, Any]]) -> None:
        try:
            made = make()
        except (LrmsRefusedError, OSError) as error:
            self._cannot_begin(command, str(error))
        else:
            self.hub.send(self._name(command.pilot), runs=[made])

    async def _lay(self, command: PilotRun) -> None:
        try:
            found = self._run_of(command.reservation)
            if found is None:
                return
            work = asyncio.to_thread(order, found, self.spool, self._contents)
            try:
                made = await work
            except (LrmsRefusedError, OSError) as error:
                self._cannot_begin(command, str(error))
                return
            now = self._run_of(command.reservation)
            if now is not None:  # it may have been moved, or released
                made |= {"begin": now.job_begin, "until": now.end}
                self.hub.send(self._name(command.pilot), runs=[made])
        finally:
            self._laying.discard(command.reservation)

    def _cannot_begin(self, command: PilotRun, reason: str) -> None:
        end = RunNews(command.reservation, RunState.ENDED, outcome=Outcome.FAILED, reason=reason)
        self._engine.tell(PilotTold(self._engine.new_id(), command.pilot, (end,)))

    # --- what agents tell ----------------------------------------------------------------------

    def connected(self, pilot: str, hello: Hello) -> None:
        """Tells the state that a pilot is there."""
        number = self._number(pilot)
        self._used[number] = hello.used
        self._log.info("pilot_there", pilot=pilot, host=hello.host, runs=len(hello.runs))
        self._engine.tell(
            PilotConnected(
                self._engine.new_id(),
                number,
                self._clock.now() + hello.ends_in,
                hello.host,
                hello.draining,
                _news(hello.runs),
            )
        )
        if hello.over:
            self.leaves(pilot)

    def told(self, pilot: str, runs: list[RunTold]) -> None:
        """Tells the state of runs that have started or ended."""
        self._engine.tell(PilotTold(self._engine.new_id(), self._number(pilot), _news(runs)))

    def used(self, pilot: str, processor_s: float) -> None:
        """Notes what the runs of a pilot have used so far."""
        self._used[self._number(pilot)] = processor_s

    def draining(self, pilot: str, why: str) -> None:
        """Tells the state that a pilot takes no more runs."""
        self._log.info("pilot_drains", pilot=pilot, reason=why)
        self._engine.tell(PilotDrains(self._engine.new_id(), self._number(pilot), why))

    def leaves(self, pilot: str) -> None:
        """Tells the state that a pilot is over."""
        self._engine.tell(PilotLeaves(self._engine.new_id(), self._number(pilot)))

    def parted(self, pilot: str) -> None:
        """Notes that the connection is lost: runs go on."""
        self._log.info("pilot_parted", pilot=pilot)
        self._parting.set()

    def use(self, pilot: Pilot) -> "PilotUse":
        """Returns what operators are shown of a pilot besides what the journal says."""
        job, kind = self._job_of(pilot), self._kinds.get(pilot.resource_id)
        processors = kind.processors if kind is not None else 0
        held, used = pilot.held, pilot.used
        if job is not None:
            processors = job.request.processors
            if not pilot.is_over and not math.isnan(job.start_time):
                held = processors * max(0.0, self._clock.now() - job.start_time)
                used = min(held, self._used.get(pilot.number, 0.0))
        return PilotUse(
            "" if job is None else job.job_id,
            processors,
            self.hub.is_there(pilot.name),
            len(self._runs_of(pilot.number)),
            held,
            used,
        )


def _over_by(one: Reservation) -> float:
    # When a program is over at the latest, seconds: the agent ends it then.
    if math.isnan(one.start_time):
        return one.end
    assert one.request is not None
    return one.start_time + one.request.requested_time


def _news(runs: "list[RunTold] | tuple[RunTold, ...]") -> tuple[RunNews, ...]:
    return tuple(known for told in runs if (known := news(told)) is not None)
