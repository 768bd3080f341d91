"""The queue disciplines by name, as descriptions and as compiled schedulers.

docs/disciplines.md has the rules and ties of each.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from lrms_sim.kernel._conservative import ConservativeScheduler
from lrms_sim.kernel._easy import EasyScheduler
from lrms_sim.kernel._easy_plus_plus import EasyPlusPlusScheduler
from lrms_sim.kernel._fcfs import FcfsScheduler, ListScheduler
from lrms_sim.kernel._python_scheduler import PythonScheduler
from lrms_sim.kernel._scheduler import Scheduler
from lrms_sim.kernel._strategies import StrategyScheduler
from lrms_sim.scheduling.criteria import GroupOrder, KeyOrder, StaticOrder
from lrms_sim.scheduling.strategies import ALGORITHMS, Strategy
from lrms_sim.scheduling.user_defined import (
    UserDefinedDiscipline,
    load_user_defined,
    names_user_defined,
)
from lrms_sim.util.plugins import DISCIPLINE_GROUP


class Discipline(Protocol):
    """What decides the order in which a machine starts its waiting jobs."""

    @property
    def name(self) -> str:
        """The word for this discipline in files and on the command line."""

    @property
    def per_event(self) -> bool:
        """Whether a pass follows every single event, submissions before terminations.

        Otherwise one pass follows all events of an instant, terminations before submissions.
        """

    def scheduler(self) -> Scheduler:
        """Returns a new compiled scheduler; each machine owns one of its own."""


class Batched:
    """What the batched disciplines have in common."""

    __slots__ = ()

    @property
    def per_event(self) -> bool:
        """Whether a pass follows every single event."""
        return False


@dataclass(frozen=True, slots=True)
class Fcfs(Batched):
    """First come, first served: the head of the queue starts as soon as it fits."""

    name: str = "fcfs"

    def scheduler(self) -> Scheduler:
        """Returns a new compiled scheduler."""
        return FcfsScheduler()


@dataclass(frozen=True, slots=True)
class ListScheduling(Batched):
    """List scheduling: the first job in queue order that fits starts now."""

    name: str = "list"

    def scheduler(self) -> Scheduler:
        """Returns a new compiled scheduler."""
        return ListScheduler()


@dataclass(frozen=True, slots=True)
class Easy:
    """EASY backfilling (Lifka 1995): later jobs may pass unless they delay the blocked head.

    Attributes:
        per_event: make a pass after every single event, submissions before terminations and these
            in the order of their starts, instead of one pass after all events of an instant. A
            running job whose estimated end has come counts as gone.
    """

    per_event: bool = False

    @property
    def name(self) -> str:
        """The word for this discipline in files and on the command line."""
        return "easy-per-event" if self.per_event else "easy"

    def scheduler(self) -> Scheduler:
        """Returns a new compiled scheduler."""
        return EasyScheduler(per_event=self.per_event)


@dataclass(frozen=True, slots=True)
class Conservative(Batched):
    """Conservative backfilling with compression: every waiting job holds a reservation."""

    name: str = "conservative"

    def scheduler(self) -> Scheduler:
        """Returns a new compiled scheduler."""
        return ConservativeScheduler()


@dataclass(frozen=True, slots=True)
class EasyPlusPlus:
    """EASY++ (Tsafrir, Etsion, Feitelson 2007): EASY per event on predicted run times.

    The prediction is the mean run time of the user's last two ended jobs, at most the request; a
    running job that outlives it gets a longer one. Jobs with the shortest predictions are
    backfilled first.

    Attributes:
        predicts: False uses the request as the prediction; that is EASY per event with the
            shortest job backfilled first.
    """

    predicts: bool = True

    @property
    def name(self) -> str:
        """The word for this discipline in files and on the command line."""
        return "easy-plus-plus" if self.predicts else "easy-sjbf-per-event"

    @property
    def per_event(self) -> bool:
        """Whether a pass follows every single event; it does."""
        return True

    def scheduler(self) -> Scheduler:
        """Returns a new compiled scheduler."""
        return EasyPlusPlusScheduler(predicts=self.predicts)


def _ordered(name: str, order: KeyOrder | StaticOrder) -> Callable[[], Discipline]:
    return lambda: Strategy("fcfs", order, name)


def _backfilling(name: str, order: KeyOrder | StaticOrder) -> Callable[[], Discipline]:
    return lambda: Strategy("easy", "arrival", name, order)


DISCIPLINES: dict[str, Callable[[], Discipline]] = {
    "fcfs": Fcfs,
    "list": ListScheduling,
    "easy": Easy,
    "easy-per-event": lambda: Easy(per_event=True),
    "conservative": Conservative,
    "fcfs-group": lambda: Strategy("fcfs", GroupOrder()),
    "easy-group": lambda: Strategy("easy", GroupOrder()),
    "conservative-group": lambda: Strategy("conservative", GroupOrder()),
    "sjf": _ordered("sjf", "requested_time"),
    "saf": _ordered("saf", "area"),
    "ljf": _ordered("ljf", "longest"),
    "wfp3": _ordered("wfp3", "wfp3"),
    "f1": _ordered("f1", "f1"),
    "f2": _ordered("f2", "f2"),
    "f3": _ordered("f3", "f3"),
    "f4": _ordered("f4", "f4"),
    "easy-sjbf": _backfilling("easy-sjbf", "requested_time"),
    "easy-saf": _backfilling("easy-saf", "area"),
    "easy-sjbf-per-event": lambda: EasyPlusPlus(predicts=False),
    "easy-plus-plus": EasyPlusPlus,
}


def discipline_by_name(name: str) -> Discipline:
    """Returns the discipline of that name.

    `name` is one of `DISCIPLINES`, an entry point of the group `hanse.disciplines`, or
    `package.module:name`.

    Raises:
        ValueError: there is none, it cannot be loaded, or no machine can run it; the text lists
            those there are.
    """
    if name in DISCIPLINES:
        return DISCIPLINES[name]()
    if not names_user_defined(DISCIPLINE_GROUP, name):
        raise ValueError(
            f"unknown discipline {name!r}; there are: {', '.join(DISCIPLINES)}, and "
            "package.module:name of one written in Python"
        )
    discipline = as_discipline(load_user_defined(DISCIPLINE_GROUP, name, "discipline"))
    try:
        scheduler_of(discipline)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return discipline


_USER_ORDER = 12
"""The number that the kernel has for the order by users' keys."""


