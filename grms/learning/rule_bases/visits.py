"""The states in which a site's policies were asked during a replay.

A schedule tells where every job ran and when it started. That is enough to know each site's queue
and free processors at each arrival, and to take all decisions once more, one by one: the plain
counterpart of the kernel, for pictures and tests, about a hundred times slower.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from grms.federation.federation import Site, location_order
from grms.policy._awrt_order import history_with_open, order_by_awrt
from grms.policy.location import location_of
from grms.policy.transfer import compiled_transfer
from lrms_sim.schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """The decisions of one site, about its own jobs and about those offered to it.

    Attributes:
        nwp: shape (n,), normalized waiting parallelism at each decision (paper 003, equation 9).
        njp: shape (n,), normalized job parallelism, percent (equation 10).
        accepted: shape (n,), bool; what was decided.
        own: shape (n,), bool; False for a partner's offer.
        doubtful: jobs of all sites that ran elsewhere than the decisions found here say. 0, but
            for machines that make a pass for each event, where a schedule does not tell the order
            of what happened at one instant.
        requested_time: shape (n,), seconds; None where rules do not look at it.
    """

    nwp: npt.NDArray[np.float64]
    njp: npt.NDArray[np.float64]
    accepted: npt.NDArray[np.bool_]
    own: npt.NDArray[np.bool_]
    doubtful: int
    requested_time: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.nwp)


class _Decision(NamedTuple):
    nwp: float
    njp: float
    accepted: bool
    own: bool


class _Ended(NamedTuple):
    # The end of a job; ends come in this order.
    time: float
    order: float
    row: int
    processors: int
    estimate: float


def decisions(
    sites: Sequence[Site], schedule: Schedule, name: str, partners: Sequence[str] | None = None
) -> Visits:
    """Returns the decisions of a site in a replay, in the order in which they were taken.

    Args:
        sites: those replayed.
        schedule: what `Federation.replay` returned for them.
        name: the site.
        partners: count decisions by the policies for these partners; for all where left out.

    Raises:
        ValueError: there is no such site.
    """
    names = [site.name for site in sites]
    if name not in names:
        raise ValueError(f"there is no site {name!r}; the sites are {', '.join(names)}")
    watched = names.index(name)
    counted = {names.index(partner) for partner in partners or names}
    taken: list[_Decision] = []

    def note(site: int, partner: int, decision: _Decision) -> None:
        if site == watched and partner in counted:
            taken.append(decision)

    doubtful = _Sweep(sites, schedule, note).run()
    columns = [np.array(column) for column in zip(*taken, strict=True)] or [np.empty(0)] * 4
    return Visits(
        columns[0].astype(np.float64),
        columns[1].astype(np.float64),
        columns[2].astype(np.bool_),
        columns[3].astype(np.bool_),
        doubtful,
    )


class _Load:
    """One machine's queue and free processors, followed through a schedule.

    A machine with a pass for each event takes the ends of an instant after its arrivals, in the
    order of their starts; the processors of a job whose estimated end has come are free before.
    """

    def __init__(self, site: Site) -> None:
        self.processors = site.processors
        self.free = site.processors
        self.waiting = 0
        self.per_event = site.discipline.per_event
        self._starts: list[tuple[float, int, _Ended]] = []
        self._ends: list[_Ended] = []
        self._ending: list[_Ended] = []  # at the present instant, after its arrivals

    def go_to(self, now: float) -> list[int]:
        """Books starts and ends up to an arrival and returns the rows that have ended."""
        ended = [end for end in self._ending if end.time < now]
        self._ending = [end for end in self._ending if end.time >= now]
        self.free += sum(end.processors for end in ended if end.estimate > end.time)
        while self._starts and self._is_over(self._starts[0][0], now):
            self._start(heappop(self._starts)[2])
        while self._ends and self._is_over(self._ends[0].time, now):
            ended.append(heappop(self._ends))
            self.free += ended[-1].processors
        while self._ends and self._ends[0].time == now:
            self._ending.append(heappop(self._ends))
            if self._ending[-1].estimate <= now:
                self.free += self._ending[-1].processors
        return [end.row for end in ended]

    def _is_over(self, time: float, now: float) -> bool:
        # A job that waited for an end starts when that end is booked.
        return time < now or (time == now and not self.per_event)

    def arrive(self, now: float, start: float, end: _Ended) -> None:
        self.waiting += end.processors
        heappush(self._starts, (start, end.row, end))
        if not self.per_event and not (start == now and end.processors <= self.free):
            return
        # The pass after this arrival: at a machine with one for each event it may start others.
        blocked = []
        while self._starts and self._starts[0][0] == now:
            waiting = heappop(self._starts)
            if waiting[2].processors <= self.free:
                self._start(waiting[2])
            else:
                blocked.append(waiting)
        for waiting in blocked:
            heappush(self._starts, waiting)

    def _start(self, end: _Ended) -> None:
        self.waiting -= end.processors
        self.free -= end.processors
        heappush(self._ends, end)


class _Sweep:
    """All decisions of a replay taken once more (paper 003, figure 2)."""

    def __init__(
        self,
        sites: Sequence[Site],
        schedule: Schedule,
        note: Callable[[int, int, _Decision], None],
    ) -> None:
        self._sites = sites
        self._note = note
        self._loads = [_Load(site) for site in sites]
        jobs = schedule.jobs
        self._submit_time = jobs.submit_time.tolist()
        self._processors = jobs.processors.tolist()
        self._requested_time = jobs.requested_time.tolist()
        self._start_time = schedule.start_time.tolist()
        self._end_time = schedule.end_time.tolist()
        self._submitted_to = schedule.submitted_to.tolist()
        self._executed_on = schedule.executed_on.tolist()
        self._work = jobs.resource_consumption.tolist()
        shape = (len(sites), len(sites))
        self._consumption = np.zeros(shape)  # by home and partner, of delegated jobs that ended
        self._weighted_response = np.zeros(shape)
        index = {site.name: number for number, site in enumerate(sites)}
        self._location = [location_order(site, index) for site in sites]
        self._count_open = [location_of(site.location_policy).count_open for site in sites]
        self._open_consumption = np.zeros(shape)  # the same of delegated jobs that have not ended
        self._open_submitted = np.zeros(shape)
        self._open_jobs = np.zeros(shape, int)
        self._asked = np.zeros(shape, int)
        self._bounds = [_bound(site) for site in sites]

    def run(self) -> int:
        """Returns how many jobs ran elsewhere than decided here."""
        doubtful = 0
        for row, now in enumerate(self._submit_time):
            for partner, load in enumerate(self._loads):
                for ended in load.go_to(now):
                    self._book(ended, partner)
            target = self._executed_on[row]
            doubtful += self._decide(row) != target
            if target != self._submitted_to[row]:
                self._open(row, target, 1)
            start = self._start_time[row]
            end = _Ended(
                self._end_time[row],
                start if self._loads[target].per_event else 0.0,
                row,
                self._processors[row],
                start + self._requested_time[row],
            )
            self._loads[target].arrive(now, start, end)
        return doubtful

    def _book(self, row: int, partner: int) -> None:
        home = self._submitted_to[row]
        if home != partner:
            self._open(row, partner, -1)
            response = self._end_time[row] - self._submit_time[row]
            self._consumption[home, partner] += self._work[row]
            self._weighted_response[home, partner] += self._work[row] * response

    def _open(self, row: int, partner: int, change: int) -> None:
        # A partner has one more job of a site, or one less.
        at = self._submitted_to[row], partner
        consumption = self._requested_time[row] * self._processors[row]
        self._open_jobs[at] += change
        self._open_consumption[at] += change * consumption
        self._open_submitted[at] += change * consumption * self._submit_time[row]
        if not self._open_jobs[at]:
            # Rounding does not pile up over the years.
            self._open_consumption[at] = self._open_submitted[at] = 0.0

    def _history(self, home: int, now: float) -> tuple[list[float], list[float]]:
        # What orders the partners of a site: sums of consumption and of weighted response.
        consumption, weighted = (
            self._consumption[home].tolist(),
            self._weighted_response[home].tolist(),
        )
        if self._count_open[home]:
            for partner in range(len(self._sites)):
                consumption[partner], weighted[partner] = history_with_open(
                    consumption[partner],
                    weighted[partner],
                    self._open_consumption[home, partner],
                    self._open_submitted[home, partner],
                    now,
                )
        return consumption, weighted

    def _decide(self, row: int) -> int:
        home: int = self._submitted_to[row]
        processors = self._processors[row]
        order = self._location[home]
        if order is None or callable(order):
            sums = self._history(home, self._submit_time[row])
            # The site itself has no history with itself and is left out.
            order = (
                [partner for partner in order_by_awrt(*sums, self._turns(home)) if partner != home]
                if order is None
                else order(*sums)
            )
        questions = 0
        for partner in order:
            if questions == self._bounds[home]:
                break
            if processors > self._sites[partner].processors:
                continue
            keep = self._accepts(home, partner, processors, own=True)
            if keep is None:
                continue
            if keep:
                return home
            questions += 1
            self._asked[home, partner] += 1
            if self._accepts(partner, home, processors, own=False):
                return partner
        return home

    def _turns(self, home: int) -> list[int] | None:
        # By what partners with the same AWRT are put in order, where not all are asked.
        return None if self._bounds[home] is None else self._asked[home].tolist()

    def _accepts(self, site: int, partner: int, processors: int, *, own: bool) -> bool | None:
        """Returns a site's answer; None where it does not deal with the partner."""
        policy = self._sites[site].transfer_policies.get(self._sites[partner].name)
        if policy is None:
            return None
        load = self._loads[site]
        accepted = compiled_transfer(policy).accept(
            processors,
            processors=load.processors,
            processors_free=load.free,
            processors_waiting=load.waiting,
            own=own,
        )
        nwp = load.waiting / load.processors
        njp = 100.0 * processors / load.processors
        self._note(site, partner, _Decision(nwp, njp, accepted, own))
        return accepted


def _bound(site: Site) -> int | None:
    """Returns how many partners a decision asks; None where it may ask all."""
    bound = site.partners_asked
    return None if bound is None or bound >= len(site.transfer_policies) else bound
