"""Sites that only call out: what went to a partner comes home, through kills of either side and of the relay."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from grms.client import Client, JobState, Outcome, SiteUnavailable
from grms.daemon.ports import free_port
from grms.policy.files import save_rule_base
from grms.policy.transfer import Gaussian, Rule, RuleBase
from grms.security.tls import TlsFiles
from grms.util.names import tls_name
from lrms_sim.util.files import to_toml
from tests.clusters.fake_slurm import FakeSlurm
from tests.grms.keys import new_federation
from tests.grms.site.daemons import document
from tests.grms.site.test_real_batch import table

HOME_S = 30.0
"""So soon after its end a job is to have ended at home, with its files."""

SCRIPT = """#!/bin/sh
echo once >>{folder}/runs
echo secret-output
cat secret-given >secret-made
while ! test -e {folder}/gate; do sleep 0.05; done
"""

SERVE = "from grms.command import main; main()"

RECORDED = (
    """
import itertools, pathlib, sys
from grms.daemon.tunnel import stream
numbers = itertools.count()
folder = pathlib.Path(sys.argv.pop())

async def copy(source, target):
    with (folder / f"{next(numbers)}.carried").open("wb", buffering=0) as record:
        while data := await source.reader.read(stream.CHUNK_BYTES):
            record.write(data)
            source.carried += len(data)
            target.writer.write(data)
            await target.writer.drain()

stream._copy = copy
"""
    + SERVE
)
"""A relay that keeps what it sees of those that meet there."""


def tls_table(files: TlsFiles) -> dict[str, str]:
    """Returns the table of keys."""
    names = ("authority", "certificate", "key")
    return {name: str(getattr(files, name)) for name in names}


@dataclass
class Scene:
    """Two sites as processes, of which north has all its jobs run by south.

    Attributes:
        folder: of the test.
        processes: that run, by name.
    """

    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, command: str = "serve", code: str = SERVE, *more: str) -> None:
        """Starts a site or a relay, whose file is in the folder."""
        words = [sys.executable, "-c", code, command, str(self.folder / f"{name}.toml"), *more]
        log = (self.folder / f"{name}.log").open("ab")
        self.processes[name] = subprocess.Popen(words, stderr=log)  # noqa: S603  # ours
        log.close()

    def kill(self, name: str) -> None:
        """Kills it as it is."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def log(self, name: str) -> str:
        """Returns what it has logged."""
        return (self.folder / f"{name}.log").read_text()

    @asynccontextmanager
    async def user(self, site: str) -> AsyncIterator[Client]:
        """Yields a client of a site."""
        async with Client(self.folder / f"{site}.sock", timeout_s=20.0) as found:
            yield found

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Returns as soon as something holds; with the logs if it does not within a minute."""
        try:
            async with asyncio.timeout(60.0):
                while True:
                    try:
                        if await holds():
                            return
                    except (SiteUnavailable, FileNotFoundError):
                        pass
                    await asyncio.sleep(0.02)
        except TimeoutError:
            logs = "\n".join(self.log(path.stem) for path in self.folder.glob("*.log"))
            raise AssertionError(logs) from None

    async def way(self, site: str, partner: str) -> tuple[bool, str]:
        """Returns whether a site's partner is reached, and how."""
        async with self.user(site) as user:
            (found,) = [one for one in await user.partners() if one.name == partner]
            return found.reachable, found.way

    async def linked(self, *ways: str) -> None:
        """Returns when north has reached south, and south north, in these ways."""
        for (site, partner), way in zip(
            (("north", "south"), ("south", "north")), ways, strict=True
        ):

            async def holds(site: str = site, partner: str = partner, way: str = way) -> bool:
                return await self.way(site, partner) == (True, way)

            await self.until(holds)

    async def delegated(self) -> str:
        """Has north's user submit a job with a file, and returns its name when it runs at south."""
        async with self.user("north") as user:
            job = await user.submit(
                processors=1,
                requested_time_s=600.0,
                script=SCRIPT.format(folder=self.folder),
                outputs=["secret-made"],
                inputs={"secret-given": self.folder / "secret-given"},
            )

        async def runs() -> bool:
            return (self.folder / "runs").exists()

        await self.until(runs)
        return job.job_id

    async def comes_home(self, job_id: str) -> None:
        """Lets it end; it has run once, and has ended at home with its files soon after."""
        (self.folder / "gate").touch()
        begin = time.monotonic()

        async def is_home() -> bool:
            async with self.user("north") as user:
                job = await user.get(job_id)
                if job.state is not JobState.ENDED:
                    return False
                assert (job.outcome, job.executed_on) == (Outcome.COMPLETED, "south"), job
                results = await user.results(job_id)
                return results.complete and not results.problem

        await self.until(is_home)
        assert time.monotonic() - begin < HOME_S
        assert (self.folder / "runs").read_text() == "once\n"
        async with self.user("north") as user:
            made = b"".join([part async for part in user.fetch(job_id, "secret-made")])
        assert made == (self.folder / "secret-given").read_bytes()


