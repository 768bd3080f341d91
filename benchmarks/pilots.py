"""Measures how many tiny programs a second run in one pilot of eight processors, and what that costs the site.

    python -m benchmarks.pilots              writes figures-pilots.json
    python -m benchmarks.pilots --dry        does not

A Slurm cluster of one node, a site whose journal survives a loss of power, and a client as the broker is one: it
reserves a processor, launches `true` there, and when the site has told its end it does the next, on each of the eight
processors. So each program has two durable answers, its start and its end are durable before they are told, and its
folder has streams and its exit code. Beside it: the same programs handed to the pilot's agent at once, without a site
between (what the pilot itself could do), and as ordinary jobs of `sbatch`, one each.
"""

import asyncio
import base64
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import structlog
from grpc import aio

from benchmarks.frame import keep, machine, options_of
from grms.daemon.ports import free_port
from grms.site.pilots import agent
from grms.site.pilots.hub import Hub, PilotTerms
from grms.site.pilots.messages import Hello, RunTold
from grms.util.names import Endpoint
from grms.v1 import request_pb2, reservation_pb2, reservation_pb2_grpc
from scenarios.live.sites import SiteProcess
from tests.clusters.slurm import SlurmCluster

FIGURES: Final = Path(__file__).with_name("figures-pilots.json")
PROCESSORS: Final = 8
SCRIPT: Final = "#!/bin/sh\ntrue\n"
LENGTH_S: Final = 60.0
"""Of a reservation; what a program does not use is free again when its end is told."""


# --- through a site ------------------------------------------------------------------------------


class _Owner:
    # Reserves, launches, and waits for ends.

    def __init__(self, channel: aio.Channel) -> None:
        self.stub: Any = reservation_pb2_grpc.ReservationServiceStub(channel)
        self._ends: dict[str, asyncio.Future[reservation_pb2.Reservation]] = {}

    async def watch(self) -> None:
        async for one in self.stub.Watch(reservation_pb2.WatchReservationsRequest()):
            if one.state == reservation_pb2.RESERVATION_STATE_ENDED:
                self._end(one.reservation_id).set_result(one)

    def _end(self, name: str) -> "asyncio.Future[reservation_pb2.Reservation]":
        if name not in self._ends:
            self._ends[name] = asyncio.get_running_loop().create_future()
        return self._ends[name]

    async def opened(self) -> None:
        now = time.time()
        window = reservation_pb2.Window(begin_s=now, end_s=now + LENGTH_S)
        request = reservation_pb2.ResourceOfferRequest(window=window, wanted=True)
        while not (await self.stub.Offer(request)).offers[0].free:  # noqa: ASYNC110  # as said below
            await asyncio.sleep(0.1)  # sites tell no changes of what is free

    async def run(self, key: str) -> reservation_pb2.Reservation:
        now = time.time()
        book = reservation_pb2.BookRequest(
            idempotency_key=key,
            resource_id="pool",
            window=reservation_pb2.Window(begin_s=now, end_s=now + LENGTH_S),
            processors=1,
        )
        name = (await self.stub.Book(book)).reservation_id
        launch = reservation_pb2.LaunchRequest(
            idempotency_key=key, reservation_id=name, to_the_end=True
        )
        launch.job.processors, launch.job.requested_time_s = 1, LENGTH_S
        launch.job.program.CopyFrom(request_pb2.Program(script=SCRIPT))
        await self.stub.Launch(launch)
        end = await self._end(name)
        del self._ends[name]
        return end


