"""Faults are drawn from a seed: as many as were asked for, in turn at both sites, and the same again."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scenarios.prove.plan import LINK_KINDS, SITES, WORDS, Plan, faults_of, jobs_of
from tests.examples import FEW


@FEW
@given(st.integers(1, 60), st.integers(0, 2**63 - 1))
def test_a_plan_has_what_was_asked_for(hangs: int, seed: int) -> None:
    """Each hang has three jobs submitted while it lasts; at least one of every other fault of batch systems is there."""
    plan = Plan(hangs, seed)
    lanes = plan.lanes()
    assert plan.lanes() == lanes
    faults = faults_of(lanes)
    counts = Counter(fault.kind for fault in faults)
    assert counts["hang"] == hangs
    assert counts["kill"] == counts["state loss"] == counts["site kill"] == max(1, hangs // 6)
    assert sum(counts[kind] for kind in LINK_KINDS) == max(2, hangs // 3)
    assert set(counts) <= set(WORDS)
    assert jobs_of(lanes) == sum(len(fault.jobs) for fault in faults) >= 3 * hangs
    for fault in faults:
        assert (fault.place in SITES) == (fault.kind not in LINK_KINDS)
        assert all(0 <= moment <= fault.broken_s or fault.kind == "kill" for moment in fault.jobs)
    if hangs > 1:
        assert {fault.place for fault in lanes["north"] + lanes["south"]} == set(SITES)


def test_other_seeds_have_other_faults() -> None:
    """And no two plans the same moments."""
    assert Plan(12, 1).lanes() != Plan(12, 2).lanes()
