"""Random resources and workflows for tests of files and reports, with every feature they have."""

import math

from hypothesis import strategies as st

from broker.model.network import DataFile
from broker.model.resources import DAY, Calendar, PriceRule, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, Task, Workflow

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
POSITIVE = st.floats(1e-6, 1e9)
PRICES = st.sampled_from([0.0, 0.25 / 3600, 1 / 3600]) | st.floats(0, 10)
MOMENTS = st.integers(0, 4_000_000_000).map(float) | st.floats(-1e9, 1e10)
SECONDS_OF_DAY = st.integers(0, 86_400).map(float) | st.floats(0, DAY)


@st.composite
def windows(draw: st.DrawFn) -> WeeklyWindow:
    """Draws weekly hours."""
    begin, end = sorted(draw(st.lists(SECONDS_OF_DAY, min_size=2, max_size=2, unique=True)))
    days = draw(st.lists(st.integers(0, 6), min_size=1, unique=True))
    return WeeklyWindow(begin, end, tuple(sorted(days)))


@st.composite
def closures(draw: st.DrawFn) -> tuple[float, float]:
    """Draws a closure, also one without end."""
    begin = draw(MOMENTS | st.just(-math.inf))
    end = draw(MOMENTS.filter(lambda moment: moment > begin) | st.just(math.inf))
    return begin, end


@st.composite
def resources(draw: st.DrawFn, name: str) -> Resource:
    """Draws a resource of that name."""
    opening = draw(st.lists(windows(), max_size=2))
    return Resource(
        name,
        draw(st.sampled_from(["cpu", "gpu", "licence"])),
        draw(POSITIVE),
        draw(PRICES),
        tuple(draw(st.lists(st.builds(PriceRule, PRICES, windows()), max_size=2))),
        Calendar(tuple(opening), tuple(draw(st.lists(closures(), max_size=2)))),
        draw(st.integers(1, 5)),
        draw(st.sampled_from([0.0, 3600.0, -19_800.0, 0.5]) | st.floats(-DAY, DAY)),
    )


@st.composite
def pools(draw: st.DrawFn) -> tuple[Resource, ...]:
    """Draws one resource or more."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    return tuple(draw(resources(name)) for name in names)


@st.composite
def workflows(draw: st.DrawFn, name: str, pool: tuple[Resource, ...]) -> Workflow:
    """Draws a workflow of that name on the resources of a pool."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    tasks = []
    for index, task in enumerate(names):
        before = draw(st.lists(st.sampled_from(names[:index]), unique=True)) if index else []
        sets = st.lists(
            st.sampled_from([r.name for r in pool]), min_size=1, max_size=2, unique=True
        )
        alternatives = draw(st.lists(sets, min_size=1, max_size=3))
        tasks.append(
            Task(
                task,
                draw(POSITIVE),
                tuple(
                    Alternative(tuple(Demand(each, draw(st.integers(1, 3))) for each in one))
                    for one in alternatives
                ),
                tuple(before),
                draw(st.sampled_from([None, "finish", "terminate", "continue"])),
            )
        )
    files = []
    if draw(st.booleans()):
        for number, maker in enumerate(names):
            readers = tuple(each.name for each in tasks if maker in each.predecessors)
            if readers:
                size = float(draw(st.integers(0, 2**50)))
                files.append(DataFile(f"made {number}", size, readers, maker))
        site = draw(st.sampled_from(["", "store"]))
        files.append(DataFile("given", 5.0, (tasks[0].name,), site=site))
    return Workflow(
        name,
        tuple(draw(st.permutations(tasks))),
        draw(MOMENTS | st.just(-math.inf)),
        draw(MOMENTS | st.just(math.inf)),
        draw(st.floats(0, 1e6) | st.just(math.inf)),
        draw(st.floats(0, 1)),
        draw(st.sampled_from(["finish", "terminate", "continue"])),
        tuple(files),
    )
