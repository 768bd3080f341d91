from pathlib import Path

import pytest

from broker.cli.main import run_command
from broker.io.pools import read_file


def run(*arguments: str) -> int:
    return run_command(list(arguments))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_generate_writes_pools(elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """To standard output or to a file, whose name says the format; reproducibly."""
    assert run("generate", "pool", "--resources", "3", "--seed", "4") == 0
    text = capfd.readouterr().out
    assert run("generate", "pool", "--resources", "3", "--seed", "4", "-o", "g.toml") == 0
    assert run("generate", "pool", "--resources", "3", "--seed", "4", "-o", "g.json") == 0
    assert (elsewhere / "g.toml").read_text() == text
    pools = [read_file(elsewhere / name).pool.resources for name in ("g.toml", "g.json")]
    assert pools[0] == pools[1]
    assert len(pools[0]) == 3


def test_generated_benchmarks_can_be_planned(
    elsewhere: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One file has all; the same options give the same bytes."""
    options = ["--class", "lRsD", "--tasks", "30", "--resources", "5", "--seed", "7"]
    assert run("generate", "benchmark", *options, "-o", "b.json") == 0
    assert run("generate", "benchmark", *options) == 0
    assert capfd.readouterr().out == (elsewhere / "b.json").read_text()
    assert run("plan", "b.json", "--evaluations", "60", "--workers", "1", "--method", "gleam") == 0
    assert "30 tasks of " in capfd.readouterr().out
