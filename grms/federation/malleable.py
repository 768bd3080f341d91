"""Sites with utility machines that exchange jobs, on one clock.

The value of a site's own machine state may decide: it runs a job itself, its own or a partner's,
iff the value rises by that. Others learn only yes or no; the value function, the utilities and the
load of a site stay private.

At one instant all sites end what ends and make their passes; then jobs arrive in the order (submit
time, site, job). Each is decided completely, and its machine makes a pass, before the next.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

import numpy as np

from grms.policy._decisions import order_by_awrt
from lrms_sim.malleable._kernel import UtilityKernel
from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import kernel_for
from lrms_sim.malleable.options import MachineOptions, check_choice
from lrms_sim.malleable.policies import Policy
from lrms_sim.malleable.value import ValueFunction
from lrms_sim.workload.jobs import FloatArray, concatenate
from lrms_sim.workload.schedule import Int16Array

Transfer = Literal["keep", "awf", "value"]

BATCH: Final = 1000
"""Arrivals between two calls of the progress function."""


@dataclass(frozen=True, slots=True)
class UtilitySite:
    """A site, its users' jobs and how it decides.

    Attributes:
        workload: its users' jobs; none wider than its machine.
        transfer: which jobs it runs: `keep`, its own and no others; `awf`, those that fit on the
            free processors now; `value`, those by which the value of its machine's state rises.
        value: of its machine's states; for `value`, and for policies by value.
    """

    name: str
    workload: UtilityJobs
    processors: int
    policy: Policy
    transfer: Transfer
    value: ValueFunction | None = None
    options: MachineOptions = field(default_factory=MachineOptions)

    def __post_init__(self) -> None:
        """Checks that the site can decide.

        Raises:
            ValueError: the transfer policy is unknown, a value function is missing, or a job is
                wider than the machine.
        """
        check_choice(f"site {self.name}: transfer", self.transfer, get_args(Transfer))
        if self.value is None and (self.transfer == "value" or self.policy.by_value):
            raise ValueError(f"site {self.name} decides by value and has no value function")
        if len(self.workload) and int(self.workload.jobs.processors.max()) > self.processors:
            raise ValueError(
                f"site {self.name}: a job is {int(self.workload.jobs.processors.max())} "
                f"processors wide; the machine has {self.processors}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """What came of an exchange.

    Attributes:
        workload: all jobs in order of arrival.
        submitted_to: shape (n,), the site of each job's user.
        executed_on: shape (n,), where it was given.
        end: shape (n,), seconds; when it completed or left, NaN for neither.
        utility: shape (n,), what it brought.
    """

    workload: UtilityJobs
    submitted_to: Int16Array
    executed_on: Int16Array
    end: FloatArray
    utility: FloatArray
    suspensions: tuple[int, ...]

    def share(self, site: int) -> float:
        """Returns which share of the possible utility a site's users got; NaN of none."""
        own = self.submitted_to == site
        possible = float(self.workload.possible[own].sum())
        return float(self.utility[own].sum()) / possible if possible > 0 else math.nan

    def given(self, site: int) -> int:
        """Returns how many jobs of its users a site has given away."""
        own = self.submitted_to == site
        return int(np.count_nonzero(own & (self.executed_on != site)))

    def taken(self, site: int) -> int:
        """Returns how many jobs of others a site has taken."""
        here = self.executed_on == site
        return int(np.count_nonzero(here & (self.submitted_to != site)))


