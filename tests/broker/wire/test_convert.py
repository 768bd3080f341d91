"""Workflows and resources as messages."""

import math
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.additions import Addition
from broker.model.program import LIMIT_LEAST_S, Checkpoint, Input, Program, Rerun
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Demand, OpenWorkflow, Task, Workflow
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.records import Supply
from broker.v1 import plan_pb2, resource_pb2, workflow_pb2
from broker.wire.convert import (
    read_additions,
    read_open_workflow,
    read_supply,
    read_workflow,
    read_workflow_state,
    write_additions,
    write_live,
    write_open_workflow,
    write_plan,
    write_supply,
    write_workflow,
)
from grms.daemon.messages import WireError
from grms.v1 import request_pb2
from lrms_sim.workload.requests import Memory, Request
from tests.broker import drawn
from tests.broker.scheduler.test_state import running_world
from tests.examples import FEW
from tests.field_paths import is_field

LIMITS = ("earliest_start", "due_date", "budget", "preference", "on_failure")


@FEW
@given(st.data())
def test_workflows_come_back_as_they_were(data: st.DataObject) -> None:
    """Every workflow of the drawn kind survives the wire, with all its numbers."""
    pool = data.draw(drawn.pools())
    workflow = data.draw(drawn.workflows("flow", pool))
    assert read_workflow(write_workflow(workflow)) == (workflow, ())


@FEW
@given(st.data())
def test_what_is_added_comes_back_as_it_was(data: st.DataObject) -> None:
    """Arrays too, with the arguments of each element; a workflow that is opened has its limits."""
    pool = data.draw(drawn.pools())
    workflow = data.draw(drawn.workflows("flow", pool))
    arguments = st.lists(st.lists(drawn.NAMES, max_size=2).map(tuple), max_size=3).map(tuple)
    given_ones = []
    for task in workflow.tasks:
        program = Program.of_command(task.name, ["x"]).limited(task.work)
        given_ones.append(Addition(task, program, data.draw(arguments)))
        given_ones.append(Addition(task, None, ((),) * data.draw(st.integers(0, 2))))
    request = workflow_pb2.AddRequest()
    write_additions(request, given_ones)
    assert read_additions(request) == tuple(given_ones)
    opened = OpenWorkflow("flow", (), *(getattr(workflow, name) for name in LIMITS))
    assert read_open_workflow(write_open_workflow(opened)) == opened


@FEW
@given(st.data())
def test_resources_come_back_as_they_were(data: st.DataObject) -> None:
    """Prices, opening hours, closures and what they require too."""
    resource = data.draw(drawn.resources("alpha"))
    requires = data.draw(st.sampled_from(((), (Demand("os", 3), Demand("licence")))))
    broken, groups = data.draw(st.booleans()), data.draw(st.booleans())
    supply = Supply(resource, "riga", "a1", broken, requires, groups)
    assert read_supply(write_supply(supply)) == supply


def test_closures_without_an_end_have_none() -> None:
    """Nor a beginning where there is none."""
    calendar = Calendar(closures=((-math.inf, 5.0), (9.0, math.inf)))
    first, second = write_supply(Supply(Resource("alpha", calendar=calendar))).closures
    assert (first.HasField("begin_s"), first.end_s) == (False, 5.0)
    assert (second.begin_s, second.HasField("end_s")) == (9.0, False)


def test_what_a_workflow_does_not_ask_for_is_left_out() -> None:
    """Dates and a budget without bounds are no numbers on the wire."""
    spec = write_workflow(Workflow("flow", (Task("t", 1, (Alternative.of("alpha"),)),)))
    for field in ("earliest_start_s", "due_date_s", "budget"):
        assert not spec.HasField(field)


def test_equal_alternatives_are_one_object() -> None:
    """Thousands of tasks that may run anywhere do not each keep a list of everything."""
    alternatives = [(Alternative.of("alpha"), Alternative.of("beta", "licence")) for _ in range(3)]
    first = Workflow("first", tuple(Task(f"t{i}", 1, a) for i, a in enumerate(alternatives[:2])))
    second = Workflow("second", (Task("t", 2, alternatives[2][1:]),))
    one, other = (read_workflow(write_workflow(each))[0] for each in (first, second))
    assert (one, other) == (first, second)
    assert one.tasks[0].alternatives is one.tasks[1].alternatives
    assert other.tasks[0].alternatives[0] is one.tasks[0].alternatives[1]


