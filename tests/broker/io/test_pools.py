import math
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.io.pools import parse_file, read_file
from broker.io.writing import document_of, write_document
from broker.model.heft import heft
from broker.model.pool import Pool
from broker.model.problem import Problem
from broker.model.resources import DAY, Calendar, PriceRule, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.util.errors import FileError
from lrms_sim.util.file_errors import MISTAKES_SHOWN_MAX
from tests.broker.drawn import NAMES

FULL = """
description = "All there is."
now = 2026-03-02T08:00:00Z

[[resources]]
name = "alpha"
performance = 2.5
capacity = 8
price_per_hour = 3.6
utc_offset = "+01:00"
requires = ["licence"]
prices = [{ weekdays = ["mon-fri"], begin = "22:00", end = "06:00", price_per_hour = 1.8 }]
opening = [{ weekdays = ["sat", "sun"] }, { begin = 18:00:00 }]
closures = [
    { begin = 2026-12-24T00:00:00+01:00, end = "2026-12-27T00:00:00+01:00" },
    { begin = "2027-01-01T00:00:00Z" },
]

[[resources]]
name = "beta"

[[resources]]
name = "licence"
kind = "licence"
capacity = 3
price_per_second = 0.5

[[workflows]]
name = "render"
earliest_start = "2026-03-02T09:00:00Z"
due_date = 2026-03-02T18:00:00Z
budget = 12.5
preference = 0.2
tasks = [
    { name = "cut", work = 60 },
    { name = "draw", work = 600.5, predecessors = ["cut"], kind = "cpu", units = 4 },
    { name = "keep", work = 5, alternatives = ["alpha", ["alpha"], ["beta", { resource = "licence", units = 2 }]] },
]
"""


def parsed(text: str) -> Any:
    return parse_file(tomllib.loads(text), file="f")


def used(document: dict[str, Any]) -> None:
    """Reads a document and looks its resources up."""
    read = parse_file(document, file="f")
    read.workflows(read.pool)


def said(document: dict[str, Any] | str) -> list[str]:
    """Returns what is said of a document, without the file's name."""
    document = tomllib.loads(document) if isinstance(document, str) else document
    with pytest.raises(FileError) as caught:
        used(document)
    return [line.removeprefix("f: ") for line in str(caught.value).split("\n")]


def test_every_key_is_read() -> None:
    """A file with every key gives the resources and workflows that it describes."""
    document = parsed(FULL)
    nights = (
        PriceRule(1.8 / 3600, WeeklyWindow(22 * 3600.0, DAY, (0, 1, 2, 3, 4))),
        PriceRule(1.8 / 3600, WeeklyWindow(0.0, 6 * 3600.0, (1, 2, 3, 4, 5))),
    )
    calendar = Calendar(
        (WeeklyWindow(weekdays=(5, 6)), WeeklyWindow(18 * 3600.0, DAY)),
        ((1_798_066_800.0, 1_798_326_000.0), (1_798_761_600.0, math.inf)),
    )
    assert document.pool.resources == (
        Resource("alpha", "cpu", 2.5, 3.6 / 3600, nights, calendar, 8, 3600.0),
        Resource("beta"),
        Resource("licence", "licence", price=0.5, capacity=3),
    )
    assert (document.now, document.workflow_count) == (1_772_438_400.0, 1)
    alpha = Alternative((Demand("alpha"), Demand("licence")))
    wide = Alternative((Demand("alpha", 4), Demand("licence")))
    pair = Alternative((Demand("beta"), Demand("licence", 2)))
    tasks = (
        Task("cut", 60.0, (alpha, Alternative.of("beta"))),
        Task("draw", 600.5, (wide,), ("cut",)),
        Task("keep", 5.0, (alpha, Alternative.of("alpha"), pair)),
    )
    assert document.workflows(document.pool) == (
        Workflow("render", tasks, 1_772_442_000.0, 1_772_474_400.0, 12.5, 0.2),
    )


