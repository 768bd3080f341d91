"""Files on their way while workflows run: nothing begins before its files can be there."""

import itertools
import math
import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.deviation_dispatch import Greedy
from benchmarks.deviation_dispatch import World as SearchingWorld
from benchmarks.deviation_loads import NOISES, Load
from broker.gantt.views import plan_document
from broker.model.network import Contention, Copy, DataFile, Link, Network
from broker.model.plan import Placement, Plan, Transfer
from broker.model.program import Input, Output, Program
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.scheduler.commands import Append, Command, Launch, StartPlanning
from broker.scheduler.events import PlanFound, Register, Submit
from broker.scheduler.file_arrivals import FileArrivals
from broker.scheduler.lifecycle import WorkflowState
from broker.scheduler.planning_input import pose
from broker.scheduler.records import FilesSent, Supply, WorkflowCancelled, WorkflowSubmitted
from broker.scheduler.settings import BrokerSettings, EstimatesFrom
from broker.scheduler.state_tables import LiveTask, StateTables
from tests.broker.broker_world import World
from tests.examples import FEW

NETWORK = Network(Link(2.0, 3.0), {"alpha": "x", "beta": "x"}, {("x", "gamma"): Link(8.0)}, "x")
SETTINGS = BrokerSettings(cycle=50, slot=20, pause=2, margin=4, network=NETWORK)
RESOURCES = ("alpha", "beta", "gamma", "delta")
CONTENTIONS: tuple[Contention, ...] = ("none", "link")


@dataclass
class DataWorld(World):
    """A world whose sites look at what a task needs when it is launched; files of size 0 to 60."""

    planned: list[StartPlanning] = field(default_factory=list)

    def _carry_out(self, command: object) -> None:
        if isinstance(command, StartPlanning):
            self.planned.append(command)
        super()._carry_out(command)  # type: ignore[arg-type]  # a command

    def _launch(self, command: Launch) -> None:
        place = command.booking.placement
        live = self.state.memory.live[place.workflow]
        site = NETWORK.site(place.resources[0])
        for run in self.runs.values():
            self._settle(run)
        for file in live.workflow.files:
            if place.task not in file.readers or command.program is not None:
                continue
            origin, since = file.site or NETWORK.inputs, live.submit_time
            if file.maker:
                (made,) = (
                    run
                    for run in self.runs.values()
                    if run.task == f"{place.workflow}/{file.maker}" and run.task in self.completed
                    if run.state == "ended" and run.outcome.value == "completed"
                )
                origin, since = NETWORK.site(made.booking.placement.resources[0]), made.end
            takes = NETWORK.link(origin, site).seconds(file.size)
            assert self.now >= since + takes - 1e-6, f"{place.task} has no {file.name} yet"
        super()._launch(command)


def flow(rng: random.Random, name: str) -> Workflow:
    """Returns a workflow of up to six tasks and their files."""
    names = [f"t{number}" for number in range(rng.randint(2, 6))]
    before = {
        each: [one for one in names[:at] if rng.random() < 0.5] for at, each in enumerate(names)
    }
    tasks = tuple(
        Task(
            each,
            float(rng.randint(5, 40)),
            tuple(Alternative.of(one) for one in rng.sample(RESOURCES, rng.randint(1, 4))),
            tuple(before[each]),
        )
        for each in names
    )
    files = [
        DataFile(f"{each}.out", float(rng.randint(0, 60)), readers, each)
        for each in names
        if (readers := tuple(one for one in names if each in before[one]))
    ]
    given = tuple(one for one in names if rng.random() < 0.4)
    if given:
        files.append(
            DataFile("in", float(rng.randint(0, 60)), given, site=rng.choice(["", "gamma"]))
        )
    return Workflow(name, tasks, files=tuple(files))


