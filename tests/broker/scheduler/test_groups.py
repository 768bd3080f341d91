"""Short programs that are launched in groups."""

from collections.abc import Sequence
from dataclasses import replace

from broker.model.program import Input, Program, Rerun
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, OnFailure, Task, Workflow
from broker.scheduler.commands import (
    Append,
    Book,
    Command,
    Launch,
    LaunchGroup,
    Release,
    Withdraw,
)
from broker.scheduler.events import (
    Booked,
    BookingLost,
    Cancel,
    Ended,
    Event,
    Refused,
    Released,
    Restarted,
    Started,
)
from broker.scheduler.groups import MEMBERS_MAX
from broker.scheduler.invariants import check
from broker.scheduler.lifecycle import TaskState, WorkflowState
from broker.scheduler.records import Record, ResourceSet, Supply, WorkflowSubmitted
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import LiveTask, LiveWorkflow
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request

SETTINGS = BrokerSettings(cycle=1000, slot=1, pause=500, gather=500, margin=2)
POOL = Supply(Resource("pool", capacity=4), "riga", "p", groups=True)
OWN = Supply(Resource("own", capacity=1), "riga", "o")


def task(name: str, work: float = 0.5, *before: str, units: int = 1, on: str = "pool") -> Task:
    """Returns a task that runs on a resource."""
    return Task(name, work, (Alternative((Demand(on, units),)),), before)


class World:
    """A broker whose site does what the test says."""

    def __init__(
        self,
        *tasks: Task,
        on_failure: OnFailure = "finish",
        budget: float = float("inf"),
        settings: BrokerSettings = SETTINGS,
        supplies: Sequence[Supply] = (POOL, OWN),
        programs: Sequence[Program] | None = None,
    ) -> None:
        workflow = Workflow("flow", tasks, budget=budget, on_failure=on_failure)
        made = [Program(each.name, "#!/bin/sh\n") for each in tasks]
        asked = Request.of_processors(1, 60.0)
        given = made if programs is None else programs
        some = tuple(replace(each, request=asked) for each in given)
        self.settings = settings
        self.journal: list[Record] = [
            *(ResourceSet(0.0, supply) for supply in supplies),
            WorkflowSubmitted(0.0, "w1", "k", workflow, some),
        ]
        self.now = 10.0
        self.commands: list[Command] = []
        self.restart()

    def restart(self) -> list[Command]:
        """Makes the state from the journal, and has it take up what was open."""
        self.state = BrokerState(self.settings, self.journal, epoch="e")
        return self.tell(Restarted(0))

    def tell(self, *events: Event) -> list[Command]:
        """Hands events over; returns what is to be done."""
        self.commands = []
        for event in events:
            for command in self.state.handle(event, self.now):
                if isinstance(command, Append):
                    self.journal += command.records
                else:
                    self.commands.append(command)
            check(self.state.memory)
        return self.commands

    def groups(self) -> list[LaunchGroup]:
        """Returns the groups that the last events had launched."""
        return [each for each in self.commands if isinstance(each, LaunchGroup)]

    def of(self, name: str) -> LiveTask:
        """Returns a task."""
        return self.flow.tasks[name]

    @property
    def flow(self) -> LiveWorkflow:
        """The workflow."""
        return self.state.memory.workflows["w1"]

    def taken(self, group: LaunchGroup) -> None:
        """Has its site take a group."""
        names = [each.booking.booking for each in group.launches]
        self.tell(*(Booked(0, name, (f"r-{name}",)) for name in names))

    def ends(self, *names: str, code: int = 0, took: float = 0.5) -> list[Command]:
        """Has programs run to their ends, at once."""
        outcome = Outcome.FAILED if code else Outcome.COMPLETED
        start, events = self.now, list[Event]()
        for name in names:
            booking = self.of(name).booking
            assert booking is not None
            events.append(Started(0, booking.booking, start))
            end = start + took
            events.append(Ended(0, booking.booking, outcome, start, end, exit_code=code))
        return self.tell(*events)


def names_of(group: LaunchGroup) -> list[str]:
    """Returns the tasks of a group."""
    return [each.booking.placement.task for each in group.launches]


