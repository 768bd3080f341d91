"""Links that carry one transfer at a time."""

import math
from dataclasses import replace

from benchmarks import data
from benchmarks.contention import known, paid, slower
from benchmarks.data import searched
from benchmarks.deviation_dispatch import Greedy
from benchmarks.deviation_loads import NOISES, Load
from broker.model.network import DataFile, Link, Network
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow

SITES = {"near": "one", "far": "two", "far2": "two"}


def problem() -> Problem:
    """Returns two tasks that each read a file of ten seconds, on a link from the first site to the second."""
    everywhere = tuple(Alternative.of(name) for name in ("far", "far2"))
    tasks = tuple(Task(name, 5.0, everywhere) for name in ("a", "b"))
    files = tuple(DataFile(f"of {name}", 100.0, (name,), site="one") for name in ("a", "b"))
    flow = Workflow("w", tasks, earliest_start=0.0, files=files)
    network = Network(Link(10.0), SITES, {}, "one")
    return Problem((flow,), tuple(Resource(name) for name in SITES), 0.0, network=network)


def test_two_transfers_over_one_link_come_one_after_the_other() -> None:
    """The plan has them at the same time; what it comes to is ten seconds more, as one that knows it says and the greedy dispatcher finds."""
    given = problem()
    places = (
        Placement("w", task, (Demand(resource),), 10.0, 15.0, 0.0)
        for task, resource in (("a", "far"), ("b", "far2"))
    )
    plan = Plan(tuple(places))
    assert data.paid(given, plan) == 15.0
    assert paid(given, plan) == 25.0
    load = Load(given.resources, ((0.0, given.workflows[0]),), given.network)
    assert Greedy(load, NOISES[0], 1, "greedy fifo").run().mean_flow_s == 15.0
    load = replace(load, network=known(given).network)
    assert Greedy(load, NOISES[0], 1, "greedy fifo").run().mean_flow_s == 25.0
    assert searched(known(given), 1, 20).makespan_end == 25.0


def test_a_slower_network_is_slower_everywhere() -> None:
    """Latencies stay, as does what takes no time."""
    network = Network(Link(10.0, 1.0), SITES, {("one", "two"): Link(math.inf, 2.0)})
    made = slower(network, 2.0)
    assert made.default == Link(5.0, 1.0)
    assert made.links == network.links