def check_transfers(made: World) -> None:
    """A file goes to a site once, and where links carry one transfer at a time no two are on one."""
    sent = [each for each in made.journal if isinstance(each, FilesSent)]
    there = [(each.workflow_id, file, each.target) for each in sent for file in each.files]
    assert len(there) == len(set(there))
    network = made.settings.network
    assert network is not None
    free: dict[tuple[str, str], float] = {}
    for each in sorted(sent, key=lambda one: (one.begin, one.end)):
        link = each.source, each.target
        assert each.end == each.begin + network.link(*link).seconds(each.size)
        if network.contended and each.end > each.begin:
            assert each.begin >= free.get(link, each.begin)
            free[link] = each.end


@given(
    st.integers(0, 2**32),
    st.sampled_from((0.0, 0.1)),
    st.sampled_from((0.0, 0.1)),
    st.sampled_from((0.0, 0.3)),
    st.booleans(),
)
@settings(FEW)
def test_no_task_begins_before_its_files_can_be_there(
    seed: int, faults: float, late: float, overruns: float, restarts: bool
) -> None:
    """By a planner that knows no files, with faults, late words, overruns and restarts; all ends."""
    contended = replace(SETTINGS, network=replace(NETWORK, contention=CONTENTIONS[seed % 2]))
    made = DataWorld(seed, contended, faults=faults, late=late, overruns=overruns)
    rng = random.Random(seed)  # noqa: S311  # a test's own chance
    for name in RESOURCES:
        made.tell(Register(1, made.supply(name)))
    for number in range(rng.randint(1, 3)):
        made.later(Submit(1, f"k{number}", flow(rng, f"w{number}")), rng.uniform(0, 60))
    while made.queue and not made.state.memory.live:
        made.step()
    for _ in range(rng.randint(1, 60)):
        if made.state.memory.live:
            made.step()
    if restarts:
        made.restart()
    made.run()
    if not faults:
        check_transfers(made)
    if not faults and not overruns and not restarts:
        ended = made.state.memory.workflows.values()
        assert {each.state for each in ended} == {WorkflowState.COMPLETED}


class KilledError(Exception):
    """The broker is killed."""


@dataclass
class DyingWorld(DataWorld):
    """A world whose broker is killed at one write of its journal, before it or after it."""

    kill_at: int = -1
    before: bool = False
    writes: int = 0

    def _carry_out(self, command: object) -> None:
        dies = isinstance(command, Append) and self.writes == self.kill_at
        self.writes += isinstance(command, Append)
        if dies and self.before:
            raise KilledError
        super()._carry_out(command)
        if dies:
            raise KilledError

    def go_on(self) -> None:
        """Begins what there is to do, and goes on to its end, over its kill."""
        events = [Register(1, self.supply(name)) for name in RESOURCES]
        tasks = (
            Task("first", 20.0, (Alternative.of("alpha"),)),
            Task("second", 60.0, (Alternative.of("gamma"),), ("first",)),
        )
        given_ = replace(chain(80.0), tasks=tasks)
        flows = (Submit(1, name, replace(given_, name=name)) for name in ("v", "w"))
        for event in (*events, *flows):
            try:
                self.tell(event)
            except KilledError:
                self.restart()
                self.tell(event)
        while self.state.memory.live or self.state.memory.releasing:
            try:
                assert self.step()
            except KilledError:
                self.restart()


def test_a_broker_killed_at_any_write_goes_on_with_its_transfers() -> None:
    """What has begun is on its way, and nothing is sent twice; what waits waits again."""
    contended = replace(SETTINGS, network=replace(NETWORK, contention="link"))
    whole = DyingWorld(5, contended)
    whole.go_on()
    assert any(isinstance(each, FilesSent) for each in whole.journal)
    for kill_at, before in itertools.product(range(whole.writes), (False, True)):
        made = DyingWorld(5, contended, kill_at=kill_at, before=before)
        made.go_on()
        assert made.restarts == 1
        check_transfers(made)
        ended = made.state.memory.workflows.values()
        assert [each.state for each in ended] == [WorkflowState.COMPLETED] * 2
        assert made.state.memory.sent == {}
        assert made.state.cycle.files.next_time == math.inf


def chain(size: float) -> Workflow:
    """Returns a task on alpha and one that reads its file, there or on gamma, twice as fast."""
    tasks = (
        Task("first", 20.0, (Alternative.of("alpha"),)),
        Task("second", 60.0, (Alternative.of("alpha"), Alternative.of("gamma")), ("first",)),
    )
    return Workflow("w", tasks, files=(DataFile("made", size, ("second",), "first"),))


