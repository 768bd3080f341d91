"""Sites that exchange jobs, replayed on one clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from grms.federation._central import central_schedule
from grms.federation._kernel import FederationKernel
from grms.federation.sites import Site, check_sites, groups_of, taking
from grms.policy._decisions import CompiledTransfer
from grms.policy.location import (
    PartnerRecord,
    UserDefinedLocation,
    location_of,
)
from grms.policy.rebalancing import Rebalancing
from grms.policy.transfer import TransferPolicy, compiled_transfer
from lrms_sim.kernel._scheduler import Scheduler
from lrms_sim.machine.machine import PROGRESS_ROWS, simulate, user_numbers
from lrms_sim.machine.nodes import Demands, misfits, scheduler_on_nodes, simulate_on_nodes
from lrms_sim.scheduling.disciplines import scheduler_of
from lrms_sim.scheduling.user_defined import name_of_user_defined
from lrms_sim.workload.groups import Int8Array
from lrms_sim.workload.jobs import FloatArray, Int32Array, Int64Array, concatenate
from lrms_sim.workload.schedule import Int16Array, MachineInfo, Schedule

__all__ = [
    "Federation",
    "FederationReplay",
    "ReplayWorkspace",
    "Site",
    "location_order",
    "replay",
    "replay_alone",
]


@dataclass(frozen=True, slots=True, eq=False)
class FederationReplay:
    """Result of a replay with exchange.

    Attributes:
        schedule: in order of arrival; of a job that was sent home the last start.
        offers: made by each site, in site order.
        preempted: how often a job of each site's users was sent home.
        lost: work that each site's users lost with these, processor seconds.
    """

    schedule: Schedule
    offers: tuple[int, ...]
    preempted: tuple[int, ...]
    lost: tuple[float, ...]


class ReplayWorkspace:
    """Reusable memory for one replay at a time of up to `count` jobs."""

    def __init__(self, count: int) -> None:
        self.start_time = np.empty(count)
        self.end_time = np.empty(count)
        self.executed_on = np.empty(count, np.int32)


class Federation:
    """Sites with their workloads merged once, for any number of replays.

    Attributes:
        sites: at least one; their order breaks ties.
        jobs: all workloads in order of arrival, n jobs.

    Raises:
        ValueError: a name comes twice, a policy names a missing site, or a job is wider than its site.
    """

    def __init__(self, sites: Sequence[Site]) -> None:
        check_sites(sites)
        self.sites = tuple(sites)
        self.jobs, origin, rows = concatenate([site.jobs for site in sites])
        self._home = origin
        self._submitted_to = origin.astype(np.int16)
        before = np.cumsum([0, *(len(site.jobs) for site in sites)])[:-1]
        # Of each merged job its index in the concatenated workloads.
        self._place = before[origin] + rows
        self._log_job_id = np.concatenate([site.jobs.job_id for site in sites])[self._place]
        self._groups = self._merged_groups()
        self._users = self._merged_users()
        self._demands = self._merged_demands()
        self._checkpoint = self._merged_checkpoints()
        self._alike = [_one_policy(site, len(sites)) for site in sites]

    @property
    def rows(self) -> Int64Array:
        """Of each job of `jobs` its row in the sites' tables one after the other, shape (n,)."""
        return self._place

    def _merged_groups(self) -> Int8Array | None:
        # A site that orders its queue by group does so with guests, too, by their groups at home.
        if not any(scheduler_of(site.discipline).needs_groups for site in self.sites):
            return None
        return np.concatenate([groups_of(site) for site in self.sites])[self._place]

    def _merged_demands(self) -> Demands | None:
        if all(site.nodes is None for site in self.sites):
            return None
        return Demands.concatenated([site.demanded() for site in self.sites]).select(self._place)

    def _merged_checkpoints(self) -> FloatArray | None:
        if all(site.checkpoint is None for site in self.sites):
            return None
        columns = [
            np.zeros(len(site.jobs))
            if site.checkpoint is None
            else site.checkpoint.column(len(site.jobs))
            for site in self.sites
        ]
        return np.concatenate(columns)[self._place]

    def _merged_users(self) -> Int32Array | None:
        # Users of different sites are distinct, whatever their numbers.
        if not any(scheduler_of(site.discipline).needs_users for site in self.sites):
            return None
        merged, count = [], 0
        for site in self.sites:
            users = user_numbers(site.jobs.user)
            merged.append(np.where(users >= 0, users + count, -1).astype(np.int32))
            count += int(users.max(initial=-1)) + 1
        return np.concatenate(merged)[self._place]

    def exchange(self, *, progress: Callable[[int], None] | None = None) -> FederationReplay:
        """Replays the workloads with exchange; `progress` gets the number of arrived jobs now and then.

        Semantics (paper 003, sections 3, 4 and 7.1): one clock; at one instant completions, then queue starts,
        then arrivals in the order (submit time, site, job), each decided before the next. A job goes to the
        first partner named by the location policy that is large enough, to which home would rather give it
        than run it, and that accepts it; otherwise it stays home.
        """
        jobs, count = self.jobs, len(self.jobs)
        start_time = np.full(count, np.nan)
        end_time = np.full(count, np.nan)
        executed_on = np.full(count, -1, np.int32)
        kernel = self._kernel({})
        kernel.bind(
            jobs.submit_time,
            jobs.processors,
            jobs.requested_time,
            jobs.run_time,
            self._home,
            start_time,
            end_time,
            executed_on,
            self._groups,
            self._users,
            self._checkpoint,
        )
        self._place_on_nodes(kernel)
        row = 0
        while True:
            row = kernel.run(min(row + PROGRESS_ROWS, count))
            if progress is not None:
                progress(row)
            if row == count:
                break
        schedule = self._schedule(start_time, end_time, executed_on.astype(np.int16))
        return FederationReplay(
            schedule, tuple(kernel.offers), tuple(kernel.preempted), tuple(kernel.lost)
        )

    def replay(self, *, progress: Callable[[int], None] | None = None) -> Schedule:
        """As `exchange`, but returns the schedule alone, in order of arrival."""
        return self.exchange(progress=progress).schedule

    def replay_alone(self, *, progress: Callable[[int], None] | None = None) -> Schedule:
        """Replays every site by itself, the no-cooperation baseline; rows and `progress` as in `replay`."""
        alone = []
        done = 0
        for site in self.sites:
            before = done

            def shifted(arrived: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + arrived)

            alone.append(self._alone(site, shifted))
            done += len(site.jobs)
        start_time = np.concatenate([schedule.start_time for schedule in alone])[self._place]
        end_time = np.concatenate([schedule.end_time for schedule in alone])[self._place]
        return self._schedule(start_time, end_time, self._submitted_to)

    def replay_centrally(self, *, preempt: bool = False) -> FederationReplay:
        """Replays the workloads under one scheduler of all sites that knows every run time, for comparisons.

        Each job gets the earliest start that is left when it arrives: at home, or at the first site where it is
        earlier. It keeps its place, unless a job of that site's own users would start earlier without guests and
        `preempt` lets it: then the guests that start last make room and get places anew, and what has run of
        them is lost, if that delays them less, weighted by work, than it helps. Disciplines and policies say nothing here.

        Returns:
            The schedule in order of arrival; how many jobs had started when they lost their place is `preempted`,
                all in one number.
        """
        start_time = np.empty(len(self.jobs))
        executed_on = np.empty(len(self.jobs), np.int16)
        taken_away = central_schedule(
            self.jobs.submit_time,
            self.jobs.processors,
            self.jobs.run_time,
            self._submitted_to,
            [site.processors for site in self.sites],
            start_time,
            executed_on,
            preempt,
        )
        schedule = self._schedule(start_time, start_time + self.jobs.run_time, executed_on)
        return FederationReplay(schedule, (), (taken_away,), ())

    def _alone(self, site: Site, progress: Callable[[int], None]) -> Schedule:
        if site.nodes is None:
            return simulate(
                site.jobs,
                site.processors,
                site.discipline,
                groups=site.groups if self._groups is None else groups_of(site),
                name=site.name,
                progress=progress,
            )
        return simulate_on_nodes(
            site.jobs,
            replace(site.nodes, name=site.name),
            name_of_user_defined(site.discipline),
            demands=site.demands,
            progress=progress,
        ).schedule

    def awrt(
        self,
        instead: Mapping[tuple[str, str], CompiledTransfer] | None = None,
        workspace: ReplayWorkspace | None = None,
    ) -> list[float]:
        """Replays with some policies replaced and returns each site's AWRT alone.

        Training does this thousands of times: it builds nothing else and holds no lock, so that threads run
        in parallel.

        Args:
            instead: compiled policies by (site, partner), which replace the sites' own.
            workspace: memory of the calling thread; allocated if not given.

        Returns:
            The AWRT of each site's own users, seconds, in site order; nan for a site without jobs.
        """
        jobs = self.jobs
        workspace = workspace or ReplayWorkspace(len(jobs))
        kernel = self._kernel(instead or {})
        kernel.bind(
            jobs.submit_time,
            jobs.processors,
            jobs.requested_time,
            jobs.run_time,
            self._home,
            workspace.start_time,
            workspace.end_time,
            workspace.executed_on,
            self._groups,
            self._users,
            self._checkpoint,
        )
        self._place_on_nodes(kernel)
        kernel.run(len(jobs))
        return kernel.awrt()

    def _kernel(self, instead: Mapping[tuple[str, str], CompiledTransfer]) -> FederationKernel:
        sites = self.sites
        index = {site.name: i for i, site in enumerate(sites)}

        def transfer(site: Site, partner: str) -> CompiledTransfer | None:
            if (site.name, partner) in instead:
                return instead[site.name, partner]
            policy = site.transfer_policies.get(partner)
            if policy is None:
                return None
            return compiled_transfer(site.rogue.giving(policy) if site.rogue else policy)

        def row(site: Site) -> CompiledTransfer | list[CompiledTransfer | None]:
            policies = site.transfer_policies
            if instead or site.rogue:
                return [transfer(site, other) for other in index]
            # A thousand sites have a million pairs, and few policies.
            if (alike := self._alike[index[site.name]]) is not None:
                return compiled_transfer(alike)
            each = {id(policy): policy for policy in policies.values()}
            compiled = {key: compiled_transfer(policy) for key, policy in each.items()}
            return [compiled.get(id(policies.get(other))) for other in index]

        rows = [row(site) for site in sites]
        kernel = FederationKernel(
            [site.processors for site in sites],
            [self._scheduler(site) for site in sites],
            rows,
            [location_order(site, index) for site in sites],
            [
                site.cheaper is None and location_of(site.location_policy).count_open
                for site in sites
            ],
            [_rounds(site) for site in sites],
            {
                i: _as_byzantine(site, sites)
                for i, site in enumerate(sites)
                if site.rogue is not None
            },
            [site.partners_asked for site in sites],
            [
                scheduler_of(site.discipline, self._log_job_id) if _keeps_account(one) else None
                for site, one in zip(sites, rows, strict=True)
            ],
            [site.restart for site in sites],
        )
        if any(site.cheaper is not None for site in sites):
            kernel.set_tariffs(
                [_tariff(site) for site in sites], [_preference(site) for site in sites]
            )
        return kernel

    def _scheduler(self, site: Site) -> Scheduler:
        if site.nodes is None or self._demands is None:
            return scheduler_of(site.discipline, self._log_job_id)
        return scheduler_on_nodes(site.nodes, self._demands, name_of_user_defined(site.discipline))

    def _place_on_nodes(self, kernel: FederationKernel) -> None:
        # What a site could hold is known to its partners, like its size.
        if self._demands is None:
            return
        requests = self._demands.requests
        plain = np.array([request.processors_alone for request in requests], np.uint8)
        holds, nodes = [], []
        for site in self.sites:
            if site.nodes is None:
                holds.append(plain)
                nodes.append((0, 0))
                continue
            room = np.ones(len(requests), np.uint8)
            room[misfits(site.nodes, self._demands)] = 0
            holds.append(room)
            nodes.append((site.nodes.memory, site.nodes.gpus))
        asked = [
            [request.memory_least for request in requests],
            [request.gpus_least for request in requests],
        ]
        tells = [
            plain if site.tells == "processors" else np.ones(len(requests), np.uint8)
            for site in self.sites
        ]
        kernel.place_on_nodes(
            self._demands.shape,
            np.array(asked, np.int64),
            np.array(nodes, np.int64),
            np.array(holds),
            np.array(tells),
        )

    def _schedule(
        self, start_time: FloatArray, end_time: FloatArray, executed_on: Int16Array
    ) -> Schedule:
        return Schedule(
            jobs=self.jobs,
            start_time=start_time,
            end_time=end_time,
            machines=tuple(MachineInfo(site.name, site.processors) for site in self.sites),
            submitted_to=self._submitted_to,
            executed_on=executed_on,
            log_job_id=self._log_job_id,
        )


