"""Sites above real batch systems: their clusters, and their daemons as processes that can be killed."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from grms.client import Client
from grms.daemon.ports import free_ports
from lrms_sim.util.files import to_toml
from scenarios.prove.line import Line
from tests.clusters.gridengine import GridEngineCluster
from tests.clusters.slurm import SlurmCluster

STARTED_S: Final = 120.0
"""Time-out of a daemon's start, until it answers and reaches batch system and partners."""


class Cluster(Protocol):
    """A batch system whose parts can be killed, as `tests.clusters` has them."""

    def up(self) -> None:
        """Starts everything."""

    def down(self) -> None:
        """Ends everything, jobs included."""

    def kill_controller(self) -> None:
        """Ends the controller without a word."""

    def start_controller(self) -> None:
        """Starts it again, and returns when it answers."""

    def kill_node(self, name: str) -> None:
        """Ends the daemon of a node without a word."""

    def start_node(self, name: str) -> None:
        """Starts it again."""

    @property
    def node_names(self) -> list[str]:
        """The nodes."""


def lrms_table(cluster: Cluster, spool: Path) -> dict[str, Any]:
    """Returns the table `[lrms]` of a running cluster."""
    table: dict[str, Any] = {"spool": str(spool)}
    if isinstance(cluster, SlurmCluster):
        place = cluster.environment["SLURM_CONF"]
        log = cluster.completion_log
        return table | {"kind": "slurm", "configuration": place, "completion_log": log}
    assert isinstance(cluster, GridEngineCluster)
    return table | {
        "kind": "gridengine",
        "programs": cluster.programs,
        "root": str(cluster.folder),
        "master_port": cluster.ports[0],
        "execution_port": cluster.ports[1],
    }


class Daemon:
    """A `grms serve` that can be killed and restarted; its log spans all its lives."""

    def __init__(self, document: Mapping[str, Any], folder: Path) -> None:
        self.name = str(document["name"])
        self.socket = Path(document["listen"]["users"])
        self.log_path = folder / f"{self.name}.log"
        self.metrics_port = int(document["metrics"]["listen"].rpartition(":")[2])
        self._config = folder / f"{self.name}.toml"
        self._config.write_text(to_toml(document))
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts it; clients wait until it answers."""
        with self.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "grms", "serve", str(self._config)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    async def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ends it by a signal, and returns when it has ended; nothing where it does not run."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(number)
            await process.wait()

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yields what it has logged; a line that a kill has cut in two is left out."""
        for line in self.log_path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict):
                    yield entry

    async def well(self) -> None:
        """Waits until it answers, and reaches its batch system and partners; `TimeoutError` if it does not."""
        async with (
            asyncio.timeout(STARTED_S),
            Client(self.socket, timeout_s=STARTED_S) as client,
        ):
            while True:
                status, partners = await client.status(), await client.partners()
                if status.lrms_reachable and all(partner.reachable for partner in partners):
                    return
                await asyncio.sleep(0.1)


@asynccontextmanager
async def daemons(
    folder: Path,
    sockets: Path,
    clusters: Mapping[str, Cluster],
    processors: Mapping[str, int],
    *,
    lrms: Mapping[str, Any],
    partners: Mapping[str, Mapping[str, Any]] | None = None,
    tables: Mapping[str, Mapping[str, Any]] | None = None,
) -> AsyncIterator[tuple[dict[str, Daemon], dict[tuple[str, str], Line]]]:
    """Yields running daemons that know each other, and the lines between them.

    `folder` is for everything, `sockets` has a short path; the mappings are by site: `lrms` has further keys of all
    tables `[lrms]`, `partners` those of each site's entries of its partners (missing sites have none; by default
    all sites are partners), and `tables` further tables of each site's file.
    """
    ports = free_ports(2 * len(clusters))
    doors = dict(zip(clusters, ports, strict=False))
    async with AsyncExitStack() as stack:
        found: dict[str, Daemon] = {}
        lines: dict[tuple[str, str], Line] = {}
        for position, (name, cluster) in enumerate(clusters.items()):
            entries = []
            for other in clusters:
                if other != name and (partners is None or name in partners):
                    line = await stack.enter_async_context(Line(doors[other]))
                    lines[name, other] = line
                    entries.append(
                        {
                            "name": other,
                            "address": f"127.0.0.1:{line.port}",
                            "processors": processors[other],
                            **({} if partners is None else partners[name]),
                        }
                    )
            document = {
                "name": name,
                "processors": processors[name],
                "listen": {
                    "users": str(sockets / f"{name}.sock"),
                    "partners": f"127.0.0.1:{doors[name]}",
                },
                "journal": {"path": str(folder / f"{name}.journal"), "survives": "power_loss"},
                "mqtt": {"enabled": False},
                "metrics": {"listen": f"127.0.0.1:{ports[len(clusters) + position]}"},
                "logging": {"format": "json"},
                "lrms": {**lrms_table(cluster, folder / f"jobs-{name}"), **lrms},
                **({"partners": entries} if entries else {}),
                **({} if tables is None else tables[name]),
            }
            found[name] = Daemon(document, folder)
        try:
            for daemon in found.values():
                await daemon.start()
            for daemon in found.values():
                await daemon.well()
            yield found, lines
        finally:
            for daemon in found.values():
                await daemon.end()
