import json
from dataclasses import replace
from pathlib import Path

import pytest

from broker.io.import_options import ImportOptions, MappingRule
from broker.io.loading import make_problem, read_inputs
from broker.io.plans import plan_document, read_plan
from broker.io.writing import to_json
from broker.model.limits import Limits
from broker.model.network import Copy
from broker.model.plan import Placement, Plan, Transfer
from broker.model.workflow import Demand
from broker.util.errors import FileError, InputError
from tests.broker.io.test_wfformat import diamond

POOL = """
[[resources]]
name = "alpha"
capacity = 8
[[resources]]
name = "beta"
kind = "gpu"
requires = ["alpha"]
"""
FLOW = """
[[workflows]]
name = "own"
tasks = [{ name = "one", work = 5 }, { name = "two", work = 5, predecessors = ["one"] }]
"""
TASKS = [("own", "one"), ("own", "two")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with a pool, a workflow, both in one file, and a recording."""
    (tmp_path / "pool.toml").write_text(POOL)
    (tmp_path / "flow.toml").write_text(FLOW)
    (tmp_path / "both.toml").write_text("now = 5\n" + FLOW + POOL)
    (tmp_path / "diamond.json").write_text(json.dumps(diamond()))
    return tmp_path


def test_files_are_brought_together_whatever_their_order(folder: Path) -> None:
    """Workflows of both formats are planned on the resources of whichever file has them."""
    names = ["diamond.json", "pool.toml", "flow.toml"]
    for order in (names, names[::-1]):
        problem = make_problem(read_inputs([folder / name for name in order]), now=7.0)
        assert [workflow.name for workflow in problem.workflows] == ["own", "diamond"]
        assert [resource.name for resource in problem.resources] == ["alpha", "beta"]
        assert problem.now == 7.0


def test_one_file_may_hold_all(folder: Path) -> None:
    """Also the moment from which on to plan."""
    inputs = read_inputs([folder / "both.toml"])
    assert inputs.now == 5.0
    assert make_problem(inputs, now=5.0).workflows[0].name == "own"


def test_the_same_recording_may_come_more_than_once(folder: Path) -> None:
    """Workflows have the names of their files, with numbers where these come again."""
    inputs = read_inputs([folder / "diamond.json"] * 3 + [folder / "pool.toml"])
    assert [name for name, _ in inputs.recorded] == ["diamond", "diamond-2", "diamond-3"]


def test_options_and_limits_reach_the_workflows(folder: Path) -> None:
    """What a kind requires comes along; limits count from now."""
    inputs = read_inputs([folder / "diamond.json", folder / "pool.toml"])
    options = ImportOptions((MappingRule("*", ("gpu",)),), "ignore")
    problem = make_problem(inputs, now=3.0, options=options, limits=Limits(due_in=10.0))
    (workflow,) = problem.workflows
    assert workflow.due_date == 13.0
    assert {each.alternatives[0].resources for each in workflow.tasks} == {("beta", "alpha")}


def test_what_an_old_plan_started_stays(folder: Path) -> None:
    """Tasks that start before now are fixed; workflows that are gone do not matter."""
    old = Plan(
        (
            Placement("own", "one", (Demand("alpha"),), 0.0, 5.0, 0.0),
            Placement("own", "two", (Demand("alpha"),), 10.0, 15.0, 0.0),
            Placement("gone", "x", (Demand("alpha"),), 0.0, 5.0, 0.0),
        )
    )
    inputs = read_inputs([folder / "both.toml"])
    for now, count in ((0.0, 0), (6.0, 1), (10.0, 1), (11.0, 2)):
        fixed = make_problem(inputs, now=now, old=old).fixed
        assert [(each.workflow, each.task) for each in fixed] == TASKS[:count]


def test_what_an_old_plan_has_begun_to_send_stays(folder: Path) -> None:
    """Until its end it holds its link, and then it is where it was sent; of other workflows nothing counts."""
    (folder / "files.toml").write_text(
        """
resources = [{ name = "near" }, { name = "far" }]
network = { bandwidth = 10, inputs = "near", contention = "link" }
[[workflows]]
name = "own"
tasks = [{ name = "one", work = 5 }, { name = "two", work = 5 }]
files = [{ name = "a", size = 100, readers = ["one"] }, { name = "b", size = 100, readers = ["two"] }]
"""
    )
    first, second = (
        Transfer("own", task, (file,), "near", "far", begin, begin + 10.0, 100.0, 0.0)
        for task, file, begin in (("one", "a", 0.0), ("two", "b", 10.0))
    )
    gone = replace(first, workflow="gone")
    old = Plan((), (), (first, second, gone))
    path = folder / "plan.json"
    inputs = read_inputs([folder / "files.toml"])
    path.write_text(to_json(plan_document(make_problem(inputs, now=0.0), old)))
    assert read_plan(path).transfers == old.transfers
    for now, begun, under_way in (
        (0.0, (), ()),
        (6.0, (first,), (first,)),
        (12.0, (first, second), (second,)),
        (30.0, (first, second), ()),
    ):
        problem = make_problem(inputs, now=now, old=read_plan(path))
        assert problem.under_way == under_way
        assert problem.copies == tuple(
            Copy("own", each.files[0], "far", each.end) for each in begun
        )


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["flow.toml"], "there is no resource to plan for; name a file of them: --resources"),
        (["pool.toml"], "there is no workflow to plan; name a file of workflows"),
        (["pool.toml", "both.toml"], "resource 'alpha' is in "),
        (["both.toml", "flow.toml"], "workflows of the same name: own"),
        (
            ["lonely.toml", "flow.toml"],
            "lonely.toml: resource 'a' requires 'b', which is not there",
        ),
        (["long.toml", "pool.toml"], "1 task can run nowhere"),
        (["ring.toml", "back.toml", "flow.toml"], "resources require each other: r → s → r"),
    ],
)
def test_what_does_not_fit_together_is_said(folder: Path, names: list[str], said: str) -> None:
    """The text names files, resources or tasks."""
    (folder / "lonely.toml").write_text('[[resources]]\nname = "a"\nrequires = ["b"]')
    (folder / "ring.toml").write_text('[[resources]]\nname = "r"\nrequires = ["s"]')
    (folder / "back.toml").write_text('[[resources]]\nname = "s"\nrequires = ["r"]')
    (folder / "long.toml").write_text(
        '[[resources]]\nname = "c"\nopening = [{ end = "00:01" }]\n'
        '[[workflows]]\nname = "w"\ntasks = [{ name = "t", work = 61, alternatives = ["c"] }]'
    )
    with pytest.raises(InputError) as caught:
        make_problem(read_inputs([folder / name for name in names]), now=0.0)
    assert said in str(caught.value)


def test_files_that_disagree_on_now_are_refused(folder: Path) -> None:
    """One moment must be named; files that agree are fine."""
    (folder / "late.toml").write_text("now = 6")
    (folder / "same.toml").write_text("now = 5")
    assert read_inputs([folder / "both.toml", folder / "same.toml"]).now == 5.0
    assert read_inputs([folder / "pool.toml"]).now is None
    with pytest.raises(InputError, match=r"late.toml give different moments as now; name one"):
        _ = read_inputs([folder / "both.toml", folder / "late.toml"]).now


def test_a_broken_file_is_named(folder: Path) -> None:
    """The first file that cannot be used ends it."""
    (folder / "broken.json").write_text("{")
    with pytest.raises(FileError, match=r"broken.json: no JSON"):
        read_inputs([folder / "pool.toml", folder / "broken.json"])
