"""Site daemons inside the test's own process, on loopback and in a folder of the test."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from grpc import aio

from grms.client import Client
from grms.daemon.ports import free_port
from grms.site.assembly import Core, build_core
from grms.site.config.load import load_config
from grms.site.daemon import Daemon
from grms.site.model.events import PartnerUp
from grms.site.runtime.journal import Journal
from grms.v1 import (
    job_pb2,
    job_pb2_grpc,
    operator_pb2,
    operator_pb2_grpc,
    partner_pb2_grpc,
)
from lrms_sim.util.files import to_toml
from tests.waiting import TIME_OUT_S


def metrics() -> dict[str, Any]:
    """Returns the part of a configuration that serves figures, on a free port."""
    return {"metrics": {"listen": f"127.0.0.1:{free_port()}"}}


def document(
    folder: Path,
    name: str = "home",
    processors: int = 4,
    partners: Mapping[str, int] | None = None,
    port: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """Returns a configuration.

    Args:
        folder: for socket and journal.
        name: of the site.
        processors: size of its machine.
        partners: ports of the partners, by name.
        port: where partners reach it; none where 0.
        more: further tables and values.
    """
    listen: dict[str, Any] = {"users": str(folder / f"{name}.sock")}
    if port:
        listen["partners"] = f"127.0.0.1:{port}"
    found: dict[str, Any] = {
        "name": name,
        "processors": processors,
        "listen": listen,
        "journal": {"path": str(folder / f"{name}.journal"), "survives": "crash"},
        **more,
    }
    if partners:
        found["partners"] = [
            {"name": partner, "address": f"127.0.0.1:{number}"}
            for partner, number in partners.items()
        ]
    return found


@dataclass
class Running:
    """A daemon that serves.

    Attributes:
        name: of the site.
        daemon: it.
        core: its parts.
        jobs: stub of its users' service.
        operator: stub of its operators' service.
        partner: stub of its partners' service, as a partner without TLS has it.
        users_address: where users reach it.
    """

    name: str
    daemon: Daemon
    core: Core
    jobs: Any
    operator: Any
    partner: Any
    users_address: str

    def user(self) -> Client:
        """Returns a client of its users' socket; a context."""
        return Client(self.users_address.removeprefix("unix:"), timeout_s=TIME_OUT_S)

    async def submit(
        self,
        key: str,
        processors: int = 1,
        requested_time_s: float = 100.0,
        run_time_s: float = 0.05,
        **more: Any,
    ) -> job_pb2.Job:
        """Submits a job."""
        request = job_pb2.SubmitRequest(idempotency_key=key, **more)
        request.request.processors = processors
        request.request.requested_time_s = requested_time_s
        request.request.simulated.run_time_s = run_time_s
        job: job_pb2.Job = await self.jobs.Submit(request, timeout=300)
        return job

    async def ended(self, job_id: str) -> job_pb2.Job:
        """Returns a job once it has ended."""
        last: job_pb2.Job | None = None
        async for job in self.jobs.Watch(job_pb2.WatchRequest(job_id=job_id), timeout=300):
            last = job
        assert last is not None
        assert last.state == job_pb2.JOB_STATE_ENDED
        return last

    def reach(self, partner: str) -> None:
        """Lets a partner that a test plays as a client alone count as one that can be called."""
        engine = self.core.engine
        engine.tell(PartnerUp(*engine.stamp(), partner, 1000))

    async def linked(self) -> None:
        """Returns when every partner can be reached."""
        while True:
            answer = await self.operator.Partners(operator_pb2.PartnersRequest(), timeout=300)
            if all(partner.reachable for partner in answer.partners):
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(configuration: Mapping[str, Any], folder: Path) -> AsyncIterator[Running]:
    """Yields a daemon of that configuration, and ends it in order."""
    name = str(configuration["name"])
    path = folder / f"{name}.toml"
    path.write_text(to_toml(configuration))
    config = load_config(path)
    log = structlog.get_logger().bind(site=name)
    durability: Any = {"power_loss": "power", "crash": "process"}[config.journal.survives]
    with Journal(Path(config.journal.path), name, durability=durability) as journal:
        core = build_core(config, path, journal, log)
        daemon = Daemon(core, path, log)
        task = asyncio.create_task(daemon.run(), name=name)
        ready = asyncio.create_task(daemon.ready.wait(), name=f"{name} ready")
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if task.done():
            await task
        async with AsyncExitStack() as stack:
            users_address = f"unix:{config.listen.users}"
            users = await stack.enter_async_context(aio.insecure_channel(users_address))
            partner = None
            if config.listen.partners is not None and config.tls is None:
                channel = await stack.enter_async_context(
                    aio.insecure_channel(config.listen.partners)
                )
                partner = partner_pb2_grpc.PartnerServiceStub(channel)
            try:
                yield Running(
                    name,
                    daemon,
                    core,
                    job_pb2_grpc.JobServiceStub(users),
                    operator_pb2_grpc.OperatorServiceStub(users),
                    partner,
                    users_address,
                )
            finally:
                daemon.stop()
                await asyncio.wait([task])
        await task


@asynccontextmanager
async def two_sites(
    folder: Path, here: Mapping[str, Any] | None = None, there: Mapping[str, Any] | None = None
) -> AsyncIterator[tuple[Running, Running]]:
    """Yields two daemons of four processors that know each other: home and away."""
    ports = {"home": free_port(), "away": free_port()}
    home = document(
        folder, "home", partners={"away": ports["away"]}, port=ports["home"], **(here or {})
    )
    away = document(
        folder, "away", partners={"home": ports["home"]}, port=ports["away"], **(there or {})
    )
    async with running(home, folder) as first, running(away, folder) as second:
        await first.linked()
        await second.linked()
        yield first, second
