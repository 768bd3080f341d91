"""Very many sites whose messages take time: as replays of site states do, and as a plain simulation does."""

import heapq
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.federation._kernel import FederationKernel
from grms.federation.federation import Site
from grms.federation.many_sites import ManyJobs, ManySites, WideArea
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import compiled_transfer
from grms.simulation.delayed import Delays
from grms.simulation.replay import LockStepReplay
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import EasyPlusPlus, discipline_by_name, scheduler_of
from lrms_sim.workload.jobs import JobTable
from tests.random_workloads import random_jobs

MASK = 2**64 - 1


def drawn(count: int, each: int, seed: int) -> tuple[list[JobTable], ManyJobs]:
    """Returns jobs of sites of 16 processors, as tables and in order of arrival."""
    rng = np.random.default_rng(seed)
    tables = [random_jobs(rng, each, 16) for _ in range(count)]
    submit = np.concatenate([table.submit_time for table in tables])
    order = np.argsort(submit, kind="stable")
    home = np.repeat(np.arange(count, dtype=np.int32), [len(table) for table in tables])
    columns = (
        np.concatenate([getattr(table, name) for table in tables])[order]
        for name in ManyJobs.__slots__[1:]
    )
    return tables, ManyJobs(home[order], *columns)


def sites_of(count: int, discipline: str, policy: str, asked: int) -> ManySites:
    """Returns sites of 16 processors."""
    return ManySites(
        np.full(count, 16, np.int32),
        discipline_by_name(discipline),
        TRANSFER_POLICIES[policy],
        asked,
    )


# --- where messages take no time --------------------------------------------------------------------


@settings(max_examples=30)
@given(
    st.integers(2, 7), st.sampled_from([1, 2, 9]), st.integers(0, 10**6), st.booleans(),
    st.sampled_from(["fair-exchange", "awf"]),
)  # fmt: skip
def test_messages_that_take_no_time_change_nothing(
    count: int, asked: int, seed: int, own_order: bool, policy: str
) -> None:
    """Asked one by one, or all in one decision: the same sites run the same jobs."""
    _, jobs = drawn(count, 25, seed)
    plain = replace(sites_of(count, "easy", policy, asked), own_order=own_order)
    expected = plain.exchange(jobs)
    found = replace(plain, wide_area=WideArea(0.0)).exchange(jobs)
    assert found.executed_on.tolist() == expected.executed_on.tolist()
    assert found.start_time.tolist() == expected.start_time.tolist()
    assert found.offers.tolist() == expected.offers.tolist()


# --- the states of sites ----------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(
    st.sampled_from([1.0, 30.0, 400.0]), st.sampled_from([1, 2, 3]), st.integers(0, 10**6),
    st.sampled_from(["fair-exchange", "awf"]), st.sampled_from(["fcfs", "easy"]),
)  # fmt: skip
def test_it_is_the_replay_of_site_states_with_that_delay(
    delay: float, asked: int, seed: int, policy: str, discipline: str
) -> None:
    """Job by job and question by question, where every message takes equally long."""
    tables, jobs = drawn(4, 16, seed)
    names = "abcd"
    sites = [
        Site(
            name,
            16,
            table,
            discipline_by_name(discipline),
            {other: TRANSFER_POLICIES[policy] for other in names if other != name},
            partners_asked=asked,
        )
        for name, table in zip(names, tables, strict=True)
    ]
    replayed = LockStepReplay(sites, delays=Delays(delay))
    expected = replayed.run()
    wide = replace(sites_of(4, discipline, policy, asked), wide_area=WideArea(2.0 * delay))
    found = wide.exchange(jobs)
    assert found.executed_on.tolist() == expected.executed_on.tolist()
    assert found.start_time.tolist() == expected.start_time.tolist()
    assert int(found.offers.sum()) == replayed.network.offers


# --- a plain simulation -----------------------------------------------------------------------------


