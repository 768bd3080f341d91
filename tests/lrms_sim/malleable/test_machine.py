import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from lrms_sim.machine.machine import simulate as simulate_rigid
from lrms_sim.malleable.jobs import UtilityJobs
from lrms_sim.malleable.machine import Learning, Outcome, kernel_for, simulate
from lrms_sim.malleable.model import PaperModel
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import POLICIES, BestFit, Ordered, policy_by_name
from lrms_sim.malleable.value import Scales, ValueFunction
from lrms_sim.scheduling.disciplines import ListScheduling
from lrms_sim.workload.jobs import JobTable
from tests.examples import runs as tried
from tests.lrms_sim.malleable.utility_runs import (
    Run,
    by_kernel,
    by_oracle,
    check_log,
    numbered_run,
    rows_of,
    runs,
    workloads,
)
from tests.oracles.utility import PlainUtilityMachine
from tests.strategies import OneMachine, one_machine

KNOWN = json.loads((Path(__file__).parent / "data" / "known-runs.json").read_text("utf-8"))
LEAVE = {2: "zero", 1: "worthless"}
STANDARD = {"grow": "first", "discrete": True, "worthless": True, "refit": True, "leave": 2}


def named(policy: str) -> str:
    """Returns our name of a policy of the known runs."""
    words = policy.split()
    return (
        words[0] + {"agg": "-aggressive", "rl": "-value"}[words[1]] if len(words) == 2 else policy
    )


def table(jobs: list[list[float]]) -> JobTable:
    """Returns jobs given as arrival, width, length."""
    arrival, width, length = zip(*jobs, strict=True)
    return JobTable.from_columns(
        submit_time=arrival, processors=np.array(width, np.int32), run_time=length
    )


def replayed(case: dict[str, Any]) -> Outcome:
    """Runs a known case."""
    said = {**STANDARD, "shape": "linear", "N": 24, **case.get("options", {})}
    policy = policy_by_name(named(case["policy"]))
    if case.get("stage_1", "").startswith("job fixed"):
        policy = BestFit(job_fixed=True)
    learning = None
    if "learning" in case:
        rules = case["learning"]
        delay = None if rules["constant_alpha"] else rules["b"]
        learning = Learning(rules["a"], delay, rules["per_step"], time_unit=1.0)
    outcome = simulate(
        UtilityJobs.of(table(case["jobs"]), shape=said["shape"]),
        case.get("machines", said["N"]),
        policy,
        options=MachineOptions(
            grow=said["grow"],
            leave=LEAVE[said["leave"]],  # type: ignore[arg-type]  # the words are those of a file
            worthless=said["worthless"],
            refit=said["refit"],
            step=1.0 if said["discrete"] else 0.0,
        ),
        value=ValueFunction(tuple(case.get("p", [0.0] * 8)), Scales(1.0, 10.0, said["N"])),
        learning=learning,
        horizon=case.get("horizon", math.inf),
        log=True,
        steps=True,
    )
    assert outcome.log is not None
    check_log(outcome.log)
    return outcome


@pytest.mark.parametrize(
    "case", KNOWN["cases"] + KNOWN["several_machines"], ids=lambda case: case["name"]
)
def test_known_runs_come_out_as_known(case: dict[str, Any]) -> None:
    """Starts, ends, utilities, suspensions and every entry of the log are those worked out."""
    outcome = replayed(case)
    assert outcome.productivity == pytest.approx(case["utility"], abs=1e-8)
    horizon = case.get("horizon", math.inf)
    for name, found in (("first_start", outcome.start), ("end", outcome.end)):
        for said, here in zip(case.get(name, []), found, strict=bool(case.get(name))):
            known = said if said is not None and said <= horizon else None
            assert here == pytest.approx(known, abs=1e-8) if known is not None else np.isnan(here)
    for name, column in (
        ("job_utility", outcome.utility.tolist()),
        ("suspensions", outcome.suspensions.tolist()),
        ("machine", outcome.machine.tolist()),
    ):
        if name in case:
            said = [each or 0.0 for each in case[name]]  # nothing known: it has not ended
            assert column == pytest.approx(said, abs=1e-8)
    if "busy_cpu_steps" in case:
        busy = sum(machine.busy for machine in outcome.machines)
        assert busy == pytest.approx(case["busy_cpu_steps"], abs=1e-8)
    if "log" in case:
        assert outcome.log is not None
        rows = [list(row) for row in rows_of(outcome.log)]
        assert [row[1:] for row in rows] == [row[1:] for row in case["log"]]
        assert [row[0] for row in rows] == pytest.approx([row[0] for row in case["log"]])


