"""Measures what it is worth that plans know where files are, on recorded workflows.

    HANSE_WORKFLOWS=folder python -m benchmarks.data          writes figures-data.json
    HANSE_WORKFLOWS=folder python -m benchmarks.data --dry    one seed, two shares; writes nothing
    python -m benchmarks.data --speed     how long schedules take with files and without, into the same file

Each recorded workflow of the folder by itself, on three sites of four processors whose speeds are drawn, its
inputs at one of them. Bandwidths are such that all files, each sent once, take a share of the time of all
tasks: .1, 1 or 5 of it on the mean link (recordings differ by six orders of magnitude; at one bandwidth most of
them would show nothing). All with the same problem and the same model of transfers:

- *local*: our own search, which knows the files;
- *blind*: the same search of the same problem without a network. What it has chosen, resources and the order on
  each, then pays: a task begins when its files have come;
- *HEFT*: with communication;
- *greedy*: the fastest free resource, and *greedy local*: the free one on which a task ends first with its files.

And carried out: *broker*, Hanse's broker in virtual time (`deviation_dispatch`), which has a network and plans
while it works, beside *greedy local*, with run times as thought and ±10 % of that.

The figures of a workflow and a share are medians over the seeds, of which the broker has fewer.
"""

import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, Final

import numpy as np

from benchmarks.deviation_dispatch import Greedy, World
from benchmarks.deviation_loads import NOISES, Load, Noise
from benchmarks.frame import keep, machine, options_of
from broker.io.documents import read_document
from broker.io.import_options import ImportOptions
from broker.io.importing import to_workflow
from broker.io.wfformat import parse_wfformat
from broker.model.heft import heft, in_order, mean_link
from broker.model.instances import paper_problem
from broker.model.network import DataFile, Link, Network
from broker.model.plan import Placement, Plan
from broker.model.pool import Pool
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.transfers import Staging
from broker.planner._builder import Workspace
from broker.planner.compilation import compile_problem
from broker.planner.goals import MAKESPAN_ONLY
from broker.planner.methods import SEARCHES
from broker.planner.search import Budget, search

FIGURES: Final = Path(__file__).with_name("figures-data.json")
SITES: Final = ("one", "two", "three")
PROCESSORS: Final = 4
SHARES: Final = (0.1, 1.0, 5.0)
SEEDS: Final = (1, 2, 3, 4, 5)
BROKER_SEEDS: Final = 3
EVALUATIONS: Final = 2000
LATENCY_S: Final = 0.1
NOISES_OF_BROKER: Final = (NOISES[0], NOISES[2])
METHODS: Final = ("local", "blind", "heft", "greedy", "greedy local")


def drawn(recorded: Path, share: float, seed: int) -> Problem:
    """Returns the problem of a recorded workflow."""
    rng = np.random.default_rng(seed)
    resources = tuple(
        Resource(f"{site}-{number}", performance=round(float(rng.uniform(0.8, 1.6)), 2))
        for site in SITES
        for number in range(PROCESSORS)
    )
    content = parse_wfformat(read_document(recorded), file=str(recorded))
    name = recorded.name.partition(".")[0]
    workflow = to_workflow(
        content, Pool(resources, {}), ImportOptions(cores="ignore"), name=name, data=True
    )
    speeds = {(a, b): float(rng.uniform(0.5, 2.0)) for a in SITES for b in SITES if a < b}
    sent = math.fsum(file.size for file in workflow.files)
    sites = {each.name: each.name.partition("-")[0] for each in resources}

    def network(scale: float) -> Network:
        links = {pair: Link(speed * scale, LATENCY_S) for pair, speed in speeds.items()}
        both = {**links, **{(b, a): link for (a, b), link in links.items()}}
        return Network(Link(scale, LATENCY_S), sites, both, SITES[0])

    mean = mean_link(network(1.0), resources).bandwidth
    scale = max(sent, 1.0) / (share * workflow.work * mean)
    flow = replace(workflow, earliest_start=0.0)
    return Problem((flow,), resources, 0.0, network=network(scale))


