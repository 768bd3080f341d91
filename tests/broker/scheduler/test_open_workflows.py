"""Workflows that are opened, grow and are closed, and what becomes of failures."""

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.additions import Addition, in_order
from broker.model.program import Output, Program
from broker.model.resources import Resource
from broker.model.workflow import Alternative, OnFailure, OpenWorkflow, Task, Workflow
from broker.scheduler.commands import (
    Append,
    Command,
    Launch,
    Refusal,
    Refuse,
    ReplyAdded,
    ReplyWorkflow,
)
from broker.scheduler.events import (
    Add,
    Booked,
    Cancel,
    Close,
    Ended,
    Event,
    Open,
    Register,
    Submit,
    Update,
)
from broker.scheduler.invariants import check
from broker.scheduler.lifecycle import TaskState, WorkflowState
from broker.scheduler.records import Supply, TasksAdded
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import LiveTask, LiveWorkflow, StateTables
from grms.util.outcomes import Outcome
from tests.broker.broker_world import World
from tests.examples import FEW

SETTINGS = BrokerSettings(cycle=50, slot=20, pause=2, margin=4, runs_max=1, tasks_max=50)
ANYWHERE = (Alternative.of("alpha"), Alternative.of("beta"))


def task(name: str, *before: str, work: float = 5.0, on_failure: OnFailure | None = None) -> Task:
    """Returns a task that can run anywhere."""
    return Task(name, work, ANYWHERE, before, on_failure)


def one(name: str, *before: str, **more: Any) -> Addition:
    """Returns a task to be added."""
    return Addition(task(name, *before, **more))


@dataclass
class Doomed(World):
    """A world in which tasks of some names fail whenever they run."""

    doomed: frozenset[str] = frozenset()

    def _launch(self, command: Launch) -> None:
        super()._launch(command)
        run = self.runs[command.booking.booking]
        if command.booking.placement.task in self.doomed:
            run.outcome = Outcome.FAILED


def world(seed: int = 1, doomed: Iterable[str] = (), settings: BrokerSettings = SETTINGS) -> World:
    """Returns a world with two resources."""
    made = Doomed(seed, settings, doomed=frozenset(doomed))
    for name in ("alpha", "beta"):
        made.tell(Register(0, made.supply(name)))
    return made


def asked(made: World, event: Event) -> Command:
    """Returns the answer to a question."""
    made.answers.clear()
    made.tell(event)
    (found,) = [each for each in made.answers if getattr(each, "cause", None) == event.id]
    return found


def opened(
    made: World,
    on_failure: OnFailure = "finish",
    earliest_start: float = -math.inf,
    due_date: float = math.inf,
    budget: float = math.inf,
) -> LiveWorkflow:
    """Has a workflow opened."""
    workflow = OpenWorkflow("flow", (), earliest_start, due_date, budget, on_failure=on_failure)
    assert asked(made, Open(7, "key", workflow)) == ReplyWorkflow(7, "w1")
    return made.state.memory.workflows["w1"]


def add(made: World, *additions: Addition) -> int:
    """Adds tasks; returns how many were new."""
    found = asked(made, Add(8, "flow", additions))
    assert isinstance(found, ReplyAdded), found
    return found.new


def refused(made: World, *additions: Addition, name: str = "flow") -> tuple[Refusal, str, str]:
    """Returns why tasks cannot be added; nothing has changed."""
    before = list(made.journal)
    found = asked(made, Add(8, name, additions))
    assert isinstance(found, Refuse), found
    assert made.journal == before
    return found.refusal, found.reason, found.field


def settle(made: World, until: Callable[[], bool] = lambda: False) -> None:
    """Lets time pass until something is so, or nothing waits or runs any more."""
    for _ in range(2_000):
        tasks = list(made.state.memory.tasks())
        if until() or (not made.state.memory.releasing and all(t.has_ended for t in tasks)):
            return
        assert made.step()
    raise AssertionError("no end")


