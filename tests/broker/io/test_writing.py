import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.io.pools import parse_file, read_file
from broker.io.writing import document_of, to_json, write_document, write_text
from broker.model.resources import PriceRule, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.util.errors import OutputError
from lrms_sim.util.files import to_toml
from tests.broker.drawn import MOMENTS, NAMES, pools, workflows


@settings(max_examples=60)
@given(st.data(), pools(), st.booleans(), MOMENTS | st.none())
def test_what_is_written_is_read_back_the_same(
    data: st.DataObject, pool: tuple[Resource, ...], as_json: bool, now: float | None
) -> None:
    """Resources, workflows and the moment survive in both formats, to the last bit."""
    names = data.draw(st.lists(NAMES, max_size=2, unique=True))
    made = tuple(data.draw(workflows(name, pool)) for name in names)
    document = document_of(pool, made, now=now)
    text = to_json(document) if as_json else to_toml(document)
    read = parse_file(json.loads(text) if as_json else tomllib.loads(text), file="f")
    assert (read.pool.resources, read.now) == (pool, now)
    assert read.workflows(read.pool) == made
    assert read.workflow_count == len(made)


def test_files_are_written_for_people() -> None:
    """Defaults are left out; prices, hours and days stand there as one would write them."""
    night = WeeklyWindow(0.0, 7 * 3600.0, (0, 1, 2, 3, 4))
    resource = Resource(
        "a", performance=2.0, price=0.3 / 3600, price_rules=(PriceRule(0.0, night),)
    )
    alternative = Alternative((Demand("a"), Demand("b", 2)))
    workflow = Workflow("w", (Task("t", 3.0, (alternative,)),), due_date=1_772_438_400.0)
    assert to_toml(document_of([resource], [workflow], now=0.0, description="Two\nlines.")) == (
        'description = "Two\\nlines."\nnow = 0.0\n\n'
        '[[resources]]\nname = "a"\nperformance = 2.0\nprice_per_hour = 0.3\n\n'
        "[[resources.prices]]\n"
        'price_per_hour = 0.0\nweekdays = ["mon-fri"]\nend = "07:00"\n\n'
        '[[workflows]]\nname = "w"\ndue_date = "2026-03-02T08:00:00Z"\n\n'
        '[[workflows.tasks]]\nname = "t"\nwork = 3.0\n'
        'alternatives = [["a", { resource = "b", units = 2 }]]\n'
    )


def test_json_has_a_line_for_each_task() -> None:
    """A large file can be read, and compared line by line."""
    tasks = tuple(Task(name, 1.0, (Alternative.of("a"),)) for name in "xyz")
    text = to_json(document_of([Resource("a")], [Workflow("w", tasks)]))
    assert text.splitlines() == [
        "{",
        ' "resources": [',
        '  {"name": "a"}',
        " ],",
        ' "workflows": [',
        "  {",
        '   "name": "w",',
        '   "tasks": [',
        '    {"name": "x", "work": 1.0, "alternatives": [["a"]]},',
        '    {"name": "y", "work": 1.0, "alternatives": [["a"]]},',
        '    {"name": "z", "work": 1.0, "alternatives": [["a"]]}',
        "   ]",
        "  }",
        " ]",
        "}",
    ]


def test_the_name_says_the_format(tmp_path: Path) -> None:
    """A file ending in .json is JSON, any other TOML; both are read by their names."""
    for name, begin in (("pool.json", "{"), ("pool.toml", "\n[[resources]]"), ("pool", "\n[[res")):
        write_document(tmp_path / name, document_of([Resource("a")]))
        assert ("\n" + (tmp_path / name).read_text()).lstrip("\n").startswith(begin.lstrip("\n"))
        assert read_file(tmp_path / name).pool.resources == (Resource("a"),)


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The error names the file and the reason."""
    with pytest.raises(OutputError, match=r"nowhere/p.toml cannot be written: No such file"):
        write_text(tmp_path / "nowhere" / "p.toml", "")
