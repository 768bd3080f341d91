"""What the broker learns of run times, and where it goes by it."""

import math
from dataclasses import replace

import pytest

from broker.model.estimates import Estimate
from broker.model.network import DataFile
from broker.model.plan import Placement, Plan
from broker.model.program import COMMAND_SCRIPT, Input, Output, Program
from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, Task, Workflow
from broker.runtime.codec import BrokerCodec
from broker.scheduler.commands import Append, Book, Command, Launch, StartPlanning
from broker.scheduler.events import (
    Booked,
    Ended,
    Event,
    PlanFound,
    Register,
    Restarted,
    Started,
    Submit,
    Tick,
)
from broker.scheduler.records import Record, RunMeasured, Supply
from broker.scheduler.run_times import input_bytes, thought
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import LiveTask
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Request

LEARNED = BrokerSettings(margin=2, estimates="learned", grouped=0, extension_max=0)
FILE = replace(LEARNED, estimates="file")
FAST = Supply(Resource("fast", performance=2.0), "riga", "f")
SLOW = Supply(Resource("slow", capacity=4), "riga", "s")


class Told:
    """A broker whose commands are kept."""

    def __init__(self, settings: BrokerSettings, records: tuple[Record, ...] = ()) -> None:
        self.state = BrokerState(settings, records)
        self.commands: list[Command] = []
        self.tell(Restarted(0))
        if not records:
            for supply in (FAST, SLOW):
                self.tell(Register(1, supply))

    def tell(self, event: Event, now: float = 0.0) -> list[Command]:
        """Hands over an event and returns what comes of it."""
        found = self.state.handle(event, now)
        self.commands += found
        return found

    @property
    def records(self) -> list[Record]:
        """What is journaled, as it is read back."""
        codec = BrokerCodec()
        some = [one for each in self.commands if isinstance(each, Append) for one in each.records]
        return codec.decode(codec.encode(some))

    @property
    def planning(self) -> StartPlanning:
        """The last planning that was begun."""
        return [each for each in self.commands if isinstance(each, StartPlanning)][-1]

    def run(self, name: str, took: float, now: float, outcome: Outcome = Outcome.COMPLETED) -> Book:
        """Lets a task of 100 s of work begin and end."""
        program = Program.of_command("t", ["fit", name], limit=1e6)
        there = (Alternative.of("fast"), Alternative.of("slow"))
        done = self.tell(
            Submit(1, name, Workflow(name, (Task("t", 100.0, there),)), (program,)), now
        )
        (book,) = (each for each in done if isinstance(each, Book))
        attempt = book.booking.booking
        (launch,) = (
            each for each in self.tell(Booked(0, attempt, ("r",)), now) if isinstance(each, Launch)
        )
        assert launch.booking.booking == attempt
        self.tell(Started(0, attempt, now), now)
        self.tell(Ended(0, attempt, outcome, now, now + took, exit_code=0), now + took)
        return book


def measured(told: Told) -> list[RunMeasured]:
    """Returns what was recorded of runs."""
    return [each for each in told.records if isinstance(each, RunMeasured)]


def test_runs_are_measured_and_the_next_one_is_booked_for_what_they_took() -> None:
    """On the fast resource 50 s by the file; two runs of 150 s triple it, and a restart forgets nothing."""
    told, plain = Told(LEARNED), Told(FILE)
    for each in (told, plain):
        lengths = [each.run(f"w{n}", 150.0, 1000.0 * n).booking.run_time for n in range(3)]
        assert lengths[0] == 50.0
        assert lengths[2] == pytest.approx(150.0 if each is told else 50.0)
        assert measured(each)[0] == RunMeasured(150.0, "fit", None, "fast", 100.0, 300.0)
    again = Told(LEARNED, tuple(told.records))
    assert again.state.memory.estimates.programs() == told.state.memory.estimates.programs()
    assert again.run("w9", 1.0, 9000.0).booking.run_time == pytest.approx(150.0)


def test_what_is_planned_is_what_runs_have_taken() -> None:
    """And where a resource takes longer than its performance says, it is planned so there, with the margin."""
    told = Told(LEARNED)
    for n in range(12):
        there, work = ("slow", 400.0) if n % 2 else ("fast", 200.0)
        told.state.memory.apply(RunMeasured(0.0, "fit", None, there, 100.0, work))
    late = Workflow(
        "late", (Task("t", 100.0, (Alternative.of("fast"), Alternative.of("slow"))),), 500.0
    )
    told.tell(Submit(1, "k", late, (Program.of_command("t", ["fit"], limit=1e6),)))
    planning = told.planning
    (flow,) = planning.planning_input.workflows
    (task,) = flow.tasks
    assert task.work == pytest.approx(200.0)
    by_name = {each.primary: each for each in task.alternatives}
    fast, slow = by_name["fast"], by_name["slow"]
    estimates = told.state.memory.estimates
    assert fast.seconds is None
    assert slow.seconds is not None
    assert slow.seconds == pytest.approx(task.work * estimates.factor("fit", "slow") + 2)
    assert slow.seconds > 300


