"""Machines of nodes: every discipline against the plain oracle, and against machines of processors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lrms_sim.machine.machine import simulate
from lrms_sim.machine.nodes import (
    NODE_DISCIPLINES,
    Demands,
    NodeKind,
    NodeMachine,
    scheduler_on_nodes,
    simulate_on_nodes,
)
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.scheduling.user_defined import MachineView
from lrms_sim.workload.jobs import JobTable
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.examples import FEW, runs
from tests.node_strategies import machines, requests
from tests.oracles.nodes import simulate_plainly


@st.composite
def workloads(draw: st.DrawFn) -> tuple[NodeMachine, JobTable, list[Request]]:
    """Returns a machine and jobs that it could run."""
    machine = draw(machines())
    wanted = draw(st.lists(requests(), min_size=1, max_size=25))
    misfit = [
        scheduler_on_nodes(machine, Demands.of([request]), "fcfs").misfits() == [0]
        for request in wanted
    ]
    asked = [request for request, wrong in zip(wanted, misfit, strict=True) if not wrong]
    times = draw(
        st.lists(
            st.tuples(
                st.integers(0, 60),
                st.sampled_from([1, 2, 3, 5, 8, 13, 70, 200, 400]),
                st.sampled_from([0, 0, 1, 5, 60, 500]),
                st.integers(-1, 1),
            ),
            min_size=len(asked),
            max_size=len(asked),
        )
    )
    order = sorted(range(len(asked)), key=lambda row: times[row][0])
    table = JobTable.from_columns(
        submit_time=[times[row][0] for row in order],
        processors=[asked[row].processors for row in order],
        run_time=[times[row][1] for row in order],
        requested_time=[times[row][1] + times[row][2] for row in order],
        user=[times[row][3] for row in order],
    )
    return machine, table, [asked[row] for row in order]


@pytest.mark.parametrize("discipline", NODE_DISCIPLINES)
@FEW
@given(workload=workloads())
def test_starts_are_those_of_the_oracle(
    discipline: str, workload: tuple[NodeMachine, JobTable, list[Request]]
) -> None:
    """To the last bit, under every discipline."""
    machine, jobs, asked = workload
    schedule = simulate_on_nodes(jobs, machine, discipline, demands=Demands.of(asked))
    assume(discipline != "conservative" or not all(r.processors_alone for r in asked))
    plain = simulate_plainly(jobs, asked, machine, discipline)
    assert schedule.schedule.start_time.tolist() == [job.start_time for job in plain]


@pytest.mark.parametrize("discipline", NODE_DISCIPLINES)
@FEW
@given(workload=workloads(), nodes=st.integers(1, 5), cores=st.sampled_from([1, 2, 4]))
def test_processors_alone_make_a_machine_of_processors(
    discipline: str,
    workload: tuple[NodeMachine, JobTable, list[Request]],
    nodes: int,
    cores: int,
) -> None:
    """Whatever the nodes are, if nobody asks for more the schedule is that of so many processors."""
    _, jobs, _ = workload
    machine = NodeMachine((NodeKind("n", nodes, cores), NodeKind("m", 2, 3, 64, 1)))
    narrow = JobTable.from_columns(
        submit_time=jobs.submit_time,
        processors=np.minimum(jobs.processors, machine.processors),
        run_time=jobs.run_time,
        requested_time=jobs.requested_time,
        user=jobs.user,
    )
    on_nodes = simulate_on_nodes(narrow, machine, discipline)
    plain = simulate(narrow, machine.processors, discipline_by_name(discipline))
    assert np.array_equal(on_nodes.schedule.start_time, plain.start_time)


CROWD = (
    Request(),
    Request(tasks=3),
    Request(tasks=12),
    Request(tasks=2, cores_per_task=3, memory=Memory(5)),
    Request(memory=Memory(60, "node")),
    Request(cores_per_task=4, memory=Memory(20, "node")),
    Request(cores_per_task=2, gpus=Gpus(1), memory=Memory(30, "node")),
    Request(tasks=4, gpus=Gpus(1, "task", "a")),
    Request(tasks=3, nodes_min=3, nodes_max=3, tasks_per_node=1, memory=Memory(40, "node")),
    Request(tasks=6, nodes_min=2, nodes_max=3, cores_per_task=2),
    Request(tasks=4, nodes_min=2, nodes_max=4, exclusive=True),
    Request(exclusive=True),
    Request(cores_per_task=2, features=("x",)),
    Request(tasks=5, features=("x", "y"), memory=Memory(3)),
    Request(tasks=2, licences=(("red", 1),)),
    Request(tasks=6, licences=(("red", 2), ("blue", 1))),
)


def crowd(seed: int, count: int) -> tuple[NodeMachine, JobTable, list[Request]]:
    """Returns jobs that come far faster than the machine can run them, so that hundreds wait."""
    rng = np.random.default_rng(seed)
    machine = NodeMachine(
        (
            NodeKind("thin", 5, 8, 64),
            NodeKind("fast", 2, 6, 0, features=frozenset({"x", "y"})),
            NodeKind("gpu", 2, 8, 128, 4, "a", frozenset({"x"})),
        ),
        "best-fit" if seed % 3 else "first-fit",
        licences=(("red", 3), ("blue", 1)),
    )
    asked = [CROWD[number] for number in rng.integers(0, len(CROWD), count)]
    run_time = rng.integers(1, 90, count)
    table = JobTable.from_columns(
        submit_time=np.sort(rng.integers(0, 100, count)),
        processors=[request.processors for request in asked],
        run_time=run_time,
        requested_time=run_time * rng.choice([1, 1, 2, 5], count),
        user=rng.integers(-1, 5, count),
    )
    return machine, table, asked


@pytest.mark.parametrize("discipline", ["list", "easy", "easy-per-event"])
@pytest.mark.parametrize("seed", range(runs(2, 6)))
def test_long_queues_are_those_of_the_oracle(discipline: str, seed: int) -> None:
    """Nobody misses a start by being asked again too late, or by what is remembered of the head."""
    machine, jobs, asked = crowd(seed, runs(200, 300))
    schedule = simulate_on_nodes(jobs, machine, discipline, demands=Demands.of(asked), places=True)
    plain = simulate_plainly(jobs, asked, machine, discipline)
    starts = schedule.schedule.start_time
    assert starts.tolist() == [job.start_time for job in plain]
    waiting = [
        np.count_nonzero((jobs.submit_time <= now) & (starts > now)) for now in jobs.submit_time
    ]
    assert max(waiting) > 100
    assert schedule.places is not None
    assert [{node for node, _ in place} for place in schedule.places] == [
        set(job.place) for job in plain
    ]


def table(*rows: tuple[float, float, Request]) -> tuple[JobTable, Demands]:
    """Returns jobs of (submit time, run time, request) and their demands."""
    jobs = JobTable.from_columns(
        submit_time=[row[0] for row in rows],
        processors=[row[2].processors for row in rows],
        run_time=[row[1] for row in rows],
    )
    return jobs, Demands.of([row[2] for row in rows])


def starts(
    machine: NodeMachine, discipline: str, *rows: tuple[float, float, Request]
) -> list[float]:
    """Returns when these jobs start."""
    jobs, demands = table(*rows)
    found: list[float] = simulate_on_nodes(
        jobs, machine, discipline, demands=demands
    ).schedule.start_time.tolist()
    return found


def test_memory_keeps_cores_idle() -> None:
    """Two cores are free, and no memory for the second job."""
    machine = NodeMachine((NodeKind("n", 1, 4, 100),))
    half = Request(tasks=1, memory=Memory(60, "node"))
    assert starts(machine, "easy", (0, 10, half), (0, 10, half)) == [0, 10]
    assert starts(machine, "easy", (0, 10, half), (0, 10, Request())) == [0, 0]


def test_cores_on_two_nodes_are_no_room_for_one_task() -> None:
    """Fragmentation: two cores are free in all, one on each node."""
    machine = NodeMachine((NodeKind("n", 2, 2),), placement="first-fit")
    spread = Request(tasks=2, tasks_per_node=1)
    assert starts(
        machine,
        "easy",
        (0, 10, spread),
        (0, 5, Request(cores_per_task=2)),
        (0, 5, Request(tasks=2)),
    ) == [0, 10, 0]


def test_a_gpu_job_runs_where_gpus_are_and_others_leave_them_free() -> None:
    """Kinds are filled in their order."""
    machine = NodeMachine((NodeKind("thin", 1, 2), NodeKind("gpu", 1, 2, 0, 1, "a100")))
    gpu = Request(gpus=Gpus(1, "task", "a100"))
    assert starts(machine, "fcfs", (0, 10, Request(tasks=2)), (0, 10, gpu)) == [0, 0]
    wrong = Request(gpus=Gpus(1, "task", "h100"))
    with pytest.raises(ValueError, match=r"job 1 asks for 1 task, 1 GPU \(h100\) a task"):
        starts(machine, "fcfs", (0, 10, wrong))


def test_a_backfilled_job_must_leave_the_head_its_node() -> None:
    """The last job fits beside the head in cores, and would be on the one node with enough memory."""
    machine = NodeMachine((NodeKind("n", 1, 4, 100), NodeKind("big", 1, 4, 200)))
    large = Request(memory=Memory(150, "node"))
    rows = (
        (0.0, 10.0, large),
        (1.0, 10.0, large),
        (1.0, 30.0, Request(memory=Memory(120, "node"))),
    )
    assert starts(machine, "easy", *rows) == [0, 10, 20]
    rows = (*rows[:2], (1.0, 30.0, Request(memory=Memory(90, "node"))))
    assert starts(machine, "easy", *rows) == [0, 10, 1]


def test_exclusive_nodes_are_empty_and_stay_so() -> None:
    """Nobody joins an exclusive job, and it joins nobody."""
    machine = NodeMachine((NodeKind("n", 1, 4),))
    alone = Request(exclusive=True)
    assert starts(machine, "list", (0, 10, alone), (0, 5, Request()), (11, 5, alone)) == [0, 10, 15]


@pytest.mark.parametrize("discipline", NODE_DISCIPLINES)
def test_licences_are_counted_for_all_nodes_together(discipline: str) -> None:
    """Free nodes are of no use to whom a licence is lacking; one that the machine lacks fits never."""
    machine = NodeMachine((NodeKind("n", 4, 4),), licences=(("matlab", 2),))
    two = Request(licences=(("matlab", 2),))
    one = Request(licences=(("matlab", 1),))
    assert starts(machine, discipline, (0, 10, two), (0, 10, one), (0, 10, one)) == [0, 10, 10]
    with pytest.raises(ValueError, match="asks for 1 task, 3 × matlab, which machine"):
        starts(machine, discipline, (0, 1, Request(licences=(("matlab", 3),))))
    with pytest.raises(ValueError, match="asks for 1 task, 1 × ansys, which machine"):
        starts(machine, discipline, (0, 1, Request(licences=(("ansys", 1),))))


def test_a_backfilled_job_must_leave_the_head_its_licences() -> None:
    """The last job would hold the licence for which the head waits."""
    machine = NodeMachine((NodeKind("n", 4, 4),), licences=(("matlab", 3),))

    def job(count: int) -> Request:
        return Request(licences=(("matlab", count),))

    rows = ((0.0, 10.0, job(2)), (1.0, 10.0, job(3)), (1.0, 30.0, job(1)))
    assert starts(machine, "easy", *rows) == [0, 10, 20]
    assert starts(machine, "conservative", *rows) == [0, 10, 20]
    others = ((1.0, 9.0, job(1)), (1.0, 30.0, Request()))
    assert starts(machine, "easy", *rows[:2], *others) == [0, 10, 1, 1]
    assert starts(machine, "conservative", *rows[:2], *others) == [0, 10, 1, 1]


def test_misfits_have_the_numbers_of_those_who_asked() -> None:
    """Requests that nodes cannot tell apart are one shape to the kernel alone."""
    machine = NodeMachine((NodeKind("n", 2, 4),))
    wide, narrow = Request(tasks=9), Request(tasks=2)
    asked = (wide, narrow, replace(wide, wall_time=60.0), replace(narrow, wall_time=60.0))
    for shape, found in (([3, 2, 1], [2]), ([0, 1, 2, 2], [0, 2]), ([1, 3], []), ([], [])):
        demands = Demands(asked, np.array(shape, np.int32))
        assert scheduler_on_nodes(machine, demands, "easy").misfits() == found
    none = Demands((), np.zeros(0, np.int32))
    assert scheduler_on_nodes(machine, none, "easy").misfits() == []


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ((), "0 kinds of nodes"),
        ((NodeKind("a", 1, 1), NodeKind("a", 1, 1)), "two kinds of nodes are called 'a'"),
        ((NodeKind("a", 2**20, 2**14),), "cores in all"),
    ],
)
def test_machines_that_cannot_be(kinds: tuple[NodeKind, ...], words: str) -> None:
    """The text says what is wrong."""
    with pytest.raises(ValueError, match=words):
        NodeMachine(kinds)


@pytest.mark.parametrize(
    ("licences", "words"),
    [
        ((("a", 1), ("a", 2)), "licence 'a' is there twice"),
        ((("a", -1),), "licence 'a': -1 is not"),
    ],
)
def test_licences_that_cannot_be(licences: tuple[tuple[str, int], ...], words: str) -> None:
    """The text says what is wrong."""
    with pytest.raises(ValueError, match=words):
        NodeMachine((NodeKind("n", 1, 1),), licences=licences)


def test_what_does_not_belong_together_is_refused() -> None:
    """Demands of other jobs, other widths, and a discipline that there is not."""
    machine = NodeMachine((NodeKind("n", 1, 4),))
    jobs, demands = table((0, 1, Request()), (0, 1, Request(tasks=2)))
    with pytest.raises(ValueError, match="demands of 1 jobs, and there are 2"):
        simulate_on_nodes(jobs, machine, demands=Demands.of([Request()]))
    with pytest.raises(ValueError, match="job 1 has 1 processors and asks for 2 processors"):
        simulate_on_nodes(
            jobs, machine, demands=Demands(demands.requests, demands.shape[::-1].copy())
        )
    with pytest.raises(ValueError, match=r"cores is 4\.5; it must be a whole number from 1"):
        NodeKind("n", 1, 4.5)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ValueError, match="no discipline 'sjf' on a machine of nodes"):
        simulate_on_nodes(jobs, machine, "sjf", demands=demands)


class Packing:
    """LIST in Python: whatever fits at its turn; looks at all that it may see."""

    def __init__(self) -> None:
        self.idle: set[str] = set()

    def decide(self, view: MachineView) -> None:
        """Starts whatever fits."""
        for job in view.waiting:
            assert job.request is not None
            if view.fits(job):
                view.start(job)
            else:
                with pytest.raises(ValueError, match=r"needs|asks for"):
                    view.start(job)
        assert sum(node.cores_free for node in view.nodes) >= 0
        assert all(node.jobs >= 0 for node in view.nodes)
        assert all(count >= 0 for count in view.licences_free.values())


@given(workload=workloads())
def test_disciplines_in_python_run_on_nodes(
    workload: tuple[NodeMachine, JobTable, list[Request]],
) -> None:
    """LIST written by a user is LIST."""
    machine, jobs, asked = workload
    demands = Demands.of(asked)
    own = simulate_on_nodes(jobs, machine, Packing(), demands=demands)
    ours = simulate_on_nodes(jobs, machine, "list", demands=demands)
    assert np.array_equal(own.schedule.start_time, ours.schedule.start_time)


def test_a_discipline_sees_what_is_free_on_each_node() -> None:
    """And no more of the memory than is counted."""
    machine = NodeMachine((NodeKind("thin", 1, 4), NodeKind("gpu", 1, 8, 100, 2, "a100")))
    seen = []

    def look(view: MachineView) -> None:
        seen.append([(n.kind.name, n.cores_free, n.memory_free, n.gpus_free) for n in view.nodes])
        view.start(view.waiting[0])

    request = Request(cores_per_task=2, gpus=Gpus(1, "task"), memory=Memory(30, "node"))
    jobs, demands = table((0, 10, request), (1, 10, request))
    simulate_on_nodes(jobs, machine, look, demands=demands)
    assert seen == [
        [("thin", 4, None, 0), ("gpu", 8, 100, 2)],
        [("thin", 4, None, 0), ("gpu", 6, 70, 1)],
    ]


def test_places_say_where_each_job_ran() -> None:
    """Nodes and cores, of an exclusive job all of a node's; nobody is told who does not ask."""
    machine = NodeMachine((NodeKind("a", 2, 4), NodeKind("b", 1, 8)))
    jobs, demands = table(
        (0, 10, Request(tasks=3, cores_per_task=2)),
        (1, 10, Request(exclusive=True)),
        (20, 5, Request(tasks=2, nodes_min=2, nodes_max=2)),
    )
    for discipline in ("easy", "conservative", Packing()):
        found = simulate_on_nodes(jobs, machine, discipline, demands=demands, places=True)
        assert found.places == (((0, 4), (1, 2)), ((2, 8),), ((0, 1), (1, 1)))
    assert simulate_on_nodes(jobs, machine, demands=demands).places is None
    plain, _ = table((0, 10, Request(tasks=3)))
    assert simulate_on_nodes(plain, machine, places=True).places is None