@pytest.mark.parametrize(
    "case", [case for case in KNOWN["cases"] if "learning" in case], ids=lambda case: case["name"]
)
def test_known_steps_of_learning_come_out_as_known(case: dict[str, Any]) -> None:
    """Time, reward, δ, p and ρ of every update are those known, and so is what is left of them."""
    (machine,) = replayed(case).machines
    known = case["learning"]
    assert machine.value is not None
    assert machine.value.p == pytest.approx(known["p"], rel=1e-12, abs=1e-12)
    assert machine.rho == pytest.approx(known["rho"], rel=1e-12)
    assert machine.updates == known["updates"] == len(machine.steps)
    for row, step in zip(machine.steps, known["steps"], strict=False):
        said = [step["time"], step["reward"], step["delta"], step["rho"], *step["p"]]
        assert row.tolist() == pytest.approx(said, rel=1e-9, abs=1e-9)


def assert_same(outcome: Outcome, plain: PlainUtilityMachine) -> None:
    """Asserts that both machines did the same, to the last bit."""
    assert outcome.log is not None
    assert rows_of(outcome.log) == plain.log
    for job in plain.jobs:
        row = job.number
        assert outcome.utility[row] == job.utility
        assert outcome.suspensions[row] == job.suspensions
        assert outcome.resizes[row] == job.resizes
        assert outcome.extra[row] == pytest.approx(job.extra, abs=1e-9)
        assert outcome.busy[row] == pytest.approx(job.busy, rel=1e-12)
        assert (job.start is None and np.isnan(outcome.start[row])) or (
            outcome.start[row] == job.start
        )
        assert (job.end is None and np.isnan(outcome.end[row])) or outcome.end[row] == job.end
    for machine, known in zip(outcome.machines, plain.machines, strict=True):
        assert machine.value is not None
        assert machine.value.p == tuple(known.learner.p)
        assert (machine.rho, machine.updates) == (known.learner.rho, known.learner.updates)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(run=runs(plain=True))
def test_the_papers_machine_is_the_plain_one(run: Run) -> None:
    """With the paper's jobs and rules every policy does what the plain machine does."""
    assert_same(by_kernel(run), by_oracle(run))


@pytest.mark.parametrize("hundred", range(tried(6, 20)))
def test_hundreds_of_random_runs_are_the_plain_ones(hundred: int) -> None:
    """The same for runs by number, so that every one of them is tried every time."""
    for number in range(100 * hundred, 100 * hundred + 100):
        run = numbered_run(number)
        outcome = by_kernel(run)
        assert_same(outcome, by_oracle(run))
        assert outcome.log is not None
        check_log(outcome.log)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(run=runs())
def test_any_machine_is_the_plain_one(run: Run) -> None:
    """With any utilities and options every policy does what the plain machine does."""
    outcome = by_kernel(run)
    assert_same(outcome, by_oracle(run))
    assert outcome.log is not None
    check_log(outcome.log)


@settings(max_examples=100, deadline=None)
@given(run=runs())
def test_a_horizon_cuts_a_run_off(run: Run) -> None:
    """Up to a horizon nothing differs, and nothing is looked at that comes later."""
    assert_same(by_kernel(run, horizon=12.0), by_oracle(run, 12.0))


@given(case=one_machine())
def test_rigid_jobs_in_order_are_list_scheduling(case: OneMachine) -> None:
    """Without preemption and squeezing the schedule is that of LIST to the last bit."""
    workload = UtilityJobs.of(case.jobs).rigid()
    options = MachineOptions(leave="never")
    outcome = simulate(workload, case.processors, Ordered("list"), options=options)
    rigid = simulate_rigid(case.jobs, case.processors, ListScheduling())
    assert outcome.start.tolist() == rigid.start_time.tolist()
    assert outcome.end.tolist() == rigid.end_time.tolist()


