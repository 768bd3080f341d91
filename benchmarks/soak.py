"""Runs two daemons under a steady load for a long time, and says what grows.

    python -m benchmarks.soak                   25 minutes
    python -m benchmarks.soak --minutes 480     eight hours
    python -m benchmarks.soak --dry             does not write figures-soak.json and the picture

Two sites above simulated batch systems, each a process of its own whose journal survives a power failure. Users
submit twenty jobs a second, fourteen of them at `north`, which is too small for them and offers some to `south`. One job in
twenty waits for the one before it, one in fifty is cancelled, one in twenty is handed in a second time with its key,
one in ten comes over a connection of its own, and one in ten is watched to its end. `south` is restarted all the
time, in turn by a signal and by a kill; `north` lives from the first to the last minute, and is restarted at the
end, so that its journal is compacted.

Of ended jobs, and of keys behind them, each site remembers as many as come in a tenth of the time; the simulated batch
system remembers its last 4,096. So memory grows in the first part of the run, and must not grow in the second. A bound is kept if the
whole 95 % interval of a slope is below it, and broken if all of it is above; between the two the run was too short
to tell. Processor time is what the daemon has used; latencies depend on what else the machine does, so the load is
written beside them.
"""

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import numpy as np
import psutil
from matplotlib.figure import Figure
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.frame import keep, machine, options_of
from benchmarks.load import spread
from benchmarks.soak_verdict import SAMPLES_MIN, Verdict, counted, judged, slope
from grms.client import Client, SiteError
from grms.daemon.ports import free_ports
from grms.lrms.simulated.machine import FORGOTTEN_AFTER
from scenarios.live.sites import SiteProcess

FIGURES: Final = Path(__file__).with_name("figures-soak.json")
PICTURE: Final = Path(__file__).parents[1] / "docs" / "images" / "soak.svg"
SITES: Final = ("north", "south")
PROCESSORS: Final = 32
RATE_PER_S: Final = 20.0
NORTH_SHARE: Final = 0.7
WIDTHS: Final = (1, 2, 4, 8)
RUN_TIME_S: Final = 0.6
"""Mean of an exponential distribution."""

REMEMBERED_PART: Final = 0.1
"""Of all that come: so many ended jobs are remembered, and as many keys of forgotten ones."""

SAMPLES: Final = 300
RESTARTS: Final = 10
ENDED_WITHIN_S: Final = 180.0

BYTES_A_JOB_MAX: Final = 10_000.0
"""Most memory of an ended job that is remembered, bytes; its records in memory and its place in lists."""

LEAK_BYTES_A_JOB_MAX: Final = 200.0
"""Most growth for each job that ends while another is forgotten, bytes: less than the smallest leak of an object a job."""

PER_THOUSAND_JOBS_MAX: Final = 0.5
"""Most growth of descriptors, and of threads, for each thousand jobs."""

JOURNAL_BYTES_A_JOB_MAX: Final = 4_000.0
DRIFT_MAX: Final = 0.25
"""Most growth over the whole second part, as a part of what it was: processor time of a job, latency."""


@dataclass(frozen=True, slots=True)
class Sample:
    """How a daemon stands.

    Attributes:
        at_s: since the load began, seconds.
        remembered: its own users' jobs that have ended and can be asked for.
        ended: own users' jobs that have ended since its start.
        load: of the machine over a minute.
    """

    at_s: float
    rss_bytes: int
    descriptors: int
    threads: int
    processor_s: float
    remembered: int
    ended: int
    open: int
    journal_bytes: int
    journal_records: int
    load: float


