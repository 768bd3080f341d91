"""What a site knows, as a value: the same knowledge has the same bytes.

A state of a site is a net of objects that change. Here it is frozen: `key` says all that its behaviour depends on, and
`blob` makes it again. What behaviour does not depend on within an exploration is no part of the key: counts and sums
of what has happened (partners are asked in a fixed order, and time stands still), and a job's story.
"""

import marshal
import math
import pickle
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from grms.site.model.jobs import GuestJob, HomeJob
from grms.site.model.lifecycle import JobState
from grms.site.model.partners import PartnerBook
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.state import SiteState

StateFactory = Callable[..., SiteState]
"""Makes a state of settings and a memory."""

NOT_DATA: Final = frozenset(
    {
        "settings",
        "on_usage",
        "reservations",
        "pilots",
        "circuit_breaker_found",
        "forgotten_keys",
        "_apply",
    }
)
"""Of a memory: made anew with it."""

SUMS: Final = frozenset(
    {"own_work", "own_requested", "usage", "jobs_open", "open_by_user", "lrms_moment", "held"}
)
"""Of a memory: follows from what has happened, and decides nothing here."""

SUMS_OF_BOOK: Final = frozenset(
    {
        *("offered", "accepted", "ended", "consumption", "weighted_response", "open_consumption"),
        *("open_submitted", "guest_offered", "guest_accepted", "taken", "given", "committed"),
        *("committed_there", "trust", "budget", "returns", "given_back", "given_back_why"),
        *("given_back_time", "limits", "limited", "declined_limited", "faults", "faults_in_row"),
        *("disbelieved", "doubt", "distrust", "disputed", "nodes", "processors"),
    }
)
"""The same of what is known of a partner."""

OF_A_JOB: Final = frozenset({"story", "revision", "weighed", "reason"})
"""The same of a job."""

STALE: Final = 1
"""Stands for every question whose answer does not count any more."""


class Frozen(NamedTuple):
    """What a site knows: `key` to compare, `blob` to make it again."""

    key: bytes
    blob: bytes


def freeze(memory: StateTables, state: SiteState | None = None) -> Frozen:
    """Returns what a memory holds, with the rounds of offers of its state where that is given."""
    for job in _jobs(memory):
        del job.story[:-1]
        job.attempts = min(job.attempts, 1)
        if isinstance(job, HomeJob):
            job.revision, job.weighed = 1, None
    data = {name: value for name, value in vars(memory).items() if name not in NOT_DATA}
    # A round of offers that is under way is part of what a running site knows.
    rounds = {} if state is None else _data_of_rounds(state)
    left_out = (
        SUMS if memory.rounds.open else {*SUMS, "rounds"}
    )  # what a round that is over was like
    known = tuple((name, _of(value)) for name, value in data.items() if name not in left_out)
    jobs = tuple(map(_job, _jobs(memory)))
    key = marshal.dumps((known, jobs, tuple((n, _of(v)) for n, v in rounds.items())), 0)
    return Frozen(key, pickle.dumps((data, rounds), pickle.HIGHEST_PROTOCOL))


def thaw(frozen: Frozen, settings: SiteSettings) -> tuple[StateTables, dict[str, Any]]:
    """Returns a memory as it was frozen, and what belongs to its rounds of offers."""
    memory = StateTables(settings)
    data, rounds = pickle.loads(frozen.blob)  # noqa: S301  # what this process has written
    vars(memory).update(data)
    return memory, rounds


def revive(frozen: Frozen, settings: SiteSettings, factory: StateFactory) -> SiteState:
    """Returns a state that knows what was frozen."""
    memory, rounds = thaw(frozen, settings)
    state = factory(settings, memory=memory)
    vars(_rounds_of(state)).update(rounds)
    return state


