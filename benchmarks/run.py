"""Measures speed and memory and writes the figures, with machine and commit, to figures.json.

    python -m benchmarks.run              every benchmark
    python -m benchmarks.run -k easy      those whose name contains "easy"; figures.json stays as it is
    python -m benchmarks.run -k easy --keep   and writes them among the others there
    python -m benchmarks.run --dry        do not write figures.json

Three sizes: one operation, one kernel over a whole log, one whole process. Each figure is the
median of several runs, with the least and the most beside it; the machines that this runs on are
shared, so a figure without its spread says little. Recorded logs are taken from the folder that
HANSE_TRACES names; benchmarks that need them are left out, by name, where it is not set.
"""

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame import keep, machine, options_of
from grms.federation.federation import Federation, Site
from grms.learning.evolution.genes import uniform_genome
from grms.learning.evolution.randomness import generator
from grms.learning.transfer.encoding import RuleBaseSettings
from grms.learning.transfer.fitness import Fitness, TrainingCase
from grms.policy.registry import TRANSFER_POLICIES
from grms.policy.transfer import AcceptWhenFit, Gaussian, Rule, RuleBase
from lrms_sim.analysis.trial import Trial
from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.criteria import CRITERION_KINDS, Criterion, CriterionOrder, GroupOrder
from lrms_sim.scheduling.disciplines import Conservative, Discipline, Easy, Fcfs, ListScheduling
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.util.executors import ThreadExecutor
from lrms_sim.workload.jobs import JobTable, scale_to, window_by_days
from lrms_sim.workload.lublin import generate
from lrms_sim.workload.preparation import prepare
from lrms_sim.workload.swf import read_swf

HERE = Path(__file__).parent
FIGURES = HERE / "figures.json"
BIN = Path(sysconfig.get_path("scripts"))
TRACES = os.environ.get("HANSE_TRACES")
CTC = "CTC-SP2-1996-3.1-cln.swf.gz"
KTH = "KTH-SP2-1996-2.swf.gz"
SDSC00 = "SDSC-SP2-1998-4.2-cln.swf.gz"


@dataclass(frozen=True)
class Figure:
    """One measured figure: median, least and most of some runs; `goal` is in words, and may be empty."""

    name: str
    unit: str
    median: float
    least: float
    most: float
    runs: int
    goal: str = ""


def figure(name: str, unit: str, values: list[float], goal: str = "") -> Figure:
    """Returns the figure of several runs."""
    return Figure(
        name, unit, statistics.median(values), min(values), max(values), len(values), goal
    )