def many(count: int, resources: int) -> Workflow:
    """Returns a workflow of tasks that can run anywhere, each with a list of its own, and one that cannot."""
    names = [f"resource-{number}" for number in range(resources)]
    tasks = tuple(
        Task(f"t{number}", 1.0, tuple(map(Alternative.of, names))) for number in range(count)
    )
    return Workflow("many", (*tasks, Task("alone", 1.0, (Alternative.of("alone"),))))


def test_alternatives_that_many_tasks_share_are_written_once() -> None:
    """Where that spares much; what is small is as every broker reads it. Additions are written so, too."""
    small, large = (write_workflow(each, repeated=1000) for each in (many(3, 5), many(10, 30)))
    assert not small.alternative_lists
    assert [task.alternative_list for task in small.tasks] == [0] * 4
    assert read_workflow(small)[0] == many(3, 5)
    assert len(large.alternative_lists) == 1
    assert [task.alternative_list for task in large.tasks] == [1] * 10 + [0]
    assert large.ByteSize() < 1200
    assert read_workflow(large)[0] == many(10, 30)
    request = workflow_pb2.AddRequest()
    additions = [Addition(task) for task in many(10, 30).tasks]
    write_additions(request, additions, repeated=1000)
    assert len(request.alternative_lists) == 1
    assert read_additions(request) == tuple(additions)


def test_a_task_refers_to_a_list_that_is_there() -> None:
    """And has no alternatives of its own besides; the error names the field."""
    spec = write_workflow(many(10, 30), repeated=0)
    for change, field, word in (
        (workflow_pb2.TaskSpec(alternative_list=2), "workflow.tasks[1]", "there are 1"),
        (workflow_pb2.TaskSpec(alternative_list=-1), "workflow.tasks[1]", "there are 1"),
        (
            workflow_pb2.TaskSpec(alternatives=spec.tasks[10].alternatives),
            "workflow.tasks[1]",
            "one",
        ),
    ):
        wrong = workflow_pb2.WorkflowSpec()
        wrong.CopyFrom(spec)
        wrong.tasks[1].MergeFrom(change)
        with pytest.raises(WireError, match=word) as refused:
            read_workflow(wrong)
        assert refused.value.field == field
    spec.alternative_lists[0].alternatives[0].demands[0].units = 0
    with pytest.raises(WireError, match="units") as refused:
        read_workflow(spec)
    assert refused.value.field == "workflow.alternative_lists[0]"
    assert is_field(workflow_pb2.SubmitRequest.DESCRIPTOR, refused.value.field)


def test_programs_go_with_their_tasks() -> None:
    """What a task runs is handed through."""
    flow = running_world().state.memory.live["flow"].workflow
    first, second = flow.tasks[0].name, flow.tasks[1].name
    flow = replace(flow, tasks=(flow.tasks[0], replace(flow.tasks[1], predecessors=(first,))))
    maker = Program(first, "#!/bin/sh\ntrue", outputs=("a/b",)).limited(1.0)
    program = Program(
        second,
        "#!/bin/sh\ntrue",
        ("x", ""),
        (("A", "1"), ("B", "x y")),
        Request(tasks=2, cores_per_task=3, memory=Memory(1024), image="tool.sif", wall_time=50.0),
        (Input("in", 3, bytes(32)), Input("of", task=first, output="a/b")),
        ("out",),
        Rerun(3, (75, 100), ("node_fail",)),
        Checkpoint(1.5, ("state/", "x*")),
    )
    spec = write_workflow(flow, [maker, program])
    assert [task.HasField("program") for task in spec.tasks] == [True, True]
    assert read_workflow(spec) == (flow, (maker, program))
    assert maker.limit == LIMIT_LEAST_S


