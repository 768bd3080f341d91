import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from broker.cli.plan_command import BUDGET_SECONDS, Request, budget_of_each, prepared, run_plan
from broker.cli.search_options import Wanted
from broker.io.import_options import ImportOptions
from broker.io.plans import read_plan
from broker.io.writing import document_of, write_document
from broker.model.limits import Limits
from broker.model.problem import Problem
from broker.planner.search import Budget
from broker.util.errors import OutputError
from tests.broker.small import POOL, SMALL

QUICK = Wanted(methods=("gleam",), evaluations=60, workers=1)


def consoles() -> tuple[Console, Console]:
    return Console(file=io.StringIO(), width=80), Console(file=io.StringIO(), width=80)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_budgets_are_shared_by_methods() -> None:
    """Time is split equally; schedules count for each, and without a time alone."""
    two = ("gleam", "asma")
    assert budget_of_each(Wanted(methods=two)) == Budget(BUDGET_SECONDS / 2)
    assert budget_of_each(Wanted(methods=two, search_time=10.0)) == Budget(5.0)
    assert budget_of_each(Wanted(methods=two, evaluations=7)) == Budget(math.inf, 7)
    assert budget_of_each(Wanted(methods=two, search_time=10.0, evaluations=7)) == Budget(5.0, 7)


def test_everything_asked_for_is_written(tmp_path: Path) -> None:
    """The page and the plan have the same; where they went is said apart from the result."""
    out, err = consoles()
    wanted = replace(QUICK, html=tmp_path / "p.html", json=tmp_path / "p.json", title="Mine")
    planned = run_plan(wanted, SMALL, out, err, files=[Path("some/small.toml")])
    assert read_plan(tmp_path / "p.json") == planned.plan
    assert not planned.interrupted
    document = json.loads((tmp_path / "p.json").read_text())
    assert document["made"]["files"] == "small.toml"
    assert document["made"]["each search"] == "any time, 60 schedules"
    page = (tmp_path / "p.html").read_text()
    assert "<h1>Mine</h1>" in page
    assert page.count('<tr class="chosen">') == 1
    assert "Critical path" in text_of(out)
    said = text_of(err).splitlines()
    assert said == [f"written to {tmp_path / 'p.html'}", f"written to {tmp_path / 'p.json'}"]


def test_json_on_standard_output_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """No table gets between."""
    out, err = consoles()
    run_plan(replace(QUICK, json=Path("-")), SMALL, out, err)
    assert json.loads(capsys.readouterr().out)["format"] == "hanse plan 1"
    assert text_of(out) + text_of(err) == ""


def test_the_same_seed_gives_the_same_plan() -> None:
    """With a budget of schedules; another seed may give another."""
    plans = [run_plan(replace(QUICK, seed=5), SMALL, *consoles()) for _ in range(2)]
    assert plans[0] == plans[1]


def test_progress_is_shown_on_a_terminal() -> None:
    """A bar for each stage, gone when all is done."""
    out, _ = consoles()
    err = Console(file=io.StringIO(), width=80, force_terminal=True)
    run_plan(QUICK, SMALL, out, err)
    assert "GLEAM" in text_of(err)
    assert "heuristics" in text_of(err)


def test_a_page_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The file and the reason are in the text."""
    with pytest.raises(OutputError, match=r"no/p.html cannot be written"):
        run_plan(replace(QUICK, html=tmp_path / "no" / "p.html"), SMALL, *consoles())


def request(*files: Path, now: float | None = None, old: Path | None = None) -> Request:
    return Request(files, ImportOptions(), Limits(), now, old)


def test_now_is_what_is_said_before_what_is_written(tmp_path: Path) -> None:
    """The command line, then the files, then the clock."""
    with_now, without = tmp_path / "a.json", tmp_path / "b.json"
    write_document(with_now, document_of(POOL, SMALL.workflows, now=7.0))
    write_document(without, document_of(POOL, SMALL.workflows))
    assert prepared(request(with_now))[0].now == 7.0
    assert prepared(request(with_now, now=9.0))[0].now == 9.0
    assert prepared(request(without))[0].now > 1.7e9


def test_planning_goes_on_from_an_old_plan(tmp_path: Path) -> None:
    """What had started stays where it was; the rest is planned again, validly."""
    files = tmp_path / "small.json"
    write_document(files, document_of(POOL, SMALL.workflows, now=0.0))
    old = tmp_path / "old.json"
    before = run_plan(replace(QUICK, json=old), prepared(request(files))[0], *consoles()).plan
    problem, read = prepared(request(files, now=4.0, old=old))
    assert read == before
    assert 0 < len(problem.fixed) < len(before)
    after = run_plan(QUICK, problem, *consoles(), old=read).plan
    for placement in problem.fixed:
        assert after.placement(*placement.key) == placement


@pytest.mark.parametrize("begin", [253_402_300_799.0, 1e12])
def test_moments_beyond_the_calendar_are_planned_and_told(tmp_path: Path, begin: float) -> None:
    """Tasks that start with the last second of the year 9999, or long after it."""
    workflow = replace(SMALL.workflows[0], earliest_start=begin, due_date=1e300)
    late = Problem((workflow,), SMALL.resources, now=1_772_438_400.0)
    out, err = consoles()
    plan = run_plan(replace(QUICK, html=tmp_path / "p.html"), late, out, err).plan
    assert min(each.start for each in plan) == begin
    assert "after 9999" in text_of(out)
    assert "after 9999" in (tmp_path / "p.html").read_text()


def test_moments_that_lose_seconds_are_refused() -> None:
    """Beyond thirty thousand years sums of moments and seconds are nothing but rounding."""
    with pytest.raises(ValueError, match="now is 1e"):
        replace(SMALL, now=1e13)
