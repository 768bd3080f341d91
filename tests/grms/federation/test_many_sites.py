"""Very many sites as columns: the same replay as by `Federation`, known partners, sites that leave."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.federation.federation import Federation, Site
from grms.federation.many_sites import ManyJobs, ManySites, acquaintances
from grms.policy.registry import TRANSFER_POLICIES
from lrms_sim.scheduling.disciplines import Easy
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.lublin import generate_many
from tests.random_workloads import random_jobs

COUNT = 60
JOBS = 40
SIZES = np.array([8, 16, 64], np.int32)[np.arange(COUNT) % 3]
EVERYBODY = ManySites(SIZES, Easy(), TRANSFER_POLICIES["fair-exchange"], 4)


def columns() -> tuple[ManyJobs, list[JobTable]]:
    """Returns jobs of all sites in order of arrival, and the same as tables."""
    made = generate_many(SIZES, seed=5, jobs=JOBS, load=np.full(COUNT, 0.9))
    tables = [
        JobTable.from_columns(
            submit_time=made.submit_time[row],
            processors=made.processors[row],
            run_time=made.run_time[row],
            requested_time=made.requested_time[row],
        )
        for row in range(COUNT)
    ]
    order = np.argsort(made.submit_time.ravel(), kind="stable")
    jobs = ManyJobs(
        np.repeat(np.arange(COUNT, dtype=np.int32), JOBS)[order],
        *(getattr(made, name).ravel()[order] for name in ManyJobs.__slots__[1:]),
    )
    return jobs, tables


@pytest.fixture(scope="module")
def jobs() -> ManyJobs:
    return columns()[0]


def test_columns_are_replayed_as_sites_are() -> None:
    """The same jobs run where and when they do in a federation of sites."""
    jobs, tables = columns()
    names = [f"s{row:02d}" for row in range(COUNT)]
    policy = TRANSFER_POLICIES["fair-exchange"]
    sites = [
        Site(
            name,
            int(SIZES[row]),
            tables[row],
            Easy(),
            {other: policy for other in names if other != name},
            partners_asked=4,
        )
        for row, name in enumerate(names)
    ]
    by_site = Federation(sites).exchange()
    by_column = EVERYBODY.exchange(jobs)
    assert by_column.executed_on.tolist() == by_site.schedule.executed_on.tolist()
    assert by_column.start_time.tolist() == by_site.schedule.start_time.tolist()
    assert by_column.offers.tolist() == list(by_site.offers)


@pytest.mark.parametrize("own_order", [False, True])
def test_who_knows_all_others_exchanges_as_with_no_lists(jobs: ManyJobs, own_order: bool) -> None:
    """Lists of all others change nothing."""
    everybody = replace(EVERYBODY, own_order=own_order)
    offsets = np.arange(COUNT + 1, dtype=np.int64) * (COUNT - 1)
    others = [[other for other in range(COUNT) if other != row] for row in range(COUNT)]
    known = offsets, np.array(others, np.int32).ravel()
    listed = replace(everybody, known=known).exchange(jobs)
    plain = everybody.exchange(jobs)
    assert listed.executed_on.tolist() == plain.executed_on.tolist()
    assert listed.start_time.tolist() == plain.start_time.tolist()
    assert listed.offers.tolist() == plain.offers.tolist()


@pytest.mark.parametrize(
    ("own_order", "known", "ran_on"),
    [
        (False, None, [2, 0, 1, 3, 4, 2]),
        (True, None, [2, 3, 4, 0, 1, 2]),
        (False, [0, 1, 4], [2, 0, 1, 4, 2, 2]),
        (True, [0, 1, 4], [2, 4, 0, 1, 2, 2]),
        (True, [0, 1], [2, 0, 1, 2, 2, 2]),
    ],
)
def test_an_order_of_its_own_begins_behind_the_site(
    own_order: bool, known: list[int] | None, ran_on: list[int]
) -> None:
    """Jobs of site 2, each as wide as a machine, go to one site after the other and then wait at home."""
    jobs = ManyJobs(
        np.full(6, 2, np.int32),
        np.arange(6.0),
        np.full(6, 4, np.int32),
        np.full(6, 100.0),
        np.full(6, 100.0),
    )
    lists = None
    if known is not None:
        offsets = np.array([0, 0, 0, len(known), len(known), len(known)], np.int64)
        lists = offsets, np.array(known, np.int32)
    policy = TRANSFER_POLICIES["awf"]
    sites = ManySites(np.full(5, 4, np.int32), Easy(), policy, 3, lists, own_order=own_order)
    assert sites.exchange(jobs).executed_on.tolist() == ran_on


@given(
    sizes=st.lists(st.sampled_from((2, 5, 16)), min_size=2, max_size=90),
    home=st.integers(0, 89),
    asked=st.sampled_from((None, 1, 3)),
    seed=st.integers(0, 10**6),
)
def test_an_order_of_its_own_is_that_of_sites_numbered_from_its_own(
    sizes: list[int], home: int, asked: int | None, seed: int
) -> None:
    """One site alone has jobs; numbered from it on, all sites would have the same order as it has."""
    count = len(sizes)
    home %= count
    made = random_jobs(np.random.default_rng(seed), 40, sizes[home])
    jobs = ManyJobs(
        np.full(len(made), home, np.int32),
        made.submit_time,
        made.processors,
        made.requested_time,
        made.run_time,
    )
    policy = TRANSFER_POLICIES["fair-exchange"]
    own = ManySites(np.array(sizes, np.int32), Easy(), policy, asked, own_order=True)
    turned = np.roll(own.processors, -home)
    at_zero = replace(jobs, home=np.zeros(len(made), np.int32))
    expected = replace(own, processors=turned, own_order=False).exchange(at_zero)
    found = own.exchange(jobs)
    assert found.start_time.tolist() == expected.start_time.tolist()
    assert ((found.executed_on - home) % count).tolist() == expected.executed_on.tolist()
    assert found.offers[home] == expected.offers[0]


def test_jobs_go_to_known_partners_alone(jobs: ManyJobs) -> None:
    """Wherever a job runs its home knows that site, and is known to it."""
    offsets, partners = acquaintances(COUNT, 6, np.random.default_rng(3))
    pairs = {
        (row, int(other))
        for row in range(COUNT)
        for other in partners[offsets[row] : offsets[row + 1]]
    }
    assert all((other, row) in pairs for row, other in pairs)
    found = replace(EVERYBODY, known=(offsets, partners)).exchange(jobs)
    moved = found.executed_on != jobs.home
    assert np.count_nonzero(moved) > 50
    ran = zip(jobs.home[moved].tolist(), found.executed_on[moved].tolist(), strict=True)
    assert set(ran) <= pairs


def test_a_site_that_has_left_neither_gives_nor_takes(jobs: ManyJobs) -> None:
    """Sites 0 to 29 are away from the beginning until the middle, the others never."""
    middle = float(np.median(jobs.submit_time))
    moments = np.array([-1.0, middle] * 30)
    offsets = 2 * np.minimum(np.arange(COUNT + 1, dtype=np.int64), 30)
    found = replace(EVERYBODY, down=(offsets, moments)).exchange(jobs)
    moved = found.executed_on != jobs.home
    early = jobs.submit_time < middle
    assert not np.any(moved & early & ((jobs.home < 30) | (found.executed_on < 30)))
    assert np.any(moved & early)
    assert np.any(moved & ~early & (jobs.home < 30))
    assert np.any(moved & ~early & (found.executed_on < 30))
    assert not np.any(np.isnan(found.end_time))


def test_who_leaves_for_good_at_once_exchanges_nothing(jobs: ManyJobs) -> None:
    """Every job runs at home, as under a policy that keeps all."""
    down = np.arange(COUNT + 1, dtype=np.int64), np.full(COUNT, -1.0)
    gone = replace(EVERYBODY, down=down).exchange(jobs)
    alone = replace(EVERYBODY, policy=TRANSFER_POLICIES["keep"]).exchange(jobs)
    assert gone.executed_on.tolist() == jobs.home.tolist()
    assert gone.start_time.tolist() == alone.start_time.tolist()
    assert gone.offers.sum() == 0


def test_averages_weigh_by_work() -> None:
    """Two jobs at one site, one at another, and a site without any, by hand."""
    home = np.array([0, 0, 1], np.int32)
    jobs = ManyJobs(
        home,
        np.zeros(3),
        np.array([1, 2, 1], np.int32),
        np.full(3, 10.0),
        np.array([10.0, 10.0, 5.0]),
    )
    found = ManySites(np.full(3, 2, np.int32), Easy(), TRANSFER_POLICIES["keep"], 1).exchange(jobs)
    assert found.end_time.tolist() == [10.0, 20.0, 5.0]
    assert found.awrt(jobs) == (10 * 10 + 20 * 20 + 5 * 5) / 35
    by_site = found.awrt_by_site(jobs, 3)
    assert by_site[:2].tolist() == [(10 * 10 + 20 * 20) / 30, 5.0]
    assert np.isnan(by_site[2])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"submit_time": np.array([1.0, 0.0])}, "order of arrival"),
        ({"home": np.array([0, 60], np.int32)}, "not among"),
        ({"processors": np.array([1, 9], np.int32)}, "job 1 is wider"),
    ],
)
def test_jobs_are_checked(changed: dict[str, Any], message: str) -> None:
    """Out of order, of a site that there is not, and too wide."""
    jobs = ManyJobs(
        np.zeros(2, np.int32), np.zeros(2), np.ones(2, np.int32), np.ones(2), np.ones(2)
    )
    with pytest.raises(ValueError, match=message):
        EVERYBODY.exchange(replace(jobs, **changed))


@pytest.mark.parametrize(
    ("offsets", "moments", "message"),
    [
        ([0, 1], [5.0], "of other sites"),
        ([0] * 60 + [2], [5.0], "of other sites"),
        ([0] * 60 + [2], [5.0, 5.0], "site 59 leaves"),
    ],
)
def test_moments_of_leaving_are_checked(
    jobs: ManyJobs, offsets: list[int], moments: list[float], message: str
) -> None:
    """Lists of other sites, and a site that comes back as it leaves."""
    down = np.array(offsets, np.int64), np.array(moments)
    with pytest.raises(ValueError, match=message):
        replace(EVERYBODY, down=down).exchange(jobs)


@pytest.mark.parametrize("each", [1, 60])
def test_acquaintances_need_others(each: int) -> None:
    """Fewer than two cannot be drawn both ways, more than there are neither."""
    with pytest.raises(ValueError, match="are possible"):
        acquaintances(COUNT, each, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("column", "wrong", "said"),
    [("submit_time", np.nan, "submit time"), ("submit_time", np.inf, "submit time"), ("processors", 0, "width"),
     ("run_time", np.nan, "run time"), ("run_time", np.inf, "run time"), ("run_time", -1.0, "run time"),
     ("run_time", 9.5, "below its run time"), ("requested_time", np.nan, "below its run time")],
)  # fmt: skip
def test_jobs_that_cannot_be_run_are_refused(column: str, wrong: float, said: str) -> None:
    """Not a number least of all: no comparison with it holds."""
    jobs = ManyJobs(
        np.zeros(2, np.int32),
        np.zeros(2),
        np.ones(2, np.int32),
        np.full(2, 9.0),
        np.full(2, 9.0),
    )
    getattr(jobs, column)[1] = wrong
    with pytest.raises(ValueError, match=f"job 1: .*{said}"):
        EVERYBODY.exchange(jobs)


def test_none_is_all_and_nobody_is_refused() -> None:
    """Partners asked are at least one."""
    jobs = ManyJobs(*(np.zeros(0, kind) for kind in (np.int32, float, np.int32, float, float)))
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"{wrong} partners asked"):
            replace(EVERYBODY, partners_asked=wrong).exchange(jobs)
