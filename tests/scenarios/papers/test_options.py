"""What the commands of studies have in common."""

from pathlib import Path
from typing import Any

from scenarios.papers.options import run_and_tell


def test_the_page_is_told(tmp_path: Path, capsys: Any) -> None:
    """When the study is over."""
    run_and_tell(lambda options, *_: tmp_path / str(options), "page")
    assert capsys.readouterr().out == f"\nWritten to {tmp_path / 'page'}\n"
