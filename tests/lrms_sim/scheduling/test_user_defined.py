"""Queue disciplines written in Python: the same schedules, nothing more to be seen, good errors."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from lrms_sim.machine.machine import simulate
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import Easy, discipline_by_name
from lrms_sim.scheduling.user_defined import UserDefinedDiscipline
from lrms_sim.workload.jobs import JobTable
from tests.plugins import install
from tests.random_workloads import random_jobs
from tests.strategies import OneMachine, one_machine

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
BLOCKED = JobTable.from_columns(
    submit_time=[0, 1, 2, 3], processors=[4, 4, 2, 2], run_time=[10, 5, 3, 2], user=[3, 9, 3, -1]
)


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns the example module, which is on Python's path meanwhile."""
    monkeypatch.syspath_prepend(EXAMPLES)
    yield __import__("my_policies")
    sys.modules.pop("my_policies")


def examples() -> Any:
    """Returns the example module for a test that draws many cases."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        return __import__("my_policies")
    finally:
        sys.path.remove(str(EXAMPLES))


@given(case=one_machine())
def test_disciplines_in_python_make_the_kernels_schedules(case: OneMachine) -> None:
    """FCFS, SJF and EASY rewritten in Python start every job when the kernels do, to the bit."""
    module = examples()
    for written, name in ((module.fcfs, "fcfs"), (module.Sjf(), "sjf"), (module.MyEasy(), "easy")):
        own = simulate(case.jobs, case.processors, written)
        kernel = simulate(case.jobs, case.processors, discipline_by_name(name))
        assert own.start_time.tobytes() == kernel.start_time.tobytes()


def test_larger_workloads(mine: Any) -> None:
    """EASY in Python agrees with the kernel on queues of many jobs."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        jobs = random_jobs(rng, 300, 30)
        own = simulate(jobs, 30, mine.MyEasy()).start_time
        assert own.tobytes() == simulate(jobs, 30, discipline_by_name("easy")).start_time.tobytes()


def test_step_by_step_and_by_name(mine: Any) -> None:
    """A machine that is driven runs it too, found as `module:name`; a withdrawn job is gone."""
    discipline = discipline_by_name("my_policies:Sjf")
    assert isinstance(discipline, UserDefinedDiscipline)
    assert (discipline.name, discipline.per_event) == ("my-sjf", False)
    assert type(discipline.written) is mine.Sjf
    machine = Machine(4, discipline)
    for row in range(4):
        machine.submit(
            submit_time=float(BLOCKED.submit_time[row]),
            processors=int(BLOCKED.processors[row]),
            requested_time=float(BLOCKED.run_time[row]),
            run_time=float(BLOCKED.run_time[row]),
        )
    assert machine.withdraw(2)
    machine.advance(100)
    assert machine.start_time[[0, 1, 3]].tolist() == [0, 12, 10]


@pytest.mark.usefixtures("mine")
def test_names_that_cannot_be_loaded() -> None:
    """The error says what was named and what is expected."""
    for name, found in (
        ("my_policies:Sfj", "AttributeError: module 'my_policies' has no attribute 'Sfj'"),
        ("no_such_module:x", "ModuleNotFoundError: No module named 'no_such_module'"),
        (":x", "ValueError: Empty module name"),
    ):
        with pytest.raises(ValueError, match=f"'{name}' cannot be loaded: {found}; it is an entry"):
            discipline_by_name(name)
    for name in ("my_policies:math", "tests.lrms_sim.scheduling.test_user_defined:yields"):
        with pytest.raises(ValueError, match=r"a queue discipline is one of those|is a generator"):
            discipline_by_name(name)


class Curious:
    """Keeps all it is shown."""

    name = "curious"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def submitted(self, view: Any, job: Any) -> None:
        """Notes a job, and what can be seen of it."""
        self.seen.append(("submitted", view.now, job.number, job.user, job.group))

    def ended(self, view: Any, job: Any) -> None:
        """Notes an end."""
        SEEN.append((view.now, job.number, job.start_time, view.processors_free))

    def decide(self, view: Any) -> None:
        """Starts like FCFS."""
        SEEN.append(view)
        while (job := view.head) and job.processors <= view.processors_free:
            names = {name for name in dir(job) if not name.startswith("_")}
            assert names == {
                "number", "job_id", "submit_time", "processors", "requested_time", "group", "user",
                "start_time", "estimated_end", "request",
            }  # fmt: skip
            view.start(job)
            assert job in view.running
            assert job.estimated_end == view.now + job.requested_time
        assert view.processors_waiting == sum(job.processors for job in view.waiting)


SEEN: list[Any] = []


def test_what_a_discipline_sees() -> None:
    """What compiled ones see and no more: no run time, and nothing after the call; notes are a machine's own."""
    SEEN.clear()
    discipline = Curious()
    simulate(BLOCKED, 4, discipline)
    assert discipline.seen == []
    ends = [seen for seen in SEEN if isinstance(seen, tuple)]
    assert ends == [(10, 0, 0, 4), (15, 1, 10, 4), (17, 3, 15, 2), (18, 2, 15, 4)]
    view = next(seen for seen in SEEN if not isinstance(seen, tuple))
    names = {name for name in dir(view) if not name.startswith("_")}
    assert names == {
        "now", "processors", "processors_free", "processors_waiting", "head", "waiting",
        "running", "start", "fits", "nodes", "licences_free",
    }  # fmt: skip
    with pytest.raises(RuntimeError, match="during a call of the discipline only"):
        _ = view.now