def test_the_example_in_the_documentation_is_right() -> None:
    """What the page on files shows can be planned."""
    page = (Path(__file__).parents[3] / "docs" / "workflows.md").read_text(encoding="utf-8")
    example, times, data, added = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    document = parsed(example)
    (workflow,) = document.workflows(document.pool)
    assert document.now == 1_772_438_400.0  # the example is the same whenever it is tried
    problem = Problem((workflow,), document.pool.resources, now=document.now)
    assert heft(problem).unplanned == ()
    pool = "".join(f'[[resources]]\nname = "{n}"\n' for n in ("old lathe", "new lathe", "operator"))
    document = parsed(pool + '[[workflows]]\nname = "w"\n' + times)
    (workflow,) = document.workflows(document.pool)
    assert heft(Problem((workflow,), document.pool.resources)).makespan_end == 300.0
    sites = "".join(f'[[resources]]\nname = "{n}"\n' for n in ("luebeck", "hamburg", "danzig"))
    document = parsed(sites + data)
    assert document.network is not None
    network = document.network.network([each.name for each in document.pool.resources])
    survey = document.workflows(document.pool)
    plan = heft(Problem(survey, document.pool.resources, network=network))
    assert [(each.size, each.target) for each in plan.transfers] == [(4e9, "north")]
    document = parsed(pool + added.replace('"fit.py", ', ""))
    fit, best = document.additions(document.pool, ["prepare"])
    assert (fit.elements[1:], best.elements) == ((("0.2",), ("0.3", "--fine")), ())


def test_workflows_are_made_for_the_pool_at_hand() -> None:
    """The same file gives other alternatives where there are other resources."""
    document = parsed('[[workflows]]\nname = "w"\ntasks = [{ name = "t", work = 1, kind = "gpu" }]')
    pool = Pool((Resource("g1", "gpu"), Resource("c1"), Resource("g2", "gpu")), {})
    (workflow,) = document.workflows(pool)
    assert [each.primary for each in workflow.tasks[0].alternatives] == ["g1", "g2"]
    assert said('[[workflows]]\nname = "w"\ntasks = [{ name = "t", work = 1 }]') == [
        "workflows.w.tasks.t: kind: 'cpu' is no kind of resource here; there are: none"
    ]


