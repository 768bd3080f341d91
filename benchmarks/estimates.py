"""Measures what estimates that are learned from runs are worth, beside trivial ones.

    python -m benchmarks.estimates                     the drawn loads, 3 seeds, to figures-estimates.json
    HANSE_WORKFLOWS=folder python -m benchmarks.estimates     recorded workflows too
    python -m benchmarks.estimates --seeds 5           more seeds; what is known already is kept
    python -m benchmarks.estimates --dry               a small load, one case, one seed; writes nothing

The loads are those of `deviation` at load 1.5, a quarter of an hour of them: what they draw is how long tasks are, and a run takes a share of
that. Each task runs one of `PROGRAMS` programs, of which users do not know how long they take. `CASES` are what they say:
the truth; a program's factor, from .3 to 5, times it; or, for all tasks of a program alike, that factor times their mean.
Recorded workflows run as they were recorded, each handed in several times in a row; of a program users say one time, a
factor times its mean.

On each of them work, with the same luck for each run: the greedy dispatchers, which look at no estimate; and the broker with
what its users say (*file*); with that times the mean of what runs so far took to what was said (*mean ratio*); with what
it learns (*learned*); and with the truth (*known*). No run is cut off, as it is then a question of limits.
"""

import itertools
import json
import math
import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

import numpy as np

from benchmarks.deviation_dispatch import RULES, Found, Greedy, World
from benchmarks.deviation_loads import GENERATORS, NOTICE_S, Load, Noise, draw
from benchmarks.frame import machine, options_of
from broker.io.documents import read_document
from broker.io.import_options import ImportOptions
from broker.io.importing import to_workflow
from broker.io.wfformat import parse_wfformat
from broker.model.estimates import Estimate, Estimates, MeasuredRun
from broker.model.pool import Pool
from broker.model.program import Program
from broker.model.resources import Resource
from broker.model.workflow import Workflow
from lrms_sim.report.text_tables import markdown

FIGURES: Final = Path(__file__).with_name("figures-estimates.json")
PROGRAMS: Final = 8
FACTORS: Final = (0.3, 5.0)
SHARE: Final = 4
LOAD: Final = 1.5
"""At less the estimates hardly matter: what can begin begins at once."""

EXTENSION_MAX: Final = 100.0
"""Times of its estimate by which a run may be extended in all."""

REPEATS: Final = 2
"""So many times a recorded workflow is handed in."""

PROCESSORS: Final = 12
WHO: Final = (*RULES, "file", "mean ratio", "learned", "known")


@dataclass(frozen=True, slots=True)
class Case:
    """What users say, and how runs differ from the truth: shares are uniform."""

    name: str
    biased: bool
    one_word: bool
    least: float
    most: float


CASES: Final = (
    Case("true, exact", biased=False, one_word=False, least=1.0, most=1.0),
    Case("true, ±10 %", biased=False, one_word=False, least=0.9, most=1.1),
    Case("off by program, ±10 %", biased=True, one_word=False, least=0.9, most=1.1),
    Case("off by program, 0.7–1.25", biased=True, one_word=False, least=0.7, most=1.25),
    Case("one word a program, ±10 %", biased=True, one_word=True, least=0.9, most=1.1),
)
RECORDED: Final = "one word a program, as recorded"


@dataclass(frozen=True, slots=True)
class Shares(Noise):
    """Luck by what a task truly takes: `true` is its share of what was said, by workflow and task."""

    true: Mapping[str, float] = field(default_factory=dict)

    def luck(self, seed: int, task: str, run: int) -> tuple[float, bool]:
        """Returns the share of its estimate that a run takes; none fails."""
        share, _ = Noise.luck(self, seed, task, run)
        return share * self.true[task], False


class MeanRatio(Estimates):
    """What users say times the mean of what runs took to that, of all programs alike."""

    def __init__(self) -> None:
        super().__init__()
        self._sum, self._count = 0.0, 0

    def learn(self, program: str, run: MeasuredRun) -> None:  # noqa: ARG002  # as the base
        """Takes up a run."""
        self._sum += run.work / run.estimate
        self._count += 1

    def estimate(
        self,
        program: str,  # noqa: ARG002  # as the base
        size: float | None,  # noqa: ARG002  # same
        estimate: float,
    ) -> Estimate:
        """Returns what is thought of a run."""
        work = estimate * (self._sum / self._count if self._count else 1.0)
        return Estimate(work, self._count, work, work, "ratio")


@dataclass(frozen=True, slots=True)
class Told:
    """A load as its users say it, and the truth: shares of what they say by workflow and task."""

    load: Load
    truth: Load
    noise: Shares
    known: Shares


