"""Would a job start at once, if it came now? Of a plain machine, one paragraph a discipline.

A second reading of docs/disciplines.md, "Would it start now?". The machine has made the passes of
the moment; the job is not in its queue.
"""

from collections.abc import Callable

from tests.oracles.disciplines import earliest_fit
from tests.oracles.machine import PlainJob, PlainMachine

Question = Callable[[PlainMachine, PlainJob, float], bool]


def behind_nobody(machine: PlainMachine, job: PlainJob, now: float) -> bool:
    """Nobody waits, and it fits."""
    return not machine.waiting and machine.fits(job, now)


def past_everybody(machine: PlainMachine, job: PlainJob, now: float) -> bool:
    """It fits, whoever waits."""
    return machine.fits(job, now)


def past_a_blocked_head(machine: PlainMachine, job: PlainJob, now: float) -> bool:
    """It fits and nobody waits, or it does not delay the head beyond its shadow time."""
    if not machine.fits(job, now) or not machine.waiting:
        return machine.fits(job, now)
    head, *later = machine.waiting
    if machine.fits(head, now):
        return False

    def may_pass(other: PlainJob, shadow_time: float, extra: int) -> bool:
        in_time = now + other.requested_time <= shadow_time
        return machine.fits(other, now) and (in_time or other.processors <= extra)

    ends = sorted({running.estimated_end for running in machine.running})
    for moment in ends:
        in_use = sum(r.job.processors for r in machine.running if r.estimated_end > moment)
        extra = machine.processors - in_use - head.processors
        if extra >= 0:
            return not any(may_pass(other, moment, extra) for other in later) and may_pass(
                job, moment, extra
            )
    raise AssertionError("a head fits once everybody has gone")


def within_the_plan(machine: PlainMachine, job: PlainJob, now: float) -> bool:
    """Its earliest fit is now."""
    return earliest_fit(machine, job, now) == now


QUESTIONS: dict[str, Question] = {
    "fcfs": behind_nobody,
    "list": past_everybody,
    "easy": past_a_blocked_head,
    "easy-per-event": past_a_blocked_head,
    "conservative": within_the_plan,
}
"""The question of each discipline that answers for itself, by the discipline's name."""


def question(discipline: str) -> Question:
    """Returns the question of a discipline."""
    return QUESTIONS.get(discipline, behind_nobody)