def test_what_can_begin_is_launched_in_one_go_and_shares_what_is_free() -> None:
    """Each has a place of its own within the units; what waits for others, or runs longer, is not of the group."""
    some = [task(f"t{number}") for number in range(9)]
    world = World(*some, task("after", 0.5, "t0"), task("long", 60.0))
    (group,) = world.groups()
    assert names_of(group) == [each.name for each in some]
    assert (group.group.units, group.group.begin) == (4, 10.0)
    assert group.group.end == 10.0 + 3 * 0.5 + 2.0
    places = [each.booking.placement for each in group.launches]
    assert sorted((each.start, each.end) for each in places) == sorted(
        (10.0 + 0.5 * (at // 4), 10.5 + 0.5 * (at // 4)) for at in range(9)
    )
    assert {world.of(each.name).state for each in some} == {TaskState.LAUNCHED}
    assert world.of("after").state is TaskState.WAITING
    # All of it is taken, so what runs longer waits; fewer are left and free it.
    assert world.of("long").booking is None
    world.taken(group)
    world.ends(*(f"t{number}" for number in range(1, 6)))
    assert world.of("long").booking is None
    world.ends("t6", "t7")
    assert world.of("long").state is TaskState.BOOKING
    world.ends("t0")
    assert names_of(world.groups()[0]) == ["after"]
    assert world.groups()[0].group.units == 1
    assert world.of("t1").exit_code == 0
    assert world.of("t1").runs == 1


def test_a_group_that_is_not_answered_is_launched_again_after_a_restart() -> None:
    """Under the same names; what is answered is looked after by itself, and nothing has another attempt."""
    world = World(task("a"), task("b"), task("c"))
    (group,) = world.groups()
    world.restart()
    (again,) = world.groups()
    assert again.group == group.group
    assert all(each.again for each in again.launches)
    assert [each.booking for each in again.launches] == [each.booking for each in group.launches]
    world.taken(group)
    assert world.of("a").run is not None
    world.ends("a")
    world.restart()
    assert world.groups() == []
    assert [type(each) for each in world.commands if not isinstance(each, Append)][:4] == [
        Book,
        Launch,
    ] * 2
    assert {each.again for each in world.commands if isinstance(each, Launch)} == {True}


def test_what_a_site_gives_back_is_launched_again_and_is_no_run() -> None:
    """At once where others of its group have begun, and after its window where none has, or all was refused."""
    world = World(task("a"), task("b"))
    (group,) = world.groups()
    refused = [BookingLost(0, each.booking.booking, "no pilot", (0,)) for each in group.launches]
    world.tell(*refused)
    assert world.groups() == []
    assert (world.of("a").state, world.of("a").runs) == (TaskState.WAITING, 0)
    done = [Released(0, each.booking.booking) for each in group.launches]
    world.tell(*done)
    assert world.groups() == []
    world.now = group.group.end
    world.state.cycle.want_now(
        "a test"
    )  # a plan, and whatever else has all looked at, is such a moment
    world.restart()
    (second,) = world.groups()
    assert names_of(second) == ["a", "b"]
    world.taken(second)
    name = second.launches[0].booking.booking
    world.tell(Started(0, name, world.now))
    world.tell(BookingLost(0, second.launches[1].booking.booking, "no time"))
    third = world.groups()
    assert [names_of(each) for each in third] == [["b"]]
    assert world.of("b").runs == 1


def test_one_that_is_refused_fails_by_itself() -> None:
    """The others go on."""
    world = World(task("a"), task("b"), on_failure="continue")
    (group,) = world.groups()
    world.tell(Refused(0, group.launches[0].booking.booking, "no shell"))
    assert (world.of("a").state, world.of("a").reason) == (TaskState.FAILED, "no shell")
    assert world.of("b").state is TaskState.LAUNCHED


def test_a_failure_has_nothing_more_of_a_group_begin() -> None:
    """What waits at the site is withdrawn, what has begun goes on; with `terminate` both are ended."""
    some = [task(f"t{number}") for number in range(6)]
    world = World(*some)
    (group,) = world.groups()
    world.taken(group)
    world.tell(Started(0, group.launches[1].booking.booking, 10.0))
    world.ends("t0", code=3)
    withdrawn = [each for each in world.commands if isinstance(each, Withdraw)]
    assert [each.booking.placement.task for each in withdrawn] == ["t2", "t3", "t4", "t5"]
    assert world.of("t0").exit_code == 3
    lost = [BookingLost(0, each.booking.booking, "withdrawn") for each in withdrawn]
    world.tell(*lost)
    world.restart()
    assert not any(isinstance(each, LaunchGroup) for each in world.commands)
    world.ends("t1")
    assert world.of("t1").state is TaskState.COMPLETED
    assert world.of("t5").state is TaskState.CANCELLED
    assert world.flow.state is WorkflowState.FAILED
    other = World(*some, on_failure="terminate")
    other.taken(other.groups()[0])
    other.ends("t0", code=3)
    released = [each for each in other.commands if isinstance(each, Release)]
    assert len(released) == 5


def test_a_cancelled_workflow_has_its_group_ended() -> None:
    """All of it, what waits at the site too, and also after a restart before that has answered."""
    world = World(task("a"), task("b"))
    world.tell(Cancel(1, "w1"))
    assert len([each for each in world.commands if isinstance(each, Release)]) == 2
    world.restart()
    kinds = [type(each) for each in world.commands if isinstance(each, LaunchGroup | Release)]
    assert kinds == [LaunchGroup, Release, Release]
    names = [each.booking.booking for each in world.groups()[0].launches]
    world.tell(*(Released(0, name) for name in names))
    assert world.flow.state is WorkflowState.CANCELLED


def test_a_program_is_run_again_in_a_group_where_it_asks_for_it() -> None:
    """After its exit code, within its runs."""
    program = Program("a", "#!/bin/sh\n", rerun=Rerun(2, exit_codes=(75,)))
    world = World(task("a"), programs=[program])
    world.ends("a", code=75)
    (group,) = world.groups()
    assert names_of(group) == ["a"]
    world.ends("a", code=75)
    assert world.of("a").state is TaskState.FAILED
    assert world.of("a").runs == 2


def test_who_is_not_launched_in_a_group() -> None:
    """Without a program, with another resource, with a bound of 0, where plans are kept, and what is dear where it is."""
    assert World(task("a"), programs=[]).groups() == []
    assert World(task("a", on="own")).groups() == []
    assert World(task("a"), settings=replace(SETTINGS, grouped=0.0)).groups() == []
    assert World(task("a"), settings=replace(SETTINGS, early=False)).groups() == []
    both = replace(task("a"), alternatives=(Alternative.of("pool"), Alternative.of("cheap")))
    dear = replace(POOL, resource=Resource("pool", price=2.0, capacity=4))
    cheap = replace(POOL, resource=Resource("cheap", price=1.0), site_resource="c")
    (group,) = World(both, budget=100.0, supplies=(dear, cheap)).groups()
    assert group.launches[0].booking.holds[0].resource == "c"
    (group,) = World(both, supplies=(dear, cheap)).groups()
    assert group.launches[0].booking.holds[0].resource == "p"


def test_wide_programs_have_groups_of_their_own_and_no_group_is_too_large() -> None:
    """A group has programs of one width, and no more than a site tells of in one go."""
    some = [task(f"t{number}", 0.001) for number in range(2 * MEMBERS_MAX)]
    (group,) = World(*some, task("wide", units=2)).groups()
    assert len(group.launches) == MEMBERS_MAX
    (group,) = World(task("wide", units=3), task("more", units=3), task("narrow")).groups()[:1]
    assert names_of(group) == ["wide", "more"]
    assert group.group.units == 3
    (second,) = World(task("wide", units=3), task("narrow")).groups()[1:]
    assert (names_of(second), second.group.units) == (["narrow"], 1)


def test_what_runs_take_is_learned() -> None:
    """A group is as large as its units are at work with for some seconds, by what those before it took."""
    some = [task(f"t{number}", 2.0) for number in range(60)]
    world = World(*some)
    (group,) = world.groups()
    assert len(group.launches) == 9  # two of two seconds for each of four units, and one more
    most = 0.0
    while world.flow.counts[TaskState.WAITING]:
        running = [name for name, each in world.flow.tasks.items() if each.booking is not None]
        world.ends(*running, took=0.02)
        most = max(most, *(len(each.launches) / each.group.units for each in world.groups()), 0.0)
    assert most >= 5.0


def test_what_is_given_files_of_a_simulated_task_waits_for_no_group() -> None:
    """It is simulated, too, where its plan has it."""
    given = Program("b", "#!/bin/sh\n", inputs=(Input("x", task="a", output="x"),))
    first = Program("a", "#!/bin/sh\n", outputs=("x",))
    world = World(task("a"), task("b", 0.5, "a"), programs=[first, given])
    booking = world.of("a").booking
    assert booking is not None
    world.tell(Ended(0, booking.booking, Outcome.NOT_RUN, 10.0, 10.5))
    assert world.of("a").state is TaskState.SIMULATED
    assert world.groups() == []
