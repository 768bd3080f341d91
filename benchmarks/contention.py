"""Measures what it costs that plans know no contention of links, where a link carries one transfer at a time.

    HANSE_WORKFLOWS=folder python -m benchmarks.contention          writes figures-contention.json
    HANSE_WORKFLOWS=folder python -m benchmarks.contention --dry    one seed, one share; writes nothing

The problems are those of `benchmarks.data`: each recorded workflow by itself on three sites of four processors, with links on which all of its files, each
sent once, would take a share of the time of all its tasks. Here each pair of sites and direction carries one transfer at a time.

- *planned*: the makespan that our own search (`searched`) promises, as if each transfer had the whole link;
- *paid*: what its choices, resources and the order on each, come to on links that carry one transfer at a time, each transfer in the first gap
  from when its files exist;
- *chosen*: the same of the best of four plans, searched with bandwidths of 1, 1/2, 1/4 and 1/8 and all judged by what they would be *paid*: a planner that
  knew contention could do at least that.

And carried out in virtual time: *broker free* and *broker contended* plan without contention; of a transfer that has to wait for its link the broker
knows so when it is sent. *greedy contended* begins what can begin where it ends first, and knows when each link is free.
"""

# ruff: noqa: SLF001  # they are put in place of private parts

import argparse
import bisect
import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any, Final
from unittest.mock import patch

from benchmarks.data import EVALUATIONS, drawn, searched
from benchmarks.deviation_dispatch import Greedy, World
from benchmarks.deviation_loads import NOISES, Load
from benchmarks.run import machine
from broker.model.heft import in_order
from broker.model.network import Link, Network
from broker.model.plan import Placement, Plan
from broker.model.problem import Problem
from broker.model.transfers import Staging
from broker.scheduler.file_arrivals import FileArrivals
from broker.scheduler.state_tables import LiveTask

FIGURES: Final = Path(__file__).with_name("figures-contention.json")
SHARES: Final = (1.0, 5.0)
SEEDS: Final = (1,)
SLOWER: Final = (1, 2, 4, 8)
WAYS: Final = ("paid", "chosen", "broker free", "broker contended", "greedy contended")
SMALLEST: Final = 1e-9


class Links:
    """When links are busy: each pair of source and target carries one transfer at a time."""

    def __init__(self) -> None:
        self._busy: dict[tuple[str, str], list[tuple[float, float]]] = {}

    def send(self, source: str, target: str, since: float, seconds: float) -> float:
        """Takes the first gap from a moment on; returns when the transfer has ended."""
        busy = self._busy.setdefault((source, target), [])
        begin = since
        for taken, until in busy:
            if begin + seconds <= taken + SMALLEST:
                break
            begin = max(begin, until)
        bisect.insort(busy, (begin, begin + seconds))
        return begin + seconds


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
    links = Links()
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
                arrival = links.send(origin, site, since, seconds)
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


