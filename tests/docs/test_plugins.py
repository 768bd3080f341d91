"""The example of a distribution with plugins: installed by pip, it is used as the page says."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lrms_sim.cli.main
import scenarios.cli.main
from grms.v1 import job_pb2, request_pb2
from tests.docs.typed import blocks, page
from tests.grms.site.daemons import Running, document, running
from tests.waiting import TIME_OUT_S, until

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "plugin"
PAGE = page("plugins.md")
PROGRAMS = {"lrms-sim": lrms_sim.cli.main.run_command, "scenario": scenarios.cli.main.run_command}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder into which pip has installed the example."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    pip += ["--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", folder / "there", folder / "source"], check=True)  # noqa: S603  # our own
    return folder / "there"


@pytest.fixture
def installed(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the example on Python's path, in a folder of the test."""
    monkeypatch.syspath_prepend(built)
    monkeypatch.chdir(tmp_path)


def test_what_the_page_shows_is_the_example() -> None:
    """Every block of code stands in one of its files."""
    files = [path.read_text() for path in EXAMPLE.rglob("*") if path.suffix in {".py", ".toml"}]
    shown = [*blocks(PAGE, "python"), *blocks(PAGE, "toml")]
    assert len(shown) >= 5
    for block in shown:
        assert any(block.strip() in file for file in files), block


@pytest.mark.usefixtures("installed")
def test_discipline_importer_and_study(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands of the page, by the names of the example; what cannot be read is counted."""
    lines = ["0 5 15 20 2 ann", "3 15 20 9 2 ben", "4 20 25 9 2 ann", "4 20 x 9 2 ann", "4 20 25"]
    Path("cards.txt").write_text("\n".join(lines) + "\n")
    said = []
    for line in blocks(PAGE, "console")[0].splitlines():
        _, program, *words = line.split()
        assert PROGRAMS[program](words) == 0, capsys.readouterr().err
        said.append(capsys.readouterr().out)
    assert "3 jobs of 2 users written to jobs.swf" in said[0]
    assert "(first in line 4: '4 20 x' are no three times)" in said[0]
    assert "lifo" in said[1]
    assert "last come first: AWRT" in said[2]


def texts(queue: Path) -> list[str]:
    """Returns the files of a queue."""
    return [path.read_text() for path in queue.glob("*.json")]


@pytest.mark.usefixtures("installed")
async def test_a_site_above_the_example_of_a_batch_system(tmp_path: Path) -> None:
    """Jobs start when there is room, end as their scripts end, and can be cancelled."""
    queue = tmp_path / "queue"
    lrms = {"kind": "shell-queue", "queue": str(queue), "poll_s": 0.05}

    async def submitted(site: Running, script: str, processors: int) -> str:
        request = job_pb2.SubmitRequest(idempotency_key=f"{script} {processors}")
        request.request.processors = processors
        request.request.requested_time_s = 600.0
        request.request.program.script = f"#!/bin/sh\n{script}\n"
        return str((await site.jobs.Submit(request, timeout=TIME_OUT_S)).job_id)

    async with running(document(tmp_path, lrms=lrms), tmp_path) as site:
        long = await submitted(site, "sleep 600", 3)
        wide = await submitted(site, "exit 3", 2)
        narrow = await submitted(site, "exit 0", 1)
        await until(lambda: any('"process": 0' not in text for text in texts(queue)))
        await site.jobs.Cancel(job_pb2.CancelRequest(job_id=long), timeout=TIME_OUT_S)
        outcomes = [(await site.ended(job)).outcome for job in (long, wide, narrow)]
        assert outcomes == [
            request_pb2.OUTCOME_CANCELLED,
            request_pb2.OUTCOME_FAILED,
            request_pb2.OUTCOME_COMPLETED,
        ]
        await until(lambda: not any(queue.iterdir()))
