"""Runs a scenario: from what it says to disciplines, its sites alone, then federated, then the figures of both."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import environ as process_environment
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from grms.federation.federation import Site, replay, replay_alone
from grms.federation.sites import Checkpoints, cannot_lose_jobs, out_of_order
from grms.policy.constraints import ExchangeConstraints
from grms.policy.files import RuleBaseError
from grms.policy.registry import (
    NO_EXCHANGE,
    TRANSFER_DEFAULT,
    PolicyShelf,
    location_by_name,
    nearest_size,
)
from grms.policy.transfer import (
    AlwaysAgree,
    AlwaysKeep,
    Constrained,
    TransferPolicy,
    rounds_in_force,
    without_constraints,
)
from lrms_sim.scheduling.criteria import GroupOrder
from lrms_sim.scheduling.disciplines import Discipline, Fcfs, discipline_by_name, scheduler_of
from lrms_sim.scheduling.selection import Policy, with_local_time
from lrms_sim.scheduling.situations import header_start, zone_named, zone_of_header
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import StrategyFileError, load_strategy
from lrms_sim.util.file_errors import Mistake
from lrms_sim.workload.groups import Int8Array, known_user_groups, user_groups
from lrms_sim.workload.jobs import JOBS_MAX, JobTable, Shift
from lrms_sim.workload.schedule import Schedule
from scenarios.run.broker_result import BrokerResult, evaluate_broker
from scenarios.run.electricity import bills, supplies_of, with_electricity
from scenarios.run.results import ScenarioResult, evaluate
from scenarios.run.workloads import Workload, first_arrivals, load_workload
from scenarios.spec.spec import PoolEntry, ScenarioSpec, SiteSpec, SwfWorkload
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


Notify = Callable[..., None]
Progress = Callable[[str, int, int], None]
"""Called with a stage, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Run:
    """A scenario that has been run.

    Attributes:
        spec: exactly what was run, with every seed in it.
        result: the figures, with both schedules.
    """

    spec: ScenarioSpec
    result: ScenarioResult


