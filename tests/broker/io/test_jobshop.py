from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.io.jobshop import parse_flexible_job_shop, parse_job_shop, read_job_shop
from broker.model.heft import heft
from broker.util.errors import FileError
from tests.oracles.plan_checker import plan_violations

SMALL = """# Two jobs
instance small

2 3
0 3  1 2.5  2 2
1 2  0 1  2 4
"""


def test_jobs_become_workflows_and_machines_resources() -> None:
    """Operations wait for each other and run on one machine each; text before is left out."""
    problem = parse_job_shop(SMALL, file="f")
    assert [resource.name for resource in problem.resources] == ["m0", "m1", "m2"]
    assert [
        [(task.work, task.alternatives[0].primary, task.predecessors) for task in workflow.tasks]
        for workflow in problem.workflows
    ] == [
        [(3.0, "m0", ()), (2.5, "m1", ("o0",)), (2.0, "m2", ("o1",))],
        [(2.0, "m1", ()), (1.0, "m0", ("o0",)), (4.0, "m2", ("o1",))],
    ]
    assert plan_violations(problem, heft(problem)) == []


def test_operations_may_take_no_time() -> None:
    """They wait for their machine: here for the end of what is on it."""
    problem = parse_job_shop("2 2\n0 5 1 1\n1 2 0 0\n", file="f")
    plan = heft(problem)
    assert plan_violations(problem, plan) == []
    instant = plan.placement("j1", "o1")
    assert instant is not None
    assert instant.start == instant.end
    assert instant.start in (2.0, 5.0)
    # Machine 0 is taken from 0 to 5, or the instant came first and it began at 2.
    long = plan.placement("j0", "o0")
    assert long is not None
    assert not long.start < instant.start < long.end


def test_files_are_read(tmp_path: Path) -> None:
    """By their path, which errors name."""
    path = tmp_path / "small.txt"
    path.write_text(SMALL)
    assert len(read_job_shop(path).workflows) == 2
    with pytest.raises(FileError, match=r"none.txt: cannot be read"):
        read_job_shop(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no job shop: no line says how many jobs and machines there are"),
        ("2\n3 4 5", "no job shop"),
        ("2 3\n0 3 1 2 2 2", "line 1: 2 jobs on 3 machines are announced; there are 1 jobs"),
        ("0 3\n", "line 1: 0 jobs on 3 machines are announced; there are 0 jobs"),
        ("1 3\n0 3 1 2", "line 2: 4 numbers; machine and time of 3 operations are 6"),
        ("1 2\n0 3 2 2", "line 2: machine '2'; it must be from 0 to 1"),
        ("1 2\n0 3 -1 2", "line 2: machine '-1'; it must be from 0 to 1"),
        ("1 2\n0 3 1 -1", "line 2: time '-1'; it must be a number from 0 to 1e+10"),
        (f"{'9' * 5000} 1\nx", "no job shop: no line says how many jobs and machines"),
        (f"1 1\n{'9' * 5000} 1", "line 2: machine '9999"),
        ("1 1\n0 99999999999", "line 2: time '99999999999'; it must be a number from 0"),
        ("1 2\n0 3 1 nan", "line 2: time 'nan'; it must be a number from 0 to 1e+10"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, said: str) -> None:
    """The number of the line, the value and what is allowed are in the text."""
    with pytest.raises(FileError) as caught:
        parse_job_shop(text, file="f")
    assert str(caught.value).startswith(f"f: {said}")


def test_mistakes_of_several_lines_are_said_together() -> None:
    """One for each job."""
    with pytest.raises(FileError) as caught:
        parse_job_shop("2 1\n0 -1\n1 1", file="f")
    assert len(caught.value.mistakes) == 2


@given(st.text(st.sampled_from("0123456789 \n.-x#"), max_size=60))
def test_any_text_is_a_job_shop_or_said_to_be_none(text: str) -> None:
    """No file ends in another exception."""
    with suppress(FileError):
        parse_job_shop(text, file="f")


FLEXIBLE = """# two jobs
2 3 1.5
2 2 1 4 3 2.5  1 2 3
1 1 3 7
"""


def test_flexible_jobs_choose_machines(tmp_path: Path) -> None:
    """By the ending of the name; machines are counted from 0 or from 1."""
    path = tmp_path / "two.fjs"
    path.write_text(FLEXIBLE)
    problem = read_job_shop(path)
    assert [resource.name for resource in problem.resources] == ["m0", "m1", "m2"]
    assert [
        [[(each.primary, each.seconds) for each in task.alternatives] for task in flow.tasks]
        for flow in problem.workflows
    ] == [[[("m0", 4.0), ("m2", 2.5)], [("m1", 3.0)]], [[("m2", 7.0)]]]
    assert problem.workflows[0].tasks[1].predecessors == ("o0",)
    assert plan_violations(problem, heft(problem)) == []
    from_0 = "2 3\n1 2 0 4 2 2.5\n1 1 2 7\n"
    names = [
        task.alternatives[-1].primary
        for flow in parse_flexible_job_shop(from_0, file="f").workflows
        for task in flow.tasks
    ]
    assert names == ["m2", "m2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no flexible job shop: the first line does not say how many"),
        ("# x\nsome jobs\n", "line 2: no flexible job shop"),
        ("2 2\n1 1 0 1\n", "line 1: 2 jobs on 2 machines are announced; there are 1 jobs"),
        ("0 2\n", "line 1: 0 jobs on 2 machines"),
        ("1 2\n", "there are 0 jobs"),
        ("1 2\n0\n", "line 2: number of operations '0'"),
        ("1 2\n1 3 0 1 1 1 2 1\n", "line 2: number of machines of operation 1 '3'; from 1 to 2"),
        ("1 2\n1 1 3 4\n", "line 2: machine of operation 1 '3'; from 0 to 2"),
        ("1 2\n1 2 0 4 0 5\n", "line 2: operation 1 names machine 0 twice"),
        ("1 2\n1 1 0 0\n", "line 2: time '0' of operation 1; more than 0"),
        ("1 2\n1 1 0 x\n", "line 2: time 'x' of operation 1"),
        ("1 2\n2 1 0 4\n", "line 2: it ends where the number of machines of operation 2 should"),
        ("1 2\n1 1 0\n", "line 2: time '' of operation 1"),
        ("1 2\n1 1 0 4 7\n", "line 2: 1 numbers more than 1 operations have"),
        ("1 2\n2 1 0 4 1 2 4\n", "line 1: machines 0 and 2 are both used; 2 machines go from 0"),
    ],
)
def test_what_is_wrong_in_a_flexible_one_is_said(text: str, said: str) -> None:
    """With the line where there is one."""
    with pytest.raises(FileError) as caught:
        parse_flexible_job_shop(text, file="f.fjs")
    assert said in str(caught.value)


@given(st.text(st.sampled_from("0123 456789.\n-x#"), max_size=60))
def test_any_text_is_a_flexible_job_shop_or_refused(text: str) -> None:
    """Whatever stands in a file."""
    with suppress(FileError):
        parse_flexible_job_shop(text, file="f")
