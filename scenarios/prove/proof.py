"""Two batch systems and the sites above them, broken on purpose while users submit; its history is what is judged."""

import asyncio
import random
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from grms.client import Client, Job, SiteError
from grms.daemon.ports import free_ports
from scenarios.live.daemons import until_linked
from scenarios.live.sites import SiteProcess, stop_all
from scenarios.prove.history import History
from scenarios.prove.line import Line
from scenarios.prove.plan import SITES, Fault, Plan, faults_of, jobs_of
from scenarios.prove.simulated_slurm import FakeSlurm
from scenarios.prove.slurm_cluster import SlurmCluster, missing_program
from scenarios.prove.users import LIMIT_S, Submission, Users
from scenarios.util.errors import LiveError

OVER_S: Final = 300.0
"""How long all jobs may take to end after the last fault, seconds."""

FORGOTTEN_S: Final = 15.0
"""How long after its limit a job is waited for that the batch system does not know any more, seconds."""

SILENCE_S: Final = 40
"""After this a silent node is given up by its Slurm: longer than a controller hangs. A third of it is how often nodes are asked."""

SLOW_S: Final = 0.5
OPERATOR_S: Final = 5.0
"""How often an operator looks for drained nodes, seconds."""


Kind = Literal["slurm", "simulated"]
Tell = Callable[[str, int, int | None], None]


class BatchSystem(Protocol):
    """A batch system of one's own whose controller can be broken."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What the programs need to find it."""

    @property
    def completion_log(self) -> str:
        """Path of the completion log."""

    def up(self) -> None:
        """Starts everything."""

    def down(self) -> None:
        """Ends everything, jobs included."""

    def hang_controller(self) -> None:
        """Stops the controller."""

    def wake_controller(self) -> None:
        """Lets it go on."""

    def kill_controller(self) -> None:
        """Ends it without a word."""

    def start_controller(self) -> None:
        """Starts it again."""

    def save_state(self) -> float:
        """Remembers what it has just saved; returns when that was, seconds since 1970."""

    def lose_state(self) -> None:
        """Ends it, and puts back what it had saved then."""

    def resume_nodes(self) -> None:
        """Takes drained nodes back, and releases what could not be started there, as an operator does."""

    def is_idle(self) -> bool:
        """Returns whether no job waits or runs."""

    def impatient(self, seconds: int) -> Mapping[str, str]:
        """Returns the environment of a user whose commands give up after so many seconds."""

    def ask(self, program: str, *arguments: str) -> str:
        """Returns what one of its programs prints."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run.

    Attributes:
        systems: the batch systems, for people.
        history: the file for the checker.
        seconds: how long it took.
    """

    systems: str
    history: Path
    seconds: float


def default_kind() -> Kind:
    """Returns which batch systems are used: real ones where Slurm is installed."""
    return "simulated" if missing_program() else "slurm"


def run(plan: Plan, kind: Kind, folder: Path, tell: Tell) -> Run:
    """Runs a plan in an empty folder, and leaves nothing running.

    Args:
        plan: what is broken.
        kind: of batch systems.
        folder: for everything; it exists and is empty.
        tell: is told of each stage how much of it is done.

    Raises:
        LiveError: a batch system does not start, or a daemon does not serve.
    """
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as sockets:  # short
        return asyncio.run(_run(plan, kind, folder, Path(sockets), tell))


async def _run(plan: Plan, kind: Kind, folder: Path, sockets: Path, tell: Tell) -> Run:
    begin = time.monotonic()
    async with AsyncExitStack() as stack:
        history = stack.enter_context(History(folder / "history.jsonl"))
        tell("starting", 0, None)
        systems: dict[str, BatchSystem] = {}
        for name in SITES:
            systems[name] = _system(kind, folder / f"cluster-{name}", plan, name)
            stack.push_async_callback(asyncio.to_thread, systems[name].down)
            stack.callback(systems[name].wake_controller)
            try:
                await asyncio.to_thread(systems[name].up)
            except (OSError, subprocess.SubprocessError) as error:
                raise LiveError(
                    f"the batch system of {name} does not start: {error}; --simulated does without Slurm"
                ) from error
        words = await asyncio.to_thread(_version, systems[SITES[0]])
        sites, lines = await stack.enter_async_context(_daemons(plan, folder, sockets, systems))
        users = Users(
            history,
            folder,
            sbatch={name: system.impatient(plan.patience_s) for name, system in systems.items()},
            sockets={name: site.socket for name, site in sites.items()},
            patience_s=plan.patience_s,
        )
        scene = _Scene(plan, systems, sites, lines, users, history, tell)
        operator = asyncio.create_task(scene.resume_nodes(), name="operator")
        try:
            await scene.break_all()
            jobs = await scene.all_over()
        finally:
            operator.cancel()
        for name, job in jobs.items():
            if job.outcome is not None:
                history.note(
                    "told",
                    job=name,
                    outcome=job.outcome.value,
                    site=job.executed_on,
                    reason=job.reason,
                )
        history.add_effects(users.effects)
        if scene.is_over:
            history.note("closed")
    return Run(words, history.path, time.monotonic() - begin)