def run_scenario(
    spec: ScenarioSpec,
    *,
    shown: str | None = None,
    environment: Mapping[str, str] = process_environment,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> Run:
    """Runs a scenario and the same jobs without exchange.

    `shown` is the file's name in errors, by default the scenario's; `notify` gets events, of which
    `warning` has a `text`; `progress` gets the progress of each stage.

    Raises:
        SpecError: a rule base or a file of prices cannot be used.
        TraceMissingError: a log is not on this machine.
        WorkloadError: a workload cannot be read, or all together are too many jobs.
    """
    spec = spec.resolved()
    policies = load_policies(spec, shown=shown)
    supplies, wrong_files = supplies_of(spec)
    if wrong_files:
        raise SpecError(shown or spec.name, wrong_files)
    workloads = _load_workloads(spec, environment, notify, progress)
    sites = with_electricity(build_sites(spec, policies, workloads, shown=shown), spec, supplies)
    total = sum(len(workload.jobs) for workload in workloads)
    if total > JOBS_MAX:
        raise WorkloadError(f"the sites have {total} jobs together; at most {JOBS_MAX} can be run")

    def stage(name: str) -> Callable[[int], None]:
        # Called even if nobody listens: between two calls Python notices Ctrl-C.
        return lambda done: progress(name, done, total) if progress is not None else None

    begin = time.perf_counter()
    schedule_alone = replay_alone(sites, progress=stage("each site alone"))
    _tell(notify, "replayed", cooperation=False, jobs=total)
    schedule = replay(sites, progress=stage("federated"))
    _tell(notify, "replayed", cooperation=True, jobs=total)
    broker = _run_broker(spec, sites, schedule, progress)
    elapsed_s = time.perf_counter() - begin
    result = evaluate(
        name=spec.name,
        title=spec.title,
        description=spec.description.strip(),
        seed=spec.seed,
        disciplines=[site.queue_name for site in spec.sites],
        schedule=schedule,
        schedule_alone=schedule_alone,
        workload_notes=[workload.notes for workload in workloads],
        elapsed_s=elapsed_s,
        acknowledgements=list(dict.fromkeys(filter(None, (w.acknowledgement for w in workloads)))),
        broker=broker,
        groups=(
            groups_at_home(schedule.jobs, schedule.submitted_to)
            if looks_at_groups(spec.sites)
            else None
        ),
        electricity=bills(supplies, schedule, schedule_alone),
    )
    for one in result.electricity:
        if not one.covered:
            _tell(
                notify,
                "warning",
                site=one.name,
                text=f"prices of {one.name} are not known for the whole replay: they were repeated",
            )
    return Run(spec, result)


def _run_broker(
    spec: ScenarioSpec, sites: Sequence[Site], schedule: Schedule, progress: Progress | None
) -> BrokerResult | None:
    """Returns what a scenario's broker does in addition to the batch jobs, and its cost to them."""
    if spec.broker is None:
        return None
    from scenarios.run.brokered import run_broker  # noqa: PLC0415  # the planner is slow to import

    def workflows(done: int, total: int) -> None:
        if progress is not None:
            progress("workflows", done, total)

    run = run_broker(spec, workflows)
    whole = [
        replace(site, processors=site.processors + wanted.reservable_processors)
        for site, wanted in zip(sites, spec.sites, strict=True)
    ]
    return evaluate_broker(run, schedule, replay(whole), [site.name for site in spec.sites])


def build_sites(
    spec: ScenarioSpec,
    policies: Mapping[str, Mapping[str, TransferPolicy]],
    workloads: Sequence[Workload],
    *,
    shown: str | None = None,
) -> list[Site]:
    """Returns a scenario's sites for a federation.

    `policies` are those of `load_policies`, `workloads` are in the sites' order; `shown` is the
    file's name in errors, by default the scenario's.

    Raises:
        SpecError: a strategy file cannot be used, the time at a site is unknown, or a discipline
            cannot have the guests that would come.
        WorkloadError: user groups are needed, and the users of a workload are not known.
    """
    queues = queues_of(spec.sites, workloads, shown or spec.name)
    jobs = [workload.jobs for workload in workloads]
    sites = _sites(spec, policies, jobs, queues)
    if problems := _order_problems(sites):
        raise SpecError(shown or spec.name, problems)
    return sites


def _sites(
    spec: ScenarioSpec,
    policies: Mapping[str, Mapping[str, TransferPolicy]],
    jobs: Sequence[JobTable],
    queues: Sequence[Discipline],
) -> list[Site]:
    return [
        Site(
            name=site.name,
            processors=site.processors,
            jobs=own,
            discipline=queue,
            transfer_policies=policies[site.name],
            location_policy=location_by_name(site.location, awrt="awrt-completed"),
            reoffer=rounds_in_force(site.reoffer, policies[site.name].values()),
            partners_asked=site.partners_asked,
            rogue=site.deals_as,
            checkpoint=_checkpoints(site),
        )
        for site, own, queue in zip(spec.sites, jobs, queues, strict=True)
    ]


def _checkpoints(site: SiteSpec) -> Checkpoints | None:
    said = site.workload.checkpoint
    return None if said is None else Checkpoints(said.every, said.jobs)


def _order_problems(sites: Sequence[Site]) -> list[Mistake]:
    return [
        Mistake(f"sites.{name}.discipline", f"{name!r} {problem}")
        for name, problem in (*out_of_order(sites), *cannot_lose_jobs(sites))
    ]


def _tell(notify: Notify | None, event: str, **values: object) -> None:
    if notify is not None:
        notify(event, **values)


def _load_workloads(
    spec: ScenarioSpec,
    environment: Mapping[str, str],
    notify: Notify | None,
    progress: Progress | None,
) -> list[Workload]:
    whole = []
    for number, site in enumerate(spec.sites):
        if progress is not None:
            progress("workloads", number, len(spec.sites))
        whole.append(load_workload(site, spec.clock.shift, environment))
    if progress is not None:
        progress("workloads", len(spec.sites), len(spec.sites))
    workloads = first_arrivals(whole, spec.first_arrivals)
    for site, workload in zip(spec.sites, workloads, strict=True):
        for text in workload.warnings:
            _tell(notify, "warning", site=site.name, text=text)
        _tell(
            notify,
            "workload_loaded",
            site=site.name,
            jobs=len(workload.jobs),
            source=workload.source,
        )
        for reason, count, treatment in workload.notes:
            _tell(
                notify,
                "records_treated",
                site=site.name,
                count=count,
                reason=reason,
                treatment=treatment,
            )
    return workloads


def load_policies(
    spec: ScenarioSpec, *, shown: str | None = None
) -> dict[str, dict[str, TransferPolicy]]:
    """Returns for every site its transfer policy for each partner it exchanges jobs with.

    `shown` is the file's name in errors, by default the scenario's.

    Raises:
        SpecError: rule bases cannot be used; the text has a line for each key that names one.
    """
    shelf = _Shelf()
    policies = {}
    names = [site.name for site in spec.sites]
    for site in spec.sites:
        if site.transfer.pool is None and not site.transfer.partners and len(names) > 1:
            # A thousand sites have a million pairs of two: where all partners are alike, one is asked for.
            other = spec.sites[1] if site is spec.sites[0] else spec.sites[0]
            policy = _policy(site, other, shelf)
            alike = {} if policy is None else dict.fromkeys(names, shelf.within(site, policy))
            alike.pop(site.name, None)
            policies[site.name] = alike
            continue
        partners = [other for other in spec.sites if other is not site]
        policies[site.name] = {
            partner.name: shelf.within(site, policy)
            for partner in partners
            if (policy := _policy(site, partner, shelf)) is not None
        }
    if shelf.problems:
        raise SpecError(shown or spec.name, list(shelf.problems))
    return policies


def check_files(spec: ScenarioSpec, *, shown: str | None = None) -> None:
    """Checks that the files a scenario names are there and rule bases can be used.

    Logs are not read, and the known ones of `scenario fetch` need not be there. `shown` is the
    file's name in errors, by default the scenario's.

    Raises:
        SpecError: one is not; the text has a line for each key that names one.
    """
    problems = [
        Mistake(f"sites.{site.name}.workload.swf", f"there is no file {site.workload.swf}")
        for site in spec.sites
        if isinstance(site.workload, SwfWorkload) and not Path(site.workload.swf).is_file()
    ]
    problems += queue_problems(spec.sites)
    for site in spec.sites:
        try:
            location_by_name(site.location, awrt="awrt-completed")
        except ValueError as error:
            problems.append(Mistake(f"sites.{site.name}.location", str(error)))
    try:
        policies = load_policies(spec, shown=shown)
    except SpecError as error:
        problems += error.mistakes
    problems += supplies_of(spec)[1]
    if not problems:
        # What a strategy does is known when its site's time is, which its log may have to say.
        queues = [discipline_of(site) if site.strategy is None else Fcfs() for site in spec.sites]
        empty = [JobTable.empty()] * len(queues)
        problems = _order_problems(_sites(spec, policies, empty, queues))
    if problems:
        raise SpecError(shown or spec.name, problems)


_AGREE = AlwaysAgree()
"""Decides within the exchange constraints if a site names no transfer policy."""


class _Shelf:
    """Policies by their word or file, and what was wrong with them."""

    def __init__(self) -> None:
        self.problems: dict[Mistake, None] = {}
        self._policies = PolicyShelf()
        self._constrained: dict[tuple[ExchangeConstraints, int], TransferPolicy] = {}

    def within(self, site: SiteSpec, policy: TransferPolicy) -> TransferPolicy:
        """Returns a policy within a site's constraints; one that has constraints of its own keeps these."""
        rails = site.constraints_in_force
        if why := without_constraints(policy, rails):
            self.problems[Mistake(f"sites.{site.name}.transfer", why)] = None
        if why or rails is None or isinstance(policy, Constrained):
            return policy
        # One object for all who have the same, as for policies without constraints.
        return self._constrained.setdefault(
            (rails, id(policy)), Constrained(rails, policy, policy.name)
        )

    def take(self, text: str, key: str) -> TransferPolicy:
        """Returns a policy; if its file is unusable, notes the problem at that key."""
        try:
            return self._policies.policy_by_name(text)
        except RuleBaseError as error:
            self.problems[Mistake(key, str(error))] = None
            return AlwaysKeep()


def _policy(site: SiteSpec, partner: SiteSpec, shelf: _Shelf) -> TransferPolicy | None:
    """Returns the policy for a partner; `None` for no exchange with it."""
    transfer = site.transfer
    key = f"sites.{site.name}.transfer"
    named = transfer.partners.get(partner.name)
    if named is None and transfer.pool is not None:
        return _from_pool(transfer.pool, partner.processors, f"{key}.pool", shelf)
    text = named or transfer.default
    if text is None and site.constraints_in_force is not None:
        return _AGREE
    text = text or TRANSFER_DEFAULT
    if text == NO_EXCHANGE:
        return None
    return shelf.take(text, f"{key}.{partner.name if named else 'default'}")


def _from_pool(pool: list[PoolEntry], processors: int, key: str, shelf: _Shelf) -> TransferPolicy:
    policies = {
        entry.processors: shelf.take(entry.policy, f"{key}[{index}].policy")
        for index, entry in enumerate(pool)
    }
    return nearest_size(policies, processors)
