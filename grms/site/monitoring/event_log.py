"""The log of what happens to jobs, offers and partners: one entry for each fact.

The pure state does not log; its records and events pass here. `debug` has every fact, with the job,
the offer, the partner and the event that led to it (`cause`). `info` has what a person wants to see
of a busy site: partners that come and go, failures, and a count of everything once a minute
(`activity`). Actions of people are in audit lines (`Admission.audit`). A partner that contradicts itself
or talks nonsense with each call cannot flood the log.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import Any, Final

import structlog

from grms.daemon.pacing import Seldom
from grms.lrms import base
from grms.site.model import events, records
from grms.site.model.commands import AnswerOffer
from grms.site.model.events import Event, LrmsNews
from grms.site.model.jobs import Exit, GuestRef, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import Record
from grms.site.monitoring.subscriber import Handled, Subscriber, is_surprise
from grms.site.runtime.event_loop import Engine
from lrms_sim.workload.requests import Request as Needs

ACTIVITY_S: Final = 60.0
"""Interval of `activity` entries, seconds."""

ALIKE_LOGGED_PER_S: Final = 0.5
"""Rate of logging the same event of one partner above `debug`, with ten seconds' worth at once."""

_LEFT_OUT: Final = frozenset(
    {
        *("time", "payload", "idempotency_key", "launch_key", "name", "settled_below", "load"),
        "restored",
    }
)
"""Fields not logged: what users write, and what says nothing."""

_WARNINGS: Final[tuple[type[Record], ...]] = (
    records.JobAbandoned,
    records.PartnerFaulted,
    records.ReportDisbelieved,
    records.EpochBegun,
    records.JobLost,
    records.JobReturned,
    records.StateMissed,
)
"""Records of anomalies."""

_DECISIONS: Final[tuple[type[Record], ...]] = (
    records.JobUnplaced,
    records.JobTakenBack,
    records.JobResubmitted,
    records.JobWrittenOff,
    records.PartnerPardoned,
)
"""Records of operators' decisions."""

_BEGUN: Final[tuple[type[Record], ...]] = (records.JobOffered, records.JobReoffered)
"""Records that begin an offer."""

_FAILURES: Final = frozenset(
    {
        Outcome.FAILED,
        Outcome.NODE_FAIL,
        Outcome.OUT_OF_MEMORY,
        Outcome.LOST,
        Outcome.UNKNOWN,
    }
)
"""Outcomes that may need attention."""

_LEVELS: Final[dict[type[Record], str]] = {
    **dict.fromkeys(_WARNINGS, "warning"),
    **dict.fromkeys((*_DECISIONS, records.JobSentHome, records.StateCame), "info"),
}

_SHOWN: Final = frozenset({*_LEVELS, records.JobEnded, records.JobLeaving})
"""Kinds of records of which some entries have another level than `debug`."""

_EVENTS: Final[dict[type[Event | LrmsNews], str]] = {
    events.PartnerUp: "info",
    events.PartnerDown: "warning",
    events.PartnerLost: "warning",
    events.PartnerFaulty: "warning",
    events.PartnerIncompatible: "warning",
    events.PartnerDuplicated: "warning",
    events.OfferDisputed: "warning",
    events.LrmsRefused: "warning",
    events.LrmsAppeared: "warning",
    base.Unseen: "warning",
    base.SeenAgain: "info",
    base.Away: "warning",
    base.Back: "info",
    events.Drain: "info",
    events.Resume: "info",
    events.CircuitBreakerLooked: "debug",
    events.PoliciesChanged: "debug",
    events.OfferFailed: "debug",
    events.StatusFailed: "debug",
    events.ReportAnswered: "debug",
    events.ReportFailed: "debug",
    events.ProbeFailed: "debug",
}
"""Events that do not always leave a record, and their levels."""


def event_name(thing: type) -> str:
    """Returns the name of a class as the log has it: `JobDelegated` is `job_delegated`."""
    name = thing.__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


_NAMES = {
    kind: event_name(kind)
    for module in (events, records)
    for kind in vars(module).values()
    if isinstance(kind, type)
} | {
    base.Unseen: "lrms_unseen",
    base.SeenAgain: "lrms_seen",
    base.Away: "lrms_away",
    base.Back: "lrms_back",
}


