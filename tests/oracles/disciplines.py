"""The queue disciplines: what one pass over the queue of a plain machine starts.

Each function is one paragraph of docs/disciplines.md. None of them looks at a job's run time.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from lrms_sim.workload.jobs import JobTable
from tests.oracles.machine import PlainJob, PlainMachine, plain_jobs
from tests.oracles.predictions import PredictingMachine, easy_on_predictions

Pass = Callable[[PlainMachine, float], None]
Key = Callable[[PlainJob, float], float]


def fcfs(machine: PlainMachine, now: float) -> None:
    """Starts the head of the queue as long as it fits."""
    while machine.waiting and machine.fits(machine.waiting[0], now):
        machine.start(machine.waiting[0], now)


def list_scheduling(machine: PlainMachine, now: float) -> None:
    """Goes through the queue once and starts whatever fits at its turn."""
    free = machine.processors_free(now)
    for job in list(machine.waiting):
        if job.processors <= free:
            machine.start(job, now)
            free = machine.processors_free(now)


def easy(machine: PlainMachine, now: float, backfill: Key | None = None) -> None:
    """Starts heads, then later jobs that do not move the blocked head's shadow time.

    The later ones are looked at in order of arrival, or by a key.
    """
    fcfs(machine, now)
    if not machine.waiting:
        return
    head, *later = machine.waiting

    widths = [(running.estimated_end, running.job.processors) for running in machine.running]

    def free_by_estimates(moment: float) -> int:
        return machine.processors - sum([width for end, width in widths if end > moment])

    releases = sorted(end for end, _ in widths)
    shadow_time = next(t for t in releases if free_by_estimates(t) >= head.processors)
    extra_processors = free_by_estimates(shadow_time) - head.processors
    machine.first_shadow.setdefault(head.row, shadow_time)
    if backfill is not None:
        later = sorted(later, key=lambda job: (backfill(job, now), job.row))
    free = machine.processors_free(now)
    for job in later:
        ends_in_time = now + job.requested_time <= shadow_time
        if job.processors <= free and (ends_in_time or job.processors <= extra_processors):
            machine.start(job, now)
            free = machine.processors_free(now)
            if not ends_in_time:
                extra_processors -= job.processors


def conservative(machine: PlainMachine, now: float) -> None:
    """Improves old reservations if a job ended early, reserves for new jobs, starts what is due."""
    if machine.ended_early:
        machine.ended_early = False
        for job in machine.waiting:
            if job.row in machine.reservation:
                before = machine.reservation.pop(job.row)
                machine.reservation[job.row] = earliest_fit(machine, job, now)
                assert machine.reservation[job.row] <= before
    for job in machine.waiting:
        if job.row not in machine.reservation:
            machine.reservation[job.row] = earliest_fit(machine, job, now)
            machine.first_reservation.setdefault(job.row, machine.reservation[job.row])
    for job in list(machine.waiting):
        if machine.reservation[job.row] <= now:
            machine.start(job, now)


def planned(machine: PlainMachine) -> Iterator[tuple[float, float, int]]:
    """Yields (from, to, processors) of every running job and of every reservation."""
    for running in machine.running:
        yield running.start_time, running.estimated_end, running.job.processors
    for job in machine.waiting:
        if job.row in machine.reservation:
            start = machine.reservation[job.row]
            yield start, start + job.requested_time, job.processors


def earliest_fit(machine: PlainMachine, job: PlainJob, now: float) -> float:
    """Returns the first moment from which the job fits for all the time it requests.

    Processors in use rise only where a plan begins and fall only where one ends. So the first
    fit is now or at some plan's end, and to see that a fit lasts it is enough to look at its
    first moment and at the beginnings after that.
    """
    plans = list(planned(machine))

    def fits_at(moment: float) -> bool:
        in_use = sum([width for begin, end, width in plans if begin <= moment < end])
        return in_use + job.processors <= machine.processors

    def fits_from(start: float) -> bool:
        end = start + job.requested_time
        return fits_at(start) and all(fits_at(b) for b, _, _ in plans if start < b < end)

    moments = [now, *sorted(end for _, end, _ in plans if end > now)]
    return next(moment for moment in moments if fits_from(moment))


def by_group(make_pass: Pass) -> Pass:
    """Returns the pass on the queue sorted by group, without memory of earlier passes."""

    def sorted_pass(machine: PlainMachine, now: float) -> None:
        on_order(machine, now, make_pass, lambda job: job.group)

    return sorted_pass


def on_order(
    machine: PlainMachine, now: float, make_pass: Pass, key: Callable[[PlainJob], float]
) -> None:
    """Makes a pass on the queue sorted by a key, ties by arrival, and forgets what it promised."""
    machine.waiting.sort(key=attrgetter("row"))
    machine.waiting.sort(key=key)
    machine.reservation.clear()
    machine.ended_early = False
    make_pass(machine, now)
    machine.reservation.clear()
    machine.waiting.sort(key=attrgetter("row"))


KEYS: dict[str, Key] = {
    "requested_time": lambda job, _: job.requested_time,
    "longest": lambda job, _: -job.requested_time,
    "area": lambda job, _: job.requested_time * job.processors,
    "wfp3": lambda job, now: -_cube((now - job.submit_time) / job.requested_time) * job.processors,
    "f1": lambda job, _: math.log10(job.requested_time) * job.processors + 870 * _log_submit(job),
    "f2": lambda job, _: math.sqrt(job.requested_time) * job.processors + 25600 * _log_submit(job),
    "f3": lambda job, _: job.requested_time * job.processors + 6860000 * _log_submit(job),
    "f4": lambda job, _: job.requested_time * math.sqrt(job.processors) + 530000 * _log_submit(job),
}
"""What the queue is sorted by, ascending; ties by arrival."""


def _cube(number: float) -> float:
    return number * number * number


def _log_submit(job: PlainJob) -> float:
    return math.log10(max(job.submit_time, 1.0))


def by_key(key: str, make_pass: Pass = fcfs) -> Pass:
    """Returns the pass on the queue sorted by a key."""

    def sorted_pass(machine: PlainMachine, now: float) -> None:
        on_order(machine, now, make_pass, lambda job: KEYS[key](job, now))

    return sorted_pass


def easy_by(key: str) -> Pass:
    """Returns EASY with the queue in order of arrival and its candidates sorted by a key."""

    def sorted_pass(machine: PlainMachine, now: float) -> None:
        easy(machine, now, KEYS[key])

    return sorted_pass


PASSES: dict[str, Pass] = {
    "fcfs": fcfs,
    "list": list_scheduling,
    "easy": easy,
    "easy-per-event": easy,
    "conservative": conservative,
    "fcfs-group": by_group(fcfs),
    "easy-group": by_group(easy),
    "conservative-group": by_group(conservative),
    "sjf": by_key("requested_time"),
    "saf": by_key("area"),
    "ljf": by_key("longest"),
    "wfp3": by_key("wfp3"),
    "f1": by_key("f1"),
    "f2": by_key("f2"),
    "f3": by_key("f3"),
    "f4": by_key("f4"),
    "easy-sjbf": easy_by("requested_time"),
    "easy-saf": easy_by("area"),
    "easy-sjbf-per-event": easy_on_predictions,
    "easy-plus-plus": easy_on_predictions,
}
"""The pass of each discipline, by the discipline's name."""