def states(workflow: LiveWorkflow) -> dict[str, str]:
    """Returns the states of a workflow's tasks."""
    return {name: each.state.value for name, each in workflow.tasks.items()}


# --- growing ------------------------------------------------------------------------------------


def test_an_open_workflow_does_not_end_before_it_is_closed() -> None:
    """Though nothing of it is left to do; what is added later begins at once where it can."""
    made = world()
    flow = opened(made)
    assert (flow.state, flow.is_open) == (WorkflowState.ACCEPTED, True)
    assert add(made, one("a"), one("b", "a")) == 2
    settle(made)
    assert flow.state is WorkflowState.RUNNING
    assert add(made, one("c", "a", "b")) == 1
    moment = made.now
    settle(made, lambda: flow.tasks["c"].runs > 0)
    assert made.now < moment + SETTINGS.slot, "it needs no plan"
    settle(made)
    assert states(flow) == {"a": "completed", "b": "completed", "c": "completed"}
    assert (flow.state, flow.end_time) == (WorkflowState.RUNNING, None)
    assert asked(made, Close(9, "w1")) == ReplyWorkflow(9, "w1")
    assert (flow.state, flow.end_time) == (WorkflowState.COMPLETED, made.now)
    check(made.state.memory)


def test_a_workflow_closed_before_its_end_ends_with_its_last_task() -> None:
    """Closing once more, also after the end, is nothing."""
    made = world()
    flow = opened(made)
    add(made, one("a"))
    asked(made, Close(9, "flow"))
    count = len(made.journal)
    asked(made, Close(9, "flow"))
    assert len(made.journal) == count
    made.run()
    assert flow.state is WorkflowState.COMPLETED
    count = len(made.journal)
    assert asked(made, Close(9, "w1")) == ReplyWorkflow(9, "w1")
    assert len(made.journal) == count


def test_a_workflow_may_be_closed_without_a_task() -> None:
    """It has completed then; one that is cancelled has not."""
    made = world()
    flow = opened(made)
    asked(made, Close(9, "flow"))
    assert (flow.state, flow.end_time) == (WorkflowState.COMPLETED, 0.0)
    asked(made, Open(7, "other", OpenWorkflow("flow", ())))
    asked(made, Cancel(9, "w2"))
    assert made.state.memory.workflows["w2"].state is WorkflowState.CANCELLED


def test_a_cancelled_workflow_has_ended_though_nobody_has_closed_it() -> None:
    """Also where all of its tasks have come to a good end."""
    made = world()
    flow = opened(made)
    add(made, one("a"))
    settle(made)
    asked(made, Cancel(9, "flow"))
    assert (flow.state, states(flow)) == (WorkflowState.CANCELLED, {"a": "completed"})
    assert not flow.is_open


def test_its_limits_hold_for_all_its_tasks() -> None:
    """Nothing begins before the earliest start, whenever it is added; planners see what is there by then."""
    made = world()
    flow = opened(made, earliest_start=100.0, due_date=300.0, budget=5.0)
    add(made, one("a"))
    assert [each.name for each in flow.planned.tasks] == ["a"]
    add(made, one("b"))
    planned = flow.planned
    assert [each.name for each in planned.tasks] == ["a", "b"]
    assert (planned.earliest_start, planned.due_date, planned.budget) == (100.0, 300.0, 5.0)
    settle(made)
    starts = [each.start_time for each in flow.tasks.values()]
    assert all(each is not None and each >= 100 for each in starts)


def test_an_array_is_many_tasks_and_one_word_to_wait_for() -> None:
    """Each element is a task of its own, with its own run."""
    made = world()
    flow = opened(made)
    assert add(made, Addition(task("many"), None, ((),) * 4), one("end", "many")) == 5
    assert list(flow.tasks) == ["many/1", "many/2", "many/3", "many/4", "end"]
    assert {each.task.name for each in flow.tasks["end"].predecessors} == set(list(flow.tasks)[:4])
    assert add(made, one("two", "many/2")) == 1
    asked(made, Close(9, "flow"))
    made.run()
    assert flow.state is WorkflowState.COMPLETED
    last = max(each.end_time or 0 for name, each in flow.tasks.items() if name[:4] == "many")
    assert (flow.tasks["end"].start_time or 0) >= last


