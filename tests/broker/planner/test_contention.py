"""Links that carry one transfer at a time: known schedules, and plans of chance beside the plain builder and the validator."""

import json
import math
import os
import pickle
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.model.heft import heft
from broker.model.network import Contention, Copy, DataFile, Link, Network
from broker.model.plan import Placement, Plan, Transfer
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.transfers import LinkTimes
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.planner._builder import Workspace
from broker.planner.compilation import compile_problem
from broker.planner.gleam import GUIDED
from broker.planner.goals import MAKESPAN_ONLY, Goals
from broker.planner.heuristics import planned_heuristic
from broker.planner.islands import FoundByIslands, Island, Round, search_islands
from broker.planner.methods import SEARCHES
from broker.planner.planning import Planner
from broker.planner.search import Budget, Search, search
from lrms_sim.util.executors import DaskExecutor, Executor, ThreadExecutor
from tests.broker.model.test_heft_communication import published
from tests.broker.planner.building import built
from tests.broker.random_problems import HOUR, contended, contended_problems, data_problem
from tests.oracles.plan_builder import plain_build
from tests.oracles.plan_checker import plan_violations

GUIDED_5 = replace(GUIDED, population=5)

SEARCHED = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 40
"""Random problems that are planned from end to end."""


def starts(plan: Plan) -> dict[str, float]:
    return {each.task: each.start for each in plan}


def sent(plan: Plan) -> list[tuple[str, float, float]]:
    return [(each.task, each.begin, each.end) for each in plan.transfers]


def fork(
    *,
    left: str = "b",
    right: str = "b",
    contention: Contention = "link",
    sizes: tuple[float, float] = (20.0, 20.0),
) -> Problem:
    """Returns a task on `a` of ten seconds, and two that read a file of ten seconds each."""
    resources = (Resource("a", capacity=2), Resource("b", capacity=2), Resource("c", capacity=2))
    tasks = (
        Task("root", 10.0, (Alternative.of("a"),)),
        Task("left", 5.0, (Alternative.of(left),), ("root",)),
        Task("right", 5.0, (Alternative.of(right),), ("root",)),
    )
    files = tuple(
        DataFile(f"for {name}", size, (name,), "root")
        for name, size in zip(("left", "right"), sizes, strict=True)
    )
    network = Network(Link(2.0), contention=contention)
    return Problem((Workflow("w", tasks, 0.0, files=files),), resources, 0.0, network=network)


def test_two_files_over_one_link_go_one_after_the_other() -> None:
    """At the same time without contention."""
    free = built(fork(contention="none"))
    assert sent(free) == [("left", 10.0, 20.0), ("right", 10.0, 20.0)]
    plan = built(fork())
    assert sent(plan) == [("left", 10.0, 20.0), ("right", 20.0, 30.0)]
    assert starts(plan) == {"root": 0.0, "left": 20.0, "right": 30.0}
    assert starts(built(fork(), order=(0, 2, 1))) == {"root": 0.0, "left": 30.0, "right": 20.0}
    assert heft(fork(contention="none")).makespan_end == 25.0
    assert heft(fork()).makespan_end == 35.0


def test_other_links_do_not_wait() -> None:
    plan = built(fork(right="c"))
    assert sent(plan) == [("left", 10.0, 20.0), ("right", 10.0, 20.0)]
    assert built(fork(right="a")).makespan_end == 25.0


def test_directions_are_links_of_their_own() -> None:
    """A file each way, at the same time."""
    tasks = tuple(Task(name, 5.0, (Alternative.of(name),)) for name in "ab")
    files = (DataFile("to a", 10.0, ("a",), site="b"), DataFile("to b", 10.0, ("b",), site="a"))
    problem = Problem(
        (Workflow("w", tasks, 0.0, files=files),),
        (Resource("a"), Resource("b")),
        0.0,
        network=Network(Link(1.0), contention="link"),
    )
    assert starts(built(problem)) == {"a": 10.0, "b": 10.0}