@given(case=one_machine())
def test_rigid_jobs_in_order_are_fcfs_and_easy(case: OneMachine) -> None:
    """So are those of FCFS and EASY."""
    from lrms_sim.scheduling.disciplines import discipline_by_name  # noqa: PLC0415  # for this test alone

    workload = UtilityJobs.of(case.jobs).rigid()
    options = MachineOptions(leave="never")
    for name in ("fcfs", "easy"):
        outcome = simulate(workload, case.processors, POLICIES[name], options=options)
        rigid = simulate_rigid(case.jobs, case.processors, discipline_by_name(name))
        assert outcome.start.tolist() == rigid.start_time.tolist()


@settings(deadline=None)
@given(workload=workloads(8))
def test_work_done_is_work_asked(workload: UtilityJobs) -> None:
    """With linear speed-up each completed job held exactly its processor-seconds, however cut."""
    for name in ("both-aggressive", "replan", "both-greedy"):
        outcome = simulate(workload, 8, POLICIES[name], options=MachineOptions(leave="never"))
        assert outcome.count("completed") == len(workload)
        asked = workload.jobs.resource_consumption
        assert outcome.busy.tolist() == pytest.approx(asked.tolist(), rel=1e-9)


def test_a_suspended_job_holds_nothing_and_costs_what_is_said() -> None:
    """Job 0 is suspended at 2 for 5 s and has 3 s more to run for it."""
    workload = UtilityJobs.of(table([[0, 20, 10], [2, 8, 5]]))
    options = MachineOptions(suspension_cost=3.0)
    outcome = simulate(workload, 24, POLICIES["pre-aggressive"], options=options, log=True)
    assert outcome.end.tolist() == [18.0, 7.0]
    assert (outcome.extra.tolist(), outcome.price) == ([3.0, 0.0], 60.0)
    assert outcome.log is not None
    stretches = [(each.job, each.start, each.end) for each in outcome.log.allocations()]
    assert stretches == [(0, 0.0, 2.0), (1, 2.0, 7.0), (0, 7.0, 18.0)]
    assert outcome.busy.tolist() == [260.0, 40.0]


@pytest.mark.parametrize(("checkpoint", "end"), [(0.0, 17.0), (1.5, 15.5), (2.0, 15.0)])
def test_a_requeued_job_begins_again_at_its_checkpoint(checkpoint: float, end: float) -> None:
    """Job 0 has run 2 s when it is requeued; what a checkpoint saved is not run again."""
    workload = UtilityJobs.of(table([[0, 20, 10], [2, 8, 5]]))
    options = MachineOptions(suspension="requeue", checkpoint=checkpoint)
    outcome = simulate(workload, 24, POLICIES["pre-aggressive"], options=options)
    assert outcome.end.tolist() == [end, 7.0]
    assert outcome.extra.tolist() == [end - 15.0, 0.0]


def test_who_is_exempt_is_not_suspended() -> None:
    """After 2 s a job that is exempt for 3 s stays; one that is exempt for 2 s does not."""
    workload = UtilityJobs.of(table([[0, 20, 10], [2, 8, 5]]))
    for exempt, times in ((3.0, 0), (2.0, 1)):
        options = MachineOptions(exempt=exempt)
        outcome = simulate(workload, 24, POLICIES["pre-aggressive"], options=options)
        assert outcome.suspensions.tolist() == [times, 0]


def test_memory_limits_who_is_suspended() -> None:
    """A job of 20 processors needs 20/24 of the machine's memory to be suspended."""
    workload = UtilityJobs.of(table([[0, 20, 10], [2, 8, 5]]))
    for limit, times in ((0.8, 0), (0.84, 1)):
        options = MachineOptions(suspended_max=limit)
        outcome = simulate(workload, 24, POLICIES["pre-aggressive"], options=options)
        assert outcome.suspensions.tolist() == [times, 0]


