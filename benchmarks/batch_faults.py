"""Breaks real batch systems and the daemons above them, and proves that no job was lost or ran twice.

    python -m benchmarks.batch_faults                    300 jobs for each of three seeds
    python -m benchmarks.batch_faults --seeds 7 --jobs 40 --dry
    python -m benchmarks.batch_faults --kinds slurm gridengine --seeds 1 --dry
    python -m benchmarks.batch_faults --elements 1000 --cpus 16 --jobs 40 --nodes 0 --seconds 400

Two clusters of one's own, with pretended processors and a `grms serve` above each, exchange real jobs by
mutual TLS. Meanwhile controllers, daemons and node daemons are killed (SIGKILL) and started again, jobs are
submitted at the moment of a controller's death, the link between the sites is cut or held up, and operators do
what operators do (`batch_operators`). Which, when and for how long is drawn from a seed. When all is healed and
every job has ended, it is judged: by what each job has written when it started and ended (`batch_verdict`), by
what users are told, and by both journals. No job may be lost, told as ended while it runs, told as failed though
it never began, or run twice: its launcher does not run a script again that a batch system starts a second time.

With `--elements` the first site's user also submits an array of so many jobs within a diamond of dependencies
(`batch_arrays`): then no job may begin before those that it waits for are over, none that may not run may run, and no
more elements than `--at-once` may run at a time, at both sites together.

Writes figures-batch-faults.json.
"""

import asyncio
import json
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.batch_arrays import Diamond, most_under_way
from benchmarks.batch_operators import SPARE_LINE, Certificates, Operators, Scene, disks
from benchmarks.batch_sites import Cluster, Daemon, daemons
from benchmarks.batch_verdict import (
    SCRIPT,
    Line,
    anomalies_of,
    given_up,
    judge,
    read_lines,
    releases,
)
from benchmarks.exactly_once import Federation
from benchmarks.frame import machine, options_of
from grms.client import Client, Job
from grms.site.model.records import JobOffered, JobReceived, Record
from grms.site.runtime.journal import Journal
from tests.clusters.gridengine import GridEngineCluster
from tests.clusters.slurm import SlurmCluster

FIGURES: Final = Path(__file__).with_name("figures-batch-faults.json")
SITES: Final = ("north", "south")
NODES: Final = 2
BUSY: Final = 0.85
"""The first site's share of the jobs: more than it can run at once."""

TOLD_S: Final = 900.0
"""How long all jobs may take to end after the last fault."""

LIMITS_S: Final = (60.0, 180.0)
"""Requests of jobs; a partition with a limit of a minute only takes the first."""

GIVEN_UP_S: Final = 20.0
"""After this a silent node is given up by its Slurm (`SlurmdTimeout` of `tests.clusters` is 10)."""

TOLD_LATE_S: Final = 3.0
"""Tolerated difference of the clocks of daemon and batch system, which has whole seconds."""

GRACE_S: Final = 30.0
"""How long after its limit a forgotten job is waited for: less than the default, as all limits are a minute."""

FIGURES_S: Final = 15
"""Maximum age of a daemon's metrics, seconds."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run and to break.

    Attributes:
        links: cuts and delays of the link, in both directions.
        nodes: kills of a node daemon; every fourth long enough for its jobs to be given up.
        deaths: jobs submitted while a controller is killed.
        partitions: an operator's changes of partitions, and moves of waiting jobs.
        spools: temporarily full disks of jobs' folders; none without root privileges.
        certificates: expiring while in use, and renewed later.
        elements: of an array within a diamond of dependencies; 0 for none.
        at_once: how many of these may run at a time.
        cpus: pretended processors of each of a cluster's nodes.
    """

    seed: int = 1
    kinds: tuple[str, ...] = ("slurm", "slurm")
    jobs: int = 300
    seconds: float = 150.0
    longest_s: float = 8.0
    controllers: int = 10
    daemons: int = 8
    links: int = 6
    nodes: int = 6
    deaths: int = 4
    partitions: int = 12
    spools: int = 2
    certificates: int = 2
    poll_s: float = 2.0
    elements: int = 0
    at_once: int = 50
    cpus: int = 8