@pytest.mark.parametrize(
    ("change", "field", "word"),
    [
        ({"name": ""}, "workflow.name", "no name"),
        ({"preference": 2.0}, "workflow", "preference"),
        ({"budget": math.nan}, "workflow", "budget"),
        ({"tasks": []}, "workflow", "no task"),
    ],
)
def test_a_message_that_is_no_workflow_is_refused(
    change: dict[str, object], field: str, word: str
) -> None:
    """The error has the field and a reason."""
    flow = running_world().state.memory.live["flow"].workflow
    spec = write_workflow(flow)
    for name, value in change.items():
        spec.ClearField(name)
        if not isinstance(value, list):
            setattr(spec, name, value)
    with pytest.raises(WireError, match=word) as refused:
        read_workflow(spec)
    assert refused.value.field == field
    assert is_field(workflow_pb2.SubmitRequest.DESCRIPTOR, field)


def test_the_task_that_is_wrong_is_named() -> None:
    """By its place in the message: names may be what is wrong with it."""
    spec = write_workflow(running_world().state.memory.live["flow"].workflow)
    spec.tasks[1].work_s = math.nan
    with pytest.raises(WireError) as refused:
        read_workflow(spec)
    assert refused.value.field == "workflow.tasks[1]"
    assert is_field(workflow_pb2.SubmitRequest.DESCRIPTOR, refused.value.field)


def test_a_message_that_is_no_resource_is_refused() -> None:
    """Numbers out of bounds and a missing name."""
    with pytest.raises(WireError, match="performance"):
        read_supply(resource_pb2.Resource(name="alpha", performance=-1))
    with pytest.raises(WireError, match="no name") as caught:
        read_supply(resource_pb2.Resource())
    assert caught.value.args == (str(caught.value),)
    assert read_supply(resource_pb2.Resource(name="a")).resource.capacity == 1
    for requires, said in (
        ([workflow_pb2.Demand(resource="b")], "0 units of 'b'"),
        ([workflow_pb2.Demand(resource="a", units=1)], "'a' requires itself"),
        ([workflow_pb2.Demand(resource="b", units=1)] * 2, "another twice: b, b"),
    ):
        with pytest.raises(WireError, match=said) as refused:
            read_supply(resource_pb2.Resource(name="a", requires=requires))
        assert is_field(resource_pb2.RegisterRequest.DESCRIPTOR, refused.value.field)


def test_a_workflow_is_shown_as_it_stands() -> None:
    """States, real moments where there are any, counts, and the completion by the plan."""
    made = running_world()
    live = made.state.memory.live["flow"]
    live.submit_time = 7.0
    message = write_live(live)
    running, booked = message.tasks
    assert running.state == workflow_pb2.TASK_STATE_RUNNING
    assert running.start_time_s == live.tasks["t0"].start_time
    assert message.completion_s == booked.end_time_s
    assert (message.tasks_total, message.tasks_completed) == (2, 0)
    assert message.state == workflow_pb2.WORKFLOW_STATE_RUNNING
    assert (message.workflow_id, message.name) == (live.workflow_id, "flow")
    assert (message.submit_time_s, message.revision) == (7.0, live.revision)
    assert message.revision > 0
    assert message.cost == sum(task.cost for task in message.tasks) > 0
    live.tasks["t1"].reason = "not free"
    _, booked = write_live(live).tasks
    assert (booked.name, booked.runs, booked.reason) == ("t1", live.tasks["t1"].runs, "not free")
    assert running.runs == live.tasks["t0"].runs > 0
    live.tasks["t0"].state = TaskState.COMPLETED
    assert write_live(live).tasks_completed == 1
    assert [[each.resource for each in task.demands] for task in message.tasks] == [
        [each.resource for each in task.placement.demands]
        for task in live.tasks.values()
        if task.placement is not None
    ]
    assert not write_live(live, tasks=False).tasks
    assert not message.HasField("due_date_s")
    assert not message.HasField("budget")
    assert [task.cost for task in message.tasks] == [
        task.placement.cost for task in live.tasks.values() if task.placement is not None
    ]