A = '[[resources]]\nname = "a"\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[[resources]]\nkind = 'x'", "resources[0].name: is missing"),
        (A + "capacity = 0", "resources.a.capacity: is 0; it must be at least 1"),
        (A + "capacity = 1.5", "resources.a.capacity: is 1.5; it must be a whole number"),
        (A + "performance = 0", "resources.a.performance: is 0; it must be more than 0"),
        (A + "performance = '2'", "resources.a.performance: is '2'; it must be a number"),
        (A + "performance = inf", "resources.a.performance: is inf; it must be a finite number"),
        (A + "price_per_hour = -1", "resources.a.price_per_hour: is -1; it must be at least 0"),
        (
            A + "price = 1",
            (
                "resources.a.price: 'price' is no key here, did you mean 'prices'? there are: "
                "price_per_hour, price_per_second, name, kind, performance, capacity, prices, "
                "opening, closures, utc_offset, requires"
            ),
        ),
        (
            A + "price_per_hour = 1\nprice_per_second = 1",
            "resources.a: has price_per_hour and price_per_second; give one of them",
        ),
        (A + "prices = [{ end = '06:00' }]", "resources.a.prices[0]: lacks price_per_hour"),
        (
            A + "opening = [{ begin = '8' }]",
            (
                'resources.a.opening[0].begin: is \'8\'; it must be "HH:MM", "HH:MM:SS" or '
                'seconds since midnight, up to "24:00"'
            ),
        ),
        (
            A + "opening = [{ begin = '08:00', end = '08:00' }]",
            "resources.a.opening[0]: begins and ends at 08:00",
        ),
        (
            A + "opening = [{ begin = '24:00', end = '00:00' }]",
            "resources.a.opening[0]: begins and ends at 24:00",
        ),
        (
            A + "price_per_second = 1e10",
            "resources.a.price_per_second: is 10000000000.0; it must be at most 1e+09",
        ),
        (
            A + "prices = [{ price_per_hour = 1e300 }]",
            "resources.a.prices[0].price_per_hour: is 1e+300; it must be at most 3.6e+12",
        ),
        (A + "closures = [{ end = " + 400 * "9" + " }]", "resources.a.closures[0].end: is 9999"),
        (
            A + "opening = [{ weekdays = ['Mon'] }]",
            (
                "resources.a.opening[0].weekdays: 'Mon' is no weekday, did you mean 'mon'? there "
                "are: mon, tue, wed, thu, fri, sat, sun"
            ),
        ),
        (
            A + "closures = [{ begin = 5, end = 5 }]",
            "resources.a.closures[0]: ends before it begins, or at the same moment",
        ),
        (A + "requires = ['a']", "resources.a.requires: 'a' is the resource itself"),
        (
            A + "requires = ['b']\n[[resources]]\nname = 'b'\nrequires = ['a']",
            "resources: resources require each other: a → b → a",
        ),
        (A + "opening = []", "resources.a.opening: is []; name at least one span, or leave it out"),
        (
            A + "opening = [{ weekdays = [] }]",
            "resources.a.opening[0].weekdays: is []; it must be a list such as",
        ),
        (A + "requires = 'a'", "resources.a.requires: is 'a'; it must be a list of resources"),
        (A + A, "resources[1].name: 'a' is the name of resources[0] too; names must be unique"),
        ("resources = 3", "resources: is 3; it must be a list"),
        ("resources = [3]", "resources[0]: is 3; it must be a table"),
        ("now = 'soon'", "now: is 'soon'; it must be a number of seconds, or date and time with"),
    ],
)
def test_what_is_wrong_with_a_resource_is_said(text: str, line: str) -> None:
    """Key, value and what is allowed are in the line; resources are said by name."""
    (found,) = said(text)
    assert found.startswith(line)


