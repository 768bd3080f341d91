"""Ordinary `sbatch` jobs that a site moves to its partner, above two batch systems."""

import subprocess
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from grms.client import Client
from grms.daemon.ports import free_port
from tests.clusters.fake_slurm import FakeSlurm
from tests.clusters.slurm import REAL_SLURM, SlurmCluster, need_slurm
from tests.grms.site.daemons import Running, document, running
from tests.grms.site.test_real_batch import table
from tests.services import need
from tests.source_imports import ROOT
from tests.waiting import TIME_OUT_S, until

CPUS = 4
EXAMPLES = ROOT / "docs/examples"
SNIPPET = EXAMPLES / "job_submit.lua"


def cluster(
    kind: type[SlurmCluster] | type[FakeSlurm], folder: Path, *, plugin: bool
) -> SlurmCluster | FakeSlurm:
    """Returns a cluster; where it is a real one, with the plugin of the documentation."""
    if kind is FakeSlurm or not plugin:
        return kind(folder, nodes=1, cpus=CPUS)
    folder.mkdir()
    (folder / "job_submit.lua").write_text(SNIPPET.read_text(encoding="utf-8"))
    return SlurmCluster(folder, nodes=1, cpus=CPUS, more="JobSubmitPlugins=lua\n")


def state(machine: SlurmCluster | FakeSlurm, number: str) -> Callable[[], str]:
    """Returns what asks for the state and the reason of a job."""

    def ask() -> str:
        for line in machine.ask("squeue", "-h", "-t", "all", "-o", "%i|%t|%r").splitlines():
            if line.startswith(f"{number}|"):
                return line.partition("|")[2]
        return ""

    return ask


@pytest.mark.parametrize("kind", [FakeSlurm, REAL_SLURM])
async def test_a_job_with_a_comment_goes_where_there_is_room(
    kind: type[SlurmCluster] | type[FakeSlurm], tmp_path: Path
) -> None:
    """One stays and runs as its user's, one runs at the partner and no more here, one is nobody else's."""
    if kind is SlurmCluster:
        need_slurm()
    ports = {name: free_port() for name in ("north", "south")}
    gate, log = tmp_path / "gate", tmp_path / "log"
    script = tmp_path / "job.sh"
    script.write_text(
        f"#!/bin/sh\nwhile ! test -e {gate}; do sleep 0.1; done\necho ran >>{log}\necho said\n"
    )
    script.chmod(0o755)
    with ExitStack() as clusters:
        machines = {}
        for name in ports:
            machines[name] = cluster(kind, tmp_path / f"cluster-{name}", plugin=name == "north")
            clusters.callback(machines[name].down)
            machines[name].up()
        async with AsyncExitStack() as daemons:
            sites: dict[str, Running] = {}
            for name, partner in (("north", "south"), ("south", "north")):
                lrms = table(machines[name], tmp_path / f"spool-{name}")
                if name == "north":
                    lrms["watch"] = {"comment": "grid", "poll_s": 0.3}
                written = document(
                    tmp_path, name, CPUS, {partner: ports[partner]}, ports[name], lrms=lrms
                )
                sites[name] = await daemons.enter_async_context(running(written, tmp_path))
            for site in sites.values():
                await site.linked()
            ask = machines["north"].ask
            words = (
                "--parsable",
                "--time=5",
                "--output=/dev/null",
                "--error=/dev/null",
                f"--chdir={tmp_path}",
            )
            # Without the plugin it may start before anybody sees it.
            held = ("--hold", "--comment=grid:held") if kind is FakeSlurm else ("--comment=grid",)
            grid = (*words, *held)
            stays = ask("sbatch", *grid, f"--ntasks={CPUS}", str(script)).strip()
            await until(lambda: state(machines["north"], stays)() == "R|None")
            engine = sites["north"].core.engine
            (first,) = engine.state.jobs()
            await until(lambda: first.outcome is not None)
            assert (first.outcome.value, first.partner) == ("cancelled", "")  # type: ignore[union-attr]  # just awaited
            assert f"job {stays} of the batch system" in first.reason
            await until(lambda: free(sites["north"]) == 0)

            goes = ask("sbatch", *grid, "--ntasks=2", str(script)).strip()
            own = ask("sbatch", *words, "--ntasks=1", str(script)).strip()
            argued = ask("sbatch", *grid, "--ntasks=1", str(script), "a b").strip()
            await until(lambda: state(machines["north"], goes)().startswith("CA"))
            job = list(engine.state.jobs())[1]
            assert (job.partner, job.user) == ("south", first.user)
            for other in (own, argued):
                waits = state(machines["north"], other)
                await until(lambda waits=waits: waits() in {"PD|Resources", "PD|Priority"})  # type: ignore[misc]  # of this turn
            gate.touch()
            ended = await sites["north"].ended(job.job_id)
            assert (ended.executed_on, ended.exit_code) == ("south", 0)
            await until(lambda: log.exists() and len(log.read_text().splitlines()) == 4)  # jobs
            async with Client(tmp_path / "north.sock", timeout_s=TIME_OUT_S) as user:
                await user.results(job.job_id, wait=True)
                said = b"".join([some async for some in user.fetch(job.job_id, "stdout")])
            assert said == b"said\n"
            assert len(list(engine.state.jobs())) == 2  # the others are none of the site's


def free(site: Running) -> int | None:
    """Returns how many processors the site knows to be free."""
    load = site.core.driver.load()
    return None if load is None else load.processors_free


@pytest.mark.parametrize(
    ("name", "lines"), [("sudoers", 1), ("sudoers-guests", 2), ("sudoers-users", 2)]
)
def test_the_lines_for_sudo_are_right(name: str, lines: int) -> None:
    """They are what the page shows."""
    text = "".join((EXAMPLES / name).read_text(encoding="utf-8").splitlines(keepends=True)[-lines:])
    assert f"```sudoers\n{text}```" in (ROOT / "docs/operating.md").read_text(encoding="utf-8")


@pytest.mark.services
@pytest.mark.parametrize("name", ["sudoers", "sudoers-guests", "sudoers-users"])
def test_sudo_takes_its_lines(name: str) -> None:
    """As its own checker says."""
    visudo = need("sudo", "visudo")
    words = [visudo, "-c", "-f", str(EXAMPLES / name)]
    subprocess.run(words, check=True, capture_output=True, timeout=TIME_OUT_S)  # noqa: S603  # it only reads


def test_the_plugin_is_what_the_documentation_shows() -> None:
    """Whoever copies it from the page has what was tried."""
    page = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    assert f"```lua\n{SNIPPET.read_text(encoding='utf-8')}```" in page