def test_a_task_goes_where_the_link_is_free() -> None:
    """The second child takes the other site, although it is slower: 20 + 8, and 30 + 5 on the fast one."""
    problem = fork()
    (workflow,) = problem.workflows
    root, left, right = workflow.tasks
    either = replace(right, alternatives=(Alternative.of("b"), Alternative.of("c")))
    resources = (*problem.resources[:2], replace(problem.resources[2], performance=5.0 / 8.0))
    workflow = replace(workflow, tasks=(root, replace(left, work=7.0), either))
    contended_ = replace(problem, workflows=(workflow,), resources=resources)
    place = built(contended_).placement("w", "right")
    assert place is not None
    assert (place.resources, place.start, place.end) == (("c",), 20.0, 28.0)
    assert heft(contended_).makespan_end == 28.0
    free = replace(contended_, network=Network(Link(2.0)))
    assert heft(free).makespan_end == 27.0


@pytest.mark.parametrize(("size", "begin"), [(20.0, 0.0), (22.0, 20.0)])
def test_a_transfer_takes_the_first_gap_that_is_long_enough(size: float, begin: float) -> None:
    """The file of a task planned later goes before those planned sooner, if it does not delay them."""
    problem = fork()
    (workflow,) = problem.workflows
    late = Task("late", 1.0, (Alternative.of("b"),))
    files = (workflow.files[0], DataFile("given", size, ("late",), site="a"))
    tasks = (*workflow.tasks[:2], late)
    workflow = replace(workflow, tasks=tasks, files=files)
    plan = built(replace(problem, workflows=(workflow,)))
    assert sorted(sent(plan)) == [("late", begin, begin + size / 2), ("left", 10.0, 20.0)]


def test_the_files_of_a_task_are_sent_in_the_order_in_which_they_exist() -> None:
    """Those of the source that ends first, whatever stands first; one does not overtake the other."""
    tasks = (
        Task("slow", 12.0, (Alternative.of("a"),)),
        Task("quick", 10.0, (Alternative.of("a"),)),
        Task("both", 1.0, (Alternative.of("b"),), ("slow", "quick")),
    )
    files = (DataFile("s", 4.0, ("both",), "slow"), DataFile("q", 3.0, ("both",), "quick"))
    problem = Problem(
        (Workflow("w", tasks, 0.0, files=files),),
        (Resource("a", capacity=2), Resource("b")),
        0.0,
        network=Network(Link(1.0), contention="link"),
    )
    plan = built(problem)
    assert [(t.files, t.begin, t.end) for t in plan.transfers] == [
        (("q",), 10.0, 13.0),
        (("s",), 13.0, 17.0),
    ]


def test_a_file_is_sent_to_a_site_once() -> None:
    """Who is planned later finds it when the transfer ends, and pays nothing."""
    problem = fork()
    (workflow,) = problem.workflows
    files = (
        DataFile("shared", 20.0, ("left", "right"), "root"),
        DataFile("own", 4.0, ("right",), "root"),
    )
    workflow = replace(workflow, files=files)
    network = Network(Link(2.0, price=1.0), contention="link")
    plan = built(replace(problem, workflows=(workflow,), network=network))
    assert [(t.task, t.files, t.begin, t.end, t.cost) for t in plan.transfers] == [
        ("left", ("shared",), 10.0, 20.0, 20.0),
        ("right", ("own",), 20.0, 22.0, 4.0),
    ]
    assert starts(plan) == {"root": 0.0, "left": 20.0, "right": 22.0}


def test_what_takes_no_time_needs_no_link() -> None:
    plan = built(fork(sizes=(20.0, 0.0)))
    assert starts(plan) == {"root": 0.0, "left": 20.0, "right": 10.0}


def test_what_is_under_way_holds_its_link() -> None:
    """Of another site and direction it does not matter; nor does what has a copy wait for anything."""
    problem = fork()

    def first(source: str, target: str, copies: tuple[Copy, ...] = ()) -> float:
        under_way = (Transfer("w", "t", ("f",), source, target, 5.0, 15.0, 20.0, 0.0),)
        return starts(built(replace(problem, under_way=under_way, copies=copies)))["left"]

    assert first("a", "b") == 25.0
    assert first("b", "a") == first("a", "nowhere") == 20.0
    assert first("a", "b", (Copy("w", "for left", "b", 15.0),)) == 15.0