def load(size: float) -> Load:
    resources = (Resource("alpha"), Resource("gamma", performance=2.0))
    return Load(resources, ((0.0, chain(size)),), NETWORK)


class SendingWorld(SearchingWorld):
    """A world that keeps what has been sent."""

    sent: list[FilesSent]

    def _do(self, command: Command) -> None:
        if isinstance(command, Append):
            known = self.__dict__.setdefault("sent", [])
            known += (each for each in command.records if isinstance(each, FilesSent))
        super()._do(command)


@pytest.mark.parametrize(("size", "where"), [(40.0, "gamma"), (400.0, "alpha")])
def test_a_searching_broker_goes_where_the_files_are(size: float, where: str) -> None:
    """It sends what is quickly sent, and takes the slow resource beside what is not."""
    world = SearchingWorld(load(size), NOISES[0], 1)
    found = world.run()
    assert found.open == 0
    (live,) = world.state.memory.workflows.values()
    second = live.tasks["second"]
    assert second.placement is not None
    assert second.placement.resources == (where,)
    first_end = live.tasks["first"].end_time
    assert first_end is not None
    assert second.start_time is not None
    assert second.start_time >= first_end + (size / 8 if where == "gamma" else 0.0) - 1e-6
    assert second.start_time <= first_end + (size / 8 if where == "gamma" else 0.0) + 6.0
    assert world.state.cycle.files.sent_bytes == (size if where == "gamma" else 0.0)
    greedy = Greedy(load(size), NOISES[0], 1, "greedy fifo").run()
    assert found.mean_flow_s <= greedy.mean_flow_s + 20.0


def test_transfers_are_shown_as_they_are_planned_and_sent() -> None:
    """From one site to the other, until the workflow has ended."""
    world = SearchingWorld(load(40.0), NOISES[0], 1)
    seen: dict[str, tuple[float, float]] = {}
    for moment in range(400):
        world.go_on(float(moment))
        shown = plan_document(world.state, world.now)["transfers"]
        assert len(shown) <= 1
        for bar in shown:
            assert (bar["link"], bar["task"], bar["size"]) == ("x → gamma", "second", "40 B")
            seen[bar["state"]] = bar["begin_s"], bar["end_s"]
    (live,) = world.state.memory.workflows.values()
    first_end = live.tasks["first"].end_time
    assert first_end is not None
    assert seen["running"] == (first_end, first_end + 5.0) == seen["completed"]
    assert plan_document(world.state, world.now)["transfers"] == []


def test_one_transfer_waits_for_the_other_on_a_link() -> None:
    """Two files of ten seconds, over one link: the plan says so, and the broker does so."""
    tasks = (
        Task("first", 20.0, (Alternative.of("alpha"),)),
        *(Task(name, 60.0, (Alternative.of("gamma"),), ("first",)) for name in ("one", "two")),
    )
    files = tuple(DataFile(f"for {name}", 80.0, (name,), "first") for name in ("one", "two"))
    resources = (Resource("alpha"), Resource("gamma", capacity=2))
    workflow = Workflow("w", tasks, files=files)
    ends = {}
    for contention in CONTENTIONS:
        network = replace(NETWORK, contention=contention)
        world = SendingWorld(Load(resources, ((0.0, workflow),), network), NOISES[0], 1)
        world.run()
        (live,) = world.state.memory.workflows.values()
        begun = live.tasks["first"].end_time
        assert begun is not None
        first, second = world.sent
        later = 10.0 if contention == "link" else 0.0
        assert (first.begin, first.end) == (begun, begun + 10.0)
        assert (second.begin, second.end) == (begun + later, begun + later + 10.0)
        starts = sorted(live.tasks[name].start_time or 0.0 for name in ("one", "two"))
        assert begun + 10.0 <= starts[0]
        assert begun + 10.0 + later <= starts[1]
        ends[contention] = live.end_time
    assert ends["link"] is not None
    assert ends["none"] is not None
    assert ends["none"] + 9.0 <= ends["link"] <= ends["none"] + 20.0


