"""The study of very many sites, with few."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import click
import numpy as np
import pytest
from rich.console import Console

from scenarios.studies.common.verdicts import Statement
from scenarios.studies.scale import study as module
from scenarios.studies.scale.command import run_command
from scenarios.studies.scale.options import SiteCounts, StudyOptions
from scenarios.studies.scale.page import page_of
from scenarios.studies.scale.statements import parts, statements
from scenarios.studies.scale.study import (
    ALL,
    ASKED,
    AT_ONCE,
    COMMON,
    NETWORKS,
    Case,
    Study,
    absences,
    cases,
    run_case,
)


def made_up(case: Case) -> dict[str, float]:
    """Returns figures that are easy to judge by hand."""
    gain = 10.0 if case.asked == ALL else 10.0 - 8.0 / case.asked
    return {
        "microseconds": 1.0 if case.sites < 1000 else 4.0,
        "megabytes": 60.0 + case.sites / 100.0,
        "gain": gain
        - 0.1 * case.away
        - (5.0 if case.known else 0.0)
        - (3.0 if case.common else 0.0)
        - {AT_ONCE: 0.0, "delay": 0.25, "usual": 0.75, "poor": 0.75, "bad": 4.0}[case.network],
        "losing": 3.0,
        "moved": 20.0,
        "offers": 1.5,
        "awrt": 3600.0,
    }


@pytest.fixture
def study() -> Study:
    options = StudyOptions(Path("unused"), (100, 1000), 50, 2)
    runs = tuple((case, made_up(case)) for case in cases(options))
    return Study({"sites": [100, 1000], "jobs": 50, "draws": 2}, runs)


def verdicts(found: list[Statement], word: str) -> list[bool | None]:
    """Returns the verdicts on statements with a word."""
    return [each.holds for each in found if word in each.claim]


def test_statements_are_judged_by_the_figures(study: Study) -> None:
    """Four times the cost is too much; 8 − 8/k points of 10; 0.5 and 2 points away; 5 for few known."""
    found = list(statements(study))
    assert verdicts(found, "a job costs") == [False]
    assert verdicts(found, "memory for each") == [True]
    assert parts(study, 100, 4) == [80.0, 80.0]
    assert verdicts(found, "% of the gain with all") == [True, True, True, True] * 2
    assert parts(study, 100, 4, common=True) == [50.0, 50.0]
    assert verdicts(found, "of its own") == [True] * len(COMMON) * 2
    assert verdicts(found, "away 5 %") == [True, True]
    assert verdicts(found, "away 20 %") == [True, True]
    assert verdicts(found, "partners alone") == [False, False]
    # 0.25 of 0.5 points, 0.75 of 0.5, and 0.75 of 1.
    assert verdicts(found, "round trips") == [True, False, True] * 2


def test_the_page_has_every_figure(study: Study) -> None:
    """Both charts, all ways to ask, and the verdicts; equal studies give equal pages."""
    page = str(page_of(study))
    assert page == str(page_of(study))
    assert page.count("<svg") >= 2
    for words in (
        "one for all",
        "1,000",
        "16",
        "each away 20 % of the time",
        "each knows 64",
        "not crashed",
        "20 % of questions lost, time-out 60 s",
    ):
        assert words in page


def test_a_case_measures_gain_and_cost() -> None:
    """Forty sites gain by exchange, and a second run of the case finds the same."""
    case = Case(40, 60, 8, ALL, 0, False, 1)
    one, other = run_case(case), run_case(case)
    assert one["gain"] > 1.0
    assert 0 < one["moved"] < 100
    assert 0 < one["offers"] < 8
    assert one["microseconds"] > 0
    for name in ("gain", "losing", "moved", "offers", "awrt"):
        assert one[name] == other[name]
    common = run_case(replace(case, common=True))
    assert common["awrt"] == one["awrt"]
    assert common["gain"] != one["gain"]
    bad = run_case(replace(case, network="bad"))
    assert bad["awrt"] == one["awrt"]
    assert bad["gain"] not in {one["gain"], common["gain"]}


def test_absences_take_their_part_of_the_time() -> None:
    """Of a thousand sites over half a year, to a tenth of it."""
    until = 180 * 86400.0
    offsets, moments = absences(1000, 20, until, np.random.default_rng(1))
    gone = 0.0
    for row in range(1000):
        own = [*moments[offsets[row] : offsets[row + 1]].tolist()]
        assert own == sorted(own)
        own += [until] * (len(own) % 2)
        gone += sum(own[1::2]) - sum(own[0::2])
    assert gone / (1000 * until) == pytest.approx(0.2, rel=0.1)


def test_the_command_keeps_what_it_has_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, figures, statements and page are written; called again, nothing is run twice."""
    ran: list[Case] = []

    def run(todo: object) -> object:
        for case in todo:  # type: ignore[attr-defined]  # cases
            ran.append(case)
            yield case, made_up(case)

    monkeypatch.setattr(module, "alone_in_processes", run)
    options = StudyOptions(tmp_path / "scale", (100,), 50, 2)
    console = Console(file=StringIO(), width=120)
    written = run_command(options, console, console)
    assert written.is_file()
    assert len(ran) == 2 * (len(ASKED) + len(COMMON) + 3 + len(NETWORKS))
    figures = json.loads((tmp_path / "scale" / "study.json").read_text(encoding="utf-8"))
    assert len(figures["runs"]) == len(ran)
    assert "questions reach" in (tmp_path / "scale" / "statements.md").read_text(encoding="utf-8")
    run_command(options, console, console)
    assert len(ran) == 2 * (len(ASKED) + len(COMMON) + 3 + len(NETWORKS))


def test_numbers_of_sites_are_read_and_sorted() -> None:
    """Commas between them, from 20 to a million."""
    counts = SiteCounts()
    assert counts.convert("1000,100, 100", None, None) == (100, 1000)
    for wrong in ("", "ten", "19", "2000000", "100;200"):
        with pytest.raises(click.BadParameter):
            counts.convert(wrong, None, None)
