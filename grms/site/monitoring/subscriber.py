"""Distributes events at a site to all outputs: log, figures, MQTT, dashboard.

The engine passes each event and its commands to one subscriber. Each output registers for kinds of
events, commands and records (`on`) and gets only these, in order: the event, its records, its
commands. That is before the records are durable: an output that shows what the journal has waits
for the commit.

An output may pass findings to others: how long an offer's answer took (`OfferTimed`), that a job is
shown otherwise than before (`JobChange`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

import msgspec

from grms.daemon.loop import EngineFailedError
from grms.site.model.commands import Append, Command, LrmsCancel, SendOffer
from grms.site.model.events import Event, LrmsAppeared, LrmsTold, OfferAnswered, OfferFailed
from grms.site.model.jobs import OfferId
from grms.site.model.records import Record
from grms.site.model.state_tables import StateTables
from grms.util.values import dataclass

OFFERS_TIMED: Final = 10_000
"""Most offers whose answers are awaited."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Away:
    """Where an own user's job is, or may be.

    Attributes:
        partner: that has been asked to take it.
        offer: by which.
        confirms: the partner holds a slot for it, and must be told to start it.
        take_back: an operator wants it back from there.
    """

    partner: str
    offer: OfferId
    confirms: bool
    take_back: bool


class Handled(msgspec.Struct, frozen=True):
    """What the engine has just handled.

    Attributes:
        away: own users' jobs that were with a partner before, by number; no one may have them now.
    """

    event: Event
    commands: Sequence[Command]
    records: Sequence[Record]
    away: Mapping[int, Away]


def is_surprise(news: object, handled: Handled) -> bool:
    """Returns whether what a batch system tells was not expected.

    It tells of each job that it has, anew after every start; one that this site waits for leads to nothing.
    """
    if not isinstance(news, LrmsAppeared):
        return True
    return any(isinstance(command, LrmsCancel) for command in handled.commands)


Take = Callable[[T, Handled], None]
"""Takes one thing, and what it is a part of."""


class Subscriber:
    """Tells outputs of what they take; `seen` is what the engine calls.

    Args:
        memory: of the site, before its first event.
    """

    def __init__(self, memory: StateTables) -> None:
        self._memory = memory
        self._takers: dict[type[Any], list[Take[Any]]] = {}
        self._away: dict[int, Away] = {}
        for number, job in memory.jobs.items():
            if job.partner:
                self._follow(number)

    def on(self, kind: type[T], take: Take[T]) -> None:
        """Registers a function for one kind; several are called in this order.

        News of the batch system is of its own kind (`LrmsTold.news`).
        """
        self._takers.setdefault(kind, []).append(take)

    def seen(self, event: Event, commands: Sequence[Command]) -> None:
        """Tells of an event and what came of it."""
        # What is noted comes first.
        first = commands[0] if commands else None
        records = first.records if isinstance(first, Append) else ()
        handled = Handled(event, commands, records, self._away)
        takers = self._takers
        happened = event.news if isinstance(event, LrmsTold) else event
        for what in (happened, *records, *commands):
            for take in takers.get(type(what), ()):
                take(what, handled)
        for record in records:
            number = getattr(record, "job", None)
            if isinstance(number, int):
                self._follow(number)

    def _follow(self, number: int) -> None:
        # Only what is noted moves a job from one partner to another.
        job = self._memory.jobs.get(number)
        if job is not None and job.partner and job.outcome is None:
            self._away[number] = Away(job.partner, job.offer, job.confirms, job.take_back)
        else:
            self._away.pop(number, None)

    def tell(self, what: object, handled: Handled) -> None:
        """Tells those who take it of one thing."""
        for take in self._takers.get(type(what), ()):
            take(what, handled)


class Guarded:
    """Outputs whose errors are isolated: the engine would take them for its own."""

    def __init__(self, subscriber: Subscriber, failed: Callable[[Exception], None]) -> None:
        self.tell = subscriber.tell
        self._subscriber = subscriber
        self._failed = failed

    def on(self, kind: type[T], take: Take[T]) -> None:
        """Has a function told of everything of one kind."""

        def guarded(what: T, handled: Handled) -> None:
            try:
                take(what, handled)
            except EngineFailedError:
                raise
            except Exception as error:  # noqa: BLE001  # as above
                self._failed(error)

        self._subscriber.on(kind, guarded)


@dataclass(frozen=True, slots=True)
class OfferTimed:
    """An offer that was sent has its answer, after `latency_s` real seconds.

    The answer is `unknown` if there was none in time, or the link broke: it is resolved later.
    """

    partner: str
    answer: Literal["accept", "decline", "unknown"]
    latency_s: float


class OfferTimes:
    """Tells how long answers to offers took."""

    def __init__(self, subscriber: Subscriber) -> None:
        self._tell = subscriber.tell
        self._sent: dict[tuple[str, OfferId], float] = {}
        subscriber.on(SendOffer, self._begun)
        subscriber.on(OfferAnswered, self._answered)
        subscriber.on(OfferFailed, self._answered)

    def _begun(self, command: SendOffer, _: Handled) -> None:
        self._sent[command.partner, command.offer] = time.perf_counter()
        if len(self._sent) > OFFERS_TIMED:
            del self._sent[next(iter(self._sent))]

    def _answered(self, event: OfferAnswered | OfferFailed, handled: Handled) -> None:
        began = self._sent.pop((event.partner, event.offer), None)
        if began is None or (isinstance(event, OfferFailed) and not event.sent):
            return
        answer: Literal["accept", "decline", "unknown"] = "unknown"
        if isinstance(event, OfferAnswered):
            answer = "accept" if event.accepted else "decline"
        self._tell(OfferTimed(event.partner, answer, time.perf_counter() - began), handled)