def test_each_addition_is_a_change_of_its_own() -> None:
    """Whoever watches an open workflow knows by its revision that it has grown."""
    made = world()
    flow = opened(made)
    before = flow.revision
    for number in range(3):
        made.state.memory.apply(TasksAdded(0.0, "w1", (one(f"t{number}"), one(f"u{number}"))))
    assert flow.revision == before + 3
    assert len(flow.tasks) == 6


# --- repeated, and wrong ------------------------------------------------------------------------


def test_what_is_repeated_is_nothing() -> None:
    """Opening under the same key, adding the same, also together with new tasks, and after the end."""
    made = world()
    flow = opened(made)
    opened(made)
    assert len(made.state.memory.workflows) == 1
    many = Addition(task("many", "a"), None, ((), ()))
    assert add(made, one("a"), many) == 3
    count = len(made.journal)
    assert add(made, one("a"), many, one("a")) == 0
    assert len(made.journal) == count
    assert add(made, one("a"), many, one("b", "many"), one("b", "many")) == 1
    asked(made, Close(9, "flow"))
    made.run()
    assert flow.has_ended
    assert asked(made, Add(8, "w1", (one("a"),))) == ReplyAdded(8, "w1", 0)
    assert add(made) == 0


def test_a_task_that_a_site_has_refused_is_the_same_task_still() -> None:
    """Though it has fewer resources left than were handed in."""
    made = world()
    flow = opened(made)
    add(made, one("a"))
    live = flow.tasks["a"]
    live.task = replace(live.task, alternatives=ANYWHERE[1:])
    assert add(made, one("a")) == 0


@pytest.mark.parametrize(
    ("additions", "refusal", "words", "where"),
    [
        ([one("b", "?")], Refusal.INVALID, "task 'b' waits for '?', which is no task", "tasks[0].predecessors"),
        ([one("b", "c"), one("c")], Refusal.INVALID, "before it in the same call", "tasks[0].predecessors"),
        ([one("c"), one("a", work=6.0)], Refusal.INVALID, "'a' already, and it is another", "tasks[1]"),
        ([one("a", "x")], Refusal.INVALID, "'a' already, and it is another", "tasks[0]"),
        ([one("b"), one("b", work=9.0)], Refusal.INVALID, "'b' already, and it is another", "tasks[1]"),
        ([one("x/2")], Refusal.INVALID, "another task 'x/2' already", "tasks[0].name"),
        ([Addition(task("y"), None, ((),)), one("y/1")], Refusal.INVALID, "another task 'y/1'", "tasks[1].name"),
        ([Addition(Task("b", 1, (Alternative.of("?"),)))], Refusal.INVALID, "unknown: ?", "tasks[0]"),
        ([Addition(task("b"), None, ((),) * 48)], Refusal.EXHAUSTED, "47 more can be taken", ""),
        (
            [Addition(task("b", "a"), Program("b", "#!/bin/sh\n", inputs=(), outputs=("o",)).limited(1)),
             Addition(task("c", "b"), Program.of_command("c", ["x"], inputs={"i": ("b", "?")}).limited(1))],
            Refusal.INVALID, "whose outputs are: o", "tasks[1]",
        ),
        (
            [Addition(task("c", "a"), Program.of_command("c", ["x"], inputs={"i": ("a", "o")}).limited(1))],
            Refusal.INVALID, "'a', which runs no program", "tasks[0]",
        ),
    ],
)  # fmt: skip
def test_a_call_with_a_mistake_adds_nothing(
    additions: list[Addition], refusal: Refusal, words: str, where: str
) -> None:
    """The text says which task and why; the next call is taken."""
    made = world()
    flow = opened(made)
    assert add(made, one("a"), Addition(task("x"), None, ((), ()))) == 3
    found = refused(made, *additions)
    assert (found[0], found[2]) == (refusal, where)
    assert words in found[1]
    assert list(flow.tasks) == ["a", "x/1", "x/2"]
    assert add(made, one("b", "a")) == 1


