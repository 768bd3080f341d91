"""Runs the fault test of `grms.testing` with many seeds, on all cores.

    python -m benchmarks.faults                        100,000 runs from seed 0 on
    python -m benchmarks.faults --count 1000 --first 5000

Every run that is not as it has to be is printed with the command that replays it; then the status
is 1. The figures, with machine and commit, go to faults.json beside this file (--dry: nowhere).
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from benchmarks.run import machine
from grms.testing.trial import run_trial

FIGURES = Path(__file__).with_name("faults.json")
CHUNK = 250
FIGURES_OF_RUNS = (
    "jobs",
    "delegated",
    "cancelled",
    "crashes",
    "twice",
    "faults",
    "disbelieved",
    "resubmitted",
    "epochs",
    "judged",
)
"""What is summed up of all runs, as `Verdict` has it."""

OnLost = Literal["wait", "resubmit"]


@dataclass
class Tally:
    """What came of some runs.

    Attributes:
        counts: runs, the figures of `FIGURES_OF_RUNS`, and runs with each kind of rogue.
        problems: of the runs that were not as they have to be, by seed.
    """

    counts: Counter[str] = field(default_factory=Counter)
    problems: dict[int, tuple[str, ...]] = field(default_factory=dict)


def work(first: int, *, count: int, on_lost: OnLost) -> Tally:
    """Runs a chunk of seeds."""
    tally = Tally()
    for seed in range(first, first + count):
        try:
            verdict = run_trial(seed, on_lost=on_lost)
        except Exception as error:  # noqa: BLE001  # whatever it is, the seed must be known
            tally.problems[seed] = (f"{type(error).__name__}: {error}",)
            continue
        for name in FIGURES_OF_RUNS:
            tally.counts[name] += getattr(verdict, name)
        tally.counts[f"rogue: {verdict.rogue or 'none'}"] += 1
        tally.counts["runs"] += 1
        if verdict.problems:
            tally.problems[seed] = verdict.problems
    return tally


def main() -> int:
    """Runs what was asked for, and says what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000, help="how many runs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--on-lost", choices=("wait", "resubmit"), default="wait")
    parser.add_argument("--dry", action="store_true", help="do not write faults.json")
    arguments = parser.parse_args()
    started = time.perf_counter()
    total = Tally()
    last = arguments.first + arguments.count
    firsts = range(arguments.first, last, CHUNK)
    with ProcessPoolExecutor(arguments.workers) as pool:
        run = partial(work, count=CHUNK, on_lost=arguments.on_lost)
        for number, tally in enumerate(pool.map(run, firsts), 1):
            total.counts += tally.counts
            total.problems |= tally.problems
            for seed, problems in tally.problems.items():
                print(f"seed {seed}: {problems[0]}")
                print(f"  python -m grms.testing --seed {seed} --on-lost {arguments.on_lost}")
            if number % 40 == 0:
                print(f"{number * CHUNK} runs, {time.perf_counter() - started:.0f} s", flush=True)
    taken = time.perf_counter() - started
    figures = {**total.counts, "problems": len(total.problems), "seconds": round(taken, 1)}
    print(figures)
    if not arguments.dry:
        document = {"machine": machine(), "on_lost": arguments.on_lost, "figures": figures}
        FIGURES.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if total.problems else 0


if __name__ == "__main__":
    sys.exit(main())