@dataclass(slots=True)
class Outcome:
    """Result of a run: violations in words, counts of faults and findings, and anomalies of the batch systems."""

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    anomalies: Counter[str] = field(default_factory=Counter)


def cluster_of(kind: str, folder: Path, cpus: int) -> Cluster:
    """Returns a cluster that is not up yet; `cpus` are the pretended processors of a node."""
    if kind == "slurm":
        return SlurmCluster(folder, nodes=NODES, cpus=cpus, more=SPARE_LINE)
    return GridEngineCluster(folder, slots=NODES * cpus)


class Faults:
    """Breaks things at random moments, and repairs them."""

    def __init__(self, plan: Plan, scene: Scene, users: "Users") -> None:
        self._counts = scene.counts
        self._clusters = clusters = scene.clusters
        self._sites = scene.sites
        self._lines = scene.lines
        self._users = users
        self._broken: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._at_work: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        rng = random.Random(f"faults {plan.seed}")  # noqa: S311  # faults, no secrets
        agenda: list[Callable[[], Awaitable[None]]] = []
        names = list(clusters)
        agenda += [
            partial(self._controller, rng.choice(names), rng.uniform(0.1, 5.0))
            for _ in range(plan.controllers)
        ]
        agenda += [
            partial(self._controller, rng.choice(names), rng.uniform(0.5, 5.0), submits=True)
            for _ in range(plan.deaths)
        ]
        acting = random.Random(f"operators {plan.seed}")  # noqa: S311  # no secrets
        agenda += Operators(acting, scene).acts(plan.partitions, plan.spools, plan.certificates)
        agenda += [
            partial(self._daemon, rng.choice(names), rng.choice((0.0, 0.5, 3.0, 12.0)))
            for _ in range(plan.daemons)
        ]
        agenda += [
            partial(self._link, number % 2 == 0, rng.uniform(0.5, 10.0))
            for number in range(plan.links)
        ]
        for number in range(plan.nodes):
            name, away_s = rng.choice(names), rng.uniform(0.2, 4.0)
            node = rng.choice(clusters[name].node_names)
            away_s += GIVEN_UP_S if number % 4 == 3 else 0.0
            agenda.append(partial(self._node, name, node, away_s))
        rng.shuffle(agenda)
        moments = sorted(rng.uniform(0.02, 1.0) * plan.seconds for _ in agenda)
        self._agenda = list(zip(moments, agenda, strict=True))

    async def run(self) -> None:
        """Does all of it; returns when everything is mended."""
        begin = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for moment, breaks in self._agenda:
                await asyncio.sleep(max(0.0, begin + moment - time.monotonic()))
                group.create_task(_done(breaks()), name=f"fault at {moment:.1f} s")

    # Each lock is held from begin to end, so that a broken thing breaks again only once it is repaired.

    async def _controller(self, name: str, away_s: float, *, submits: bool = False) -> None:
        cluster = self._clusters[name]
        async with self._broken["controller", name], asyncio.TaskGroup() as group:
            async with self._at_work[name]:
                if submits:
                    # Some reach the dying controller, some none.
                    group.create_task(self._users.submit(name), name=f"just before, at {name}")
                await asyncio.to_thread(cluster.kill_controller)
            self._counts["controller_kills"] += 1
            if submits:
                self._counts["submitted_at_a_death"] += 2
                group.create_task(self._users.submit(name), name=f"just after, at {name}")
            await asyncio.sleep(away_s)
            async with self._at_work[name]:
                await asyncio.to_thread(cluster.start_controller)

    async def _daemon(self, name: str, away_s: float) -> None:
        async with self._broken["daemon", name]:
            await self._sites[name].end(signal.SIGKILL)
            self._counts["daemon_kills"] += 1
            await asyncio.sleep(away_s)
            await self._sites[name].start()

    async def _link(self, holds: bool, broken_s: float) -> None:
        async with self._broken["link", ""]:
            self._counts["link_hold_ups" if holds else "link_cuts"] += 1
            for line in self._lines.values():
                (line.hold_up if holds else line.cut)()
            await asyncio.sleep(broken_s)
            for line in self._lines.values():
                line.mend()

    async def _node(self, name: str, node: str, away_s: float) -> None:
        cluster = self._clusters[name]
        async with self._broken[node, name]:
            async with self._at_work[name]:
                await asyncio.to_thread(cluster.kill_node, node)
            self._counts["node_kills"] += 1
            self._counts["nodes_given_up"] += away_s > GIVEN_UP_S
            await asyncio.sleep(away_s)
            async with self._at_work[name]:
                await asyncio.to_thread(cluster.start_node, node)


