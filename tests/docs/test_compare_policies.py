"""What docs/how-to/compare-policies.md says works as it stands there."""

import re
import shutil
from pathlib import Path

import pytest

from scenarios.cli.main import run_command

TEXT = (Path(__file__).parents[2] / "docs/how-to/compare-policies.md").read_text(encoding="utf-8")


def test_the_loop_and_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs of the loop, of few jobs, give the table a line for each site."""
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^    scenario (run .*\$seed.*)$", TEXT, re.MULTILINE)
    for policy in ("awf", "fair-exchange"):
        words = line.replace("$seed", "1").replace("$policy", policy)
        assert run_command([*words.split(), "--first", "200"]) == 0
        # A second seed would say nothing new of the page.
        shutil.copytree(f"out/{policy}-1", f"out/{policy}-2")
    capsys.readouterr()
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "page", "exec"), {"__name__": "page"})  # noqa: S102  # our own page
    lines = capsys.readouterr().out.splitlines()
    (shown,) = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
    number = r"[+-]?\d+\.\d"
    assert [re.sub(number, "N", each) for each in lines] == [
        re.sub(number, "N", each) for each in shown.splitlines()
    ]


def test_single_runs_are_commands() -> None:
    """The policies they name are words that there are."""
    single = re.findall(r"^    scenario run synthetic-three-sites --transfer (\S+) --output", TEXT, re.MULTILINE)  # fmt: skip
    assert single[:2] == ["awf", "fair-exchange"]
