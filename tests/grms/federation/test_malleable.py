import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grms.federation import malleable as utility_exchange
from grms.federation.malleable import UtilitySite, exchange
from lrms_sim.malleable._kernel import UtilityKernel
from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import simulate
from lrms_sim.malleable.policies import POLICIES
from lrms_sim.malleable.value import PAPER_P, Scales, ValueFunction
from lrms_sim.workload.jobs import JobTable

VALUE = ValueFunction(PAPER_P, Scales(1.0, 10.0, 24))


def jobs(*rows: tuple[float, int, float]) -> UtilityJobs:
    """Returns jobs given as arrival, width, length."""
    arrival, width, length = zip(*rows, strict=True) if rows else ((), (), ())
    return UtilityJobs.of(
        JobTable.from_columns(
            submit_time=arrival, processors=np.array(width, np.int32), run_time=length
        )
    )


def site(name: str, work: UtilityJobs, transfer: str, processors: int = 24) -> UtilitySite:
    """Returns a site whose machine squeezes and suspends by value."""
    return UtilitySite(name, work, processors, POLICIES["both-value"], transfer, VALUE)  # type: ignore[arg-type]  # words of a test


@st.composite
def workloads(draw: st.DrawFn) -> UtilityJobs:
    """Draws jobs no two of which arrive at one instant."""
    count = draw(st.integers(0, 12))
    gaps = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    width = draw(st.lists(st.integers(1, 8), min_size=count, max_size=count))
    length = draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    # No job arrives at the very moment at which another one ends.
    arrivals = [sum(gaps[: n + 1]) + 0.0137 * (n + 1) for n in range(count)]
    return jobs(*zip(arrivals, width, map(float, length), strict=True))


@settings(deadline=None)
@given(one=workloads(), two=workloads())
def test_sites_that_keep_their_jobs_are_alone(one: UtilityJobs, two: UtilityJobs) -> None:
    """Each does what its machine does without any partner, to the last bit.

    But for ends at the very moment of an arrival: a machine alone makes one pass then, and sites, where
    what has ended must be known before anybody is asked, make one before the arrival too.
    """
    found = exchange([site("a", one, "keep", 8), site("b", two, "keep", 8)])
    for number, work in enumerate((one, two)):
        alone = simulate(work, 8, POLICIES["both-value"], value=VALUE)
        assume(not np.isclose(alone.end[:, None], work.jobs.submit_time, atol=1e-9, rtol=0).any())
        mine = found.submitted_to == number
        assert found.utility[mine].tolist() == alone.utility.tolist()
        assert found.suspensions[number] == alone.machines[0].suspensions
        assert found.given(number) == found.taken(number) == 0
        assert math.isclose(found.share(number), alone.share) or not len(work)


def test_an_end_between_two_arrivals_has_one_pass() -> None:
    """None more at the next arrival, which would suspend by a value that has changed meanwhile."""
    arrivals = [1.0137 * number for number in range(1, 10)]
    width, length = (7, 1, 5, 1, 1, 2, 1, 3, 1), (7, 7, 6, 5, 4, 2, 2, 1, 1)
    work = jobs(*zip(arrivals, width, map(float, length), strict=True))
    alone = simulate(work, 8, POLICIES["both-value"], value=VALUE)
    found = exchange([site("a", jobs(), "keep", 8), site("b", work, "keep", 8)])
    assert found.end.tolist() == alone.end.tolist()


@settings(deadline=None)
@given(one=workloads(), two=workloads(), transfer=st.sampled_from(("awf", "value")))
def test_every_job_runs_at_one_place_that_holds_it(
    one: UtilityJobs, two: UtilityJobs, transfer: str
) -> None:
    """Nothing is lost or run twice, and no job goes where it is too wide."""
    found = exchange([site("a", one, transfer, 8), site("b", two, transfer, 16)])
    assert len(found.end) == len(one) + len(two)
    assert not np.isnan(found.end).any()
    assert sum(map(found.given, (0, 1))) == sum(map(found.taken, (0, 1)))
    assert (found.workload.jobs.processors[found.executed_on == 0] <= 8).all()


def test_accept_when_fit_asks_a_partner_with_room() -> None:
    """The second job does not fit at home; the third fits nowhere and stays."""
    found = exchange(
        [
            site("a", jobs((0, 20, 9), (1, 20, 9), (2, 20, 9)), "awf"),
            site("b", jobs(), "awf"),
        ]
    )
    assert found.executed_on.tolist() == [0, 1, 0]
    assert (found.given(0), found.taken(1)) == (1, 1)


def test_by_value_a_site_takes_what_makes_its_state_better() -> None:
    """It keeps a job by which its value rises, as worked out by hand, and gives away the other."""
    # 16 of 24 processors run until 10. At 2 a job of 24 qualifies to suspend it (1/5 above 1/8),
    # but V falls from x = 1, 8, 8 to x = 1, 5, 0: 2.207 to 2.255 rises, so it stays; one that
    # would be squeezed into the last 8 and be worth nothing does not.
    home = jobs((0, 16, 10), (2, 24, 5), (3, 24, 10))
    found = exchange([site("a", home, "value"), site("b", jobs(), "value")])
    now, forced = VALUE.value(1, 8, 8), VALUE.value(1, 5, 0)
    assert forced > now
    assert found.executed_on.tolist()[:2] == [0, 0]
    # At 3 the machine is full with a job whose remaining utility, 1/4, is above 1/10.
    assert found.executed_on.tolist()[2] == 1


def test_a_decision_looks_at_its_own_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a site decides, nobody asks another site's machine anything."""
    asked: list[tuple[str, UtilityKernel]] = []
    real = utility_exchange._wants

    def wants(
        deciding: UtilitySite, kernel: UtilityKernel, job: int, width: int, *, own: bool
    ) -> bool:
        asked.append((deciding.name, kernel))
        return real(deciding, kernel, job, width, own=own)

    monkeypatch.setattr(utility_exchange, "_wants", wants)
    work = jobs(*((float(n), 16, 9.0) for n in range(6)))
    exchange([site("a", work, "value"), site("b", work, "value")])
    machines = {name: {id(kernel) for other, kernel in asked if other == name} for name in "ab"}
    assert all(len(ids) == 1 for ids in machines.values())
    assert machines["a"] != machines["b"]


def test_partners_are_asked_by_what_they_did_with_own_jobs() -> None:
    """One without history comes first, then by AWRT, then by number."""
    replay = utility_exchange._Replay([site(name, jobs(), "keep") for name in "abcd"])
    assert replay.partners(0) == [1, 2, 3]
    replay.book(0, 1, 10.0, 50.0)
    replay.book(0, 2, 10.0, 20.0)
    assert replay.partners(0) == [3, 2, 1]
    replay.book(0, 2, 30.0, 100.0)
    replay.book(0, 3, 1.0, 50.0)
    assert replay.partners(0) == [1, 3, 2]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: exchange([]), "at least one site"),
        (lambda: site("a", jobs(), "sell"), "site a: transfer is 'sell'; it must be one of keep"),
        (lambda: site("a", jobs((0, 9, 1)), "keep", 8), "9 processors wide; the machine has 8"),
        (
            lambda: UtilitySite("a", jobs(), 8, POLICIES["replan"], "value"),
            "site a decides by value and has no value function",
        ),
    ],
)
def test_sites_that_cannot_decide_are_refused(make: object, words: str) -> None:
    """The site, the value and the bound are named."""
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]  # a lambda