PER_EVENT = {"easy-per-event", "easy-sjbf-per-event", "easy-plus-plus"}
"""The disciplines that make a pass after every single event."""


def simulate_plainly(
    jobs: JobTable,
    processors: int,
    discipline: str | Pass,
    groups: Sequence[int] | None = None,
) -> PlainMachine:
    """Runs a workload on one machine to the end.

    Args:
        jobs: the workload.
        processors: the machine's size.
        discipline: a key of `PASSES`, or a pass.
        groups: of the jobs' users; all 5 where left out.

    Returns:
        The machine, idle, with what became of every job.
    """
    machine = new_machine(processors, discipline)
    make_pass = PASSES[discipline] if isinstance(discipline, str) else discipline
    arrivals = plain_jobs(jobs, groups)
    while arrivals or machine.running or machine.waiting:
        next_arrival = [arrivals[0].submit_time] if arrivals else []
        now = min([machine.next_event_time, *next_arrival])
        machine.come_to(now)
        if machine.per_event:
            # Each event has a pass of its own; submissions come first. What has been started
            # by one pass may end at this very instant, but not before those of earlier starts.
            if arrivals and arrivals[0].submit_time == now:
                machine.submit(arrivals.pop(0))
            elif machine.due(now):
                machine.end(machine.due(now)[0])
            else:
                continue  # nothing but a prediction is over
        else:
            # All events of the instant, terminations first, share one pass.
            for running in machine.due(now):
                machine.end(running)
            while arrivals and arrivals[0].submit_time == now:
                machine.submit(arrivals.pop(0))
        make_pass(machine, now)
    return machine


def new_machine(processors: int, discipline: str | Pass) -> PlainMachine:
    """Returns an empty machine as a discipline needs it."""
    if discipline in {"easy-plus-plus", "easy-sjbf-per-event"}:
        return PredictingMachine(
            processors, per_event=True, predicts=discipline == "easy-plus-plus"
        )
    per_event = isinstance(discipline, str) and discipline in PER_EVENT
    return PlainMachine(processors, per_event=per_event)
