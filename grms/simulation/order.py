"""Judges in which order partners are asked, from a site's records alone.

An independent implementation: for each job every time is recorded, and the AWRT is summed up anew,
as docs/protocol.md has it, whenever a submission leads to an offer.
"""

import math
from dataclasses import dataclass, field

from grms.simulation.promises import PromiseChecker
from grms.site.model.commands import Append, Command
from grms.site.model.events import Event, PartnerUp, Submit
from grms.site.model.records import (
    JobAbandoned,
    JobDeclined,
    JobDelegated,
    JobEnded,
    JobOffered,
    JobReceived,
    JobReleased,
    JobReoffered,
    JobReofferEnded,
    JobReturned,
    JobSentHome,
    PartnerStanding,
    Record,
    ReportDisbelieved,
)
from grms.site.scheduler.state import SiteState

_MORE = 1.0 + 1e-9


@dataclass(slots=True)
class _Known:
    # A job, as the records tell it.
    submitted: float
    processors: int
    requested_time: float
    partner: str = ""
    delegated: bool = False


@dataclass(slots=True)
class OrderChecker:
    """Follows one site while it lives."""

    judged: int = 0
    _jobs: dict[int, _Known] = field(default_factory=dict)
    _ended: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    _distrust: dict[str, int] = field(default_factory=dict)

    def follow(self, record: Record) -> None:
        """Notes a record."""
        if isinstance(record, JobReceived | JobReleased):
            self._begin(record)
        elif isinstance(record, JobOffered | JobReoffered):
            self._jobs[record.job].partner = record.partner
        elif isinstance(record, JobDelegated):
            self._jobs[record.job].delegated = True
        elif isinstance(record, JobDeclined | JobReofferEnded):
            self._jobs[record.job].partner = ""
        elif isinstance(record, JobAbandoned | JobReturned | JobSentHome):
            self._lost(record)
        elif isinstance(record, JobEnded):
            if isinstance(record.job, int):
                self._end(record, record.job)
        elif isinstance(record, ReportDisbelieved):
            self._distrust[record.partner] = self._distrust.get(record.partner, 0) + 10
        elif isinstance(record, PartnerStanding):
            # The journal was compacted: what stood for this is gone.
            self._distrust[record.partner] = record.distrust

    def _begin(self, record: JobReceived | JobReleased) -> None:
        if isinstance(record, JobReceived):
            request = record.request
            self._jobs[record.job] = _Known(record.time, request.processors, request.requested_time)
        else:
            self._jobs[record.job].submitted = record.time

    def _lost(self, record: JobAbandoned | JobReturned | JobSentHome) -> None:
        job = self._jobs[record.job]
        # What was lost with a job that was sent home is owed for, where an account is kept.
        owed = isinstance(record, JobSentHome) and not record.responded
        if job.delegated and not owed:
            weight = job.requested_time * job.processors
            response = max(0.0, record.time - job.submitted)
            self._ended.setdefault(job.partner, []).append((weight, response))
        job.partner, job.delegated = "", False

    def _end(self, record: JobEnded, number: int) -> None:
        job = self._jobs.pop(number)
        if job.partner:
            weight = record.run_time * job.processors
            response = max(0.0, record.end_time - job.submitted)
            self._ended.setdefault(job.partner, []).append((weight, response))
            self._distrust[job.partner] = max(0, self._distrust.get(job.partner, 0) - 1)

    def rank(self, partner: str, now: float, *, count_open: bool) -> tuple[bool, float]:
        """Returns by what a partner is ordered: whether it is not believed, and its AWRT."""
        ended = self._ended.get(partner, [])
        weight = math.fsum(one for one, _ in ended)
        weighted = math.fsum(one * other for one, other in ended)
        completed = weighted / weight if weight > 0 else 0.0
        there = [job for job in self._jobs.values() if job.partner == partner and count_open]
        open_weight = math.fsum(job.requested_time * job.processors for job in there)
        waited = math.fsum(
            job.requested_time * job.processors * (now - job.submitted) for job in there
        )
        if open_weight > 0 and waited / open_weight > completed:
            completed = (weighted + waited) / (weight + open_weight)
        return self._distrust.get(partner, 0) > 0, completed

    def judge(
        self,
        state: SiteState,
        event: Event,
        commands: list[Command],
        now: float,
        promises: PromiseChecker | None = None,
    ) -> str:
        """Notes an event and its commands; returns what was wrong with an offer, if any.

        `now` is in seconds on the site's clock; `promises` gets the same if the site holds partners
        to them.
        """
        wrong = ""
        for command in commands:
            if not isinstance(command, Append):
                continue
            for record in command.records:
                if isinstance(record, JobOffered | JobReoffered):
                    if promises is not None:
                        wrong = promises.judge(record) or wrong
                    if isinstance(event, Submit) and isinstance(record, JobOffered):
                        wrong = self._judge(state, record, now, promises) or wrong
                self.follow(record)
                if promises is not None:
                    wrong = promises.follow(record) or wrong
        return wrong

    def _judge(
        self, state: SiteState, record: JobOffered, now: float, promises: PromiseChecker | None
    ) -> str:
        location, known = state.settings.location, state.memory.jobs[record.job]
        width = known.request.processors
        able = [
            name
            for name, book in state.partners.items()
            if book.listed
            and book.reachable
            and not book.faulty
            and not book.incompatible
            and width <= book.processors
            and not book.returns.rests(known.user, known.request, now)
            and (promises is None or promises.trusts(name, record.job, now))
        ]
        self.judged += 1
        if location.order is not None:
            first = next((name for name in location.order if name in able), "nobody")
            return "" if first == record.partner else f"{record.partner} asked before {first}"
        count_open = location.count_open
        distrusted, awrt = self.rank(record.partner, now, count_open=count_open)
        for name in able:
            before = self.rank(name, now, count_open=count_open)
            if before[0] < distrusted or (before[0] == distrusted and before[1] * _MORE < awrt):
                return f"{record.partner} ({awrt:g}) asked before {name} ({before[1]:g})"
        return ""


@dataclass(slots=True)
class NumberChecker:
    """Sees to it that no site makes a new offer by a number that its partner says it has seen."""

    _told: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def judge(self, state: SiteState, event: Event, commands: list[Command]) -> list[str]:
        """Notes an event and its commands; returns what is wrong with the offers, in sentences.

        The first event of a life has the id 1.
        """
        name, wrong = state.settings.name, []
        if event.id == 1:
            self._told = {key: seen for key, seen in self._told.items() if key[0] != name}
        for command in commands:
            for record in command.records if isinstance(command, Append) else ():
                if not isinstance(record, JobOffered | JobReoffered):
                    continue
                told = self._told.get((name, record.partner))
                if told is not None and told[0] == state.memory.epoch and record.number <= told[1]:
                    wrong.append(f"{name} gives offer {told[0]}/{told[1]} a second time")
        if isinstance(event, PartnerUp) and event.offer_seen is not None:
            seen = event.offer_seen
            self._told[name, event.partner] = (seen.epoch, seen.number)
        return wrong