def seconds(work: Callable[[], object], runs: int) -> list[float]:
    """Returns the wall seconds of several runs, after one that is not counted."""
    work()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def process(command: list[str]) -> tuple[float, float]:
    """Runs a command; returns its wall seconds and its peak memory in MB."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    taken = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    return taken, usage.ru_maxrss / 1000


def trace(name: str) -> Path:
    """Returns the path of a recorded log."""
    assert TRACES is not None
    return Path(TRACES) / name


@cache
def log(name: str, processors: int) -> JobTable:
    """Returns a recorded log, prepared."""
    return prepare(read_swf(trace(name)), processors).jobs


def processor_seconds(command: list[str]) -> float:
    """Runs a command; returns the processor time of it and its children, seconds."""
    before = os.times()
    process(command)
    after = os.times()
    return (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )


def million_jobs_per_second(
    jobs: JobTable, processors: int, discipline: Discipline, runs: int
) -> list[float]:
    """Returns millions of jobs per second of kernel time."""
    return [
        len(jobs) / taken / 1e6
        for taken in seconds(lambda: simulate(jobs, processors, discipline), runs)
    ]


def decisions() -> Iterator[Figure]:
    """One transfer decision through the plain face."""
    rule_base = RuleBase(
        tuple(Rule(Gaussian(i, 1 + i), Gaussian(10 * i, 20), i % 2 == 0) for i in range(10))
    ).compiled

    def thousand() -> None:
        for _ in range(1000):
            rule_base.accept(
                7, processors=100, processors_free=20, processors_waiting=150, own=True
            )

    yield figure(
        "decision, ten rules, plain face",
        "µs",
        [taken * 1e3 for taken in seconds(thousand, 15)],
    )


def kernels_on_ctc() -> Iterator[Figure]:
    """Each discipline over the whole CTC log, on the paper's 430 and the machine's 338."""
    for processors in (430, 338):
        jobs = log(CTC, processors)
        for discipline, goal, runs in (
            (Fcfs(), "at least 10", 25),
            (ListScheduling(), "", 25),
            (Easy(), "at least 1", 25),
            (Conservative(), "", 3),
        ):
            yield figure(
                f"{discipline.name}, CTC, {processors} processors",
                "million jobs/s",
                million_jobs_per_second(jobs, processors, discipline, runs),
                goal if processors == 430 else "",
            )


def kth_and_ctc() -> list[Site]:
    """Returns setup I of the paper: KTH and CTC, five months, both by AWF."""
    return [
        Site(
            name,
            processors,
            window_by_days(log(file, processors), None, 150),
            transfer_policies={partner: AcceptWhenFit()},
        )
        for name, file, processors, partner in (("KTH", KTH, 100, "CTC"), ("CTC", CTC, 430, "KTH"))
    ]


def federations() -> Iterator[Figure]:
    """Two sites that exchange jobs by AWF."""
    sites = kth_and_ctc()
    federation = Federation(sites)
    yield figure(
        "federation, KTH-5 and CTC-5, AWF",
        "ms",
        [taken * 1e3 for taken in seconds(federation.replay, 45)],
        "at most 5",
    )
    yield figure(
        "the same, with checks and merging",
        "ms",
        [taken * 1e3 for taken in seconds(lambda: Federation(sites).replay(), 45)],
    )


def evaluations() -> Iterator[Figure]:
    """Judging random rule bases of ten rules, as the first generation of a training does."""
    fitness = Fitness([TrainingCase(Federation(kth_and_ctc()), "KTH", ("CTC",))])
    rng = generator(1)
    genomes = [uniform_genome(rng, RuleBaseSettings(10).space) for _ in range(91)]
    rates: dict[int, list[float]] = {1: [], 2: []}
    with ThreadExecutor(1) as one, ThreadExecutor(2) as two:
        one.evaluate(fitness, genomes)
        # Alternating, as the load of this machine varies from minute to minute.
        for executor in (one, two) * 9:
            start = time.perf_counter()
            executor.evaluate(fitness, genomes)
            rates[executor.workers].append(len(genomes) / (time.perf_counter() - start))
    yield figure("evaluations, setup I, ten rules, one thread", "per s", rates[1])
    yield figure("evaluations, setup I, ten rules, two threads", "per s", rates[2])
    ratios = [two / one for one, two in zip(rates[1], rates[2], strict=True)]
    yield figure("two threads to one", "ratio", ratios, "near 2")


def training(generations: int = 150) -> Iterator[Figure]:
    """`grms train` on setup I with the paper's settings, from start to finished page."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "setup-1.toml"
        scenario.write_text(
            SETUP_1.format(KTH=json.dumps(str(trace(KTH))), CTC=json.dumps(str(trace(CTC))))
        )
        command = [
            str(BIN / "grms"),
            "train",
            str(scenario),
            *("--site", "KTH", "--partner", "CTC", "--output", str(Path(folder) / "out")),
            *("--generations", str(generations)),
        ]
        runs = [process(command) for _ in range(3)]
    name = f"grms train, setup I, {generations} generations"
    yield figure(name, "s", [taken for taken, _ in runs], "at most 60")
    yield figure(name, "MB", [memory for _, memory in runs], "at most 1024")


