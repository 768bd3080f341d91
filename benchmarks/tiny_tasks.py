"""Measures how many tiny tasks a second a broker runs in one pilot of eight processors, and what they cost.

    python -m benchmarks.tiny_tasks              writes figures-tiny-tasks.json
    python -m benchmarks.tiny_tasks --dry        does not

A Slurm cluster of one node, a site whose journal survives a loss of power, and a broker, each a process of its own. Tasks
that wait for nothing are handed in as one workflow, as an array, and added one by one to an open workflow by a program
that does not wait for them; each runs `true` or `sleep .05`. From the moment at which the first of them is handed in to
that at which the last has completed, each with a folder, streams, an exit code and two durable records at the site and the
broker. Processor seconds are those of broker, site and pilot, the latter with all of its programs.
"""

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.frame import keep, machine, options_of
from broker.client import BrokerClient
from broker.model.additions import Addition
from broker.model.program import Program
from broker.model.workflow import Alternative, OpenWorkflow, Task, Workflow
from grms.daemon.ports import free_port
from lrms_sim.util.files import to_toml
from tests.broker.brokers import configure, serving
from tests.broker.site_processes import SiteProcess
from tests.broker.site_processes import running as sites_running
from tests.clusters.slurm import SlurmCluster
from tests.grms.site.daemons import document

FIGURES: Final = Path(__file__).with_name("figures-tiny-tasks.json")
PROCESSORS: Final = 8
RESOURCE: Final = "north-pool"
SCRIPTS: Final = {"true": ("true", 0.01), "sleep .05": ("sleep .05", 0.05)}
"""What runs, and how long that is thought to take, seconds."""

TIME_OUT_S: Final = 600.0


class _Site(SiteProcess):
    # Above a Slurm, with one pilot.

    def __init__(self, folder: Path, cluster: SlurmCluster) -> None:
        super().__init__(folder, "north")
        spool = folder / "north-spool"
        spool.mkdir()
        lrms = {
            "kind": "slurm",
            "settle_s": 0.0,
            "spool": str(spool),
            "completion_log": cluster.completion_log,
            "configuration": cluster.environment["SLURM_CONF"],
        }
        pool = {"resource_id": "pool", "processors": PROCESSORS, "pilot": {"wall_time": "1h"}}
        pilots = {"listen": f"127.0.0.1:{free_port()}"}
        made = document(folder, "north", PROCESSORS, lrms=lrms, resources=[pool], pilots=pilots)
        made["journal"]["survives"] = "power_loss"
        self.config.write_text(to_toml(made))


def _task(name: str, line: str, work: float) -> tuple[Task, Program]:
    alternatives = (Alternative.of(RESOURCE),)
    return Task(name, work, alternatives), Program(name, f"#!/bin/sh\n{line}\n")


def _as_workflow(client: BrokerClient, name: str, line: str, work: float, count: int) -> str:
    made = [_task(f"t{number}", line, work) for number in range(count)]
    workflow = Workflow(name, tuple(task for task, _ in made))
    return client.submit(workflow, [program for _, program in made], key=name).workflow_id


def _as_array(client: BrokerClient, name: str, line: str, work: float, count: int) -> str:
    workflow_id = client.open(OpenWorkflow(name, ()), key=name).workflow_id
    elements = tuple((str(number),) for number in range(count))
    client.add(workflow_id, [Addition(*_task("t", line, work), elements)])
    client.close(workflow_id)
    return workflow_id


def _one_by_one(client: BrokerClient, name: str, line: str, work: float, count: int) -> str:
    workflow_id = client.open(OpenWorkflow(name, ()), key=name).workflow_id
    for number in range(count):
        client.add(workflow_id, [Addition(*_task(f"t{number}", line, work))])
    client.close(workflow_id)
    return workflow_id


WAYS: Final[dict[str, Callable[[BrokerClient, str, str, float, int], str]]] = {
    "workflow": _as_workflow,
    "array": _as_array,
    "one by one": _one_by_one,
}


def _processor_s(pids: Sequence[int]) -> float:
    # Of processes with the children that they have waited for.
    ticks = os.sysconf("SC_CLK_TCK")
    seconds = 0.0
    for pid in pids:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seconds += sum(map(int, words[11:15])) / ticks
    return seconds


def _agent() -> int:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(b"/.pilots/" in word for word in words) and b"python" in words[0]:
            return int(path.parent.name)
    raise RuntimeError("the pilot is not to be found")


def _wait(until: Callable[[], bool]) -> None:
    pause, latest = threading.Event(), time.monotonic() + TIME_OUT_S
    while not until():
        if time.monotonic() > latest:
            raise TimeoutError
        pause.wait(0.05)


def measured(count: int, ways: Sequence[str], grouped_s: float) -> dict[str, Any]:
    """Returns all figures; `grouped_s` is the broker's setting, seconds."""
    figures: dict[str, Any] = {"load_average": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory(
        prefix="hanse-", dir="/tmp"
    ) as place:  # sockets have short paths
        folder = Path(place)
        cluster = SlurmCluster(folder / "cluster", nodes=1, cpus=PROCESSORS)
        cluster.up()
        try:
            site = _Site(folder, cluster)
            config = configure(
                folder, site.entry() + "learn = true\n", slot=10.0, every=30.0, margin=1.0
            )
            text = config.read_text().replace("[cycle]", f"[cycle]\ngrouped_s = {grouped_s}")
            config.write_text(text)
            with sites_running([site]) as sites, serving(config) as (process, client):
                _wait(lambda: bool(client.resources()))
                first = _as_workflow(client, "warm", "true", 0.01, 2)
                client.wait(first)
                pids = {"broker": process.pid, "site": sites["north"].pid, "pilot": _agent()}
                for what, (line, work) in SCRIPTS.items():
                    for way in ways:
                        name = f"{way} {what}"
                        before = {part: _processor_s([pid]) for part, pid in pids.items()}
                        began = time.monotonic()
                        workflow_id = WAYS[way](client, name, line, work, count)
                        handed_in = time.monotonic() - began
                        found = client.wait(workflow_id)
                        seconds = time.monotonic() - began
                        figures[name] = {
                            "tasks": count,
                            "completed": sum(each.exit_code == 0 for each in found.tasks),
                            "runs": sum(each.runs for each in found.tasks),
                            "handed_in_s": round(handed_in, 2),
                            "per_s": round(count / seconds, 1),
                            "processor_ms_per_task": {
                                part: round(1000 * (_processor_s([pid]) - before[part]) / count, 2)
                                for part, pid in pids.items()
                            },
                        }
                        print(name, json.dumps(figures[name]), flush=True)
        finally:
            cluster.down()
    return figures


def main() -> None:
    """Measures, and writes the figures."""
    parser = options_of(__doc__)
    parser.add_argument("--tasks", type=int, default=1000, help="how many (%(default)s)")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS, help="of handing in")
    parser.add_argument("--grouped", type=float, default=5.0, help="cycle.grouped_s (%(default)s)")
    parser.add_argument("--dry", action="store_true", help="do not write figures-tiny-tasks.json")
    given = parser.parse_args()
    figures = measured(given.tasks, given.ways, given.grouped)
    if not given.dry:
        document = {"machine": machine(), "figures": figures}
        keep(FIGURES, document)


if __name__ == "__main__":
    main()