def paid(problem: Problem, plan: Plan) -> float:
    """Returns the makespan of the choices of a plan, resources and the order on each, with transfers."""
    staging = Staging(problem)
    (workflow,) = problem.workflows
    row = {task.name: number for number, task in enumerate(in_order(workflow))}
    tasks = {task.name: task for task in workflow.tasks}
    free = dict.fromkeys((each.name for each in problem.resources), 0.0)
    placed: dict[tuple[str, str], Placement] = {}
    for each in sorted(plan, key=lambda each: (each.start, row[each.task])):
        ends = [placed[workflow.name, name].end for name in tasks[each.task].predecessors]
        name = each.resources[0]
        start = max([free[name], staging.ready(each.key, name, placed), *ends])
        placed[each.key] = replace(each, start=start, end=start + each.end - each.start)
        free[name] = placed[each.key].end
    return max(each.end for each in placed.values())


def searched(problem: Problem, seed: int, evaluations: int) -> Plan:
    """Returns the plan of our own search, by one thread."""
    found = search(
        problem,
        budget=Budget(math.inf, evaluations),
        settings=SEARCHES["asma-shift"],
        goals=MAKESPAN_ONLY,
        seed=seed,
        workers=1,
    )
    return found.plan


def makespans(problem: Problem, seed: int, evaluations: int = EVALUATIONS) -> dict[str, float]:
    """Returns the makespan by each of `METHODS`, in seconds."""
    (workflow,) = problem.workflows
    load = Load(problem.resources, ((0.0, workflow),), problem.network)

    def greedy(*, locality: bool) -> float:
        return Greedy(load, NOISES[0], seed, "greedy fifo", locality=locality).run().mean_flow_s

    return {
        "local": searched(problem, seed, evaluations).makespan_end,
        "blind": paid(problem, searched(replace(problem, network=None), seed, evaluations)),
        "heft": heft(problem).makespan_end,
        "greedy": greedy(locality=False),
        "greedy local": greedy(locality=True),
    }


def carried_out(problem: Problem, seed: int, noise: Noise) -> dict[str, float]:
    """Returns when the workflow has ended at the broker, and by the greedy dispatcher, in seconds."""
    (workflow,) = problem.workflows
    load = Load(problem.resources, ((0.0, workflow),), problem.network)
    return {
        "broker": World(load, noise, seed).run().mean_flow_s,
        "greedy local": Greedy(load, noise, seed, "greedy fifo").run().mean_flow_s,
    }


def measured(paths: list[Path], shares: tuple[float, ...], seeds: tuple[int, ...]) -> Iterator[Any]:
    """Yields the medians of each workflow and share."""
    for path in paths:
        for share in shares:
            problems = [drawn(path, share, seed) for seed in seeds]
            pairs = list(zip(problems, seeds, strict=True))
            runs = [makespans(problem, seed) for problem, seed in pairs]
            done = {
                noise.name: [carried_out(*pair, noise) for pair in pairs[:BROKER_SEEDS]]
                for noise in NOISES_OF_BROKER
            }
            yield {
                "workflow": path.name.partition(".")[0],
                "share": share,
                "seeds": len(seeds),
                "makespan_s": {
                    name: round(median(run[name] for run in runs), 2) for name in METHODS
                },
                "over_local": {
                    name: round(median(run[name] / run["local"] for run in runs), 3)
                    for name in METHODS[1:]
                },
                "carried_out_s": {
                    noise: {who: round(median(run[who] for run in runs), 2) for who in runs[0]}
                    for noise, runs in done.items()
                },
                "least_over_local": {
                    name: round(min(run[name] / run["local"] for run in runs), 3)
                    for name in METHODS[1:]
                },
            }


def summary(rows: list[Any]) -> dict[str, dict[str, float]]:
    """Returns by share the geometric mean over the workflows of the makespan over that of *local*."""
    return {
        f"{share:g}": {
            name: round(
                geometric_mean(r["over_local"][name] for r in rows if r["share"] == share), 3
            )
            for name in METHODS[1:]
        }
        for share in sorted({row["share"] for row in rows})
    }