def tuning(generations: int = 100) -> Iterator[Figure]:
    """`grms tune` on the first 10,000 jobs of CTC, with the settings of paper 001."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(BIN / "grms"), "tune", str(trace(CTC)), "--processors", "430"]
        command += ["--first-jobs", "10000", "--generations", str(generations)]
        for method in ("f2", "f3"):
            output = ["--method", method, "--output", str(Path(folder) / method)]
            yield figure(
                f"grms tune, {method}, CTC's first 10,000 jobs, {generations} generations",
                "processor s",
                [processor_seconds([*command, *output])],
                "at most 120, a minute of two cores",
            )


SETUP_1 = """
name = "setup-1"
title = "KTH and CTC, five months"
[[sites]]
name = "KTH"
processors = 100
workload = {{ swf = {KTH}, window = {{ last_day = 150 }} }}
[[sites]]
name = "CTC"
processors = 430
workload = {{ swf = {CTC}, window = {{ last_day = 150 }} }}
"""


def reading() -> Iterator[Figure]:
    """Reading a compressed log."""
    yield figure("read CTC .swf.gz", "s", seconds(lambda: read_swf(trace(CTC)), 9), "at most 0.4")


def synthetic(count: int) -> JobTable:
    """Returns a workload that keeps 256 processors about 70 % busy."""
    rng = np.random.default_rng(1)
    return JobTable.from_columns(
        submit_time=np.cumsum(rng.exponential(300.0, count)),
        processors=rng.integers(1, 65, count),
        run_time=rng.exponential(1650.0, count) + 1,
    )


def ten_million() -> Iterator[Figure]:
    """Cost of a job in a run of 10,000,000 against one of 100,000, and the memory it takes."""
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); import run; "
        "from lrms_sim.machine.machine import simulate; jobs = run.synthetic(int(sys.argv[2])); "
        "start = time.perf_counter(); simulate(jobs, 256); "
        "print((time.perf_counter() - start) / len(jobs) * 1e9)"
    )
    cost: dict[int, list[float]] = {100_000: [], 10_000_000: []}
    for count in [100_000, 10_000_000] * 3:
        command = [sys.executable, "-c", code, str(HERE), str(count)]
        cost[count].append(float(subprocess.check_output(command)))
    _, memory = process([sys.executable, "-c", code, str(HERE), "10000000"])
    yield figure("fcfs, 100,000 synthetic jobs", "ns/job", cost[100_000])
    yield figure("fcfs, 10,000,000 synthetic jobs", "ns/job", cost[10_000_000])
    ratios = [large / small for small, large in zip(*cost.values(), strict=True)]
    yield figure("cost of a job, 10,000,000 to 100,000", "ratio", ratios, "at most 2")
    yield figure("fcfs, 10,000,000 synthetic jobs", "MB", [memory], "at most 2000")


def whole_process() -> Iterator[Figure]:
    """`lrms-sim run` on the CTC log, from start to finished schedule file."""
    with tempfile.TemporaryDirectory() as folder:
        for discipline in ("fcfs", "easy"):
            command = [
                str(BIN / "lrms-sim"),
                "run",
                str(trace(CTC)),
                *("--processors", "338", "--discipline", discipline),
                *("--schedule", str(Path(folder) / "schedule.csv")),
            ]
            process(command)
            runs = [process(command) for _ in range(9)]
            name = f"lrms-sim run, CTC, 338 processors, {discipline}"
            yield figure(name, "s", [taken for taken, _ in runs], "at most 0.7")
            yield figure(name, "MB", [memory for _, memory in runs], "at most 150")


def main_job() -> Iterator[Figure]:
    """`scenario run synthetic-three-sites`, with its report."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(BIN / "scenario"), "run", "synthetic-three-sites", "--output", folder]
        yield figure(
            "scenario run synthetic-three-sites", "s", [process(command)[0] for _ in "abc"]
        )