def _system(kind: Kind, folder: Path, plan: Plan, name: str) -> BatchSystem:
    if kind == "simulated":
        return FakeSlurm(folder, nodes=plan.nodes, cpus=plan.cpus, name=name)
    return SlurmCluster(folder, nodes=plan.nodes, cpus=plan.cpus, name=name, silence_s=SILENCE_S)


def _version(system: BatchSystem) -> str:
    if isinstance(system, SlurmCluster):
        words = system.ask("sbatch", "--version").replace("slurm-wlm", "Slurm").strip()
        return f"two real batch systems ({words})"
    return "two simulated batch systems (Slurm is not installed, or was not wanted)"


@asynccontextmanager
async def _daemons(
    plan: Plan, folder: Path, sockets: Path, systems: Mapping[str, BatchSystem]
) -> AsyncIterator[tuple[dict[str, SiteProcess], list[Line]]]:
    ports = dict(zip(SITES, free_ports(len(SITES)), strict=True))
    async with AsyncExitStack() as stack:
        lines: list[Line] = []
        sites: dict[str, SiteProcess] = {}
        for name, other in zip(SITES, reversed(SITES), strict=True):
            line = await stack.enter_async_context(Line(ports[other]))
            lines.append(line)
            document: dict[str, Any] = {
                "name": name,
                "processors": plan.nodes * plan.cpus,
                "reoffer": plan.reoffer,
                "listen": {
                    "users": str(sockets / f"{name}.sock"),
                    "partners": f"127.0.0.1:{ports[name]}",
                },
                "journal": {"path": str(folder / f"{name}.journal"), "survives": "power_loss"},
                "mqtt": {"enabled": False},
                "logging": {"format": "json"},
                "lrms": _lrms(plan, systems[name], folder / f"jobs-{name}"),
                "partners": [
                    {
                        "name": other,
                        "address": f"127.0.0.1:{line.port}",
                        "processors": plan.nodes * plan.cpus,
                    }
                ],
            }
            sites[name] = SiteProcess(name, folder, sockets)
            sites[name].configure(document)
        try:
            await asyncio.gather(*(site.start() for site in sites.values()))
            for site in sites.values():
                await until_linked(site)
            yield sites, lines
        finally:
            await asyncio.shield(asyncio.ensure_future(stop_all(list(sites.values()))))


def _lrms(plan: Plan, system: BatchSystem, spool: Path) -> dict[str, Any]:
    table = {
        "kind": "slurm",
        "spool": str(spool),
        "completion_log": system.completion_log,
        "poll_s": plan.poll_s,
        "settle_s": plan.settle_s,
        "grace_s": FORGOTTEN_S,
    }
    if isinstance(system, FakeSlurm):
        return table | {"programs": system.programs}
    return table | {"configuration": system.environment["SLURM_CONF"]}