def mixed(value: int) -> int:
    """Returns the next number of splitmix64."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def uniform(seed: int, one: int, other: int, kind: int) -> float:
    """Returns a draw between 0 and 1."""
    return ((mixed(mixed(seed + kind) ^ (one << 32 | other)) >> 11) + 0.5) / 2**53


def one_way(wide: WideArea, one: int, other: int) -> float:
    """Returns how long a message takes, seconds."""
    first, second = sorted((one, other))
    radius = math.sqrt(-2 * math.log(uniform(wide.seed, first, second, 0)))
    normal = radius * math.cos(2 * math.pi * uniform(wide.seed, first, second, 1))
    return 0.5 * wide.median * math.exp(wide.spread * normal)


class Plain:
    """Sites that take whatever fits, each with an order of its own; written to be read.

    One list of calls by time does all.
    """

    def __init__(
        self, count: int, discipline: str, asked: int, wide: WideArea, down: list[float]
    ) -> None:
        self.machines = [Machine(16, discipline_by_name(discipline)) for _ in range(count)]
        self.asked = asked
        self.wide = wide
        self.down = down
        self.rows: list[list[int]] = [[] for _ in range(count)]
        self.questions = 0
        # By home and partner: questions, work that was completed, and the same times responses.
        self.seen = np.zeros((count, count, 3))
        self._calls: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0

    def after(self, time: float, call: Callable[[float], None]) -> None:
        """Has something done at a moment."""
        self._number += 1
        heapq.heappush(self._calls, (time, self._number, call))

    def replay(self, jobs: ManyJobs) -> tuple[list[int], list[float]]:
        """Returns where and when each job has started."""
        for row, time in enumerate(jobs.submit_time.tolist()):
            # Arrivals come behind messages of the same moment, whenever these were sent.
            self._calls.append((time, 10**9 + row, partial(self._ask, jobs, row, None)))
        heapq.heapify(self._calls)
        while self._calls:
            now = min(self._calls[0][0], *(each.next_event_time for each in self.machines))
            for site, machine in enumerate(self.machines):
                machine.advance(now)
                for job in machine.collect()[1]:
                    self._report(jobs, self.rows[site][job], site, now)
            if self._calls[0][0] == now:
                heapq.heappop(self._calls)[2](now)
        ran, started = [-1] * len(jobs), [math.nan] * len(jobs)
        for site, (machine, rows) in enumerate(zip(self.machines, self.rows, strict=True)):
            machine.advance(math.inf)
            for row, start in zip(rows, machine.start_time.tolist(), strict=True):
                ran[row], started[row] = site, start
        return ran, started

    def _fits(self, jobs: ManyJobs, row: int, site: int) -> bool:
        return bool(jobs.processors[row] <= self.machines[site].state.processors_free)

    def _ask(self, jobs: ManyJobs, row: int, left: list[int] | None, now: float) -> None:
        home = int(jobs.home[row])
        if left is None:
            others = [each for each in range(len(self.machines)) if each != home]
            left = sorted(others, key=partial(self._place, home))[: self.asked]
        if not left or self._fits(jobs, row, home) or now >= self.down[home]:
            self._run(jobs, row, home, now)
            return
        partner = left[0]
        self.questions += 1
        self.seen[home, partner, 0] += 1
        go_on = partial(self._ask, jobs, row, left[1:])
        if uniform(self.wide.seed, row, partner, 2) < self.wide.lost:
            self.after(now + self.wide.timeout, go_on)
            return
        takes = one_way(self.wide, home, partner)

        def arrive(then: float) -> None:
            if then >= self.down[partner]:
                self.after(then + max(self.wide.timeout - takes, 0.0), go_on)
            elif self._fits(jobs, row, partner):
                self._run(jobs, row, partner, then)
            else:
                self.after(then + takes, go_on)

        self.after(now + takes, arrive)

    def _place(self, home: int, partner: int) -> tuple[float, float, int]:
        questions, work, weighted = self.seen[home, partner]
        counted = questions if self.asked < len(self.machines) - 1 else 0.0
        return weighted / work if work else 0.0, counted, (partner - home) % len(self.machines)

    def _run(self, jobs: ManyJobs, row: int, site: int, now: float) -> None:
        self.rows[site].append(row)
        self.machines[site].submit(
            submit_time=now,
            processors=int(jobs.processors[row]),
            requested_time=float(jobs.requested_time[row]),
            run_time=float(jobs.run_time[row]),
            rank=row,
        )
        self.machines[site].advance(now)

    def _report(self, jobs: ManyJobs, row: int, site: int, now: float) -> None:
        home = int(jobs.home[row])
        work = float(jobs.run_time[row]) * int(jobs.processors[row])
        response = now - float(jobs.submit_time[row])

        def hear(_now: float) -> None:
            self.seen[home, site, 1:] += work, work * response

        if home != site:
            self.after(now + one_way(self.wide, home, site), hear)


@settings(max_examples=40)
@given(
    st.integers(2, 6), st.sampled_from([1, 2, 9]), st.integers(0, 10**6),
    st.sampled_from([0.0, 0.3, 0.9]), st.sampled_from(["fcfs", "easy"]),
)  # fmt: skip
def test_it_is_the_plain_simulation(
    count: int, asked: int, seed: int, lost: float, discipline: str
) -> None:
    """Other round trips for each pair, lost questions, and a site that leaves for good."""
    _, jobs = drawn(count, 25, seed)
    leaves = seed % 2 == 1
    wide = WideArea(40.0, 0.8, lost, 90.0, seed)
    gone = float(np.median(jobs.submit_time)) if leaves else math.inf
    down = [gone, *[math.inf] * (count - 1)]
    plain = Plain(count, discipline, asked, wide, down)
    ran, started = plain.replay(jobs)
    moments = (np.minimum(np.arange(count + 1), 1), np.array([gone])) if leaves else None
    sites = replace(
        sites_of(count, discipline, "awf", asked), own_order=True, wide_area=wide, down=moments
    )
    found = sites.exchange(jobs)
    assert found.executed_on.tolist() == ran
    assert found.start_time.tolist() == started
    assert int(found.offers.sum()) == plain.questions


def test_draws_are_as_described() -> None:
    """Of 20,000 pairs and questions: the median, the spread and the part that is lost."""
    wide = WideArea(0.16, 0.5, 0.05, seed=7)
    trips = np.array([2.0 * one_way(wide, pair, pair + 1) for pair in range(20_000)])
    assert np.median(trips) == pytest.approx(0.16, rel=0.02)
    assert np.std(np.log(trips)) == pytest.approx(0.5, rel=0.02)
    lost = [uniform(7, job, job % 100, 2) < 0.05 for job in range(20_000)]
    assert np.mean(lost) == pytest.approx(0.05, rel=0.1)


# --- by hand ----------------------------------------------------------------------------------------


def test_a_job_arrives_when_its_questions_have_been_answered() -> None:
    """Site 0 is full, and so is site 1: the second job starts at site 2 after a round trip and a half."""
    jobs = ManyJobs(
        np.array([0, 1, 0], np.int32),
        np.array([0.0, 0.0, 1.0]),
        np.full(3, 16, np.int32),
        np.full(3, 1000.0),
        np.full(3, 1000.0),
    )
    sites = replace(sites_of(3, "easy", "awf", 2), wide_area=WideArea(10.0, timeout=60.0))
    found = sites.exchange(jobs)
    assert found.start_time.tolist() == [0.0, 0.0, 16.0]
    assert found.executed_on.tolist() == [0, 1, 2]
    # Who has left gives no answer: the next is asked after the time-out.
    away = replace(sites, down=(np.array([0, 0, 1, 1]), np.array([0.5])))
    assert away.exchange(jobs).start_time.tolist() == [0.0, 0.0, 66.0]
    # Nobody else is asked: home again, after a round trip.
    one = replace(sites, partners_asked=1)
    assert one.exchange(jobs).start_time.tolist() == [0.0, 0.0, 1000.0]


@pytest.mark.parametrize(
    "wrong",
    [{"median": -1.0}, {"median": math.inf}, {"spread": math.nan}, {"lost": 1.0}, {"timeout": -1.0},
     {"median": 1e300}, {"spread": 1e300}, {"timeout": math.inf}, {"seed": -1}, {"seed": 2**64}],
)  # fmt: skip
def test_numbers_are_checked(wrong: dict[str, float]) -> None:
    """Each has bounds."""
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} is"):
        WideArea(**{"median": 1.0} | wrong)  # type: ignore[arg-type]  # one is wrong


@pytest.mark.parametrize("lost", [0.0, 0.999])
def test_at_its_bounds_every_job_runs(lost: float) -> None:
    """However long messages take, and however many partners may be asked."""
    _, jobs = drawn(3, 40, 1)
    sites = sites_of(3, "easy", "awf", 2**31 - 1)
    for wide in (WideArea(1e9, 10.0, lost, 1e9), WideArea(0.0, 10.0, lost)):
        found = replace(sites, wide_area=wide).exchange(jobs)
        assert (found.start_time >= jobs.submit_time).all()
        assert np.isfinite(found.end_time).all()


def test_what_cannot_be_replayed_is_said() -> None:
    """Before anything is."""
    _, jobs = drawn(3, 5, 1)
    sites = replace(sites_of(3, "easy", "awf", 2), wide_area=WideArea(1.0))
    with pytest.raises(ValueError, match="a number of partners asked"):
        replace(sites, partners_asked=None).exchange(jobs)
    with pytest.raises(ValueError, match="per event"):
        replace(sites, discipline=EasyPlusPlus()).exchange(jobs)
    kernel = [scheduler_of(sites.discipline) for _ in range(3)]
    policies = [compiled_transfer(sites.policy)] * 3
    rest = ([None] * 3, [False] * 3)
    with pytest.raises(ValueError, match="messages that take time"):
        FederationKernel(
            [16] * 3,
            kernel,
            policies,
            [[1, 2], None, None],
            rest[1],
            wide_area=(0, 1.0, 0.0, 0.0, 0.0),
        )
    with pytest.raises(ValueError, match="offers waiting jobs again"):
        FederationKernel(
            [16] * 3, kernel, policies, *rest, [(900.0, None)] * 3, partners_asked=[1] * 3,
            wide_area=(0, 1.0, 0.0, 0.0, 0.0),
        )  # fmt: skip
