"""Random workloads with utilities, and the same run by the kernel and by the plain machine."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lrms_sim.malleable.jobs import SHAPES, UtilityJobs
from lrms_sim.malleable.log import KINDS, AllocationLog
from lrms_sim.malleable.machine import Learning, Outcome, simulate
from lrms_sim.malleable.options import MachineOptions, Speedup
from lrms_sim.malleable.policies import POLICIES, BestFit, Ordered, Policy
from lrms_sim.malleable.value import Scales, ValueFunction
from lrms_sim.workload.jobs import JobTable
from tests.oracles.utility import PlainUtilityMachine
from tests.oracles.utility_parts import PlainJob, PlainLearner, PlainMachine, PlainPolicy

_ARRIVE, _START, _SQUEEZE, _SUSPEND, _RESIZE, _END, _DROP = range(len(KINDS))


@dataclass(frozen=True)
class Run:
    """Everything that a run depends on."""

    workload: UtilityJobs
    sizes: tuple[int, ...]
    policy: Policy
    options: MachineOptions
    value: ValueFunction
    learning: Learning | None


@st.composite
def workloads(draw: st.DrawFn, widest: int, *, plain: bool = False, jobs_max: int = 16) -> Any:
    """Draws a workload: the paper's utilities where `plain`, else each job its own."""
    count = draw(st.integers(0, jobs_max))

    def column(elements: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(elements, min_size=count, max_size=count))

    widths = column(st.integers(1, widest))
    runs = column(st.integers(1, 8))
    surplus = [0] * count if plain else column(st.sampled_from((0, 0, 1, 3)))
    jobs = JobTable.from_columns(
        submit_time=column(st.integers(0, 25)),
        processors=widths,
        run_time=[float(run) for run in runs],
        requested_time=[float(run + more) for run, more in zip(runs, surplus, strict=True)],
    )
    if plain:
        return UtilityJobs.of(jobs)
    plateau = column(st.sampled_from((0.0, 1.0, 1.0, 1.5, 3.0)))
    return UtilityJobs.of(
        jobs,
        weight=column(st.sampled_from((1.0, 1.0, 0.5, 2.0, 0.0))),
        plateau=plateau,
        zero=[each + more for each, more in zip(plateau, column(slopes), strict=True)],
        floor=column(st.sampled_from((0.0, 0.0, 0.0, 0.1))),
        shape=column(st.integers(0, len(SHAPES) - 1)),
        processors_min=[
            max(1, int(width * share))
            for width, share in zip(
                jobs.processors.tolist(), column(st.sampled_from((0.0, 0.5, 1.0))), strict=True
            )
        ],
    )


slopes = st.sampled_from((0.0, 1.0, 1.0, 2.0))

options = st.builds(
    MachineOptions,
    grow=st.sampled_from(("never", "first", "last")),
    leave=st.sampled_from(("never", "worthless", "zero")),
    worthless=st.booleans(),
    refit=st.booleans(),
    step=st.sampled_from((0.0, 1.0)),
    suspension=st.sampled_from(("suspend", "suspend", "requeue")),
    suspension_cost=st.sampled_from((0.0, 0.0, 0.5)),
    resize_cost=st.sampled_from((0.0, 0.0, 0.25)),
    checkpoint=st.sampled_from((0.0, 2.0)),
    exempt=st.sampled_from((0.0, 0.0, 2.0)),
    suspensions_max=st.sampled_from((1_000_000, 1_000_000, 2, 0)),
    suspended_max=st.sampled_from((100.0, 100.0, 0.5)),
    speedup=st.sampled_from(
        (
            Speedup(),
            Speedup(),
            Speedup("amdahl", serial=0.2),
            Speedup("downey", parallelism=1.5, variance=0.5),
            Speedup("downey", parallelism=0.7, variance=2.0),
        )
    ),
)