def test_a_task_without_a_program_takes_what_is_said() -> None:
    """Nothing is measured of it, whatever its site says."""
    told = Told(LEARNED)
    flow = Workflow("flow", (Task("t", 100.0, (Alternative.of("fast"),)),))
    done = told.tell(Submit(1, "k", flow))
    (book,) = (each for each in done if isinstance(each, Book))
    told.tell(Booked(0, book.booking.booking, ("r",)))
    told.tell(Started(0, book.booking.booking, 0.0))
    found = thought(told.state.memory.live["flow"].tasks["t"])
    assert found == Estimate(100.0, 0, 100.0, 100.0, "file")
    told.tell(Ended(0, book.booking.booking, Outcome.NOT_RUN, 0.0, 50.0), 50.0)
    assert measured(told) == []


@pytest.mark.parametrize(
    ("outcome", "work"),
    [(Outcome.TIMEOUT, 800.0), (Outcome.FAILED, None), (Outcome.NODE_FAIL, None)],
)
def test_a_run_that_was_killed_at_its_limit_took_longer_than_that(
    outcome: Outcome, work: float | None
) -> None:
    """What has failed otherwise says nothing."""
    told = Told(LEARNED)
    told.run("w", 200.0, 0.0, outcome)
    assert [each.work for each in measured(told)] == ([] if work is None else [work])


@pytest.mark.parametrize(
    ("times", "kept", "work"),
    [
        ((math.nan, 50.0), 0.0, None),
        ((0.0, math.nan), 0.0, None),
        ((50.0, 50.0), 0.0, None),
        ((60.0, 50.0), 0.0, None),
        ((0.0, 50.0), math.nan, None),
        ((0.0, math.inf), 0.0, 1e10),
        ((20.0, 50.0), 0.0, 60.0),
        ((20.0, 50.0), 40.0, 140.0),
    ],
)
def test_only_what_can_be_a_time_is_learned(
    times: tuple[float, float], kept: float, work: float | None
) -> None:
    """A site may tell anything; what a run had done when it went home counts, if its state was kept."""
    told = Told(LEARNED)
    there = (Alternative.of("fast"),)
    flow = Workflow("w", (Task("t", 100.0, there),))
    done = told.tell(Submit(1, "w", flow, (Program.of_command("t", ["fit"], limit=1e6),)))
    (name,) = (each.booking.booking for each in done if isinstance(each, Book))
    told.tell(Booked(0, name, ("r",)))
    told.tell(Ended(0, name, Outcome.COMPLETED, *times, kept=kept), 60.0)
    assert [each.work for each in measured(told)] == ([] if work is None else [work])


def test_a_run_thought_to_be_short_has_no_less_time_than_its_user_gives_it() -> None:
    """Its reservation is extended up to that, though it may not be extended by the settings."""
    told = Told(LEARNED)
    for n in range(5):
        told.run(f"w{n}", 10.0, 1000.0 * n)
    there = (Alternative.of("fast"),)
    flow = Workflow("late", (Task("t", 100.0, there),))
    done = told.tell(
        Submit(1, "late", flow, (Program.of_command("t", ["fit"], limit=1e6),)), 9000.0
    )
    (book,) = (each for each in done if isinstance(each, Book))
    name = book.booking.booking
    assert book.booking.run_time == pytest.approx(10.0)
    told.tell(Booked(0, name, ("r",)), 9000.0)
    told.tell(Started(0, name, 9000.0), 9000.0)
    before = len(told.commands)
    told.tell(Tick(0), 9010.9)
    assert [type(each).__name__ for each in told.commands[before:] if type(each).__name__ == "Move"]


def live(program: Program, *, files: dict[str, int] | None = None) -> LiveTask:
    """Returns the task `b` of a workflow, behind `a`, which has left files."""
    told = Told(LEARNED)
    there = (Alternative.of("fast"),)
    flow = Workflow("flow", (Task("a", 5.0, there), Task("b", 100.0, there, ("a",))))
    made = Program.of_command("a", ["make"], outputs=["x"], limit=1e6)
    told.tell(Submit(1, "k", flow, (made, program)))
    tasks = told.state.memory.live["flow"].tasks
    tasks["a"].outputs = tuple(Output(n, size, bytes(32)) for n, size in (files or {}).items())
    return tasks["b"]


