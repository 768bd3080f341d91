"""Measures what planning with contention of links gains, where a link carries one transfer at a time, and what it costs.

    HANSE_WORKFLOWS=folder python -m benchmarks.contention          writes figures-contention.json
    HANSE_WORKFLOWS=folder python -m benchmarks.contention --dry    one seed; writes nothing
    python -m benchmarks.contention --speed    how long schedules take with contention and without, into the same file

The problems are those of `benchmarks.data`: each recorded workflow by itself on three sites of four processors, with links on which all of its files, each
sent once, would take a share of the time of all its tasks. Here each pair of sites and direction carries one transfer at a time. Makespans:

- *planned*: what our own search (`searched`) promises, as if each transfer had the whole link;
- *paid*: what its choices, resources and the order on each, come to on links that carry one transfer at a time, each transfer in the first gap
  from when its files exist;
- *chosen*: the same of the best of four plans, searched with bandwidths of 1, 1/2, 1/4 and 1/8 and all judged by what they would be *paid*;
- *known*: what our own search promises with `contention = "link"`, and *HEFT known* what HEFT does.

And carried out in virtual time, for one seed: *broker free* without contention; *broker blind* on links that carry one transfer at a time, of which its planner does not
know; *broker known* with a planner that does. *greedy known* begins what can begin where it ends first, and knows when each link is free.
"""

import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from benchmarks.data import EVALUATIONS, drawn, in_turns, searched, with_files
from benchmarks.deviation_dispatch import Greedy, World
from benchmarks.deviation_loads import NOISES, Load
from benchmarks.frame import keep, machine, options_of
from broker.model.heft import heft, in_order
from broker.model.instances import paper_problem
from broker.model.network import Link, Network
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.transfers import LinkTimes, Staging
from broker.scheduler.file_arrivals import FileArrivals

FIGURES: Final = Path(__file__).with_name("figures-contention.json")
SHARES: Final = (0.1, 1.0, 5.0)
SEEDS: Final = (1, 2, 3)
SLOWER: Final = (1, 2, 4, 8)
CARRIED_OUT: Final = 1.0
"""The share at which plans are carried out as well."""

PLANS: Final = ("paid", "chosen", "known", "HEFT known")
WORLDS: Final = ("broker free", "broker blind", "broker known", "greedy known")


def paid(problem: Problem, plan: Plan) -> float:
    """Returns the makespan of the choices of a plan, with links that carry one transfer at a time."""
    staging, network = Staging(problem), problem.network
    assert network is not None, "the problems have one"
    (workflow,) = problem.workflows
    row = {task.name: number for number, task in enumerate(in_order(workflow))}
    tasks = {task.name: task for task in workflow.tasks}
    free = dict.fromkeys((each.name for each in problem.resources), 0.0)
    placed: dict[str, Placement] = {}
    there: dict[tuple[str, str], float] = {}
    links = LinkTimes()
    for each in sorted(plan, key=lambda each: (each.start, row[each.task])):
        name = each.resources[0]
        site = network.site(name)
        start = max([free[name], *(placed[before].end for before in tasks[each.task].predecessors)])
        for source in staging.sources(each.key):
            maker = placed.get(source.maker)
            origin = source.site if maker is None else network.site(maker.resources[0])
            files = [file for file in source.files if (file.name, site) not in there]
            if files and origin != site:
                since = problem.now if maker is None else maker.end
                size = sum(file.size for file in files)
                seconds = network.link(origin, site).seconds(size)
                arrival = links.earliest(origin, site, since, seconds) + seconds
                links.take(origin, site, arrival - seconds, arrival)
                there |= {(file.name, site): arrival for file in files}
            come = (there.get((file.name, site), 0.0) for file in source.files)
            start = max([start, *come])
        placed[each.task] = replace(each, start=start, end=start + each.end - each.start)
        free[name] = placed[each.task].end
    return max(each.end for each in placed.values())


def slower(network: Network, factor: float) -> Network:
    """Returns a network with bandwidths divided by a factor."""

    def divided(link: Link) -> Link:
        return replace(link, bandwidth=link.bandwidth / factor)

    links = {pair: divided(link) for pair, link in network.links.items()}
    return replace(network, default=divided(network.default), links=links)


class BlindArrivals(FileArrivals):
    """Files of a broker whose links carry one transfer at a time; its planner does not know that."""

    def network(self) -> Network | None:
        """Returns the network as the planner takes it to be."""
        found = super().network()
        return None if found is None else replace(found, contention="none")


def known(problem: Problem) -> Problem:
    """Returns the problem with links that carry one transfer at a time."""
    assert problem.network is not None, "the problems have one"
    return replace(problem, network=replace(problem.network, contention="link"))


