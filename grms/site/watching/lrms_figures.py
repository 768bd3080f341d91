"""What a site's operators see of its batch system: machine, queue, and how well it answers."""

import math
from dataclasses import asdict
from functools import partial
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from grms.lrms.slips import Slips
from grms.site.facts.jobs import Load

Surprise = Literal["lost", "requeued", "appeared"]
"""What a batch system has done to a job by itself."""


class LrmsFigures:
    """The figures of a batch system.

    Args:
        registry: what Prometheus collects.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        gauge, counter = partial(Gauge, registry=registry), partial(Counter, registry=registry)
        self._processors = gauge("hanse_processors", "Of the machine, by state.", ("state",))
        self._up = gauge(
            "hanse_lrms_reachable", "1 where the batch system answers and its load is known."
        )
        self._age = gauge(
            "hanse_lrms_load_age_seconds", "How old the figures of machine and queue are."
        )
        self._commands = gauge(
            "hanse_lrms_commands_open", "Commands that the batch system has not answered."
        )
        self._unseen = gauge(
            "hanse_lrms_jobs_unseen", "Jobs of which it is not known where they stand."
        )
        self._lost = counter(
            "hanse_lrms_surprises_total", "What the batch system did by itself.", ("what",)
        )
        self._slipped = counter(
            "hanse_lrms_slips_total", "What the batch system has said and not kept.", ("what",)
        )
        self._queue_jobs = gauge("hanse_queue_jobs", "Jobs that wait in the batch system.")
        self._queue_processors = gauge(
            "hanse_queue_processors", "Processors that the waiting jobs need, added up."
        )
        for surprise in get_args(Surprise):
            self._lost.labels(surprise)
        self._slips = dict.fromkeys(asdict(Slips()), 0)
        self.set_slips(Slips())

    def set_load(self, load: Load, jobs_waiting: int) -> None:
        """Sets what the batch system does.

        Args:
            load: of it.
            jobs_waiting: jobs in its queue.
        """
        self._processors.labels("free").set(load.processors_free)
        self._processors.labels("busy").set(load.processors - load.processors_free)
        self._queue_jobs.set(jobs_waiting)
        self._queue_processors.set(load.processors_waiting)

    def set_answering(self, *, reachable: bool, load_age: float | None, commands_open: int) -> None:
        """Sets how the batch system answers.

        Args:
            reachable: it answers, and its load is known.
            load_age: of the load, seconds; None where there has been none.
            commands_open: commands without an answer.
        """
        self._up.set(reachable)
        self._age.set(math.nan if load_age is None else load_age)
        self._commands.set(commands_open)

    def set_unseen(self, jobs: int) -> None:
        """Sets of how many jobs it is not known where they stand in the batch system."""
        self._unseen.set(jobs)

    def surprised(self, what: Surprise) -> None:
        """Counts what the batch system did by itself."""
        self._lost.labels(what).inc()

    def set_slips(self, slips: Slips) -> None:
        """Counts what the batch system has not kept since this was called last."""
        for what, count in asdict(slips).items():
            self._slipped.labels(what).inc(count - self._slips[what])
            self._slips[what] = count
