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

__all__ = ["ManyJobs", "ManySites", "ManySitesReplay", "acquaintances"]

ROWS_AT_ONCE = 1_000_000
"""Between two reports of progress."""


@dataclass(frozen=True, slots=True, eq=False)
class ManyJobs:
    """Jobs of very many sites, in order of arrival.

    Attributes:
        home: number of the site at which each is submitted, shape (n,).
        submit_time: seconds, ascending, shape (n,).
        processors: shape (n,); no job is wider than its home.
        requested_time: seconds, shape (n,).
        run_time: seconds, shape (n,).
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
    """

    processors: Int32Array
    discipline: Discipline
    policy: TransferPolicy
    partners_asked: int | None = None
    known: tuple[Int64Array, Int32Array] | None = None
    down: tuple[Int64Array, FloatArray] | None = None
    own_order: bool = False

    def exchange(
        self, jobs: ManyJobs, *, progress: Callable[[int], None] | None = None
    ) -> ManySitesReplay:
        """Replays jobs with exchange, as `Federation.exchange`; `progress` gets the number of arrived jobs.

        Raises:
            ValueError: a job is wider than its home, jobs are out of order, or lists are of other sites.
        """
        count = len(self.processors)
        if np.any(np.diff(jobs.submit_time) < 0):
            raise ValueError("jobs are not in order of arrival")
        if len(jobs) and not 0 <= jobs.home.min() <= jobs.home.max() < count:
            raise ValueError(f"jobs are submitted to sites that are not among {count}")
        wide = np.flatnonzero(jobs.processors > self.processors[jobs.home])
        if len(wide):
            raise ValueError(f"job {wide[0]} is wider than its site")
        policy = compiled_transfer(self.policy)
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
