"""The study: which replays it has, and what is kept of them."""

import multiprocessing
import re
import resource
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console

from grms.federation.many_sites import (
    ManyJobs,
    ManySites,
    ManySitesReplay,
    WideArea,
    acquaintances,
)
from grms.policy.registry import TRANSFER_POLICIES
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import FloatArray, Int32Array, Int64Array
from lrms_sim.workload.lublin import generate_many
from scenarios.studies.common.frame import CaseStudy, plain_options, run_cases
from scenarios.studies.scale.options import StudyOptions

ALL: Final = 0
"""As `asked` or `known`: every partner."""

ASKED: Final = (1, 2, 4, 8, 16, ALL)
USUAL: Final = 8
"""Partners asked where something else is varied."""

KNOWN: Final = 64
"""Partners that a site knows, where these are few."""

COMMON: Final = (2, 4, 8, 16)
"""As `asked`, where all sites have one order of partners."""

AWAY: Final = (5, 20)
"""Parts of the time that a site is away, percent."""

ABSENCE_H: Final = 13.0
"""Mean absence, hours: that of network errors at three grid sites (Alsoghayer and Djemame, *Probabilistic Risk
Assessment for Resource Provision in Grid*)."""

PRESENCE_SHAPE: Final = 0.7
"""Of the Weibull distribution of the times between absences, whose hazard falls (Schroeder and Gibson 2006, *A
large-scale study of failures in high-performance computing systems*, have 0.7 to 0.8)."""

MEDIAN_S: Final = 0.16
"""Of round trips, seconds: about that between 1,740 name servers (King, Gummadi, Saroiu and Gribble 2002; used by Dabek,
Cox, Kaashoek and Morris 2004, *Vivaldi*)."""

SPREAD: Final = 0.5
"""Standard deviation of the logarithms of round trips: an assumption, by which one in twenty takes 0.36 s and more."""

AT_ONCE: Final = "at once"
NETWORKS: Final = {
    "delay": WideArea(MEDIAN_S, SPREAD),
    "usual": WideArea(MEDIAN_S, SPREAD, 0.015, 2.0),
    "poor": WideArea(MEDIAN_S, SPREAD, 0.056, 60.0),
    "bad": WideArea(MEDIAN_S, SPREAD, 0.2, 60.0),
}
"""By name, seeds aside. In the usual one as many questions are lost as accesses to web sites fail (median 1.5 %: *A study of
end-to-end web access failures*, CoNEXT 2006), and the time-out is the default of `limits.offer_timeout_s`. In the
poor one as many are lost as broadband hosts are out of reach (availability 94.4 %: Gummadi and others 2004, *Improving the
reliability of Internet paths with one-hop source routing*), with a time-out of a minute. The bad one is beyond both."""

SIZES: Final = (64, 128, 256, 512, 1024)
"""Of machines, as likely each."""

LOADS: Final = (0.5, 1.0)
"""Of machines alone, uniform in between."""

POLICY: Final = "fair-exchange"
DISCIPLINE: Final = "easy"


@dataclass(frozen=True, slots=True)
class Case:
    """One replay.

    Attributes:
        jobs: of each site.
        asked: most partners asked about a job; `ALL`.
        known: about so many partners does a site know; `ALL`.
        away: part of the time that each site is away, percent.
        common: whether all sites ask partners of which they have seen equally much in one order, that of their
            numbers; else each begins with the one behind itself.
        draw: number of the draw of sites, workloads, acquaintances, absences and messages, from 1.
        network: a key of `NETWORKS`; `AT_ONCE`.
    """

    sites: int
    jobs: int
    asked: int
    known: int
    away: int
    common: bool
    draw: int
    network: str = AT_ONCE

    @property
    def key(self) -> str:
        """A name of its own."""
        order = "common" if self.common else "own"
        network = "" if self.network == AT_ONCE else f" {self.network}"
        return f"{self.sites} {self.jobs} {self.asked} {self.known} {self.away} {order} {self.draw}{network}"


Study = CaseStudy[Case]


def cases(options: StudyOptions) -> Iterator[Case]:
    """Yields every replay of the study once."""
    for sites in options.sites:
        for draw in range(1, options.draws + 1):
            for asked in ASKED:
                yield Case(sites, options.jobs, asked, ALL, 0, False, draw)
            for asked in COMMON:
                yield Case(sites, options.jobs, asked, ALL, 0, True, draw)
            if sites > KNOWN:
                yield Case(sites, options.jobs, USUAL, KNOWN, 0, False, draw)
            for away in AWAY:
                yield Case(sites, options.jobs, USUAL, ALL, away, False, draw)
            for network in NETWORKS:
                yield Case(sites, options.jobs, USUAL, ALL, 0, False, draw, network)


def run_study(options: StudyOptions, console: Console) -> Study:
    """Runs what is still to be done and returns all of it.

    Raises:
        OutputError: the file of replays cannot be read or written.
        KeyboardInterrupt: the user has enough; what is done is kept.
    """
    every = {case.key: case for case in cases(options)}
    known = run_cases(
        options.folder, every, alone_in_processes, console, what="replays", describe=words
    )
    return Study(plain_options(options), tuple((case, known[key]) for key, case in every.items()))