def _told(load: Load, case: Case, seed: int, programs: Mapping[str, Mapping[str, str]]) -> Told:
    # What users say of a load of true times; `programs` by workflow and task.
    rng = np.random.default_rng([seed, zlib.crc32(case.name.encode())])
    works: dict[str, list[float]] = {}
    for _, workflow in load.arrivals:
        for task in workflow.tasks:
            works.setdefault(programs[workflow.name][task.name], []).append(task.work)
    low, high = (math.log(each) for each in FACTORS)
    drawn = {name: math.exp(float(rng.uniform(low, high))) for name in sorted(works)}
    factor = drawn if case.biased else dict.fromkeys(drawn, 1.0)
    arrivals, shares, runs = [], {}, {}
    for come, workflow in load.arrivals:
        tasks = []
        for task in workflow.tasks:
            program = programs[workflow.name][task.name]
            work = fmean(works[program]) if case.one_word else task.work
            said = work * factor[program]
            tasks.append(replace(task, work=said))
            shares[f"{workflow.name}/{task.name}"] = task.work / said
        arrivals.append((come, replace(workflow, tasks=tuple(tasks))))
        runs[workflow.name] = tuple(
            Program.of_command(task.name, [programs[workflow.name][task.name]], limit=1e9)
            for task in workflow.tasks
        )
    return Told(
        replace(load, arrivals=tuple(arrivals), programs=runs),
        replace(load, programs=runs),
        Shares(case.name, case.least, case.most, 0.0, shares),
        Shares(case.name, case.least, case.most, 0.0, dict.fromkeys(shares, 1.0)),
    )


def drawn(generator: str, load: float, case: Case, seed: int, share: int) -> Told:
    """Returns a load of `deviation`, each task of which runs one of the programs."""
    made = draw(generator, load, seed, share)
    rng = np.random.default_rng([seed, PROGRAMS])
    programs = {
        workflow.name: {task.name: f"program-{rng.integers(PROGRAMS)}" for task in workflow.tasks}
        for _, workflow in made.arrivals
    }
    return _told(made, case, seed, programs)


@cache
def _recorded(path: Path) -> tuple[Workflow, Mapping[str, str]]:
    content = parse_wfformat(read_document(path), file=str(path))
    pool = Pool(_processors(0), {})
    name = path.name.partition(".")[0]
    workflow = to_workflow(content, pool, ImportOptions(cores="ignore"), name=name, data=True)
    # Where the program is a whole script, tasks of one step share the name before its number.
    programs = {
        each.id: each.program
        if each.program.isprintable() and " " not in each.program
        else each.name
        for each in content.tasks
    }
    return workflow, programs


def _processors(seed: int) -> tuple[Resource, ...]:
    rng = np.random.default_rng(seed)
    return tuple(
        Resource(f"p{number}", performance=round(float(rng.uniform(0.8, 1.6)), 2))
        for number in range(PROCESSORS)
    )


def recorded(path: Path, seed: int) -> Told:
    """Returns a recorded workflow, handed in several times in a row; files count for estimates alone."""
    flow, programs = _recorded(path)
    resources = _processors(seed)
    ends: dict[str, float] = {}
    for task in _in_order(flow):
        ends[task.name] = task.work / 1.2 + max((ends[b] for b in task.predecessors), default=0.0)
    # As long as its work takes, or its longest chain: so the next one comes when most of the last is done.
    length = max(*ends.values(), flow.work / 1.2 / PROCESSORS)
    arrivals = []
    for number in range(REPEATS):
        come = number * length
        due = come + NOTICE_S + 1.5 * length
        arrivals.append(
            (come, replace(flow, name=f"w{number}", earliest_start=-math.inf, due_date=due))
        )
    load = Load(resources, tuple(arrivals))
    case = Case(f"{RECORDED} {flow.name}", biased=True, one_word=True, least=1.0, most=1.0)
    return _told(load, case, seed, {f"w{number}": programs for number in range(REPEATS)})


def _in_order(flow: Workflow) -> list[Any]:
    by_name = {task.name: task for task in flow.tasks}
    found: dict[str, Any] = {}

    def take(name: str) -> None:
        stack = [name]
        while stack:
            task = by_name[stack[-1]]
            waiting = [each for each in task.predecessors if each not in found]
            if waiting:
                stack += waiting
            else:
                found[stack.pop()] = task

    for name in by_name:
        take(name)
    return list(found.values())