class _Replay:
    """All sites on one clock."""

    def __init__(self, sites: Sequence[UtilitySite]) -> None:
        self.sites = sites
        self.workload, self.origin = _merged(sites)
        self.kernels = [_kernel(site, self.workload) for site in sites]
        self.executed = np.array(self.origin, np.int16)
        # By home and partner, of delegated jobs that have completed.
        self._consumption, self._weighted = np.zeros((2, len(sites), len(sites)))
        self._widths = self.workload.jobs.processors.tolist()
        self._open: list[tuple[int, int, int]] = []

    def reach(self, now: float) -> None:
        for kernel in self.kernels:
            if kernel.reach(now):
                kernel.make_pass()
        rest = []
        for job, home, place in self._open:
            end = float(self.kernels[place].results["end"][job])
            if math.isnan(end):
                rest.append((job, home, place))
                continue
            consumption = float(self.workload.jobs.resource_consumption[job])
            response = end - float(self.workload.jobs.submit_time[job])
            self.book(home, place, consumption, response)
        self._open = rest

    def book(self, home: int, partner: int, consumption: float, response: float) -> None:
        self._consumption[home, partner] += consumption
        self._weighted[home, partner] += consumption * response

    def partners(self, home: int) -> list[int]:
        """Returns the partners of a site by AWRT of the jobs it gave them; one without history comes first."""
        order = order_by_awrt(self._consumption[home].tolist(), self._weighted[home].tolist())
        return [partner for partner in order if partner != home]

    def submit(self, job: int) -> None:
        home = int(self.origin[job])
        place = self._decide(home, job)
        self.executed[job] = place
        if place != home:
            self._open.append((job, home, place))
        self.kernels[place].arrive(job)
        self.kernels[place].make_pass()

    def _decide(self, home: int, job: int) -> int:
        width = self._widths[job]
        if _wants(self.sites[home], self.kernels[home], job, width, own=True):
            return home
        for partner in self.partners(home):
            if _wants(self.sites[partner], self.kernels[partner], job, width, own=False):
                return partner
        return home

    def column(self, name: str, empty: float) -> FloatArray:
        if not len(self.executed):
            return np.full(0, empty)
        every = np.stack([kernel.results[name] for kernel in self.kernels])
        return np.asarray(every[self.executed, np.arange(len(self.executed))])


def exchange(
    sites: Sequence[UtilitySite], *, progress: Callable[[int], None] | None = None
) -> Exchange:
    """Replays the workloads of all sites, in site order; `ValueError` if there is no site.

    `progress` is called now and then with the number of arrivals done.
    """
    if not sites:
        raise ValueError("an exchange needs at least one site")
    replay = _Replay(sites)
    previous = -math.inf
    for job, now in enumerate(replay.workload.jobs.submit_time.tolist()):
        if now != previous:
            replay.reach(now)
            previous = now
        replay.submit(job)
        if progress is not None and job % BATCH == 0:
            progress(job)
    for kernel in replay.kernels:
        kernel.advance(math.inf)
    return Exchange(
        replay.workload,
        replay.origin,
        replay.executed,
        replay.column("end", math.nan),
        replay.column("utility", 0.0),
        tuple(int(kernel.figures(0)["suspensions"]) for kernel in replay.kernels),
    )


def _merged(sites: Sequence[UtilitySite]) -> tuple[UtilityJobs, Int16Array]:
    jobs, origin, rows = concatenate([site.workload.jobs for site in sites])

    columns = jobs.columns()
    for name in UtilityJobs.of(jobs).columns().keys() - columns.keys():
        columns[name] = np.zeros(len(jobs))
        for number, site in enumerate(sites):
            mine = origin == number
            columns[name][mine] = getattr(site.workload, name)[rows[mine]]
    return UtilityJobs.from_columns(columns), origin.astype(np.int16)


def _kernel(site: UtilitySite, workload: UtilityJobs) -> UtilityKernel:
    kernel = kernel_for(workload, [site.processors], site.policy, site.options, any_width=True)
    if site.value is not None:
        kernel.set_value(0, site.value.p, site.value.scales.for_kernel(), {})
    return kernel


def _wants(site: UtilitySite, kernel: UtilityKernel, job: int, width: int, *, own: bool) -> bool:
    """Whether a site runs a job itself; it looks at its own machine alone."""
    if width > site.processors:
        return False
    if site.transfer == "value":
        return kernel.rises_by(0, job) > 0.0
    if site.transfer == "awf":
        return width <= int(kernel.figures(0)["processors_free"])
    return own