def words(case: Case) -> str:
    """Returns what a case is called while it runs."""
    return f"{case.sites:,} sites, {case.asked or 'all'} asked, draw {case.draw}"


def alone_in_processes(todo: Iterable[Case]) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Runs cases one after the other, each in a process of its own, whose memory is the case's."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, fresh, max_tasks_per_child=1) as pool:
        for case in todo:
            yield case, pool.submit(run_case, case).result()


def drawn(case: Case) -> tuple[Int32Array, ManyJobs]:
    """Returns the sizes of a case's machines, and the jobs of all sites in order of arrival."""
    rng = np.random.default_rng([case.draw, case.sites])
    sizes = np.array(SIZES, np.int32)[rng.integers(0, len(SIZES), case.sites)]
    loads = rng.uniform(*LOADS, case.sites)
    hours = rng.integers(0, 24, case.sites).astype(np.float64)
    made = generate_many(sizes, seed=case.draw, jobs=case.jobs, load=loads, start_hour=hours)
    submit = made.submit_time.ravel()
    order = np.argsort(submit, kind="stable")
    return sizes, ManyJobs(
        np.repeat(np.arange(case.sites, dtype=np.int32), case.jobs)[order],
        submit[order],
        made.processors.ravel()[order],
        made.requested_time.ravel()[order],
        made.run_time.ravel()[order],
    )


def absences(
    sites: int, away: int, until: float, rng: np.random.Generator
) -> tuple[Int64Array, FloatArray]:
    """Draws when sites leave and come back, until a moment, as `ManySites.down`; all are there at first.

    Absences are exponential with a mean of `ABSENCE_H`; times between them follow a Weibull distribution.
    """
    absence = ABSENCE_H * 3600.0
    presence = absence * (100.0 / away - 1.0)
    scale = presence / float(np.mean(rng.weibull(PRESENCE_SHAPE, 100_000)))
    rounds = 1 + int(4 * until / (absence + presence))
    spans = np.empty((sites, 2 * rounds))
    spans[:, 0::2] = scale * rng.weibull(PRESENCE_SHAPE, (sites, rounds))
    spans[:, 1::2] = rng.exponential(absence, (sites, rounds))
    moments = np.cumsum(np.maximum(spans, 1.0), 1)
    kept = moments < until
    offsets = np.concatenate([[0], np.cumsum(kept.sum(1))]).astype(np.int64)
    return offsets, moments[kept]


def run_case(case: Case) -> dict[str, Any]:
    """Replays a case; returns plain values.

    `microseconds` of processor time a job; `megabytes`, most of the whole process; `gain` of all jobs' AWRT against
    all sites alone, percent, positive where shorter; `losing`, part of the sites whose own gain is below −1 %,
    percent; `moved`, jobs that ran elsewhere, percent; `offers`, questions a job; `awrt` alone, seconds.
    """
    sizes, jobs = drawn(case)
    discipline = discipline_by_name(DISCIPLINE)
    rng = np.random.default_rng([case.draw, case.sites, 1])
    known = None if case.known == ALL else acquaintances(case.sites, case.known, rng)
    until = float(jobs.submit_time[-1])
    down = absences(case.sites, case.away, until, rng) if case.away else None
    asked = None if case.asked == ALL else case.asked
    wide = None
    if case.network != AT_ONCE:
        wide = replace(NETWORKS[case.network], seed=case.draw)
    sites = ManySites(
        sizes, discipline, TRANSFER_POLICIES[POLICY], asked, known, down, not case.common, wide
    )
    begin = time.process_time()
    together = sites.exchange(jobs)
    taken = time.process_time() - begin
    peak = peak_megabytes()
    alone = ManySites(sizes, discipline, TRANSFER_POLICIES["keep"], 1).exchange(jobs)
    return {
        "microseconds": taken / len(jobs) * 1e6,
        "megabytes": peak,
        **_gains(jobs, case.sites, alone, together),
        "moved": 100.0 * float(np.mean(together.executed_on != jobs.home)),
        "offers": float(together.offers.sum()) / len(jobs),
        "awrt": alone.awrt(jobs),
    }


def peak_megabytes() -> float:
    """Returns the most memory that this process has had.

    Where the kernel says it in /proc: what getrusage says of a new process includes the one that started it.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000.0
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None, "Linux says it of every process"
    return int(found[1]) / 1000.0


def _gains(
    jobs: ManyJobs, sites: int, alone: ManySitesReplay, together: ManySitesReplay
) -> dict[str, float]:
    each = 100.0 * (1.0 - together.awrt_by_site(jobs, sites) / alone.awrt_by_site(jobs, sites))
    return {
        "gain": 100.0 * (1.0 - together.awrt(jobs) / alone.awrt(jobs)),
        "losing": 100.0 * float(np.mean(each < -1.0)),
    }
