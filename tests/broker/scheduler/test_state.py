"""The broker's state as a whole, in a world with faults."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.commands import (
    Answer,
    Book,
    Launch,
    Refusal,
    Refuse,
    Release,
    ReplyPlan,
    ReplyWorkflow,
    StartPlanning,
    StopPlanning,
)
from broker.scheduler.events import (
    Cancel,
    Offered,
    Register,
    Remove,
    Replan,
    Restarted,
    SiteDown,
    SiteLost,
    SiteUp,
    Started,
    Submit,
    Tick,
    Update,
)
from broker.scheduler.lifecycle import TaskState, WorkflowState
from broker.scheduler.offers import ResourceOffer
from broker.scheduler.records import Supply, TaskFixed
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from grms.util.outcomes import Outcome
from tests.broker.broker_world import World
from tests.examples import FEW

RESOURCES = ("alpha", "beta", "gamma")


def chain(name: str, *works: float, resources: tuple[str, ...] = RESOURCES) -> Workflow:
    """Returns a workflow of tasks one after another."""
    alternatives = tuple(Alternative.of(each) for each in resources)
    return Workflow(
        name,
        tuple(
            Task(f"t{i}", work, alternatives, (f"t{i - 1}",) if i else ())
            for i, work in enumerate(works)
        ),
    )


def drawn_workflow(chance: random.Random, name: str) -> Workflow:
    """Returns a random workflow; some tasks need two resources."""
    tasks = []
    for index in range(chance.randint(1, 5)):
        before = tuple(f"t{i}" for i in range(index) if chance.random() < 0.4)
        alternatives = []
        for _ in range(chance.randint(1, 2)):
            chosen = chance.sample(RESOURCES, chance.randint(1, 2))
            alternatives.append(Alternative(tuple(Demand(each) for each in chosen)))
        tasks.append(Task(f"t{index}", chance.uniform(1, 40), tuple(alternatives), before))
    return Workflow(name, tuple(tasks))


SETTINGS = BrokerSettings(cycle=50, slot=20, pause=2, margin=4)
PATIENT = replace(SETTINGS, early=False)
"""Of a broker that begins nothing before its time."""


def world(seed: int = 1, settings: BrokerSettings = SETTINGS, **more: float) -> World:
    """Returns a world with three resources."""
    made = World(seed, settings, **more)  # type: ignore[arg-type]  # its numbers
    for number, name in enumerate(RESOURCES):
        made.tell(Register(0, made.supply(name, performance=1.0 + number / 2)))
    return made


def states(made: World) -> dict[str, TaskState]:
    """Returns the states of all tasks."""
    return {
        task.name: task.state
        for workflow in made.state.memory.workflows.values()
        for task in workflow.tasks.values()
    }


# --- safety and liveness -------------------------------------------------------------------------


@FEW
@given(st.integers(0, 2**32))
def test_nothing_is_lost_whatever_happens(seed: int) -> None:
    """Under refusals, failures, breakdowns, cancellations and restarts all is done once, in order.

    The world checks at every launch that the predecessors have ended and that no task runs twice.
    """
    made = world(seed)
    chance = made.random
    made.faults = chance.choice([0.0, 0.05, 0.2])
    made.late = chance.choice([0.0, 0.1])
    made.settings = BrokerSettings(
        cycle=chance.choice([30, 100]), slot=20, pause=2, margin=4, runs_max=1000
    )
    made.restart()
    _all_is_done_once(made, chance, workflows=chance.randint(1, 4), events=200)
    assert BrokerState.recover(made.settings, made.journal).memory.live == {}


@FEW
@given(st.integers(0, 2**32))
def test_what_sites_do_not_begin_is_done_elsewhere_once(seed: int) -> None:
    """Over breakdowns, cancellations and restarts; where nothing else can run it, its site begins it here."""
    made = world(seed, replace(SETTINGS, hindered=5.0), faults=0.1, late=0.1, hinders=0.4)
    chance = random.Random(seed)  # noqa: S311  # a test's own chance
    _all_is_done_once(made, chance, workflows=3, events=100)


def _all_is_done_once(made: World, chance: random.Random, *, workflows: int, events: int) -> None:
    # Whatever happens to workflows for a while; then nothing more goes wrong.
    cancelled: set[str] = set()
    for number in range(workflows):
        name = f"flow{number}"
        made.tell(Submit(number + 1, name, drawn_workflow(chance, name)))
    for _ in range(chance.randint(0, events)):
        made.step()
        _something(made, chance, cancelled)
    made.faults = 0.0
    for name in RESOURCES:
        made.tell(Update(0, made.supply(name)))
    made.tell(SiteUp(0, ""))
    assert made.state.sites_down == frozenset()
    made.run()
    for workflow in made.state.memory.workflows.values():
        name = workflow.workflow.name
        done = [made.completed.count(f"{name}/{task}") for task in workflow.tasks]
        assert max(done) <= 1
        if name not in cancelled:
            assert workflow.state is WorkflowState.COMPLETED
            assert set(done) == {1}


def _something(made: World, chance: random.Random, cancelled: set[str]) -> None:
    what = chance.random()
    if what < 0.04:
        made.restart()
    elif what < 0.08:
        name = chance.choice(RESOURCES)
        broken = made.state.memory.supplies[name].broken
        made.tell(Update(0, made.supply(name, broken=not broken)))
    elif what < 0.10:
        name = chance.choice(list(made.state.memory.workflows.values())).workflow.name
        cancelled.add(name)
        made.tell(Cancel(1, name))
    elif what < 0.12:
        made.tell(SiteUp(0, "") if made.state.sites_down else SiteDown(0, ""))
    elif what < 0.14:
        made.tell(Replan(1))


@given(st.integers(0, 2**32), st.integers(0, 60))
def test_a_restart_knows_what_the_broker_knew(seed: int, steps: int) -> None:
    """The journal makes the same memory again, whatever had happened."""
    made = world(seed, faults=0.1)
    for number in range(2):
        made.tell(Submit(1, f"key{number}", drawn_workflow(made.random, f"flow{number}")))
    for _ in range(steps):
        made.step()
    again = BrokerState.recover(made.settings, made.journal).memory
    known = made.state.memory
    assert [w.state for w in again.workflows.values()] == [
        w.state for w in known.workflows.values()
    ]
    for before, after in zip(known.tasks(), again.tasks(), strict=True):
        assert (before.name, before.state, before.runs) == (after.name, after.state, after.runs)
        assert (before.placement, before.booking) == (after.placement, after.booking)
    assert again.releasing == known.releasing
    assert again.supplies == known.supplies


# --- the cycle -----------------------------------------------------------------------------------


def handled(made: World, kind: type, until: float = 1000.0) -> list[object]:
    """Lets time pass and returns the commands of a kind that came."""
    found: list[object] = []
    inner = made.state.handle

    def handle(event: object, now: float) -> list[object]:
        commands = inner(event, now)  # type: ignore[arg-type]  # handed through
        found.extend(each for each in commands if isinstance(each, kind))
        return commands  # type: ignore[return-value]  # same

    made.state.handle = handle  # type: ignore[method-assign, assignment]  # listens
    while made.now < until and made.step():
        pass
    return found


def test_planning_comes_every_cycle_and_fixes_what_starts_in_the_slot() -> None:
    """A plan begins each cycle; what starts within the slot is fixed in it, the rest is not."""
    made = world(settings=PATIENT)
    made.tell(Submit(1, "a", chain("flow", 30, 30, 30, 30, resources=("alpha",))))
    plannings = [each for each in handled(made, StartPlanning) if isinstance(each, StartPlanning)]
    moments = [each.planning_input.now - made.settings.slot for each in plannings]
    assert moments == [50.0, 100.0]
    for planning, moment in zip(plannings, moments, strict=True):
        line = planning.planning_input.now
        assert all(p.start <= line + 1e-6 for p in planning.planning_input.fixed), moment
        assert all(p.start > line for p in planning.planning_input.old)
    assert set(states(made).values()) == {TaskState.COMPLETED}


def test_the_old_plan_seeds_the_search() -> None:
    """A later search gets the places of what is not fixed yet."""
    made = world(settings=PATIENT)
    made.tell(Submit(1, "a", chain("flow", 30, 30, 30, 30, resources=("alpha",))))
    plannings = [each for each in handled(made, StartPlanning) if isinstance(each, StartPlanning)]
    # At 50 and 100 s, when the first two and the third of four tasks of 34 s are fixed.
    assert [[p.task for p in each.planning_input.old] for each in plannings] == [
        ["t2", "t3"],
        ["t3"],
    ]


def test_a_breakdown_is_planned_at_once() -> None:
    """What runs on a broken resource is ended and runs again elsewhere; the search is stopped."""
    made = world()
    made.tell(Submit(1, "a", chain("flow", 30, 30, resources=("alpha", "beta"))))
    while TaskState.RUNNING not in states(made).values():
        made.step()
    task = next(iter(made.state.memory.tasks()))
    assert task.placement is not None
    place = task.placement.resources[0]
    made.tell(Update(1, made.supply(place, broken=True)))
    assert task.state is TaskState.ENDING
    assert made.state.cycle.running or (
        made.state.cycle.next_time <= made.now + made.settings.pause
    )
    made.run()
    assert task.runs == 2
    assert task.placement is not None
    assert task.placement.resources[0] != place
    assert made.completed == ["flow/t0", "flow/t1"]


def test_a_search_that_plans_less_than_has_come_ends() -> None:
    """With what it has; the next one plans all, and is outgrown only by as many again."""
    made = world(settings=PATIENT)
    made.tell(Submit(1, "a", chain("first", 30, 30)))
    assert made.state.cycle.running == 1
    same = made.state.handle(Submit(2, "b", chain("second", 30, 30)), made.now)
    assert StopPlanning(1) not in same
    more = made.state.handle(Submit(3, "c", chain("third", 30)), made.now)
    assert StopPlanning(1) in more
    assert StopPlanning(1) not in made.state.handle(Submit(4, "d", chain("fourth", 30)), made.now)
    while made.state.cycle.running != 2:
        made.step()
    assert made.state.cycle.reason == "more has come than was being planned"
    assert made.now <= 10 * PATIENT.pause
    few = made.state.handle(Submit(5, "e", chain("fifth", 30)), made.now)
    assert StopPlanning(2) not in few


def test_a_breakdown_stops_the_search_that_runs() -> None:
    """The search ends with what it has, and the next one begins."""
    made = world(settings=PATIENT)
    made.tell(Submit(1, "a", chain("flow", 30)))
    assert made.state.cycle.running == 1
    commands = made.state.handle(Update(1, made.supply("alpha", broken=True)), made.now)
    assert StopPlanning(1) in commands
    again = made.state.handle(Update(1, made.supply("beta", broken=True)), made.now)
    assert StopPlanning(1) not in again


def test_a_task_without_any_resource_waits_for_one() -> None:
    """It has no place and a reason, and is done when the resource is back."""
    made = world()
    made.tell(Remove(1, "gamma"))
    made.tell(Submit(1, "a", chain("flow", 5, 5, resources=("alpha",))))
    made.tell(Update(1, made.supply("alpha", broken=True)))
    while made.now < 200:
        made.step()
    first, second = made.state.memory.tasks()
    assert first.reason == "can run on none of the resources that can be used now"
    assert second.reason == "waits for 't0', which has no place"
    made.tell(Update(1, made.supply("alpha")))
    made.run()
    assert made.completed == ["flow/t0", "flow/t1"]


def test_refused_time_is_avoided() -> None:
    """A refusal leads to a plan that keeps away from that time."""
    made = world(faults=1.0)
    made.settings = BrokerSettings(cycle=50, slot=20, pause=2, gather=0, margin=4, early=False)
    made.restart()
    made.tell(Submit(1, "a", chain("flow", 10, resources=("alpha",))))
    while not made.state.cycle._taken:  # until it was refused
        made.step()
    made.faults = 0.0
    plannings = [
        each
        for each in handled(made, StartPlanning, made.now + 10)
        if isinstance(each, StartPlanning)
    ]
    taken = plannings[0].planning_input.taken
    assert [each.resource for each in taken] == ["alpha"]
    made.run()
    task = next(iter(made.state.memory.workflows.values())).tasks["t0"]
    assert task.start_time is not None
    assert not taken[0].begin <= task.start_time < taken[0].end


# --- sites ---------------------------------------------------------------------------------------


def running_world() -> World:
    """Returns a world in which the first of two tasks runs."""
    made = world(settings=PATIENT)
    made.tell(Submit(1, "a", chain("flow", 30, 30, resources=("alpha",))))
    while TaskState.RUNNING not in states(made).values():
        made.step()
    return made


def test_what_runs_at_a_silent_site_is_waited_for() -> None:
    """Only what is not launched is planned again; with the site everything is back."""
    made = running_world()
    assert made.state.sites_down == frozenset()
    made.tell(SiteDown(0, ""))
    assert made.state.sites_down == {""}
    assert states(made) == {"flow/t0": TaskState.RUNNING, "flow/t1": TaskState.WAITING}
    made.tell(SiteLost(0, ""))
    assert states(made)["flow/t0"] is TaskState.RUNNING
    made.tell(SiteUp(0, ""))
    made.run()
    assert made.completed == ["flow/t0", "flow/t1"]


def test_a_lost_site_gives_its_runs_back_where_that_is_wanted() -> None:
    """With on_lost = rerun the run is given up, and released when the site is back."""
    made = running_world()
    made.state = BrokerState.recover(
        BrokerSettings(cycle=50, slot=20, pause=2, margin=4, on_lost="rerun"), made.journal
    )
    commands = made.state.handle(SiteDown(0, ""), made.now)
    assert not any(isinstance(each, Release) for each in commands)
    commands = made.state.handle(SiteLost(0, ""), made.now)
    assert [type(each) for each in commands if isinstance(each, Release)] == [Release]
    assert states(made)["flow/t0"] is TaskState.WAITING


def test_a_task_that_fails_too_often_fails_its_workflow() -> None:
    """So many failures are tried again; then nothing of the workflow is begun any more."""
    made = world()
    made.tell(Submit(1, "a", chain("flow", 5, 5)))
    made.tell(Submit(2, "b", chain("other", 5)))
    while made.state.memory.live:
        for run in made.runs.values():
            if run.task == "flow/t0":
                run.outcome = Outcome.FAILED
        assert made.step()
    flow, other = made.state.memory.workflows.values()
    assert flow.state is WorkflowState.FAILED
    assert [task.state for task in flow.tasks.values()] == [TaskState.FAILED, TaskState.CANCELLED]
    assert flow.tasks["t0"].runs == made.settings.runs_max
    assert other.state is WorkflowState.COMPLETED


@pytest.mark.parametrize("moment", list(TaskState)[:6])
def test_a_restart_in_every_state_of_a_task_goes_on(moment: TaskState) -> None:
    """Whatever state a kill meets, the task is taken up by its id and done once."""
    made = world(5, PATIENT)
    made.tell(Submit(1, "a", chain("flow", 20, 20, resources=("alpha", "beta"))))
    while moment not in states(made).values():
        if moment is TaskState.ENDING and TaskState.RUNNING in states(made).values():
            task = next(iter(made.state.memory.tasks()))
            assert task.placement is not None
            place = task.placement.resources[0]
            made.tell(Update(1, made.supply(place, broken=True)))
            continue
        assert made.step()
    made.restart()
    assert moment in states(made).values()
    made.run()
    assert made.completed == ["flow/t0", "flow/t1"]


def test_a_restart_asks_again_by_the_same_names() -> None:
    """A running task is booked and launched once more under its own name, with its start."""
    made = running_world()
    task = made.state.memory.live["flow"].tasks["t0"]
    again = BrokerState.recover(made.settings, made.journal)
    commands = again.handle(Restarted(0), made.now)
    assert task.booking is not None
    name = task.booking.booking
    assert [c.booking.booking for c in commands if isinstance(c, Book)][0] == name  # noqa: RUF015  # the first of several
    launches = [c for c in commands if isinstance(c, Launch)]
    assert [(c.booking.booking, c.started) for c in launches] == [(name, task.start_time)]
    fixed = [r.booking for r in made.journal if isinstance(r, TaskFixed)]
    assert len(set(fixed)) == len(fixed)


def test_a_recovered_broker_names_its_bookings_by_its_epoch() -> None:
    """No other life of a broker has had them."""
    made = world(settings=PATIENT)
    made.tell(Submit(1, "a", chain("flow", 30, 30, resources=("alpha",))))
    made.state = BrokerState.recover(made.settings, made.journal, epoch="other")
    made.tell(Restarted(0))
    while TaskState.RUNNING not in states(made).values():
        made.step()
    booking = made.state.memory.live["flow"].tasks["t0"].booking
    assert booking is not None
    assert booking.booking.startswith("other-")


# --- people --------------------------------------------------------------------------------------


def asked(made: World, event: object) -> object:
    """Returns the answer to a question."""
    made.tell(event)  # type: ignore[arg-type]  # an event
    return next(each for each in reversed(made.answers) if isinstance(each, Answer))


def test_the_same_key_is_the_same_workflow() -> None:
    """A submission is taken once; the same key with something else is refused."""
    made = world()
    first = asked(made, Submit(1, "key", chain("flow", 5)))
    again = asked(made, Submit(2, "key", chain("flow", 5)))
    other = asked(made, Submit(3, "key", chain("flow", 6)))
    assert first == ReplyWorkflow(1, "w1")
    assert again == ReplyWorkflow(2, "w1")
    assert isinstance(other, Refuse)
    assert other.refusal is Refusal.INVALID
    assert len(made.state.memory.workflows) == 1


@pytest.mark.parametrize(
    ("event", "refusal", "word"),
    [
        (Submit(9, "", chain("x", 1)), Refusal.INVALID, "the key has 0 characters; from 1 to 128"),
        (
            Submit(9, "k", chain("flow", 1)),
            Refusal.PRECONDITION,
            "workflow w1 has the name 'flow' and has not ended",
        ),
        (
            Submit(9, "k", chain("x", 1, resources=("delta",))),
            Refusal.INVALID,
            "workflow 'x': 1 tasks have no alternative on resources that are there and large enough (unknown: delta): t0; there are: alpha, beta, gamma",
        ),
        (
            Submit(9, "k", chain("x", *[1.0] * 200)),
            Refusal.EXHAUSTED,
            "workflow 'x' has 200 tasks; 99 more can be taken until others have ended",
        ),
        (
            Cancel(9, "nobody"),
            Refusal.NOT_FOUND,
            "there is no workflow 'nobody'",
        ),
        (
            Update(9, Supply(Resource("delta"))),
            Refusal.NOT_FOUND,
            "there is no resource 'delta'; there are: alpha, beta, gamma",
        ),
        (
            Remove(9, "delta"),
            Refusal.NOT_FOUND,
            "there is no resource 'delta'; there are: alpha, beta, gamma",
        ),
        (
            Register(9, Supply(Resource("alpha", price=7))),
            Refusal.PRECONDITION,
            "there is another resource 'alpha'; update it instead",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(
    event: object, refusal: Refusal, word: str
) -> None:
    """Each refusal has its kind and names what is wrong."""
    made = world()
    made.settings = BrokerSettings(cycle=50, slot=20, pause=2, margin=4, tasks_max=100)
    made.restart()
    made.tell(Submit(1, "key", chain("flow", 5)))
    answer = asked(made, event)
    assert isinstance(answer, Refuse)
    assert answer.cause == 9
    assert answer.refusal is refusal
    assert answer.reason == word


def test_cancelling_ends_what_runs_and_spares_what_has_ended() -> None:
    """The workflow is over when its run is; cancelling once more is nothing."""
    made = running_world()
    asked(made, Cancel(1, "flow"))
    workflow = made.state.memory.workflows["w1"]
    seen = [workflow.state]
    made.run()
    assert [*seen, workflow.state] == [WorkflowState.CANCELLING, WorkflowState.CANCELLED]
    revision = workflow.revision
    assert asked(made, Cancel(2, "w1")) == ReplyWorkflow(2, "w1")
    assert workflow.revision == revision
    assert made.completed == []


def test_ended_workflows_are_forgotten_in_order() -> None:
    """Beyond the limit the oldest that have ended go; their keys are free again."""
    made = world()
    made.settings = BrokerSettings(cycle=50, slot=20, pause=2, margin=4, ended_max=1)
    made.restart()
    for number in range(4):
        made.tell(Submit(1, f"key{number}", chain(f"flow{number}", 1)))
        made.run()
    assert (
        list(made.state.memory.workflows) == ["w3", "w4"]
        or list(made.state.memory.workflows) == ["w2", "w3", "w4"][1:]
    )
    assert "key0" not in made.state.memory.by_key


def test_replanning_is_told_its_number() -> None:
    """The number is of a plan that begins after the question."""
    made = world(settings=PATIENT)
    made.tell(Submit(1, "a", chain("flow", 5)))
    assert made.state.cycle.running == 1
    assert asked(made, Replan(3)) == ReplyPlan(3, 2)


def test_late_and_repeated_news_change_nothing() -> None:
    """Events about what is over, or was never there, are harmless."""
    made = running_world()
    made.run()
    count = len(made.journal)
    for event in (Started(0, "b-1", 5.0), Tick(0), SiteLost(0, "nowhere"), Started(0, "?", 1.0)):
        made.tell(event)
    assert len(made.journal) == count


def offer(name: str, *free: tuple[float, float, int], **values: float) -> ResourceOffer:
    """Returns what a site says of a resource; free all the time where nothing else is said."""
    resource = Resource(name, **values)  # type: ignore[arg-type]  # numbers
    return ResourceOffer(resource, free=free or ((0.0, 1e6, resource.capacity),))


def test_a_broker_learns_its_resources_from_a_site() -> None:
    """New ones get the site's name before theirs; changed ones change, those gone go."""
    made = World(1)
    made.tell(
        Offered(0, "riga", (offer("fast", performance=2.0, capacity=4), offer("slow")), 0, 1e6)
    )
    supplies = made.state.memory.supplies
    assert list(supplies) == ["riga-fast", "riga-slow"]
    assert supplies["riga-fast"] == Supply(
        Resource("riga-fast", performance=2.0, capacity=4), "riga", "fast"
    )
    count = len(made.journal)
    made.tell(
        Offered(0, "riga", (offer("fast", performance=2.0, capacity=4), offer("slow")), 0, 1e6)
    )
    assert len(made.journal) == count, "the same once more is nothing"
    made.tell(Offered(0, "riga", (offer("fast", performance=3.0, price=5.0, capacity=2),), 0, 1e6))
    assert list(supplies) == ["riga-fast"]
    assert supplies["riga-fast"].resource == Resource(
        "riga-fast", performance=3.0, price=5.0, capacity=2
    )


