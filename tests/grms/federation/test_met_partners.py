"""Records of those partners alone that a site has met: replays are the same as with records of all."""

from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.federation._kernel import SPARSE_FROM, FederationKernel
from grms.federation.federation import Federation, FederationReplay, Site
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import compiled_transfer
from lrms_sim.kernel._scheduler import Scheduler
from lrms_sim.scheduling.disciplines import Easy, ListScheduling, scheduler_of
from tests.random_workloads import random_jobs


def exchanged(sites: list[Site], sparse_from: int) -> FederationReplay:
    """Replays with records of met partners alone from so many sites on."""
    kernel = partial(FederationKernel, sparse_from=sparse_from)
    with patch("grms.federation.federation.FederationKernel", kernel):
        return Federation(sites).exchange()


def town(
    seed: int, count: int, jobs: int, policy: str, asked: int | None, *, widest: int = 40
) -> list[Site]:
    """Returns sites that all exchange jobs; a few are much wider than the others."""
    rng = np.random.default_rng(seed)
    names = [f"s{number:03d}" for number in range(count)]
    return [
        Site(
            name,
            processors,
            random_jobs(rng, jobs, processors),
            (Easy(), ListScheduling())[number % 2],
            {other: TRANSFER_POLICIES[policy] for other in names if other != name},
            partners_asked=asked,
        )
        for number, name in enumerate(names)
        for processors in [int(rng.integers(2, widest if rng.random() < 0.2 else 8))]
    ]


def assert_equal(one: FederationReplay, other: FederationReplay) -> None:
    """Asserts that two replays did the same."""
    assert one.offers == other.offers
    assert one.schedule.executed_on.tolist() == other.schedule.executed_on.tolist()
    assert one.schedule.start_time.tolist() == other.schedule.start_time.tolist()


@st.composite
def towns(draw: st.DrawFn) -> list[Site]:
    """Sites of any kind: policies with and without constraints, bounded questions or not, rounds or not."""
    policy = draw(st.sampled_from(("awf", "fair-exchange", "start-now")))
    asked = draw(st.sampled_from((None, 1, 2, 5)))
    reoffer = draw(st.sampled_from((None, 50.0)))
    seed, count = draw(st.integers(0, 10**6)), draw(st.integers(2, 20))
    sites = town(seed, count, draw(st.integers(1, 12)), policy, asked)
    return [replace(site, reoffer=reoffer) for site in sites]


@given(sites=towns())
def test_records_of_met_partners_change_nothing(sites: list[Site]) -> None:
    """Whatever sites there are."""
    assert_equal(exchanged(sites, 1), exchanged(sites, 10**9))


@pytest.mark.parametrize("policy", ["awf", "fair-exchange"])
@pytest.mark.parametrize(("count", "jobs"), [(30, 80), (150, 20), (SPARSE_FROM + 3, 6)])
def test_met_once_and_ranked_partners_come_in_the_same_order(
    policy: str, count: int, jobs: int
) -> None:
    """Until no partner is left that was not met, and with more of them than are ever met."""
    sites = town(7, count, jobs, policy, 4)
    sparse = exchanged(sites, 1)
    assert_equal(sparse, exchanged(sites, 10**9))
    moved = np.count_nonzero(sparse.schedule.executed_on != sparse.schedule.submitted_to)
    assert moved > 100


def kernel_of(known: tuple[Any, Any] | None, count: int = 3, **more: Any) -> FederationKernel:
    """Returns a kernel of equal sites that know some partners."""
    policy = compiled_transfer(TRANSFER_POLICIES["fair-exchange"])
    schedulers: list[Scheduler] = [scheduler_of(Easy()) for _ in range(count)]
    arguments: dict[str, Any] = {"count_open": [False] * count, "orders": [None] * count} | more
    return FederationKernel([4] * count, schedulers, [policy] * count, known=known, **arguments)


def lists(offsets: list[int], partners: list[int]) -> tuple[Any, Any]:
    """Returns lists of partners as the kernel takes them."""
    return np.array(offsets, np.int64), np.array(partners, np.int32)


@pytest.mark.parametrize(
    ("offsets", "partners", "message"),
    [
        ([0, 1, 2], [1, 0], "of other sites"),
        ([0, 2, 1, 3], [1, 2, 0], "of other sites"),
        ([0, 1, 2, 3], [0, 0, 0], "partners of site 0"),
        ([0, 2, 3, 4], [2, 1, 0, 0], "partners of site 0"),
        ([0, 1, 2, 3], [1, 3, 0], "partners of site 1"),
        ([0, 0, 0, 0], [], "no site knows"),
    ],
)
def test_lists_of_known_partners_are_checked(
    offsets: list[int], partners: list[int], message: str
) -> None:
    """Sites that there are not, itself, one twice or out of order."""
    with pytest.raises(ValueError, match=message):
        kernel_of(lists(offsets, partners))


def test_an_order_of_its_own_takes_the_order_by_completed_jobs() -> None:
    """A fixed order has none behind it."""
    with pytest.raises(ValueError, match="site 0 has an order of its own"):
        kernel_of(None, orders=[[1], None, None], own_order=True)


def test_known_partners_take_the_order_by_completed_jobs() -> None:
    """A fixed order has its own list of partners."""
    with pytest.raises(ValueError, match="knows some partners alone"):
        kernel_of(lists([0, 1, 2, 3], [1, 0, 0]), orders=[[1], None, None])
