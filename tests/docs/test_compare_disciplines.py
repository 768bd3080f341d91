"""What docs/how-to/compare-disciplines.md shows is what comes out."""

import re
from pathlib import Path

import pytest

from lrms_sim.cli.compare_command import compare
from lrms_sim.cli.main import run_command

TEXT = (Path(__file__).parents[2] / "docs/how-to/compare-disciplines.md").read_text("utf-8")


def test_files_and_options_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table names every file that a comparison leaves, and no other; options are the command's."""
    monkeypatch.chdir(tmp_path)
    assert run_command(["generate", "--processors", "16", "--jobs", "50", "-o", "log.swf"]) == 0
    assert run_command(["compare", "log.swf", "--disciplines", "fcfs,easy", "--shifts", "2"]) == 0
    rows = re.findall(r"^\| (`[a-z]+\.[a-z]+`.*?) \|", TEXT, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert named - {"notes.jsonl"} == {path.name for path in Path("out/compare").iterdir()}
    known = {name for option in compare.params for name in option.opts}
    assert set(re.findall(r"`(--[a-z-]+)", TEXT)) - known == set()


@pytest.mark.traces
def test_the_tables_are_what_comes_out(
    traces_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the command and of the Python code, which have the same figures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HANSE_TRACES", str(traces_folder))
    (line,) = re.findall(r"^    lrms-sim (compare .*)", TEXT, re.MULTILINE)
    assert run_command(line.split()) == 0
    first, second = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
    assert first in capsys.readouterr().out
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "page", "exec"), {"__name__": "page"})  # noqa: S102  # our own page
    assert capsys.readouterr().out == second
