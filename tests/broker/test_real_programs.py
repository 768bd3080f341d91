"""Programs of two diamonds over two real Slurms that have no folder in common, with kills in the middle.

Each task is an ordinary job of the batch system that the plan has chosen, or runs in its pilot. What the tests themselves watch (who has
begun, and a gate) lies in a folder that both can see; nothing that the broker or a site does goes over it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from grms.daemon.ports import free_port
from lrms_sim.util.files import to_toml
from tests.broker.brokers import configure, serving
from tests.broker.site_processes import SiteProcess
from tests.broker.site_processes import running as sites_running
from tests.clusters.slurm import SlurmCluster, need_slurm, wait_for
from tests.examples import THOROUGH
from tests.grms.site.daemons import document
from tests.programs import run_program

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("forks")]

GORBA: Final = (sys.executable, "-c", "from broker.command import main; main()")
SITES: Final = ("north", "south")
CPUS: Final = 12
MIDDLE: Final = tuple(f"m{number}" for number in range(10))
# A controller that is killed may forget a job, and its limit with it: the long one is at the other site.
FAILS, LONG, FORGETS = "m2", "m4", "m7"


class SlurmSite(SiteProcess):
    """A site over a Slurm, whose jobs the broker submits as one of its users, or which has a pilot for it."""

    def __init__(self, folder: Path, name: str, cluster: SlurmCluster, way: str) -> None:
        super().__init__(folder, name)
        spool = folder / f"{name}-spool"
        spool.mkdir()
        lrms = {
            "kind": "slurm",
            "poll_s": 0.4,
            "settle_s": 0.0,
            "spool": str(spool),
            "completion_log": cluster.completion_log,
            "configuration": cluster.environment["SLURM_CONF"],
        }
        more: dict[str, Any] = {}
        if way == "pilots":
            pilot = {"wall_time": "30min", "idle_limit": "5min"}
            more["resources"] = [{"resource_id": "pilots", "processors": CPUS, "pilot": pilot}]
            more["pilots"] = {"listen": f"127.0.0.1:{free_port()}"}
        self.config.write_text(to_toml(document(folder, name, CPUS, lrms=lrms, **more)))
        self.way = way

    def site_entry(self) -> str:
        """Returns its part of a broker's configuration."""
        more = "learn = true\n" if self.way == "pilots" else f"jobs = {{ processors = {CPUS} }}\n"
        return self.entry() + more


@contextmanager
def slurms(folder: Path, *names: str) -> Iterator[dict[str, SlurmCluster]]:
    """Yields clusters of one node each."""
    clusters = {name: SlurmCluster(folder / f"slurm-{name}", nodes=1, cpus=CPUS) for name in names}
    try:
        for cluster in clusters.values():
            cluster.up()
        yield clusters
    finally:
        for cluster in clusters.values():
            cluster.down()


def task(name: str, line: str, folder: Path, **more: Any) -> dict[str, Any]:
    """Returns a task that notes that it has begun, and then runs a line."""
    noted = f"echo {name} >>{folder}/begun; {line}"
    return {"name": name, "work": 2.0, "limit": 300.0, "command": noted, **more}


def diamond(name: str, folder: Path, way: str, *, bad: bool) -> dict[str, Any]:
    """Returns a workflow of twelve commands: one, ten beside each other, one that is given what they leave.

    Those in the middle wait for a gate. Where it is `bad`, one of them ends with exit code 3, one runs over its
    limit, and one leaves no output.
    """
    waits = f"while [ ! -e {folder}/gate ]; do sleep 0.1; done; "
    tasks = [
        task(
            f"{name}-top",
            "cat data.csv >numbers; echo read by $READER",
            folder,
            inputs=["data.csv"],
            outputs=["numbers"],
            environment={"READER": "x'y"},
        )
    ]
    for number, middle in enumerate(MIDDLE):
        line = waits + f"sed -n {number + 1}p table >part; echo part {number}"
        more: dict[str, Any] = {}
        if bad and middle == FAILS:
            line += "; echo not well >&2; exit 3"
        elif bad and middle == LONG:
            line, more = "exec sleep 600", {"limit": 5.0}
        elif bad and middle == FORGETS:
            line += "; rm part"
        site = SITES[number % 2]
        tasks.append(
            task(
                f"{name}-{middle}",
                line,
                folder,
                inputs={"table": f"{name}-top/numbers"},
                outputs=["part"],
                alternatives=[f"{site}-{way}"],
                **more,
            )
        )
    parts = {f"part-{each}": {"task": f"{name}-{each}", "output": "part"} for each in MIDDLE}
    tasks.append(task(f"{name}-end", "cat part-* >all", folder, inputs=parts, outputs=["all"]))
    return {"name": name, "tasks": tasks}


