from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.io.psplib import parse_project, read_project
from broker.model.heft import heft
from broker.util.errors import FileError
from tests.oracles.plan_checker import plan_violations

SMALL = """******
file with basedata            : SMALL.BAS
projects                      :  1
jobs (incl. supersource/sink ):  6
horizon                       :  20
RESOURCES
  - renewable                 :  2   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
******
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        1          1           4
   3        1          1           4
   4        1          1           5
   5        1          1           6
   6        1          0
******
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
------
  1      1     0       0    0
  2      1     4       2    1
  3      1   2.5       0    0
  4      1     0       0    0
  5      1     1       3    0
  6      1     0       0    0
******
RESOURCEAVAILABILITIES:
  R 1  R 2
    3    1
******
"""


def test_a_project_becomes_a_workflow() -> None:
    """Milestones are left out: what waits for one waits for what it waits for."""
    problem = parse_project(SMALL, file="f")
    (workflow,) = problem.workflows
    assert [(each.name, each.capacity) for each in problem.resources] == [
        ("R1", 3),
        ("R2", 1),
        ("unlimited", 3),
    ]
    assert [
        (
            task.name,
            task.work,
            [(each.resource, each.units) for each in task.alternatives[0].demands],
            task.predecessors,
        )
        for task in workflow.tasks
    ] == [
        ("2", 4.0, [("R1", 2), ("R2", 1)], ()),
        ("3", 2.5, [("unlimited", 1)], ()),
        ("5", 1.0, [("R1", 3)], ("2", "3")),
    ]
    plan = heft(problem)
    assert plan_violations(problem, plan) == []
    assert plan.makespan_end == 5.0


def test_files_are_read(tmp_path: Path) -> None:
    """By their path, which errors name; as Windows writes them, too."""
    path = tmp_path / "small.sm"
    path.write_text(SMALL.replace("\n", "\r\n"))
    assert len(read_project(path).workflows[0].tasks) == 3
    with pytest.raises(FileError, match=r"none.sm: cannot be read"):
        read_project(tmp_path / "none.sm")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("PRECEDENCE RELATIONS:", "", "there is no section 'PRECEDENCE RELATIONS'"),
        (
            "******\nPRECEDENCE",
            "REQUESTS/DURATIONS:\n******\nPRECEDENCE",
            "line 21: a second section",
        ),
        ("jobs (incl", "tasks (incl", "no line says how many jobs there are"),
        ("):  6", f"):  {'9' * 5000}", "no line says how many jobs there are"),
        ("):  6", "):  0", "line 4: 0 jobs; from 1 to 100000"),
        ("):  6", "):  7", "7 jobs are announced; 'PRECEDENCE RELATIONS' has none for: 7"),
        ("nonrenewable              :  0", "nonrenewable : 2", "line 8: 2 nonrenewable resources;"),
        ("renewable                 :  2", "renewable : 3", "line 23: 5 numbers; job, mode, dur"),
        ("   2        1          1           4", "   2   1", "line 14: a job has its number, its"),
        ("   2        1          1           4", "   2 3 1 4", "line 14: mode or modes '3'; jobs"),
        ("   2        1          1           4", "   2 1 2 4", "line 14: 2 successors are announc"),
        ("   2        1          1           4", "   2 1 1 9", "line 14: successor '9'; a whole"),
        (
            "   2        1          1           4",
            "   2 1 1 2",
            "line 14: successor 2 is the job it",
        ),
        (
            "   2        1          1           4",
            "   2 1 2 4 4",
            "line 14: successor 4 is named tw",
        ),
        ("   2        1          1           4", "   3 1 1 4", "line 15: job 3 a second time"),
        ("   4        1          1           5", "   4 1 1 2", "jobs wait for each other: "),
        ("  2      1     4       2", "  2 1 -4 2", "line 24: duration '-4'; from 0 to"),
        ("  2      1     4       2", "  2 1 x 2", "line 24: duration 'x'"),
        ("  2      1     4       2", "  2 2 4 2", "line 24: mode or modes '2'"),
        ("  2      1     4       2", "  2 1 4 2.5", "line 24: units '2.5'; a whole number"),
        (
            "  2      1     4       2",
            "  2 1 4 4",
            "line 24: job 2 takes 4 of resource 1, which has",
        ),
        ("    3    1\n", f"{'9' * 5000} 1\n", "line 32: units '999"),
        ("    3    1\n", "", "0 lines of units of resources under"),
        ("    3    1\n", "3 1\n3 1\n", "line 33: 2 lines of units"),
        ("    3    1\n", "3\n", "line 32: units of 1 resources; there are 2"),
    ],
)
def test_what_is_wrong_is_said(before: str, after: str, said: str) -> None:
    """With the line where there is one."""
    assert before in SMALL
    with pytest.raises(FileError) as caught:
        parse_project(SMALL.replace(before, after, 1), file="f.sm")
    assert said in str(caught.value)
    assert str(caught.value).startswith("f.sm: ")


def test_something_has_to_be_done() -> None:
    """Milestones alone are nothing to plan."""
    text = (
        SMALL.replace("1     4 ", "1  0 ").replace("2.5", "0").replace("1     1       3", "1 0 3")
    )
    with pytest.raises(FileError, match="no job takes any time"):
        parse_project(text, file="f")


@given(
    st.text(
        st.sampled_from("0123456789 \n*-.:PRECEDENCE RELATIONSREQUESTS/DURATIONS"), max_size=60
    ),
    st.integers(0, len(SMALL)),
    st.integers(0, 80),
)
def test_any_text_is_read_or_refused(text: str, place: int, gone: int) -> None:
    """Whatever takes the place of whatever in a file."""
    with suppress(FileError):
        parse_project(SMALL[:place] + text + SMALL[place + gone :], file="f")
