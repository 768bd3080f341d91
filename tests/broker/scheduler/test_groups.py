"""Short programs that are launched in groups."""

import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.model.program import Input, Program, Rerun
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Demand, OnFailure, Task, Workflow
from broker.runtime.codec import BrokerCodec
from broker.scheduler.commands import (
    Append,
    Book,
    Command,
    Launch,
    LaunchGroup,
    Release,
    StartPlanning,
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
    Tick,
)
from broker.scheduler.groups import BYTES_MAX, MEMBERS_MAX
from broker.scheduler.invariants import check
from broker.scheduler.lifecycle import TaskState, WorkflowState
from broker.scheduler.records import Record, ResourceSet, Supply, WorkflowSubmitted
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import LiveTask, LiveWorkflow
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request
from tests.broker.plain_planner import plan_plainly

CODEC = BrokerCodec()
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
        given: BrokerSettings = SETTINGS,
        supplies: Sequence[Supply] = (POOL, OWN),
        programs: Sequence[Program] | None = None,
    ) -> None:
        workflow = Workflow("flow", tasks, budget=budget, on_failure=on_failure)
        made = [Program(each.name, "#!/bin/sh\n") for each in tasks]
        asked = Request.of_processors(1, 60.0)
        which = made if programs is None else programs
        some = tuple(replace(each, request=asked) for each in which)
        self.settings = given
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
    assert CODEC.decode(CODEC.encode(world.journal)) == world.journal
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
    world.tell(Tick(0))
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
    assert (world.of("a").runs, world.of("b").runs) == (0, 1)
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
    assert World(task("a"), given=replace(SETTINGS, grouped=0.0)).groups() == []
    assert World(task("a"), given=replace(SETTINGS, early=False)).groups() == []
    both = replace(task("a"), alternatives=(Alternative.of("pool"), Alternative.of("cheap")))
    dear = replace(POOL, resource=Resource("pool", price=2.0, capacity=4))
    cheap = replace(POOL, resource=Resource("cheap", price=1.0), site_resource="c")
    (group,) = World(both, budget=100.0, supplies=(dear, cheap)).groups()
    assert group.launches[0].booking.holds[0].resource == "c"
    (group,) = World(both, supplies=(dear, cheap)).groups()
    assert group.launches[0].booking.holds[0].resource == "p"
    # For a second of work pool takes 1, and what is twice as fast, but more than twice as dear, takes 1.4.
    slow = replace(POOL, resource=Resource("pool", price=1.0, capacity=4))
    fast = replace(cheap, resource=Resource("cheap", performance=2.0, price=2.8))
    (group,) = World(both, budget=100.0, supplies=(slow, fast)).groups()
    assert group.launches[0].booking.holds[0].resource == "p"
    # What takes another resource in addition costs that, too; where it is not there, the other is the cheapest.
    beside = Alternative((Demand("cheap"), Demand("licence", 3)))
    three = replace(task("a"), alternatives=(Alternative.of("pool"), beside))
    licence = Supply(Resource("licence", price=0.5, capacity=9), "riga", "l")
    for price, grouped in ((2.6, True), (2.4, False)):
        pool = replace(POOL, resource=Resource("pool", price=price, capacity=4))
        world = World(three, budget=100.0, supplies=(pool, cheap, licence))
        assert bool(world.groups()) is not grouped
        assert World(three, budget=100.0, supplies=(pool, cheap)).groups()


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


@pytest.mark.parametrize(("more", "together"), [(0, ["a", "b"]), (1, ["a"])])
def test_the_scripts_of_a_group_have_so_many_bytes(more: int, together: list[str]) -> None:
    """And not one more; the next group has the rest."""
    rest = BYTES_MAX - 1000 + more
    programs = [Program("a", "#!/bin/sh\n".ljust(1000)), Program("b", "#!/bin/sh\n".ljust(rest))]
    first = World(task("a"), task("b"), programs=programs).groups()[0]
    assert names_of(first) == together


def test_a_wide_program_waits_for_groups_and_not_for_long_runs() -> None:
    """Narrower ones do not go before it where its processors are free in a moment, and do where they are not."""
    some = (task("n0"), task("n1"), task("wide", 0.5, "n0", units=4), task("n2", 0.5, "n0"))
    world = World(*some)
    world.ends("n0")
    assert world.groups() == []
    world.ends("n1")
    assert [names_of(each) for each in world.groups()] == [["wide"]]
    other = World(task("long", 60.0), *some)
    other.ends("n0")
    assert other.of("long").state is TaskState.BOOKING
    assert [names_of(each) for each in other.groups()] == [["n2"]]
    assert other.of("wide").state is TaskState.WAITING