@dataclass(slots=True)
class Observed:
    """What came of a run.

    Attributes:
        north: samples of the site that is not restarted.
        latencies: moments and seconds of submissions at it.
        south_journal: length of the journal of the other site after each start, bytes.
        acknowledged: how many jobs each site has taken.
        counts: what happened how often.
        problems: what must not happen, in words.
    """

    north: list[Sample] = field(default_factory=list)
    latencies: list[tuple[float, float]] = field(default_factory=list)
    south_journal: list[int] = field(default_factory=list)
    starts_s: list[float] = field(default_factory=list)
    acknowledged: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Site(SiteProcess):
    """A daemon with figures."""

    metrics_port = 0

    async def sample(self, at_s: float) -> Sample:
        """Returns how it stands."""
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        text = await asyncio.to_thread(lambda: urlopen(url, timeout=30).read().decode())
        found: defaultdict[str, float] = defaultdict(float)
        for family in text_string_to_metric_families(text):
            for each in family.samples:
                found[each.name] += each.value
                if each.name == "hanse_jobs":
                    found[each.labels["state"]] += each.value
        process = psutil.Process(self.pid)
        used = process.cpu_times()
        return Sample(
            round(at_s, 1),
            process.memory_info().rss,
            process.num_fds(),
            process.num_threads(),
            round(used.user + used.system, 2),
            int(found["ended"]),
            int(found["hanse_jobs_ended_total"]),
            int(found["hanse_jobs"] - found["ended"]),
            int(found["hanse_journal_bytes"]),
            int(found["hanse_journal_records"]),
            round(os.getloadavg()[0], 2),
        )


def documents(
    folder: Path, sockets: Path, remembered: int
) -> dict[str, tuple[dict[str, Any], int]]:
    """Returns the configuration of each site, and the port of its figures."""
    ports = free_ports(2 * len(SITES))
    doors, figures = ports[: len(SITES)], ports[len(SITES) :]
    found = {}
    for name, door, port in zip(SITES, doors, figures, strict=True):
        (other,) = [
            {"name": each, "address": f"127.0.0.1:{there}", "processors": PROCESSORS}
            for each, there in zip(SITES, doors, strict=True)
            if each != name
        ]
        document = {
            "name": name,
            "processors": PROCESSORS,
            "listen": {
                "users": str(sockets / f"{name}.sock"),
                "partners": f"127.0.0.1:{door}",
            },
            "journal": {"path": str(folder / f"{name}.journal"), "survives": "power_loss"},
            "metrics": {"listen": f"127.0.0.1:{port}"},
            "limits": {"ended_jobs": remembered, "forgotten_keys": remembered},
            "mqtt": {"enabled": False},
            "logging": {"format": "json"},
            "partners": [other],
        }
        found[name] = document, port
    return found


class Load:
    """Users who submit at a rate, whatever the daemons do."""

    def __init__(self, sites: Mapping[str, Site], observed: Observed, begin: float) -> None:
        self._sites = sites
        self._observed = observed
        self._begin = begin
        self._rng = random.Random(1)  # noqa: S311  # a load, no secrets
        self._last: dict[str, str] = {}

    async def run(self, seconds: float) -> None:
        """Submits for some time, and returns when all is answered and watched to its end."""
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            clients = {
                name: await stack.enter_async_context(Client(site.socket, timeout_s=120.0))
                for name, site in self._sites.items()
            }
            for number in range(int(seconds * RATE_PER_S)):
                due = self._begin + number / RATE_PER_S
                if (pause := due - time.perf_counter()) > 0:
                    await asyncio.sleep(pause)
                name = "north" if self._rng.random() < NORTH_SHARE else "south"
                one = self._one(number, due, name, clients[name])
                group.create_task(one, name=f"job {number}")

    async def _one(self, number: int, due: float, name: str, client: Client) -> None:
        chances = [self._rng.random() for _ in range(5)]
        wanted: dict[str, Any] = {
            "processors": self._rng.choice(WIDTHS),
            "requested_time_s": 30.0,
            "run_time_s": min(20.0, self._rng.expovariate(1 / RUN_TIME_S)),
            "key": f"soak {number}",
        }
        counts = self._observed.counts
        if chances[0] < 0.05 and name in self._last:
            wanted["dependency"] = f"afterany:{self._last[name]}"
        try:
            if chances[1] < 0.1:
                counts["connections"] += 1
                async with Client(self._sites[name].socket, timeout_s=120.0) as own:
                    job = await own.submit(**wanted)
            else:
                job = await client.submit(**wanted)
            if name == "north":
                took = time.perf_counter() - due
                self._observed.latencies.append((due - self._begin, took))
            self._observed.acknowledged[name] += 1
            self._last[name] = job.job_id
            if chances[2] < 0.05:
                counts["handed_in_again"] += 1
                again = await client.submit(**wanted)
                if again.job_id != job.job_id:
                    self._observed.problems.append(f"{job.job_id} came again as {again.job_id}")
            if chances[3] < 0.02:
                counts["cancelled"] += 1
                await client.cancel(job.job_id)
            if chances[4] < 0.1:
                counts["watched"] += 1
                await client.wait(job.job_id)
        except SiteError as error:
            if error.is_forgotten:
                counts["forgotten_before_they_were_asked_for"] += 1
            else:
                self._observed.problems.append(f"job {number} at {name}: {error}")


