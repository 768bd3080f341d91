"""Measures one site daemon under load: submissions a second, and decisions while partners are dead.

    python -m benchmarks.load              writes figures-load.json
    python -m benchmarks.load --dry        does not

Submissions: users submit over the socket to a daemon whose journal survives a power failure; each
is answered when its job is on the disk. First at 300 a second, whatever the daemon does (a latency
counts from the moment at which the submission was due), then as fast as they are answered, 64 at a
time. Then the daemon is killed, and its journal has to have every job that was acknowledged.

Decisions: a daemon with 64 partners, of which 8 are dead and come first in its order: four refuse
connections, four take them and never say a word. The machine is full, so for every job partners
are asked until one accepts. A decision takes from the submission to the moment at which the job is
somewhere. Then four more fall silent while they are asked: what was offered to them at that moment
stays open until they are back, as nobody else can know whether they have it; all others are
decided, and those too when they are back.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from grpc import aio

from benchmarks.frame import keep, machine, options_of
from grms.client import Client, JobState
from grms.daemon.ports import free_ports
from grms.site.model.records import JobReceived
from grms.site.runtime.journal import Journal
from grms.v1 import partner_pb2, partner_pb2_grpc
from scenarios.live.sites import SiteProcess

FIGURES: Final = Path(__file__).with_name("figures-load.json")
RATE_PER_S: Final = 300.0
AT_ONE_TIME: Final = 64
PARTNERS: Final = 64
DEAD: Final = 8
DEADLINE_S: Final = 5.0
"""`limits.decision_timeout_s` of the daemon with the dead partners."""

DECIDED: Final = (
    JobState.SUBMITTING,
    JobState.QUEUED,
    JobState.RUNNING,
    JobState.DELEGATED,
    JobState.ENDED,
)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Returns the distribution of seconds, in thousandths; nothing of nothing."""
    if not values:
        return {}
    points = {"p50": 50, "p90": 90, "p99": 99, "most": 100}
    return {
        "least": round(min(values) * 1000, 1),
        **{name: round(float(np.percentile(values, p)) * 1000, 1) for name, p in points.items()},
    }


def document(name: str, folder: Path, sockets: Path, **more: Any) -> dict[str, Any]:
    """Returns a site's configuration, with a journal that survives a power failure."""
    return {
        "name": name,
        "processors": 512,
        "listen": {"users": str(sockets / f"{name}.sock")},
        "journal": {"path": str(folder / f"{name}.journal"), "survives": "power_loss"},
        "mqtt": {"enabled": False},
        "logging": {"format": "json"},
        **more,
    }


# --- submissions ---------------------------------------------------------------------------------


async def submissions(folder: Path, sockets: Path, seconds: float) -> dict[str, Any]:
    """Returns the figures of submissions to one daemon."""
    process = SiteProcess("load", folder, sockets)
    # Unlimited: a fast machine accepts more than the default 20,000 open jobs per user.
    limits = {"submissions_per_s": 1e6, "open_jobs": 10**6, "open_jobs_per_user": 10**6}
    process.configure(document("load", folder, sockets, limits=limits))
    await process.start()
    try:
        async with Client(process.socket, timeout_s=60.0) as client:
            await asyncio.gather(*(_submit(client, f"warm {n}") for n in range(200)))
            steady, kept = await _steady(client, seconds)
            closed, more, taken = await _as_fast_as_answered(client, seconds)
        acknowledged = {*kept, *more}
    finally:
        await process.kill()
    with Journal(folder / "load.journal", "load") as journal:
        found = {
            f"load-{record.job}" for record in journal.records() if isinstance(record, JobReceived)
        }
    return {
        "steady_per_s": RATE_PER_S,
        "steady_submissions": len(kept),
        "steady_latency_ms": spread(steady),
        "closed_per_s": round(len(closed) / taken, 1),
        "closed_at_one_time": AT_ONE_TIME,
        "closed_latency_ms": spread(closed),
        "acknowledged": len(acknowledged),
        "acknowledged_and_lost": len(acknowledged - found),
    }


async def _submit(client: Client, key: str) -> str:
    job = await client.submit(processors=1, requested_time_s=60.0, run_time_s=0.5, key=key)
    return job.job_id


async def _steady(client: Client, seconds: float) -> tuple[list[float], list[str]]:
    latencies: list[float] = []
    kept: list[str] = []
    begin = time.perf_counter()

    async def one(number: int, due: float) -> None:
        kept.append(await _submit(client, f"steady {number}"))
        latencies.append(time.perf_counter() - due)

    async with asyncio.TaskGroup() as group:
        for number in range(int(seconds * RATE_PER_S)):
            due = begin + number / RATE_PER_S
            if (pause := due - time.perf_counter()) > 0:
                await asyncio.sleep(pause)
            group.create_task(one(number, due), name=f"submission {number}")
    return latencies, kept