def test_files_of_fixed_tasks_are_sent_from_now_on() -> None:
    problem = fork()
    root = Placement("w", "root", (Demand("a"),), 0.0, 10.0, 0.0)
    plan = built(replace(problem, now=40.0, fixed=(root,)))
    assert sent(plan) == [("left", 40.0, 50.0), ("right", 50.0, 60.0)]


def test_times_of_a_link_are_joined() -> None:
    """Spans that overlap or touch are one; instants take nothing."""
    links = LinkTimes()
    for begin, end in ((10.0, 20.0), (30.0, 40.0), (20.0, 25.0), (5.0, 12.0), (27.0, 27.0)):
        links.take("a", "b", begin, end)
    found = [links.earliest("a", "b", since, 5.0) for since in (0.0, 1.0, 24.0, 26.0, 41.0)]
    assert found == [0.0, 25.0, 25.0, 40.0, 41.0]
    assert links.earliest("b", "a", 12.0, 5.0) == 12.0


def test_the_published_example_is_planned_with_contention() -> None:
    """It has six links of one byte a second; without contention HEFT ends at 80."""
    problem = replace(published(), network=Network(Link(1.0), contention="link"))
    plan = heft(problem)
    assert plan_violations(problem, plan) == []
    assert plan.makespan_end >= 80.0


def test_the_validator_sees_two_on_a_link() -> None:
    """A plan that knows no contention is none where there is."""
    plan = built(fork(contention="none"))
    (found,) = plan_violations(fork(), plan)
    assert found == "a to b: w/left and w/right are sent for at 10.0"


@given(st.data(), contended_problems(), st.integers(0, 4), st.sampled_from((1, 3, 64, 256)))
def test_every_placement_is_the_plain_builders(
    data: st.DataObject, problem: Problem, strategy: int, buckets: int
) -> None:
    """Any sequence gives the oracle's plan, its transfers none of the validator's objections, and its costs are told."""
    compilation = compile_problem(problem)
    count = len(compilation.tasks)
    keys = [(workflow.name, task.name) for workflow, task in compilation.tasks]
    genes = data.draw(st.permutations(range(count)))
    workspace = Workspace(compilation.compiled, 20 * HOUR, buckets)
    for _ in range(2):  # the second time where links have been used before
        workspace.build(np.array(genes, np.int32), strategy)
        columns = workspace.columns
        order = columns["order"][: workspace.planned]
        plan = compilation.plan(columns["choice"][:count], columns["start"][:count], order)
        expected, _ = plain_build(problem, [keys[gene] for gene in genes], strategy + 1)
        assert {p.key: (p.demands, p.start, p.end) for p in plan} == {
            key: (p.demands, p.start, p.end) for key, p in expected.items()
        }
        assert plan_violations(problem, plan, complete=False) == []
        told = {placement.key: placement.cost for placement in plan}
        for row in order:
            assert columns["cost"][row] == pytest.approx(told[keys[row]])


@given(st.data(), contended_problems())
@settings(max_examples=20)
def test_ras_6_keeps_places_where_files_are_in_time(data: st.DataObject, problem: Problem) -> None:
    first = compile_problem(problem)
    count = len(first.tasks)
    keys = [(workflow.name, task.name) for workflow, task in first.tasks]
    before = built(problem, 3, data.draw(st.permutations(range(count))), complete=False)
    old = Plan(tuple(each for each in before if data.draw(st.booleans())))
    compilation = compile_problem(problem, old)
    genes = data.draw(st.permutations(range(count)))
    workspace = Workspace(compilation.compiled, 20 * HOUR)
    workspace.build(np.array(genes, np.int32), 5)
    columns = workspace.columns
    expected, _ = plain_build(problem, [keys[gene] for gene in genes], 6, old)
    assert {keys[row]: columns["start"][row] for row in columns["order"][: workspace.planned]} == {
        key: p.start for key, p in expected.items() if key in keys
    }