def test_progress_is_told_and_changes_nothing() -> None:
    """A run that is watched is the run that is not."""
    workload = PaperModel(2.0).draw(25_000, 3)
    told: list[int] = []
    watched = simulate(workload, 24, POLICIES["best-fit"], progress=told.append)
    alone = simulate(workload, 24, POLICIES["best-fit"])
    assert told[-1] == len(workload)
    assert len(told) > 1
    assert watched.end.tobytes() == alone.end.tobytes()


def test_what_cannot_be_run_is_refused() -> None:
    """A job too wide, no machine, and a missing value function are named."""
    workload = UtilityJobs.of(table([[0, 20, 10]]))
    with pytest.raises(ValueError, match=r"job 1 \(row 0\) is 20 processors wide.* has 8"):
        simulate(workload, 8, POLICIES["best-fit"])
    for size in (0, 24.5):
        with pytest.raises(ValueError, match="each needs a whole number from 1"):
            simulate(workload, size, POLICIES["best-fit"])  # type: ignore[arg-type]  # the mistake
    assert simulate(workload, np.int64(24), POLICIES["best-fit"]).end.tolist() == [10]  # type: ignore[arg-type]  # works as well
    with pytest.raises(ValueError, match="needs a value function"):
        simulate(workload, 24, POLICIES["both-value"])
    with pytest.raises(ValueError, match="1 value functions for 2 machines"):
        simulate(workload, (24, 8), POLICIES["both-value"], value=[ValueFunction()])
    with pytest.raises(ValueError, match="a weight that is not 0"):
        simulate(workload, 24, Ordered("replan", "weights"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rate": 0.0}, "rate is 0.0"),
        ({"rate": math.nan}, "rate is nan"),
        ({"delay": -1.0}, "delay is -1.0"),
        ({"time_unit": 0.0}, "time_unit is 0.0"),
        ({"rho": math.inf}, "rho is inf"),
    ],
)
def test_learning_out_of_bounds_is_refused(arguments: dict[str, float], words: str) -> None:
    """The number and its bound are named."""
    with pytest.raises(ValueError, match=words):
        Learning(**arguments)  # type: ignore[arg-type]  # the names are right


def test_a_machine_driven_by_hand_does_the_same() -> None:
    """Arrivals one by one give the run of the whole workload."""
    workload = PaperModel(0.2).draw(500, 1)
    policy = POLICIES["both-aggressive"]
    options = MachineOptions(step=1.0)
    kernel = kernel_for(workload, [24], policy, options)
    submit = workload.jobs.submit_time.tolist()
    row = 0
    while row < len(workload):
        now = submit[row]
        kernel.reach(now)
        while row < len(workload) and submit[row] == now:
            kernel.arrive(row)
            row += 1
        kernel.make_pass()
    kernel.advance(1e6)
    whole = simulate(workload, 24, policy, options=options)
    assert kernel.results["end"].tobytes() == whole.end.tobytes()


def test_the_value_that_an_offer_brings() -> None:
    """With the paper's p an idle machine gains by a job, and a full one may not."""
    workload = UtilityJobs.of(table([[0, 16, 6], [1, 12, 6], [1, 24, 5]]))
    value = ValueFunction((-0.97, -0.25, -0.86, -0.39, 0.48, -0.85, 4.03, 0.19))
    kernel = kernel_for(workload, [24], POLICIES["over-value"], MachineOptions())
    kernel.set_value(0, value.p, value.scales.for_kernel(), {})
    kernel.reach(0.0)
    kernel.arrive(0)
    kernel.make_pass()
    kernel.reach(1.0)
    # Squeezed into 8 processors, as worked out by hand: 1.726667 - 1.393333.
    assert kernel.rises_by(0, 1) == pytest.approx(1.0 / 3.0, abs=1e-6)
    assert kernel.rises_by(0, 2) == pytest.approx(
        value.value((16 + 8 * unit(15)) / 24, 5, 0) - value.value(1, 5, 8)
    )


def unit(time: float) -> float:
    """Returns the unit utility of a job of length 5 that takes so long."""
    return max(0.0, 2 - time / 5) if time > 5 else 1.0