def gorba(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return run_program(
        [*GORBA, *words],
        env={**os.environ, "GORBA_SOCKET": str(folder / "gorba.sock")},
        cwd=folder,
        timeout=300,
    )


def begun(folder: Path) -> list[str]:
    """Returns the tasks that have begun to run, as often as they have."""
    path = folder / "begun"
    return path.read_text().split() if path.exists() else []


def tasks_of(folder: Path, workflow: str) -> dict[str, dict[str, Any]]:
    """Returns the tasks of a workflow as `gorba status` shows them, without the workflow's name before theirs."""
    shown = json.loads(gorba(folder, "status", workflow, "--json").stdout)
    return {each["name"].partition("-")[2]: each for each in shown["tasks"]}


@pytest.mark.parametrize("way", ["jobs", "pilots"])
def test_two_diamonds_run_once_whatever_is_killed(way: str, tmp_path: Path) -> None:
    """Broker, a site's daemon and a controller are killed while twenty programs run.

    States, exit codes and outputs are right, and `--wait` says by its status what came of a workflow.
    """
    need_slurm()
    folder = tmp_path
    (folder / "data.csv").write_text("".join(f"{number * number}\n" for number in range(10)))
    flows = [diamond("good", folder, way, bad=False), diamond("bad", folder, way, bad=True)]
    for flow in flows:
        (folder / f"{flow['name']}.toml").write_text(to_toml({"workflows": [flow]}))
    with slurms(folder, *SITES) as clusters:
        made = [SlurmSite(folder, name, cluster, way) for name, cluster in clusters.items()]
        limits = "[limits]\nsite_down_s = 5.0\n"
        config = configure(folder, limits + "".join(site.site_entry() for site in made), slot=1.0)
        with sites_running(made) as sites, serving(config) as (process, client):
            wait_for(len(client.resources()) == 2 for _ in iter(int, 1))
            waiting = {
                flow["name"]: subprocess.Popen(  # noqa: S603  # this program
                    [*GORBA, "submit", f"{flow['name']}.toml", "--key", flow["name"], "--wait"],
                    env={**os.environ, "GORBA_SOCKET": str(folder / "gorba.sock")},
                    cwd=folder,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for flow in flows
            }
            wait_for(len(begun(folder)) >= 22 for _ in iter(int, 1))
            assert gorba(folder, "logs", "good", "good-top").stdout == "read by x'y\n"
            # A controller forgets what it has not saved, and its nodes end the jobs that it does not know.
            saved, now = folder / "slurm-south/state/job_state", time.time()
            clusters["south"].ask("sbatch", "--hold", "--output=/dev/null", "--wrap=true")
            wait_for(saved.exists() and saved.stat().st_mtime > now for _ in iter(int, 1))
            process.end(signal.SIGKILL)
            sites["north"].kill()
            clusters["south"].kill_controller()
            process.start()
            sites["north"].start()
            clusters["south"].start_controller()
            (folder / "gate").touch()
            said = {name: each.communicate(timeout=300) for name, each in waiting.items()}
            status = {name: each.returncode for name, each in waiting.items()}
            assert status == {"good": 0, "bad": 1}, said
            for name in (FAILS, LONG, FORGETS):
                assert f"  bad-{name}: failed: " in said["bad"][1]

            good = tasks_of(folder, "good")
            assert {each["state"] for each in good.values()} == {"completed"}
            assert {each["exit_code"] for each in good.values()} == {0}
            assert {each["runs"] for each in good.values()} == {1}
            assert gorba(folder, "fetch", "good", "--output", "came").returncode == 0
            everything = (folder / "came/good-end/all").read_text()
            assert everything == (folder / "data.csv").read_text()
            assert (folder / "came/good-m3/stdout").read_text() == "part 3\n"

            bad = tasks_of(folder, "bad")
            ends = {
                name: (each["state"], each["outcome"], each["exit_code"], each["runs"])
                for name, each in bad.items()
            }
            assert ends.pop(FAILS) == ("failed", "failed", 3, 1)
            assert ends.pop(FORGETS) == ("failed", "failed", 0, 1)
            state, outcome, _, runs = ends.pop(LONG)
            assert (state, outcome, runs) == ("failed", "timeout", 1)
            assert ends.pop("end") == ("cancelled", None, None, 0)
            assert set(ends.values()) == {("completed", "completed", 0, 1)}
            assert "'part'" in bad[FORGETS]["reason"]
            assert gorba(folder, "logs", "bad", f"bad-{FAILS}", "--stderr").stdout == "not well\n"
            process.end(signal.SIGTERM)
    ran = begun(folder)
    assert sorted(ran) == sorted(
        name["name"] for flow in flows for name in flow["tasks"] if name["name"] != "bad-end"
    )


@pytest.mark.parametrize("way", ["jobs", "pilots"] if THOROUGH else ["pilots"])
def test_a_workflow_of_programs_grows_while_it_runs(way: str, tmp_path: Path) -> None:
    """Files of tasks that have ended long ago are given to what is added later, by a broker that was killed since.

    One element of an array exits 3: what waits for it is cancelled, what does not goes on. The recording has what ran well.
    """
    need_slurm()
    folder = tmp_path
    (folder / "lines").write_text("1 0\n2 3\n3 0\n")
    line = f"echo fit-$1 >>{folder}/begun; sed -n $1p numbers >part; exit $2"
    more = [
        {"name": "fit", "work": 2.0, "command": line, "inputs": ["prepare/numbers"], "outputs": ["part"],
         "elements": [["1", "0"], ["2", "3"], ["3", "0"]]},
        task("all", "true", folder, predecessors=["fit"]),
        task("two", "cat a b >both", folder, inputs={"a": "fit/1/part", "b": "fit/3/part"}, outputs=["both"]),
    ]  # fmt: skip
    (folder / "more.toml").write_text(to_toml({"tasks": more}))
    with slurms(folder, "north") as clusters:
        site = SlurmSite(folder, "north", clusters["north"], way)
        config = configure(folder, site.site_entry(), slot=1.0)
        with sites_running([site]), serving(config) as (process, client):
            wait_for(len(client.resources()) == 1 for _ in iter(int, 1))
            opened = gorba(folder, "open", "flow", "--on-failure", "continue")
            assert opened.stdout == "w1\n", opened.stderr
            words = (
                "add",
                "flow",
                "--name",
                "prepare",
                "--work",
                "2s",
                "--result",
                "numbers",
                "--",
            )
            script = f"echo prepare >>{folder}/begun; seq 3 >numbers"
            done = gorba(folder, *words, "sh", "-c", script)
            assert done.returncode == 0, done.stderr
            wait_for(client.get("flow").tasks_completed == 1 for _ in iter(int, 1))
            process.end(signal.SIGKILL)
            process.start()
            for expected in (
                "5 tasks added to w1, which has 6\n",
                "0 tasks added to w1, which has 6\n",
            ):
                done = gorba(folder, "add", "flow", "more.toml")
                assert done.stdout == expected, done.stderr
            assert gorba(folder, "close", "flow").returncode == 0
            ended = gorba(folder, "wait", "flow")
            assert ended.returncode == 1
            assert "fit/2: failed: it has ended with exit code 3" in ended.stderr
            shown = json.loads(gorba(folder, "status", "flow", "--json").stdout)
            assert {each["name"]: each["state"] for each in shown["tasks"]} == {
                "prepare": "completed", "fit/1": "completed", "fit/2": "failed", "fit/3": "completed",
                "all": "cancelled", "two": "completed",
            }  # fmt: skip
            assert gorba(folder, "fetch", "flow", "two", "--output", "came").returncode == 0
            assert (folder / "came/two/both").read_text() == "1\n3\n"
            done = gorba(folder, "record", "flow", "--output", "flow.json")
            assert "2 tasks left out" in done.stderr
            process.end(signal.SIGTERM)
    assert sorted(begun(folder)) == ["fit-1", "fit-2", "fit-3", "prepare", "two"]
    recorded = json.loads((folder / "flow.json").read_text())["workflow"]
    assert [each["id"] for each in recorded["specification"]["tasks"]] == [
        "prepare",
        "fit_1",
        "fit_3",
        "two",
    ]
    assert recorded["execution"]["tasks"][0]["command"] == {
        "program": "sh",
        "arguments": ["-c", script],
    }
    assert [each["inputFiles"] for each in recorded["specification"]["tasks"]] == [
        [], ["numbers"], ["numbers"], ["part", "fit_3.part"],
    ]  # fmt: skip
