"""The benchmark of data: its problems, the payment of plans that know no files, and the greedy constant."""

import json
from pathlib import Path

import pytest

from benchmarks.data import METHODS, carried_out, drawn, makespans, paid, summary
from benchmarks.deviation_dispatch import Greedy
from benchmarks.deviation_loads import NOISES, Load
from broker.model.heft import heft
from broker.model.network import DataFile, Link, Network
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from tests.broker.io.test_networks import with_files
from tests.oracles.plan_checker import plan_violations


def test_a_plan_that_knows_files_pays_what_it_says(tmp_path: Path) -> None:
    """Its choices, carried out in their order, end when it ends, or sooner; each method has a makespan."""
    recorded = tmp_path / "diamond.json"
    recorded.write_text(json.dumps(with_files()))
    problem = drawn(recorded, 1.0, 3)
    assert problem == drawn(recorded, 1.0, 3)
    plan = heft(problem)
    assert plan_violations(problem, plan) == []
    assert paid(problem, plan) <= plan.makespan_end + 1e-9
    found = makespans(problem, 1, 100)
    assert sorted(found) == sorted(METHODS)
    assert found["local"] <= found["blind"]
    done = carried_out(problem, 1, NOISES[0])
    assert done["broker"] >= found["local"] - 1e-9
    rows = [
        {"share": 1.0, "over_local": {name: found[name] / found["local"] for name in METHODS[1:]}}
    ]
    assert summary(rows)["1"]["blind"] >= 1.0


@pytest.mark.parametrize(("locality", "flow"), [(False, 41.0), (True, 30.0)])
def test_the_greedy_dispatcher_has_files_sent(*, locality: bool, flow: float) -> None:
    """The fast one has to be sent the input, for eleven seconds; the slow one, hardly slower, has it."""
    anywhere = (Alternative.of("slow"), Alternative.of("fast"))
    tasks = (Task("a", 10.0, anywhere), Task("b", 20.0, anywhere, ("a",)))
    files = (DataFile("in", 20.0, ("a",), site="slow"), DataFile("x", 20.0, ("b",), "a"))
    load = Load(
        (Resource("slow", performance=1.0), Resource("fast", performance=1.0 + 1e-12)),
        ((0.0, Workflow("w", tasks, files=files)),),
        Network(Link(2.0, 1.0)),
    )
    found = Greedy(load, NOISES[0], 1, "greedy fifo", locality=locality).run()
    assert found.mean_flow_s == pytest.approx(flow)


def test_a_file_is_sent_once() -> None:
    """The second reader at the site finds it: it ends as early as the first one."""
    only = (Alternative.of("far"),)
    tasks = (Task("a", 5.0, only), Task("b", 5.0, only))
    workflow = Workflow("w", tasks, files=(DataFile("in", 20.0, ("a", "b")),))
    resources = (Resource("far", capacity=2),)
    load = Load(resources, ((0.0, workflow),), Network(Link(2.0)))
    assert Greedy(load, NOISES[0], 1, "greedy fifo").run().mean_flow_s == 15.0
    chained = Workflow("w", (tasks[0], Task("b", 5.0, only, ("a",))), files=workflow.files)
    load = Load(resources, ((0.0, chained),), Network(Link(2.0)))
    assert Greedy(load, NOISES[0], 1, "greedy fifo").run().mean_flow_s == 20.0