MANY_SITES = 1000
MANY_JOBS = 200_000


def many_sites() -> Iterator[Figure]:
    """`scenario run` with a thousand sites and 200,000 jobs, with its report."""
    lines = ['name = "many-sites"', "seed = 3"]
    for number in range(MANY_SITES):
        lines += [
            "[[sites]]",
            f'name = "site-{number:04d}"',
            f"processors = {(64, 128, 256, 512, 1024)[7 * number % 5]}",
            f'discipline = "{("fcfs", "easy", "list")[number % 3]}"',
            "[sites.workload]",
            'model = "lublin"',
            f"jobs = {MANY_JOBS // MANY_SITES}",
            f"load = {0.5 + 0.05 * (13 * number % 11):.2f}",
        ]
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "many-sites.toml"
        scenario.write_text("\n".join(lines))
        command = [str(BIN / "scenario"), "run", str(scenario), "--output", f"{folder}/out"]
        runs = [process(command) for _ in range(3)]
    name = "scenario run, 1,000 sites, 200,000 jobs"
    yield figure(name, "s", [taken for taken, _ in runs], "at most 60")
    yield figure(name, "MB", [memory for _, memory in runs])


MANY_PARTNERS_JOBS = 1_000_000


def many_partners() -> Iterator[Figure]:
    """A job's processor time with ten and with a thousand sites that ask at most eight partners."""
    taken: dict[int, list[float]] = {10: [], 1000: []}
    federations = {}
    for count in taken:
        names = [f"site-{number:04d}" for number in range(count)]
        federations[count] = Federation(
            [
                Site(
                    name,
                    processors,
                    generate(
                        processors,
                        seed=number,
                        jobs=MANY_PARTNERS_JOBS // count,
                        load=0.5 + 0.05 * (13 * number % 11),
                    ),
                    (Fcfs(), Easy(), ListScheduling())[number % 3],
                    {
                        partner: TRANSFER_POLICIES["fair-exchange"]
                        for partner in names
                        if partner != name
                    },
                    partners_asked=8,
                )
                for number, name in enumerate(names)
                for processors in [(64, 128, 256, 512, 1024)[7 * number % 5]]
            ]
        )
    for _ in range(3):
        for count, federation in federations.items():
            start = time.process_time()
            federation.awrt()
            taken[count].append((time.process_time() - start) / MANY_PARTNERS_JOBS * 1e6)
    for count, values in taken.items():
        yield figure(f"fair exchange, {count:,} sites, 8 partners asked", "µs/job", values)
    ratios = [many / few for few, many in zip(*taken.values(), strict=True)]
    yield figure("the second over the first", "times", ratios, "at most 5")


SCALED = ((CTC, 430, 2.44), (KTH, 100, 10.75), (SDSC00, 128, 8.19))
"""Logs scaled to 1024 processors: file, processors, factor."""


def strategies() -> Iterator[Figure]:
    """Scores f1 to f4 and the constant orders, alternating with EASY, on logs scaled to 1024.

    On KTH and SDSC00 thousands of jobs wait under an order without backfilling.
    """
    weights, constants = (1.0, 0.5, 0.1, 0.05, 0.01), (5.0, 2.0, 0.0, 0.0, 0.0)
    policies = [
        Strategy("fcfs", GroupOrder()),
        Strategy("easy", GroupOrder()),
        Strategy("conservative", GroupOrder()),
    ]
    for kind in CRITERION_KINDS:
        numbers = (*weights, *constants, 1.0, 0.001)
        order = CriterionOrder((Criterion.from_numbers(kind, numbers),))
        policies.append(Strategy("fcfs", order))
    for name, processors, factor in SCALED:
        rng = np.random.default_rng(1)
        jobs = scale_to(
            log(name, processors),
            processors_from=processors,
            processors_to=1024,
            rng=rng,
            factor=factor,
        )
        trial = Trial(jobs, 1024)
        for policy in policies:
            ratios = []
            for _ in range(5 if name == CTC else 2):
                taken = []
                for discipline in (Easy(), policy):
                    begin = time.process_time()
                    trial.value(discipline)
                    taken.append(time.process_time() - begin)
                ratios.append(taken[1] / taken[0])
            log_name = name.partition("-")[0]
            criterion = isinstance(policy.order, CriterionOrder)
            goal = "at most 1.7" if name == CTC and criterion else ""
            yield figure(f"{policy.name}, {log_name}-1024, to EASY", "ratio", ratios, goal)