def task(keys: str) -> str:
    return f'{A}[[workflows]]\nname = "w"\ntasks = [{{ name = "t", work = 1, {keys} }}]'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (A + "[[workflows]]\nname = 'w'", "workflows.w.tasks: is missing"),
        (
            A + "[[workflows]]\nname = 'w'\ntasks = []",
            "workflows.w.tasks: is []; it must be a list of at least 1 entries",
        ),
        (
            A + "[[workflows]]\nname = 'w'\ntasks = [{ name = 't', work = 0 }]",
            "workflows.w.tasks.t.work: is 0; it must be more than 0",
        ),
        (
            task("alternatives = ['b']"),
            "workflows.w.tasks.t: alternatives: 'b' is no resource; there are: a",
        ),
        (
            task("alternatives = []"),
            (
                "workflows.w.tasks.t.alternatives: is []; it must be a list of alternatives, at "
                "least one: a resource, or a list of resources together"
            ),
        ),
        (
            task("alternatives = [['a', 'a']]"),
            "workflows.w.tasks.t.alternatives: is ['a', 'a']; it names a resource twice",
        ),
        (
            task("alternatives = [{ resource = 'a', seconds = 0 }]"),
            "workflows.w.tasks.t.alternatives: seconds is 0; it must be seconds, more than 0 to 1e+10",
        ),
        (
            task("alternatives = [{ resource = 'a', setup = 'x' }]"),
            "workflows.w.tasks.t.alternatives: setup is 'x'; it must be seconds, 0 to 1e+10",
        ),
        (
            task("alternatives = [{ resource = ['a'], units = 2, setup = 1 }]"),
            "workflows.w.tasks.t.alternatives: is {'resource': ['a'], 'units': 2, 'setup': 1}; units belong",
        ),
        (
            task("alternatives = [{ seconds = 1 }]"),
            "workflows.w.tasks.t.alternatives: is {}; it must be the name of a resource",
        ),
        (
            task("alternatives = [{ resource = 'a', seconds = 1 }, ['a']]"),
            "workflows.w.tasks.t: task 't' has two alternatives on a, which differ in time",
        ),
        (
            task("alternatives = [[]]"),
            "workflows.w.tasks.t.alternatives: is []; an alternative names at least one",
        ),
        (
            task("alternatives = [{ resource = 'a', unit = 2 }]"),
            (
                "workflows.w.tasks.t.alternatives: 'unit' is no key of an alternative, did you mean "
                "'units'? there are: resource, units, seconds, setup"
            ),
        ),
        (
            task("alternatives = [{ resource = 'a', units = 0 }]"),
            "workflows.w.tasks.t.alternatives: is {'resource': 'a', 'units': 0}; it must be",
        ),
        (
            task("alternatives = ['a'], units = 2"),
            "workflows.w.tasks.t: has alternatives and kind or units; alternatives say all of it",
        ),
        (task("units = 2"), "workflows.w.tasks.t: needs 2 units; no 'cpu' has more than 1"),
        (
            task("kind = 'cpus'"),
            (
                "workflows.w.tasks.t: kind: 'cpus' is no kind of resource here, did you mean "
                "'cpu'? there are: cpu"
            ),
        ),
        (task("predecessors = ['t']"), "workflows.w.tasks.t: task 't' is its own predecessor"),
        (
            task("predecessors = ['u']"),
            "workflows.w: workflow 'w': task 't' waits for 'u', which is not there",
        ),
        (
            A + "[[workflows]]\nname = 'w'\npreference = 2\ntasks = [{ name = 't', work = 1 }]",
            "workflows.w.preference: is 2; it must be at most 1",
        ),
        (
            A + "[[workflows]]\nname = 'w'\ntasks = [{ name = 'x', work = 1, after = [] }]",
            (
                "workflows.w.tasks.x.after: 'after' is no key here; there are: name, work, predecessors, alternatives, kind, units, on_failure, command,"
            ),
        ),
    ],
)
def test_what_is_wrong_with_a_workflow_is_said(text: str, line: str) -> None:
    """Key, value and what is allowed are in the line; workflows and tasks are said by name."""
    (found,) = said(text)
    assert found.startswith(line)


def test_a_cycle_is_said_with_its_tasks() -> None:
    """Tasks that wait for each other are named in order."""
    tasks = [{"name": n, "work": 1, "predecessors": [p]} for n, p in ("ab", "bc", "ca")]
    document = {"resources": [{"name": "r"}], "workflows": [{"name": "w", "tasks": tasks}]}
    (found,) = said(document)
    assert found.startswith("workflows.w: workflow 'w': tasks wait for each other: a → b → c → a")


def test_all_mistakes_are_said_up_to_a_number() -> None:
    """One slip in a large file is not said a thousand times."""
    found = said({"resources": [{"name": f"r{n}", "capacity": 0} for n in range(100)]})
    assert len(found) == MISTAKES_SHOWN_MAX + 1
    assert found[0] == "resources.r0.capacity: is 0; it must be at least 1"
    assert found[-1] == f"… and {100 - MISTAKES_SHOWN_MAX} more mistakes"


def test_mistakes_of_several_tasks_are_said_together() -> None:
    """What needs the pool is checked for every task before anything is said."""
    tasks = [{"name": n, "work": 1, "alternatives": [n]} for n in "xy"]
    document = {"resources": [{"name": "r"}], "workflows": [{"name": "w", "tasks": tasks}]}
    assert said(document) == [
        "workflows.w.tasks.x: alternatives: 'x' is no resource; there are: r",
        "workflows.w.tasks.y: alternatives: 'y' is no resource; there are: r",
    ]


def test_a_file_is_named_in_its_mistakes(tmp_path: Path) -> None:
    """The path is what the user gave."""
    path = tmp_path / "pool.toml"
    path.write_text("[[resources]]\nname = ''")
    with pytest.raises(FileError) as caught:
        read_file(path)
    assert str(caught.value) == (
        f"{path}: resources[0].name: is ''; it must be a text of at least 1 characters"
    )
    assert caught.value.mistakes[0].key == "resources[0].name"


