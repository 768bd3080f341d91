"""What a daemon knows of its batch system, as a value, and made of one again.

`LrmsQueue` and `JobTracker` are nets of objects that change. Between steps moments are ages, counts of what the batch
system has not kept are left out, and so is how long ago a job was asked about: it is asked about at each poll, as any
may go without an answer.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, NamedTuple

from grms.lrms.anomalies import Anomalies
from grms.lrms.base import LrmsEnd
from grms.lrms.batch.job_tracker import MISSING_LOOKS, JobTracker
from grms.lrms.batch.kept_places import KeptPlaces
from grms.lrms.batch.queue_snapshot import JobRow
from grms.lrms.batch.tracked_job import TrackedJob
from grms.lrms.slurm.slurm_arrays import ArrayElements
from grms.simulation.exhaustive.cluster import NOW, SETTLE_S, age_class, moment
from grms.site.runtime.executor_queue import Call, LrmsQueue

_MOMENTS: Final = frozenset(
    {"acknowledged_at", "start_time", "released_at", "missing_since", "doubt_at"}
)
_LENGTHS: Final = frozenset({"shown_s", "missing_s", "doubt_s"})
_USUAL: Final = {
    "pause": 1,
    "ask_in": 0,
    "asked": 0,
    "forgotten": False,
    "ran_again": 0,
    "came_back": False,
    "hindered": "",
    "refused": "",
    "refused_s": 0.0,
}
# What decides nothing but when a question is asked and what is counted.

_FIELDS: Final = tuple(each.name for each in fields(TrackedJob) if each.name not in _USUAL)

_DOUBT: Final = _FIELDS.index("doubt")

Value = tuple[Any, ...]


class Knowledge(NamedTuple):
    """What a running daemon knows of its batch system.

    Attributes:
        queue: unfinished commands.
        calls: to be made.
        paused: without an answer, or refused for now; and whether the latter.
        tracker: the jobs that it follows.
        away: the last poll had no answer.
        compared: it has compared what is there with what it should have.
        places: what it knows of places that are kept, beside its notes.
        arrays: the names that elements of arrays are to have.
    """

    queue: Value
    calls: tuple[Call, ...] = ()
    paused: tuple[tuple[Call, bool], ...] = ()
    tracker: Value = ((), (), None)
    away: bool = False
    compared: bool = False
    places: Value = ((), (), ())
    arrays: Value = ()

    @property
    def settles(self) -> bool:
        """Whether something that it has asked for a place becomes safe with time."""
        return any(age < SETTLE_S for _, age in self.places[1])

    @property
    def doubts(self) -> bool:
        """Whether it does not know where a job stands."""
        return any(job[_DOUBT] for job in self.tracker[0])


# --- the queue -----------------------------------------------------------------------------------


def of_queue(queue: LrmsQueue) -> Value:
    """Returns what a queue knows."""
    pending = tuple(
        (key, tuple(_pending(one) for one in waiting))
        for key, waiting in sorted(queue._pending.items())  # noqa: SLF001  # as pickle would
    )
    ready = tuple((whose, tuple(keys)) for whose, keys in queue._ready.items())  # noqa: SLF001  # same
    return (
        queue.away,
        pending,
        ready,
        tuple(sorted(queue._under_way)),  # noqa: SLF001  # same
        tuple(queue._ends_ready),  # noqa: SLF001  # same
        tuple(sorted(queue._ends_under_way)),  # noqa: SLF001  # same
    )


def _pending(one: Any) -> Value:
    # Since when it may be there decides nothing, as nothing is forgotten for its age.
    return (
        type(one),
        *(one.command, one.step, min(one.attempts, 1), one.tried, one.doubted),
        *(one.put_off, one.over, one.refusal),
    )


def to_queue(queue: LrmsQueue, value: Value) -> LrmsQueue:
    """Gives a new queue what another knew."""
    away, pending, ready, under_way, ends_ready, ends_under_way = value
    queue.away = away
    queue._pending = {  # noqa: SLF001  # as pickle would
        key: deque(kind(command, step, 0.0, *rest) for kind, command, step, *rest in waiting)
        for key, waiting in pending
    }
    queue._ready = OrderedDict((whose, deque(keys)) for whose, keys in ready)  # noqa: SLF001  # same
    queue._under_way = set(under_way)  # noqa: SLF001  # same
    queue._ends_ready = deque(ends_ready)  # noqa: SLF001  # same
    queue._ends_under_way = set(ends_under_way)  # noqa: SLF001  # same
    return queue


# --- the tracker ---------------------------------------------------------------------------------


def of_tracker(tracker: JobTracker, now: float) -> Value:
    """Returns what a tracker knows at a moment, seconds."""
    looked_at = tracker._looked_at  # noqa: SLF001  # as pickle would
    return (
        tuple(_job(job, now) for _, job in sorted(tracker._jobs.items())),  # noqa: SLF001  # same
        tuple(_job(_ended_job(job), now) for _, job in sorted(tracker._over.items())),  # noqa: SLF001  # same
        None if looked_at is None else age_class(now - looked_at),
    )


def to_tracker(tracker: JobTracker, value: Value, passed: float) -> None:
    """Gives a new tracker what another knew; `passed` seconds more have passed since then."""
    jobs, over, looked_at = value
    tracker._jobs = {job.key: job for job in (_tracked(one, passed) for one in jobs)}  # noqa: SLF001  # as pickle would
    tracker._over = OrderedDict(  # noqa: SLF001  # same
        (job.key, job) for job in (_tracked(one, passed) for one in over)
    )
    tracker._looked_at = None if looked_at is None else moment(looked_at) - passed  # noqa: SLF001  # same
    tracker.anomalies = Anomalies()


def _ended_job(job: TrackedJob) -> TrackedJob:
    # Of a job whose end was told nothing else decides any more what is done; when it had begun neither.
    if job.end is None:
        return job
    began = None if job.start_time is None else NOW
    return TrackedJob(
        *(job.key, job.want, job.number), start_time=began, end=job.end, evicted=job.evicted
    )


def _job(job: TrackedJob, now: float) -> Value:
    found = {name: _of(name, getattr(job, name), now) for name in _FIELDS}
    if found["acknowledged_at"] >= SETTLE_S:
        found["shown_s"] = 0.0  # it is as safe as it can be, however long it was shown
    if found["released_at"] is not None:
        found["released_at"] = 0.0  # before the next poll, and that is all that is asked
    return tuple(found.values())


def _of(name: str, value: Any, now: float) -> Any:
    if value is None:
        return None
    if name in _MOMENTS:
        # Never, of what was not acknowledged.
        return -1.0 if value == 0.0 else age_class(now - value)
    if name in _LENGTHS:
        return age_class(value)
    make = _MAKERS.get(name)
    return value if make is None else make(value, now)


def _row(row: JobRow, now: float) -> Value:
    start = None if row.start_time is None else age_class(now - row.start_time)
    submitted = 0.0 if row.submit_time is None else age_class(now - row.submit_time)
    end, name = _end(row.end), (row.name, row.in_array, row.known_as)
    return name, row.number, submitted, row.phase, start, end, row.exact


_MAKERS: Final[dict[str, Callable[[Any, float], Any]]] = {
    "missing": lambda value, _: min(value, MISSING_LOOKS),
    "row": _row,
    "end": lambda value, _: _end(value),
}


def _end(end: LrmsEnd | None) -> Value | None:
    if end is None:
        return None
    return end.outcome, min(end.run_time, 1.0), end.exit_code, end.signal, end.reason


def _tracked(value: Value, passed: float) -> TrackedJob:
    found = {name: _to(name, one, passed) for name, one in zip(_FIELDS, value, strict=True)}
    return TrackedJob(**found)


def _to(name: str, value: Any, passed: float) -> Any:
    if value is None:
        return None
    if name in _MOMENTS:
        return 0.0 if value < 0 else moment(value) - passed
    if name == "row":
        (title, in_array, known_as), number, submitted, phase, started, end, exact = value
        return JobRow(
            *(title, number, moment(submitted) - passed, phase, 1),
            None if started is None else moment(started) - passed,
            *(_ended(end), exact),
            in_array=in_array,
            known_as=known_as,
        )
    if name == "end":
        return _ended(value)
    return value


def _ended(value: Value | None) -> LrmsEnd | None:
    if value is None:
        return None
    outcome, ran, code, signal, reason = value
    return LrmsEnd(outcome, NOW, ran, code, signal, reason)


# --- places that are kept ------------------------------------------------------------------------


def of_places(places: KeptPlaces | None, now: float) -> Value:
    """Returns what is known of places at a moment, seconds; the notes themselves are on the disk."""
    if places is None:
        return (), (), ()
    missing = ((key, min(times, MISSING_LOOKS)) for key, times in places._missing.items())  # noqa: SLF001  # as pickle would
    since = ((key, min(age_class(now - at), SETTLE_S)) for key, at in places._since.items())  # noqa: SLF001  # same
    return tuple(sorted(missing)), tuple(sorted(since)), tuple(sorted(places._started))  # noqa: SLF001  # same


def to_places(places: KeptPlaces, value: Value, passed: float) -> None:
    """Gives new places what others knew; `passed` seconds more have passed since then."""
    missing, since, started = value
    places._missing = dict(missing)  # noqa: SLF001  # as pickle would
    places._since = {key: moment(age) - passed for key, age in since}  # noqa: SLF001  # same
    places._started = set(started)  # noqa: SLF001  # same


# --- elements of arrays --------------------------------------------------------------------------


def of_elements(elements: ArrayElements, now: float) -> Value:
    """Returns what is known of elements of arrays at a moment, seconds."""
    ages = {array: age_class(now - at) for array, at in elements._submitted.items()}  # noqa: SLF001  # as pickle would
    known = sorted(elements._names.items())  # noqa: SLF001  # same
    return tuple((array, ages.get(array), tuple(sorted(names.items()))) for array, names in known)


def to_elements(elements: ArrayElements, value: Value, passed: float) -> None:
    """Gives new elements what others knew; `passed` seconds more have passed since then."""
    elements._names = OrderedDict((array, dict(names)) for array, _, names in value)  # noqa: SLF001  # as pickle would
    known = {array: moment(age) - passed for array, age, _ in value if age is not None}
    elements._submitted = known  # noqa: SLF001  # same
