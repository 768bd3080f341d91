import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.instances import Activity, job_shop, paper_problem, project
from broker.model.plan import Placement
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.planner._builder import Workspace
from broker.planner._project import ProjectRoom, is_project
from broker.planner.compilation import Compilation, compile_problem
from broker.planner.gleam import PROJECT, PROJECT_POPULATION, project_population
from broker.planner.goals import MAKESPAN_ONLY
from broker.planner.heuristics import project_heuristics, project_priorities
from broker.planner.planning import Planner
from broker.planner.search import Budget, Found, Search
from tests.oracles.plan_checker import plan_violations
from tests.oracles.projects import Job, justified, serial

NOW = 1000.0


def random_project(seed: int) -> Problem:
    """Returns up to three workflows of chance, which share up to four resources."""
    rng = np.random.default_rng(seed)
    pool = tuple(
        Resource(f"r{k}", capacity=int(rng.integers(1, 6)), performance=float(rng.choice([0.5, 1])))
        for k in range(rng.integers(1, 5))
    )
    workflows = []
    for number in range(rng.integers(1, 4)):
        tasks = []
        for step in range(rng.integers(1, 8)):
            chosen = rng.permutation(len(pool))[: rng.integers(1, len(pool) + 1)]
            demands = tuple(
                Demand(pool[k].name, int(rng.integers(1, pool[k].capacity + 1))) for k in chosen
            )
            before = tuple(f"t{other}" for other in range(step) if rng.random() < 0.3)
            work = float(rng.integers(1, 6)) / 2
            tasks.append(Task(f"t{step}", work, (Alternative(demands),), before))
        begin = NOW + float(rng.integers(-2, 5))
        workflows.append(Workflow(f"w{number}", tuple(tasks), earliest_start=begin))
    return Problem(tuple(workflows), pool, NOW)


def plain(problem: Problem) -> tuple[list[Job], dict[str, int]]:
    """Returns the jobs in the planner's order, and the capacities."""
    rows = [(w, t) for w in problem.workflows for t in w.tasks]
    row = {(w.name, t.name): number for number, (w, t) in enumerate(rows)}
    jobs = [
        Job(
            problem.resource[task.alternatives[0].primary].duration(task.work),
            {each.resource: each.units for each in task.alternatives[0].demands},
            frozenset(row[workflow.name, name] for name in task.predecessors),
            max(problem.now, workflow.earliest_start),
        )
        for workflow, task in rows
    ]
    return jobs, {each.name: each.capacity for each in problem.resources}


def built(compilation: Compilation, workspace: Workspace) -> list[float]:
    """Returns the starts of the schedule in a workspace."""
    return [float(each) for each in workspace.columns["start"][: len(compilation.tasks)]]


@given(seed=st.integers(0, 2**32), order=st.randoms(use_true_random=False))
def test_schedules_are_those_of_the_builder_and_of_the_oracle(
    seed: int, order: random.Random
) -> None:
    """Serial, and justified; a justified one is no longer, and its sequence builds it again."""
    problem = random_project(seed)
    compilation = compile_problem(problem)
    compiled = compilation.compiled
    jobs, capacity = plain(problem)
    genes = list(range(len(jobs)))
    order.shuffle(genes)
    room, workspace, general = (
        ProjectRoom(compiled),
        Workspace(compiled, 10.0),
        Workspace(compiled, 10.0),
    )
    room.build(workspace, np.array(genes, np.int32))
    expected = serial(jobs, capacity, genes)
    first = built(compilation, workspace)
    assert first == [expected[job] for job in range(len(jobs))]
    general.build(np.array(genes, np.int32), 0)
    for name in ("choice", "start", "end", "cost", "order"):
        assert (general.columns[name] == workspace.columns[name]).all(), name
    sequence = room.build(workspace, np.array(genes, np.int32), justified=True)
    again = justified(jobs, capacity, expected)
    second = built(compilation, workspace)
    assert second == [again[job] for job in range(len(jobs))]
    ends = [job.seconds + start for job, start in zip(jobs, second, strict=True)]
    assert max(ends) <= max(s + job.seconds for job, s in zip(jobs, first, strict=True))
    general.build(sequence, 0)
    assert built(compilation, general) == second
    plan = compilation.plan(workspace.columns["choice"], workspace.columns["start"])
    assert plan_violations(problem, plan) == []