def test_what_people_said_of_a_site_s_resource_stays() -> None:
    """Its name, that it is broken, and its price where the site says none; others' stay away."""
    made = World(1)
    mine = Supply(Resource("mine", price=7.0), "riga", "cpu", broken=True)
    made.tell(Register(1, mine))
    made.tell(Register(2, Supply(Resource("riga-gpu"))))
    offers = (offer("cpu", capacity=8), offer("gpu"))
    made.tell(Offered(0, "riga", offers, 0, 1e6))
    supplies = made.state.memory.supplies
    assert supplies["mine"] == Supply(
        Resource("mine", price=7.0, capacity=8), "riga", "cpu", broken=True
    )
    assert supplies["riga-gpu"] == Supply(Resource("riga-gpu")), "the name belongs to another"


def test_a_resource_that_is_gone_at_its_site_gives_its_task_back() -> None:
    """What ran on it is planned elsewhere at once."""
    made = World(1)
    made.tell(Offered(0, "riga", (offer("a"), offer("b")), 0, 1e6))
    made.tell(Submit(1, "k", chain("flow", 30, resources=("riga-a", "riga-b"))))
    while states(made)["flow/t0"] is not TaskState.RUNNING:
        made.step()
    here = made.state.memory.live["flow"].tasks["t0"].placement
    assert here is not None
    other = "b" if here.resources == ("riga-a",) else "a"
    made.tell(Offered(0, "riga", (offer(other),), made.now, 1e6))
    made.run()
    assert made.completed == ["flow/t0"]
    (done,) = made.state.memory.workflows["w1"].tasks.values()
    assert done.placement is not None
    assert done.placement.resources == (f"riga-{other}",)


def test_time_that_others_hold_at_a_site_is_avoided() -> None:
    """Nothing is planned there; what the broker holds itself is no reason to keep away."""
    made = World(1)
    busy = offer("a", (500.0, 1e6, 1))
    made.tell(Offered(0, "riga", (busy,), 0, 1e6))
    made.tell(Submit(1, "k", chain("flow", 30, 30, resources=("riga-a",))))
    while made.state.memory.plan is None or not made.state.memory.plan.placements:
        made.step()
    assert min(each.start for each in made.state.memory.plan.placements) >= 500
    while states(made)["flow/t0"] is not TaskState.BOOKED:
        made.step()
    booked = made.state.memory.live["flow"].tasks["t0"].placement
    assert booked is not None
    rest = offer("a", (made.now, booked.start, 1), (booked.end, 1e6, 1))
    made.tell(Offered(0, "riga", (rest,), made.now, 1e6))
    made.run()
    assert made.completed == ["flow/t0", "flow/t1"]
    assert made.state.memory.workflows["w1"].tasks["t0"].placement is not None
    assert made.now < booked.end + 200