def test_a_workflow_says_what_went_wrong_first() -> None:
    """A task that has failed; else one without a place; of the others the reasons are history."""
    live = running_world().state.memory.live["flow"]
    first, second = live.tasks.values()
    first.reason, second.reason = "one", "two"
    assert write_live(live).reason == ""
    second.state = TaskState.WAITING
    assert write_live(live).reason == ""
    second.placement = None
    assert write_live(live).reason == "task 't1': two"
    first.state = TaskState.FAILED
    assert write_live(live).reason == "task 't0': one"
    first.state, second.state = TaskState.WAITING, TaskState.FAILED
    first.placement = None
    assert write_live(live).reason == "task 't1': two"


def test_a_plan_is_in_order_of_time_and_names_what_has_no_place() -> None:
    """Each open task is in one of the two lists."""
    made = running_world()
    plan = write_plan(made.state.memory, made.now, math.inf)
    assert [each.task for each in plan.placements] == ["t0", "t1"]
    assert plan.now_s == made.now > 0
    shown = write_live(made.state.memory.live["flow"]).tasks
    for place, task, before in zip(plan.placements, shown, ([], ["t0"]), strict=True):
        assert place == plan_pb2.Placement(
            workflow="flow",
            task=task.name,
            demands=task.demands,
            start_time_s=task.start_time_s,
            end_time_s=task.end_time_s,
            cost=task.cost,
            state=task.state,
            predecessors=before,
        )
    assert not plan.HasField("next_planning_s")
    adopted = made.state.memory.plan
    assert adopted is not None
    assert adopted.fitness is not None
    assert (plan.number, plan.adopted_s, plan.fitness) == (
        adopted.number,
        adopted.time,
        adopted.fitness,
    )
    made.state.memory.plan = msgspec.structs.replace(adopted, fitness=None)
    assert not write_plan(made.state.memory, made.now, math.inf).HasField("fitness")
    made.state.memory.plan = None
    assert write_plan(made.state.memory, made.now, math.inf).number == 0
    live = made.state.memory.live["flow"].tasks["t1"]
    live.placement, live.state = None, TaskState.WAITING
    plan = write_plan(made.state.memory, made.now, 5.0)
    assert [(each.workflow, each.task) for each in plan.unplanned] == [("flow", "t1")]
    live.reason = "not free"
    (waiting,) = write_plan(made.state.memory, made.now, 5.0).unplanned
    assert waiting.reason == "not free"
    live.reason = ""
    (waiting,) = write_plan(made.state.memory, made.now, 5.0).unplanned
    assert waiting.reason == "the next planning gives it a place"
    assert plan.next_planning_s == 5.0
    assert list(plan.silent_sites) == []
    silent = write_plan(made.state.memory, made.now, 5.0, {"riga", "kth"}).silent_sites
    assert list(silent) == ["kth", "riga"]


def test_states_are_read_by_number() -> None:
    """A number that is none is refused."""
    assert read_workflow_state(workflow_pb2.WORKFLOW_STATE_FAILED).value == "failed"
    with pytest.raises(WireError, match="99"):
        read_workflow_state(99)


def test_the_same_workflow_is_the_same_bytes() -> None:
    """In whatever order the variables of a program's environment were set."""
    names = [f"V{number}" for number in range(50)]
    forth, back = (
        workflow_pb2.WorkflowSpec(
            name="flow",
            tasks=[
                workflow_pb2.TaskSpec(
                    name="t",
                    work_s=1.0,
                    alternatives=[
                        workflow_pb2.Alternative(
                            demands=[workflow_pb2.Demand(resource="alpha", units=1)]
                        )
                    ],
                    program=request_pb2.Program(
                        script="#!/bin/true", environment=dict.fromkeys(each, "x")
                    ),
                )
            ],
        )
        for each in (names, reversed(names))
    )
    assert read_workflow(forth) == read_workflow(back)


def test_times_of_alternatives_are_not_lost_in_silence() -> None:
    """A broker does not plan with them: a program that hands them in is told."""
    timed = Workflow("flow", (Task("t", 1, (Alternative((Demand("a"),), setup=2.0),)),))
    with pytest.raises(WireError, match="task 't' of 'flow' has seconds or a set-up"):
        write_workflow(timed)