def test_a_window_is_as_long_as_runs_of_before_have_shown() -> None:
    """A tenth of what each has taken beyond what was thought, of that resource."""
    world = World(task("a"), task("b", 0.5, "a"), task("c", 0.5, "b"))
    ends = []
    for name, took in (("a", 1.0), ("b", 0.25), ("c", 0.5)):
        (group,) = world.groups()
        ends.append(group.group.end - world.now - SETTINGS.margin)
        world.taken(group)
        world.ends(name, took=took)
    assert ends == pytest.approx([0.5, 0.5 * 1.1, 0.5 * 1.04])


def test_a_window_is_shorter_where_its_resource_closes() -> None:
    """It is halved until it fits, but not below what the longest of its programs needs."""
    some = [task(f"t{number}") for number in range(9)]
    ends = []
    for closes in (14.0, 13.4, 12.6):
        calendar = Calendar(closures=((closes, 1000.0),))
        pool = replace(POOL, resource=Resource("pool", capacity=4, calendar=calendar))
        (group,) = World(*some, supplies=(pool, OWN)).groups()
        ends.append(group.group.end)
    # Nine of half a second on four processors take 1.5 s, and the margin is 2 s.
    assert ends == [13.5, 12.5, 12.5]


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


LEARNED = replace(SETTINGS, estimates="learned", grouped=5.0)


def test_programs_that_take_longer_than_is_said_get_reservations_of_their_own() -> None:
    """An agent hands back at once what would not be over in the window of its group, each time anew."""
    world = World(*(task(f"t{number}") for number in range(200)), given=LEARNED)
    (group,) = world.groups()
    assert len(group.launches) > 20
    running = names_of(group)
    world.taken(group)
    world.ends(*running, took=60.0)
    assert world.groups() == []
    booked = [each for each in world.commands if isinstance(each, Book)]
    assert len(booked) == 4
    assert [each.booking.run_time for each in booked] == pytest.approx([60.0] * 4)
    world.restart()
    assert world.groups() == []


def test_programs_that_take_less_than_is_said_are_grouped_once_that_is_known() -> None:
    """Without a new plan, and nobody waits for one."""
    world = World(*(task(f"t{number}", 100.0) for number in range(40)), given=LEARNED)
    grouped: list[str] = []
    for _ in range(6):
        running = [name for name, each in world.flow.tasks.items() if each.booking is not None]
        if not running or grouped:
            break
        for name in running:
            booking = world.of(name).booking
            assert booking is not None
            if not booking.reservations:
                world.tell(Booked(0, booking.booking, (f"r-{name}",)))
        world.ends(*running, took=0.5)
        grouped = [name for each in world.groups() for name in names_of(each)]
    assert len(grouped) > 4


def test_what_is_given_files_of_a_simulated_task_waits_for_no_group() -> None:
    """It is simulated, too, where its plan has it."""
    second = Program("b", "#!/bin/sh\n", inputs=(Input("x", task="a", output="x"),))
    first = Program("a", "#!/bin/sh\n", outputs=("x",))
    world = World(task("a"), task("b", 0.5, "a"), programs=[first, second])
    booking = world.of("a").booking
    assert booking is not None
    world.tell(Ended(0, booking.booking, Outcome.NOT_RUN, 10.0, 10.5))
    assert world.of("a").state is TaskState.SIMULATED
    assert world.groups() == []