def test_a_planner_leaves_links_to_what_is_under_way() -> None:
    """To what booked tasks have to be sent, and then to what has begun."""
    contended = replace(NETWORK, contention="link")
    tasks = (
        Task("first", 20.0, (Alternative.of("alpha"),)),
        Task("second", 60.0, (Alternative.of("gamma"),), ("first",)),
        Task("third", 400.0, (Alternative.of("gamma"),), ("second",)),
    )
    kinds = set()
    for seed, network in itertools.product((1, 2, 7, 23), (contended, NETWORK)):
        made = DataWorld(seed, replace(SETTINGS, network=network, cycle=15, slot=100))
        for name in RESOURCES:
            made.tell(Register(1, made.supply(name)))
        made.tell(Submit(1, "k", replace(chain(400.0), tasks=tasks)))
        made.run()
        (sent,) = (each for each in made.journal if isinstance(each, FilesSent))
        begun = Transfer("w", "second", ("made",), "x", "gamma", sent.begin, sent.end, 400.0, 0.0)
        assert sent.end == sent.begin + 50.0
        for planning in made.planned:
            for each in planning.planning_input.under_way:
                assert each == replace(begun, begin=each.begin, end=each.begin + 50.0)
                kinds.add((network.contention, each == begun))
    assert kinds == {("link", True), ("link", False)}


def test_a_planner_is_told_the_network_and_what_has_been_sent() -> None:
    """Sites of resources are those that serve them where the network says nothing else."""
    network = Network(Link(1.0), {"alpha": "x"})
    made = DataWorld(1, replace(SETTINGS, network=network))
    made.tell(Register(1, made.supply("alpha")))
    made.tell(Register(1, Supply(Resource("gamma"), "riga", "cpus")))
    given = DataFile("in", 5.0, ("first",))
    workflow = replace(chain(1e6), files=(*chain(1e6).files, given))
    made.tell(Submit(1, "k", workflow))
    while not made.planned:
        assert made.step()
    problem = pose(made.planned[0].planning_input).problem
    assert problem is not None
    assert problem.network == Network(Link(1.0), {"alpha": "x", "gamma": "riga"})
    assert problem.workflows[0].files == workflow.files
    # It has begun no task, as a short search comes first; when that has found its place, its input is sent.
    assert made.planned[0].short
    assert problem.copies == ()
    while len(made.planned) < 2:
        assert made.step()
    assert not made.planned[1].short
    (sent,) = (each for each in made.journal if isinstance(each, FilesSent))
    assert made.planned[1].planning_input.copies == (Copy("w", "in", "x", sent.begin + 5.0),)


def test_what_programs_are_given_is_planned_with() -> None:
    """Contents of the broker, once for each, and what a task has left once it has ended."""
    tasks = tuple(
        Task(name, 10.0, (Alternative.of("alpha"), Alternative.of("gamma")), before)
        for name, before in (("a", ()), ("b", ("a",)), ("c", ("a",)))
    )
    big = Input("big", 1000, bytes(32))
    programs = tuple(
        replace(Program.of_command(name, ("true",)).limited(60.0), inputs=inputs, outputs=outputs)
        for name, inputs, outputs in (
            ("a", (big,), ("x",)),
            ("b", (replace(big, name="same"), Input("x", task="a", output="x")), ()),
            ("c", (), ()),
        )
    )
    made = DataWorld(1, SETTINGS)
    for name in RESOURCES:
        made.tell(Register(1, made.supply(name)))
    made.tell(Submit(1, "k", Workflow("w", tasks), programs))
    (live,) = made.state.memory.live.values()
    files = made.state.cycle.files
    given = DataFile(bytes(32).hex(), 1000, ("a", "b"), site="home")
    assert files.planned(live).files == (given,)
    live.tasks["a"].outputs = (Output("x", 70, b"x" * 32),)
    left = DataFile((b"x" * 32).hex(), 70, ("b",), site="home")
    assert files.planned(live).files == (given, left)
    without = FileArrivals(made.state.memory, None)
    assert without.planned(live).files == ()