async def _done(work: Awaitable[None]) -> None:
    await work


class Users:
    """Submits jobs; `taken` has the site and id of each acknowledged one, by name."""

    def __init__(self, plan: Plan, clients: Mapping[str, Client], notes: Path) -> None:
        self.plan = plan
        self._clients = clients
        self._notes = notes
        self._rng = random.Random(f"jobs {plan.seed}")  # noqa: S311  # no secrets
        self._number = 0
        self.taken: dict[str, tuple[str, str]] = {}
        self.diamond = Diamond(plan.elements, plan.at_once) if plan.elements else None

    async def submit(self, site: str) -> None:
        """Submits the next job to a site, and returns when it is acknowledged."""
        word, self._number = f"job-{self._number}", self._number + 1
        processors, limit_s = self._rng.randint(1, 6), self._rng.choice(LIMITS_S)
        run_s = self._rng.uniform(0.5, self.plan.longest_s)
        job = await self._clients[site].submit(
            processors=processors,
            requested_time_s=limit_s,
            script=SCRIPT,
            arguments=[str(self._notes / word), f"{run_s:.1f}"],
            key=word,
        )
        self.taken[word] = site, job.job_id

    async def submit_all(self) -> None:
        """Submits all jobs of the plan at moments drawn from its seed."""
        rng, plan = random.Random(f"moments {self.plan.seed}"), self.plan  # noqa: S311  # no secrets
        names = list(self._clients)
        moments = sorted(rng.uniform(0.0, plan.seconds) for _ in range(plan.jobs))
        begin = time.monotonic()
        if self.diamond is not None:
            site = names[0]
            self.taken |= await self.diamond.submit(self._clients[site], site, str(self._notes))
        async with asyncio.TaskGroup() as group:
            for moment in moments:
                site = names[0] if rng.random() < BUSY else names[1]
                await asyncio.sleep(max(0.0, begin + moment - time.monotonic()))
                group.create_task(self.submit(site), name=f"at {moment:.1f} s")


async def all_ended(
    sites: Mapping[str, Daemon], taken: Mapping[str, tuple[str, str]]
) -> dict[str, Job]:
    """Returns all jobs when they have ended, or after a long time as they are."""
    words = {place: word for word, place in taken.items()}
    end = time.monotonic() + TOLD_S
    while True:
        found: dict[str, Job] = {}
        for name, site in sites.items():
            async with Client(site.socket, timeout_s=TOLD_S) as client:
                async for job in client.jobs():
                    found[words[name, job.job_id]] = job
        if all(job.has_ended for job in found.values()) or time.monotonic() > end:
            return found
        await asyncio.sleep(1.0)


async def ordeal(plan: Plan, folder: Path, sockets: Path) -> Outcome:
    """Runs jobs under faults and judges; the folders must be empty, that of `sockets` with a short path."""
    outcome, notes = Outcome(), folder / "notes"
    notes.mkdir(parents=True)
    async with AsyncExitStack() as stack:
        clusters: dict[str, Cluster] = {}
        for name, kind in zip(SITES, plan.kinds, strict=True):
            clusters[name] = cluster_of(kind, folder / f"cluster-{name}", plan.cpus)
            stack.push_async_callback(asyncio.to_thread, clusters[name].down)
            await asyncio.to_thread(clusters[name].up)
        certificates = Certificates(folder / "pki", list(SITES))
        small = await asyncio.to_thread(disks, stack, folder, list(SITES) if plan.spools else [])
        running = daemons(
            folder,
            sockets,
            clusters,
            dict.fromkeys(SITES, NODES * plan.cpus),
            lrms={"poll_s": plan.poll_s, "grace_s": GRACE_S},
            tables={name: {"tls": certificates.table(name)} for name in SITES},
        )
        sites, lines = await stack.enter_async_context(running)
        clients = {
            name: await stack.enter_async_context(Client(site.socket, timeout_s=TOLD_S))
            for name, site in sites.items()
        }
        users = Users(plan, clients, notes)
        scene = Scene(clusters, sites, lines, certificates, small, outcome.counts)
        faults = Faults(plan, scene, users)
        async with asyncio.TaskGroup() as group:
            group.create_task(faults.run(), name="faults")
            group.create_task(users.submit_all(), name="users")
        jobs = await all_ended(sites, users.taken)
        for site in sites.values():
            await site.well()
            outcome.problems += await _figures_of(site)
    _judge(outcome, folder, sites, users, jobs)
    return outcome


