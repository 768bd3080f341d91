"""Runs the fault test of `grms.simulation` with many seeds, on all cores.

    python -m benchmarks.faults                        on from where faults.json ends, to 100,000 runs
    python -m benchmarks.faults --anew                 from seed 0 on, and what faults.json has is dropped
    python -m benchmarks.faults --together             constraints, rounds of offers and a Byzantine partner in every run
    python -m benchmarks.faults --returns              rounds of offers, and jobs that are sent home; also with --together
    python -m benchmarks.faults --mixed                all of it, one-way links and accounts too, each in a share of the runs
    python -m benchmarks.faults --count 1000 --first 5000 --dry

Every run that is not as it has to be is printed with the command that replays it; then the status
is 1. The figures go to faults.json beside this file (--dry and --returns: nowhere), every thousand runs, so what is
interrupted goes on later. There each commit has a part of its own, with the machine, its first seed and
the one after its last; the figures are the sums of all parts. Runs with all together, and mixed ones, have places of
their own in the file.

Mixed runs have rounds of offers and jobs that are sent home; by chance, from the seed, constraints, an account that each
site keeps of itself, a Byzantine partner of any kind in every run, and sites that only call out.
"""

import gc
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
from typing import Any, Final, Literal, TypedDict

from benchmarks.frame import machine, options_of
from grms.simulation.fault_run import run_trial
from grms.simulation.random_source import RandomSource

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
MORE_OF_MIXED: Final = ("sent_home", "blocked")
"""Summed over all runs, from `Verdict`."""

LONGEST: Final = "longest beyond a deadline, s"
SETTLED: Final = "all ended after the last fault, s"
MAXIMA: Final = (LONGEST, SETTLED)
"""The figures that are not summed."""

OnLost = Literal["wait", "resubmit"]
Kind = Literal["alone", "together", "mixed"]
"""What runs have, and their place in the file; "alone" stands at its top."""

OWN_PLACES: Final[tuple[Kind, ...]] = ("together", "mixed")

SHARES: Final = {"rails": 0.7, "account": 0.7, "rogues": 0.5, "one_way": 0.7}
"""Of mixed runs, what share has each."""

_MIXTURE: Final = 40
# The stream of chance from which a run's share is drawn; the run itself has others.


class Features(TypedDict):
    """What a run has: arguments of `run_trial`."""

    rails: bool
    reoffers: bool
    rogues: bool
    returns: bool
    one_way: bool
    account: bool


def features(seed: int, kind: Kind, *, returns: bool = False) -> Features:
    """Returns what a run has."""
    together, mixed = kind == "together", kind == "mixed"
    draws = RandomSource(seed, _MIXTURE)
    drawn = {name: mixed and draws.chance(share) for name, share in SHARES.items()}
    return Features(
        rails=together or drawn["rails"],
        reoffers=together or returns or mixed,
        rogues=together or drawn["rogues"],
        returns=returns or mixed,
        one_way=drawn["one_way"],
        account=drawn["account"],
    )


def replayed_by(seed: int, on_lost: OnLost, found: Features) -> str:
    """Returns the command that replays a run."""
    more = "".join(f" --{name.replace('_', '-')}" for name, has in found.items() if has)
    return f"python -m grms.simulation --seed {seed} --on-lost {on_lost}{more}"


@dataclass
class Tally:
    """Result of some runs.

    Attributes:
        counts: of runs, the figures of `FIGURES_OF_RUNS`, and runs by kind of Byzantine partner.
        longest: maximum time of a job at a Byzantine partner beyond its deadline, seconds.
        settled: maximum time from the last fault to when the honest sites had come to rest, seconds.
        problems: of failed runs, by seed.
    """

    counts: Counter[str] = field(default_factory=Counter)
    problems: dict[int, tuple[str, ...]] = field(default_factory=dict)
    longest: float = 0.0
    settled: float = 0.0


def work(seeds: range, *, on_lost: OnLost, kind: Kind = "alone", returns: bool = False) -> Tally:
    """Runs the trials of some seeds."""
    tally = Tally()
    for seed in seeds:
        found = features(seed, kind, returns=returns)
        try:
            verdict = run_trial(seed, on_lost=on_lost, **found)
        except Exception as error:  # noqa: BLE001  # whatever it is, the seed must be known
            tally.problems[seed] = (f"{type(error).__name__}: {error}",)
            continue
        for name in FIGURES_OF_RUNS:
            tally.counts[name] += getattr(verdict, name)
        for name in MORE_OF_MIXED if kind == "mixed" else ("sent_home",) if returns else ():
            tally.counts[name] += getattr(verdict, name)
        if kind == "mixed":
            tally.counts.update(f"with {name}" for name, has in found.items() if has)
        tally.counts[f"rogue: {verdict.rogue or 'none'}"] += 1
        tally.counts["runs"] += 1
        tally.longest = max(tally.longest, verdict.longest)
        tally.settled = max(tally.settled, verdict.settled)
        if verdict.problems:
            tally.problems[seed] = verdict.problems
    return tally


