"""What operators do to their own batch systems and disks on an ordinary day, and undo again.

None of it is a fault of anybody: a partition is drained for maintenance, hidden, or given a shorter limit; a
waiting job is moved to another partition; the disk with the jobs' folders is full; a certificate ends before
its successor is there.
"""

import asyncio
import os
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.batch_sites import Cluster, Daemon
from benchmarks.fault_tools import SmallDisk
from grms.client import Client
from grms.security.authority import create_authority, generate_key, issue_for_site
from grms.security.files import AUTHORITY_CERTIFICATE, write_certificate, write_key
from scenarios.prove.line import Line
from tests.clusters.slurm import SlurmCluster

SPARE: Final = "spare"
"""A second partition, to which waiting jobs are moved; no site's file names it."""

SPARE_LINE: Final = (
    f"PartitionName={SPARE} Nodes=ALL MaxTime=INFINITE DefaultTime=60 PriorityTier=1 State=UP\n"
)

SETTINGS: Final[Mapping[str, tuple[str, str]]] = {
    "drained": ("State=DRAIN", "State=UP"),
    "inactive": ("State=INACTIVE", "State=UP"),
    "down": ("State=DOWN", "State=UP"),
    "hidden": ("Hidden=YES", "Hidden=NO"),
    "shortened": ("MaxTime=1", "MaxTime=1-00:00:00"),
}
"""Settings of a partition, and what undoes them."""

SPOOL_BYTES: Final = 48 << 20
"""Size of a small disk for jobs' folders."""

RENEWED_DAYS: Final = 1


