"""Upgrades the sites of a federation one by one from an older build to this one, under kills, and judges.

    python -m benchmarks.upgrades                        from the commit of the last release
    python -m benchmarks.upgrades --from REVISION        from an earlier build of this repository
    python -m benchmarks.upgrades --from REVISION --strict   with strict exchange, if that build has it
    python -m benchmarks.upgrades --dry                  does not write figures-upgrades.json
    python -m benchmarks.upgrades --record               the older build writes tests/release/VERSION/upgrade

The older build is checked out and compiled in build/releases, once. Three sites of it are above simulated batch systems;
two forget thousands of short jobs, so that an upgrade compacts their journals. All then get jobs that are open when they
are killed: running, queued, held, at partners, and partners' jobs; ever more come while the sites are upgraded. Each site
is killed with SIGKILL, and this build is started with its journal, killed while it compacts, killed twice more soon
after a start, and started again. Before the next site follows, jobs are exchanged between builds.

The last site, whose journal is too short to be compacted, is first upgraded, put back to the older build and upgraded
again: no record that the older build does not know is in its journal, so that has to work. In the end jobs are submitted
with words that the release does not know, and a site is put back once more: the older build serves where it knows them
too, or has to refuse the journal, in words, and leave it as it is, byte for byte.

All journals, as they were before each start, then say whether each acknowledged job has run to its end once.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.frame import keep, machine, options_of
from benchmarks.upgrades_judge import Judge, epoch_of, story
from grms.client import Client, SiteError
from grms.daemon.ports import free_ports
from lrms_sim.util.files import to_toml
from lrms_sim.util.version import __version__

ROOT: Final = Path(__file__).resolve().parents[1]
FIGURES: Final = Path(__file__).with_name("figures-upgrades.json")
BUILDS: Final = ROOT / "build" / "releases"
RECORDED: Final = ROOT / "tests" / "release" / __version__
SITES: Final = ("north", "south", "east")
PROCESSORS: Final = 16
ENDED_JOBS: Final = 400
FORGOTTEN: Final = 2_600
"""Short jobs of each site before the others: more than 10,000 records, of which few are needed."""

OPEN: Final = 40
"""Jobs of each site that are open when it is killed, and some more."""

STARTED_S: Final = 120.0
ENDED_S: Final = 300.0
PROGRAM: Final = "from grms.command import main; main()"


# --- builds --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Build:
    """A program that can be started: `folder` has its packages."""

    name: str
    folder: Path


def git(*words: str) -> str:
    """Returns what git says of this repository."""
    program = shutil.which("git") or "git"
    return subprocess.check_output([program, *words], cwd=ROOT, text=True).strip()


def build_of(revision: str) -> Build:
    """Returns a revision, compiled; that takes a minute or two when it is asked for first."""
    commit = git("rev-parse", f"{revision}^{{commit}}")
    folder = BUILDS / commit
    done = folder / ".compiled"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        archive = subprocess.Popen(
            [shutil.which("git") or "git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE
        )
        subprocess.run(
            [shutil.which("tar") or "tar", "-x", "-C", str(folder)],
            stdin=archive.stdout,
            check=True,
        )
        if archive.wait():
            raise SystemExit(f"git archive {commit} ended with {archive.returncode}")
        words = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        cached = {"CC": "ccache cc"} if shutil.which("ccache") else {}
        environment = {**cached, **os.environ, "PYTHONPATH": str(folder)}
        subprocess.run(words, cwd=folder, check=True, env=environment)
        done.touch()
    return Build(commit[:8], folder)


HERE: Final = Build("this", ROOT)


class Site:
    """A daemon that one build or another serves, with one journal; its log spans all its lives."""

    def __init__(self, document: Mapping[str, Any], folder: Path) -> None:
        self.name = str(document["name"])
        self.socket = Path(document["listen"]["users"])
        self.journal = Path(document["journal"]["path"])
        self.log_path = folder / f"{self.name}.log"
        self.lives: list[Path] = []
        self._config = folder / f"{self.name}.toml"
        self._config.write_text(to_toml(document))
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, build: Build) -> None:
        """Starts it, and keeps a copy of its journal as it was."""
        if self.journal.exists():
            copy = self.journal.with_suffix(f".{len(self.lives)}")
            shutil.copy(self.journal, copy)
            self.lives.append(copy)
        with self.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", PROGRAM, "serve", str(self._config)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(build.folder)},
            )

    async def well(self) -> None:
        """Waits until it serves and reaches its partners.

        Raises:
            RuntimeError: it has ended, or does not in time.
        """
        deadline = time.monotonic() + STARTED_S
        async with Client(self.socket, timeout_s=1.0) as client:
            while True:
                if self._process is None or self._process.returncode is not None:
                    raise RuntimeError(f"{self.name} has ended: {self.last_words()}")
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{self.name} does not serve: {self.last_words()}")
                with suppress(SiteError):
                    if all(partner.reachable for partner in await client.partners()):
                        return
                await asyncio.sleep(0.05)

    async def serves(self) -> bool:
        """Waits until it serves, or has ended by itself; returns which.

        Raises:
            RuntimeError: it does neither in time.
        """
        try:
            await self.well()
        except RuntimeError:
            if self._process is None or self._process.returncode is None:
                raise
            return False
        return True

    def last_words(self) -> str:
        """Returns the last line that it has written."""
        return (self.log_path.read_text(encoding="utf-8", errors="replace").splitlines() or [""])[
            -1
        ]

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Ends it by a signal, if it runs."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(number)
            await process.wait()

    async def killed_while_compacting(self) -> bool:
        """Kills it as soon as there is a new file beside its journal, or it serves; returns whether there was."""
        beside = self.journal.with_name(self.journal.name + ".new")
        begin = self.log_path.stat().st_size
        while not beside.exists():
            with self.log_path.open("rb") as log:
                log.seek(begin)
                if b'"serving"' in log.read():
                    return False
            await asyncio.sleep(0.001)
        await self.end()
        return True


def documents(
    folder: Path, sockets: Path, origin: float, *, strict: bool
) -> dict[str, dict[str, Any]]:
    """Returns the configuration of each site, which both builds read."""
    doors = dict(zip(SITES, free_ports(len(SITES)), strict=True))
    rails = {"rails": "strict-exchange", "requeue": "allow"} if strict else {}
    return {
        name: {
            "name": name,
            "processors": PROCESSORS,
            "lrms": {"discipline": "easy"},
            **rails,
            "clock": {"kind": "scaled", "speed": 1.0, "origin": origin},
            "listen": {
                "users": str(sockets / f"{name}.sock"),
                "partners": f"127.0.0.1:{doors[name]}",
            },
            "journal": {"path": str(folder / f"{name}.journal"), "survives": "power_loss"},
            "limits": {"ended_jobs": ENDED_JOBS, "offer_timeout_s": 1.0},
            "mqtt": {"enabled": False},
            "logging": {"format": "json"},
            "partners": [
                {"name": other, "address": f"127.0.0.1:{port}", "processors": PROCESSORS}
                for other, port in doors.items()
                if other != name
            ],
        }
        for name in SITES
    }


@asynccontextmanager
async def federation(build: Build, folder: Path, *, strict: bool) -> AsyncIterator[dict[str, Site]]:
    """Yields sites of a build that know each other; `folder` is new."""
    with tempfile.TemporaryDirectory(prefix="hanse-") as sockets:
        made = documents(folder, Path(sockets), time.time(), strict=strict)
        sites = {name: Site(document, folder) for name, document in made.items()}
        try:
            for site in sites.values():
                await site.start(build)
            for site in sites.values():
                await site.well()
            yield sites
        finally:
            for site in sites.values():
                await site.end()


# --- the load ------------------------------------------------------------------------------------


class Load:
    """Users of all sites; `acknowledged` has the keys that each site has taken."""

    def __init__(self, clients: Mapping[str, Client], seed: int) -> None:
        self.acknowledged: dict[str, set[str]] = {name: set() for name in clients}
        self._clients = clients
        self._rng = random.Random(seed)  # noqa: S311  # a load, no secrets
        self._number = 0

    async def forget(self, count: int) -> None:
        """Submits short jobs at all sites but the last and waits until they have ended."""
        for client in list(self._clients.values())[:-1]:
            for at in range(0, count, 100):
                some = range(at, min(count, at + 100))
                await asyncio.gather(*(_short(client, number) for number in some))
            while (await client.status()).jobs.get("QUEUED", 0) > 0:  # noqa: ASYNC110  # another process tells nothing
                await asyncio.sleep(0.1)

    async def fill(self, count: int) -> None:
        """Submits jobs of some seconds: plain ones, ones that wait for others, and arrays."""
        for name, client in self._clients.items():
            before = ""
            for _ in range(count):
                before = await self.one(name, client, before)

    async def one(self, name: str, client: Client, before: str = "") -> str:
        """Submits a job, or an array; `before` is one that it may wait for. Returns its id."""
        self._number += 1
        chance = self._rng.random()
        key = f"job {self._number}"
        wanted: dict[str, Any] = {
            "processors": self._rng.choice((1, 2, 4, 8)),
            "requested_time_s": 60.0,
            "run_time_s": self._rng.uniform(1.0, 6.0),
            "key": key,
        }
        if chance < 0.15 and before:
            wanted["dependency"] = f"afterany:{before}"
        elif chance < 0.25:
            wanted |= {"array": "0-3%2", "processors": 1}
        job = await client.submit(**wanted)
        self.acknowledged[name] |= (
            {f"{key}[{index}]" for index in range(4)} if "array" in wanted else {key}
        )
        return job.job_id

    async def go_on(self, stop: asyncio.Event) -> None:
        """Submits a job at a site after the other until it is stopped; each is taken, however long that lasts."""
        while not stop.is_set():
            for name, client in self._clients.items():
                await self.one(name, client)
            await asyncio.sleep(0.5)

    async def over(self) -> None:
        """Waits until all jobs have ended."""
        for client in self._clients.values():
            while [job async for job in client.jobs() if not job.has_ended]:  # noqa: ASYNC110  # another process tells nothing
                await asyncio.sleep(0.2)


async def _short(client: Client, number: int) -> None:
    await client.submit(processors=1, requested_time_s=60.0, run_time_s=0.01, key=f"short {number}")


async def standing(clients: Mapping[str, Client]) -> Counter[str]:
    """Returns how many jobs are in which state, with the guests that have not ended."""
    found: Counter[str] = Counter()
    for client in clients.values():
        status = await client.status()
        found.update({state.lower(): count for state, count in status.jobs.items()})
        guests = [count for state, count in status.guest_jobs.items() if state != "ENDED"]
        found["guests"] += sum(guests)
    return found


# --- upgrades ------------------------------------------------------------------------------------


async def upgrade(site: Site, rng: random.Random, counts: Counter[str]) -> None:
    """Replaces the build of a site that runs, under kills."""
    await site.end()
    await site.start(HERE)
    if await site.killed_while_compacting():
        counts["kills_while_compacting"] += 1
        await site.start(HERE)
    for _ in range(2):
        await asyncio.sleep(rng.uniform(0.2, 1.5))  # while it reads, or serves already
        await site.end()
        counts["kills_after_a_start"] += 1
        await site.start(HERE)
    await site.well()
    counts["upgrades"] += 1


async def put_back(site: Site, old: Build, problems: list[str]) -> str:
    """Starts the older build with a journal that may be too new for it, then this one; returns what the older one says."""
    await site.end(signal.SIGTERM)
    before = site.journal.read_bytes()
    await site.start(old)
    said = "it serves"
    if await site.serves():
        await site.end()
    else:
        said = site.last_words()
        if "or a later one" not in said or "Traceback" in said:
            problems.append(f"the older build has ended and said: {said}")
        if site.journal.read_bytes() != before:
            problems.append("the older build has changed a journal that it cannot read")
    await site.start(HERE)
    await site.well()
    return said.replace(str(site.journal.parent), "…")


async def drill(old: Build, folder: Path, *, seed: int, strict: bool) -> dict[str, Any]:
    """Upgrades all sites, and returns what came of it."""
    rng = random.Random(seed)  # noqa: S311  # faults, no secrets
    counts: Counter[str] = Counter()
    problems: list[str] = []
    begin = time.perf_counter()
    async with AsyncExitStack() as stack:
        sites = await stack.enter_async_context(federation(old, folder, strict=strict))
        clients = {
            name: await stack.enter_async_context(Client(site.socket, timeout_s=STARTED_S))
            for name, site in sites.items()
        }
        load = Load(clients, seed)
        await load.forget(FORGOTTEN)
        await load.fill(OPEN)
        open_then = await standing(clients)
        stop = asyncio.Event()
        more = asyncio.create_task(load.go_on(stop), name="load")
        await asyncio.sleep(rng.uniform(0.0, 1.0))
        counts["put_back_and_served"] += await _there_and_back(sites[SITES[-1]], old, problems)
        for site in sites.values():
            await asyncio.sleep(rng.uniform(0.0, 1.0))
            await upgrade(site, rng, counts)
            await asyncio.sleep(rng.uniform(1.0, 2.0))  # builds exchange jobs
        stop.set()
        await more
        for name, client in clients.items():
            key = f"new {name}"
            await client.submit(
                processors=1, requested_time_s=60.0, run_time_s=1.0, key=key, sites=[name]
            )
            load.acknowledged[name].add(key)
        said = await put_back(sites[SITES[1]], old, problems)
        async with asyncio.timeout(ENDED_S):
            await load.over()
        for site in sites.values():
            await site.end(signal.SIGTERM)
    journals, epochs = {}, {}
    for name, site in sites.items():
        paths = [*site.lives, site.journal]
        journals[name] = story(paths)
        epochs[name] = epoch_of(site.journal)
        log = site.log_path.read_text(encoding="utf-8", errors="replace")
        counts["compactions"] += log.count("journal_compacted")
        if "Traceback" in log:
            problems.append(f"{name} wrote: {log[log.index('Traceback') :][:1500]}")
    judged = Judge(journals, epochs, load.acknowledged).judged()
    return {
        "from": old.name,
        "strict": strict,
        "seed": seed,
        "open_at_the_first_kill": dict(sorted(open_then.items())),
        **dict(sorted(counts.items())),
        **dict(sorted(judged.counts.items())),
        "older_build_says": said,
        "problems": [*problems, *judged.problems][:50],
        "seconds": round(time.perf_counter() - begin, 1),
    }


async def _there_and_back(site: Site, old: Build, problems: list[str]) -> bool:
    """Upgrades a site, lets it exchange jobs, and puts it back; returns whether the older build serves."""
    await site.end()
    await site.start(HERE)
    await site.well()
    await asyncio.sleep(1.0)
    await site.end()
    await site.start(old)
    if await site.serves():
        return True
    problems.append(f"put back, {site.last_words()}")
    await site.start(HERE)
    await site.well()
    return False


async def record(old: Build, folder: Path, target: Path) -> dict[str, int]:
    """Has the older build fill journals, kills all sites, and keeps the journals; returns how many jobs are in which state."""
    async with AsyncExitStack() as stack:
        sites = await stack.enter_async_context(federation(old, folder, strict=False))
        clients = {
            name: await stack.enter_async_context(Client(site.socket, timeout_s=STARTED_S))
            for name, site in sites.items()
        }
        load = Load(clients, 1)
        await load.fill(OPEN // 3)
        found = dict(sorted((await standing(clients)).items()))
        for site in sites.values():
            await site.end()
        for name, site in sites.items():
            shutil.copy(site.journal, target / f"{name}.journal")
    told = {
        "commit": old.folder.name,
        "standing": found,
        "acknowledged": {name: sorted(keys) for name, keys in load.acknowledged.items()},
    }
    (target / "told.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return found


def main() -> int:
    """Does what was asked for, and says what came of it."""
    released = (RECORDED / "commit").read_text(encoding="utf-8").strip()
    parser = options_of(__doc__)
    parser.add_argument("--from", dest="revision", default=released)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--dry", action="store_true", help="do not write figures-upgrades.json")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    old = build_of(arguments.revision)
    with tempfile.TemporaryDirectory(prefix="hanse-upgrades-") as place:
        if arguments.record:
            target = RECORDED / "upgrade"
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            print(asyncio.run(record(old, Path(place), target)))
            return 0
        found = asyncio.run(drill(old, Path(place), seed=arguments.seed, strict=arguments.strict))
    print(json.dumps(found, indent=1))
    if not arguments.dry:
        runs = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        runs[f"{old.name}{', strict' * arguments.strict}, seed {arguments.seed}"] = {
            "machine": machine(),
            "figures": found,
        }
        keep(FIGURES, runs)
    return int(bool(found["problems"]))


if __name__ == "__main__":
    sys.exit(main())