def twice(view: Any) -> None:
    """Starts a job two times."""
    job = view.head
    view.start(job)
    view.start(job)


def too_wide(view: Any) -> None:
    """Starts all, fit or not."""
    for job in view.waiting:
        view.start(job)


def broken(view: Any) -> None:
    """Has a mistake."""
    raise KeyError(view.now)


def idle(_: Any) -> None:
    """Starts nobody."""


@pytest.mark.parametrize(
    ("discipline", "error", "text"),
    [
        (twice, ValueError, "job 1 does not wait here and cannot be started"),
        (too_wide, ValueError, "job 2 needs 3 processors; 1 are free"),
        (broken, KeyError, "0.0"),
        (idle, ValueError, "has left 2 jobs waiting on an idle machine"),
    ],
)
def test_mistakes_of_a_discipline(discipline: Any, error: type[Exception], text: str) -> None:
    """The machine starts nobody who does not fit; what a discipline raises comes out."""
    jobs = JobTable.from_columns(submit_time=[0, 0], processors=[3, 3], run_time=[5, 5])
    with pytest.raises(error, match=text):
        simulate(jobs, 4, discipline)


class Stack(list[Any]):
    """A discipline that is false as long as it is empty."""

    def decide(self, view: Any) -> None:
        """Starts the job that came last."""
        if view.waiting[-1].processors <= view.processors_free:
            view.start(view.waiting[-1])


def test_what_is_given_runs_whatever_its_truth_value() -> None:
    """An empty container with `decide` is a discipline; what is none is not taken for the default."""
    jobs = JobTable.from_columns(submit_time=[0, 0], processors=[4, 4], run_time=[5, 5])
    assert simulate(jobs, 4, Stack()).start_time.tolist() == [5, 0]
    machine = Machine(4, UserDefinedDiscipline(Stack()))
    for _ in range(2):
        machine.submit(submit_time=0.0, processors=4, requested_time=5.0, run_time=5.0)
    machine.advance(100)
    assert machine.start_time.tolist() == [5, 0]
    nothing: Any
    for nothing in (0, "", [], False):
        with pytest.raises(TypeError, match="is none that a machine can run"):
            simulate(jobs, 4, nothing)
        with pytest.raises(TypeError, match="is none that a machine can run"):
            Machine(4, nothing)


class ToldAtOnce:
    """Starts all that fits, with a pass per event, and wants to know of ends."""

    per_event = True

    def ended(self, view: Any, job: Any) -> None:
        """Looks at the machine."""
        SEEN.append((view.now, job.number, view.processors_free))

    def decide(self, view: Any) -> None:
        """Looks at the machine after each start."""
        for job in view.waiting:
            if job.processors <= view.processors_free:
                view.start(job)


def test_a_pass_goes_on_after_a_job_that_is_gone_as_it_starts() -> None:
    """Where the clock cannot show its request it ends within the pass, which is told so and goes on."""
    SEEN.clear()
    jobs = JobTable.from_columns(
        submit_time=[1e9, 1e9, 1e9], processors=[4, 2, 2], run_time=[1, 1e-9, 1e-9]
    )
    assert simulate(jobs, 4, ToldAtOnce()).start_time.tolist() == [1e9, 1e9 + 1, 1e9 + 1]
    assert SEEN == [(1e9 + 1, 0, 4), (1e9 + 1, 1, 4), (1e9 + 1, 2, 4)]


class Wrong:
    """FCFS; what else it has is of another kind than it should be."""

    name = "wrong"

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    def decide(self, view: Any) -> None:
        """Starts the head."""
        view.start(view.head)


def yields(view: Any) -> Any:
    """Starts nobody, as nobody asks for the next."""
    yield view.start(view.head)


async def waits(view: Any) -> None:
    """Starts nobody, as nobody awaits it."""
    view.start(view.head)


@pytest.mark.parametrize(
    ("discipline", "text"),
    [
        (Wrong(per_event="no"), "per_event of discipline 'wrong' is 'no'; it must be True or Fa"),
        (
            Wrong(needs_groups=1),
            "needs_groups of discipline 'wrong' is 1; it must be True or False",
        ),
        (Wrong(submitted=3), "submitted of discipline 'wrong' is 3; it must be a method"),
        (Wrong(ended=yields), "discipline 'wrong': ended is a generator or a coroutine"),
        (Wrong(decide=waits), "discipline 'wrong': decide is a generator or a coroutine"),
        (yields, "discipline 'yields': it is a generator or a coroutine"),
        (waits, "it must be a plain function that starts jobs with view.start"),
        (
            Wrong(file=sys.stdout),
            "discipline 'wrong' cannot be copied: cannot pickle .*; every mac",
        ),
    ],
)
def test_a_discipline_that_could_not_work_is_refused_before_the_first_job(
    discipline: Any, text: str
) -> None:
    """The error says what is possible."""
    with pytest.raises(TypeError, match=text):
        simulate(JobTable.empty(), 4, discipline)


