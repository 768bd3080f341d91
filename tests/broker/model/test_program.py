"""What tasks run: what could run nowhere is refused, with a reason."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.model.program import (
    COMMAND_SCRIPT,
    LIMIT_LEAST_S,
    RUNS_MAX,
    SCRIPT_BYTES_MAX,
    WORDS_MAX,
    Checkpoint,
    Input,
    Program,
    Rerun,
    check_programs,
    ending_words,
    needed_outputs,
)
from broker.model.workflow import WORK_MAX, Alternative, Task, Workflow
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request

SCRIPT = "#!/bin/sh\n"
SOME = (Alternative.of("alpha"),)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (
            {"script": "echo"},
            r"^its script has no first line that says what runs it, as #!/bin/sh$",
        ),
        ({"script": SCRIPT + "x" * (1 << 20)}, r"^its script has 1048586 bytes; at most 1048576$"),
        ({"arguments": ("a\0",)}, r"^an argument, a variable or the script has the character NUL$"),
        ({"arguments": ("\udce4",)}, r"^'\\udce4' is no text in UTF-8$"),
        ({"arguments": ("x",) * 10_001}, r"^it has more than 10000 arguments or variables$"),
        ({"environment": (("A=", "x"),)}, "no name of an environment variable"),
        ({"environment": (("", "x"),)}, "no name of an environment variable"),
        (
            {"environment": (("B", "x"), ("A", "x"))},
            r"^its variables are not sorted, or one comes twice$",
        ),
        ({"environment": (("A", "x"), ("A", "y"))}, "twice"),
        ({"outputs": ("../x",)}, "no name of a file"),
        ({"outputs": ("x", "x")}, "twice"),
        (
            {"outputs": ("stdout",)},
            r"^'stdout' is a name that the site itself uses in the job's folder$",
        ),
        (
            {"outputs": ("y", "x*")},
            r"^'x\*': a task's output is one file, .*; no folder and no pattern$",
        ),
        (
            {"outputs": ("x/",)},
            r"^'x/': a task's output is one file, as others are given it; no folder and no pattern$",
        ),
        (
            {"inputs": (Input("x", path="x"),), "outputs": ("x",)},
            r"^'x' is an input and an output; name one of them otherwise$",
        ),
        (
            {"request": Request(account="--x")},
            r"^account: '--x' is no name; one has letters, digits and _\.:@/\+=-, and begins with neither sign$",
        ),
    ],
)
def test_what_could_run_nowhere_is_refused(values: dict[str, Any], word: str) -> None:
    """When it is made."""
    with pytest.raises(ValueError, match=word):
        Program(**({"task": "t", "script": SCRIPT} | values))


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({}, r"^the input 'x' is a content, a file here, or the output of a task: one of them$"),
        (
            {"path": "x", "task": "t"},
            r"^the input 'x' is a content, a file here, or the output of a task: one of them$",
        ),
        ({"sha256": bytes(31)}, r"^the input 'x' has no SHA-256 of 32 bytes$"),
        ({"sha256": bytes(32), "size": -1}, r"^the input 'x' has no SHA-256 of 32 bytes$"),
        ({"task": "t", "output": "/x"}, "no name of a file"),
    ],
)
def test_an_input_is_of_one_kind(values: dict[str, Any], word: str) -> None:
    """A content, a file here, or what a task leaves."""
    with pytest.raises(ValueError, match=word):
        Input("x", **values)
    with pytest.raises(ValueError, match="no name of a file"):
        Input("/x", path="x")


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"runs": 0}, r"^rerun: runs is 0; it must be from 1 to 100$"),
        ({"runs": 101, "exit_codes": (1,)}, r"^rerun: runs is 101; it must be from 1 to 100$"),
        (
            {"runs": 2},
            r"^rerun: runs and exit_codes \(or outcomes\) go together: how often, and after what$",
        ),
        (
            {"exit_codes": (1,)},
            r"^rerun: runs and exit_codes \(or outcomes\) go together: how often, and after what$",
        ),
        ({"runs": 2, "exit_codes": (0,)}, r"^rerun: the exit code 0; it must be from 1 to 255$"),
        (
            {"runs": 2, "exit_codes": (256,)},
            r"^rerun: the exit code 256; it must be from 1 to 255$",
        ),
        (
            {"runs": 2, "outcomes": ("completed",)},
            r"^rerun: the outcome 'completed'; it must be one of node_fail, timeout, out_of_memory, lost, unknown, cancelled, preempted$",
        ),
    ],
)
def test_a_rerun_says_how_often_and_after_what(values: dict[str, Any], word: str) -> None:
    """Never by itself."""
    with pytest.raises(ValueError, match=word):
        Rerun(**values)


def test_what_is_just_within_the_bounds_is_a_program() -> None:
    """The longest script, the most words and the most runs."""
    words = ("x",) * WORDS_MAX
    variables = tuple((f"A{number:05}", "x") for number in range(WORDS_MAX))
    made = Program(
        "t", SCRIPT.ljust(SCRIPT_BYTES_MAX), words, variables, rerun=Rerun(RUNS_MAX, (1, 255))
    )
    assert (len(made.script), len(made.arguments)) == (SCRIPT_BYTES_MAX, WORDS_MAX)
    for change in (
        {"script": SCRIPT.ljust(SCRIPT_BYTES_MAX - 1) + "ä"},
        {"arguments": (*words, "y")},
        {"environment": (*variables, ("B", "x"))},
    ):
        with pytest.raises(ValueError, match=r"at most 1048576|more than 10000 arguments"):
            replace(made, **change)


@pytest.mark.parametrize(
    ("every", "files", "reason"),
    [
        (0.99, ("state",), "every is 0.99; it must be at least 1 s"),
        (math.nan, ("state",), "every is nan; it must be at least 1 s"),
        (math.inf, ("state",), "every is inf; it must be at least 1 s"),
        (60.0, (), "files are missing, in which it writes its state"),
    ],
)
def test_a_program_that_goes_on_says_how_often_it_writes_its_state_and_where(
    every: float, files: tuple[str, ...], reason: str
) -> None:
    """Else it would begin anew without anybody knowing why."""
    with pytest.raises(ValueError, match=f"^checkpoint: {reason}$"):
        Checkpoint(every, files)
    assert Checkpoint(1.0, ("state",)).every == 1.0


def test_a_program_is_run_again_after_what_was_asked_for_alone() -> None:
    """And no more often."""
    rerun = Rerun(3, (75,), ("node_fail",))
    assert rerun.wanted(1, "failed", 75)
    assert rerun.wanted(2, "node_fail", None)
    assert not rerun.wanted(3, "failed", 75)
    assert not rerun.wanted(1, "failed", 1)
    assert not rerun.wanted(1, "failed", None)
    assert not rerun.wanted(1, "timeout", 75)
    assert not Rerun().wanted(1, "failed", 75)


def test_a_command_is_the_arguments_of_a_script() -> None:
    """Files come from here or from predecessors; the limit is the request's wall time."""
    made = Program.of_command(
        "t",
        ["cat", "a b"],
        environment={"B": "2", "A": "1"},
        request=Request(tasks=2),
        limit=5.0,
        inputs={"x": Path("in/x"), "y": "in/y", "z": ("s", "out")},
        outputs=["o"],
    )
    assert (made.script, made.arguments) == (COMMAND_SCRIPT, ("cat", "a b"))
    assert made.environment == (("A", "1"), ("B", "2"))
    assert (made.limit, made.request.tasks) == (5.0, 2)
    assert made.inputs == (
        Input("x", path="in/x"),
        Input("y", path="in/y"),
        Input("z", task="s", output="out"),
    )
    with pytest.raises(ValueError, match=r"^there is neither a command nor a script$"):
        Program.of_command("t")