class Pilot:
    """A world with a pilot that starts what waits in groups, loses words, and gives things back, on one seed.

    Whatever happens to the broker, what the pilot has goes on; what is on its way to the broker is lost with it.
    """

    def __init__(self, seed: int, *tasks: Task, on_failure: OnFailure) -> None:
        self.random = random.Random(seed)  # noqa: S311  # a test's own chance
        self.queue: list[tuple[float, int, Event | str]] = []
        self.count = itertools.count()
        self.states: dict[str, str] = {}
        self.groups: dict[str, LaunchGroup] = {}
        self.starts: dict[str, float] = {}
        self.begun: list[str] = []
        self.completed: list[str] = []
        self.world = World(*tasks, on_failure=on_failure)
        self.carry_out()

    def later(self, what: Event | str, delay: float = 0.1) -> None:
        """Has something happen; a booking's name stands for the end of its run."""
        moment = self.world.now + self.random.uniform(0.0, delay)
        heapq.heappush(self.queue, (moment, next(self.count), what))

    def step(self) -> bool:
        """Lets the next thing happen; returns whether there was any."""
        due = self.world.state.next_time
        happens = self.queue[0][0] if self.queue else math.inf
        if min(due, happens) == math.inf:
            return False
        if happens > due:
            self.world.now = max(self.world.now, due)
            self.world.tell(Tick(0))
        else:
            moment, _, what = heapq.heappop(self.queue)
            self.world.now = max(self.world.now, moment)
            if isinstance(what, str):
                self.end(what)
                return True
            self.world.tell(what)
        self.carry_out()
        if self.random.random() < 0.02:
            self.queue = [one for one in self.queue if isinstance(one[2], str)]
            heapq.heapify(self.queue)
            self.world.restart()
            self.carry_out()
            for name in self.states:
                self.tell(name)  # as a site does that is watched anew
        return True

    def carry_out(self) -> None:
        """Does what the broker wants done."""
        for command in self.world.commands:
            if isinstance(command, LaunchGroup):
                self.launch(command)
            elif isinstance(command, StartPlanning):
                self.later(plan_plainly(command.number, command.planning_input), 3.0)
            elif isinstance(command, Book | Launch):
                assert command.booking.reservations, "it is booked by itself"
                self.tell(command.booking.booking)
            elif isinstance(command, Withdraw | Release):
                self.give_up(command)
        self.world.commands = []

    def launch(self, command: LaunchGroup) -> None:
        """Takes a group, or refuses all of it."""
        names = [each.booking.booking for each in command.launches]
        if not any(name in self.states for name in names) and self.random.random() < 0.1:
            for name in names:
                self.later(BookingLost(0, name, "not free", (0,)))
            return
        for launch in command.launches:
            name = launch.booking.booking
            if name not in self.states:
                self.states[name] = "waiting"
                self.groups[name] = command
            self.later(Booked(0, name, (f"r-{name}",)))
            self.tell(name)
        self.begin()

    def begin(self) -> None:
        """Starts what has room in its group, in order, or gives it back where it has no time."""
        for name, command in self.groups.items():
            members = [each.booking.booking for each in command.launches]
            running = sum(self.states.get(each) == "running" for each in members)
            if self.states[name] != "waiting" or running >= command.group.units:
                continue
            task = next(
                "/".join(each.booking.placement.key)
                for each in command.launches
                if each.booking.booking == name
            )
            if self.world.now > command.group.end or self.random.random() < 0.05:
                self.states[name] = "returned"
                self.tell(name)
                continue
            self.states[name] = "running"
            self.starts[name] = self.world.now
            self.begun.append(task)
            self.later(name, 1.0)
        assert list(self.states.values()).count("running") <= POOL.resource.capacity
        for name in self.states:
            if self.states[name] == "running":
                self.tell(name)

    def end(self, name: str) -> None:
        """Ends a run."""
        if self.states[name] == "running":
            self.states[name] = "failed" if self.random.random() < 0.02 else "completed"
            self.tell(name)
        self.begin()

    def give_up(self, command: Withdraw | Release) -> None:
        """Withdraws or releases."""
        name = command.booking.booking
        there = self.states.get(name)
        if there == "waiting" or (there == "running" and isinstance(command, Release)):
            self.states[name] = "returned"
        if isinstance(command, Withdraw) or there in {"completed", "failed"}:
            self.tell(name)
        if isinstance(command, Release):
            if name in self.starts:
                self.later(Started(0, name, self.starts[name]), 0.0)
            self.later(Released(0, name), 0.5)

    def tell(self, name: str) -> None:
        """Tells how a run stands, as a site does that is asked or watched."""
        state = self.states.get(name)
        start = self.starts.get(name)
        if state == "running" and start is not None:
            self.later(Started(0, name, start))
        elif state in {"completed", "failed"}:
            good = state == "completed"
            outcome = Outcome.COMPLETED if good else Outcome.FAILED
            self.later(
                Ended(0, name, outcome, start, self.world.now, exit_code=0 if good else 1), 0.5
            )
        elif state == "returned" and start is None:
            self.later(BookingLost(0, name, "given back"), 0.5)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32), on_failure=st.sampled_from(["finish", "terminate", "continue"]))
def test_each_program_of_groups_runs_once_whatever_breaks(seed: int, on_failure: OnFailure) -> None:
    """The broker is killed again and again, words are lost, groups are refused and programs given back."""
    chance = random.Random(seed)  # noqa: S311  # a test's own chance
    tasks = []
    for number in range(30):
        before = chance.sample(range(number), min(number, chance.choice([0, 0, 1, 2])))
        tasks.append(task(f"t{number}", 0.5, *(f"t{each}" for each in sorted(before))))
    pilot = Pilot(seed, *tasks, on_failure=on_failure)
    for _ in range(20_000):
        if pilot.world.flow.has_ended and not pilot.world.state.memory.releasing:
            break
        assert pilot.step(), "nothing happens any more, and not everything has ended"
    else:
        raise AssertionError("no end")
    flow = pilot.world.flow
    counts = Counter(pilot.begun)
    for name, each in flow.tasks.items():
        begun = counts[f"flow/{name}"]
        assert begun == each.runs, name
        assert begun == 1 if each.state in {TaskState.COMPLETED, TaskState.FAILED} else begun <= 1
        if begun:
            assert all(before.state is TaskState.COMPLETED for before in each.predecessors)
    assert not pilot.world.state.memory.groups
    assert not pilot.world.state.memory.holding
