"""The example of Topcuoglu, Hariri and Wu (2002): figure 1, table 1 and figure 2."""

import math

import pytest

from broker.model.heft import heft, mean_link, upward_ranks
from broker.model.network import BANDWIDTH_MIN, DataFile, Link, Network
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from tests.oracles.plan_checker import plan_violations

SECONDS = {
    1: (14, 16, 9),
    2: (13, 19, 18),
    3: (11, 13, 19),
    4: (13, 8, 17),
    5: (12, 13, 10),
    6: (13, 16, 9),
    7: (7, 15, 11),
    8: (5, 11, 14),
    9: (18, 12, 20),
    10: (21, 7, 16),
}
DATA = {
    (1, 2): 18,
    (1, 3): 12,
    (1, 4): 9,
    (1, 5): 11,
    (1, 6): 14,
    (2, 8): 19,
    (2, 9): 16,
    (3, 7): 23,
    (4, 8): 27,
    (4, 9): 23,
    (5, 9): 13,
    (6, 8): 15,
    (7, 10): 17,
    (8, 10): 11,
    (9, 10): 13,
}
RANKS = {
    1: 108.0,
    2: 77.0,
    3: 80.0,
    4: 80.0,
    5: 69.0,
    6: 63.333,
    7: 42.667,
    8: 35.667,
    9: 44.333,
    10: 14.667,
}


def published() -> Problem:
    """Returns the example: ten tasks, three processors, one byte a second between any two of them."""
    processors = tuple(Resource(f"P{number}") for number in (1, 2, 3))
    tasks = tuple(
        Task(
            f"n{number}",
            1.0,
            tuple(
                Alternative((Demand(each.name),), float(took))
                for each, took in zip(processors, SECONDS[number], strict=True)
            ),
            tuple(f"n{before}" for before, after in DATA if after == number),
        )
        for number in SECONDS
    )
    files = tuple(
        DataFile(f"{before}-{after}", float(size), (f"n{after}",), f"n{before}")
        for (before, after), size in DATA.items()
    )
    workflow = Workflow("example", tasks, files=files)
    return Problem((workflow,), processors, 0.0, network=Network(Link(1.0)))


def test_ranks_and_makespan_are_the_published_ones() -> None:
    problem = published()
    ranks = upward_ranks(problem, problem.workflows[0])
    assert ranks == pytest.approx({f"n{task}": rank for task, rank in RANKS.items()}, abs=5e-4)
    plan = heft(problem)
    assert plan.makespan_end == 80.0
    assert plan_violations(problem, plan) == []
    places = {each.task: (each.resources[0], each.start, each.end) for each in plan}
    assert places["n1"] == ("P3", 0.0, 9.0)
    assert places["n10"] == ("P2", 73.0, 80.0)
    assert len(plan.transfers) == sum(
        places[f"n{before}"][0] != places[f"n{after}"][0] for before, after in DATA
    )


def test_without_a_network_files_are_everywhere() -> None:
    """The ranks are those of the durations alone, and nothing is sent."""
    files = published()
    plain = Problem(files.workflows, files.resources, 0.0)
    assert upward_ranks(plain, plain.workflows[0])["n10"] == pytest.approx(14.667, abs=5e-4)
    assert upward_ranks(plain, plain.workflows[0])["n9"] == pytest.approx(16.667 + 14.667, abs=1e-3)
    assert heft(plain).transfers == ()


def test_the_mean_link_counts_pairs_of_one_site() -> None:
    """Of six pairs of three resources, two of which are of one site, four have a way to go."""
    resources = [Resource(name) for name in "abc"]
    network = Network(Link(10.0, 3.0), {"a": "x", "b": "x"}, {("x", "c"): Link(5.0, 6.0)})
    mean = mean_link(network, resources)
    assert mean.latency == pytest.approx((2 * 6.0 + 2 * 3.0) / 6)
    assert 1 / mean.bandwidth == pytest.approx((2 / 5 + 2 / 10) / 6)
    assert mean_link(network, resources[:1]) == Link(math.inf, 0.0)
    slowest = Network(Link(BANDWIDTH_MIN), {"a": "x"})  # rounded, its mean would be a little less
    for count in range(2, 50):
        some = [Resource(f"r{number}") for number in range(count)]
        assert mean_link(slowest, some).bandwidth == pytest.approx(BANDWIDTH_MIN)