def test_who_says_no_limit_has_twice_the_estimate() -> None:
    """And at least ten minutes."""
    program = Program("t", SCRIPT)
    assert program.limited(10.0).limit == LIMIT_LEAST_S
    assert program.limited(3600.0).limit == 7200.0
    assert program.limited(10.0).limited(3600.0).limit == LIMIT_LEAST_S
    assert program.limited(WORK_MAX).limit == WORK_MAX  # as long as any program may say


def test_programs_belong_to_tasks_and_are_given_what_those_leave() -> None:
    """Of predecessors that declare it."""
    flow = Workflow("flow", (Task("a", 1, SOME), Task("b", 1, SOME, ("a",)), Task("c", 1, SOME)))
    maker = Program("a", SCRIPT, outputs=("x",))
    two, none = Program("a", SCRIPT, outputs=("x", "z")), Program("a", SCRIPT)

    def given(task: str, of: str, name: str) -> Program:
        return Program(task, SCRIPT, inputs=(Input("in", task=of, output=name),))

    check_programs(flow, [maker, given("b", "a", "x")])
    assert needed_outputs([maker, given("b", "a", "x")]) == {"a": {"x"}}
    for programs, word in (
        ([Program("d", SCRIPT)], r"^there is no task 'd', which is to run a program$"),
        ([maker, maker], r"^task 'a' has two programs$"),
        (
            [maker, given("c", "a", "x")],
            r"^task 'c': it is given 'x' of 'a', which is none of its predecessors$",
        ),
        ([given("b", "a", "x")], r"^task 'b': it is given 'x' of 'a', which runs no program$"),
        (
            [maker, given("b", "a", "y")],
            r"^task 'b': it is given 'y' of 'a', whose outputs are: x$",
        ),
        (
            [two, given("b", "a", "y")],
            r"^task 'b': it is given 'y' of 'a', whose outputs are: x, z$",
        ),
        (
            [none, given("b", "a", "y")],
            r"^task 'b': it is given 'y' of 'a', whose outputs are: none$",
        ),
    ):
        with pytest.raises(ValueError, match=word):
            check_programs(flow, programs)


@pytest.mark.parametrize(
    ("outcome", "code", "number", "words"),
    [
        (Outcome.COMPLETED, 0, None, ""),
        (Outcome.FAILED, 3, None, "exit code 3"),
        (Outcome.FAILED, None, 11, "signal 11"),
        (Outcome.FAILED, None, None, "failed"),
        (Outcome.TIMEOUT, None, 9, "limit of 60 s"),
        (Outcome.UNKNOWN, None, None, "nobody can say"),
    ],
)
def test_ends_are_said_in_words(
    outcome: Outcome, code: int | None, number: int | None, words: str
) -> None:
    """A good one is not."""
    said = ending_words(outcome, code, number, 60.0)
    assert words in said
    assert bool(said) == bool(words)
