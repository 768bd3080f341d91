"""Measures the machine of jobs with utilities: events a second, and the old machine beside it.

Run as `python -m benchmarks.utility`; figures go to benchmarks/figures-utility.json. An event is an
arrival or an end. Each figure is the median of repeated runs, and what is compared was measured in
turn within one process, so that other work on the machine falls on both.
"""

import platform
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.frame import keep, options_of
from lrms_sim.machine.machine import simulate as simulate_rigid
from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import Learning, Outcome, simulate
from lrms_sim.malleable.model import PROCESSORS, TRAINING_STEPS, PaperModel
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import POLICIES
from lrms_sim.malleable.value import Scales, ValueFunction
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.util.provenance import source_commit

OUTPUT = Path(__file__).with_name("figures-utility.json")
RATES = (0.1, 0.3, 1.0)
OPTIONS = MachineOptions(step=1.0)


def learning(work: UtilityJobs) -> Outcome:
    """Runs the paper's policy with its learner on."""
    return simulate(
        work,
        PROCESSORS,
        POLICIES["both-value"],
        options=OPTIONS,
        value=ValueFunction(scales=Scales(1.0, 10.0, PROCESSORS)),
        learning=Learning(),
        horizon=float(TRAINING_STEPS),
    )


def plain(name: str) -> Callable[[UtilityJobs], Outcome]:
    """Returns the run of a policy that does not learn."""
    return lambda work: simulate(
        work, PROCESSORS, POLICIES[name], options=OPTIONS, horizon=float(TRAINING_STEPS)
    )


def events_a_second(
    run: Callable[[UtilityJobs], Outcome], work: UtilityJobs, repeats: int
) -> float:
    """Returns the median over repeats, in events a second of processor time."""
    found = []
    for _ in range(repeats):
        begun = process_time()
        outcome = run(work)
        found.append(outcome.events / (process_time() - begun))
    return median(found)


def beside_the_rigid_machine(repeats: int) -> dict[str, float]:
    """Returns seconds of FCFS, LIST and EASY on both machines, in turn, and their ratio."""
    work = PaperModel(0.2).draw(200_000, 1)
    rigid = work.rigid()
    never = MachineOptions(leave="never")
    found: dict[str, float] = {}
    for name in ("fcfs", "list", "easy"):
        old, new = [], []
        for _ in range(repeats):
            begun = perf_counter()
            simulate_rigid(work.jobs, PROCESSORS, discipline_by_name(name))
            middle = perf_counter()
            simulate(rigid, PROCESSORS, POLICIES[name], options=never)
            old.append(middle - begun)
            new.append(perf_counter() - middle)
        found[f"{name}: rigid machine, jobs a second"] = len(work) / median(old)
        found[f"{name}: utility machine over it, time"] = median(new) / median(old)
    return found


def measure(repeats: int) -> dict[str, Any]:
    """Returns all figures."""
    figures: dict[str, Any] = {}
    for rate in RATES:
        work = PaperModel(rate).draw(TRAINING_STEPS, 1)
        runs = {
            "both-value, learning": learning,
            **{name: plain(name) for name in ("best-fit", "both-aggressive", "replan")},
        }
        for name, run in runs.items():
            key = f"rate {rate:g}: {name}, events a second"
            figures[key] = events_a_second(run, work, repeats)
    figures |= beside_the_rigid_machine(repeats)
    return figures


def main() -> None:
    """Measures, prints and writes."""
    parser = options_of(__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    given = parser.parse_args()
    figures = measure(given.repeats)
    for name, value in figures.items():
        print(f"{name:<48}{value:>14,.2f}" if value < 100 else f"{name:<48}{value:>14,.0f}")
    document = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "commit": source_commit(),
        "repeats": given.repeats,
        "figures": figures,
    }
    keep(given.output, document)


if __name__ == "__main__":
    main()
