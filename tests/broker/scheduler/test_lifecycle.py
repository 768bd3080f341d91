"""The tables of states."""

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from broker.scheduler.lifecycle import (
    AT_SITE,
    HELD,
    TASK_ENDS,
    TASK_MOVES,
    WORKFLOW_ENDS,
    WORKFLOW_MOVES,
    IllegalMove,
    TaskState,
    WorkflowState,
    legal,
)
from broker.v1 import workflow_pb2


def reached(moves: Mapping[Any, Mapping[Any, str]], begin: Enum) -> set[Enum]:
    """Returns the states that can follow, sooner or later."""
    found, edge = {begin}, [begin]
    while edge:
        new = set(moves[edge.pop()]) - found
        found |= new
        edge += new
    return found


def test_every_state_has_its_row_and_can_be_reached() -> None:
    """No state is missing in the tables or out of reach."""
    assert reached(TASK_MOVES, TaskState.WAITING) == set(TaskState) == set(TASK_MOVES)
    assert reached(WORKFLOW_MOVES, WorkflowState.ACCEPTED) == set(WorkflowState)


def test_exactly_the_ends_have_no_way_on() -> None:
    """From every other state an end can be reached."""
    assert {state for state, moves in TASK_MOVES.items() if not moves} == TASK_ENDS
    assert {state for state, moves in WORKFLOW_MOVES.items() if not moves} == WORKFLOW_ENDS
    for state in set(TaskState) - TASK_ENDS:
        assert reached(TASK_MOVES, state) >= TASK_ENDS - {TaskState.FAILED}
    assert not HELD & AT_SITE


def test_an_illegal_move_names_the_task_and_both_states() -> None:
    """It is an error of the program."""
    with pytest.raises(IllegalMove, match="task x is COMPLETED and cannot become WAITING"):
        legal(TASK_MOVES, "task x", TaskState.COMPLETED, TaskState.WAITING)


def test_the_wire_has_the_same_words() -> None:
    """Each state is one of the protocol's, and the other way round."""
    assert {f"TASK_STATE_{state.name}" for state in TaskState} | {"TASK_STATE_UNSPECIFIED"} == set(
        workflow_pb2.TaskState.keys()
    )
    assert {f"WORKFLOW_STATE_{state.name}" for state in WorkflowState} | {
        "WORKFLOW_STATE_UNSPECIFIED"
    } == set(workflow_pb2.WorkflowState.keys())


def test_the_documentation_has_exactly_these_moves() -> None:
    """The tables in docs/broker.md are the tables of the program."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "broker.md").read_text()
    rows = [line for line in page.splitlines() if re.match(r"\| [A-Z]+ \| [A-Z]+ \|", line)]
    assert rows == [
        f"| {before.name} | {after.name} | {why} |"
        for moves in (TASK_MOVES, WORKFLOW_MOVES)
        for before, row in moves.items()
        for after, why in row.items()
    ]