async def soak(folder: Path, sockets: Path, seconds: float) -> Observed:
    """Runs it all; the folders are new, that of `sockets` with a short path."""
    observed = Observed()
    remembered = int(RATE_PER_S * seconds * REMEMBERED_PART * NORTH_SHARE)
    sites: dict[str, Site] = {}
    for name, (document, port) in documents(folder, sockets, remembered).items():
        sites[name] = Site(name, folder, sockets)
        sites[name].configure(document)
        sites[name].metrics_port = port
    north, south = sites["north"], sites["south"]
    try:
        for site in sites.values():
            await site.start()
        begin = time.perf_counter()
        load = asyncio.create_task(Load(sites, observed, begin).run(seconds), name="load")
        restarts = asyncio.create_task(_restart(south, observed, seconds, load), name="restarts")
        for _ in range(SAMPLES):
            await asyncio.sleep(seconds / SAMPLES)
            observed.north.append(await north.sample(time.perf_counter() - begin))
            if load.done() or (restarts.done() and restarts.exception()):
                break
            if len(observed.north) % 10 == 0:
                print(json.dumps(_shown(observed)), file=sys.stderr, flush=True)
        await asyncio.gather(load, restarts)
        await _until_all_ended(sites, observed)
        start = time.perf_counter()
        await north.stop()
        await north.start()
        observed.starts_s.append(round(time.perf_counter() - start, 2))
        after = await north.sample(0.0)
        observed.counts["north_journal_bytes_before"] = observed.north[-1].journal_bytes
        observed.counts["north_journal_bytes_after"] = after.journal_bytes
        observed.counts["remembered_at_most"] = remembered
        if after.remembered < min(remembered, observed.acknowledged["north"]):
            observed.problems.append(f"north remembers {after.remembered} jobs after its restart")
    finally:
        await asyncio.gather(*(site.stop() for site in sites.values()))
    for site in sites.values():
        log = site.log_path.read_text(encoding="utf-8", errors="replace")
        observed.counts[f"compactions_{site.name}"] = log.count("journal_compacted")
        if "Traceback" in log:
            observed.problems.append(f"{site.name} wrote: {log[log.index('Traceback') :][:2000]}")
    return observed


def _shown(observed: Observed) -> dict[str, Any]:
    last = observed.north[-1]
    return {
        "at_s": last.at_s,
        "rss_mb": round(last.rss_bytes / 1e6, 1),
        "remembered": last.remembered,
        "ended": last.ended,
        "descriptors": last.descriptors,
        "threads": last.threads,
        "load": last.load,
        "problems": len(observed.problems),
    }


async def _restart(
    south: Site, observed: Observed, seconds: float, load: asyncio.Task[None]
) -> None:
    for number in range(RESTARTS - 1):
        await asyncio.wait([load], timeout=seconds / RESTARTS)
        if load.done():
            return
        await (south.kill() if number % 2 else south.stop())
        observed.counts["kills" if number % 2 else "stops"] += 1
        start = time.perf_counter()
        await south.start()
        observed.starts_s.append(round(time.perf_counter() - start, 2))
        observed.south_journal.append((south.folder / "south.journal").stat().st_size)