def _one_policy(site: Site, count: int) -> TransferPolicy | None:
    """Returns the policy of a site for every partner; `None` if they differ."""
    policies = site.transfer_policies
    if len(policies) != count - 1 or len(set(map(id, policies.values()))) != 1:
        return None
    return next(iter(policies.values()))


def _keeps_account(row: CompiledTransfer | list[CompiledTransfer | None]) -> bool:
    policies = {id(one): one for one in row} if isinstance(row, list) else {0: row}
    return any(
        one is not None and one.rails is not None and one.rails.account for one in policies.values()
    )


def location_order(
    site: Site, index: Mapping[str, int]
) -> list[int] | Callable[[list[float], list[float]], list[int]] | None:
    """Returns a location policy in the kernel's form; `index` numbers sites by name, in site order.

    Returns:
        The partners' numbers in a fixed order; `None` for AWRT; or a function from the two sums of every
            site to numbers.
    """
    if site.cheaper is not None:
        # The kernel puts them in order anew in every decision.
        return [number for name, number in index.items() if name != site.name]
    location = location_of(site.location_policy)
    if location.order is not None:
        return [index[name] for name in location.order]
    if not isinstance(location, UserDefinedLocation):
        return None
    written = location

    def chosen(consumption: list[float], weighted_response: list[float]) -> list[int]:
        records = [
            PartnerRecord(name, consumption[number], weighted_response[number])
            for name, number in index.items()
            if name != site.name
        ]
        return [index[name] for name in written.asking_order(records)]

    return chosen


