"""The queue disciplines by name, as values that describe and as compiled schedulers that run.

What each discipline does, with every tie rule, is in docs/disciplines.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lrms_sim import _schedulers


class Discipline(Protocol):
    """What decides the order in which a machine starts its waiting jobs."""

    @property
    def name(self) -> str:
        """The word for this discipline in files and on the command line."""

    def scheduler(self) -> _schedulers.Scheduler:
        """Returns a new compiled scheduler; each machine owns one of its own."""


@dataclass(frozen=True, slots=True)
class Fcfs:
    """First come, first served: the head of the queue starts as soon as it fits."""

    name: str = "fcfs"

    def scheduler(self) -> _schedulers.Scheduler:
        """Returns a new compiled scheduler."""
        return _schedulers.FcfsScheduler()


@dataclass(frozen=True, slots=True)
class ListScheduling:
    """List scheduling: the first job in queue order that fits starts now."""

    name: str = "list"

    def scheduler(self) -> _schedulers.Scheduler:
        """Returns a new compiled scheduler."""
        return _schedulers.ListScheduler()


@dataclass(frozen=True, slots=True)
class Easy:
    """EASY backfilling (Lifka 1995): later jobs may pass unless they delay the blocked head.

    Attributes:
        per_event: make a pass after every single event, submissions before terminations at one
            instant, instead of one pass after all events of an instant.
    """

    per_event: bool = False

    @property
    def name(self) -> str:
        """The word for this discipline in files and on the command line."""
        return "easy-per-event" if self.per_event else "easy"

    def scheduler(self) -> _schedulers.Scheduler:
        """Returns a new compiled scheduler."""
        return _schedulers.EasyScheduler(per_event=self.per_event)


@dataclass(frozen=True, slots=True)
class Conservative:
    """Conservative backfilling with compression: every waiting job holds a reservation."""

    name: str = "conservative"

    def scheduler(self) -> _schedulers.Scheduler:
        """Returns a new compiled scheduler."""
        return _schedulers.ConservativeScheduler()


DISCIPLINES: dict[str, Callable[[], Discipline]] = {
    "fcfs": Fcfs,
    "list": ListScheduling,
    "easy": Easy,
    "easy-per-event": lambda: Easy(per_event=True),
    "conservative": Conservative,
}


def discipline_by_name(name: str) -> Discipline:
    """Returns the discipline of that name.

    Raises:
        ValueError: there is none; the text lists those there are.
    """
    try:
        return DISCIPLINES[name]()
    except KeyError:
        raise ValueError(
            f"unknown discipline {name!r}; there are: {', '.join(DISCIPLINES)}"
        ) from None
