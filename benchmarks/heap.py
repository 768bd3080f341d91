"""Runs many short jobs through a daemon, as fast as it takes them, and says what of its memory grows.

    python -m benchmarks.heap                   12,000 jobs
    python -m benchmarks.heap --cancelled 0     none of them is cancelled

What `benchmarks.soak` sees from outside in 25 minutes, from inside and in a few: private memory, what of it the C library
has given out, what lies free in its heaps, and how many objects Python has. Of ended jobs the site remembers 300, and as many keys;
the growth is that of the second half, when as many jobs are forgotten as end. The simulated batch system has tables that grow with each
job until one is cancelled, so a run without cancellations shows these.
"""

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.frame import options_of
from benchmarks.soak import WIDTHS, Site, documents
from benchmarks.soak_verdict import slope
from grms.client import Client, SiteError

PROBE: Final = Path(__file__).with_name("heap_probe")
REMEMBERED: Final = 300
AT_A_TIME: Final = 24
FIGURES: Final = ("private", "given_out", "free", "objects")


async def run(folder: Path, jobs: int, cancelled: int) -> tuple[list[float], list[dict[str, Any]]]:
    """Runs so many jobs, every so manieth cancelled (0 for none); returns when each ended, and the samples of the daemon."""
    log = folder / "heap"
    (folder / "s").mkdir()
    found = documents(folder, folder / "s", REMEMBERED)
    sites = {name: Site(name, folder, folder / "s") for name in found}
    ended: list[float] = []
    try:
        for name, site in sites.items():
            site.configure(found[name][0])
            os.environ["HANSE_HEAP_LOG"] = str(log) if name == "north" else ""
            await site.start()
        async with Client(sites["north"].socket, timeout_s=300.0) as client:
            await _submit(client, jobs, cancelled, ended)
    finally:
        await asyncio.gather(*(site.stop() for site in sites.values()))
    return ended, [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


async def _submit(client: Client, jobs: int, cancelled: int, ended: list[float]) -> None:
    rng = random.Random(1)  # noqa: S311  # a load, no secrets
    room = asyncio.Semaphore(AT_A_TIME)

    async def one(number: int) -> None:
        async with room:
            job = await client.submit(
                processors=rng.choice(WIDTHS),
                requested_time_s=30.0,
                run_time_s=0.05,
                key=f"heap {number}",
            )
            try:
                if cancelled and number % cancelled == 0:
                    await client.cancel(job.job_id)
                await client.wait(job.job_id)
            except SiteError as error:
                if not error.is_forgotten:
                    raise
            ended.append(time.time())

    async with asyncio.TaskGroup() as group:
        for number in range(jobs):
            group.create_task(one(number), name=f"job {number}")


def growth(ended: Sequence[float], samples: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Returns by how much each figure has grown a job in the second half, with an interval of 95 %.

    Raises:
        ValueError: there are too few samples.
    """
    counts = [sum(moment <= sample["at"] for moment in ended) for sample in samples]
    late = [at for at, count in enumerate(counts) if len(ended) / 2 <= count < len(ended)]
    found = {}
    for name in FIGURES:
        one = slope([counts[at] for at in late], [samples[at][name] for at in late])
        found[name] = [round(each, 2) for each in (one.estimate, one.low, one.high)]
    return found


def main() -> int:
    """Runs it."""
    parser = options_of(__doc__)
    parser.add_argument("--jobs", type=int, default=12_000)
    parser.add_argument("--cancelled", type=int, default=50, help="one in so many; 0 for none")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(PROBE)
    with tempfile.TemporaryDirectory(prefix="hanse-") as place:
        ended, samples = asyncio.run(run(Path(place), options.jobs, options.cancelled))
    print(json.dumps({"jobs": len(ended), "samples": len(samples), **samples[-1]}, indent=1))
    for name, (estimate, low, high) in growth(ended, samples).items():
        unit = "" if name == "objects" else " bytes"
        print(f"{name}: {estimate}{unit} a job, {low} to {high}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