def can_mount() -> bool:
    """Returns whether this process may make small disks."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            SmallDisk(Path(folder), 4096).close()
        except Exception:  # noqa: BLE001  # whatever it is, there are no small disks here
            return False
    return True


class Certificates:
    """Keys and certificates of sites, which may expire during a run."""

    def __init__(self, folder: Path, sites: list[str]) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        before = datetime.now(UTC) - timedelta(days=2)
        self._authority = create_authority("Faults", now=before)
        write_certificate(self._authority.certificate, folder / AUTHORITY_CERTIFICATE)
        self._keys = {site: generate_key() for site in sites}
        for site, key in self._keys.items():
            write_key(key, folder / f"{site}.key")
            self.issue(site)

    def table(self, site: str) -> dict[str, str]:
        """Returns the table `[tls]` of a site."""
        return {
            "authority": str(self._folder / AUTHORITY_CERTIFICATE),
            "certificate": str(self._folder / f"{site}.crt"),
            "key": str(self._folder / f"{site}.key"),
        }

    def issue(self, site: str, lasts_s: float = 86_400.0 * RENEWED_DAYS) -> None:
        """Writes a site a certificate that ends after so many seconds, a day at the most."""
        begin = datetime.now(UTC) - timedelta(days=1) + timedelta(seconds=lasts_s)
        public = self._keys[site].public_key()
        certificate = issue_for_site(
            self._authority, site, ["127.0.0.1"], public, now=begin, days=RENEWED_DAYS
        )
        write_certificate(certificate, self._folder / f"{site}.crt", replace=True)


@dataclass(frozen=True, slots=True)
class Scene:
    """What can be broken and changed: lines go from site to site; there may be no small disks."""

    clusters: Mapping[str, Cluster]
    sites: Mapping[str, Daemon]
    lines: Mapping[tuple[str, str], Line]
    certificates: Certificates
    disks: Mapping[str, SmallDisk]
    counts: Counter[str]


class Operators:
    """The operators of all sites; they change partitions of Slurm only."""

    def __init__(self, rng: random.Random, scene: Scene) -> None:
        self._rng = rng
        self._scene = scene
        self._counts = scene.counts
        self._slurms = {
            name: cluster
            for name, cluster in scene.clusters.items()
            if isinstance(cluster, SlurmCluster)
        }
        self._at_work = {
            (what, name): asyncio.Lock() for name in scene.sites for what in ("main", "disk", "tls")
        }

    def acts(
        self, partitions: int, spools: int, certificates: int
    ) -> list[Callable[[], Awaitable[None]]]:
        """Returns their operations: numbers of changed partitions, full disks, and expiring certificates."""
        rng, names = self._rng, list(self._scene.sites)
        acts: list[Callable[[], Awaitable[None]]] = []
        kinds = [*SETTINGS, "moved"]
        for number in range(partitions if self._slurms else 0):
            kind, name = kinds[number % len(kinds)], rng.choice(list(self._slurms))
            lasts_s = rng.uniform(4.0, 10.0)
            acts.append(
                partial(self._move, name)
                if kind == "moved"
                else partial(self._set, name, kind, lasts_s)
            )
        acts += [
            partial(self._fill, rng.choice(list(self._scene.disks)), rng.uniform(3.0, 8.0))
            for _ in range(spools if self._scene.disks else 0)
        ]
        acts += [
            partial(self._let_end, rng.choice(names), rng.uniform(4.0, 8.0))
            for _ in range(certificates)
        ]
        return acts

    async def _scontrol(self, name: str, *words: str) -> None:
        # A controller that is just being killed does not answer; operators repeat the command.
        while True:
            try:
                await asyncio.to_thread(self._slurms[name].ask, "scontrol", *words)
            except Exception:  # noqa: BLE001  # of any kind: a dead controller has many words
                await asyncio.sleep(1.0)
            else:
                return

    async def _set(self, name: str, kind: str, lasts_s: float) -> None:
        setting, undone = SETTINGS[kind]
        async with self._at_work["main", name]:
            await self._scontrol(name, "update", "PartitionName=main", setting)
            self._counts[f"partitions_{kind}"] += 1
            await asyncio.sleep(lasts_s)
            await self._scontrol(name, "update", "PartitionName=main", undone)

    async def _move(self, name: str) -> None:
        slurm = self._slurms[name]
        for _ in range(20):
            try:
                text = await asyncio.to_thread(
                    slurm.ask, "squeue", "-a", "-h", "-t", "PD", "-p", "main", "-o", "%i"
                )
                waiting = text.split()
                if waiting:
                    number = self._rng.choice(waiting)
                    await asyncio.to_thread(
                        slurm.ask, "scontrol", "update", f"JobId={number}", f"Partition={SPARE}"
                    )
                    self._counts["jobs_moved"] += 1
                    return
            except Exception:  # noqa: BLE001,S110  # it has just started, or the controller is away
                pass
            await asyncio.sleep(0.5)

    async def _fill(self, name: str, lasts_s: float) -> None:
        async with self._at_work["disk", name]:
            await asyncio.to_thread(self._scene.disks[name].fill)
            self._counts["spools_full"] += 1
            await asyncio.sleep(lasts_s)
            self._scene.disks[name].free()

    async def _let_end(self, name: str, lasts_s: float) -> None:
        async with self._at_work["tls", name]:
            self._scene.certificates.issue(name, lasts_s=2.0)
            # A daemon that is dead meanwhile finds an expired one when it starts.
            with suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._reload(name)
            self._counts["certificates_ended"] += 1
            await asyncio.sleep(2.0 + lasts_s)
            self._scene.certificates.issue(name)
            await self._reload(name)

    async def _reload(self, name: str) -> None:
        # A dead daemon reads the file when it starts.
        while True:
            try:
                async with Client(self._scene.sites[name].socket, timeout_s=10.0) as client:
                    await client.reload()
            except Exception:  # noqa: BLE001  # it may be killed at any moment
                await asyncio.sleep(1.0)
            else:
                return


def disks(stack: AsyncExitStack, folder: Path, sites: list[str]) -> dict[str, SmallDisk]:
    """Returns a small disk for the folders of each site's jobs, unmounted with the stack."""
    found: dict[str, SmallDisk] = {}
    for site in sites if can_mount() else []:
        place = folder / f"jobs-{site}"
        place.mkdir(parents=True)
        found[site] = SmallDisk(place, SPOOL_BYTES)
        stack.callback(found[site].close)
    return found
