"""Pilots of a site: when one is asked for, what they tell, and what follows for reservations.

A program is in the journal before a pilot gets it, with the pilot's number: no other pilot ever gets it. What the pilot
tells is in the journal before the pilot may forget it. So each program is started at most once, whatever connection,
daemon or pilot breaks; and the end of each is told once.

A program that has certainly not begun gives its reservation back: its owner can have it run elsewhere. One that has
begun, or may have, ends with its pilot.
"""

import math
from collections.abc import Iterable

from grms.site.model.commands import (
    PilotForget,
    PilotGoes,
    PilotKill,
    PilotKnows,
    PilotMove,
    PilotRun,
    PilotStart,
    PublishReservation,
)
from grms.site.model.events import (
    PilotConnected,
    PilotDrains,
    PilotEnded,
    PilotLeaves,
    PilotTold,
    PilotWanted,
    RunNews,
    RunState,
)
from grms.site.model.lifecycle import Outcome, ReservationState
from grms.site.model.pilots import Pilot
from grms.site.model.records import (
    PilotAsked,
    PilotDrained,
    PilotOpened,
    PilotOver,
    Record,
    ReservationEnded,
    ReservationReleased,
    ReservationStarted,
)
from grms.site.model.reservations import Reservation
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.transaction import Transaction

UNTIL_SLACK_S = 1.0
"""Two statements of one end that differ by less are the same."""


class PilotHandler:
    """Handles what is told of pilots."""

    def __init__(self, memory: StateTables) -> None:
        self._pilots = memory.pilots
        self._book = memory.reservations

    def wanted(self, event: PilotWanted, transaction: Transaction) -> None:
        """Asks for a pilot, unless one is there or on its way."""
        resource = self._book.resources.get(event.resource_id)
        latest = self._pilots.latest(event.resource_id)
        on_its_way = latest is not None and not (latest.drained or latest.is_over)
        if resource is None or not resource.piloted or on_its_way:
            return
        number = self._pilots.next_number
        name = f"{transaction.memory.epoch:x}-{number}"
        transaction.note(PilotAsked(transaction.now, number, event.resource_id, name))
        transaction.do(PilotStart(transaction.cause, number, event.resource_id))

    def take_up(self, transaction: Transaction) -> None:
        """Resumes the pilots that had not ended."""
        for pilot in self._pilots.present.values():
            transaction.do(PilotStart(transaction.cause, pilot.number, pilot.resource_id))

    def connected(self, event: PilotConnected, transaction: Transaction) -> None:
        """Opens a pilot, takes what it tells, and sends what it has not got."""
        pilot = self._pilots.present.get(event.pilot)
        if pilot is None:
            return
        if math.isnan(pilot.until) or abs(pilot.until - event.until) >= UNTIL_SLACK_S:
            transaction.note(PilotOpened(transaction.now, event.pilot, event.until, event.host))
        if event.drained:
            self._drain(event.pilot, event.drained, transaction)
        self._take(event.pilot, event.runs, transaction)
        has = {run.reservation for run in event.runs}
        for found in self._runs_of(event.pilot):
            if found.number in has:
                # It may have been moved meanwhile.
                transaction.do(PilotMove(transaction.cause, event.pilot, found.number))
            elif found.state is ReservationState.LAUNCHED:
                transaction.do(PilotRun(transaction.cause, event.pilot, found.number))
        self._withdraw(self._pilots.pilots[event.pilot], transaction)

    def told(self, event: PilotTold, transaction: Transaction) -> None:
        """Records starts and ends."""
        if event.pilot in self._pilots.present:
            self._take(event.pilot, event.runs, transaction)

    def drains(self, event: PilotDrains, transaction: Transaction) -> None:
        """Gives nothing more to a pilot, and back what is reserved there."""
        if event.pilot in self._pilots.present:
            self._drain(event.pilot, event.reason, transaction)

    def leaves(self, event: PilotLeaves, transaction: Transaction) -> None:
        """Lets a pilot go: what it has told before is durable when this is carried out."""
        transaction.do(PilotGoes(transaction.cause, event.pilot))

    def ended(self, event: PilotEnded, transaction: Transaction) -> None:
        """Ends what a pilot had, as far as is known."""
        if event.pilot not in self._pilots.present:
            return
        self._take(event.pilot, event.runs, transaction)
        for found in self._runs_of(event.pilot):
            reason = f"its pilot has ended, and it is unknown whether it has begun: {event.reason}"
            end = RunNews(found.number, RunState.ENDED, outcome=Outcome.UNKNOWN, reason=reason)
            self._end(found, end, transaction)
        transaction.note(
            PilotOver(transaction.now, event.pilot, event.reason, event.held, event.used)
        )
        transaction.do(PilotForget(transaction.cause, event.pilot))
        self._withdraw(self._pilots.pilots[event.pilot], transaction)

    # --- parts ---------------------------------------------------------------------------------

    def _runs_of(self, pilot: int) -> list[Reservation]:
        return [one for one in self._book.open.values() if one.pilot == pilot]

    def _drain(self, pilot: int, reason: str, transaction: Transaction) -> None:
        if not self._pilots.pilots[pilot].drained:
            transaction.note(PilotDrained(transaction.now, pilot, reason or "it drains"))
            self._withdraw(self._pilots.pilots[pilot], transaction)

    def _withdraw(self, pilot: Pilot, transaction: Transaction) -> None:
        # Whoever has reserved what is not there any more can reserve elsewhere.
        if self._pilots.latest(pilot.resource_id) is not pilot:
            return
        until = pilot.until if pilot.is_open else -math.inf
        gone = [
            one.number
            for one in self._book.open.values()
            if one.resource_id == pilot.resource_id
            and one.state is ReservationState.BOOKED
            and one.end > until
        ]
        for number in gone:
            reason = pilot.reason or pilot.drained or "its pilot ends earlier"
            self._change(number, ReservationReleased(transaction.now, number, reason), transaction)

    def _take(self, pilot: int, runs: Iterable[RunNews], transaction: Transaction) -> None:
        known = []
        for news in runs:
            found = self._book.open.get(news.reservation)
            if news.state is RunState.ENDED:
                known.append(news.reservation)
            if found is None or found.pilot != pilot:
                if news.state is not RunState.ENDED:
                    transaction.do(PilotKill(transaction.cause, pilot, news.reservation))
                continue
            self._start(found, news, transaction)
            if news.state is RunState.ENDED:
                self._end(self._book.open[found.number], news, transaction)
        if known:
            transaction.do(PilotKnows(transaction.cause, pilot, tuple(known)))

    def _start(self, found: Reservation, news: RunNews, transaction: Transaction) -> None:
        if news.start_time is not None and found.state is ReservationState.LAUNCHED:
            start = max(news.start_time, found.launch_time)
            record = ReservationStarted(transaction.now, found.number, start)
            self._change(found.number, record, transaction)

    def _end(self, found: Reservation, news: RunNews, transaction: Transaction) -> None:
        now = transaction.now
        record: Record
        if news.outcome is None:
            record = ReservationReleased(now, found.number, news.reason)
        else:
            begun = found.launch_time if math.isnan(found.start_time) else found.start_time
            end = now if news.end_time is None else min(news.end_time, now)
            record = ReservationEnded(
                now, found.number, max(begun, end), news.outcome, news.exit, news.reason
            )
        self._change(found.number, record, transaction)

    def _change(self, number: int, record: Record, transaction: Transaction) -> None:
        transaction.note(record)
        transaction.do(PublishReservation(transaction.cause, self._book.reservations[number]))