policies = st.one_of(
    st.sampled_from(sorted(POLICIES)).map(POLICIES.__getitem__),
    st.just(BestFit(job_fixed=True)),
    st.builds(
        Ordered,
        st.sampled_from(("list", "easy", "replan")),
        st.just("weights"),
        st.booleans(),
        st.tuples(*[st.sampled_from((-1.0, 0.5, 1.0))] * 8),
    ),
)

learnings = st.one_of(
    st.none(),
    st.just(Learning(time_unit=1.0)),
    st.just(Learning(1.0, 10.0, per_step=False)),
    st.just(Learning(1.0, 0.0, per_step=False)),
)


@st.composite
def runs(draw: st.DrawFn, *, plain: bool = False) -> Run:
    """Draws a run on one machine or two."""
    sizes = draw(st.sampled_from(((8,), (8,), (24,), (4, 8), (8, 8))))
    value = ValueFunction(
        draw(st.tuples(*[st.sampled_from((0.0, -1.0, 0.25, 4.0))] * 8)), Scales(1.0, 10.0, 8)
    )
    return Run(
        draw(workloads(max(sizes), plain=plain)),
        sizes,
        draw(policies),
        MachineOptions(step=1.0) if plain else draw(options),
        value,
        draw(learnings),
    )


def numbered_run(number: int) -> Run:
    """Returns a run that the number alone determines; every second one has the paper's jobs."""
    draw = np.random.default_rng(number)
    sizes = ((8,), (24,), (24,), (4, 8), (8, 8))[draw.integers(5)]
    count = int(draw.integers(5, 40))
    plain = number % 2 == 0
    runs_for = draw.integers(1, 9, count).astype(float)
    width = draw.integers(1, max(sizes) + 1, count).astype(np.int32)
    jobs = JobTable.from_columns(
        submit_time=draw.integers(0, 60, count),
        processors=width,
        run_time=runs_for,
        requested_time=runs_for + (0 if plain else draw.integers(0, 3, count)),
    )
    plateau = draw.choice((0.0, 1.0, 2.0), count)
    workload = UtilityJobs.of(jobs)
    if not plain:
        workload = UtilityJobs.of(
            jobs,
            weight=draw.choice((1.0, 0.5, 2.0, 0.0), count),
            plateau=plateau,
            zero=plateau + draw.choice((0.0, 1.0, 2.0), count),
            floor=draw.choice((0.0, 0.0, 0.2), count),
            shape=draw.integers(0, 3, count),
            processors_min=np.maximum(1, jobs.processors * draw.integers(0, 3, count) // 2),
        )
    names = sorted(POLICIES)
    policy: Policy = POLICIES[names[number // 2 % len(names)]]
    if number % 23 == 0:
        policy = Ordered("replan", "weights", squeezes=True, weights=tuple(draw.normal(size=8)))
    pick = draw.choice
    changed = MachineOptions(
        grow=("never", "first", "last")[draw.integers(3)],
        leave=("never", "worthless", "zero")[draw.integers(3)],
        worthless=bool(draw.integers(2)),
        refit=bool(draw.integers(2)),
        step=float(draw.integers(2)),
        suspension=("suspend", "requeue")[draw.integers(2)],
        suspension_cost=float(pick((0.0, 0.5))),
        resize_cost=float(pick((0.0, 0.25))),
        checkpoint=float(pick((0.0, 2.0))),
        exempt=float(pick((0.0, 2.0))),
        suspensions_max=int(pick((1000, 2))),
        suspended_max=float(pick((100.0, 0.5))),
        speedup=Speedup("amdahl", serial=0.2) if draw.integers(2) else Speedup(),
    )
    value = ValueFunction(tuple(draw.normal(size=8).tolist()), Scales(1.0, 10.0, 8))
    learning = Learning(time_unit=1.0) if draw.integers(2) else None
    options_here = MachineOptions(step=1.0) if plain else changed
    return Run(workload, sizes, policy, options_here, value, learning)


def by_kernel(run: Run, **arguments: Any) -> Outcome:
    """Runs it by the kernel."""
    return simulate(
        run.workload,
        run.sizes,
        run.policy,
        options=run.options,
        value=run.value,
        learning=run.learning,
        log=True,
        steps=True,
        **arguments,
    )


def by_oracle(run: Run, horizon: float = float("inf")) -> PlainUtilityMachine:
    """Runs it by the plain machine."""
    work, table = run.workload, run.workload.jobs
    jobs = [
        PlainJob(
            row,
            float(table.submit_time[row]),
            int(table.processors[row]),
            int(work.processors_min[row]),
            float(table.requested_time[row]),
            float(table.run_time[row]),
            float(work.weight[row]),
            float(work.plateau[row]),
            float(work.zero[row]),
            float(work.floor[row]),
            SHAPES[work.shape[row]],
        )
        for row in range(len(work))
    ]
    scales = (run.value.scales.utility, run.value.scales.time, run.value.scales.processors)
    learning = run.learning or Learning(time_unit=1.0)
    machines = [
        PlainMachine(
            number,
            size,
            PlainLearner(
                list(run.value.p),
                scales,
                learning.rate,
                learning.delay,
                learning.per_step,
                learning.time_unit or scales[1] / 10,
                run.learning is not None,
            ),
        )
        for number, size in enumerate(run.sizes)
    ]
    if isinstance(run.policy, BestFit):
        policy = PlainPolicy(
            run.policy.preemption, run.policy.oversubscription, run.policy.job_fixed
        )
    else:
        policy = PlainPolicy(
            mechanism=run.policy.mechanism,
            order=run.policy.order,
            squeezes=run.policy.squeezes,
            weights=run.policy.weights,
        )
    plain = PlainUtilityMachine(jobs, machines, policy, run.options)
    plain.run(horizon)
    return plain


def rows_of(log: AllocationLog) -> list[tuple[float, str, int, int]]:
    """Returns time, kind, job and processors of each entry."""
    columns = log.entries[["time", "kind", "job", "processors"]].tolist()
    return [(time, KINDS[kind], job, processors) for time, kind, job, processors in columns]


def check_log(log: AllocationLog) -> None:
    """Checks that processors were conserved at every event.

    No job runs twice, is suspended or resized without running, or holds more than it asked
    for or less than it can run on; no machine gives more processors than it has; nobody
    runs before he has arrived or after he has gone; time does not run backward.
    """
    held: dict[int, tuple[int, int]] = {}
    free = list(log.processors)
    seen: set[int] = set()
    gone: set[int] = set()
    before = -np.inf
    for number, entry in enumerate(log.entries):
        kind, job = int(entry["kind"]), int(entry["job"])
        machine, count = int(entry["machine"]), int(entry["processors"])
        place = f"entry {number} ({KINDS[kind]} of job {job} at {entry['time']})"
        assert entry["time"] >= before, f"{place} is before the one above"
        assert job not in gone, f"{place}: the job is gone"
        before = entry["time"]
        if kind == _ARRIVE:
            assert job not in seen, f"{place}: it has arrived before"
            seen.add(job)
            continue
        assert job in seen, f"{place}: it has not arrived"
        if kind in {_SUSPEND, _RESIZE, _END}:
            assert job in held, f"{place}: it does not run"
            where, width = held.pop(job)
            assert where == machine, f"{place}: it runs on machine {where}"
            assert kind != _SUSPEND or width == count, f"{place}: it held {width}"
            free[machine] += width
        else:
            assert job not in held, f"{place}: it runs"
        if kind in {_START, _SQUEEZE, _RESIZE}:
            most = int(log.workload.jobs.processors[job])
            least = int(log.workload.processors_min[job])
            assert least <= count <= most, f"{place}: {count} of {least} to {most} processors"
            assert (kind != _START) or count == most, f"{place}: {count} of {most}"
            held[job] = (machine, count)
            free[machine] -= count
            assert free[machine] >= 0, f"{place}: {-free[machine]} processors too many"
        if kind in {_END, _DROP}:
            gone.add(job)