def test_an_installed_distribution_brings_disciplines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on Python's path with entry points is found by its name, without a word of its module."""
    code = (
        "class Lifo:\n"
        "    name = 'lifo'\n"
        "    def decide(self, view):\n"
        "        for job in reversed(view.waiting):\n"
        "            if job.processors > view.processors_free:\n"
        "                break\n"
        "            view.start(job)\n"
    )
    points = {"hanse.disciplines": {"my-lifo": "my_queues:Lifo"}}
    install(tmp_path, monkeypatch, points, {"my_queues": code})
    found = discipline_by_name("my-lifo")
    jobs = JobTable.from_columns(submit_time=[0, 1, 2], processors=[2, 2, 2], run_time=[10, 5, 5])
    assert simulate(jobs, 2, found).start_time.tolist() == [0, 15, 10]
    with pytest.raises(ValueError, match="my-filo"):
        discipline_by_name("my-filo")


def test_a_failure_can_be_told_as_an_error_of_another_kind() -> None:
    """With the discipline, and what it has raised, which is the cause."""

    class NeverMind:
        name = "never-mind"

        def decide(self, _view: object) -> None:
            raise KeyError("no such queue")

    with pytest.raises(OSError, match="discipline 'never-mind' has failed: KeyError") as error:
        simulate(BLOCKED, 4, UserDefinedDiscipline(NeverMind(), fails_as=OSError))
    assert isinstance(error.value.__cause__, KeyError)
    with pytest.raises(KeyError):
        simulate(BLOCKED, 4, NeverMind())


def test_ids_and_numbers() -> None:
    """A job's `job_id` is the log's, its `number` the row of the table; without a log the two are one."""
    jobs = JobTable.from_columns(
        job_id=[309, 101, 205], submit_time=[5, 0, 0], processors=[1, 1, 1], run_time=[5, 5, 5]
    )
    seen: list[tuple[int, int]] = []

    def decide(view: Any) -> None:
        for job in view.waiting:
            if job.processors <= view.processors_free:
                seen.append((job.number, job.job_id))
                view.start(job)

    simulate(jobs, 1, decide)
    assert seen == [(0, 101), (1, 205), (2, 309)]
    seen.clear()
    machine = Machine(1, decide)  # type: ignore[arg-type]  # a function is a discipline
    for job_id in (None, 77):
        machine.submit(
            submit_time=0.0, processors=1, requested_time=5.0, run_time=5.0, job_id=job_id
        )
    machine.advance(100.0)
    assert seen == [(0, 0), (1, 77)]


class Counts:
    """FCFS that counts what happens; what it has counted is given back."""

    def __init__(self) -> None:
        self.counts = {"submitted": 0, "ended": 0}

    def submitted(self, _view: object, _job: object) -> None:
        """Counts it."""
        self.counts["submitted"] += 1

    def ended(self, _view: object, _job: object) -> None:
        """Counts it."""
        self.counts["ended"] += 1

    def decide(self, view: Any) -> None:
        """Starts heads."""
        while view.head is not None and view.head.processors <= view.processors_free:
            view.start(view.head)

    def notes(self) -> dict[str, int]:
        """Returns the counts."""
        return self.counts


def test_what_is_noted_comes_back() -> None:
    """It is that of the replay's own copy: the object itself stays as it was, and each replay begins anew."""
    jobs = JobTable.from_columns(submit_time=[0, 1, 2], processors=[2, 2, 2], run_time=[10, 5, 5])
    written = Counts()
    for _ in range(2):
        schedule = simulate(jobs, 2, written)
        assert schedule.notes == {"submitted": 3, "ended": 3}
    assert schedule[:1].notes == schedule.notes
    assert written.counts == {"submitted": 0, "ended": 0}
    assert simulate(jobs, 2, Easy()).notes is None
    assert simulate(jobs, 2, examples().fcfs).notes is None


def test_what_is_noted_can_be_asked_for_at_any_time() -> None:
    """On a machine that is driven step by step."""
    machine = Machine(2, UserDefinedDiscipline(Counts()))
    machine.submit(submit_time=0.0, processors=2, requested_time=5.0, run_time=5.0)
    machine.advance(1.0)
    assert machine.notes == {"submitted": 1, "ended": 0}
    machine.advance(9.0)
    assert machine.notes == {"submitted": 1, "ended": 1}
    assert Machine(2).notes is None


def test_notes_are_a_method() -> None:
    """Anything else is a mistake that is told before the first job."""
    written = Counts()
    written.notes = {}  # type: ignore[assignment,method-assign]  # the mistake
    with pytest.raises(
        TypeError, match=r"notes of discipline 'Counts' is \{\}; it must be a method"
    ):
        simulate(JobTable.empty(), 2, written)