class EventLog:
    """Logs what the engine's events lead to.

    Args:
        engine: with the state.
        complete: whether the log takes entries of the level `debug` at all.
    """

    def __init__(
        self,
        log: structlog.typing.FilteringBoundLogger,
        subscriber: Subscriber,
        engine: Engine,
        *,
        complete: bool,
    ) -> None:
        self._log = log
        self._engine = engine
        self._complete = complete
        self._counts: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._alike = Seldom(ALIKE_LOGGED_PER_S)
        for kind, level in _EVENTS.items():
            if complete or level != "debug":
                subscriber.on(kind, partial(self._event, level))
        subscriber.on(events.Restarted, self._taken_up)
        subscriber.on(events.OfferReceived, self._answered)
        for noted in records.KINDS:
            subscriber.on(noted, self._count)
            if complete or noted in _SHOWN:
                subscriber.on(noted, self._record)

    def close(self) -> None:
        """Tells what has happened since it was last told."""
        if self._timer is not None:
            self._timer.cancel()
            self._tell()

    @property
    def _site(self) -> str:
        return self._engine.state.settings.name

    def _taken_up(self, event: events.Restarted, _: Handled) -> None:
        counts = self._engine.state.job_counts()
        jobs = {state.value: number for state, number in counts.items() if number}
        self._log.info("taken_up", jobs=jobs, cause=event.id)

    def _answered(self, event: events.OfferReceived, handled: Handled) -> None:
        answers = (each for each in handled.commands if isinstance(each, AnswerOffer))
        unused = any(answer.unused for answer in answers)
        if unused and (more := self._alike.to_tell(f"unused {event.partner}")) is not None:
            state = self._engine.state
            budget = state.partners[event.partner].budget
            self._log.warning(
                "acceptances_unused",
                partner=event.partner,
                unused=budget.unused_lately(self._engine.clock.now()),
                declined=budget.declined,
                cause=event.id,
                **more,
            )

    def _event(self, level: str, event: Event | LrmsNews, handled: Handled) -> None:
        if not is_surprise(event, handled):
            return
        kind, partner = type(event), getattr(event, "partner", "")
        more: dict[str, int] | None = {}
        if partner and not self._complete:
            more = self._alike.to_tell(f"{_NAMES[kind]} {partner}")
        if more is None:
            return
        self._write(level, _NAMES[kind], handled.event.id, {**_values(event, self._site), **more})

    def _count(self, record: Record, _: Handled) -> None:
        self._counts[_name(record)] += 1
        if self._timer is None:
            # Without a loop nobody is there to be told later.
            with suppress(RuntimeError):
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(ACTIVITY_S, self._tell)

    def _record(self, record: Record, handled: Handled) -> None:
        kind = type(record)
        level = _LEVELS.get(kind, "debug")
        guest = _is_of_guest(record)
        if isinstance(record, records.JobLeaving) and guest:
            level = "warning"
        elif isinstance(record, records.JobEnded) and record.outcome in _FAILURES and not guest:
            level = "info"
        if level == "debug" and not self._complete:
            return
        values = _values(record, self._site)
        if guest:
            values.pop("reason", None)  # which nobody gives for a partner's job
        away = handled.away.get(getattr(record, "job", 0))
        if away is not None and "partner" not in values:
            # With whom it was: after the fact the job may be nobody's.
            values["partner"] = away.partner
            values["offer"] = _offer_name(away.offer)
        elif "number" in values and (named := self._named(record, handled)):
            del values["number"]
            values |= named
        self._write(level, _name(record), handled.event.id, values)

    def _named(self, record: Any, handled: Handled) -> dict[str, str]:
        """Returns what a record is about that has an offer's number alone: the offer, and its job."""
        for other in handled.records:
            number = getattr(other, "job", 0)
            away = handled.away.get(number)
            if away is not None and (away.partner, away.offer.number) == (
                record.partner,
                record.number,
            ):
                return {"job": f"{self._site}-{number}", "offer": _offer_name(away.offer)}
        if type(record) in _BEGUN:
            return {"offer": _offer_name(OfferId(self._engine.state.memory.epoch, record.number))}
        return {}

    def _write(self, level: str, name: str, cause: int, values: dict[str, Any]) -> None:
        getattr(self._log, level)(name, cause=cause, **values)

    def _tell(self) -> None:
        self._timer = None
        counts = dict(sorted(self._counts.items()))
        self._counts.clear()
        self._log.info("activity", **counts)


def _is_of_guest(record: Record) -> bool:
    return isinstance(getattr(record, "job", None), GuestRef)


def _name(record: Record) -> str:
    # What happens to a partner's job has a name of its own.
    name = _NAMES[type(record)]
    return (
        f"guest_{name.removeprefix('job_')}"
        if name.startswith("job_") and _is_of_guest(record)
        else name
    )


def _values(thing: Event | LrmsNews | Record, site: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    names = (
        thing.__struct_fields__
        if isinstance(thing, Record)
        else [each.name for each in fields(thing)]
    )
    for name in names:
        if name in _LEFT_OUT or name == "id":
            continue
        value = getattr(thing, name)
        if isinstance(value, Request | Exit | GuestRef):
            values |= _spread(value)
            continue
        if name == "job":
            value = f"{site}-{value}"
        elif isinstance(value, OfferId):
            value = _offer_name(value)
        elif name == "offers":
            value = [_offer_name(offer) for offer in value]
        elif isinstance(value, Outcome):
            value = value.value
        elif isinstance(value, Needs):
            value = str(value)
        elif name in {"transfer", "location", "partners", "translation", "nodes"}:
            continue
        values["lrms_key" if name == "key" else name] = value
    return values


def _offer_name(offer: OfferId) -> str:
    return f"{offer.epoch:x}/{offer.number}"


def _spread(value: Request | Exit | GuestRef) -> dict[str, Any]:
    # What is several values of an entry.
    if isinstance(value, Request):
        needs = {} if value.needs is None else {"needs": str(value.needs)}
        return {"processors": value.processors, "requested_time_s": value.requested_time, **needs}
    if isinstance(value, GuestRef):
        return {"partner": value.partner, "offer": _offer_name(value.offer)}
    known = {"exit_code": value.code, "signal": value.signal}
    return {name: number for name, number in known.items() if number is not None}