class ContendedArrivals(FileArrivals):
    """Files of a broker whose links carry one transfer at a time; plans do not know that."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._free: dict[tuple[str, str], float] = {}

    def send(self, task: LiveTask, now: float) -> None:
        """Sends files, behind those that are under way on their link."""
        workflow = task.owner.workflow_id
        known = len(self.sent.get(workflow, ()))
        super().send(task, now)
        for each in self.sent.get(workflow, [])[known:]:
            link = each.source, each.target
            arrival = max(now, self._free.get(link, now)) + each.end - each.begin
            self._free[link] = arrival
            for file in each.files:
                self._at[workflow, file, each.target] = arrival


class ContendedGreedy(Greedy):
    """The greedy dispatcher, by arrival, whose links carry one transfer at a time, which it knows."""

    def __init__(self, load: Load, seed: int) -> None:
        super().__init__(load, NOISES[0], seed, "greedy fifo")
        assert self._data is not None, "the load has a network"
        data, network, busy = self._data, load.network, dict[tuple[str, str], float]()
        assert network is not None, "as above"

        def moments(
            number: int, task: Any, where: Any, now: float
        ) -> tuple[float, dict[Any, float]]:
            site = network.site(where.primary)
            latest, sizes = now, dict[tuple[str, str], float]()
            for file in data._reads[number].get(task.name, ()):
                if (file.name, site) in data._there[number]:
                    latest = max(latest, data._there[number][file.name, site])
                elif data._origin[number][file.name] != site:
                    key = data._origin[number][file.name], file.maker
                    sizes[key] = sizes.get(key, 0.0) + file.size
            ends: dict[Any, float] = {}
            for (source, _), size in sizes.items():
                link = source, site
                begin = max(now, ends.get(link, busy.get(link, now)))
                ends[link] = begin + network.link(source, site).seconds(size)
            return max([latest, *ends.values()]), ends

        def ready(number: int, task: Any, where: Any, now: float) -> float:
            self._looked = now
            return moments(number, task, where, now)[0]

        noted = data.send

        def send(number: int, task: Any, where: Any, arrival: float) -> None:
            busy.update(moments(number, task, where, self._looked)[1])
            noted(number, task, where, arrival)

        data.ready, data.send = ready, send  # type: ignore[method-assign]  # of this one


def measured(path: Path, share: float, seed: int) -> dict[str, float]:
    """Returns the makespans of a recorded workflow, in seconds."""
    problem = drawn(path, share, seed)
    assert problem.network is not None, "they have one"
    plans = [
        searched(replace(problem, network=slower(problem.network, factor)), seed, EVALUATIONS)
        for factor in SLOWER
    ]
    (workflow,) = problem.workflows
    load = Load(problem.resources, ((0.0, workflow),), problem.network)
    with patch("broker.scheduler.planning_cycle.FileArrivals", ContendedArrivals):
        contended = World(load, NOISES[0], seed).run()
    return {
        "planned": plans[0].makespan_end,
        "paid": paid(problem, plans[0]),
        "chosen": min(paid(problem, plan) for plan in plans),
        "broker free": World(load, NOISES[0], seed).run().mean_flow_s,
        "broker contended": contended.mean_flow_s,
        "greedy contended": ContendedGreedy(load, seed).run().mean_flow_s,
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Returns by share the geometric means over the workflows of makespans over the planned ones."""
    return {
        f"{share:g}": {
            way: round(
                geometric_mean(row["over_planned"][way] for row in rows if row["share"] == share), 3
            )
            for way in WAYS
        }
        for share in sorted({row["share"] for row in rows})
    }


def keep(rows: list[dict[str, Any]]) -> None:
    """Writes what has been measured so far."""
    found = {
        "machine": machine(),
        "evaluations": EVALUATIONS,
        "over_planned": summary(rows),
        "rows": rows,
    }
    FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Measures, and keeps the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="one seed, one share; write no file")
    options = parser.parse_args()
    folder = os.environ.get("HANSE_WORKFLOWS", "")
    if not folder:
        parser.error("HANSE_WORKFLOWS has to name a folder of recorded workflows")
    paths = sorted(Path(folder).glob("*.json.gz"))
    shares = SHARES[:1] if options.dry else SHARES
    seeds = SEEDS[:1] if options.dry else SEEDS
    rows = []
    with ProcessPoolExecutor(4) as pool:
        every = {
            (path, share): [pool.submit(measured, path, share, seed) for seed in seeds]
            for share in shares
            for path in paths
        }
        for (path, share), made in every.items():
            runs = [done.result() for done in made]
            rows.append(
                {
                    "workflow": path.name.partition(".")[0],
                    "share": share,
                    "seeds": len(seeds),
                    "makespan_s": {
                        way: round(geometric_mean(run[way] for run in runs), 2) for way in runs[0]
                    },
                    "over_planned": {
                        way: round(geometric_mean(run[way] / run["planned"] for run in runs), 3)
                        for way in WAYS
                    },
                }
            )
            print(json.dumps(rows[-1]), flush=True)
            if not options.dry:
                keep(rows)
    print(json.dumps(summary(rows)))


if __name__ == "__main__":
    main()