def broker_over_greedy(rows: list[Any]) -> dict[str, dict[str, float]]:
    """Returns by share and noise the geometric mean of the broker's times over those of *greedy local*."""
    return {
        f"{share:g}": {
            noise.name: round(
                geometric_mean(
                    row["carried_out_s"][noise.name]["broker"]
                    / row["carried_out_s"][noise.name]["greedy local"]
                    for row in rows
                    if row["share"] == share
                ),
                3,
            )
            for noise in NOISES_OF_BROKER
        }
        for share in sorted({row["share"] for row in rows})
    }


def with_files(problem: Problem, sites: int) -> Problem:
    """Returns a synthetic problem with a file from each task to those that wait for it, and so many sites."""
    rng = np.random.default_rng(0)
    names = {each.name: f"s{row % sites}" for row, each in enumerate(problem.resources)}
    flows = []
    for workflow in problem.workflows:
        readers = {task.name: list[str]() for task in workflow.tasks}
        for task in workflow.tasks:
            for before in task.predecessors:
                readers[before].append(task.name)
        files = [
            DataFile(name, float(rng.integers(1, 200)), tuple(mine), name)
            for name, mine in readers.items()
            if mine
        ]
        flows.append(replace(workflow, files=tuple(files)))
    return replace(problem, workflows=tuple(flows), network=Network(Link(1.0), names))


def in_turns(problems: Iterable[Problem], tasks: int, schedules: int) -> Iterator[float]:
    """Yields milliseconds of processor time of a schedule of each problem, measured in turns."""
    spaces = [Workspace(compile_problem(each).compiled, 20_000.0) for each in problems]
    rng = np.random.default_rng(2)
    sequences = [rng.permutation(tasks).astype(np.int32) for _ in range(schedules)]
    took: list[list[float]] = [[] for _ in spaces]
    for _ in range(5):
        for space, mine in zip(spaces, took, strict=True):
            began = time.process_time()
            for number, genes in enumerate(sequences):
                space.build(genes, number % 3)
            mine.append((time.process_time() - began) / schedules * 1000)
    for mine in took:
        yield round(median(mine), 3)


def speed() -> list[dict[str, float]]:
    """Returns milliseconds of processor time of a schedule, without files and with them, in turns."""
    found = []
    for tasks, sites, schedules in ((200, 3, 300), (200, 20, 300), (7000, 10, 3), (7000, 700, 3)):
        plain = paper_problem("lRsD", tasks, np.random.default_rng(1))
        without, with_data = in_turns((plain, with_files(plain, sites)), tasks, schedules)
        found.append({"tasks": tasks, "sites": sites, "plain_ms": without, "data_ms": with_data})
        print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    """Measures, and keeps the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--dry", action="store_true", help="one seed, two shares; write no file")
    parser.add_argument("--speed", action="store_true", help="how long schedules take")
    options = parser.parse_args()
    if options.speed:
        known = json.loads(FIGURES.read_text(encoding="utf-8"))
        keep(FIGURES, known | {"speed": speed()})
        return
    folder = os.environ.get("HANSE_WORKFLOWS", "")
    if not folder:
        parser.error("HANSE_WORKFLOWS has to name a folder of recorded workflows")
    paths = sorted(Path(folder).glob("*.json.gz"))
    rows = []
    for row in measured(
        paths, SHARES[:2] if options.dry else SHARES, SEEDS[: 1 if options.dry else None]
    ):
        rows.append(row)
        print(json.dumps(row), flush=True)
    found = {
        "machine": machine(),
        "evaluations": EVALUATIONS,
        "over_local": summary(rows),
        "broker_over_greedy": broker_over_greedy(rows),
        "rows": rows,
    }
    print(json.dumps([found["over_local"], found["broker_over_greedy"]]))
    if not options.dry:
        keep(FIGURES, found)


if __name__ == "__main__":
    main()
