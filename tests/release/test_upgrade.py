"""Sites that a release left open are upgraded one by one, and all of their jobs end once.

The journals in `VERSION/upgrade` are those of three sites of that release, killed in the middle of their work
(`python -m benchmarks.upgrades --record`); real daemons of both builds are run by `python -m benchmarks.upgrades`.
"""

import asyncio
import json
import shutil
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.upgrades import SITES, documents
from benchmarks.upgrades_judge import Judge, epoch_of, story
from grms.daemon.journal import reading
from grms.site.runtime.journal import KIND
from grms.v1 import operator_pb2
from tests.grms.site.daemons import Running, running
from tests.waiting import TIME_OUT_S

RECORDED = sorted(Path(__file__).parent.glob("*/upgrade"))

each_release = pytest.mark.parametrize("folder", RECORDED, ids=lambda path: path.parent.name)


def prepared(folder: Path, place: Path) -> dict[str, dict[str, Any]]:
    """Returns configurations of the recorded sites, whose clocks go on where they stood, twenty times as fast."""
    latest = 0.0
    for name in SITES:
        shutil.copy(folder / f"{name}.journal", place)
        with reading(place / f"{name}.journal", KIND) as scan:
            latest = max(latest, *(record.time for record in scan.records()))
    found = documents(place, place, 0.0, strict=False)
    for each in found.values():
        each["clock"] = {
            "kind": "scaled",
            "speed": 20.0,
            "origin": time.time() - latest / 20.0 - 1.0,
        }
    return found


async def open_jobs(site: Running) -> int:
    """Returns how many jobs of its own users have not ended."""
    status = await site.operator.Status(operator_pb2.StatusRequest(), timeout=TIME_OUT_S)
    return sum(count for state, count in status.jobs.items() if state != "ENDED")


@each_release
async def test_all_that_was_open_ends_once(folder: Path, tmp_path: Path) -> None:
    """Jobs that ran, waited, were held, at partners, or partners'; nothing that was acknowledged is lost."""
    told = json.loads((folder / "told.json").read_text())
    standing = told["standing"]
    assert all(standing[state] for state in ("delegated", "guests", "held", "queued", "running"))
    async with AsyncExitStack() as stack:
        sites = [
            await stack.enter_async_context(running(each, tmp_path))
            for each in prepared(folder, tmp_path).values()
        ]
        for site in sites:
            await site.linked()
            await site.submit("after", run_time_s=1.0)
        for site in sites:
            while await open_jobs(site):  # noqa: ASYNC110  # it tells nobody
                await asyncio.sleep(0.02)
    journals = {name: story([tmp_path / f"{name}.journal"]) for name in SITES}
    epochs = {name: epoch_of(tmp_path / f"{name}.journal") for name in SITES}
    acknowledged = {name: {*keys, "after"} for name, keys in told["acknowledged"].items()}
    judged = Judge(journals, epochs, acknowledged).judged()
    assert judged.problems == []
    assert judged.counts["jobs"] == sum(map(len, acknowledged.values()))
    assert judged.counts["ran_at_partners"] >= standing["delegated"]