def test_so_many_edges_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two large arrays, one behind the other, have a task between them."""
    monkeypatch.setattr("broker.scheduler.open_workflows.EDGES_MAX", 16)
    made = world()
    opened(made)
    four = ((),) * 4
    add(made, Addition(task("x"), None, four))
    assert add(made, Addition(task("y", "x"), None, four)) == 4
    found = refused(made, Addition(task("z", "x"), None, ((),) * 5))
    assert found[0] is Refusal.INVALID
    assert "wait for 20 others in all; at most 16: put a task between" in found[1]


def test_what_is_not_open_takes_nothing_and_says_why() -> None:
    """Closed, cancelled, failed, handed in whole, or not there."""
    made = world(doomed=["bad"])
    opened(made)
    add(made, one("a"))
    asked(made, Close(9, "flow"))
    assert refused(made, one("b"))[:2] == (
        Refusal.PRECONDITION, "workflow 'flow' was closed, and takes no more tasks",
    )  # fmt: skip
    asked(made, Cancel(9, "flow"))
    assert refused(made, one("b"))[1] == "workflow 'flow' was cancelled, and takes no more tasks"
    made.run()
    made.tell(Submit(1, "whole", Workflow("whole", (task("a"),))))
    assert (
        refused(made, one("b"), name="whole")[1]
        == "workflow 'whole' was handed in whole; tasks are added to one that was opened"
    )
    made.tell(Open(1, "fails", OpenWorkflow("fails", ())))
    made.tell(Add(1, "fails", (one("bad"),)))
    made.run()
    assert (
        refused(made, one("b"), name="fails")[1]
        == "a task of workflow 'fails' has failed, and it takes no more tasks"
    )
    assert refused(made, one("b"), name="?") == (
        Refusal.NOT_FOUND, "there is no workflow '?'", "workflow_id",
    )  # fmt: skip
    assert isinstance(asked(made, Close(9, "?")), Refuse)


@pytest.mark.parametrize(
    ("key", "workflow", "refusal"),
    [
        ("", OpenWorkflow("x", ()), Refusal.INVALID),
        ("new", OpenWorkflow("flow", ()), Refusal.PRECONDITION),
        ("key", OpenWorkflow("x", ()), Refusal.INVALID),
        ("key", OpenWorkflow("flow", (), budget=3.0), Refusal.INVALID),
    ],
)
def test_opening_is_refused_as_submitting_is(
    key: str, workflow: OpenWorkflow, refusal: Refusal
) -> None:
    """A key that is another workflow's, a name that is taken."""
    made = world()
    opened(made)
    found = asked(made, Open(7, key, workflow))
    assert isinstance(found, Refuse)
    assert found.refusal is refusal
    whole = asked(made, Submit(7, "key", Workflow("flow", (task("a"),))))
    assert isinstance(whole, Refuse), "an open workflow is no other one"


# --- files --------------------------------------------------------------------------------------


def test_what_a_task_has_left_is_there_for_what_is_added_later() -> None:
    """So all of its outputs are brought to the broker, though nobody is given them yet."""
    made = BrokerState(replace(SETTINGS, early=True))
    made.handle(Register(0, Supply(Resource("alpha"))), 0)
    made.handle(Open(1, "key", OpenWorkflow("flow", ())), 0)
    first = Program.of_command("a", ["x"], outputs=["o", "p"]).limited(1)
    alone = (Alternative.of("alpha"),)
    made.handle(Add(2, "flow", (Addition(Task("a", 5.0, alone), first),)), 0)
    (launch,) = [c for c in made.handle(Booked(0, "b-1", ("r",)), 0) if isinstance(c, Launch)]
    assert launch.needed == {"o", "p"}
    left = (Output("o", 1, b"o" * 32), Output("p", 1, b"p" * 32))
    made.handle(Ended(0, "b-1", Outcome.COMPLETED, 0.0, 4.0, outputs=left), 4)
    second = Program.of_command("b", ["x"], inputs={"i": ("a", "p")}).limited(1)
    made.handle(Add(3, "flow", (Addition(Task("b", 5.0, alone, ("a",)), second),)), 5)
    assert {b"o" * 32, b"p" * 32} <= made.memory.contents()
    (launch,) = [c for c in made.handle(Booked(0, "b-2", ("r",)), 5) if isinstance(c, Launch)]
    assert [(each.name, each.sha256) for each in launch.inputs] == [("i", b"p" * 32)]


