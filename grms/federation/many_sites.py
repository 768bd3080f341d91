"""Very many sites that exchange jobs, replayed on one clock from columns.

`Federation` builds an object for each site and a schedule with names; here a site is a row. All sites
have one discipline, one transfer policy and the order by AWRT of completed jobs: a partner is asked for what
the site itself has seen of it, and for nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from grms.federation._kernel import FederationKernel
from grms.policy.transfer import TransferPolicy, compiled_transfer
from lrms_sim.scheduling.disciplines import Discipline, scheduler_of
from lrms_sim.workload.jobs import FloatArray, Int32Array, Int64Array

__all__ = ["ManyJobs", "ManySites", "ManySitesReplay", "WideArea", "acquaintances"]

ROWS_AT_ONCE = 1_000_000
"""Between two reports of progress."""

DELAY_MAX = 1e9
"""Longest median round trip and time-out, seconds."""

SPREAD_MAX = 10.0
"""Largest standard deviation of logarithms of round trips. With these bounds every message arrives at a finite time."""


@dataclass(frozen=True, slots=True, eq=False)
class ManyJobs:
    """Jobs of very many sites, in order of arrival.

    Attributes:
        home: number of the site at which each is submitted, shape (n,).
        submit_time: seconds, ascending, shape (n,).
        processors: at least 1, shape (n,); no job is wider than its home.
        requested_time: seconds, not below the run time, shape (n,).
        run_time: seconds, finite and at least 0, shape (n,).
    """

    home: Int32Array
    submit_time: FloatArray
    processors: Int32Array
    requested_time: FloatArray
    run_time: FloatArray

    def __len__(self) -> int:
        return len(self.home)


@dataclass(frozen=True, slots=True, eq=False)
class ManySitesReplay:
    """What came of a replay.

    Attributes:
        start_time: seconds, shape (n,).
        end_time: seconds, shape (n,).
        executed_on: number of a site, shape (n,).
        offers: questions that each site has asked, shape (k,).
    """

    start_time: FloatArray
    end_time: FloatArray
    executed_on: Int32Array
    offers: Int64Array

    def awrt(self, jobs: ManyJobs) -> float:
        """Returns the average response time of all jobs, weighted by work, seconds."""
        work = jobs.run_time * jobs.processors
        return float(work @ (self.end_time - jobs.submit_time) / work.sum())

    def awrt_by_site(self, jobs: ManyJobs, sites: int) -> FloatArray:
        """Returns the same of each site's own users, shape (k,), nan for sites without work."""
        work = jobs.run_time * jobs.processors
        response = work * (self.end_time - jobs.submit_time)
        with np.errstate(invalid="ignore"):
            found: FloatArray = np.bincount(jobs.home, response, sites) / np.bincount(
                jobs.home, work, sites
            )
        return found


@dataclass(frozen=True, slots=True)
class WideArea:
    """Messages that take time, and questions that are lost.

    A question, its answer and the report of an end each take half the round trip between two sites, which is drawn
    for each pair from a log-normal distribution. Partners are asked in the order that they have when the job is
    submitted. An offer is decided by what the partner is when it arrives; the job is in no queue until it is
    accepted, or its home has asked enough. A lost question has not reached the partner, nor does one that has left the
    exchange answer: after the time-out its home asks the next one. No answer and no report is lost: sites
    repeat these.

    All draws depend on the seed and on numbers of sites and jobs alone.

    Attributes:
        median: of all round trips, seconds, from 0 to `DELAY_MAX`.
        spread: standard deviation of their natural logarithms, from 0 to `SPREAD_MAX`; 0: all take the same time.
        lost: part of the questions, at least 0 and below 1, drawn for each job and partner.
        timeout: after a question, seconds, from 0 to `DELAY_MAX`.
        seed: at least 0.

    Raises:
        ValueError: a number is out of its bounds.
    """

    median: float
    spread: float = 0.0
    lost: float = 0.0
    timeout: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in (
            ("median", DELAY_MAX),
            ("spread", SPREAD_MAX),
            ("timeout", DELAY_MAX),
        ):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to {most:g}")
        if not 0 <= self.lost < 1:
            raise ValueError(f"lost is {self.lost}; it must be at least 0 and below 1")
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"seed is {self.seed}; it must be at least 0 and below 2^64")


