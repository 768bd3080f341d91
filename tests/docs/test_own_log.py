"""What docs/how-to/own-log.md says works as it stands there."""

import re
from pathlib import Path

from lrms_sim.cli import run_command
from scenarios.run.replay import check_files
from scenarios.spec.files import load_spec
from tests.lrms_sim.accounting.test_importing import SACCT

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-log.md"


def test_the_commands_and_the_scenario(tmp_path: Path) -> None:
    """The columns it names are enough, the log runs, and the scenario is valid beside it."""
    text = PAGE.read_text(encoding="utf-8")
    columns = re.search(r"-o (JobID\S+)", text)
    assert columns is not None
    assert columns.group(1).split(",") == SACCT[0].split("|")
    (tmp_path / "jobs.txt").write_text("\n".join(SACCT), encoding="utf-8")
    (line,) = re.findall(r"lrms-sim (import sacct .*)", text)
    words = [str(tmp_path / word) if word.startswith("jobs.") else word for word in line.split()]
    assert run_command(words) == 0
    log = str(tmp_path / "jobs.swf.gz")
    for line in re.findall(r"lrms-sim ((?:info|run) .*)", text):
        words = line.replace("jobs.swf.gz", log).replace("easy.html", str(tmp_path / "easy.html"))
        assert run_command(words.split()) == 0
    assert (tmp_path / "easy.html").exists()
    (scenario,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "who-would-gain.toml").write_text(scenario, encoding="utf-8")
    check_files(load_spec(tmp_path / "who-would-gain.toml"))
