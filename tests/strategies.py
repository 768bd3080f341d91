"""Hypothesis strategies for small workloads in which everything happens at once.

Times are drawn from a handful of values, so that submissions, ends, estimated ends and shadow
times coincide; widths are often one processor, half a machine, or all of it.
"""

import math
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable
from tests.oracles.disciplines import PASSES
from tests.oracles.federation import PlainPolicy, PlainRule, PlainSite

DISCIPLINES = ("fcfs", "list", "easy", "easy-per-event", "conservative")
"""The queue disciplines on the order of arrival and without predictions."""

ORDERED = tuple(name for name in PASSES if name not in DISCIPLINES and not name.endswith("-group"))
"""Those on other orders and those that predict; `tests/lrms_sim/scheduling/test_queue_orders.py` has them."""

# Seconds per unit. With 0.1 sums round (0.1 + 0.2 is not 0.3), so that ends which "are" equal
# differ in the last bit, and a kernel that adds in another order than the oracle is found out.
UNITS = (1.0, 0.1, 60.0)

JobDraw = tuple[int, int, int, int]
"""Submission, processors, run time and surplus of the request, in units."""


@dataclass(frozen=True)
class OneMachine:
    """A workload and the machine it is for."""

    processors: int
    jobs: JobTable


SUBMISSIONS = (*range(13), -1, -2)
RUN_TIMES = tuple(range(1, 8))
SURPLUSES = (0, 0, 1, 2, 5, 9)


def widths(processors: int) -> tuple[int, ...]:
    """Returns widths up to `processors`, the edges more than once."""
    edges = {1, max(1, processors // 2), max(1, processors - 1), processors}
    return tuple(sorted([*range(1, processors + 1), *edges]))


@cache
def job_draws(processors: int, *, exact: bool = False) -> st.SearchStrategy[JobDraw]:
    """Returns single jobs; with `exact` every run time is what was requested.

    A job is one number, and each of its four values a digit of that: drawing is most of what a small
    example costs, and one draw costs a third of four.
    """
    values = SUBMISSIONS, widths(processors), RUN_TIMES, SURPLUSES[:1] if exact else SURPLUSES

    def digits(number: int) -> JobDraw:
        found = []
        for each in values:
            number, digit = divmod(number, len(each))
            found.append(each[digit])
        submit, width, run, surplus = found
        return submit, width, run, surplus

    return st.integers(0, math.prod(map(len, values)) - 1).map(digits)


def table(draws: list[JobDraw], unit: float) -> JobTable:
    """Returns the job table of drawn jobs."""
    return JobTable.from_columns(
        submit_time=[submit * unit for submit, _, _, _ in draws],
        processors=[width for _, width, _, _ in draws],
        run_time=[run * unit for _, _, run, _ in draws],
        requested_time=[(run + surplus) * unit for _, _, run, surplus in draws],
    )


@st.composite
def job_tables(
    draw: st.DrawFn, processors: int, *, jobs_max: int = 14, exact: bool = False
) -> JobTable:
    """Draws a workload for a machine of that size."""
    draws = draw(st.lists(job_draws(processors, exact=exact), max_size=jobs_max))
    return table(draws, draw(st.sampled_from(UNITS)))


@st.composite
def one_machine(draw: st.DrawFn, *, jobs_max: int = 14, exact: bool = False) -> OneMachine:
    """Draws a machine and its workload."""
    processors = draw(st.integers(1, 8))
    return OneMachine(processors, draw(job_tables(processors, jobs_max=jobs_max, exact=exact)))


disciplines = st.sampled_from(DISCIPLINES)
"""The name of a discipline."""


# Federations, as the oracle's plain sites.


def full_speed(case: OneMachine, discipline: str) -> list[float]:
    """Returns the start times of the full-speed face."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(discipline))
    start_time: list[float] = schedule.start_time.tolist()
    return start_time


def rules() -> st.SearchStrategy[PlainRule]:
    """Returns rules about the range in which learned ones lie."""
    return st.builds(
        PlainRule,
        nwp_gamma=st.floats(0, 4),
        nwp_sigma=st.floats(0.1, 4),
        njp_gamma=st.floats(0, 100),
        njp_sigma=st.floats(1, 100),
        accept=st.sampled_from((-1, 1)),
    )


def rule_bases() -> st.SearchStrategy[PlainPolicy]:
    """Returns small rule bases."""
    return st.lists(rules(), min_size=1, max_size=4).map(tuple)


def policies() -> st.SearchStrategy[PlainPolicy]:
    """Returns transfer policies of each kind."""
    return st.one_of(st.just("awf"), st.just("awf"), st.just("keep"), rule_bases())


@st.composite
def federations(
    draw: st.DrawFn,
    *,
    policy: st.SearchStrategy[PlainPolicy] | None = None,
    every_partner: bool = False,
    sites_max: int = 4,
) -> list[PlainSite]:
    """Draws up to four sites with few jobs each, all in one unit of time."""
    policy = policies() if policy is None else policy
    names = "abcd"[: draw(st.integers(2, sites_max))]
    unit = draw(st.sampled_from(UNITS))
    sites = []
    for name in names:
        processors = draw(st.integers(1, 8))
        jobs = table(draw(st.lists(job_draws(processors), max_size=8)), unit)
        others = [other for other in names if other != name]
        partners = others if every_partner else draw(st.permutations(others))
        if not every_partner:
            partners = partners[draw(st.sampled_from((0, 0, 0, 1))) :]
        order = draw(st.permutations(others))
        location = draw(
            st.one_of(
                st.sampled_from(("awrt", "awrt-open")),
                st.just(tuple(order)),
                st.just(tuple(order[1:])),
            )
        )
        sites.append(
            PlainSite(
                name=name,
                processors=processors,
                discipline=draw(disciplines),
                jobs=jobs,
                policies={partner: draw(policy) for partner in partners},
                location="awrt" if every_partner else location,  # type: ignore[arg-type]  # drawn
                partners_asked=None if every_partner else draw(st.sampled_from((None, 1, 2))),
            )
        )
    return sites
