"""EASY++: a machine that predicts run times, and its pass, as plainly as it can be written.

Written from docs/disciplines.md. Nothing here looks at the run time of a job that has not ended, but
for what the machine itself does: a job whose end has come is over.
"""

import math
from dataclasses import dataclass, field

from tests.oracles.machine import PlainJob, PlainMachine, Running
from tests.oracles.overruns import CORRECTIONS


@dataclass(slots=True)
class PredictingMachine(PlainMachine):
    """A machine with a pass per event whose discipline predicts.

    Attributes:
        predicts: whether it does; else a prediction is the request.
        predictions: of each job all it ever had, by row, the present one last.
        past: of each user the run times of the jobs that have ended, in order.
    """

    predicts: bool = True
    predictions: dict[int, list[float]] = field(default_factory=dict)
    past: dict[int, list[float]] = field(default_factory=dict)

    def submit(self, job: PlainJob) -> None:
        """Puts a job into the queue, with its first prediction."""
        past = self.past.get(job.user, [])
        prediction = job.requested_time
        if self.predicts and job.user >= 0 and len(past) >= 2:
            mean = max(1.0, math.floor((past[-1] + past[-2]) / 2))
            prediction = min(job.requested_time, mean)
        self.predictions[job.row] = [prediction]
        self.waiting.append(job)

    def predicted_end(self, running: Running) -> float:
        """Returns when a running job will end, as far as is known."""
        return running.start_time + self.predictions[running.job.row][-1]

    def is_over(self, running: Running, now: float) -> bool:
        """Returns whether a job ends now and was predicted to."""
        return running.end_time <= now and self.predicted_end(running) <= now

    def correct(self, running: Running, now: float) -> None:
        """Gives a job that has outlived its prediction further ones until one is still to come."""
        predictions = self.predictions[running.job.row]
        request = running.estimate
        while self.predicted_end(running) <= now and predictions[-1] < request:
            later = [predictions[0] + correction for correction in CORRECTIONS]
            done = len(predictions) - 1
            predictions.append(min(later[done], request) if done < len(later) else request)

    def come_to(self, now: float) -> None:
        """Corrects all that have outlived their predictions."""
        PlainMachine.come_to(self, now)
        for running in self.running:
            if not self.is_over(running, now):
                self.correct(running, now)

    def start(self, job: PlainJob, now: float) -> None:
        """Starts a waiting job."""
        PlainMachine.start(self, job, now)
        self.correct(self.running[-1], now)

    def end(self, running: Running) -> None:
        """Ends a job, and learns how long it ran."""
        PlainMachine.end(self, running)
        self.past.setdefault(running.job.user, []).append(running.end_time - running.start_time)

    def processors_free(self, now: float) -> int:
        """Returns how many processors nobody holds now."""
        return self.processors - sum(
            running.job.processors for running in self.running if not self.is_over(running, now)
        )

    @property
    def next_event_time(self) -> float:
        """When somebody ends or outlives his prediction."""
        ends = [running.end_time for running in self.running]
        predicted = [self.predicted_end(running) for running in self.running]
        return min([*ends, *predicted], default=math.inf)


def easy_on_predictions(machine: PlainMachine, now: float) -> None:
    """Starts heads, then those with the shortest predictions that do not delay the blocked head."""
    assert isinstance(machine, PredictingMachine)
    while machine.waiting and machine.fits(machine.waiting[0], now):
        machine.start(machine.waiting[0], now)
    if not machine.waiting:
        return
    head, *later = machine.waiting

    def free_at(moment: float) -> int:
        return machine.processors - sum(
            running.job.processors
            for running in machine.running
            if not machine.is_over(running, now) and machine.predicted_end(running) > moment
        )

    ends = sorted(machine.predicted_end(running) for running in machine.running)
    shadow_time = next(t for t in ends if t >= now and free_at(t) >= head.processors)
    extra_processors = free_at(shadow_time) - head.processors
    free = machine.processors_free(now)
    for job in sorted(later, key=lambda job: (machine.predictions[job.row][0], job.row)):
        ends_in_time = now + machine.predictions[job.row][0] <= shadow_time
        if job.processors <= free and (ends_in_time or job.processors <= extra_processors):
            machine.start(job, now)
            free = machine.processors_free(now)
            if not ends_in_time:
                extra_processors -= job.processors