# --- failures -----------------------------------------------------------------------------------


def fork() -> tuple[Addition, ...]:
    """Returns bad, two tasks behind it, and two that do not wait for it."""
    return (
        one("bad", work=2.0), one("slow", work=20.0), one("after", "bad"),
        one("last", "after", "slow"), one("free", "slow"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("finish", ["failed", "completed", "cancelled", "cancelled", "cancelled"]),
        ("terminate", ["failed", "cancelled", "cancelled", "cancelled", "cancelled"]),
        ("continue", ["failed", "completed", "cancelled", "cancelled", "completed"]),
    ],
)
@pytest.mark.parametrize("how", ["open", "whole", "task"])
def test_what_becomes_of_a_failure(policy: OnFailure, expected: list[str], how: str) -> None:
    """Nothing more begins; what runs is ended, too; or all goes on that does not wait for the failed task."""
    made = world(doomed=["bad"])
    members = [each.task for each in fork()]
    if how == "task":  # what the task says counts before what the workflow says
        members[0] = replace(members[0], on_failure=policy)
    said: OnFailure = {"finish": "continue"}.get(policy, "finish") if how == "task" else policy  # type: ignore[assignment]  # one of them
    if how == "open":
        flow = opened(made, said)
        add(made, *map(Addition, members))
        asked(made, Close(9, "flow"))
    else:
        made.tell(Submit(1, "key", Workflow("flow", tuple(members), on_failure=said)))
        flow = made.state.memory.workflows["w1"]
    seen = set()
    while made.state.memory.live or made.state.memory.releasing:
        made.step()
        seen.add(flow.state)
    assert list(states(flow).values()) == expected
    assert flow.state is WorkflowState.FAILED
    assert WorkflowState.FAILING in seen
    if policy == "continue":
        assert flow.tasks["last"].reason == "waits for 'bad', which has failed"
    again = StateTables(made.journal)
    assert states(again.workflows["w1"]) == states(flow)
    check(again)


def test_what_is_added_behind_a_failure_is_cancelled_and_the_rest_goes_on() -> None:
    """Whoever adds need not know of it yet; the workflow ends when it is closed, as failed."""
    made = world(doomed=["bad"])
    flow = opened(made, "continue")
    add(made, one("bad"), one("after", "bad"))
    settle(made)
    assert (flow.state, flow.is_open) == (WorkflowState.FAILING, True)
    assert add(made, one("later", "after"), one("direct", "bad"), one("free")) == 3
    assert states(flow) == {
        "bad": "failed", "after": "cancelled", "later": "cancelled", "direct": "cancelled", "free": "booking",
    }  # fmt: skip
    settle(made, lambda: flow.tasks["free"].state is TaskState.COMPLETED)
    seen = [flow.state]
    asked(made, Close(9, "flow"))
    assert [*seen, flow.state] == [WorkflowState.FAILING, WorkflowState.FAILED]


def test_a_workflow_that_goes_on_after_a_failure_can_be_cancelled() -> None:
    """Nothing of it is running then."""
    made = world(doomed=["bad"])
    flow = opened(made, "continue")
    add(made, one("bad"))
    settle(made)
    asked(made, Cancel(9, "flow"))
    assert flow.state is WorkflowState.CANCELLED