def test_only_projects_have_room() -> None:
    """Not with a choice, hours, something fixed, or operations that take no time."""
    good = random_project(1)
    assert is_project(compile_problem(good).compiled)
    first = good.workflows[0].tasks[0]
    alternative = first.alternatives[0]
    hours = Calendar((WeeklyWindow(0, 3600.0),))
    two = (alternative, Alternative((Demand("spare"),)))
    spare = (*good.resources, Resource("spare"))
    tasks = (replace(first, alternatives=two), *good.workflows[0].tasks[1:])
    for bad in (
        replace(good, resources=tuple(replace(each, calendar=hours) for each in good.resources)),
        Problem((replace(good.workflows[0], tasks=tasks),), spare),
        replace(good, fixed=(Placement("w0", "t0", alternative.demands, NOW - 1, NOW + 9, 0.0),)),
        job_shop([[(0, 1), (1, 0)]]),
        paper_problem("lRsD", 20, np.random.default_rng(1)),
    ):
        compiled = compile_problem(bad).compiled
        assert not is_project(compiled)
        room = ProjectRoom(compiled)
        assert not room.usable
        genes = np.zeros(1, np.int32)
        with pytest.raises(ValueError, match="no project"):
            room.build(Workspace(compiled, 1.0), genes)
        with pytest.raises(ValueError, match="tasks have alternatives"):
            Planner(bad, MAKESPAN_ONLY).worker().justify(genes)


def test_sequences_are_checked() -> None:
    """Each task once, in a workspace of the same problem."""
    compiled = compile_problem(random_project(1)).compiled
    room = ProjectRoom(compiled)
    with pytest.raises(ValueError, match="each of the"):
        room.build(Workspace(compiled, 1.0), np.zeros(3, np.int32))
    other = compile_problem(random_project(2)).compiled
    with pytest.raises(ValueError, match="of another problem"):
        room.build(Workspace(other, 1.0), np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="each of"):
        Planner(random_project(1), MAKESPAN_ONLY).worker().justify(np.zeros(3, np.int32))


CHAIN = project(
    [
        Activity("a", 2.0, (1,), (1, 2)),
        Activity("b", 3.0, (2,), (3,)),
        Activity("c", 1.0, (1,), ()),
        Activity("d", 1.0, (1,), ()),
    ],
    [2],
)


def test_priorities_are_those_of_the_rules() -> None:
    """From 0 to 1; by chains of 6, 4, 1, 1 seconds, by 3, 1, 0, 0 successors, by what they take."""
    compilation = compile_problem(CHAIN)
    priorities = project_priorities(compilation)
    expected = {
        "latest finish": [0, 0.75, 1, 1],  # −4, −1, 0, 0
        "latest start": [0, 0.4, 1, 1],  # −6, −4, −1, −1
        "most successors": [0, 2 / 3, 1, 1],
        "rank weight": [0, 0.5, 1, 1],  # 7, 4, 1, 1
    }
    assert {name: keys.tolist() for name, keys in priorities.items()} == {
        name: pytest.approx(keys) for name, keys in expected.items()
    }
    assert [each.genes.tolist() for each in project_heuristics(priorities)] == [[0, 1, 2, 3]] * 4
    alone = compile_problem(project([Activity("a", 1.0, (), ())], []))
    assert all(keys.tolist() == [0.0] for keys in project_priorities(alone).values())


def shared(seed: int, jobs: int = 30) -> Problem:
    """Returns a project of chance of so many jobs on two scarce resources."""
    rng = np.random.default_rng(seed)
    activities = [
        Activity(
            str(number),
            float(rng.integers(1, 11)),
            (int(rng.integers(0, 6)), int(rng.integers(1, 6))),
            tuple(sorted({int(k) for k in rng.integers(number + 1, jobs, 2)}))
            if number + 1 < jobs
            else (),
        )
        for number in range(jobs)
    ]
    return project(activities, [9, 9])


def searched(
    problem: Problem,
    evaluations: int,
    *,
    workers: int = 1,
    stop_at: int | None = None,
    resume: dict[str, Any] | None = None,
) -> Found:
    """Returns what the search for projects finds, with the population of its budget."""
    return Search(
        problem,
        budget=Budget(np.inf, stop_at or evaluations),
        settings=replace(PROJECT, population=project_population(evaluations)),
        goals=MAKESPAN_ONLY,
        seed=3,
        workers=workers,
        resume=resume,
    ).run()


@pytest.mark.parametrize("evaluations", [18, 100, 1000])
def test_no_more_schedules_are_built_than_allowed(evaluations: int) -> None:
    """Nor fewer than a mating leaves; the same on one thread or two, and after a break."""
    problem = shared(1)
    one, two = searched(problem, evaluations), searched(problem, evaluations, workers=2)
    assert evaluations - 6 < one.progress.evaluations <= evaluations
    assert one.reason == "evaluations"
    assert one.plan == two.plan
    assert plan_violations(problem, one.plan) == []
    begun = searched(problem, evaluations, stop_at=18)
    rest = searched(problem, evaluations, resume=begun.state)
    assert rest.progress.evaluations == one.progress.evaluations


def test_more_schedules_make_shorter_plans() -> None:
    """Over some projects together."""
    totals = [
        sum(searched(shared(seed, 60), most).plan.makespan_end for seed in range(4))
        for most in (100, 2000)
    ]
    assert totals[1] < totals[0]


def test_populations_grow_with_the_budget() -> None:
    """Between their bounds."""
    sizes = [project_population(each) for each in (0, 10, 1000, 5000, 1e6, 1e9, np.inf)]
    assert sizes == [3, 3, 10, 20, 120, 120, 120]
    assert PROJECT_POPULATION == (3, 120)