def replay(sites: Sequence[Site], *, progress: Callable[[int], None] | None = None) -> Schedule:
    """Replays the workloads of several sites that exchange jobs, as `Federation.replay`."""
    return Federation(sites).replay(progress=progress)


def replay_alone(
    sites: Sequence[Site], *, progress: Callable[[int], None] | None = None
) -> Schedule:
    """Replays the workloads of several sites, each by itself, as `Federation.replay_alone`."""
    return Federation(sites).replay_alone(progress=progress)


def _rounds(site: Site) -> tuple[float, tuple[int, float, bool] | None] | None:
    if site.reoffer is None:
        return None
    if isinstance(site.reoffer, Rebalancing):
        return site.reoffer.period, site.reoffer.bounds
    return site.reoffer, None


def _tariff(
    site: Site,
) -> tuple[FloatArray, FloatArray, FloatArray, float, float, float] | None:
    one = site.tariff
    if one is None:
        return None
    return one.offset, one.value, one.before, one.first, one.period, one.scale


def _preference(site: Site) -> tuple[float, float, float, bool] | None:
    if site.cheaper is None:
        return None
    rule = site.cheaper.rule
    return rule.delay_max, rule.saving, rule.look_ahead, site.cheaper.only


def _as_byzantine(
    site: Site, sites: Sequence[Site]
) -> tuple[list[CompiledTransfer | None], bool, bool, bool, bool]:
    """Returns what the kernel needs of a Byzantine partner besides its offers."""
    assert site.rogue is not None, "only Byzantine partners are asked"
    policies = [taking(site, other.name) for other in sites]
    takes = [None if policy is None else compiled_transfer(policy) for policy in policies]
    rogue = site.rogue
    return takes, rogue.lies, rogue.holds, rogue.returns, rogue.hides
