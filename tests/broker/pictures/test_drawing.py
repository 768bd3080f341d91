from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Task, Workflow
from broker.pictures.chart import by_resource, by_workflow
from tests.broker.pictures.test_chart import SVG, drawn, picture


def test_long_charts_are_cut_into_pieces() -> None:
    """Each piece has the axis again, and fits a printed page."""
    workflows = tuple(
        Workflow(f"w{n}", (Task("t", 1.0, (Alternative.of("r"),)),)) for n in range(100)
    )
    chart = by_workflow(picture(Problem(workflows, (Resource("r", capacity=9),))))
    pieces = [each for each in drawn(chart) if each.tag == f"{SVG}svg"]
    assert len(pieces) > 4
    for piece in pieces:
        assert float(piece.get("viewBox", "").split()[3]) < 800
        assert any(each.get("class") == "tick" for each in piece)
    ids = [each.get("id") for each in drawn(chart) if each.get("id")]
    assert len(set(ids)) == len(ids)


def test_names_are_text_and_not_markup() -> None:
    """Whatever a task is called, it changes nothing else on the page."""
    name = "<script>alert('&')</script>"
    workflow = Workflow(name, (Task(name, 1.0, (Alternative.of(name),)),))
    for draw in (by_resource, by_workflow):
        chart = draw(picture(Problem((workflow,), (Resource(name, kind=name),))))
        assert "<script" not in chart
        assert any(name in (each.text or "") for each in drawn(chart))
