import math
import xml.etree.ElementTree as ET

from hypothesis import given, settings

from broker.gantt.chart import (
    RIGHT,
    ROWS_MAX,
    Picture,
    by_resource,
    by_workflow,
    closed_spans,
    colors,
)
from broker.model.heft import heft
from broker.model.plan import Plan
from broker.model.problem import Problem
from broker.model.resources import DAY, Calendar, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Task, Workflow
from tests.broker.random_problems import problems

SVG = "{http://www.w3.org/2000/svg}"
MONDAY = 7 * DAY * 2000 + 4 * DAY


def picture(problem: Problem, plan: Plan | None = None) -> Picture:
    color, legend = colors(problem.workflows)
    return Picture(problem, plan or heft(problem), set(), set(), color, legend)


def drawn(chart: str) -> list[ET.Element]:
    """Returns the elements of a chart; it has to be well-formed."""
    chart = chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    root = ET.fromstring(f"<div>{chart}</div>")  # noqa: S314  # drawn by the code under test
    return list(root.iter())


def bars(chart: str) -> list[ET.Element]:
    return [each for each in drawn(chart) if each.get("class", "").startswith("bar ")]


@given(problems())
@settings(max_examples=50)
def test_every_task_has_its_bars(problem: Problem) -> None:
    """One by workflow, one for each resource it takes; all within the chart, none overlapping."""
    image = picture(problem)
    assert len(bars(by_workflow(image))) == len(image.plan)
    resources = sum(len(each.resources) for each in image.plan)
    assert len(bars(by_resource(image))) == resources
    for chart in (by_workflow(image), by_resource(image)):
        for bar in bars(chart):
            assert float(bar.get("width", "nan")) > 0
            assert float(bar.get("x", "nan")) <= RIGHT
            assert bar.find(f"{SVG}title") is not None


def test_due_dates_are_marked() -> None:
    """In the chart where they are near, at its border where they are far, and told in words."""
    alternatives = (Alternative.of("r"),)
    for due, budget, words in (
        (12.0, 1.0, ["2 s to spare", "10.00 of 1.00"]),
        (5.0, 10.0, ["5 s late", "10.00 of 10.00"]),
        (1e6, math.inf, ["11 d 14 h to spare", "costs 10.00"]),
        (math.inf, math.inf, ["no due date", "costs 10.00"]),
    ):
        workflow = Workflow("w", (Task("t", 10.0, alternatives),), due_date=due, budget=budget)
        chart = by_workflow(picture(Problem((workflow,), (Resource("r", price=1.0),))))
        texts = [each.text for each in drawn(chart) if each.tag == f"{SVG}text"]
        assert all(word in texts for word in words)
        marks = [each for each in drawn(chart) if (each.get("class") or "").startswith("due")]
        assert len(marks) == (0 if due == math.inf else 1 if due == 1e6 else 2)
        assert any("late" in (each.get("class") or "") for each in marks) == (due == 5.0)


def test_closed_hours_are_shaded() -> None:
    """Opening hours in the resource's own time, and closures, between the ends of the chart."""
    office = WeeklyWindow(8 * 3600.0, 18 * 3600.0, (0, 1))
    resource = Resource(
        "r", calendar=Calendar((office,), ((MONDAY + 10, MONDAY + 20),)), utc_offset=3600.0
    )
    assert closed_spans(resource, MONDAY, MONDAY + DAY) == [
        (MONDAY, MONDAY + 7 * 3600),
        (MONDAY + 17 * 3600, MONDAY + DAY),
    ]
    late = MONDAY + 17 * 3600
    assert closed_spans(resource, late - 5, late + 9 * DAY)[0] == (late, late + 14 * 3600)
    assert closed_spans(Resource("s"), MONDAY, MONDAY + DAY) == []
    assert closed_spans(resource, MONDAY, MONDAY + 1e10) == [(MONDAY + 10, MONDAY + 20)]
    ever = Resource("t", calendar=Calendar((), ((MONDAY + 5, math.inf),)))
    assert closed_spans(ever, MONDAY, MONDAY + 9) == [(MONDAY + 5, MONDAY + 9)]


