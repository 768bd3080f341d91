"""Runs the fault test of `grms.simulation` with many seeds, on all cores.

    python -m benchmarks.faults                        on from where faults.json ends, to 100,000 runs
    python -m benchmarks.faults --anew                 from seed 0 on, and what faults.json has is dropped
    python -m benchmarks.faults --together             constraints, rounds of offers and a Byzantine partner in every run
    python -m benchmarks.faults --returns              rounds of offers, and jobs that are sent home; also with --together
    python -m benchmarks.faults --count 1000 --first 5000 --dry

Every run that is not as it has to be is printed with the command that replays it; then the status
is 1. The figures go to faults.json beside this file (--dry and --returns: nowhere), every thousand runs, so what is
interrupted goes on later. There each commit has a part of its own, with the machine, its first seed and
the one after its last; the figures are the sums of all parts. Runs with all together have a place of
their own in the file.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from benchmarks.run import machine
from grms.simulation.fault_run import run_trial

FIGURES = Path(__file__).with_name("faults.json")
RUNS: Final = 100_000
CHUNK: Final = 250
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
    "reoffered",
    "moved",
    "breaches",
    "taken_back",
)
"""Summed over all runs, from `Verdict`."""

LONGEST: Final = "longest beyond a deadline, s"
"""The figure that is not summed."""

OnLost = Literal["wait", "resubmit"]


@dataclass
class Tally:
    """Result of some runs.

    Attributes:
        counts: of runs, the figures of `FIGURES_OF_RUNS`, and runs by kind of Byzantine partner.
        longest: maximum time of a job at a Byzantine partner beyond its deadline, seconds.
        problems: of failed runs, by seed.
    """

    counts: Counter[str] = field(default_factory=Counter)
    problems: dict[int, tuple[str, ...]] = field(default_factory=dict)
    longest: float = 0.0


def work(seeds: range, *, on_lost: OnLost, together: bool = False, returns: bool = False) -> Tally:
    """Runs the trials of some seeds."""
    tally = Tally()
    for seed in seeds:
        try:
            verdict = run_trial(
                seed,
                on_lost=on_lost,
                rails=together,
                reoffers=together or returns,
                rogues=together,
                returns=returns,
            )
        except Exception as error:  # noqa: BLE001  # whatever it is, the seed must be known
            tally.problems[seed] = (f"{type(error).__name__}: {error}",)
            continue
        for name in FIGURES_OF_RUNS:
            tally.counts[name] += getattr(verdict, name)
        if returns:
            tally.counts["sent_home"] += verdict.sent_home
        tally.counts[f"rogue: {verdict.rogue or 'none'}"] += 1
        tally.counts["runs"] += 1
        tally.longest = max(tally.longest, verdict.longest)
        if verdict.problems:
            tally.problems[seed] = verdict.problems
    return tally


def chunks(first: int, last: int) -> list[range]:
    """Returns the seeds from `first` up to before `last` in pieces of at most `CHUNK`."""
    return [range(begin, min(begin + CHUNK, last)) for begin in range(first, last, CHUNK)]


class Record:
    """Results of all runs so far, by commit, in a file.

    `here` is the present machine and commit; `anew` drops the file's content. Only runs with the same `on_lost` and
    `together` (constraints, rounds and a Byzantine partner) count.
    """

    def __init__(
        self,
        path: Path,
        here: dict[str, Any],
        on_lost: OnLost,
        anew: bool,
        together: bool = False,
    ) -> None:
        self._path, self._here, self._on_lost, self._together = path, here, on_lost, together
        self.parts: list[dict[str, Any]] = []
        self._others: dict[str, Any] = {}
        if path.exists():
            told = json.loads(path.read_text(encoding="utf-8"))
            both = {"together": told.pop("together", {}), "alone": told}
            mine = both.pop("together" if together else "alone")
            (self._others,) = both.values()
            if mine.get("on_lost") == on_lost and not anew:
                self.parts = mine.get("parts", [])

    @property
    def next_seed(self) -> int:
        """The seed after the last that was run."""
        return max((part["next"] for part in self.parts), default=0)

    @property
    def figures(self) -> dict[str, float]:
        """The sums over all parts."""
        return _sums(part["figures"] for part in self.parts)

    def add(self, seeds: range, tally: Tally, seconds: float) -> None:
        """Adds what came of some runs, to the part of this commit where that is the last."""
        last = self.parts[-1] if self.parts else None
        commit = self._here["commit"]
        if last is None or last["machine"]["commit"] != commit or last["next"] != seeds.start:
            last = {"machine": self._here, "first": seeds.start, "figures": {}}
            self.parts.append(last)
        new: dict[str, float] = dict(tally.counts)
        new |= {"problems": len(tally.problems), "seconds": seconds, LONGEST: tally.longest}
        last["next"] = seeds.stop
        last["figures"] = _sums([last["figures"], new])

    def write(self) -> None:
        """Writes the file, whole or not at all."""
        mine = {"on_lost": self._on_lost, "figures": self.figures, "parts": self.parts}
        document = (
            {**self._others, "together": mine}
            if self._together
            else {**mine, **({"together": self._others} if self._others else {})}
        )
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        new.replace(self._path)


def _sums(all_figures: Iterable[dict[str, float]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    longest = 0.0
    for figures in all_figures:
        total.update({name: figure for name, figure in figures.items() if name != LONGEST})
        longest = max(longest, figures.get(LONGEST, 0.0))
    return {**total, LONGEST: round(longest, 1)} if total else {}


def main() -> int:
    """Runs what was asked for, and says what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, help="how many runs")
    parser.add_argument("--first", type=int, help="the first seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--on-lost", choices=("wait", "resubmit"), default="wait")
    parser.add_argument("--anew", action="store_true", help="drop what faults.json has")
    parser.add_argument(
        "--together",
        action="store_true",
        help="constraints, rounds, Byzantine partners in each run",
    )
    parser.add_argument(
        "--returns",
        action="store_true",
        help="rounds, and partners' jobs are sent home; implies --dry",
    )
    parser.add_argument("--dry", action="store_true", help="do not write faults.json")
    arguments = parser.parse_args()
    together = arguments.together
    record = Record(FIGURES, machine(), arguments.on_lost, arguments.anew, together)
    more = " --rails --reoffers --rogues" if together else ""
    if arguments.returns:
        more = f"{more} --returns" if together else " --reoffers --returns"
    first = record.next_seed if arguments.first is None else arguments.first
    last = max(first, RUNS) if arguments.count is None else first + arguments.count
    started = noted = time.perf_counter()
    total = Tally()
    pieces = chunks(first, last)
    with ProcessPoolExecutor(arguments.workers) as pool:
        run = partial(work, on_lost=arguments.on_lost, together=together, returns=arguments.returns)
        for number, (seeds, tally) in enumerate(zip(pieces, pool.map(run, pieces), strict=True), 1):
            total.counts += tally.counts
            total.problems |= tally.problems
            for seed, problems in tally.problems.items():
                print(f"seed {seed}: {problems[0]}")
                print(
                    f"  python -m grms.simulation --seed {seed} --on-lost {arguments.on_lost}{more}"
                )
            now = time.perf_counter()
            record.add(seeds, tally, round(now - noted, 1))
            noted = now
            if number % 4 == 0 or number == len(pieces):
                print(f"{total.counts['runs']} runs, {now - started:.0f} s", flush=True)
                if not (arguments.dry or arguments.returns):
                    record.write()
    print({**total.counts, "problems": len(total.problems)})
    return 1 if total.problems else 0


if __name__ == "__main__":
    sys.exit(main())