def test_the_size_of_an_input_is_known_once_its_maker_has_left_it() -> None:
    """Contents count at once; without inputs there is no size."""
    given = (Input("x", task="a", output="x"), Input("y", 7, bytes(32)))
    program = Program("b", COMMAND_SCRIPT, ("fit",), inputs=given).limited(100.0)
    assert input_bytes(live(program)) is None
    assert input_bytes(live(program, files={"x": 35})) == 42.0
    bare = live(replace(program, inputs=()))
    assert input_bytes(bare) is None
    assert thought(bare).form == "file"


def test_files_that_a_workflow_declares_say_the_size() -> None:
    """Of each task those that it reads, whatever its program is given."""
    told = Told(LEARNED)
    there = (Alternative.of("fast"),)
    tasks = tuple(Task(name, 5.0, there) for name in "abc")
    files = (DataFile("x", 30.0, ("a", "b")), DataFile("y", 4.0, ("b",)))
    given = (Input("z", 7, bytes(32)),)
    programs = tuple(
        Program(name, COMMAND_SCRIPT, ("fit",), inputs=given).limited(5.0) for name in "abc"
    )
    told.tell(Submit(1, "k", Workflow("flow", tasks, files=files), programs))
    known = told.state.memory.live["flow"].tasks
    assert [input_bytes(known[name]) for name in "abc"] == [30.0, 34.0, 7.0]


@pytest.mark.parametrize(
    ("words", "script", "name"),
    [
        (["./bin/fit", "a", "b"], "", "fit"),
        (["/usr/bin/python3.11", "-u", "src/fit.py", "x"], "", "python3.11 fit.py"),
        (["python3", "-m", "pkg.fit", "x"], "", "python3 pkg.fit"),
        (["python3", "-c", "print(1)"], "", "python3 -c"),
        (["python3"], "", "python3"),
        (["bash", "-lc", "cd /x/y && fit"], "", "bash -c"),
        (["perl", "-ne", "print"], "", "perl -c"),
        (["env", "N=3", "python3", "fit.py"], "", "python3 fit.py"),
        (["srun", "-n", "4", "/opt/fit", "x"], "", "fit"),
        (["timeout", "90s", "nice", "-n", "5", "fit"], "", "fit"),
        (["time"], "", "time"),
        (["time"] * 2000, "", "time"),
        (["bash", "-e", "fit.sh"], "", "bash fit.sh"),
        (["bash5.2", "-e", "fit.sh"], "", "bash5.2 fit.sh"),
        (["/bin/zsh-5", "-e", "fit.sh"], "", "zsh-5"),
        (["perl5.36", "-e", "print"], "", "perl5.36 -c"),
        ([], "#!/bin/sh\nexec ./fit left.csv\n", "fit"),
        ([], "#!/bin/sh\n./fit left.csv >left.json\n", "fit"),
        ([], "#!/bin/sh\n# a remark\nset -e\n\nfit x\n", "fit"),
        ([], "#!/bin/sh\nfit x; fit y\n", "script 0af85ab9a40c"),
        ([], "#!/bin/sh\nN=3 fit x\n", "script 2fd3cd8f1b6c"),
        ([], "#!/bin/sh\nfit x\nfit y\n", "script 5e2b1c4ddb2c"),
        ([], "#!/bin/sh\n", "script 4f4b0fd4ab65"),
        (["f" * 500], "", "f" * 120),
    ],
)
def test_a_program_is_known_by_what_it_calls(words: list[str], script: str, name: str) -> None:
    """Not by its arguments; what is more than one command is known by its text."""
    called = Program.of_command("t", words, script=script).called
    assert called.partition(" ")[0] == name.partition(" ")[0]
    if not name.startswith("script"):
        assert called == name
    wide = Program.of_command("t", words, script=script, request=Request(tasks=4)).called
    assert wide == f"{called} on 4 processors"


def test_nothing_of_a_plan_changes_where_users_are_believed() -> None:
    """The workflows of a planning are the very objects that were handed in."""
    told = Told(FILE)
    for n in range(3):
        told.run(f"w{n}", 500.0, 1000.0 * n)
    flow = Workflow("late", (Task("t", 100.0, (Alternative.of("fast"),)),), 5000.0)
    told.tell(Submit(1, "late", flow, (Program.of_command("t", ["fit"], limit=1e6),)), 4000.0)
    planning = told.planning
    assert planning.planning_input.workflows[0].tasks == flow.tasks
    place = Placement("late", "t", (Demand("fast"),), 5000.0, 5052.0, 1.0)
    told.tell(PlanFound(0, planning.number, Plan((place,)), 1.0, ()), 4401.0)
    assert math.isclose(told.state.memory.live["late"].tasks["t"].task.work, 100.0)