@dataclass
class _Scene:
    """Breaks everything by the plan, and has users submit meanwhile."""

    plan: Plan
    systems: Mapping[str, BatchSystem]
    sites: Mapping[str, SiteProcess]
    lines: list[Line]
    users: Users
    history: History
    tell: Tell
    done: int = 0
    submissions: int = 0
    is_over: bool = False
    _number: int = 0

    def __post_init__(self) -> None:
        self._lanes = self.plan.lanes()
        self._rng = random.Random(f"jobs {self.plan.seed}")  # noqa: S311  # no secrets

    async def resume_nodes(self) -> None:
        """Does now and then what an operator does after such faults, until it is cancelled."""
        while True:
            await asyncio.sleep(OPERATOR_S)
            for system in self.systems.values():
                await asyncio.to_thread(system.resume_nodes)

    async def break_all(self) -> None:
        """Returns when all faults are over and every submission was answered."""
        async with asyncio.TaskGroup() as group:
            for name, faults in self._lanes.items():
                group.create_task(self._lane(faults, group), name=name)

    async def _lane(self, faults: list[Fault], group: asyncio.TaskGroup) -> None:
        for fault in faults:
            await asyncio.sleep(fault.pause_s)
            saved_at = 0.0
            if fault.kind == "state loss":
                saved_at = await asyncio.to_thread(self.systems[fault.place].save_state)
            self._number += 1
            number = self._number
            for index, moment in enumerate(fault.jobs, start=1):
                run_s = self._rng.uniform(*self.plan.run_s)
                self.submissions += 1
                away = "" if self.submissions % self.plan.away_every else _other(fault.place)
                job = Submission(f"{number}.{index}", fault.place, run_s, away)
                group.create_task(self._submit(moment, job), name=job.word)
            begin = time.time()
            await self._break(fault, saved_at)
            self.history.note(
                "fault",
                at=begin,
                kind=fault.kind,
                place=fault.place,
                until=time.time(),
                number=number,
            )
            self.done += 1
            self.tell("faults", self.done, len(faults_of(self._lanes)))

    async def _submit(self, moment: float, job: Submission) -> None:
        await asyncio.sleep(moment)
        await self.users.submit(job)
        self.tell("jobs submitted", self.users.submitted, jobs_of(self._lanes))

    async def _break(self, fault: Fault, saved_at: float) -> None:
        if fault.kind == "site kill":
            await self.sites[fault.place].kill()
            await asyncio.sleep(fault.broken_s)
            await self.sites[fault.place].start()
        elif fault.place:
            await self._break_controller(fault, self.systems[fault.place], saved_at)
        else:
            for line in self.lines:
                _break_line(fault, line)
            await asyncio.sleep(fault.broken_s)
            for line in self.lines:
                line.mend()

    @staticmethod
    async def _break_controller(fault: Fault, system: BatchSystem, saved_at: float) -> None:
        if fault.kind == "hang":
            system.hang_controller()
            await asyncio.sleep(fault.broken_s)
            system.wake_controller()
            return
        if fault.kind == "state loss":
            await asyncio.sleep(max(0.0, saved_at + fault.broken_s - time.time()))
            await asyncio.to_thread(system.lose_state)
        else:
            await asyncio.to_thread(system.kill_controller)
            await asyncio.sleep(fault.broken_s)
        await asyncio.to_thread(system.start_controller)

    async def all_over(self) -> dict[str, Job]:
        """Returns the jobs of `grms submit` by name, when all of either command are over; after a long time as they are."""
        with suppress(TimeoutError):
            async with asyncio.timeout(OVER_S):
                await asyncio.gather(*(self._until_idle(name) for name in SITES))
                self.is_over = True
        return await self._jobs()

    async def _until_idle(self, name: str) -> None:
        await _until(self._have_ended)
        await _until(lambda: asyncio.to_thread(self.systems[name].is_idle))

    async def _have_ended(self) -> bool:
        jobs = await self._jobs()
        ended = sum(job.has_ended for job in jobs.values())
        self.tell("jobs over", ended, len(self.users.numbers))
        return ended == len(self.users.numbers)

    async def _jobs(self) -> dict[str, Job]:
        found: dict[str, Job] = {}
        for name, site in self.sites.items():
            try:
                async with Client(site.socket, timeout_s=LIMIT_S) as client:
                    async for job in client.jobs():
                        word = self.users.numbers.get((name, job.job_id))
                        if word is not None:
                            found[word] = job
            except SiteError as error:
                raise LiveError(
                    f"the daemon of {name} does not answer: {error}; see {site.log_path}"
                ) from error
        return found


def _other(site: str) -> str:
    return next(name for name in SITES if name != site)


def _break_line(fault: Fault, line: Line) -> None:
    if fault.kind == "link cut":
        line.cut()
    elif fault.kind == "link one way":
        line.answer_not()
    elif fault.kind == "link silent":
        line.hold_up()
    else:
        line.slow(SLOW_S)


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():  # noqa: ASYNC110  # batch systems have no event to wait for
        await asyncio.sleep(0.2)