async def _until_all_ended(sites: Mapping[str, Site], observed: Observed) -> None:
    """Notes jobs that have not ended some time after the load."""
    deadline = time.perf_counter() + ENDED_WITHIN_S
    for name, site in sites.items():
        async with Client(site.socket, timeout_s=60.0) as client:
            while open_jobs := [job async for job in client.jobs() if not job.has_ended]:
                if time.perf_counter() > deadline:
                    observed.problems.append(f"{len(open_jobs)} jobs of {name} have not ended")
                    break
                await asyncio.sleep(0.5)
    ended = (await sites["north"].sample(0.0)).ended
    if ended != observed.acknowledged["north"]:
        observed.problems.append(f"north took {observed.acknowledged['north']} and ended {ended}")


def growing_and_level(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Returns the samples in which ever more jobs are remembered, and those in which nothing is kept any more.

    Behind jobs as many keys are kept, and the simulated batch system keeps jobs, of which not all run at their home.
    """
    most = max(sample.remembered for sample in samples)
    first = next(sample.ended for sample in samples if sample.remembered == most)
    growing = [sample for sample in samples if most / 5 <= sample.remembered < most]
    return growing, [
        sample for sample in samples if sample.ended >= max(2.2 * first, 2 * FORGOTTEN_AFTER)
    ]


def verdicts(observed: Observed) -> list[Verdict]:
    """Returns what the samples say.

    Raises:
        ValueError: there are too few of them.
    """
    growing, level = growing_and_level(observed.north)
    if min(len(growing), len(level)) < SAMPLES_MIN:
        raise ValueError("there are too few samples; 15 minutes or more are needed")
    ended = [float(sample.ended) for sample in level]
    first_s, span_s = level[0].at_s, level[-1].at_s - level[0].at_s
    late = [one for one in observed.latencies if one[0] >= first_s]
    usual = float(np.median([seconds for _, seconds in late]))
    moments, medians, highest = _latencies(late, first_s, span_s)
    used = [
        (later.processor_s - before.processor_s) / max(1, later.ended - before.ended)
        for before, later in pairwise(level)
    ]
    times = [sample.at_s for sample in level[1:]]
    return [
        judged(
            "memory of an ended job that is remembered, bytes",
            slope(
                [sample.remembered for sample in growing],
                [sample.rss_bytes for sample in growing],
            ),
            BYTES_A_JOB_MAX,
        ),
        judged(
            "growth of memory a job once as many are forgotten as end, bytes",
            slope(ended, [sample.rss_bytes for sample in level]),
            LEAK_BYTES_A_JOB_MAX,
        ),
        judged(
            "growth of open descriptors a thousand jobs",
            slope(ended, [sample.descriptors for sample in level]),
            PER_THOUSAND_JOBS_MAX,
            1000.0,
        ),
        judged(
            "growth of threads a thousand jobs",
            slope(ended, [sample.threads for sample in level]),
            PER_THOUSAND_JOBS_MAX,
            1000.0,
        ),
        judged(
            "journal a job until it is compacted, bytes",
            slope(ended, [sample.journal_bytes for sample in level]),
            JOURNAL_BYTES_A_JOB_MAX,
        ),
        judged(
            "growth of the processor time of a job over the second part, of 1",
            slope(times, used),
            DRIFT_MAX,
            span_s / float(np.median(used)),
        ),
        judged(
            "growth of the median latency of a submission over the second part, of 1",
            slope(moments, medians),
            DRIFT_MAX,
            span_s / usual,
        ),
        judged(
            "growth of the 99th percentile of latencies over the second part, of 1",
            slope(moments, highest),
            2 * DRIFT_MAX,
            span_s / float(np.median(highest)),
        ),
        counted("what must not happen", len(observed.problems), 0),
    ]


def _latencies(
    late: Sequence[tuple[float, float]], first_s: float, span_s: float
) -> tuple[list[float], list[float], list[float]]:
    """Returns moments, and medians and 99th percentiles of the submissions about them."""
    windows: list[list[float]] = [[] for _ in range(4 * SAMPLES_MIN)]
    for moment, seconds in late:
        place = int((moment - first_s) / span_s * len(windows))
        windows[min(place, len(windows) - 1)].append(seconds)
    rows = [
        (number * span_s / len(windows), *np.percentile(each, [50, 99]))
        for number, each in enumerate(windows)
        if each
    ]
    moments, medians, highest = zip(*rows, strict=True)
    return list(moments), list(map(float, medians)), list(map(float, highest))


def figures(observed: Observed, found: Sequence[Verdict], minutes: float) -> dict[str, Any]:
    """Returns what is kept of a run."""
    growing, level = growing_and_level(observed.north)
    loads = [sample.load for sample in observed.north]
    latencies = [seconds for _, seconds in observed.latencies]
    return {
        "minutes": minutes,
        "per_s": RATE_PER_S,
        "acknowledged": dict(observed.acknowledged),
        **dict(sorted(observed.counts.items())),
        "south_journal_bytes_after_starts": observed.south_journal,
        "starts_s": observed.starts_s,
        "latency_ms": spread(latencies),
        "processor_s": observed.north[-1].processor_s,
        "load_average": {
            "least": min(loads),
            "median": float(np.median(loads)),
            "most": max(loads),
        },
        "level_from_s": level[0].at_s,
        "growing_samples": len(growing),
        "level_samples": len(level),
        "verdicts": [each.document() for each in found],
        "problems": observed.problems[:20],
        "series": {
            name: [getattr(sample, name) for sample in observed.north[::5]]
            for name in (
                "at_s",
                "rss_bytes",
                "remembered",
                "ended",
                "descriptors",
                "threads",
                "load",
            )
        },
    }


def draw(observed: Observed, path: Path) -> None:
    """Draws memory, descriptors, journal and latency over time."""
    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    minutes = [sample.at_s / 60 for sample in observed.north]
    panels = figure.subplots(2, 2, sharex=True).ravel()
    _, level = growing_and_level(observed.north)
    for axes, title, values in (
        (panels[0], "resident memory of north, MB", [s.rss_bytes / 1e6 for s in observed.north]),
        (panels[1], "open descriptors of north", [s.descriptors for s in observed.north]),
        (panels[2], "journal of north, MB", [s.journal_bytes / 1e6 for s in observed.north]),
    ):
        axes.plot(minutes, values, linewidth=1.2)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_ylim(bottom=0)
    first_s, span_s = observed.north[0].at_s, observed.north[-1].at_s - observed.north[0].at_s
    moments, medians, highest = _latencies(observed.latencies, first_s, span_s)
    at = [(first_s + moment) / 60 for moment in moments]
    panels[3].semilogy(at, [1000 * each for each in medians], label="median")
    panels[3].semilogy(at, [1000 * each for each in highest], label="99th percentile")
    panels[3].set_title("latency of a submission at north, ms", loc="left", fontsize=10)
    panels[3].legend(frameon=False, fontsize=9)
    for axes in panels:
        axes.axvline(level[0].at_s / 60, color="grey", linewidth=0.8, linestyle=":")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[2:]:
        axes.set_xlabel("minutes; dotted: as many jobs are forgotten as end")
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    """Runs it, and says what came of it; 1 where a bound is broken."""
    parser = options_of(__doc__)
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--dry", action="store_true", help="write neither figures nor picture")
    arguments = parser.parse_args()
    here = machine()
    with tempfile.TemporaryDirectory(prefix="hanse-") as place:
        folder = Path(place)
        (folder / "s").mkdir()
        observed = asyncio.run(soak(folder, folder / "s", 60 * arguments.minutes))
    found = verdicts(observed)
    document = figures(observed, found, arguments.minutes)
    print(json.dumps({**document, "series": "…"}, indent=1))
    for each in found:
        print(
            f"{each.says:8} {each.what}: {each.estimate:.4g} [{each.low:.4g}, {each.high:.4g}], at most {each.most:g}"
        )
    if not arguments.dry:
        runs = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        runs[f"{arguments.minutes:g} minutes"] = {"machine": here, "figures": document}
        keep(FIGURES, runs)
        draw(observed, PICTURE)
    return int(any(each.says == "broken" for each in found))


if __name__ == "__main__":
    sys.exit(main())
