import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from broker.gantt.page import LINKS_MAX, MethodRow, render_page
from broker.model.heft import heft
from broker.model.measures import measure
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from tests.broker.random_problems import problems
from tests.browser import Browser, is_wider, look

R = (Alternative.of("r"),)


def problem(*workflows: Workflow, resource: Resource | None = None) -> Problem:
    return Problem(workflows, (resource or Resource("r"), Resource("idle")))


@given(problems())
@settings(max_examples=30)
def test_pages_need_nothing_else(case: Problem) -> None:
    """No script, nothing loaded, every opened element closed; the same plan, the same page."""
    plan = heft(case)
    page = render_page(case, plan, title="T", methods=[MethodRow("HEFT", measure(case, plan))])
    assert page == render_page(
        case, plan, title="T", methods=[MethodRow("HEFT", measure(case, plan))]
    )
    assert not re.search(r"<script|\bsrc=|<link|url\(|@import|https?:", page)
    for tag in ("section", "table", "tr", "td", "th", "svg", "ul", "li", "div"):
        opened = len(re.findall(rf"<{tag}[ >]", page))
        assert opened == len(re.findall(rf"</{tag}>", page)), tag
    assert "nan" not in re.sub(r"<title>.*?</title>|<style>.*?</style>", "", page, flags=re.DOTALL)


def test_names_are_text_and_not_markup() -> None:
    """Titles, methods, tasks and facts may hold any characters."""
    odd = "<b>&\"'"
    case = problem(Workflow(odd, (Task(odd, 1.0, R),)))
    plan = heft(case)
    page = render_page(
        case, plan, title=odd, methods=[MethodRow(odd, measure(case, plan))], made=[(odd, odd)]
    )
    assert odd not in page
    assert page.count("&lt;b&gt;&amp;&#34;&#39;") >= 8


def test_methods_stand_beside_each_other() -> None:
    """The chosen one is marked; what a method does not have is a dash."""
    case = problem(Workflow("w", (Task("a", 1.0, R),), due_date=0.5))
    measures = measure(case, heft(case))
    rows = [
        MethodRow("HEFT", measures, seconds=0.2),
        MethodRow("GLEAM", measures, 61_234.5, 10.0, 12_345, chosen=True),
    ]
    page = render_page(case, heft(case), title="x", methods=rows)
    assert re.search(r'<tr><th scope="row">HEFT</th><td>–</td><td>1 s</td>', page)
    chosen = re.search(r'<tr class="chosen"><th scope="row">GLEAM</th>(.*?)</tr>', page)
    assert chosen is not None
    cells = re.findall(r"<td>(.*?)</td>", chosen.group(1))
    assert cells[0] == "61,234"
    assert cells[-4:] == ['<strong class="loss">1</strong>', "0", "12,345", "10 s"]


def test_a_long_critical_path_is_cut() -> None:
    """The end of it is shown, and how much there is."""
    tasks = tuple(Task(f"t{n}", 1.0, R) for n in range(LINKS_MAX + 5))
    case = problem(Workflow("w", tasks))
    page = render_page(case, heft(case), title="x")
    assert f"The last {LINKS_MAX} of {LINKS_MAX + 5} tasks." in page
    assert page.count("waits for a resource that the task before it holds") == LINKS_MAX


def test_idle_resources_are_left_out() -> None:
    """They are counted instead."""
    page = render_page(
        problem(Workflow("w", (Task("a", 1.0, R),))),
        heft(problem(Workflow("w", (Task("a", 1.0, R),)))),
        title="x",
    )
    assert "1 resource without a task left out." in page
    assert ">idle<" not in page


def test_a_page_of_many_workflows_begins_with_those_that_need_help() -> None:
    """The table too; what has no trouble is folded away, and the text says what is drawn."""
    workflows = tuple(
        Workflow(f"w{n}", (Task("t", 1.0, R),), due_date=0.5 if n == 130 else 1e6 + n)
        for n in range(150)
    )
    case = problem(*workflows, resource=Resource("r", capacity=150))
    page = render_page(case, heft(case), title="x")
    table = page[page.index("<h2>Due dates and budgets</h2>") :]
    assert table.index(">w130<") < table.index(">w0<")
    assert "<details><summary>50 more workflows</summary>" in table
    assert len(re.findall(r">w\d+</span></span></th><td>1</td>", table)) == 150
    assert "Of the workflows the 100 that are latest" in page


def test_words_are_not_broken_letter_by_letter() -> None:
    """Cells that may break anywhere keep the width of some letters on a narrow screen."""
    for rule in re.findall(r"^[^{}]*\b(?:th|td)\b[^{}]*\{[^}]*\}", page_css(), re.MULTILINE):
        if "overflow-wrap: anywhere" in rule:
            assert re.search(r"min-width: \d+em", rule), rule
    # Tasks may have names without a space that are wider than a narrow screen.
    assert re.search(r"^\.legend li \{[^}]*overflow-wrap: anywhere", page_css(), re.MULTILINE)


@pytest.mark.parametrize("flows", [1, 3])
@pytest.mark.parametrize("width", [390, 1600])
def test_long_names_make_the_page_no_wider(
    tmp_path: Path, driver: Browser, width: int, flows: int
) -> None:
    """Recorders give tasks names of several hundred letters, without a place to break them."""
    long = 300 * "x"
    alternatives = (Alternative.of(long),)
    workflows = tuple(
        Workflow(
            f"{long}{n}",
            tuple(Task(f"{long}{t}", 1.0, alternatives) for t in range(3)),
            due_date=0.5,
        )
        for n in range(flows)
    )
    case = problem(*workflows, resource=Resource(long))
    plan = heft(case)
    page = tmp_path / "page.html"
    rows = [MethodRow(long, measure(case, plan))]
    page.write_text(
        render_page(case, plan, title=long, methods=rows, made=[("files", long)]), "utf-8"
    )
    driver.get(page.as_uri())
    look(driver, width)
    assert not is_wider(driver)


def test_what_scrolls_can_be_reached_without_a_mouse() -> None:
    """Tables and charts that are wider than the window take the focus, and say what they are."""
    workflows = [Workflow(f"w{n}", (Task("a", 1.0, R),), due_date=9.0) for n in range(120)]
    case = problem(*workflows, resource=Resource("r", capacity=120))
    plan = heft(case)
    page = render_page(case, plan, title="x", methods=[MethodRow("HEFT", measure(case, plan))])
    boxes = re.findall(r'<div class="(?:scroll|wide)"([^>]*)>', page)
    labels = [re.search(r' tabindex="0" aria-label="([^"]+)"$', box) for box in boxes]
    assert len({label[1] for label in labels if label is not None}) == len(boxes) == 6


def page_css() -> str:
    case = problem(Workflow("w", (Task("a", 1.0, R),)))
    page = render_page(case, heft(case), title="x")
    return page[page.index("<style>") : page.index("</style>")]
