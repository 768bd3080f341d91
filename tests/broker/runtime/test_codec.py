"""Records as they stand in the journal, and back."""

import random
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.additions import Addition
from broker.model.network import DataFile, Link, Network
from broker.model.program import Program
from broker.model.workflow import Alternative, OpenWorkflow, Task
from broker.runtime.codec import BrokerCodec
from broker.scheduler.events import Add, Cancel, Close, Open, Remove, Submit, Update
from broker.scheduler.records import KINDS, Counted, WorkflowForgotten
from broker.scheduler.state import BrokerState
from tests.broker.broker_world import World
from tests.broker.scheduler.test_state import drawn_workflow, world
from tests.examples import FEW

CODEC = BrokerCodec()
READS = Task("reads", 5.0, (Alternative.of("beta"), Alternative.of("gamma")))


def lived(seed: int) -> World:
    """Returns a world in which much has happened."""
    made = world(seed, faults=0.2, overruns=0.3)
    made.state = BrokerState(replace(made.settings, network=Network(Link(1.0))), made.journal)
    made.random = random.Random(seed)  # noqa: S311  # a test's own chance
    for number in range(4):
        flow = drawn_workflow(made.random, f"flow{number}")
        task = flow.tasks[0]
        program = (Program(task.name, "#!/bin/sh\nrun\n").limited(task.work),)
        made.tell(Submit(1, f"key{number}", flow, program))
    for step in range(150):
        made.step()
        if step == 60:
            made.tell(Update(1, made.supply("alpha", broken=True)))
            made.tell(Cancel(1, "flow1"))
    made.tell(Remove(1, "alpha"))
    files = (DataFile("in", 5.0, ("reads",)),)
    made.tell(
        Submit(
            1, "files", replace(drawn_workflow(made.random, "files"), tasks=(READS,), files=files)
        )
    )
    grow(made)
    return made


def grow(made: World) -> None:
    """Has a workflow opened, tasks added, and closed."""
    anywhere = (Alternative.of("beta"), Alternative.of("gamma"))
    program = Program("many", "#!/bin/sh\nrun\n").limited(5.0)
    opened = OpenWorkflow("open", (), 1.0, 1e6, 50.0, 0.25, "continue")
    many = Addition(Task("many", 5.0, anywhere, ("one",), "terminate"), program, (("a",), ()))
    made.tell(Open(1, "open", opened))
    made.tell(Add(1, "open", (Addition(Task("one", 2.0, anywhere)), many)))
    made.tell(Close(1, "open"))


@FEW
@given(st.integers(0, 2**32))
def test_every_record_comes_back_as_it_was(seed: int) -> None:
    """Whatever a broker has noted is the same after a round trip."""
    records = lived(seed).journal
    assert CODEC.decode(CODEC.encode(records)) == records


def test_the_worlds_have_nearly_every_kind() -> None:
    """The property above is about all kinds; two are for what is forgotten."""
    kinds = {type(record) for seed in range(20) for record in lived(seed).journal}
    assert set(KINDS) - kinds <= {Counted, WorkflowForgotten}


@pytest.mark.parametrize(
    "row",
    [
        ["Nothing", 1.0],
        ["TaskBooked"],
        ["TaskBooked", 1.0, "b-1"],
        ["TaskEnding", 1.0, "b-1", "", 1],
        ["WorkflowSubmitted", 1.0, "w1", "k", "?", []],
        ["WorkflowSubmitted", 1.0, "w1", "k", b"\xff", []],
        ["WorkflowOpened", 1.0, "w1", "k", b""],
        ["WorkflowOpened", 1.0, "w1", b"k", b"\xff"],
        ["TasksAdded", 1.0, "w1", b"\xff"],
        ["TasksAdded", 1.0, "w1", b"\x12\x00"],
        ["WorkflowClosed", 1.0],
        ["ResourceSet", 1.0, b"\xff"],
        ["ResourceSet", 1.0, b""],
    ],
)
def test_what_is_no_record_is_refused(row: list[object]) -> None:
    """Of the message of a workflow or a resource too."""
    with pytest.raises(msgspec.DecodeError):
        CODEC.decode(msgspec.msgpack.encode([row]))