# --- in pieces, and through crashes -------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """A workflow, tasks of it that fail, and pieces in which it is handed in."""

    tasks: tuple[Task, ...]
    doomed: frozenset[str]
    pieces: tuple[tuple[Addition, ...], ...] = field(repr=False)


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """Draws a workflow and a topological order of it, cut into pieces."""
    count = draw(st.integers(1, 7))
    tasks = tuple(
        task(
            f"t{at}",
            *(f"t{before}" for before in range(at) if draw(st.integers(0, 2)) == 0),
            work=draw(st.floats(1.0, 30.0)),
        )
        for at in range(count)
    )
    doomed = draw(st.frozensets(st.sampled_from([each.name for each in tasks]), max_size=2))
    order = in_order(map(Addition, draw(st.permutations(tasks))))
    cuts = sorted(draw(st.sets(st.integers(1, count))))
    bounds = [0, *cuts, count]
    pieces = tuple(tuple(order[a:b]) for a, b in pairwise(bounds))
    return Drawn(tasks, doomed, pieces)


def shape(workflow: LiveWorkflow) -> dict[str, tuple[Any, ...]]:
    """Returns tasks and how they hang together."""
    return {
        name: (
            each.task,
            {before.task.name for before in each.predecessors},
            {after.task.name for after in each.successors},
            each.behind,
        )
        for name, each in workflow.tasks.items()
    }


@FEW
@given(drawn())
def test_in_pieces_a_workflow_is_what_it_is_in_one_go(given: Drawn) -> None:
    """In any order that has predecessors first, before anything of it can begin."""
    made = world()
    flow = opened(made, "continue", earliest_start=1e6)
    for piece in given.pieces:
        add(made, *piece)
    whole = Workflow("whole", given.tasks, 1e6, on_failure="continue")
    made.tell(Submit(1, "whole", whole))
    assert shape(flow) == shape(made.state.memory.live["whole"])


@FEW
@given(drawn(), st.integers(0, 2**32))
def test_in_pieces_a_workflow_ends_as_in_one_go(given: Drawn, seed: int) -> None:
    """While it runs, with a broker that is killed after any call, each of which is made once more then."""
    chance = random.Random(seed)  # noqa: S311  # a test's own chance
    whole = world(seed, given.doomed)
    whole.tell(Submit(1, "k", Workflow("flow", given.tasks, on_failure="continue")))
    whole.run()
    made = world(seed, given.doomed)
    calls: list[Event] = [Open(1, "key", OpenWorkflow("flow", (), on_failure="continue"))]
    calls += [Add(1, "flow", piece) for piece in given.pieces]
    for call in [*calls, Close(1, "w1")]:
        for _ in range(chance.randint(0, 30)):
            made.step()
        made.tell(call)
        if chance.random() < 0.5:
            made.restart()
            made.tell(call)
    made.run()
    ended = [each.state.memory.workflows["w1"] for each in (whole, made)]
    assert states(ended[1]) == states(ended[0])
    assert ended[1].state is ended[0].state
    assert sorted(made.completed) == sorted(whole.completed)


@dataclass
class Killed(Doomed):
    """A world whose broker is killed once a number of writes of its journal are durable, and nothing else is done."""

    writes: int = 0
    last: int = 0

    def tell(self, event: Event) -> None:
        """Hands over an event; what the write was for is lost where it is the last."""
        commands = self.state.handle(event, self.now)
        check(self.state.memory)
        for command in commands:
            self._carry_out(command)
            if isinstance(command, Append):
                self.writes += 1
                if self.writes == self.last:
                    self.restart()
                    return