async def _figures_of(site: Daemon) -> list[str]:
    # Metrics are set at intervals: findings of the last poll may only be in the log yet.
    problems: list[str] = []
    for _ in range(FIGURES_S):
        problems = await asyncio.to_thread(_metric_problems, site)
        if not problems:
            break
        await asyncio.sleep(1.0)
    return problems


def _metric_problems(site: Daemon) -> list[str]:
    # The metric counts what the log says since the daemon's last start.
    with urllib.request.urlopen(f"http://127.0.0.1:{site.metrics_port}/metrics") as answer:
        text = answer.read().decode()
    shown = {
        what: int(float(count))
        for what, count in re.findall(r'hanse_lrms_anomalies_total\{what="(\w+)"\} (\S+)', text)
    }
    logged: Counter[str] = Counter()
    for entry in site.lines():
        if entry.get("event") == "serving":
            logged.clear()
        elif entry.get("event") == "lrms_anomaly":
            logged[str(entry["what"])] += 1
    if shown and Counter(shown) == logged:
        return []
    return [f"{site.name} shows anomalies {shown}, and has logged {dict(logged)}"]


def _judge(
    outcome: Outcome,
    folder: Path,
    sites: Mapping[str, Daemon],
    users: Users,
    jobs: Mapping[str, Job],
) -> None:
    counts, notes, taken = outcome.counts, folder / "notes", users.taken
    counts["acknowledged"] = len(taken)
    outcome.problems += [f"{word} is not known any more" for word in sorted(set(taken) - set(jobs))]
    released = {}
    for name in sites:
        log = folder / f"cluster-{name}" / "slurmctld.log"  # Grid Engine forgets no release
        if log.exists():
            released.update(releases(log.read_text(errors="replace"), f"jobs-{name}"))
    written = {word: read_lines(notes / word) for word in taken}
    journals, epochs = {}, {}
    for name in sites:
        with Journal(folder / f"{name}.journal", name) as journal:
            journals[name], epochs[name] = list(journal.records()), journal.epoch
    may_run = _judge_diamond(outcome, users, jobs, written, journals[SITES[0]])
    over = {name: _given_up(folder / f"cluster-{name}") for name in sites}
    verdict = judge(
        may_run,
        written,
        released,
        grace_s=users.plan.poll_s + TOLD_LATE_S,
        given_up={
            word
            for name, records in journals.items()
            for word, place, key in _keys(name, epochs[name], records)
            if key in over[place]
        },
    )
    outcome.problems += verdict.problems
    counts.update(verdict.counts)
    by_journals = Federation(journals, epochs, {}).hands()
    outcome.problems += by_journals.problems
    counts.update(by_journals.counts)
    for word, lines in written.items():
        place = by_journals.places.get((taken[word][0], word))
        where = {line.folder.parent.name for line in lines}
        if where - {f"jobs-{place}"}:
            outcome.problems.append(f"{word} ran in {sorted(where)}; by the journals at {place}")
    for site in sites.values():
        anomalies = anomalies_of(site.lines())
        outcome.anomalies.update({what: len(names) for what, names in anomalies.items()})
        for line in site.log_path.read_text(errors="replace").splitlines():
            if "Traceback" in line:
                outcome.problems.append(f"{site.name} wrote: {line:.2000}")


def _given_up(cluster: Path) -> set[str]:
    log, completions = cluster / "slurmctld.log", cluster / "jobcomp.txt"
    if not (log.exists() and completions.exists()):
        return set()  # Grid Engine's nodes end none
    return given_up(log.read_text(errors="replace"), completions.read_text(errors="replace"))


