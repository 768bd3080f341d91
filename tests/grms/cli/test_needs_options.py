"""What a job of numbers asks for besides processors, by options of `grms submit`."""

from pathlib import Path

import pytest

from grms.cli.main import run_command
from grms.daemon.ports import free_port
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.grms.cli.test_site_cli import grms
from tests.grms.site.daemons import document, running


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        ("--nodes 2-4 --tasks-per-node 2", Request(8, nodes_min=2, nodes_max=4, tasks_per_node=2)),
        ("--nodes 2", Request(8, nodes_min=2, nodes_max=2)),
        ("--cores-per-task 4", Request(2, 4)),
        ("--memory 4G", Request(8, memory=Memory(4096, "core"))),
        ("--memory 1TiB/node --exclusive", Request(8, memory=Memory(2**20, "node"), exclusive=True)),
        ("--gpus a100:2/node --memory 512m/gpu", Request(8, gpus=Gpus(2, "node", "a100"), memory=Memory(512, "gpu"))),
        ("--gpus 4", Request(8, gpus=Gpus(4))),
        ("--feature a --feature b --licence l:2 --licence k", Request(8, features=("a", "b"), licences=(("l", 2), ("k", 1)))),
        ("--partition a,b --account c --qos d", Request(8, partition="a,b", account="c", qos="d")),
        ("--module gcc/12 --image docker://debian:12", Request(8, modules=("gcc/12",), image="docker://debian:12")),
        ("", None),
    ],
)  # fmt: skip
async def test_options_make_a_request(tmp_path: Path, words: str, needs: Request | None) -> None:
    """The site has it as it was asked for, and waits for a partner that could run it; processors alone are no more than that."""
    partners = {"away": free_port()}  # whose nodes nobody knows yet
    async with running(document(tmp_path, "home", 8, partners), tmp_path) as site:
        socket = tmp_path / "home.sock"
        given = ["submit", "--site", str(socket), "-p", "8", "-t", "60", "--run-time", "1"]
        assert await grms(*given, *words.split()) == 0
        (job,) = site.core.engine.state.jobs()
        expected = None if needs is None else (needs.tasks, str(needs))
        found = job.request.needs
        assert (None if found is None else (found.tasks, str(found))) == expected
        assert found is None or found.wall_time == 60.0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--nodes two", "'two' is no number of nodes; write 2, or 2-4"),
        ("--nodes 9", "9 nodes for 8 tasks"),
        ("--cores-per-task 3", "8 processors are no whole number of tasks with 3 cores each"),
        ("--memory 4", "'4' is no amount of memory; write 4G, or 64G/node"),
        ("--memory 4G/gpu", "memory per GPU, and no GPU is asked for"),
        ("--gpus two", "'two' is no number of GPUs"),
        ("--licence :1", "':1' is no licence"),
        ("--account a,b", "account: 'a,b' is no name"),
    ],
)
def test_what_cannot_be_asked_for_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, text: str
) -> None:
    """Before any site is asked."""
    given = [
        "submit",
        "--site",
        str(tmp_path / "none.sock"),
        "-p",
        "8",
        "-t",
        "60",
        "--run-time",
        "1",
    ]
    assert run_command([*given, *words.split()]) == 2
    assert text in " ".join(capsys.readouterr().err.split())


async def test_an_image_is_refused_where_no_site_runs_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, and with what was asked for: without its image a program would run on the bare node."""
    async with running(document(tmp_path, "home", 8), tmp_path) as site:
        words = ["--site", str(tmp_path / "home.sock"), "-p", "8", "-t", "60", "--run-time", "1"]
        assert await grms("submit", *words, "--image", "x.sif") == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "a simulated machine runs no container images; it asks for x.sif" in said
        assert not site.core.engine.state.memory.jobs