def test_a_broker_that_is_killed_after_any_write_goes_on() -> None:
    """Its client makes each call once more where it has no answer; the end is the same, and nothing is done twice."""
    many = Addition(task("many", "a"), None, ((), (), ()))
    calls: list[Event] = [
        Open(1, "key", OpenWorkflow("flow", (), on_failure="continue")),
        Add(2, "flow", (one("a"), many)),
        Add(3, "flow", (one("bad"), one("after", "bad"), one("end", "many"))),
        Close(4, "w1"),
    ]
    expected: dict[str, str] = {}
    last = count = 0
    while last <= count:
        made = Killed(3, SETTINGS, doomed=frozenset(["bad"]), last=last)
        for name in ("alpha", "beta"):
            made.tell(Register(0, made.supply(name)))
        for call in calls:
            made.answers.clear()
            while not any(getattr(each, "cause", 0) == call.id for each in made.answers):
                made.tell(call)
            for _ in range(12):
                made.step()
        made.run()
        (flow,) = made.state.memory.workflows.values()
        expected = expected or states(flow)
        count = count or made.writes
        assert (states(flow), flow.state) == (expected, WorkflowState.FAILED), last
        assert len(made.completed) == len(set(made.completed)) == 5
        again = StateTables(made.journal)
        assert (states(again.workflows["w1"]), shape(again.workflows["w1"])) == (
            expected,
            shape(flow),
        )
        assert made.restarts == (last > 0)
        last += 1
    assert count > 20
    assert expected["after"] == "cancelled"


@FEW
@given(drawn(), drawn(), st.integers(0, 2**32))
def test_nothing_that_was_added_is_lost_whatever_happens(one: Drawn, two: Drawn, seed: int) -> None:
    """Two workflows grow under refusals, failures, breakdowns and kills; all of both is done once, in order.

    The world checks at every launch that the predecessors have ended and that no task runs twice.
    """
    chance = random.Random(seed)  # noqa: S311  # a test's own chance
    made = world(seed, settings=replace(SETTINGS, runs_max=1000))
    made.faults, made.late = chance.choice([0.0, 0.2]), chance.choice([0.0, 0.1])
    calls: list[Event] = []
    for name, pieces in (("one", one.pieces), ("two", two.pieces)):
        calls.append(Open(len(calls) + 1, name, OpenWorkflow(name, (), on_failure="continue")))
        calls += [Add(len(calls) + 1 + at, name, piece) for at, piece in enumerate(pieces)]
    for call in calls:
        for _ in range(chance.randint(0, 20)):
            made.step()
            if chance.random() < 0.03:
                made.restart()
            if chance.random() < 0.03:
                name = chance.choice(["alpha", "beta"])
                made.tell(Update(0, made.supply(name, broken=chance.random() < 0.5)))
        made.tell(call)
    made.faults = 0.0
    for name in ("alpha", "beta"):
        made.tell(Update(0, made.supply(name)))
    for name in ("one", "two"):
        made.tell(Close(99, name))
    made.run()
    flows = made.state.memory.workflows.values()
    assert {each.state for each in flows} == {WorkflowState.COMPLETED}
    expected = {
        f"{name}/{task.name}" for name, flow in (("one", one), ("two", two)) for task in flow.tasks
    }
    assert sorted(made.completed) == sorted(expected)
    again = StateTables(made.journal)
    assert [shape(each) for each in again.workflows.values()] == [shape(each) for each in flows]


def test_a_chain_costs_each_task_that_is_added_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits behind its tasks is worked out when that is asked for, once for all that have come since."""
    looked_at: list[str] = []
    known = LiveTask.has_ended

    def noted(live: LiveTask) -> bool:
        looked_at.append(live.task.name)
        return bool(known.__get__(live))

    made = world(settings=replace(SETTINGS, tasks_max=1000))
    flow = opened(made, due_date=1e9)
    add(made, one("t0"))
    monkeypatch.setattr(LiveTask, "has_ended", property(noted))
    counts = []
    for at in range(1, 300):
        looked_at.clear()
        add(made, one(f"t{at}", f"t{at - 1}"))
        counts.append(len(looked_at))
    assert counts[-1] == counts[10]
    looked_at.clear()
    assert flow.tasks["t0"].behind == 299 * 5.0
    assert flow.tasks["t100"].behind == 199 * 5.0
    assert len(looked_at) == 299