def floods() -> Iterator[Figure]:
    """What a job costs under conservative backfilling where n jobs come within an hour."""
    for count in (500, 1000, 2000, 4000, 8000):
        rng = np.random.default_rng(count)
        run_time = rng.integers(60, 20_000, count).astype(np.float64)
        jobs = JobTable.from_columns(
            submit_time=np.sort(rng.integers(0, 3600, count)),
            processors=2 ** rng.integers(0, 8, count),
            run_time=run_time,
            requested_time=np.ceil(run_time * rng.uniform(1, 5, count) / 600) * 600,
        )
        taken = []
        for _ in range(3):
            begin = time.process_time()
            simulate(jobs, 128, Conservative())
            taken.append((time.process_time() - begin) / count * 1e6)
        yield figure(f"conservative, a flood of {count:,} jobs", "µs/job", taken)


BENCHMARKS: tuple[tuple[str, bool, Callable[[], Iterator[Figure]]], ...] = (
    ("decisions", False, decisions),
    ("kernels fcfs list easy conservative", True, kernels_on_ctc),
    ("floods conservative", False, floods),
    ("strategies greedy group", True, strategies),
    ("tuning learning", True, tuning),
    ("federations awf", True, federations),
    ("evaluations learning", True, evaluations),
    ("training learning", True, training),
    ("reading swf", True, reading),
    ("ten-million fcfs", False, ten_million),
    ("whole-process fcfs easy", True, whole_process),
    ("main-job scenario", False, main_job),
    ("many-sites scenario", False, many_sites),
    ("many-partners federation", False, many_partners),
)


def main() -> None:
    """Runs the benchmarks that were asked for."""
    parser = options_of(__doc__)
    parser.add_argument("-k", default="", metavar="WORD", help="only benchmarks with this word")
    parser.add_argument("--dry", action="store_true", help="do not write figures.json")
    parser.add_argument("--keep", action="store_true", help="with -k: write those alone")
    arguments = parser.parse_args()
    figures: list[Figure] = []
    for name, needs_traces, benchmark in BENCHMARKS:
        if arguments.k not in name:
            continue
        if needs_traces and not TRACES:
            print(f"left out: {name}: HANSE_TRACES is not set")
            continue
        for one in benchmark():
            figures.append(one)
            print(
                f"{one.name:<42} {one.median:10.4g} {one.unit:<15}"
                f"({one.least:.4g} to {one.most:.4g}, {one.runs} runs)  {one.goal}",
                flush=True,
            )
    if arguments.dry or (arguments.k and not arguments.keep):
        return
    rows = [asdict(one) for one in figures]
    document = {"machine": machine(), "figures": rows}
    if arguments.k:
        document = with_rows(json.loads(FIGURES.read_text(encoding="utf-8")), rows, machine())
    keep(FIGURES, document)


def with_rows(
    document: dict[str, Any], rows: Sequence[dict[str, Any]], here: dict[str, object]
) -> dict[str, Any]:
    """Returns the document with some rows replaced by name and unit, or appended, each with machine and commit."""
    new = {(row["name"], row["unit"]): {**row, "machine": here} for row in rows}
    kept = [new.pop((row["name"], row["unit"]), row) for row in document["figures"]]
    return {**document, "figures": [*kept, *new.values()]}


if __name__ == "__main__":
    main()
