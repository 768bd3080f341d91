"""Starts the daemons of a scenario for as long as somebody needs them."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from grpc import aio

from grms.daemon.ports import free_ports
from grms.v1 import operator_pb2, operator_pb2_grpc
from scenarios.live.sites import LiveSettings, SiteProcess, site_documents, stop_all
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError

LINK_TIMEOUT_S: Final = 60.0
"""Time for daemons to find each other."""


async def until_linked(process: SiteProcess) -> None:
    """Waits until a daemon can reach all its partners.

    Raises:
        LiveError: it has ended, or cannot reach them in time.
    """
    deadline = time.monotonic() + LINK_TIMEOUT_S
    async with aio.insecure_channel(process.users_address) as channel:
        stub: Any = operator_pb2_grpc.OperatorServiceStub(channel)
        while True:
            try:
                answer = await stub.Partners(operator_pb2.PartnersRequest(), timeout=10)
            except aio.AioRpcError:
                answer = None
            if answer is not None and all(partner.reachable for partner in answer.partners):
                return
            if not process.pid:
                raise LiveError(f"the daemon of {process.name} has ended; see {process.log_path}")
            if time.monotonic() > deadline:
                raise LiveError(
                    f"the daemon of {process.name} does not reach its partners after "
                    f"{LINK_TIMEOUT_S:g} s; see {process.log_path}"
                )
            await asyncio.sleep(0.05)


@asynccontextmanager
async def daemons(
    spec: ScenarioSpec,
    settings: LiveSettings,
    amend: Callable[[dict[str, dict[str, Any]]], Awaitable[None]] | None = None,
) -> AsyncIterator[list[SiteProcess]]:
    """Yields the serving daemons of a scenario, and ends them whatever happens.

    The folders of `settings` exist; `amend` changes configurations, by site, before they are
    written.

    Raises:
        LiveError: a daemon does not serve.
    """
    documents = site_documents(spec, settings, free_ports(len(spec.sites)))
    if amend is not None:
        await amend(documents)
    processes = [SiteProcess(site.name, settings.folder, settings.sockets) for site in spec.sites]
    try:
        for process in processes:
            process.configure(documents[process.name])
        await asyncio.gather(*(process.start() for process in processes))
        yield processes
    finally:
        # The end goes on even where it is cancelled once more: nothing is to be left behind.
        await asyncio.shield(asyncio.ensure_future(stop_all(processes)))