def chunks(first: int, last: int) -> list[range]:
    """Returns the seeds from `first` up to before `last` in pieces of at most `CHUNK`."""
    return [range(begin, min(begin + CHUNK, last)) for begin in range(first, last, CHUNK)]


class Record:
    """Results of all runs so far, by commit, in a file.

    `here` is the present machine and commit; `anew` drops the file's content. Only runs with the same `on_lost` and
    of the same kind count.
    """

    def __init__(
        self,
        path: Path,
        here: dict[str, Any],
        on_lost: OnLost,
        anew: bool,
        kind: Kind = "alone",
    ) -> None:
        self._path, self._here, self._on_lost, self._kind = path, here, on_lost, kind
        self.parts: list[dict[str, Any]] = []
        self._places: dict[Kind, dict[str, Any]] = {}
        if path.exists():
            told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            for place in OWN_PLACES:
                self._places[place] = told.pop(place, {})
            self._places["alone"] = told
            mine = self._places[kind]
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
        new |= {"problems": len(tally.problems), "seconds": seconds}
        new |= {LONGEST: tally.longest, SETTLED: tally.settled}
        last["next"] = seeds.stop
        last["figures"] = _sums([last["figures"], new])

    def write(self) -> None:
        """Writes the file, whole or not at all."""
        mine = {"on_lost": self._on_lost, "figures": self.figures, "parts": self.parts}
        places = self._places | {self._kind: mine}
        kept = {place: places[place] for place in OWN_PLACES if places.get(place)}
        document = {**places.get("alone", {}), **kept}
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        new.replace(self._path)


def _sums(all_figures: Iterable[dict[str, float]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    most: dict[str, float] = dict.fromkeys(MAXIMA, 0.0)
    for figures in all_figures:
        total.update({name: figure for name, figure in figures.items() if name not in MAXIMA})
        for name in MAXIMA:
            most[name] = round(max(most[name], figures.get(name, 0.0)), 1)
    return {**total, **most} if total else {}


def _begin() -> None:
    # A run makes many small objects that live as long as it does, and hardly any cycles.
    gc.freeze()
    gc.set_threshold(200_000)


def main() -> int:
    """Runs what was asked for, and says what came of it."""
    parser = options_of(__doc__)
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
    parser.add_argument(
        "--mixed", action="store_true", help="each of all that there is in a share of the runs"
    )
    parser.add_argument("--dry", action="store_true", help="do not write faults.json")
    arguments = parser.parse_args()
    kind: Kind = "mixed" if arguments.mixed else "together" if arguments.together else "alone"
    on_lost, returns = arguments.on_lost, arguments.returns
    record = Record(FIGURES, machine(), on_lost, arguments.anew, kind)
    first = record.next_seed if arguments.first is None else arguments.first
    missing = max(0, RUNS - int(record.figures.get("runs", 0)))
    last = first + (missing if arguments.count is None else arguments.count)
    started = noted = time.perf_counter()
    total = Tally()
    pieces = chunks(first, last)
    with ProcessPoolExecutor(arguments.workers, initializer=_begin) as pool:
        run = partial(work, on_lost=on_lost, kind=kind, returns=returns)
        for number, (seeds, tally) in enumerate(zip(pieces, pool.map(run, pieces), strict=True), 1):
            total.counts += tally.counts
            total.problems |= tally.problems
            for seed, problems in tally.problems.items():
                print(f"seed {seed}: {problems[0]}")
                print(f"  {replayed_by(seed, on_lost, features(seed, kind, returns=returns))}")
            now = time.perf_counter()
            record.add(seeds, tally, round(now - noted, 1))
            noted = now
            if number % 4 == 0 or number == len(pieces):
                print(f"{total.counts['runs']} runs, {now - started:.0f} s", flush=True)
                if not (arguments.dry or returns):
                    record.write()
    print({**total.counts, "problems": len(total.problems)})
    return 1 if total.problems else 0


if __name__ == "__main__":
    sys.exit(main())
