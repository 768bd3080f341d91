"""Sites that exchange jobs, replayed on one clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from grms.federation._kernel import FederationKernel
from grms.policy.location import AwrtLocation, FixedOrder, LocationPolicy
from grms.policy.transfer import TransferPolicy
from lrms_sim.disciplines import Discipline, Fcfs
from lrms_sim.jobs import JobTable, concatenate
from lrms_sim.machine import PROGRESS_ROWS, check_machine, simulate
from lrms_sim.schedule import MachineInfo, Schedule

SITES_MAX = 2**15 - 1
"""Most sites in one federation: the kernel numbers them with 16 bits."""


@dataclass(frozen=True)
class Site:
    """One institution: its machine, its users' workload, and how it deals with partners.

    Attributes:
        name: unique in the federation.
        processors: size of the machine.
        jobs: its own users' workload; no job wider than the machine.
        discipline: of the machine's queue.
        transfer_policies: by partner's name. A partner that is missing is neither asked nor
            answered.
        location_policy: in which order partners are asked.
    """

    name: str
    processors: int
    jobs: JobTable
    discipline: Discipline = field(default_factory=Fcfs)
    transfer_policies: Mapping[str, TransferPolicy] = field(default_factory=dict)
    location_policy: LocationPolicy = field(default_factory=AwrtLocation)


def replay(sites: Sequence[Site], *, progress: Callable[[int], None] | None = None) -> Schedule:
    """Replays the workloads of several sites that exchange jobs.

    Semantics (paper 003, sections 3, 4 and 7.1): one clock; at one instant completions, then
    queue starts, then arrivals in the order (submit time, site, job), each decided before the
    next. A job goes to the first partner that the location policy names, that is large enough,
    that home would rather have run it, and that accepts it; if there is none, it stays home.

    Args:
        sites: at least one; their order breaks ties.
        progress: called now and then with the number of jobs that have arrived so far.

    Returns:
        The schedule, in order of arrival.

    Raises:
        ValueError: a name comes twice, a policy names a site that is not there, or a job is
            wider than its site.
    """
    _check(sites)
    jobs, origin, rows = concatenate([site.jobs for site in sites])
    count = len(jobs)
    submitted_to = origin.astype(np.int16)
    start_time = np.full(count, np.nan)
    end_time = np.full(count, np.nan)
    executed_on = np.full(count, -1, np.int16)
    index = {site.name: i for i, site in enumerate(sites)}
    kernel = FederationKernel(
        [site.processors for site in sites],
        [site.discipline.scheduler() for site in sites],
        [
            [
                site.transfer_policies[other.name].compiled
                if other.name in site.transfer_policies
                else None
                for other in sites
            ]
            for site in sites
        ],
        [
            [index[name] for name in site.location_policy.order]
            if isinstance(site.location_policy, FixedOrder)
            else None
            for site in sites
        ],
    )
    kernel.bind(
        jobs.submit_time,
        jobs.processors,
        jobs.requested_time,
        jobs.run_time,
        submitted_to,
        start_time,
        end_time,
        executed_on,
    )
    row = 0
    while True:
        row = kernel.run(min(row + PROGRESS_ROWS, count))
        if progress is not None:
            progress(row)
        if row == count:
            break
    return Schedule(
        jobs=jobs,
        start_time=start_time,
        end_time=end_time,
        machines=tuple(MachineInfo(site.name, site.processors) for site in sites),
        submitted_to=submitted_to,
        executed_on=executed_on,
        log_job_id=_log_job_ids(sites, origin, rows),
    )


def replay_alone(
    sites: Sequence[Site], *, progress: Callable[[int], None] | None = None
) -> Schedule:
    """Replays the same workloads with every site by itself: the no-cooperation baseline.

    Args:
        sites: as for `replay`; their policies are not used.
        progress: called now and then with the number of jobs that have arrived so far.

    Returns:
        The schedule, rows as `replay` has them.

    Raises:
        ValueError: as for `replay`.
    """
    _check(sites)
    jobs, origin, rows = concatenate([site.jobs for site in sites])
    start_time = np.full(len(jobs), np.nan)
    end_time = np.full(len(jobs), np.nan)
    done = 0
    for index, site in enumerate(sites):
        before = done

        def shifted(arrived: int, before: int = before) -> None:
            if progress is not None:
                progress(before + arrived)

        alone = simulate(
            site.jobs, site.processors, site.discipline, name=site.name, progress=shifted
        )
        mine = origin == index
        start_time[mine] = alone.start_time[rows[mine]]
        end_time[mine] = alone.end_time[rows[mine]]
        done += len(site.jobs)
    submitted_to = origin.astype(np.int16)
    return Schedule(
        jobs=jobs,
        start_time=start_time,
        end_time=end_time,
        machines=tuple(MachineInfo(site.name, site.processors) for site in sites),
        submitted_to=submitted_to,
        executed_on=submitted_to,
        log_job_id=_log_job_ids(sites, origin, rows),
    )


def _log_job_ids(
    sites: Sequence[Site],
    origin: np.typing.NDArray[np.int32],
    rows: np.typing.NDArray[np.int64],
) -> np.typing.NDArray[np.int64]:
    ids = np.empty(len(origin), np.int64)
    for index, site in enumerate(sites):
        mine = origin == index
        ids[mine] = site.jobs.job_id[rows[mine]]
    return ids


def _check(sites: Sequence[Site]) -> None:
    if not 1 <= len(sites) <= SITES_MAX:
        raise ValueError(f"{len(sites)} sites; between 1 and {SITES_MAX} are possible")
    names = [site.name for site in sites]
    for position, site in enumerate(sites):
        if site.name in names[:position]:
            raise ValueError(f"two sites are called {site.name!r}; names must be unique")
        check_machine(site.jobs, site.processors, site.name)
        order = site.location_policy.order if isinstance(site.location_policy, FixedOrder) else ()
        for what, partners in (
            ("a transfer policy for", site.transfer_policies),
            ("a place in its location order for", order),
        ):
            for partner in partners:
                if partner == site.name:
                    raise ValueError(f"site {site.name!r} has {what} itself")
                if partner not in names:
                    raise ValueError(
                        f"site {site.name!r} has {what} {partner!r}; the sites are "
                        f"{', '.join(names)}"
                    )
