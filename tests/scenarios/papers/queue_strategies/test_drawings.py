from scenarios.papers.queue_strategies.drawings import scatter
from tests.pictures import svg_texts
from tests.scenarios.papers.queue_strategies.made_up import made_up


def test_the_cloud_names_its_kinds_and_what_is_marked() -> None:
    """As text; the same bytes twice."""
    points = made_up("genetic-fuzzy", {}).clouds["ctc"]
    marked = [("EASY", 12.0, 25.0), ("$x$", 11.0, 22.0)]
    drawn = scatter(points, marked, key="k", title="Cloud")
    found = svg_texts(drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    assert {"EASY", "$x$", "FCFS", "EASY, true run times", "learned"} <= set(found)
    assert drawn == scatter(points, marked, key="k", title="Cloud")