def carried_out(told: Told, who: str, seed: int) -> Found:
    """Returns what becomes of a load, by one dispatcher."""
    if who in RULES:
        return Greedy(told.load, told.noise, seed, who).run()
    load, noise = (told.truth, told.known) if who == "known" else (told.load, told.noise)
    world = World(
        load,
        noise,
        seed,
        estimates="learned" if who in {"learned", "mean ratio"} else "file",
        extension_max=EXTENSION_MAX,
    )
    if who == "mean ratio":
        world.state.memory.estimates = MeanRatio()
    return world.run()


# --- what is measured ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """A generator with a load and a case, or a recorded workflow."""

    name: str
    load: float
    case: str

    def __str__(self) -> str:
        return f"{self.name}, load {self.load:g}, {self.case}"


def measure(setting: Setting, who: str, seed: int, share: int) -> dict[str, Any]:
    """Returns the figures of one run."""
    if setting.case == RECORDED:
        told = recorded(Path(os.environ["HANSE_WORKFLOWS"]) / f"{setting.name}.json.gz", seed)
    else:
        case = next(each for each in CASES if each.name == setting.case)
        told = drawn(setting.name, setting.load, case, seed, share)
    return carried_out(told, who, seed).as_json()


HEADS: Final = (
    *("workflows", "load", "what users say, and runs", "seeds"),
    *(f"on time, {who}" for who in WHO),
    *(f"flow, {who}" for who in WHO),
)


def rows(settings: Sequence[Setting], known: dict[str, Any], seeds: int) -> list[tuple[str, ...]]:
    """Returns a row for each setting: medians over the seeds, of flow with the least and the most."""
    found = []
    for setting in settings:
        done = [
            seed
            for seed in range(1, seeds + 1)
            if all(key_of(setting, who, seed) in known for who in WHO)
        ]
        if not done:
            continue

        def values(who: str, figure: str, setting: Setting = setting) -> list[float]:
            return [known[key_of(setting, who, seed)][figure] for seed in done]  # noqa: B023  # used at once

        on_time = [f"{100 * median(values(who, 'on_time')):.1f}" for who in WHO]
        flow = [
            f"{median(mine):.0f} ({min(mine):.0f} … {max(mine):.0f})"
            for mine in (values(who, "mean_flow_s") for who in WHO)
        ]
        where = setting.name, f"{setting.load:g}", setting.case, str(len(done))
        found.append((*where, *on_time, *flow))
    return found


def key_of(setting: Setting, who: str, seed: int) -> str:
    """Returns the name of a run among the figures."""
    return f"{setting}, seed {seed}: {who}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is not known yet."""
    parser = options_of(__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="of each setting, from 1 on (3)")
    parser.add_argument("--workers", type=int, default=1, help="processes (1)")
    parser.add_argument("--output", type=Path, default=FIGURES, help="the figures, JSON")
    parser.add_argument("--dry", action="store_true", help="a small load; writes no figures")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    cases: tuple[Case, ...] = CASES
    generators, share = tuple(GENERATORS), SHARE
    if options.dry:
        cases, generators, share = CASES[2:3], generators[:1], 20
    settings = [
        Setting(name, LOAD, case.name) for name, case in itertools.product(generators, cases)
    ]
    folder = os.environ.get("HANSE_WORKFLOWS", "")
    if folder and not options.dry:
        names = sorted(
            path.name.removesuffix(".json.gz") for path in Path(folder).glob("*.json.gz")
        )
        settings += [Setting(name, 1.0, RECORDED) for name in names]
    known: dict[str, Any] = {}
    if options.output.exists() and not options.dry:
        known = json.loads(options.output.read_text(encoding="utf-8"))["runs"]
    wanted = itertools.product(range(1, options.seeds + 1), settings, WHO)
    runs = [(setting, who, seed) for seed, setting, who in wanted]
    here = machine()
    with ProcessPoolExecutor(options.workers) as executor:
        waiting = {
            executor.submit(measure, *run, share): run for run in runs if key_of(*run) not in known
        }
        for done in as_completed(waiting):
            key, figures = key_of(*waiting[done]), done.result()
            known[key] = figures
            print(
                f"{key}: on time {100 * figures['on_time']:.1f} %, flow {figures['mean_flow_s']:.0f} s "
                f"({figures['processor_s']:.1f} s)",
                flush=True,
            )
            if not options.dry:
                document = {
                    "machine": here,
                    "made": {"share": share, "load": LOAD, "repeats": REPEATS},
                    "runs": known,
                }
                part = options.output.with_suffix(".part")
                part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
                part.replace(options.output)
    print(markdown(HEADS, rows(settings, known, options.seeds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