KEYS = (
    *("name", "work", "tasks", "resources", "workflows", "alternatives", "opening"),
    *("prices", "requires", "units", "resource", "begin", "weekdays", "closures"),
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NAMES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["resources", "workflows", "now"]), JUNK))
def test_any_document_is_read_or_said_to_be_wrong(document: dict[str, Any]) -> None:
    """No document ends in an exception that is not meant for a user."""
    with suppress(FileError):
        used(document)


TIMED = """
[[resources]]
name = "a"
requires = ["b"]

[[resources]]
name = "b"
capacity = 2

[[workflows]]
name = "w"
tasks = [
    { name = "s", alternatives = [{ resource = "a", seconds = 4, setup = 1.5 }, { resource = ["b"], seconds = 9 }] },
    { name = "t", work = 3, alternatives = [{ resource = "b", units = 2, setup = 2 }] },
]
"""


def test_alternatives_may_have_times(tmp_path: Path) -> None:
    """Written and read again; without work a task counts by its shortest duration."""
    path = tmp_path / "timed.toml"
    path.write_text(TIMED)
    document = read_file(path)
    (workflow,) = document.workflows(document.pool)
    first, second = workflow.tasks
    assert [(a.resources, a.seconds, a.setup) for a in first.alternatives] == [
        (("a", "b"), 4.0, 1.5),
        (("b",), 9.0, 0.0),
    ]
    assert (first.work, second.work) == (4.0, 3.0)
    assert second.alternatives[0].duration(second.work, 1.0) == 5.0
    again = tmp_path / "again.json"
    write_document(again, document_of(document.pool.resources, [workflow]))
    read = read_file(again)
    assert read.workflows(read.pool) == (workflow,)
    path.write_text(TIMED.replace("seconds = 9", "setup = 9"))
    with pytest.raises(FileError, match="work is missing; only alternatives that all have seconds"):
        read_file(path)


ADDED = """
[[resources]]
name = "alpha"
[[tasks]]
name = "fit"
work = 2
command = "./fit $1"
inputs = ["split/grid"]
outputs = ["o"]
elements = ["a b", ["c", "d"], []]
on_failure = "continue"
[[tasks]]
name = "end"
work = 1
command = ["./end"]
inputs = { first = "fit/1/o" }
"""


def test_tasks_for_an_open_workflow() -> None:
    """They may wait for tasks that are there already; an element is named by its number."""
    document = parse_file(tomllib.loads(ADDED), file="x.toml")
    assert (document.workflow_count, document.tasks_count) == (0, 2)
    fit, end = document.additions(document.pool, ["split"])
    assert fit.elements == (("a b",), ("c", "d"), ())
    assert (fit.task.predecessors, fit.task.on_failure) == (("split",), "continue")
    assert end.task.predecessors == ("fit/1",)
    assert end.program is not None
    assert [(each.task, each.output) for each in end.program.inputs] == [("fit/1", "o")]
    with pytest.raises(FileError, match=r"tasks\.fit: inputs: split/grid is no file here"):
        document.additions(document.pool, [])


@pytest.mark.parametrize("elements", ["0", "true", "100_001", "[]", "[1]", '[["a", 1]]', '"a"'])
def test_elements_that_are_none_are_refused(elements: str) -> None:
    """A number, or a list with the arguments of each."""
    text = f'[[tasks]]\nname = "x"\nwork = 1\nelements = {elements}\n'
    with pytest.raises(FileError, match="a list with the arguments of each element"):
        parse_file(tomllib.loads(text), file="x.toml")
    twice = '[[tasks]]\nname = "x"\nwork = 1\n' * 2
    with pytest.raises(FileError, match="names must be unique"):
        parse_file(tomllib.loads(twice), file="x.toml")
