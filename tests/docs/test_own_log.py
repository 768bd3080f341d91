"""What docs/how-to/own-log.md says works as it stands there."""

import json
import re
from pathlib import Path

import pytest

from lrms_sim.cli.main import run_command
from scenarios.cli.main import run_command as run_scenario
from tests.lrms_sim.workload.accounting.test_importing import SACCT

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-log.md"


def test_from_sacct_to_who_would_gain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The columns it names are enough, two commands lead to an answer, and the log runs alone too."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    columns = re.search(r"-o (JobID\S+)", text)
    assert columns is not None
    assert columns.group(1).split(",") == SACCT[0].split("|")
    Path("jobs.txt").write_text("\n".join(SACCT), encoding="utf-8")
    (scenario,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    # The partner's log is as long as a test has time for.
    Path("who-would-gain.toml").write_text(scenario.replace("20000", "200"), encoding="utf-8")
    (first,) = re.findall(r"^    lrms-sim (import sacct .*)", text, flags=re.MULTILINE)
    assert run_command(first.split()) == 0
    (second,) = re.findall(r"^    scenario (run .*)", text, flags=re.MULTILINE)
    assert run_scenario([*second.split(), "--no-html"]) == 0
    result = json.loads(Path("gain/result.json").read_text(encoding="utf-8"))
    # Of the four jobs of the sample two say how long they wanted to run.
    assert [(site["name"], site["jobs"]) for site in result["sites"]] == [("ours", 2), ("theirs", 200)]  # fmt: skip
    others = re.findall(r"^    lrms-sim ((?:info|run) .*)", text, flags=re.MULTILINE)
    assert len(others) == 4
    for line in others:
        # Pages have tests of their own, and take a second.
        assert run_command(line.replace(" --html easy.html", "").split()) == 0
