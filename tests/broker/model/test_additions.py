"""Tasks that are added to open workflows, and arrays of them."""

import pytest

from broker.model.additions import ELEMENTS_MAX, Addition, in_order, written_out
from broker.model.program import Program
from broker.model.workflow import Alternative, OpenWorkflow, Task, Workflow
from broker.util.errors import InputError

ALPHA = (Alternative.of("alpha"),)


def task(name: str, *before: str) -> Task:
    """Returns a task on alpha."""
    return Task(name, 2.0, ALPHA, before)


def test_a_single_task_is_itself() -> None:
    """With its program."""
    program = Program.of_command("a", ["true"])
    one = Addition(task("a", "b"), program)
    assert (one.count, one.names) == (1, ("a",))
    ((made, runs),) = one.tasks({})
    assert made is one.task
    assert runs is program


def test_an_array_is_many_that_differ_in_arguments() -> None:
    """Each has the array's name and a number; what it waits for is the same."""
    program = Program.of_command("fit", ["./fit", "--fast"], outputs=["o"])
    many = Addition(task("fit", "split"), program, (("1",), ("2", "b"), ()))
    assert many.names == ("fit/1", "fit/2", "fit/3")
    made = list(many.tasks({"split": ("split/1", "split/2")}))
    assert [each.name for each, _ in made] == list(many.names)
    assert {each.predecessors for each, _ in made} == {("split/1", "split/2")}
    words = [each.arguments for _, each in made if each is not None]
    assert words == [("./fit", "--fast", "1"), ("./fit", "--fast", "2", "b"), ("./fit", "--fast")]
    assert {each.alternatives is ALPHA for each, _ in made} == {True}, "it is shared"


def test_the_name_of_an_array_stands_for_all_its_elements() -> None:
    """Each comes once, in the order of the names."""
    arrays = {"x": ("x/1", "x/2")}
    assert written_out(("a", "x/2", "x", "b"), arrays) == ("a", "x/2", "x/1", "b")
    assert written_out(("a",), arrays) == ("a",)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Addition(task("a"), Program.of_command("b", ["true"])),
            r"^task 'a' has the program of 'b'$",
        ),
        (
            lambda: Addition(task("a"), None, ((),) * (ELEMENTS_MAX + 1)),
            r"^task 'a' has 100001 elements; at most 100000$",
        ),
        (
            lambda: Addition(task("a"), None, (("x",),)),
            r"^task 'a' has arguments for elements, and no program$",
        ),
    ],
)
def test_what_is_no_addition_is_refused(make: object, words: str) -> None:
    """With the task's name."""
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]  # a function
    assert Addition(task("a"), None, ((),) * 3).count == 3


def test_tasks_come_after_those_that_they_wait_for() -> None:
    """In whatever order they were given; an array, and an element of one, are waited for."""
    split = Addition(task("split"), None, ((), ()))
    others = [Addition(task("end", "mid")), Addition(task("mid", "split/2", "before")), split]
    assert [each.task.name for each in in_order(others)] == ["split", "mid", "end"]
    with pytest.raises(InputError, match=r"^tasks wait for each other: a → b → a$"):
        in_order([Addition(task("a", "b")), Addition(task("b", "a"))])


def test_only_an_open_workflow_may_have_no_task() -> None:
    """And what becomes of a failure is one of three words."""
    assert OpenWorkflow("flow", ()).tasks == ()
    with pytest.raises(ValueError, match=r"^workflow 'flow' has no task$"):
        Workflow("flow", ())
    with pytest.raises(
        ValueError,
        match=r"^workflow 'flow': on_failure is 'ignore'; it must be one of finish, terminate, continue$",
    ):
        OpenWorkflow("flow", (), on_failure="ignore")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(
        ValueError,
        match=r"^task 'a': on_failure is 'stop'; it must be one of finish, terminate, continue$",
    ):
        Task("a", 1.0, ALPHA, (), "stop")  # type: ignore[arg-type]  # wrong on purpose