async def through_a_site(
    cluster: SlurmCluster, folder: Path, sockets: Path, programs: int
) -> dict[str, Any]:
    """Returns the figures of programs that a client has run in reservations of a site."""
    process = SiteProcess("bench", folder, sockets)
    process.configure(
        {
            "name": "bench",
            "processors": PROCESSORS,
            "listen": {"users": str(sockets / "bench.sock")},
            "journal": {"path": str(folder / "bench.journal"), "survives": "power_loss"},
            "mqtt": {"enabled": False},
            "logging": {"format": "json"},
            "lrms": {
                "kind": "slurm",
                "spool": str(folder / "spool"),
                "configuration": cluster.environment["SLURM_CONF"],
                "completion_log": cluster.completion_log,
                "settle_s": 0.0,
            },
            "pilots": {"listen": f"127.0.0.1:{free_port()}"},
            "resources": [
                {
                    "resource_id": "pool",
                    "processors": PROCESSORS,
                    "pilot": {"wall_time": "1h"},
                }
            ],
        }
    )
    await process.start()
    try:
        async with aio.insecure_channel(f"unix:{process.socket}") as channel:
            owner = _Owner(channel)
            watching = asyncio.create_task(owner.watch())
            await owner.opened()
            await asyncio.gather(*(owner.run(f"warm {n}") for n in range(PROCESSORS)))
            left, codes, latencies = iter(range(programs)), [], []

            async def lane() -> None:
                for number in left:
                    began = time.perf_counter()
                    end = await owner.run(f"run {number}")
                    latencies.append(time.perf_counter() - began)
                    codes.append((end.outcome, end.exit_code))

            began = time.perf_counter()
            await asyncio.gather(*(lane() for _ in range(PROCESSORS)))
            seconds = time.perf_counter() - began
            watching.cancel()
    finally:
        await process.kill()
    latencies.sort()
    good = codes.count((request_pb2.OUTCOME_COMPLETED, 0))
    return {
        "programs": programs,
        "completed": good,
        "per_s": round(programs / seconds, 1),
        "p50_ms": round(1000 * latencies[len(latencies) // 2], 1),
        "p99_ms": round(1000 * latencies[int(len(latencies) * 0.99)], 1),
        "folders": len(list((folder / "spool/.runs").glob("bench+*"))) - PROCESSORS,
    }


# --- the agent alone -----------------------------------------------------------------------------


class _Counts:
    # Hears an agent, and counts ends.

    def __init__(self, wanted: int) -> None:
        self.there, self.all = asyncio.Event(), asyncio.Event()
        self._wanted, self.good, self.ends = wanted, 0, 0

    def connected(self, _pilot: str, _hello: Hello) -> None:
        self.there.set()

    def told(self, _pilot: str, runs: list[RunTold]) -> None:
        for run in runs:
            if run.state == "ended":
                self.ends += 1
                self.good += run.code == 0
        if self.ends >= self._wanted:
            self.all.set()

    def used(self, _pilot: str, _processor_s: float) -> None: ...

    def draining(self, _pilot: str, _why: str) -> None: ...

    def leaves(self, _pilot: str) -> None: ...

    def parted(self, _pilot: str) -> None: ...


async def agent_alone(folder: Path, programs: int) -> dict[str, Any]:
    """Returns the figures of programs that are all handed to an agent at once."""
    log = structlog.wrap_logger(None, processors=[_quiet])
    hub, counts = Hub(folder / "pilots", time.time, log), _Counts(programs)
    await hub.open(Endpoint("127.0.0.1", 0), "127.0.0.1", counts)
    hub.admit("p-1", PilotTerms(PROCESSORS, 3600.0, 10.0, 0.0, 5.0))
    words = [sys.executable, agent.__file__, str(hub.place("p-1"))]
    process = await asyncio.create_subprocess_exec(*words)
    await counts.there.wait()
    texts = [("values", 'set -- "$1/program"\n', 0o400), ("program", SCRIPT, 0o500)]
    files = [[name, base64.b64encode(text.encode()).decode(), mode] for name, text, mode in texts]
    now = time.time()
    common = {"processors": 1, "begin": now, "until": now + 3600.0, "limit": 600.0, "files": files}
    began = time.perf_counter()
    for number in range(programs):
        name = f"run{number}"
        hub.send("p-1", runs=[{**common, "run": name, "folder": str(folder / name)}])
    await counts.all.wait()
    seconds = time.perf_counter() - began
    process.terminate()
    hub.let_go("p-1")
    await process.wait()
    await hub.close()
    return {"programs": programs, "completed": counts.good, "per_s": round(programs / seconds, 1)}


def _quiet(_logger: Any, _method: str, _event: Any) -> Any:
    raise structlog.DropEvent


# --- jobs of their own ---------------------------------------------------------------------------


def jobs_of_their_own(cluster: SlurmCluster, folder: Path, programs: int) -> dict[str, Any]:
    """Returns the figures of the same programs as jobs of sbatch."""
    script = folder / "job.sh"
    script.write_text(SCRIPT)
    words = ["/usr/bin/sbatch", "--parsable", "--output=/dev/null", str(script)]
    environment = {**os.environ, **cluster.environment}
    began = time.perf_counter()
    for _ in range(programs):
        subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
    while cluster.ask("squeue", "-h", "-o", "%i").strip():
        time.sleep(0.1)
    seconds = time.perf_counter() - began
    return {"programs": programs, "per_s": round(programs / seconds, 1)}


def measured(programs: int) -> dict[str, Any]:
    """Returns all figures."""
    figures: dict[str, Any] = {"load_average": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory(
        prefix="hanse-", dir="/tmp"
    ) as place:  # sockets have short paths
        folder = Path(place)
        cluster = SlurmCluster(folder / "cluster", nodes=1, cpus=PROCESSORS)
        cluster.up()
        try:
            steps: dict[str, Callable[[], Any]] = {
                "through_a_site": lambda: asyncio.run(
                    through_a_site(cluster, _made(folder / "site"), folder, programs)
                ),
                "agent_alone": lambda: asyncio.run(agent_alone(_made(folder / "agent"), programs)),
                "jobs_of_their_own": lambda: jobs_of_their_own(
                    cluster, folder, max(20, programs // 20)
                ),
            }
            for name, step in steps.items():
                figures[name] = step()
                if pilots := cluster.ask("squeue", "-h", "-o", "%i").split():
                    cluster.ask("scancel", *pilots)
                print(name, json.dumps(figures[name]), flush=True)
        finally:
            cluster.down()
    figures["largest_child_mib"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return figures


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def main() -> None:
    """Measures, and writes the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--programs", type=int, default=2000, help="how many (%(default)s)")
    parser.add_argument("--dry", action="store_true", help="do not write figures-pilots.json")
    given = parser.parse_args()
    figures = measured(given.programs)
    if not given.dry:
        document = {"machine": machine(), "figures": figures}
        keep(FIGURES, document)


if __name__ == "__main__":
    main()
