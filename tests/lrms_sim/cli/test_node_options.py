"""`lrms-sim run --nodes`: from files to figures of nodes."""

from pathlib import Path

import pytest

from lrms_sim.cli.main import run_command
from tests.lrms_sim.machine.test_node_files import TEXT
from tests.schemas import printed

LOG = """; MaxProcs: 4096
1 0 -1 100 64 -1 -1 64 100 1048576 1 1 1 -1 -1 -1 -1 -1
2 5 -1 100 4 -1 -1 4 100 -1 1 1 1 -1 -1 -1 -1 -1
3 6 -1 100 4 -1 -1 4 100 -1 1 1 1 -1 -1 -1 -1 -1
"""
REQUESTS = "job_id,tasks,gpus,gpus_per,nodes_max\n2,4,32,job,\n3,4,4,node,1\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Returns the paths of a log, a machine and requests."""
    texts = {"jobs.swf": LOG, "cluster.toml": TEXT, "jobs.csv": REQUESTS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: str(tmp_path / name) for name in texts}


def test_tables_and_json(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Utilization by resource, fragmentation and waits by class; a job that no node holds is dropped."""
    page = tmp_path / "run.html"
    arguments = [
        *("run", files["jobs.swf"], "--nodes", files["cluster.toml"], "--discipline", "easy"),
        *("--requests", files["jobs.csv"]),
    ]
    assert run_command([*arguments, "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert "cluster, 2,560 processors" in out
    assert "64 thin (32 cores, 128 GiB), 8 gpu (64 cores, 512 GiB, 4 GPUs); first-fit" in " ".join(
        out.split()
    )
    assert "4 GPUs a node" in out
    assert "more than the machine's nodes have" in out
    text = page.read_text(encoding="utf-8")
    assert "fragmentation" in text
    assert "on the nodes that they had" in text
    assert "job 3: 4 tasks, 1 node, 4 GPUs a node, for 1 min 40 s" in text
    assert run_command([*arguments, "--json"]) == 0
    document = printed("lrms-sim-run", capsys.readouterr().out)
    nodes = document["nodes"]
    assert nodes["utilization"]["cores"] == pytest.approx((64 + 4) * 100 / (2560 * 106))
    assert nodes["utilization"]["gpus"] == pytest.approx(4 * 100 / (32 * 106))
    assert [row["name"] for row in nodes["waits_by_gpus"]] == ["no GPU", "4 GPUs a node"]
    assert [row["name"] for row in nodes["waits_by_memory"]] == ["no memory", "up to 1 GiB a core"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--requests", "jobs.csv"], "--requests goes with --nodes"),
        (["--nodes", "cluster.toml", "--processors", "3"], "--nodes and --processors exclude"),
        (["--nodes", "cluster.toml", "--dependencies"], "--nodes and --dependencies exclude"),
        (["--nodes", "cluster.toml", "--repeat", "3"], "--nodes and --repeat exclude"),
        (["--nodes", "cluster.toml", "--discipline", "sjf"], "'sjf' knows no nodes; with --nodes"),
        (["--nodes", "jobs.csv"], "no TOML"),
        (["--nodes", "cluster.toml", "--requests", "jobs.swf"], "no column job_id"),
        (
            [
                *("--nodes", "cluster.toml", "--requests", "jobs.csv"),
                *("--too-wide", "error"),
            ],
            "job 2 asks for 4 tasks, 32 GPUs, which machine 'cluster' does not have",
        ),
    ],
)
def test_mistakes(
    files: dict[str, str], more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line each."""
    assert run_command(["run", files["jobs.swf"], *(files.get(word, word) for word in more)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1


def test_a_discipline_in_python_sees_nodes(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named as on a machine of processors."""
    arguments = ["run", files["jobs.swf"], "--nodes", files["cluster.toml"], "--discipline"]
    name = "tests.lrms_sim.machine.test_nodes:Packing"
    assert run_command([*arguments, name]) == 0
    assert "fragmentation" in capsys.readouterr().out
