"""Where the files of tasks come from, and since when they are where."""

import math

import pytest

from broker.model.network import Copy, DataFile, Link, Network
from broker.model.plan import Placement
from broker.model.problem import Problem
from broker.model.resources import Resource
from broker.model.transfers import Source, Staging
from broker.model.workflow import Alternative, Demand, Task, Workflow

ON_A = (Alternative.of("a"),)
AT_SITE = DataFile("f", 10.0, ("x", "y"), site="store")
MADE = DataFile("g", 5.0, ("y",), "x")
GIVEN = DataFile("h", 1.0, ("y",))
FLOW = Workflow(
    "w", (Task("x", 1.0, ON_A), Task("y", 1.0, ON_A, ("x",))), files=(AT_SITE, MADE, GIVEN)
)
NETWORK = Network(Link(2.0), {"a": "riga"})


def staged(*copies: Copy, fixed: tuple[Placement, ...] = ()) -> Staging:
    """Returns the data of a workflow of two tasks with a file of each kind."""
    return Staging(
        Problem((FLOW,), (Resource("a"),), 0.0, fixed=fixed, network=NETWORK, copies=copies)
    )


def test_a_source_has_all_files_of_a_task_or_a_site() -> None:
    """Each is of the one kind or the other."""
    found = staged()
    assert found.sources(("w", "x")) == (Source("", "store", (AT_SITE,)),)
    assert found.sources(("w", "y")) == (
        Source("", "store", (AT_SITE,)),
        Source("x", "", (MADE,)),
        Source("", "home", (GIVEN,)),
    )
    assert found.sources(("w", "z")) == ()
    assert found


@pytest.mark.parametrize("moments", [(3.0, 7.0), (7.0, 3.0)])
def test_a_file_is_there_from_the_first_copy_on(moments: tuple[float, float]) -> None:
    """Whichever is told first."""
    found = staged(*(Copy("w", "f", "riga", since) for since in moments))
    assert found.there("w", "f", "riga") == 3.0
    assert found.there("w", "f", "store") == found.there("w", "g", "riga") == math.inf


@pytest.mark.parametrize(("since", "there"), [(2.0, 2.0), (9.0, 4.0)])
def test_what_a_task_has_begun_with_is_there(since: float, there: float) -> None:
    """From its beginning on, or from that of a copy before it."""
    begun = Placement("w", "x", (Demand("a"),), 4.0, 5.0, 1.0)
    found = staged(Copy("w", "f", "riga", since), fixed=(begun,))
    assert found.there("w", "f", "riga") == there
    assert found.there("w", "h", "riga") == math.inf
