"""Replays recorded traces through live daemons, says what that costs, and that it is identical.

    python -m benchmarks.live                  all arrivals of three-sites-6, to figures-live.json
    python -m benchmarks.live --first 20000    the first of them, to the terminal alone
    python -m benchmarks.live --scenario FILE  another scenario, to the terminal alone

Three daemons with their journals on, gRPC between them, one coordinator. Beside arrivals a second of
real time, which depend on what else the machine does, stands the processor time of each process:
its own and the kernel's for it, from the daemons' first word to the collected schedule. The
benchmark fails where the schedule is not that of the replay in one process. Recorded logs are taken
from the folder that HANSE_TRACES names.
"""

import asyncio
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.frame import keep, machine, options_of
from lrms_sim.workload.schedule import Schedule
from scenarios.library import scenario_path
from scenarios.live.coordinator import Coordinator, LockStepRun
from scenarios.live.daemons import daemons
from scenarios.live.live import on_one_core
from scenarios.live.sites import LiveSettings, SiteProcess
from scenarios.run.comparison import first_difference
from scenarios.run.replay import run_scenario
from scenarios.spec.files import load_spec
from scenarios.spec.spec import ScenarioSpec

FIGURES = Path(__file__).parent / "figures-live.json"
SCENARIO = "three-sites-6"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class LiveFigures:
    """Cost of a replay through daemons.

    Attributes:
        delegated: jobs that ran at a partner.
        messages: answered requests of the coordinator.
        elapsed_s: real time from the first arrival to the last end, seconds.
        arrivals_per_s: per second of this time.
        processor_s_per_1000: total per thousand arrivals, seconds.
        load: the system's load average over the preceding minute; if it exceeds the number of cores, real time is
            not meaningful.
    """

    arrivals: int
    delegated: int
    messages: int
    elapsed_s: float
    arrivals_per_s: float
    processor_s: dict[str, float]
    processor_s_per_1000: float
    journal_mb: float
    load: float


def processor_seconds(pid: int) -> float:
    """Returns the processor time that a process has used, its own and the kernel's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(spec: ScenarioSpec, expected: Schedule, pause_s: float) -> LiveFigures:
    """Replays through daemons once; `expected` is the replay in one process.

    `pause_s` allows attaching a profiler to the processes, whose ids are printed.
    """
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="hanse-bench-") as folder:
        place = Path(folder)
        with on_one_core():
            done, spent = asyncio.run(conduct(spec, expected, place, pause_s))
        size = sum(path.stat().st_size for path in place.glob("*.journal*"))
    difference = first_difference(done.schedule, expected)
    if difference:
        raise SystemExit(f"the schedules differ: {difference}")
    count = len(expected)
    return LiveFigures(
        arrivals=count,
        delegated=int((expected.executed_on != expected.submitted_to).sum()),
        messages=done.messages,
        elapsed_s=round(done.elapsed_s, 2),
        arrivals_per_s=round(count / done.elapsed_s, 1),
        processor_s={name: round(value, 2) for name, value in spent.items()},
        processor_s_per_1000=round(sum(spent.values()) / count * 1000, 4),
        journal_mb=round(size / 1e6, 1),
        load=round(load, 1),
    )


async def conduct(
    spec: ScenarioSpec, expected: Schedule, place: Path, pause_s: float
) -> tuple[LockStepRun, dict[str, float]]:
    """Returns the replay, and the processor time of each process while it ran, by name."""
    tables = [
        expected.jobs.select(np.flatnonzero(expected.submitted_to == site))
        for site in range(len(expected.machines))
    ]
    async with daemons(spec, LiveSettings(place, place)) as processes:
        if pause_s:
            print("processes:", os.getpid(), *(process.pid for process in processes), flush=True)
            await asyncio.sleep(pause_s)
        before, own = used(processes), time.process_time()
        coordinator = Coordinator(processes, tables, expected.machines, replay_id=spec.name)
        done = await coordinator.conduct()
        spent = {"coordinator": time.process_time() - own}
        return done, spent | {name: value - before[name] for name, value in used(processes).items()}


def used(processes: list[SiteProcess]) -> dict[str, float]:
    """Returns the processor time that daemons have used so far, seconds, by name."""
    return {process.name: processor_seconds(process.pid) for process in processes}


def main() -> None:
    """Measures what was asked for."""
    parser = options_of(__doc__)
    parser.add_argument("--first", type=int, metavar="N", help="the first N arrivals only")
    parser.add_argument("--scenario", default=SCENARIO, help="its name or file")
    parser.add_argument("--runs", type=int, default=1, help="so many, one after the other")
    parser.add_argument(
        "--pause", type=float, default=0.0, metavar="S", help="wait before, for a profiler"
    )
    arguments = parser.parse_args()
    spec = load_spec(scenario_path(arguments.scenario))
    if arguments.first is not None:
        spec = spec.model_copy(update={"first_arrivals": arguments.first})
    expected = run_scenario(spec).result.schedule
    runs = []
    for _ in range(arguments.runs):
        runs.append(measure(spec, expected, arguments.pause))
        print(json.dumps(asdict(runs[-1])), flush=True)
    print("identical with the replay in one process")
    if arguments.first is None and arguments.scenario == SCENARIO:
        document = {
            "machine": machine(),
            "scenario": spec.name,
            "runs": [asdict(one) for one in runs],
        }
        keep(FIGURES, document)


if __name__ == "__main__":
    main()
