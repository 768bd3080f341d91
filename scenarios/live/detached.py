"""Leaves the daemons of a scenario running, to play with, and ends them."""

import asyncio
import json
import os
import signal
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from broker.client import BrokerClient
from grms.client import SyncClient
from grms.daemon.ports import free_ports
from grms.daemon.socket_folder import SocketFolder, is_held, remove
from lrms_sim.cli.interrupts import run_interruptible
from scenarios.live.brokers import BROKER, broker_document, until_known
from scenarios.live.daemons import until_linked
from scenarios.live.folder import STATE, Federation, claimed, daemons_in, federation_in
from scenarios.live.sites import LiveSettings, SiteProcess, site_documents, stop_all
from scenarios.spec.spec import ScenarioSpec
from scenarios.util.errors import LiveError

STOP_TIMEOUT_S: Final = 30.0


def up(
    spec: ScenarioSpec, folder: Path, *, speed: float = 1.0, origin: float = 0.0
) -> dict[str, Path]:
    """Starts the daemons of a scenario and leaves them running, each with its dashboard.

    Workloads and workflows of `spec` are not used; with a broker, it is started too, and sites
    offer what it can reserve. `speed` is in seconds of the sites' clock per real one, 1 for real
    time; `origin` is when a faster clock shows 0, seconds since 1970. Returns the sockets by site,
    in the scenario's order, and last the broker's.

    Raises:
        LiveError: a daemon does not serve, cannot do what the scenario wants, a federation runs
            there already, or the folder has files that no federation has left.
    """
    names = [site.name for site in spec.sites] + ([] if spec.broker is None else [BROKER])
    with claimed(folder, names):
        sockets = SocketFolder()
        sockets.share()
        # It is there before the first daemon, so that `down` finds them however this one ends.
        state = {"folder": str(folder.resolve()), "sockets": str(sockets.path)}
        (folder / STATE).write_text(json.dumps(state), encoding="utf-8")
        try:
            processes = run_interruptible(_start(spec, folder, sockets.path, speed, origin))
        except BaseException:
            if daemons_in(folder):
                # Not even their end was waited for.
                sockets.leave()
            else:
                (folder / STATE).unlink(missing_ok=True)
                sockets.close()
            raise
        sockets.leave()
        return {process.name: process.socket for process in processes}


async def _start(
    spec: ScenarioSpec, folder: Path, sockets: Path, speed: float, origin: float
) -> list[SiteProcess]:
    count = len(spec.sites)
    ports = free_ports(2 * count + 1)
    settings = LiveSettings(
        folder,
        sockets,
        "wall" if speed == 1.0 else "scaled",
        speed,
        origin,
        survives="power_loss",
        dashboards=tuple(ports[count:-1]) if has_dashboards() else (),
        reserves=spec.broker is not None,
    )
    documents = site_documents(spec, settings, ports[:count])
    processes = [SiteProcess(site.name, folder, sockets) for site in spec.sites]
    broker = []
    if spec.broker is not None:
        page = ports[-1] if settings.dashboards else None
        documents[BROKER] = broker_document(spec, settings, page)
        broker = [SiteProcess(BROKER, folder, sockets, "broker.command")]
    try:
        for process in processes + broker:
            process.configure(documents[process.name])
        # At one time: the broker finds its sites when they serve.
        starts = [process.start(detached=True) for process in processes]
        starts += [_start_at(process, origin) for process in broker]
        await asyncio.gather(*starts)
        await asyncio.gather(*(until_linked(process) for process in processes))
        for process in broker:
            await until_known(spec, process.socket)
    except BaseException:
        await stop_all(processes + broker)
        raise
    return processes + broker


async def _start_at(process: SiteProcess, origin: float) -> None:
    # A broker refuses a clock that does not show 0 yet.
    await asyncio.sleep(max(0.0, origin - time.time()))
    await process.start(detached=True)


def has_dashboards() -> bool:
    """Returns whether daemons can serve pages here: the extra `dashboard` is installed."""
    return all(find_spec(name) is not None for name in ("starlette", "uvicorn"))


def dashboard_link(name: str, socket: Path) -> str:
    """Returns a link to the dashboard of a site, or of `broker`, valid once and for a minute.

    Raises:
        SiteError: the site serves no pages.
        CallError: the broker serves none.
    """
    if name == BROKER:
        with BrokerClient(socket) as broker:
            return broker.open_page().address
    with SyncClient(socket) as site:
        return site.open_pages().address


def down(folder: Path) -> list[str]:
    """Ends the daemons that `up` has left running in a folder; returns those that were still there.

    Another path to the folder will do, as will one it was moved to.

    Raises:
        LiveError: there is no federation there, or a daemon does not end.
    """
    federation = federation_in(folder)
    there = _end_all(folder, federation)
    (folder / STATE).unlink(missing_ok=True)
    remove(federation.sockets)
    return there


def _end_all(folder: Path, federation: Federation) -> list[str]:
    # A daemon that is being started when its starter is killed has neither the command line nor the
    # handlers of one yet. It holds the folder of sockets from its first moment on, as its starter
    # does, so nothing more can come once nobody holds that.
    asked: set[tuple[str, int]] = set()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while True:
        held = is_held(federation.sockets)
        there = daemons_in(federation.place)
        for name, pid in sorted(there.items() - asked):
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise LiveError(f"the daemon of {name} in {folder} is another user's") from error
            asked.add((name, pid))
        if not there and not held:
            return sorted({name for name, _ in asked})
        if time.monotonic() > deadline:
            whose = f"the daemon of {min(there)}" if there else "the start of the federation"
            raise LiveError(f"{whose} in {folder} does not end; see the logs there")
        time.sleep(0.02)
