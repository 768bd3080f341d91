"""From what a scenario says of a site's queue to a discipline that a machine can run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.disciplines import Discipline, discipline_by_name, scheduler_of
from lrms_sim.scheduling.selection import Policy, with_local_time
from lrms_sim.scheduling.situations import header_start, zone_named, zone_of_header
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import StrategyFileError, load_strategy
from lrms_sim.util.file_errors import Mistake
from lrms_sim.workload.groups import Int8Array, known_user_groups, user_groups
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.windows import Shift
from scenarios.run.workloads import Workload, load_workload
from scenarios.spec.spec import SiteSpec
from scenarios.util.errors import SpecError, WorkloadError

SYNTHETIC_HEADER: Mapping[str, str] = {"UnixStartTime": "345600", "TimeZone": "0"}
"""Start of a synthetic workload: a Monday, 0 h UTC."""


def queues_of(
    sites: Sequence[SiteSpec], workloads: Sequence[Workload], shown: str
) -> list[Discipline]:
    """Returns the discipline of each site, with all that it needs to know.

    `workloads` are in the sites' order; `shown` is the scenario's name in errors.

    Raises:
        SpecError: a strategy file cannot be used, or the time at a site is unknown.
        WorkloadError: some site orders its queue by user group, and the users of a workload are not
            known.
    """
    if problems := queue_problems(sites):
        raise SpecError(shown, problems)
    queues = []
    for site, workload in zip(sites, workloads, strict=True):
        try:
            queues.append(_at_site(site, discipline_of(site), workload))
        except ValueError as error:
            problem = Mistake(f"sites.{site.name}.time_zone", str(error))
            raise SpecError(shown, [problem]) from error
    if any(scheduler_of(queue).needs_groups for queue in queues):
        for site, workload in zip(sites, workloads, strict=True):
            try:
                known_user_groups(workload.jobs)
            except ValueError as error:
                raise WorkloadError(f"sites.{site.name}.workload: {error}") from error
    return queues


def queue_problems(sites: Sequence[SiteSpec]) -> list[Mistake]:
    """Returns what is wrong with the strategy files that sites name."""
    problems = []
    for site in sites:
        try:
            discipline_of(site)
        except StrategyFileError as error:
            problems.append(Mistake(f"sites.{site.name}.strategy", str(error)))
        except (TypeError, ValueError) as error:
            problems.append(Mistake(f"sites.{site.name}.discipline", str(error)))
    return problems


def looks_at_groups(sites: Sequence[SiteSpec]) -> bool:
    """Returns whether some site's queue is ordered by user group."""
    return any(scheduler_needs_groups(discipline_of(site)) for site in sites)


def scheduler_needs_groups(discipline: Discipline) -> bool:
    """Returns whether a discipline uses user groups, also before it knows the time."""
    if isinstance(discipline, Policy):
        return discipline.needs_groups
    return scheduler_of(discipline).needs_groups


def groups_at_home(jobs: JobTable, submitted_to: npt.NDArray[np.integer]) -> Int8Array:
    """Returns the user group of each job of a federation, by the work of its own site.

    `submitted_to` has shape (n,): the site of each of the n jobs.
    """
    groups = np.zeros(len(jobs), np.int8)
    for site in np.unique(submitted_to):
        mine = submitted_to == site
        groups[mine] = user_groups(jobs.select(mine))
    return groups


def discipline_of(site: SiteSpec) -> Discipline:
    """Returns the discipline that a site's keys name, without its local time.

    Raises:
        StrategyFileError: the strategy file cannot be used.
    """
    if site.strategy is not None:
        return load_strategy(site.strategy).policy
    chosen = discipline_by_name(site.discipline)
    if site.group_order is None:
        return chosen
    groups: Any = tuple(site.group_order)
    assert isinstance(chosen, Strategy)
    return replace(chosen, order=GroupOrder(groups))


def local_time_of(site: SiteSpec, shift: Shift) -> tuple[str | float | None, float]:
    """Returns a site's time zone and the Unix time of second 0 of its clock.

    The zone is `None` if the strategy does not ask for the time; else the site's workload is read.
    `shift` is what falls on second 0 of the clock.

    Raises:
        ValueError: the time there is unknown.
    """
    queue = discipline_of(site)
    if not (isinstance(queue, Policy) and queue.needs_calendar):
        return None, 0.0
    workload = load_workload(site, shift)
    fields = workload.header if workload.header is not None else SYNTHETIC_HEADER
    start = header_start(fields) + workload.origin
    if site.time_zone is not None:
        return site.time_zone, start
    zone, _ = zone_of_header(fields)
    key = getattr(zone, "key", None)
    if key is not None:
        return str(key), start
    offset = zone.utcoffset(None)
    assert offset is not None
    return offset.total_seconds(), start


def _at_site(site: SiteSpec, discipline: Discipline, workload: Workload) -> Discipline:
    if not (isinstance(discipline, Policy) and discipline.needs_calendar):
        return discipline
    fields = workload.header if workload.header is not None else SYNTHETIC_HEADER
    if site.time_zone is None:
        zone, start = zone_of_header(fields)
    else:
        zone, start = zone_named(site.time_zone), header_start(fields)
    first, last = _span(workload.jobs)
    return with_local_time(
        discipline, zone=zone, unix_start=start + workload.origin, first=first, last=last
    )


def _span(jobs: JobTable) -> tuple[float, float]:
    if not len(jobs):
        return 0.0, 0.0
    return float(jobs.submit_time[0]), float(jobs.submit_time[-1])
