"""Breaks real daemons while they replay, and proves that nothing was lost and nothing ran twice.

    python -m benchmarks.real_faults                 50 kills, writes figures-faults.json
    python -m benchmarks.real_faults --kills 5 --arrivals 2000 --dry

Three daemons with journals of their own replay a crowded workload, conducted in step. Meanwhile
daemons are killed (SIGKILL), links between two sites are cut or held up, the MQTT broker is
stopped and started, and the disk of a journal is filled. Which, when and for how long is drawn from
a seed. When all is healed and every job has ended, the journals are read: each arrival that was
acknowledged must have one completed execution in the whole federation. Needs Mosquitto, and the
right to mount a tmpfs; without one of them that fault is left out, and the figures say so.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import aiomqtt
import numpy as np

from benchmarks.exactly_once import Federation, Verdict
from benchmarks.fault_tools import DiskError, MqttBroker, SmallDisk, mosquitto_path, until
from benchmarks.frame import machine, options_of
from grms.client import Client, SiteError
from grms.daemon.ports import free_ports
from grms.site.runtime.journal import Journal
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.schedule import MachineInfo
from scenarios.live.coordinator import Coordinator
from scenarios.live.daemons import daemons
from scenarios.live.sites import LiveSettings, SiteProcess
from scenarios.prove.line import Line
from scenarios.spec.files import parse_spec

FIGURES: Final = Path(__file__).with_name("figures-faults.json")
SITES: Final = {"small": 24, "middle": 48, "large": 96}
DISK_BYTES: Final = 48 << 20
CALM_S: Final = 60.0
"""Time for every daemon to recover after the last fault."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to break.

    Attributes:
        seed: of the workload and all faults.
        arrivals: at all sites.
        cuts: of links, in both directions.
        hold_ups: of links: connections stand but carry nothing.
        disk_fills: of one site's disk; the daemon is killed with every other.
        survives: durability of journals, as in a site's configuration.
    """

    seed: int = 1
    arrivals: int = 20_000
    kills: int = 50
    cuts: int = 6
    hold_ups: int = 6
    broker_stops: int = 3
    disk_fills: int = 3
    survives: Literal["power_loss", "crash"] = "power_loss"


@dataclass(slots=True)
class Outcome:
    """Result of a run: violations in words, counts, and faults that were impossible here, with the reason."""

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    elapsed_s: float = 0.0


def workloads(plan: Plan) -> list[JobTable]:
    """Returns jobs in a crowd for each site, so that many are given away."""
    rng = np.random.default_rng(plan.seed)
    tables = []
    for position, processors in enumerate(SITES.values()):
        count = len(range(position, plan.arrivals, len(SITES)))
        run_time = np.round(rng.exponential(40.0, count) + 0.1, 1)
        tables.append(
            JobTable.from_columns(
                submit_time=np.sort(rng.integers(0, 8 * count, count)).astype(float),
                processors=rng.integers(1, processors // 2, count),
                run_time=run_time,
                requested_time=run_time * rng.choice([1.0, 1.5, 3.0], count),
            )
        )
    return tables


class Faults:
    """Breaks things during a conducted replay, and repairs them.

    `broker` and `disk` (of the last site's journal) may be missing; `arrived` returns the number of arrived jobs.
    """

    def __init__(
        self,
        plan: Plan,
        counts: Counter[str],
        processes: Sequence[SiteProcess],
        *,
        lines: dict[tuple[str, str], Line],
        broker: MqttBroker | None,
        disk: SmallDisk | None,
        arrived: Callable[[], int],
    ) -> None:
        self._counts = counts
        self._processes = processes
        self._lines = lines
        self._broker = broker
        self._disk = disk
        self._arrived = arrived
        self._rng = random.Random(plan.seed)  # noqa: S311  # faults, no secrets
        kinds: list[Callable[[], Any]] = [self._kill] * plan.kills
        kinds += [self._cut] * plan.cuts + [self._hold_up] * plan.hold_ups
        kinds += [self._stop_broker] * (plan.broker_stops if broker else 0)
        kinds += [self._fill_disk] * (plan.disk_fills if disk else 0)
        self._rng.shuffle(kinds)
        # Not at the very end, so that faults matter.
        moments = sorted(self._rng.sample(range(int(plan.arrivals * 0.95)), len(kinds)))
        self._agenda = list(zip(moments, kinds, strict=True))

    async def run(self) -> None:
        """Does all of it; returns when everything is mended."""
        async with asyncio.TaskGroup() as group:
            for moment, kind in self._agenda:
                while self._arrived() < moment:  # noqa: ASYNC110  # it has no event of its own
                    await asyncio.sleep(0.001)
                # At any point of a daemon's work on a job, or between two.
                await asyncio.sleep(self._rng.uniform(0.0, 0.02))
                group.create_task(kind(), name=kind.__name__)

    async def _kill(self) -> None:
        process = self._rng.choice(self._processes)
        if await until(lambda: bool(process.pid), CALM_S):
            await self._kill_now(process)

    async def _kill_now(self, process: SiteProcess) -> None:
        if process.log_path.read_bytes().count(b'"serving"') < process.starts:
            self._counts["kills_while_starting"] += 1
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
            self._counts["kills"] += 1
            self._counts[f"kills_{process.name}"] += 1

    def _pair(self) -> list[Line]:
        one, other = self._rng.sample([process.name for process in self._processes], 2)
        return [self._lines[one, other], self._lines[other, one]]

    async def _cut(self) -> None:
        pair = self._pair()
        self._counts["cuts"] += 1
        for line in pair:
            line.cut()
        await asyncio.sleep(self._rng.uniform(0.1, 2.0))
        for line in pair:
            line.mend()

    async def _hold_up(self) -> None:
        pair = self._pair()
        self._counts["hold_ups"] += 1
        for line in pair:
            line.hold_up()
        await asyncio.sleep(self._rng.uniform(0.5, 4.0))
        for line in pair:
            line.mend()

    async def _stop_broker(self) -> None:
        assert self._broker is not None
        before = self._arrived()
        self._counts["broker_stops"] += 1
        await self._broker.stop()
        await until(lambda: self._arrived() > before + 100, 5.0)
        self._counts["arrivals_without_broker"] += self._arrived() - before
        await self._broker.start()

    async def _fill_disk(self) -> None:
        assert self._disk is not None
        process, disk = self._processes[-1], self._disk

        def complaints() -> int:
            return process.log_path.read_bytes().count(b"the disk is full")

        before = complaints()
        self._counts["disk_fills"] += 1
        disk.fill()
        self._counts["disk_fills_noticed"] += await until(lambda: complaints() > before, 15.0)
        if self._counts["disk_fills"] % 2 == 0:
            # It starts on a full disk, or fails with a message and is restarted.
            starts = process.starts
            await self._kill_now(process)
            await until(lambda: process.starts > starts, 15.0)
            await asyncio.sleep(3.0)
        else:
            await asyncio.sleep(1.0)
        disk.free()


class Watcher:
    """Counts what daemons publish across restarts of the broker: job events, and sites by their presence."""

    def __init__(self, port: int) -> None:
        self.events = 0
        self.online: dict[str, bool] = {}
        self._port = port

    async def run(self) -> None:
        """Reads until it is cancelled."""
        while True:
            with suppress(aiomqtt.MqttError):
                async with aiomqtt.Client("127.0.0.1", self._port) as client:
                    await client.subscribe("hanse/v1/sites/+/jobs", 1)
                    await client.subscribe("hanse/v1/sites/+/presence", 1)
                    async for message in client.messages:
                        self._read(message)
            await asyncio.sleep(0.1)

    def _read(self, message: aiomqtt.Message) -> None:
        payload = message.payload
        content = json.loads(payload) if payload else {}
        self.events += len(content.get("events", ()))
        if "state" in content:
            self.online[str(content["site"])] = content["state"] == "online"


async def ordeal(
    plan: Plan, folder: Path, sockets: Path, tell: Callable[[int], None] | None = None
) -> Outcome:
    """Replays under faults and judges.

    The folders must be empty, that of `sockets` with a short path; `tell` gets the number of arrived jobs now and
    then.
    """
    outcome = Outcome()
    tables, counts = workloads(plan), outcome.counts
    async with AsyncExitStack() as stack:
        broker = await _broker(stack, folder, outcome)
        disk = _disk(stack, folder, outcome)
        lines: dict[tuple[str, str], Line] = {}

        async def amend(documents: dict[str, dict[str, Any]]) -> None:
            ports = {name: _port(each["listen"]["partners"]) for name, each in documents.items()}
            for name, each in documents.items():
                each["limits"]["offer_timeout_s"] = 1.0
                for partner in each["partners"]:
                    line = await stack.enter_async_context(Line(ports[partner["name"]]))
                    lines[name, partner["name"]] = line
                    partner["address"] = f"127.0.0.1:{line.port}"
                if broker is not None:
                    each["mqtt"] = {"address": f"127.0.0.1:{broker.port}"}
            if disk is not None:
                name = list(documents)[-1]
                documents[name]["journal"]["path"] = str(disk.folder / f"{name}.journal")

        spec = parse_spec(_scenario().encode(), folder=folder, shown="faults.toml")
        settings = LiveSettings(folder, sockets, survives=plan.survives)
        async with daemons(spec, settings, amend) as processes:
            coordinator = Coordinator(
                processes,
                tables,
                [MachineInfo(name, size) for name, size in SITES.items()],
                replay_id=f"faults-{plan.seed}",
                may_restart=True,
            )
            faults = Faults(
                plan,
                counts,
                processes,
                lines=lines,
                broker=broker,
                disk=disk,
                arrived=lambda: coordinator.arrived,
            )
            async with asyncio.TaskGroup() as group:
                watcher = Watcher(broker.port) if broker is not None else None
                reading = None if watcher is None else group.create_task(watcher.run(), name="mqtt")
                breaking = group.create_task(faults.run(), name="faults")
                done = await coordinator.conduct(tell)
                await breaking
                for process in processes:
                    # The coordinator restarts no daemon any more.
                    if not process.pid:
                        await process.start()
                await _well(processes, watcher, outcome)
                if reading is not None:
                    reading.cancel()
        outcome.elapsed_s = done.elapsed_s
        counts["arrivals"], counts["restarts"] = coordinator.arrived, done.restarts
        counts["starts"] = sum(process.starts for process in processes)
        if watcher is not None:
            counts["telemetry_events_seen"] = watcher.events
        _judge(outcome, folder, disk, coordinator.places, tables)
        _judge_starts(outcome, processes)
    return outcome


def _scenario() -> str:
    text = 'name = "faults"\n'
    for name, processors in SITES.items():
        text += (
            f'[[sites]]\nname = "{name}"\nprocessors = {processors}\ndiscipline = "fcfs"\n'
            'workload = { model = "lublin", jobs = 0 }\ntransfer = { default = "awf" }\n'
        )
    return text


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


async def _broker(stack: AsyncExitStack, folder: Path, outcome: Outcome) -> MqttBroker | None:
    program = mosquitto_path()
    if program is None:
        outcome.left_out.append("the MQTT broker's end: mosquitto is not installed")
        return None
    broker = MqttBroker(program, free_ports(1)[0], folder)
    stack.push_async_callback(broker.stop)
    await broker.start()
    return broker


def _disk(stack: AsyncExitStack, folder: Path, outcome: Outcome) -> SmallDisk | None:
    place = folder / "disk"
    place.mkdir()
    try:
        disk = SmallDisk(place, DISK_BYTES)
    except DiskError as error:
        outcome.left_out.append(f"the full disk: {error}")
        return None
    stack.callback(disk.close)
    return disk


async def _well(
    processes: Sequence[SiteProcess], watcher: Watcher | None, outcome: Outcome
) -> None:
    """Records daemons that have not recovered some time after the last fault."""
    for process in processes:
        async with Client(process.socket, timeout_s=10.0) as client:
            try:
                async with asyncio.timeout(CALM_S):
                    while True:
                        status = await client.status()
                        partners = await client.partners()
                        telemetry = watcher is None or status.telemetry_connected
                        if telemetry and all(partner.reachable for partner in partners):
                            break
                        await asyncio.sleep(0.1)
            except (TimeoutError, SiteError) as error:
                outcome.problems.append(f"{process.name} is not well after the faults: {error!r}")
    if watcher is not None:
        names = {process.name for process in processes}
        if not await until(lambda: {n for n, on in watcher.online.items() if on} == names, CALM_S):
            outcome.problems.append(f"presence says {watcher.online}")


def _judge(
    outcome: Outcome,
    folder: Path,
    disk: SmallDisk | None,
    places: Sequence[Sequence[str]],
    tables: Sequence[JobTable],
) -> None:
    """Compares the journals with what was acknowledged."""
    journals, epochs = {}, {}
    for name in SITES:
        path = folder / f"{name}.journal"
        if not path.exists():
            assert disk is not None
            path = disk.folder / path.name
        with Journal(path, name) as journal:
            journals[name], epochs[name] = list(journal.records()), journal.epoch
            outcome.counts[f"journal_{name}_bytes"] = journal.size_bytes
    verdict: Verdict = Federation(journals, epochs, SITES).verdict()
    outcome.problems += verdict.problems
    outcome.counts.update(verdict.counts)
    for name, acknowledged, table in zip(SITES, places, tables, strict=True):
        if len(acknowledged) != len(table):
            outcome.problems.append(f"{name}: {len(acknowledged)} of {len(table)} acknowledged")
        for row, place in enumerate(acknowledged):
            found = verdict.places.get((name, str(row)), "nowhere")
            if found != place:
                outcome.problems.append(f"{name}: row {row} was said to be at {place}, ran {found}")
    if outcome.counts["jobs"] != sum(map(len, tables)):
        outcome.problems.append(f"{outcome.counts['jobs']} jobs were taken")


def _judge_starts(outcome: Outcome, processes: Sequence[SiteProcess]) -> None:
    """Records silent failures to start; killed daemons may be silent."""
    unexplained = 0
    for process in processes:
        lines = process.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        served = sum('"event": "serving"' in line for line in lines)
        said = sum("the disk is full" in line and not line.startswith("{") for line in lines)
        outcome.counts["starts_refused_with_reason"] += said
        unexplained += process.starts - served - said
        for number, line in enumerate(lines):
            if "Traceback" in line:
                story = " / ".join(lines[number : number + 40])
                outcome.problems.append(f"{process.name} wrote: {story:.4000}")
    if unexplained > outcome.counts["kills_while_starting"]:
        outcome.problems.append(f"{unexplained} starts came to nothing without a word")


def run(plan: Plan, folder: Path, tell: Callable[[int], None] | None = None) -> Outcome:
    """Replays under faults and judges; `folder` must be empty, `tell` gets the arrived jobs now and then."""
    with tempfile.TemporaryDirectory(prefix="hanse-") as sockets:
        return asyncio.run(ordeal(plan, folder, Path(sockets), tell))


def main() -> int:
    """Runs what was asked for, and says what came of it."""
    parser = options_of(__doc__)
    for name, value in asdict(Plan()).items():
        if isinstance(value, int):
            parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    parser.add_argument("--survives", choices=("power_loss", "crash"), default="power_loss")
    parser.add_argument("--keep", type=Path, help="keep logs and journals in this new folder")
    parser.add_argument("--dry", action="store_true", help="do not write figures-faults.json")
    arguments = vars(parser.parse_args())
    keep, dry = arguments.pop("keep"), arguments.pop("dry")
    plan = Plan(**arguments)
    folder = Path(tempfile.mkdtemp(prefix="hanse-faults-")) if keep is None else keep
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    # Leaves nothing behind, however it is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        outcome = run(plan, folder, lambda rows: print(rows, end=" ", file=sys.stderr, flush=True))
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    figures = {
        "plan": asdict(plan),
        **dict(sorted(outcome.counts.items())),
        "left_out": outcome.left_out,
        "problems": len(outcome.problems),
        "replay_s": round(outcome.elapsed_s, 1),
        "seconds": round(time.perf_counter() - begin, 1),
    }
    print(json.dumps(figures, indent=1))
    for problem in outcome.problems[:50]:
        print(problem)
    if not dry:
        document = {"machine": machine(), "figures": figures}
        keep(FIGURES, document)
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
