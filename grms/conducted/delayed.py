"""Site states conducted on one clock, with a network that takes its time and clocks that go apart.

The replay of `grms.conducted.replay` with three differences:

- a message from site to site (an offer, its answer, the report of an end, what acknowledges it) takes `delay`
  seconds, and answers may be later still. An offer is decided by what the partner is when it arrives, and
  the job neither waits at home nor runs anywhere meanwhile;
- a site's clock may be ahead or behind. It stamps what a site notes and what it reports; machines and
  the network run by the true time, and results are in it;
- every end of a job is told at its own moment, as a report then begins its way.

In a round a site puts each question when the one before has its answer, so that a round takes time. A place that
is held for a waiting job is nothing that the partner's batch system knows of: its own jobs may take the
processors before the job is there, which then waits. A site holds its rounds by its own clock.

Nothing is lost, no question and no place is given up. With no delay and equal clocks the schedule
is that of the federation kernel. docs/experiments.md has what it was made for.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grms.conducted.replay import ConductedReplay
from grms.federation.federation import Site
from grms.site.facts.commands import (
    AnswerOffer,
    AnswerReport,
    AnswerStatus,
    Command,
    SendOffer,
    SendReport,
    SendResolve,
    SendWithdraw,
)

if TYPE_CHECKING:
    from grms.conducted.replay import _Host


@dataclass(frozen=True, slots=True)
class Delays:
    """How messages and clocks are late.

    Attributes:
        message: each message takes so long, seconds, at least 0.
        late: so many of the answers to offers are later, a part; 0 to 1.
        extra: by so much, seconds, at least 0.
        clocks: by how much each site's clock is ahead, seconds, in site order; empty: by nothing.

    Raises:
        ValueError: a number is out of its bounds.
    """

    message: float = 0.0
    late: float = 0.0
    extra: float = 0.0
    clocks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Checks the numbers."""
        for name in ("message", "extra"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be finite, at least 0")
        if not 0 <= self.late <= 1:
            raise ValueError(f"late is {self.late}; it must be in 0..1")


class DelayedReplay(ConductedReplay):
    """A replay of a federation through site states whose messages take time.

    Attributes:
        offers: how many questions were put so far.
        delivered: how many messages have arrived so far.

    Args:
        sites: as for `grms.federation.federation.replay`.
        delays: how messages and clocks are late.
        rng: draws which answers are later than others; needed where some are.

    Raises:
        ValueError: a site has passes per event, there are more or fewer clocks than sites, or
            nothing to draw from.
    """

    def __init__(
        self, sites: Sequence[Site], delays: Delays, rng: np.random.Generator | None = None
    ) -> None:
        for site in sites:
            if site.discipline.per_event:
                raise ValueError(
                    f"site {site.name!r}: a discipline that makes passes per event is not replayed with delays"
                )
        if delays.clocks and len(delays.clocks) != len(sites):
            raise ValueError(f"{len(delays.clocks)} clocks for {len(sites)} sites")
        if delays.late and rng is None:
            raise ValueError("some answers are to be later than others; an rng is needed")
        super().__init__(sites)
        self.offers = 0
        self.delivered = 0
        self._delays = delays
        self._rng = rng
        self._under_way: list[tuple[float, int, Callable[[], None]]] = []
        self._sent = itertools.count()
        for host, offset in zip(self.hosts, delays.clocks, strict=False):
            host.ahead = offset
        self._holders = [host for host in self.hosts if host.period < math.inf]

    def _reach(self, now: float) -> None:
        self._go_on(now)
        if now < math.inf:
            self.advance(now)

    def _go_on(self, until: float) -> None:
        # Ends of jobs, arrivals of messages and rounds up to a moment, each at its own and in this order.
        while True:
            ends = min(host.machine.next_event_time for host in self.hosts)
            arrives = self._under_way[0][0] if self._under_way else math.inf
            due, holders = self._next_round()
            now = min(ends, arrives, due)
            if now == math.inf or now > until:
                return
            self.advance(now)
            while self._under_way and self._under_way[0][0] <= now:
                _, _, deliver = heapq.heappop(self._under_way)
                self.delivered += 1
                deliver()
                self.settle()
                self._make_passes()
            if due <= now:
                for host in holders:
                    if host.machine.state.jobs_waiting:
                        host.hold_round()

    def _make_passes(self) -> None:
        for host in self.hosts:
            if host.owes_pass:
                host.make_pass()

    def _next_round(self) -> tuple[float, "list[_Host]"]:
        # When the next rounds are held, and who holds them; while nobody waits there are none.
        due: float = math.inf
        holders: list[_Host] = []
        if any(host.machine.state.jobs_waiting for host in self._holders):
            for host in self._holders:
                moment = self._round_after(host)
                if moment < due:
                    due, holders = moment, []
                if moment == due:
                    holders.append(host)
        return due, holders

    def _round_after(self, host: "_Host") -> float:
        count = 1 + math.floor((self.now + host.ahead) / host.period)
        while count * host.period - host.ahead <= self.now:
            count += 1  # the sum above is rounded
        return count * host.period - host.ahead

    def _send(self, deliver: Callable[[], None], extra: float = 0.0) -> None:
        takes = self._delays.message + extra
        if takes == 0.0:
            deliver()
        else:
            heapq.heappush(self._under_way, (self.now + takes, next(self._sent), deliver))

    def _answer(self, host: "_Host", command: Command) -> None:
        answer, extra = super()._answer, 0.0
        if not isinstance(command, AnswerOffer | AnswerReport | AnswerStatus):
            answer(host, command)
            return
        if isinstance(command, AnswerOffer) and self._rng is not None:
            extra = self._delays.extra if self._rng.random() < self._delays.late else 0.0
        self._send(lambda: answer(host, command), extra)

    def _offer(self, home: "_Host", command: SendOffer) -> None:
        self.offers += 1
        ask = super()._offer
        self._send(lambda: ask(home, command))

    def _resolve(self, home: "_Host", command: SendResolve | SendWithdraw) -> None:
        ask = super()._resolve
        self._send(lambda: ask(home, command))

    def _report(self, guest: "_Host", command: SendReport) -> None:
        tell = super()._report
        self._send(lambda: tell(guest, command))
