from typing import Any

from scenarios.studies.queue_strategies.drawings import (
    CELLS,
    beyond,
    lower_edge,
    scatter,
    thinned,
    view,
)
from tests.pictures import svg_texts
from tests.scenarios.studies.queue_strategies.made_up import made_up


def test_the_cloud_names_its_kinds_and_what_is_marked() -> None:
    """As text; the same bytes twice."""
    points = made_up("genetic-fuzzy", {}).clouds["ctc"]
    marked = [("EASY", 12.0, 25.0), ("$x$", 11.0, 22.0)]
    drawn = scatter(points, marked, key="k", title="Cloud")
    found = svg_texts(drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    assert {
        *("EASY", "$x$", "FCFS by group", "EASY by group", "EASY, true run times", "learned"),
        *("judged while learning", "NSGA-II, a key for each user"),
    } <= set(found)
    assert drawn == scatter(points, marked, key="k", title="Cloud")


def point(kind: str, across: float, up: float, *, front: bool = True) -> dict[str, Any]:
    """Returns a point of the cloud."""
    groups = [1, 2, 3, 4, 5] if kind in {"fcfs", "easy", "clairvoyant"} else []
    return {
        "kind": kind,
        "groups": groups,
        "seven": [0.5, 1.0, across, up, 1, 1, 1],
        "front": front,
    }


def test_what_a_search_gave_up_nearly_is_beyond_the_picture() -> None:
    """All constants and what was learned are seen, and whatever is better; how many are not is said."""
    points = [
        point("fcfs", 100.0, 300.0),
        point("easy", 200.0, 200.0),
        point("users", 90.0, 190.0),
        point("judged", 5000.0, 250.0),
        point("learned", 210.0, 310.0),
    ]
    assert view(points, []) == ((84.0, 216.0), (184.0, 316.0))
    assert beyond(points, []) == 1
    assert view(points, [("EASY", 400.0, 200.0)])[0] == (74.5, 415.5)


def test_of_individuals_in_one_place_one_is_drawn() -> None:
    """Rather one that nobody dominates; constants and what was learned are all kept."""
    here = [point("users", 150.0, 250.0, front=False), point("users", 150.1, 250.1)]
    points = [
        point("fcfs", 100.0, 200.0),
        point("fcfs", 200.0, 300.0),
        *here,
        point("judged", 150.0, 250.0),
        point("learned", 150.0, 250.0),
        point("learned", 150.0, 250.0),
    ]
    assert thinned(points, view(points, [])) == [*points[:2], here[1], *points[4:]]
    apart = point("users", 150.0 + 2 * 110.0 / CELLS, 250.0)
    assert apart in thinned([*points, apart], view(points, []))


def test_the_lower_edge_is_what_nobody_is_better_than_in_both() -> None:
    """True run times are nobody's; ties leave one."""
    points = [
        point("fcfs", 1.0, 9.0),
        point("users", 2.0, 5.0),
        point("users", 2.0, 7.0),
        point("judged", 3.0, 5.0),
        point("clairvoyant", 0.5, 0.5),
        point("learned", 4.0, 1.0),
    ]
    assert lower_edge(points) == [(1.0, 9.0), (2.0, 5.0), (4.0, 1.0)]