def test_searched_plans_have_no_violation() -> None:
    """Plans of our own search and of HEFT, with set-ups, hours, prices, fixed tasks and links that are taken."""
    transfers = 0
    for seed in range(SEARCHED):
        problem = contended(data_problem(seed), seed)
        settings_ = replace(SEARCHES["asma-shift"], population=5)
        found = search(
            problem, budget=Budget(math.inf, 60), settings=settings_, seed=seed, workers=1
        )
        for plan in (found.plan, heft(problem)):
            assert plan_violations(problem, plan, complete=False) == [], seed
            transfers += len(plan.transfers)
        worth = found.worth
        if worth is not None and not found.plan.unplanned:
            assert worth.cost == pytest.approx(math.fsum(each.cost for each in found.plan))
    assert transfers > SEARCHED


def layered(contention: Contention = "link") -> Problem:
    """Returns layers of tasks on two sites, each of which reads what two of the layer before have made."""
    resources = tuple(Resource(f"{site}{number}") for site in "ab" for number in range(3))
    sites = {each.name: each.name[0] for each in resources}
    everywhere = tuple(Alternative.of(each.name) for each in resources)
    tasks: list[Task] = []
    files = []
    for row in range(24):
        before = tuple(f"t{each}" for each in range(row - 8, row - 2, 3) if each >= 0)
        tasks.append(Task(f"t{row}", 3.0 + row % 4, everywhere, before))
        files += [DataFile(f"{name} to {row}", 6.0, (f"t{row}",), name) for name in before]
    network = Network(Link(1.0), sites, contention=contention)
    return Problem(
        (Workflow("w", tuple(tasks), 0.0, files=tuple(files)),), resources, 0.0, network=network
    )


def retimed(problem: Problem, free: Plan) -> Plan:
    """Returns what a plan made without contention comes to with it, its resources kept in its order."""
    keys = [each.key for each in sorted(free, key=lambda each: (each.start, each.end))]
    return Plan(tuple(plain_build(problem, keys, 6, replaced_ends(free))[0].values()))


def replaced_ends(plan: Plan) -> Plan:
    """Returns a plan whose tasks may end at any time, so that none leaves its resources."""
    return Plan(tuple(replace(each, end=math.inf) for each in plan))


def test_planning_with_contention_begins_from_a_plan_without() -> None:
    """It ends no later than what half of the schedules come to where contention is ignored, also with no time to improve on it."""
    problem, free = layered(), layered("none")
    for seed in range(3):
        half, known = (
            search(
                each,
                budget=Budget(math.inf, schedules),
                settings=GUIDED_5,
                goals=MAKESPAN_ONLY,
                seed=seed,
                workers=1,
            )
            for each, schedules in ((free, 50), (problem, 100))
        )
        assert plan_violations(problem, known.plan) == []
        assert known.plan.makespan_end <= retimed(problem, half.plan).makespan_end + 1e-6
        assert known.progress.evaluations >= 100


def test_the_start_keeps_resources_and_order() -> None:
    """The builder and the plain one agree on what such a plan comes to."""
    problem = layered()
    planner = Planner(problem)
    free_problem = planner.without_contention
    assert free_problem == layered("none")
    free = search(free_problem, budget=Budget(math.inf, 200), settings=GUIDED_5, workers=1).plan
    planner.begin_from(free)
    assert planner.without_contention is None
    start = planned_heuristic(planner.compilation, free)
    plan, worth = planner.plan(start.genes, start.strategy)
    assert plan_violations(problem, plan) == []
    assert {each.task: each.demands for each in plan} == {e.task: e.demands for e in free}
    assert starts(plan) == starts(retimed(problem, free))
    assert worth.moved == 0


