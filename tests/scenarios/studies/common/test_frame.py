"""How every study is run, kept and written."""

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from scenarios.studies.common.frame import (
    CaseStudy,
    StudyCommand,
    plain_options,
    print_statements,
    run_cases,
)
from scenarios.studies.common.study_folder import PAGE, RESULT, RUNS, TABLE
from scenarios.studies.common.verdicts import Statement
from scenarios.util.errors import OutputError


@dataclass(frozen=True)
class Case:
    """Something to be run."""

    number: int


@dataclass(frozen=True)
class Options:
    """What a user asks for."""

    folder: Path
    draws: tuple[int, ...] = (1, 2)
    workers: int | None = None


QUIET = Console(quiet=True)
CASES = {str(number): Case(number) for number in range(3)}


def squared(todo: Iterable[Case]) -> Iterator[tuple[Case, Any]]:
    """Yields the square of each."""
    return ((case, case.number**2) for case in todo)


def test_cases_are_run_once(tmp_path: Path) -> None:
    """What is on disk is not run again, and is there for whoever asks."""
    told: list[int] = []

    def name(case: Case) -> str:
        told.append(case.number)
        return "a case"

    first = run_cases(tmp_path, {"1": Case(1)}, squared, QUIET, what="cases", describe=name)
    assert first == {"1": 1}
    every = run_cases(tmp_path, CASES, squared, QUIET, what="cases", describe=name)
    assert every == {"0": 0, "1": 1, "2": 4}
    assert told == [1, 0, 2]
    assert len((tmp_path / RUNS).read_text().splitlines()) == 3


def test_what_is_done_is_kept_when_a_user_has_enough(tmp_path: Path) -> None:
    """The next study goes on from there."""

    def stopped(todo: Iterable[Case]) -> Iterator[tuple[Case, Any]]:
        for case in todo:
            if case.number == 2:
                raise KeyboardInterrupt
            yield case, 7

    with pytest.raises(KeyboardInterrupt):
        run_cases(tmp_path, CASES, stopped, QUIET, what="cases")
    assert run_cases(tmp_path, CASES, squared, QUIET, what="cases") == {"0": 7, "1": 7, "2": 4}


def test_a_study_is_written_and_shown(tmp_path: Path) -> None:
    """Figures, page and statements; where there are no statements there is no file of them."""
    study = CaseStudy({"draws": 1}, ((Case(4), {"gain": [1.5]}),), "1.0")
    out = Console(file=io.StringIO(), width=80)
    for folder, table in ((tmp_path / "a" / "b", None), (tmp_path / "c", lambda _: "| table |")):
        run_command = StudyCommand(
            lambda *_: study,
            lambda found: f"page of {found.version}",
            lambda console, found: console.print(len(found.runs)),
            table,
        )
        page = run_command(Options(folder), out, QUIET)
        assert page == folder / PAGE
        assert page.read_text() == "page of 1.0"
        assert (folder / TABLE).exists() == (table is not None)
    assert json.loads((page.parent / RESULT).read_text()) == {
        "format": 1,
        "version": "1.0",
        "options": {"draws": 1},
        "runs": [{"case": {"number": 4}, "found": {"gain": [1.5]}}],
    }


def test_a_folder_that_cannot_be_made_is_said_before_anything_runs(tmp_path: Path) -> None:
    """Nobody waits for that."""
    (tmp_path / "file").write_text("")

    def run(*_: object) -> CaseStudy[Case]:
        raise AssertionError("ran")

    with pytest.raises(OutputError, match="cannot be made"):
        StudyCommand(run, lambda _: "", lambda *_: None)(
            Options(tmp_path / "file" / "x"), QUIET, QUIET
        )


def test_options_are_those_that_figures_depend_on() -> None:
    """The folder and the workers change nothing."""
    assert plain_options(Options(Path("x"), workers=3)) == {"draws": (1, 2)}


def test_statements_are_printed_with_their_verdicts() -> None:
    """What was not run has none."""
    out = Console(file=io.StringIO(), width=80)
    found = [Statement("a claim", "+1.0 %", True), Statement.not_run("another")]
    print_statements(out, "What it says", found)
    assert isinstance(out.file, io.StringIO)
    lines = [line.split() for line in out.file.getvalue().splitlines()]
    assert lines[1] == ["What", "it", "says"]
    assert lines[-2:] == [["a", "claim", "+1.0", "%", "yes"], ["another"]]