@asynccontextmanager
async def scene(
    folder: Path, north: dict[str, Any], south: dict[str, Any], port: int = 0
) -> AsyncIterator[Scene]:
    """Yields it, with both sites' keys, files and batch systems; `port` is where south listens."""
    federation = new_federation(folder)
    (folder / "secret-given").write_text("secret-line\n" * 20_000)
    with ExitStack() as stack:
        for name, partner, entry in (("north", "south", north), ("south", "north", south)):
            cluster = FakeSlurm(folder / f"cluster-{name}", nodes=1, cpus=4)
            stack.callback(cluster.down)
            cluster.up()
            rule = Rule(Gaussian(0.0, 1e3), Gaussian(0.0, 1e3), accept=name == "south")
            policy = folder / f"{name}.json"
            save_rule_base(RuleBase((rule,), name), policy)
            written = document(
                folder,
                name,
                4,
                port=port if name == "south" else 0,
                lrms=table(cluster, folder / f"spool-{name}"),
                tls=tls_table(federation.site(name)),
            )
            written["outgoing"] = entry.pop("outgoing", {})
            written["partners"] = [{"name": partner, "transfer": str(policy), **entry}]
            (folder / f"{name}.toml").write_text(to_toml(written))
        relay: dict[str, Any] = {"name": "meet", "meet": [["north", "south"]]}
        relay |= {"listen": f"127.0.0.1:{port}", "tls": tls_table(federation.site("meet"))}
        (folder / "meet.toml").write_text(to_toml(relay))
        found = Scene(folder)
        try:
            yield found
        finally:
            for name in list(found.processes):
                found.kill(name)


@pytest.mark.services
async def test_a_partner_calls_back_over_what_a_site_has_opened(tmp_path: Path) -> None:
    """North listens to nobody, and south knows an address of it at which nobody is; both are killed meanwhile."""
    port = free_port()
    away, nowhere = {"address": f"127.0.0.1:{port}"}, {"address": f"127.0.0.1:{free_port()}"}
    async with scene(tmp_path, away, nowhere, port) as sites:
        sites.start("north")
        sites.start("south")
        await sites.linked("address", "callback")
        job_id = await sites.delegated()
        for name in ("north", "south"):
            sites.kill(name)
            sites.start(name)
        await sites.comes_home(job_id)


@pytest.mark.services
async def test_two_that_listen_to_nobody_meet_at_a_relay_that_learns_little(tmp_path: Path) -> None:
    """The relay and one site are killed meanwhile; what the relay has seen is TLS of others, and who they are."""
    port = free_port()
    relay = {"relay": {"name": "meet", "address": f"127.0.0.1:{port}"}}
    north, south = ({"way": "relay", "outgoing": relay} for _ in range(2))
    async with scene(tmp_path, north, south, port) as sites:
        written = (tmp_path / "south.toml").read_text()
        (tmp_path / "south.toml").write_text(written.replace(f'partners = "127.0.0.1:{port}"', ""))
        for name in ("north", "south"):
            sites.start(name)
        sites.start("meet", "relay", RECORDED, str(tmp_path))
        await sites.linked("relay", "relay")
        job_id = await sites.delegated()
        sites.kill("meet")
        before = list(tmp_path.glob("*.carried"))
        for path in before:
            path.rename(path.with_suffix(".before"))
        sites.kill("south")
        sites.start("south")
        sites.start("meet", "relay", RECORDED, str(tmp_path))
        await sites.comes_home(job_id)
        for name in ("north", "south"):
            sites.processes[name].send_signal(signal.SIGTERM)
            assert sites.processes[name].wait(30.0) == 0
        await sites.until(lambda: _logged(sites))
        carried = [*tmp_path.glob("*.before"), *tmp_path.glob("*.carried")]
        assert before
        _check_ciphertext([path.read_bytes() for path in carried])


async def _logged(sites: Scene) -> bool:
    words = sites.log("meet")
    return all(f"caller={one}" in words for one in ("north", "south")) and "bytes_back=" in words


def _check_ciphertext(streams: list[bytes]) -> None:
    """Checks that each stream is TLS, and that nothing in it is anything of the sites but their names."""
    total = sum(map(len, streams))
    assert total > 240_000  # the file went there and back
    names = [tls_name(name).encode() for name in ("north", "south")]
    everything = b"".join(streams)
    assert all(name in everything for name in names)  # who is called is said in the clear
    for words in (b"secret", b"grms.v1", b"#!/bin/sh", b"hanse://", b"partner"):
        assert words not in everything, words
    for stream in filter(None, streams):
        at, kinds = 0, []
        while at + 5 <= len(stream):
            kinds.append(stream[at])
            assert stream[at + 1] == 3, stream[at : at + 5]
            at += 5 + int.from_bytes(stream[at + 3 : at + 5])
        # After the hello (22) and a byte for old middleboxes (20) there is nothing but what is encrypted (23).
        assert kinds[0] == 22
        assert set(kinds[1:]) <= {20, 23}