@dataclass(frozen=True, slots=True, eq=False)
class ManySites:
    """Sites that exchange jobs by the same rules.

    Attributes:
        processors: size of each machine, at least 1, shape (k,).
        discipline: of every queue.
        policy: for every partner; constraints with an account are not possible.
        partners_asked: most partners asked about a job in one decision; `None`: all.
        known: offsets, shape (k + 1,), into the sites that follow: the partners that each site knows, in
            site order, as `acquaintances` draws them; `None`: all others.
        down: offsets, shape (k + 1,), into moments in ascending order, seconds: at the first of its moments a site leaves the
            exchange, at the second it comes back, and so on. Meanwhile it asks nobody and answers nobody;
            jobs that are there run on. `None`: all stay.
        own_order: whether each site has an order of its own for partners of which it has seen equally much, above all
            those never asked: the one behind itself first, and so round. Else all have that of their numbers, as
            sites of `Federation`, and ask the first ones first.
        wide_area: `None`: questions are answered at once, and none is lost. Else `partners_asked` is a
            number, and no discipline makes passes per event.
    """

    processors: Int32Array
    discipline: Discipline
    policy: TransferPolicy
    partners_asked: int | None = None
    known: tuple[Int64Array, Int32Array] | None = None
    down: tuple[Int64Array, FloatArray] | None = None
    own_order: bool = False
    wide_area: WideArea | None = None

    def exchange(
        self, jobs: ManyJobs, *, progress: Callable[[int], None] | None = None
    ) -> ManySitesReplay:
        """Replays jobs with exchange, as `Federation.exchange`; `progress` gets the number of arrived jobs.

        Raises:
            ValueError: a job cannot be run or is wider than its home, jobs are out of order, lists are of other sites, nobody
                may be asked, or messages cannot take time here.
        """
        count = len(self.processors)
        if self.partners_asked is not None and self.partners_asked < 1:
            raise ValueError(f"{self.partners_asked} partners asked; at least 1, or None for all")
        _check(jobs)
        if len(jobs) and not 0 <= jobs.home.min() <= jobs.home.max() < count:
            raise ValueError(f"jobs are submitted to sites that are not among {count}")
        wide = np.flatnonzero(jobs.processors > self.processors[jobs.home])
        if len(wide):
            raise ValueError(f"job {wide[0]} is wider than its site")
        policy = compiled_transfer(self.policy)
        network = self.wide_area
        kernel = FederationKernel(
            self.processors.tolist(),
            [scheduler_of(self.discipline) for _ in range(count)],
            [policy] * count,
            [None] * count,
            [False] * count,
            partners_asked=[self.partners_asked] * count,
            known=self.known,
            down=self.down,
            own_order=self.own_order,
            wide_area=None
            if network is None
            else (network.seed, network.median, network.spread, network.lost, network.timeout),
        )
        start_time = np.full(len(jobs), np.nan)
        end_time = np.full(len(jobs), np.nan)
        executed_on = np.full(len(jobs), -1, np.int32)
        kernel.bind(
            jobs.submit_time,
            jobs.processors,
            jobs.requested_time,
            jobs.run_time,
            jobs.home,
            start_time,
            end_time,
            executed_on,
        )
        row = 0
        while True:
            row = kernel.run(min(row + ROWS_AT_ONCE, len(jobs)))
            if progress is not None:
                progress(row)
            if row == len(jobs):
                break
        return ManySitesReplay(start_time, end_time, executed_on, np.array(kernel.offers, np.int64))


def _check(jobs: ManyJobs) -> None:
    """Raises ValueError if jobs cannot be run, or are out of order."""
    if np.any(np.diff(jobs.submit_time) < 0):
        raise ValueError("jobs are not in order of arrival")
    for words, good in (
        ("submit time is not finite", np.isfinite(jobs.submit_time)),
        ("width is below 1", jobs.processors >= 1),
        ("run time is negative or not finite", (jobs.run_time >= 0) & (jobs.run_time < np.inf)),
        ("request is below its run time", jobs.requested_time >= jobs.run_time),
    ):
        wrong = np.flatnonzero(~good)
        if len(wrong):
            raise ValueError(f"job {wrong[0]}: its {words}")


def acquaintances(
    count: int, each: int, rng: np.random.Generator
) -> tuple[Int64Array, npt.NDArray[np.int32]]:
    """Draws who knows whom: about `each` partners of every site, both ways.

    Every site names half as many others by chance, and is known to those that it names.

    Returns:
        Offsets and partners, as `ManySites.known`.

    Raises:
        ValueError: there are not so many others.
    """
    if not 2 <= each < count:
        raise ValueError(
            f"{each} partners of {count} sites; between 2 and {count - 1} are possible"
        )
    naming = np.repeat(np.arange(count, dtype=np.int64), each // 2)
    named = rng.integers(0, count - 1, len(naming))
    named += named >= naming  # anybody else
    pairs = np.unique(np.concatenate([naming * count + named, named * count + naming]))
    offsets = np.searchsorted(pairs, np.arange(count + 1, dtype=np.int64) * count)
    return offsets.astype(np.int64), (pairs % count).astype(np.int32)