def plans(path: Path, share: float, seed: int) -> dict[str, float]:
    """Returns the makespans of plans of a recorded workflow, in seconds."""
    problem = drawn(path, share, seed)
    assert problem.network is not None, "they have one"
    found = [
        searched(replace(problem, network=slower(problem.network, factor)), seed, EVALUATIONS)
        for factor in SLOWER
    ]
    return {
        "planned": found[0].makespan_end,
        "paid": paid(problem, found[0]),
        "chosen": min(paid(problem, plan) for plan in found),
        "known": searched(known(problem), seed, EVALUATIONS).makespan_end,
        "HEFT known": heft(known(problem)).makespan_end,
    }


def worlds(path: Path, share: float, seed: int) -> dict[str, float]:
    """Returns how long a recorded workflow takes in virtual time, in seconds."""
    problem = drawn(path, share, seed)
    (workflow,) = problem.workflows
    free = Load(problem.resources, ((0.0, workflow),), problem.network)
    load = replace(free, network=known(problem).network)
    with patch("broker.scheduler.planning_cycle.FileArrivals", BlindArrivals):
        blind = World(load, NOISES[0], seed).run()
    return {
        "broker free": World(free, NOISES[0], seed).run().mean_flow_s,
        "broker blind": blind.mean_flow_s,
        "broker known": World(load, NOISES[0], seed).run().mean_flow_s,
        "greedy known": Greedy(load, NOISES[0], seed, "greedy fifo").run().mean_flow_s,
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Returns by share the geometric means over the workflows of makespans over the planned ones."""
    return {
        f"{share:g}": {
            way: round(
                geometric_mean(
                    row["over_planned"][way]
                    for row in rows
                    if row["share"] == share and way in row["over_planned"]
                ),
                3,
            )
            for way in (PLANS if share != CARRIED_OUT else (*PLANS, *WORLDS))
            if any(row["share"] == share and way in row["over_planned"] for row in rows)
        }
        for share in sorted({row["share"] for row in rows})
    }


def keep_beside(more: dict[str, Any]) -> None:
    """Writes what has been measured so far, beside what was before."""
    found = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}
    found |= {"machine": machine(), "evaluations": EVALUATIONS, **more}
    keep(FIGURES, found)


def keep_rows(rows: list[dict[str, Any]]) -> None:
    """Writes those of the workflows and shares that have been measured, and what they come to."""
    keep_beside({"over_planned": summary(rows), "rows": rows})


def speed() -> list[dict[str, float]]:
    """Returns milliseconds of processor time of a schedule with files, without contention and with it, in turns."""
    found = []
    for tasks, sites, schedules in ((200, 3, 300), (200, 20, 300), (7000, 10, 3)):
        files = with_files(paper_problem("lRsD", tasks, np.random.default_rng(1)), sites)
        free, contended = in_turns((files, known(files)), tasks, schedules)
        found.append({"tasks": tasks, "sites": sites, "free_ms": free, "contended_ms": contended})
        print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    """Measures, and keeps the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--dry", action="store_true", help="one seed; write no file")
    parser.add_argument("--speed", action="store_true", help="how long schedules take, alone")
    options = parser.parse_args()
    if options.speed:
        speeds = speed()
        if not options.dry:
            keep_beside({"speed": speeds})
        return
    folder = os.environ.get("HANSE_WORKFLOWS", "")
    if not folder:
        parser.error("HANSE_WORKFLOWS has to name a folder of recorded workflows")
    paths = sorted(Path(folder).glob("*.json.gz"))
    seeds = SEEDS[:1] if options.dry else SEEDS
    rows: dict[tuple[Path, float], dict[str, Any]] = {}
    with ProcessPoolExecutor(2) as pool:
        every = {
            (path, share): [pool.submit(plans, path, share, seed) for seed in seeds]
            for share in SHARES
            for path in paths
        }
        carried_out = {
            path: pool.submit(worlds, path, CARRIED_OUT, SEEDS[0])
            for path in sorted(paths, key=lambda each: each.stat().st_size)
        }
        for (path, share), made in every.items():
            runs = [done.result() for done in made]
            rows[path, share] = {
                "workflow": path.name.partition(".")[0],
                "share": share,
                "seeds": len(seeds),
                "makespan_s": {way: round(median(run[way] for run in runs), 2) for way in runs[0]},
                "over_planned": {
                    way: round(median(run[way] / run["planned"] for run in runs), 3)
                    for way in PLANS
                },
            }
            rows[path, share]["promised_s"] = runs[0]["planned"]
            print(json.dumps(rows[path, share]), flush=True)
            if not options.dry:
                keep_rows(list(rows.values()))
        for path, done in carried_out.items():
            row = rows[path, CARRIED_OUT]
            row["makespan_s"] |= {way: round(took, 2) for way, took in done.result().items()}
            row["over_planned"] |= {
                way: round(took / row["promised_s"], 3) for way, took in done.result().items()
            }
            print(json.dumps(row), flush=True)
            if not options.dry:
                keep_rows(list(rows.values()))
    print(json.dumps(summary(list(rows.values()))))


if __name__ == "__main__":
    main()