def test_programs_wait_for_nothing_here() -> None:
    """Their sites bring their files when they are launched."""
    made = DataWorld(3, SETTINGS)
    for name in RESOURCES:
        made.tell(Register(1, made.supply(name)))
    programs = (Program.of_command("second", ("true",)).limited(60.0),)
    made.tell(Submit(1, "k", chain(1e6), programs))
    made.run()
    assert made.now < 1e4
    assert made.state.cycle.files.sent_bytes == 0.0


def urgent() -> tuple[Load, Network]:
    """Returns two readers on gamma of one processor, the first of which the plan begins last, by the number of tasks behind it."""
    on = (Alternative.of("gamma"),)
    tasks = (
        Task("first", 20.0, (Alternative.of("alpha"),)),
        Task("idle", 30.0, on, ("first",)),
        Task("urgent", 30.0, on, ("first",)),
        Task("after", 300.0, (Alternative.of("delta"),), ("urgent",)),
    )
    files = tuple(DataFile(f"for {name}", 800.0, (name,), "first") for name in ("idle", "urgent"))
    network = replace(NETWORK, contention="link")
    resources = tuple(Resource(name) for name in ("alpha", "gamma", "delta"))
    return Load(resources, ((0.0, Workflow("w", tasks, files=files)),), network), network


@pytest.mark.parametrize("estimates", ["file", "learned"])
def test_what_the_plan_needs_first_is_sent_first(estimates: EstimatesFrom) -> None:
    """Not what stands first in the workflow, whatever estimates come from."""
    world = SendingWorld(urgent()[0], NOISES[0], 1, estimates=estimates)
    assert world.run().open == 0
    assert [each.task for each in world.sent] == ["urgent", "idle"]
    assert world.sent[1].begin == world.sent[0].end


def test_what_waits_is_shown_where_it_is_expected() -> None:
    """Behind what is on its way over the same link."""
    world = SendingWorld(urgent()[0], NOISES[0], 1)
    while len(getattr(world, "sent", ())) < 1:
        world.go_on(world.now + 1.0)
    (first,) = world.sent
    shown = plan_document(world.state, world.now)["transfers"]
    assert [(bar["task"], bar["state"], bar["begin_s"], bar["end_s"]) for bar in shown] == [
        ("urgent", "running", first.begin, first.end),
        ("idle", "planned", first.end, first.end + 100.0),
    ]
    assert world.state.next_time <= first.end


def test_a_task_begins_early_only_where_its_files_are_near() -> None:
    """A free and faster resource elsewhere gets none whose files would have to come over a link again."""
    world = SearchingWorld(load(40.0), NOISES[0], 1)
    files = world.state.cycle.files
    while not (found := [each for each in world.state.memory.tasks() if each.placement]):
        world.go_on(world.now + 1.0)
    second = next(each for each in found if each.task.name == "second")
    assert second.placement is not None
    assert second.placement.resources == ("gamma",)
    assert files.nearness(second)("gamma")
    assert files.nearness(second)("alpha"), "its file is there, and nobody reads what it makes"
    first = next(each for each in found if each.task.name == "first")
    assert not files.nearness(replace_place(first, "gamma"))("alpha")


def replace_place(task: LiveTask, resource: str) -> LiveTask:
    """Returns a task that is planned on another resource, and not booked."""
    assert task.placement is not None
    demands = Alternative.of(resource).demands
    return replace(task, booking=None, placement=replace(task.placement, demands=demands))


def from_home(sizes: dict[str, dict[str, float]]) -> DataWorld:
    """Returns a world whose tasks read files of these sizes, by task and file, and that has a first plan for them."""
    network = Network(Link(8.0), {"alpha": "x"}, contention="link")
    made = DataWorld(1, replace(SETTINGS, network=network))
    made.tell(Register(1, made.supply("alpha")))
    readers: dict[tuple[str, float], list[str]] = {}
    for task, files in sizes.items():
        for each in files.items():
            readers.setdefault(each, []).append(task)
    made.tell(
        Submit(
            1,
            "k",
            Workflow(
                "w",
                tuple(Task(name, 10.0, (Alternative.of("alpha"),)) for name in sizes),
                files=tuple(DataFile(*each, tuple(some)) for each, some in readers.items()),
            ),
        )
    )
    while not made.planned:
        assert made.step()
    return made