def test_workflows_have_colours_and_a_single_one_its_kinds_of_tasks() -> None:
    """Kinds are names without numbers; the commonest come first, the rest are one colour."""
    alternatives = (Alternative.of("r"),)
    names = ["blastall_ID000002", "blastall_ID000003", "cat", "NF.FASTQC_11", "x1", "x2", "x3"]
    flow = Workflow("w", tuple(Task(name, 1.0, alternatives) for name in names))
    color, legend = colors((flow,))
    assert legend == ["x", "blastall", "cat", "NF.FASTQC"]
    assert [color["w", name] for name in names] == [1, 1, 2, 3, 0, 0, 0]
    many = Workflow("w", tuple(Task(f"{chr(97 + n)}", 1.0, alternatives) for n in range(12)))
    color, legend = colors((many,))
    assert legend[-1] == "others"
    assert [color["w", chr(97 + n)] for n in (0, 6, 7, 11)] == [0, 6, 7, 7]
    both = colors((flow, Workflow("v", flow.tasks)))
    assert both[1] == ["w", "v"]
    assert both[0]["v", "cat"] == 1


def test_of_many_workflows_the_latest_have_rows() -> None:
    """Late ones first, then those over budget, then by time to spare; the rest is one row."""
    on = (Alternative.of("r"),)
    late = {7: 50.0, 300: 70.0}
    workflows = tuple(
        Workflow(
            f"w{n}",
            (Task("t", 100.0, on),),
            due_date=100.0 - late[n] if n in late else 200.0 + n,
            budget=1.0 if n == 400 else 1e9,
        )
        for n in range(500)
    )
    problem = Problem(workflows, (Resource("r", capacity=500, price=1.0),))
    chart = by_workflow(picture(problem))
    names = [each.text or "" for each in drawn(chart) if each.get("class") == "name"]
    assert names[:5] == ["w300", "w7", "w400", "w0", "w1"]
    assert len(names) == ROWS_MAX + 1
    assert names[-1] == "400 more workflows"
    assert len(bars(chart)) == ROWS_MAX
    (crowd,) = [each for each in drawn(chart) if each.get("class") == "crowd"]
    title = crowd.find(f"{SVG}title")
    assert title is not None
    assert title.text is not None
    assert "400 at most" in title.text


def test_of_many_resources_the_busiest_have_rows() -> None:
    """The others are drawn together by kind, each of their tasks counted."""
    count = 300
    resources = tuple(
        Resource(f"r{n}", kind="gpu" if n % 3 else "cpu", performance=1 / (1 + n))
        for n in range(count)
    )
    tasks = tuple(Task(f"t{n}", 10.0, (Alternative.of(f"r{n}"),)) for n in range(count))
    chart = by_resource(picture(Problem((Workflow("w", tasks),), resources)))
    names = [each.text or "" for each in drawn(chart) if each.get("class") == "name"]
    assert names[:2] == ["r299", "r298"]
    assert names[ROWS_MAX:] == ["133 more resources", "67 more resources"]
    small = [each.text or "" for each in drawn(chart) if each.get("class") == "small"]
    assert "133 tasks" in small
    assert "67 tasks" in small


def test_names_are_text_and_not_markup() -> None:
    """Whatever a task is called, it changes nothing else on the page."""
    name = "<script>alert('&')</script>"
    workflow = Workflow(name, (Task(name, 1.0, (Alternative.of(name),)),))
    for draw in (by_resource, by_workflow):
        chart = draw(picture(Problem((workflow,), (Resource(name, kind=name),))))
        assert "<script" not in chart
        assert any(name in (each.text or "") for each in drawn(chart))