async def _as_fast_as_answered(
    client: Client, seconds: float
) -> tuple[list[float], list[str], float]:
    latencies: list[float] = []
    kept: list[str] = []
    begin = time.perf_counter()

    async def user(who: int) -> None:
        number = 0
        while time.perf_counter() - begin < seconds:
            due = time.perf_counter()
            kept.append(await _submit(client, f"user {who} {number}"))
            latencies.append(time.perf_counter() - due)
            number += 1

    async with asyncio.TaskGroup() as group:
        for who in range(AT_ONE_TIME):
            group.create_task(user(who), name=f"user {who}")
    return latencies, kept, time.perf_counter() - begin


# --- decisions -----------------------------------------------------------------------------------


class Partner(partner_pb2_grpc.PartnerServiceServicer):
    """A partner that accepts every tenth offer, and may fall silent.

    Four of the partners are silent while `speaking` is not set.
    """

    def __init__(self, name: str, speaking: asyncio.Event) -> None:
        self._name = name
        self._speaking = speaking
        self._offers = 0
        self._accepted: set[int] = set()
        self._quiet = name < f"p{DEAD + 4:02d}"

    async def _maybe_silent(self) -> None:
        if self._quiet:
            await self._speaking.wait()

    async def Describe(self, request: Any, context: Any) -> partner_pb2.DescribeResponse:  # noqa: ARG002, N802  # gRPC's
        """Says who it is."""
        await self._maybe_silent()
        return partner_pb2.DescribeResponse(site=self._name, processors=1000, protocol_version=1)

    async def Offer(self, request: Any, context: Any) -> partner_pb2.OfferResponse:  # noqa: ARG002, N802  # gRPC's
        """Answers."""
        await self._maybe_silent()
        self._offers += 1
        accepted = self._offers % 10 == 0
        if accepted:
            self._accepted.add(request.offer.number)
        answer = partner_pb2.ANSWER_ACCEPTED if accepted else partner_pb2.ANSWER_DECLINED
        return partner_pb2.OfferResponse(answer=answer)

    async def Resolve(self, request: Any, context: Any) -> partner_pb2.OfferStatus:  # noqa: ARG002, N802  # gRPC's
        """Knows what it has accepted."""
        await self._maybe_silent()
        known = request.offer.number in self._accepted
        state = partner_pb2.OFFER_STATE_ACCEPTED if known else partner_pb2.OFFER_STATE_UNKNOWN
        return partner_pb2.OfferStatus(state=state)

    async def Withdraw(self, request: Any, context: Any) -> partner_pb2.OfferStatus:  # noqa: ARG002, N802  # gRPC's
        """Takes note."""
        await self._maybe_silent()
        return partner_pb2.OfferStatus(state=partner_pb2.OFFER_STATE_WITHDRAWN)

    async def Report(self, request: Any, context: Any) -> partner_pb2.ReportResponse:  # noqa: ARG002, N802  # gRPC's
        """Takes note."""
        return partner_pb2.ReportResponse()


async def play_partners(ports: Sequence[int]) -> None:
    """Runs all partners except the dead ones.

    A line on standard input silences four of them, another one restores them.
    """
    speaking = asyncio.Event()
    speaking.set()
    async with AsyncExitStack() as stack:
        for number in range(4, DEAD):
            server = await asyncio.start_server(_say_nothing, "127.0.0.1", ports[number])
            stack.callback(server.close)
        for number in range(DEAD, PARTNERS):
            served = aio.server()
            partner_pb2_grpc.add_PartnerServiceServicer_to_server(
                Partner(f"p{number:02d}", speaking),  # type: ignore[abstract]  # no job of a measurement leaves files
                served,
            )
            served.add_insecure_port(f"127.0.0.1:{ports[number]}")
            await served.start()
            stack.push_async_callback(served.stop, None)
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            (speaking.clear if speaking.is_set() else speaking.set)()
            print("as told", flush=True)


async def _say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(4096):
        pass
    writer.close()


@dataclass(slots=True)
class Decisions:
    """Seconds from submission to decision, and the number of undecided jobs."""

    taken: list[float]
    open: int


