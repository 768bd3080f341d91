"""An option is said once: as a field of what a study is given."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
from click.testing import CliRunner

from scenarios.papers.options import FOLDER, Option, run_and_tell, takes


@dataclass(frozen=True)
class Options:
    """What a user asks for."""

    folder: Annotated[Path, Option("Folder of everything.", FOLDER)]
    more_draws: Annotated[int, Option("So many.", least=1, most=9)] = 3
    logs: Annotated[bool, Option("None.", "--no-logs")] = True
    hidden: int = 7
    workers: Annotated[int | None, Option("[default: one a processor]", least=1, most=4)] = None


def given(*words: str) -> tuple[str, list[dict[str, Any]]]:
    """Returns what a command with these options prints, and what it is given."""
    taken: list[dict[str, Any]] = []

    @click.command()
    @takes(Options, "more_draws", click.option("--own", is_flag=True), "folder", "logs", "workers")
    def command(**chosen: Any) -> None:
        taken.append(chosen)

    return CliRunner().invoke(command, words).output, taken


def test_a_field_is_an_option() -> None:
    """Its default is the field's; what the field does not allow is refused."""
    plain = {"folder": None, "more_draws": 3, "logs": True, "workers": None, "own": False}
    assert given() == ("", [plain])
    words = ["--more-draws", "5", "--no-logs", "--output", "x", "--workers", "2", "--own"]
    (taken,) = given(*words)[1]
    assert taken == {
        "folder": Path("x"),
        "more_draws": 5,
        "logs": False,
        "workers": 2,
        "own": True,
    }
    text, none = given("--workers", "5")
    assert "5 is not in the range 1<=x<=4" in text
    assert none == []


def test_help_lists_options_in_the_order_asked_for() -> None:
    """With defaults, where these are to be read; fields that are no options are left out."""
    text = " ".join(given("--help")[0].split())
    places = [text.index(flag) for flag in ("--more-draws", "--own", "--output", "--no-logs")]
    assert places == sorted(places)
    assert "So many. [default: 3; 1<=x<=9]" in text
    assert "None. --workers" in text
    assert "hidden" not in text


def test_the_page_is_told(tmp_path: Path, capsys: Any) -> None:
    """When the study is over."""
    run_and_tell(lambda options, *_: tmp_path / str(options), "page")
    assert capsys.readouterr().out == f"\nWritten to {tmp_path / 'page'}\n"