def test_a_file_that_takes_no_time_is_not_sent_again_with_others() -> None:
    """It goes at once, also where another task waits with it and more for the link."""
    made = from_home({"both": {"empty": 0.0, "full": 80.0}, "one": {"empty": 0.0}})
    made.run()
    check_transfers(made)
    sent = [each.files for each in made.journal if isinstance(each, FilesSent)]
    assert sorted(sent) == [("empty",), ("full",)]


def test_a_new_plan_has_what_is_expected_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it turns the order round in which hundreds wait for a link."""
    count = 200
    made = from_home({f"t{number}": {f"f{number}": 8e3} for number in range(count)})
    asked: list[float] = []
    plain = Link.seconds

    def seconds(link: Link, size: float) -> float:
        asked.append(size)
        return plain(link, size)

    def planned(backwards: bool) -> Plan:
        places, transfers = list[Placement](), list[Transfer]()
        for number in range(count):
            begin = 1000.0 * (count - number if backwards else number + 1)
            key = "w", f"t{number}"
            places.append(Placement(*key, (Demand("alpha"),), begin + 1000, begin + 1010, 1.0))
            files = (f"f{number}",)
            transfers.append(
                Transfer(*key, files, "home", "x", begin, begin + 1000, size=8e3, cost=0.0)
            )
        return Plan(tuple(places), (), tuple(transfers))

    for backwards in (False, True):
        while not made.state.cycle.running:
            assert made.step()
        monkeypatch.setattr(Link, "seconds", seconds)
        asked.clear()
        made.tell(PlanFound(0, made.state.cycle.running, planned(backwards)))
        assert len(asked) < 20 * count
        monkeypatch.undo()


def test_a_network_that_was_wrong_holds_no_link_after_it_is_put_right() -> None:
    """What has begun over a link that is faster since the restart goes on at that speed."""
    made = from_home({"one": {"a": 8e9}, "two": {"b": 8e9}})
    while not any(isinstance(each, FilesSent) for each in made.journal):
        assert made.step()
    made.settings = replace(
        made.settings, network=Network(Link(8e8), {"alpha": "x"}, contention="link")
    )
    made.restart()
    for begun in made.state.cycle.files.under_way(made.now, []):
        assert begun.end == begun.begin + 10.0
    made.run()
    assert made.now < 1e3
    (live,) = made.state.memory.workflows.values()
    assert live.state is WorkflowState.COMPLETED


def test_what_a_plan_sends_is_shown_until_it_is_sent_or_should_be_over() -> None:
    """Not of workflows and tasks that are not there, nor of a task that files are nothing to any more."""
    memory = StateTables([WorkflowSubmitted(1.0, "w1", "k", chain(40.0), ())])
    files = FileArrivals(memory, NETWORK)
    planned = Transfer("w", "second", ("made",), "x", "gamma", 10.0, 15.0, 40.0, 2.5)
    strange = (replace(planned, workflow="v"), replace(planned, task="third", files=("b",)))
    more = Transfer("w", "second", ("more",), "x", "gamma", 15.0, 20.0, 24.0, 0.0)
    files.adopt(Plan((), (), (*strange, planned, more)))
    assert files.planned_bytes == 40.0 * 3 + 24.0
    assert files.transfers(9.0) == [(planned, False), (more, False)]
    assert files.transfers(14.9) == [(planned, False), (more, False)]
    assert files.transfers(15.0) == [(more, False)]
    names = "w1", "second", ("made",)
    memory.apply(FilesSent(2.0, *names, "x", "gamma", 2.0, 7.0, 40.0, 2.5))
    sent = Transfer("w", *names[1:], "x", "gamma", 2.0, 7.0, 40.0, 2.5)
    assert files.transfers(9.0) == [(sent, True), (more, False)]
    memory.apply(WorkflowCancelled(3.0, "w1"))
    assert files.transfers(9.0) == []