async def decisions(folder: Path, sockets: Path, jobs: int) -> dict[str, Any]:
    """Returns the figures of decisions with dead partners."""
    ports = free_ports(PARTNERS + 1)
    names = [f"p{number:02d}" for number in range(PARTNERS)]
    partners = [
        {"name": name, "address": f"127.0.0.1:{port}"}
        for name, port in zip(names, ports, strict=False)
    ]
    settings = document(
        "home",
        folder,
        sockets,
        location=names,
        partners=partners,
        limits={"decision_timeout_s": DEADLINE_S, "offer_timeout_s": 1.0},
    )
    settings["listen"]["partners"] = f"127.0.0.1:{ports[PARTNERS]}"
    others = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.load",
        "--partners",
        ",".join(map(str, ports[:PARTNERS])),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert others.stdin is not None
    assert others.stdout is not None
    process = SiteProcess("home", folder, sockets)
    process.configure(settings)
    try:
        await others.stdout.readline()
        await process.start()
        async with Client(process.socket, timeout_s=60.0) as client:
            await _until_reachable(client, PARTNERS - DEAD)
            await client.submit(processors=512, requested_time_s=1e6, run_time_s=1e6)
            with_dead = await _decided(client, "dead", jobs)
            others.stdin.write(b"\n")
            await others.stdout.readline()
            dying = await _decided(client, "dying", jobs)
            others.stdin.write(b"\n")
            await others.stdout.readline()
            begin = time.perf_counter()
            async with asyncio.timeout(60.0):
                await _until_none_is_open(client)
            back = time.perf_counter() - begin
    finally:
        await process.kill()
        others.kill()
        await others.wait()
    return {
        "partners": PARTNERS,
        "dead": DEAD,
        "deadline_s": DEADLINE_S,
        "decided": len(with_dead.taken),
        "undecided": with_dead.open,
        "decision_ms": spread(with_dead.taken),
        "later_than_deadline": sum(taken > DEADLINE_S for taken in with_dead.taken),
        "dying_partners": 4,
        "dying_decided": len(dying.taken),
        "dying_open_as_offered_to_them": dying.open,
        "dying_all_decided_after_their_return_s": round(back, 1),
        "dying_decision_ms": spread(dying.taken),
        "dying_later_than_deadline": sum(taken > DEADLINE_S for taken in dying.taken),
    }


async def _until_reachable(client: Client, count: int) -> None:
    while True:
        if sum(partner.reachable for partner in await client.partners()) >= count:
            return
        await asyncio.sleep(0.05)


async def _until_none_is_open(client: Client) -> None:
    while True:
        if all([job.state in DECIDED async for job in client.jobs(all_users=True)]):
            return
        await asyncio.sleep(0.1)


async def _decided(client: Client, what: str, jobs: int) -> Decisions:
    taken: list[float] = []

    async def one(number: int) -> None:
        begin = time.perf_counter()
        job = await client.submit(
            processors=1, requested_time_s=60.0, run_time_s=1.0, key=f"{what} {number}"
        )
        async for each in client.watch(job.job_id):
            if each.state in DECIDED:
                taken.append(time.perf_counter() - begin)
                return

    async with asyncio.TaskGroup() as group:
        tasks = []
        for number in range(jobs):
            tasks.append(group.create_task(one(number), name=f"{what} {number}"))
            await asyncio.sleep(0.05)
        await asyncio.wait(tasks, timeout=4 * DEADLINE_S)
        for task in tasks:
            task.cancel()
    return Decisions(taken, jobs - len(taken))


async def measure(folder: Path, sockets: Path, seconds: float, jobs: int) -> dict[str, Any]:
    """Returns all figures, with what else the machine was doing when they were begun."""
    return {
        "load_average": round(os.getloadavg()[0], 1),
        "submissions": await submissions(folder, sockets, seconds),
        "decisions": await decisions(folder, sockets, jobs),
    }


def main() -> int:
    """Measures, and says what came of it."""
    parser = options_of(__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each kind of submissions")
    parser.add_argument("--jobs", type=int, default=300, help="decisions, before and after")
    parser.add_argument("--dry", action="store_true", help="do not write figures-load.json")
    parser.add_argument("--partners", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.partners:
        asyncio.run(play_partners([int(port) for port in arguments.partners.split(",")]))
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="hanse-load-") as folder,
        tempfile.TemporaryDirectory(prefix="hanse-") as sockets,
    ):
        figures = asyncio.run(
            measure(Path(folder), Path(sockets), arguments.seconds, arguments.jobs)
        )
    print(json.dumps(figures, indent=1))
    if not arguments.dry:
        document_ = {"machine": machine(), "figures": figures}
        keep(FIGURES, document_)
    lost, late = figures["submissions"], figures["decisions"]
    return 1 if lost["acknowledged_and_lost"] or late["later_than_deadline"] else 0


if __name__ == "__main__":
    sys.exit(main())
