"""Runs tasks of Parsl on pilots at two sites above real Slurms, by the provider of this repository.

    python -m benchmarks.parsl_tasks

Parsl has to be installed (`pip install parsl`). Two sites that share no folder of their own, and one run of Parsl at the first:

- 1,000 tasks over two executors, each with one pilot that has a whole node: one pinned to the site, one to its partner. Every
  task has to run once and to return its value, and each pilot must have run some;
- a third pilot, which finds no node, is cancelled by its user before it starts: Parsl must not take that for a failure;
- at the end all pilots are cancelled.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.frame import options_of
from benchmarks.snakemake_jobs import check, two_sites, until
from grms.client import Outcome, SyncClient

ROOT: Final = Path(__file__).resolve().parents[1]
PLUGIN: Final = ROOT / "plugins/parsl-provider-hanse/src"
TASKS: Final = 1000
WORKERS: Final = 2
"""Of each pilot; a machine for tests has few processors."""


def where(number: int) -> tuple[int, str]:
    """Runs on a pilot; returns the square of a number, and whose pilot it is."""
    import os  # noqa: PLC0415  # it is sent there as it stands here

    return number * number, os.environ["PILOT"]


def tasks(folder: Path, socket: Path) -> dict[str, Any]:
    """Runs all of it; returns figures."""
    # Tests have a small stand-in for it, which mypy sees as well.
    parsl: Any = import_module("parsl")
    htex: Any = import_module("parsl.executors").HighThroughputExecutor
    sys.path.insert(0, str(PLUGIN))
    from parsl_provider_hanse import HanseProvider  # noqa: PLC0415  # needs Parsl

    os.environ["PATH"] = (
        f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # of Parsl's programs
    )
    setup = f"export PATH={os.environ['PATH']} PYTHONPATH={os.environ.get('PYTHONPATH', '')}"

    def executor(label: str, **where_to: Any) -> Any:
        provider = HanseProvider(
            str(socket),
            walltime="01:00:00",
            worker_init=f"{setup} PILOT={label}",
            status_polling_interval=1,
            **where_to,
        )
        return htex(
            label=label,
            provider=provider,
            address="127.0.0.1",
            max_workers_per_node=WORKERS,
            encrypted=False,
            worker_logdir_root=str(folder / "workers"),
        )

    pilots = {"home": executor("home", home_only=True), "away": executor("away", sites=["away"])}
    late = executor("late", home_only=True)
    config = parsl.Config(
        executors=[*pilots.values()],
        run_dir=str(folder / "runs"),
        strategy="none",
        usage_tracking=0,
    )
    begun = time.monotonic()
    with SyncClient(socket) as site, parsl.load(config) as kernel:
        app = parsl.python_app(where, executors=list(pilots), data_flow_kernel=kernel)
        first = [app(number) for number in range(TASKS)]
        until(lambda: all(len(each.connected_managers()) == 1 for each in pilots.values()))
        started = time.monotonic()
        found = [each.result() for each in first]
        done = time.monotonic()
        check([value for value, _ in found] == [n * n for n in range(TASKS)], "wrong values")
        ran = Counter(job for _, job in found)
        jobs = {job.job_id: job for job in site.jobs()}
        check(set(ran) == set(pilots), f"tasks ran on {ran}")
        places = {job.name: job.executed_on for job in jobs.values()}
        expected = {f"parsl.{label}.block-0": label for label in pilots}
        check(places == expected, f"pilots are at {places}")
        kernel.add_executors([late])
        until(lambda: len(list(site.jobs())) == len(jobs) + 1)
        waiting = next(job.job_id for job in site.jobs() if job.job_id not in jobs)
        check(site.get(waiting).start_time_s is None, "the third pilot has started")
        site.cancel(waiting)
        until(lambda: all(each.terminal for each in late.status_facade.values()))
        states = [each.state.name for each in late.status_facade.values()]
        check(states == ["SCALED_IN"] and not late.bad_state_is_set, f"late is {states}")
    with SyncClient(socket) as site:
        ends = [site.wait(each) for each in [*jobs, waiting]]
    check(all(job.outcome is Outcome.CANCELLED for job in ends), f"{ends}")
    return {
        "tasks": len(found),
        "by pilot": dict(ran),
        "seconds until both pilots had called": round(started - begun, 1),
        "tasks a second from then on": round(TASKS / (done - started), 1),
        "a pilot cancelled before its start": states[0],
    }


async def _all(folder: Path) -> None:
    async with two_sites(folder) as (sites, _):
        print(await asyncio.to_thread(tasks, folder, sites["home"].socket), flush=True)


def main() -> None:
    """Runs all of it."""
    parser = options_of(__doc__)
    parser.add_argument("--keep", type=Path, help="folder for everything, which stays")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(_all(folder))


if __name__ == "__main__":
    main()
