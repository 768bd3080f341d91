"""A site above a batch system whose resource has a pilot, and its reservations as a broker has them."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grpc import aio

from grms.daemon.ports import free_port
from grms.v1 import job_pb2, request_pb2, reservation_pb2, reservation_pb2_grpc, results_pb2
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import SlurmCluster, need_slurm
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.test_real_batch import table
from tests.waiting import TIME_OUT_S, meanwhile

CPUS = 4
RESOURCE = "pool"

Batch = SlurmCluster | FakeSlurm


@asynccontextmanager
async def batch(kind: type[Batch], folder: Path) -> AsyncIterator[Batch]:
    """Runs a batch system of one node."""
    if kind is SlurmCluster:
        need_slurm()
    cluster = kind(folder / "cluster", nodes=1, cpus=CPUS)
    await asyncio.to_thread(cluster.up)
    try:
        yield cluster
    finally:
        await asyncio.to_thread(cluster.down)


def configuration(
    cluster: Batch,
    folder: Path,
    *,
    port: int = 0,
    pilots: dict[str, Any] | None = None,
    **pilot: Any,
) -> dict[str, Any]:
    """Returns the file of a site with one resource of two processors."""
    of_pilot = {"wall_time": "10min", **pilot}
    return document(
        folder,
        "north",
        CPUS,
        lrms=table(cluster, folder / "spool"),
        resources=[{"resource_id": RESOURCE, "processors": 2, "pilot": of_pilot}],
        pilots={
            "listen": f"127.0.0.1:{port or free_port()}",
            "grace_s": 0.5,
            "spare_s": 5.0,
            **(pilots or {}),
        },
    )


class Broker:
    """The reservations of one owner at a site."""

    def __init__(self, channel: aio.Channel, now: Callable[[], float]) -> None:
        self.stub: Any = reservation_pb2_grpc.ReservationServiceStub(channel)
        self.now = now
        self.known: dict[str, reservation_pb2.Reservation] = {}
        self.changed = asyncio.Event()

    async def watch(self) -> None:
        """Keeps what the site tells, until cancelled."""
        request = reservation_pb2.WatchReservationsRequest()
        async for one in self.stub.Watch(request):
            self.known[one.reservation_id] = one
            self.changed.set()

    async def until(self, name: str, state: int) -> reservation_pb2.Reservation:
        """Returns a reservation once the site has told that it is in a state."""
        async with asyncio.timeout(TIME_OUT_S):
            while name not in self.known or self.known[name].state != state:
                self.changed.clear()
                await self.changed.wait()
        return self.known[name]

    async def ended(self, name: str) -> reservation_pb2.Reservation:
        """Returns a reservation once its program has ended."""
        return await self.until(name, reservation_pb2.RESERVATION_STATE_ENDED)

    async def free(self, *, wanted: bool = True) -> list[reservation_pb2.FreeTime]:
        """Returns the free time of the resource within an hour."""
        window = reservation_pb2.Window(begin_s=self.now(), end_s=self.now() + 3600.0)
        request = reservation_pb2.ResourceOfferRequest(window=window, wanted=wanted)
        answer = await self.stub.Offer(request, timeout=TIME_OUT_S)
        return list(answer.offers[0].free)

    async def opened(self) -> None:
        """Returns when there is free time."""
        async with asyncio.timeout(TIME_OUT_S):
            while not await self.free():  # noqa: ASYNC110  # sites tell no changes of what is free
                await asyncio.sleep(0.05)

    async def closed(self) -> None:
        """Returns when there is none."""
        async with asyncio.timeout(TIME_OUT_S):
            while await self.free(wanted=False):  # noqa: ASYNC110  # as above
                await asyncio.sleep(0.05)

    async def book(
        self, key: str, *, begin: float = 0.0, length: float = 60.0, processors: int = 1
    ) -> reservation_pb2.Reservation:
        """Reserves from now on, or `begin` seconds later."""
        start = self.now() + begin
        request = reservation_pb2.BookRequest(
            idempotency_key=key,
            resource_id=RESOURCE,
            window=reservation_pb2.Window(begin_s=start, end_s=start + length),
            processors=processors,
        )
        found: reservation_pb2.Reservation = await self.stub.Book(request, timeout=TIME_OUT_S)
        return found

    async def launch(
        self, name: str, script: str, *, limit: float = 600.0, **more: Any
    ) -> reservation_pb2.Reservation:
        """Launches a shell script in a reservation."""
        request = reservation_pb2.LaunchRequest(
            idempotency_key=f"launch {name}", reservation_id=name, to_the_end=True
        )
        request.job.processors, request.job.requested_time_s = 1, limit
        request.job.program.CopyFrom(request_pb2.Program(script=f"#!/bin/sh\n{script}\n", **more))
        found: reservation_pb2.Reservation = await self.stub.Launch(request, timeout=TIME_OUT_S)
        return found

    async def run(self, key: str, script: str, *, limit: float = 600.0, **more: Any) -> str:
        """Reserves, launches, and returns the reservation's name."""
        name = (await self.book(key)).reservation_id
        await self.launch(name, script, limit=limit, **more)
        return name

    async def give(self, name: str, content: bytes) -> request_pb2.InputFile:
        """Hands a file over."""
        file = request_pb2.InputFile(name=name, size_bytes=len(content))
        file.sha256 = hashlib.sha256(content).digest()
        put = job_pb2.PutInputRequest(file=file, content=content)
        assert (await self.stub.PutInput(put, timeout=TIME_OUT_S)).held_bytes == len(content)
        return file

    async def results(self, name: str) -> results_pb2.ResultList:
        """Returns which files a program has left."""
        request = reservation_pb2.ReservationResultsRequest(reservation_id=name)
        found: results_pb2.ResultList = await self.stub.Results(request, timeout=TIME_OUT_S)
        return found

    async def read(self, name: str, file: str) -> bytes:
        """Returns a file that a program has left."""
        request = reservation_pb2.FetchReservationResultRequest(reservation_id=name, name=file)
        chunks = [chunk.content async for chunk in self.stub.FetchResult(request)]
        return b"".join(chunks)


@asynccontextmanager
async def broker(site: Running) -> AsyncIterator[Broker]:
    """Speaks to a site as one who reserves, and watches."""
    async with aio.insecure_channel(site.users_address) as channel:
        one = Broker(channel, site.core.clock.now)
        async with meanwhile(one.watch()):
            yield one


@asynccontextmanager
async def piloted(
    cluster: Batch, folder: Path, **more: Any
) -> AsyncIterator[tuple[Running, Broker]]:
    """Runs such a site."""
    async with running(configuration(cluster, folder, **more), folder) as site, broker(site) as one:
        yield site, one