class _UserWords(NamedTuple):
    # The strategy as the kernel takes it: groups and criteria are of no account.
    algorithm: int = ALGORITHMS.index("easy")
    order: int = _USER_ORDER
    backfill: int = _USER_ORDER
    groups: tuple[int, ...] = (1, 2, 3, 4, 5)
    needs_groups: bool = False


@dataclass(frozen=True, slots=True)
class EasyByUser(Batched):
    """EASY on the waiting jobs by ascending keys of their users; of one user in order of arrival.

    Five user groups have 120 orders. Keys per user give many more schedules, for the search for
    trade-offs (`grms.learning.queueing.front`).

    Without memory, as every `Strategy`: the head of the ordered queue is protected. Users are
    numbered in ascending order (`lrms_sim.machine.machine.user_numbers`); jobs of unknown users, and of
    users beyond the keys, come last.

    Attributes:
        keys: a finite number for each user, at least one.
    """

    keys: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise ValueError("an order of users needs a key for each of them; there is none")
        for place, key in enumerate(self.keys):
            if not math.isfinite(key):
                raise ValueError(f"the key of user {place} is {key}; it must be a finite number")

    @property
    def name(self) -> str:
        """The word for it in reports."""
        return "easy-by-user"

    def scheduler(self) -> StrategyScheduler:
        """Returns a new compiled scheduler; each machine owns one of its own."""
        return StrategyScheduler([_UserWords()], user_keys=np.array(self.keys, np.float64))


def as_discipline(given: object) -> Discipline:
    """Returns a discipline as machines take it: of one written in Python a `UserDefinedDiscipline`."""
    written = isinstance(given, FunctionType) or callable(getattr(given, "decide", None))
    if written and not isinstance(given, type):
        return UserDefinedDiscipline(given)
    return cast("Discipline", given)


def scheduler_of(
    discipline: Discipline, job_ids: Sequence[int] | npt.NDArray[np.int64] | None = None
) -> Scheduler:
    """Returns a new scheduler of a discipline, for the machine that is to own it.

    `job_ids` are the log's ids by job number, for disciplines written in Python.

    Raises:
        TypeError: it is no discipline, or its scheduler cannot be run.
    """
    discipline = as_discipline(discipline)
    make = getattr(discipline, "scheduler", None)
    scheduler = make() if callable(make) and not isinstance(discipline, type) else None
    if not isinstance(scheduler, Scheduler):
        found = repr(discipline) if scheduler is None else f"the scheduler of {discipline!r}"
        raise TypeError(
            f"{found} is none that a machine can run; a queue discipline is one of those in "
            f"lrms_sim.scheduling.disciplines ({', '.join(DISCIPLINES)}), a function or an object with a "
            "method decide(view), or a kernel of its own (CONTRIBUTING.md says how)"
        )
    if isinstance(scheduler, PythonScheduler):
        scheduler.name_jobs(job_ids)
    return scheduler
