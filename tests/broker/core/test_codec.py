"""Records as rows, and back."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.codec import KINDS, Row, decode, encode
from broker.core.events import Cancel, Remove, Submit, Update
from broker.core.records import Program
from tests.broker.broker_world import World
from tests.broker.core.test_state import drawn_workflow, world
from tests.examples import FEW


def lived(seed: int) -> World:
    """Returns a world in which much has happened."""
    made = world(seed, faults=0.2, overruns=0.3)
    made.random = random.Random(seed)  # noqa: S311  # a test's own chance
    for number in range(4):
        flow = drawn_workflow(made.random, f"flow{number}")
        program = (Program("t0", b"\x00\xffrun"),)
        made.tell(Submit(1, f"key{number}", flow, program))
    for step in range(150):
        made.step()
        if step == 60:
            made.tell(Update(1, made.supply("alpha", broken=True)))
            made.tell(Cancel(1, "flow1"))
    made.tell(Remove(1, "alpha"))
    return made


@FEW
@given(st.integers(0, 2**32))
def test_every_record_comes_back_as_it_was(seed: int) -> None:
    """Whatever a broker has noted is the same after a round trip."""
    for record in lived(seed).journal:
        assert decode(encode(record)) == record


def test_the_worlds_have_nearly_every_kind() -> None:
    """The property above is about all kinds; two are for what is forgotten."""
    kinds = {type(record).__name__ for seed in range(20) for record in lived(seed).journal}
    assert set(KINDS) - kinds <= {"Counted", "WorkflowForgotten"}


@pytest.mark.parametrize(
    "row",
    [
        Row(1.0, "Nothing", "{}"),
        Row(1.0, "TaskBooked", "{"),
        Row(1.0, "TaskBooked", "[]"),
        Row(1.0, "TaskBooked", '{"booking": "b-1"}'),
        Row(1.0, "TaskEnding", '{"booking": "b-1", "reason": "", "more": 1}'),
        Row(1.0, "WorkflowSubmitted", '{"workflow_id": "w1", "key": "k", "workflow": "?"}'),
    ],
)
def test_a_row_that_is_none_is_refused(row: Row) -> None:
    """The error says what was found."""
    with pytest.raises(ValueError, match=r"kind|no Task|no Workflow"):
        decode(row)