def _keys(home: str, epoch: int, records: Iterable[Record]) -> Iterator[tuple[str, str, str]]:
    """Yields the names of a site's jobs, each with where it may have been submitted, and by which key."""
    words: dict[int, str] = {}
    for record in records:
        if isinstance(record, JobReceived):
            words[record.job] = record.idempotency_key
            yield record.idempotency_key, home, f"{home}/{epoch:x}/{record.job}"
        elif isinstance(record, JobOffered):
            yield words[record.job], record.partner, f"{home}/{epoch:x}/{record.number}"


def _judge_diamond(
    outcome: Outcome,
    users: Users,
    jobs: Mapping[str, Job],
    written: Mapping[str, Sequence[Line]],
    journal: Sequence[Record],
) -> dict[str, Job]:
    # Returns the jobs that may have run.
    diamond = users.diamond
    if diamond is None or set(users.taken) - set(jobs):
        return dict(jobs)
    kept_to = diamond.judge(jobs, written)
    outcome.problems += kept_to.problems
    outcome.counts.update(kept_to.counts)
    for key, most in most_under_way(journal).items():
        outcome.counts[f"{key}_under_way"] = most
        if most > diamond.at_once:
            outcome.problems.append(f"{most} elements of {key} were under way at a time")
    hopeless = diamond.hopeless(jobs)
    return {word: job for word, job in jobs.items() if word not in hopeless}


def run(plan: Plan, folder: Path) -> Outcome:
    """Runs jobs under faults in an empty folder, and judges."""
    with tempfile.TemporaryDirectory(prefix="hanse-", dir="/tmp") as sockets:  # short
        return asyncio.run(ordeal(plan, folder, Path(sockets)))


def figures_of(plan: Plan, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """Returns what is kept of a run."""
    return {
        "machine": machine(),
        "plan": asdict(plan),
        **dict(sorted(outcome.counts.items())),
        "anomalies": dict(sorted(outcome.anomalies.items())),
        "problems": len(outcome.problems),
        "seconds": round(seconds, 1),
    }


def _mark(figures: dict[str, Any]) -> tuple[tuple[str, ...], int, int]:
    plan = figures["plan"]
    return tuple(plan["kinds"]), plan.get("elements", 0), plan["seed"]


def main() -> int:
    """Runs what was asked for, and says what came of it."""
    parser = options_of(__doc__)
    for name, value in asdict(Plan()).items():
        if name not in {"seed", "kinds"}:
            word = f"--{name.replace('_', '-')}"
            parser.add_argument(word, type=type(value), default=value)
    kinds = ("slurm", "gridengine")
    parser.add_argument("--kinds", nargs=2, choices=kinds, default=("slurm", "slurm"))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--keep", type=Path, help="keep everything in this new folder")
    parser.add_argument("--dry", action="store_true", help="do not write the figures")
    arguments = vars(parser.parse_args())
    keep, dry, seeds = (arguments.pop(name) for name in ("keep", "dry", "seeds"))
    arguments["kinds"] = tuple(arguments["kinds"])
    # Leaves nothing behind, however it is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    runs, failed = [], False
    for seed in seeds:
        plan = Plan(seed=seed, **arguments)
        place = Path(tempfile.mkdtemp(prefix="hanse-faults-")) if keep is None else keep / f"{seed}"
        begin = time.perf_counter()
        try:
            outcome = run(plan, place)
        finally:
            if keep is None:
                shutil.rmtree(place, ignore_errors=True)
        runs.append(figures_of(plan, outcome, time.perf_counter() - begin))
        print(json.dumps(runs[-1], indent=1))
        for problem in outcome.problems[:50]:
            print("problem:", problem)
        failed |= bool(outcome.problems)
    if not dry:
        # Runs of other seeds and batch systems stay, each with its machine.
        before = json.loads(FIGURES.read_text())["runs"] if FIGURES.exists() else []
        found = {_mark(one): one for one in [*before, *json.loads(json.dumps(runs))]}
        document = {"runs": [found[mark] for mark in sorted(found)]}
        keep(FIGURES, document)
    return failed


if __name__ == "__main__":
    sys.exit(main())