def durable(memory: StateTables) -> object:
    """Returns what a site at rest knows that has to survive a restart, to compare."""
    jobs = [
        (
            *(job.job, _SINCE.get(job.state, job.state), job.outcome, job.partner, job.asked),
            job.sent_home,
        )
        for job in memory.jobs.values()
    ]
    books = [
        (
            *(name, book.next_number, book.settled(), book.epoch, book.settled_below),
            *(sorted(book.answered), sorted(book.abandoned)),
            [(guest.ref, guest.outcome) for guest in book.guests.values()],
            [type(answer).__name__ for _, answer in sorted(book.answered.items(), key=_number)],
        )
        for name, book in memory.books.items()
    ]
    return jobs, books, memory.next_job, memory.epoch


_SINCE: Final = {
    JobState.RESOLVING: JobState.OFFERING,
    JobState.WITHDRAWING: JobState.OFFERING,
    JobState.QUEUED: JobState.SUBMITTING,
    JobState.SUSPECT: JobState.DELEGATED,
}
# What is known to a running daemon alone, and what the journal has instead.


def _number(item: tuple[int, Any]) -> int:
    return item[0]


def _rounds_of(state: SiteState) -> Any:
    return state._reoffers  # noqa: SLF001  # a round is known to a running daemon, and nobody else asks


def _data_of_rounds(state: SiteState) -> dict[str, Any]:
    return {n: v for n, v in vars(_rounds_of(state)).items() if n not in {"memory", "offers"}}


def _jobs(memory: StateTables) -> Iterable[HomeJob | GuestJob]:
    yield from memory.jobs.values()
    for book in memory.books.values():
        yield from book.guests.values()
        yield from (one for one in book.answered.values() if isinstance(one, GuestJob))


# --- values --------------------------------------------------------------------------------------


def _of(value: Any) -> Any:
    """Returns a value of tuples, numbers and texts alone."""
    make = _MAKERS.get(type(value))
    if make is not None:
        return make(value)
    return _other(value)


def _other(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return _tuple(value)
    names = _fields(type(value))
    if names is None:
        return (type(value).__name__, _dict(vars(value)))
    return (type(value).__name__, *(_of(getattr(value, name)) for name in names))


_FIELDS: Final[dict[type, tuple[str, ...] | None]] = {}


def _fields(kind: type) -> tuple[str, ...] | None:
    if kind not in _FIELDS:
        _FIELDS[kind] = _found_fields(kind)
    return _FIELDS[kind]


def _found_fields(kind: type) -> tuple[str, ...] | None:
    if kind is PartnerBook:
        return tuple(name for name in PartnerBook.__slots__ if name not in SUMS_OF_BOOK)
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if is_dataclass(kind):
        return tuple(each.name for each in fields(kind))
    return None


def _job(job: HomeJob | GuestJob) -> Any:
    return tuple(_of(getattr(job, name)) for name in _job_fields(isinstance(job, HomeJob)))


@cache
def _job_fields(home: bool) -> tuple[str, ...]:
    kind = HomeJob if home else GuestJob
    return tuple(name for name in kind.__struct_fields__ if name not in OF_A_JOB)


def _same(value: Any) -> Any:
    return value


def _dict(value: dict[Any, Any]) -> Any:
    return tuple((_of(key), _of(each)) for key, each in value.items())


def _tuple(value: Iterable[Any]) -> Any:
    return tuple(map(_of, value))


def _set(value: Iterable[Any]) -> Any:
    return tuple(sorted(map(_of, value)))


def _float(value: float) -> Any:
    return "nan" if math.isnan(value) else value


_MAKERS: Final[dict[type, Callable[[Any], Any]]] = {
    **dict.fromkeys((int, str, bytes, bool, type(None)), _same),
    **dict.fromkeys((dict, OrderedDict, Counter), _dict),
    **dict.fromkeys((list, tuple, deque), _tuple),
    **dict.fromkeys((set, frozenset), _set),
    float: _float,
    # A job is told once, by its number, wherever else it is known.
    HomeJob: lambda job: ("job", job.job),
    GuestJob: lambda job: ("guest", job.lrms_key),
}
