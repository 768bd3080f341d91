"""Every console line of the README runs as it stands there."""

import os
import re
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from lrms_sim.util.trace_folders import LOG_FILES
from lrms_sim.workload.lublin import generate
from lrms_sim.workload.swf import write_swf
from lrms_sim.workload.swf_log import SwfHeader
from tests.programs import run_program

ROOT = Path(__file__).resolve().parents[2]

NOT_RUN = {
    "git clone": "needs a network",
    "pip install": "needs a network; `.ci/run` does it with the wheel",
    "make run": "is what `.ci/run` does",
    "make test": "would run this test",
    "source .venv/bin/activate": "is the shell's",
    "scenario run batch-and-workflows": "is run by tests/scenarios/test_library.py",
    "scenario fetch": "needs a network",
    "scenario prove": "takes minutes; tests/scenarios/prove runs it with fewer faults",
}
"""Beginnings of lines that are not run here, and why."""

SHORTER = {
    "--search-time 10s": "--search-time 0.2s",
    "--partner south": "--partner south --generations 1",
    "my-grid.toml --live": "my-grid.toml --live --first 300",
    "run synthetic-three-sites": "run synthetic-three-sites --first 200",
}
"""What is made quicker of lines that take their time."""


def console_lines() -> list[str]:
    """Returns the commands of the README's console blocks, without their comments."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines)
    return [line.removeprefix("$ ").partition("   #")[0].strip() for line in lines]


COMMANDS = {"lrms-sim": "lrms_sim", "grms": "grms", "gorba": "broker", "scenario": "scenarios"}
"""The package of each command."""


def words_of(line: str) -> list[str]:
    """Returns the program and the arguments of a line; commands begin as their scripts begin them."""
    command, *arguments = shlex.split(line)
    program = f"from {COMMANDS[command]}.command import main; main()"
    return [sys.executable, "-c", program, *arguments]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder like a checkout, with small logs in place of the recorded ones."""
    folder = tmp_path_factory.mktemp("hanse")
    shutil.copytree(ROOT / "docs", folder / "docs")
    (folder / "logs").mkdir()
    for seed, name in enumerate(LOG_FILES.values()):
        jobs = generate(100, duration=200 * 86400.0, load=0.1, seed=seed)
        write_swf(folder / "logs" / name, jobs, SwfHeader(("; MaxProcs: 100",)))
    return folder


def test_every_line_is_run_or_says_why_not() -> None:
    """No exception stands here for a line that is gone."""
    lines = console_lines()
    assert len(lines) > 12
    for beginning in NOT_RUN:
        assert any(line.startswith(beginning) for line in lines), beginning


@pytest.mark.usefixtures("forks")
def test_the_readme_runs_from_top_to_bottom(place: Path) -> None:
    """Each line ends with status 0, in the order of the page, in one folder."""
    environment = {
        **os.environ,
        "HANSE_TRACES": str(place / "logs"),
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    ran = 0
    for line in console_lines():
        if any(line.startswith(beginning) for beginning in NOT_RUN):
            continue
        for long, short in SHORTER.items():
            line = line.replace(long, short)  # noqa: PLW2901  # the same line, quicker
        done = run_program(words_of(line), cwd=place, env=environment, timeout=120)
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        ran += 1
    assert ran >= 12