def test_a_run_that_began_from_such_a_plan_is_continued() -> None:
    """What was saved and what goes on is the run that was never stopped, and keeps the same resources."""
    problem = layered()
    one: dict[str, Any] = {"settings": GUIDED_5, "goals": MAKESPAN_ONLY, "seed": 3, "workers": 1}
    begun = search(problem, budget=Budget(math.inf, 300), **one)
    saved = json.loads(json.dumps(begun.state))
    rest = Search(problem, budget=Budget(math.inf, 0), resume=saved, **one).run()
    assert rest.plan == begun.plan
    further = [
        search(
            problem, budget=Budget(math.inf, 900), resume=json.loads(json.dumps(begun.state)), **one
        )
        for _ in range(2)
    ]
    assert further[0].plan == further[1].plan
    assert further[0].plan.makespan_end <= begun.plan.makespan_end
    assert further[0].state["kept"] == begun.state["kept"]


def test_an_old_plan_to_stay_with_comes_first() -> None:
    """There is no other start where tasks should stay, none without contention, and none for the paper's searches."""
    problem = layered()
    old = search(problem, budget=Budget(math.inf, 50), settings=GUIDED_5, workers=1).plan
    assert Planner(problem, Goals(stability=0.2), old).without_contention is None
    assert Planner(problem, Goals(), old).without_contention is not None
    assert Planner(layered("none")).without_contention is None
    paper = search(problem, budget=Budget(math.inf, 100), settings=SEARCHES["gleam"], workers=1)
    assert "kept" not in paper.state


def test_a_search_is_stopped_before_contention_is_known() -> None:
    """It returns a plan, made of what has been found by then."""
    problem = layered()
    stopped = Search(problem, budget=Budget(math.inf, 1e9), settings=GUIDED_5, workers=1)
    found = stopped.run(lambda _: stopped.stop())
    assert found.reason == "stopped"
    assert plan_violations(problem, found.plan) == []
    none = search(problem, budget=Budget(0.0), settings=GUIDED_5, workers=1)
    assert plan_violations(problem, none.plan) == []


@pytest.mark.parametrize("rounds", [1, 4])
def test_islands_begin_from_one_plan_without_contention(rounds: int) -> None:
    """One thread, two, and workers of dask come to the same."""
    problem = layered()

    def found(executor: Executor) -> FoundByIslands:
        return search_islands(
            problem, executor, islands=2, rounds=rounds, evaluations=60, settings=GUIDED_5
        )

    with ThreadExecutor(1) as one, ThreadExecutor(2) as two:
        first = found(one)
        assert found(two) == first
    if rounds > 1:
        with DaskExecutor(workers=2, processes=False) as cluster:
            assert found(cluster) == first
    assert plan_violations(problem, first.plan) == []
    assert first.evaluations >= 2 * rounds * 60


def test_an_island_is_sent_with_its_start() -> None:
    """Where it has been sent it does the same."""
    problem = layered()
    free = search(layered("none"), budget=Budget(math.inf, 50), settings=GUIDED_5, workers=1).plan
    island = Island(problem, GUIDED_5, free=free)
    sent = pickle.loads(pickle.dumps(island))  # noqa: S301  # what it has just made
    one, other = (each(Round(1, None, None, 60), math.inf) for each in (island, sent))
    assert one.kept.state == other.kept.state


def test_other_words_are_no_contention() -> None:
    with pytest.raises(ValueError, match="no contention 'links'; one of none, link"):
        Network(Link(1.0), contention=cast(Contention, "links"))


def test_replanning_begins_without_contention_too() -> None:
    """Tasks that have begun stay, with what is on its way for them, also where old transfers overlap or have ended."""
    problem = layered()
    first = search(problem, budget=Budget(math.inf, 60), settings=GUIDED_5, workers=1).plan
    fixed = tuple(each for each in first if each.start < 8.0)
    kept = {each.key for each in fixed}
    mine = tuple(
        each for each in first.transfers if (each.workflow, each.task) in kept or each.begin < 8.0
    )
    more = tuple(
        Transfer("w", "t0", ("f",), "a", "b", begin, end, 5.0, 0.0)
        for begin, end in ((-5.0, 40.0), (10.0, 60.0), (60.0, 60.0))
    )
    for under_way in (mine, (*mine, *more)):
        later = replace(problem, now=8.0, fixed=fixed, under_way=under_way)
        found = search(later, budget=Budget(math.inf, 60), settings=GUIDED_5, workers=1)
        assert plan_violations(later, found.plan) == []
        assert "kept" in found.state
