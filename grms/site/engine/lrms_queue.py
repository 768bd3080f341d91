"""What the batch system is to be told next, and what its answers lead to; no input, no output.

- Commands about one key are carried out in order; a few keys at one time, those of each user, and of each partner's, in turn.
- Ends of jobs hold up nothing else, and very many are asked for at one time: an adapter puts them together.
- A submission that had no answer may have been carried out: it is looked up before it is repeated.
- While the batch system is away nothing is begun; whatever had no answer comes again after a pause,
  which doubles.
- What the batch system loses while its submission is on its way is not lost: that submission goes on, and is
  looked up afterwards, as nobody knows whether it was what got lost.
- What an own job is refused for now, and may not be later, is asked again after a pause, which doubles. A partner's
  job goes home at once. What is refused is nowhere: an attempt whose outcome is unknown is looked up before the next.
- What is not found was never taken, or was lost; unless it was seen running, or ended jobs are
  remembered for a shorter time than it may have been there. Then it has ended, nobody knows how.
"""

import dataclasses
import math
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import replace

from grms.kit.backoff import pause_after
from grms.lrms import port
from grms.lrms.port import LrmsEnd, LrmsEvent, LrmsPhase, LrmsRecord
from grms.outcomes import Outcome
from grms.site.facts.commands import LrmsCancel, LrmsSubmit
from grms.site.facts.events import LrmsAppeared, LrmsNews, LrmsRefused, LrmsStays
from grms.values import QuickEnum, dataclass

PAUSE_FIRST_S = 0.5
"""Pause before a command without an answer is repeated, seconds."""

PAUSE_MOST_S = 30.0
"""The longest such pause."""

ENDS_AT_ONCE = 256
"""Jobs whose ends are asked for at one time; who asks for more ends waits for these, and nobody else does."""


class LrmsStep(QuickEnum):
    """What the batch system can be asked."""

    LOOK_UP = "look up"
    SUBMIT = "submit"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Call:
    """A question to the batch system.

    Attributes:
        step: which.
        key: of the job.
        command: that it is a part of.
    """

    step: LrmsStep
    key: str
    command: LrmsSubmit | LrmsCancel


@dataclasses.dataclass(slots=True)
class _Pending:
    command: LrmsSubmit | LrmsCancel
    step: LrmsStep
    since: float  # since when the batch system may have the job, seconds
    attempts: int = 0
    tried: bool = False  # by an attempt whose outcome was unknown, however long ago
    doubted: bool = False  # an answer may be about what has got lost meanwhile
    put_off: str = ""  # why it was refused for now


class LrmsQueue:
    """Commands to a batch system that are not done yet.

    Attributes:
        away: the batch system does not answer: nothing is begun.

    Args:
        at_once: keys that are asked about at one time.
        remembers: as the port has it, seconds.
    """

    def __init__(self, at_once: int, remembers: float) -> None:
        self.away = False
        self._at_once = at_once
        self._remembers = remembers
        self._pending: dict[str, deque[_Pending]] = {}
        self._ready: OrderedDict[tuple[str, str], deque[str]] = OrderedDict()
        self._under_way: set[str] = set()
        self._ends_ready: deque[str] = deque()
        self._ends_under_way: set[str] = set()

    def __len__(self) -> int:
        """Returns how many commands are not done."""
        return sum(map(len, self._pending.values()))

    def add(self, command: LrmsSubmit | LrmsCancel) -> None:
        """Takes a command, to be carried out after all others about its key."""
        if isinstance(command, LrmsCancel):
            pending = _Pending(command, LrmsStep.CANCEL, 0.0)
        else:
            step = LrmsStep.LOOK_UP if command.lookup else LrmsStep.SUBMIT
            pending = _Pending(command, step, command.since)
        waiting = self._pending.get(command.lrms_key)
        if waiting is not None:
            waiting.append(pending)
            return
        self._pending[command.lrms_key] = deque((pending,))
        self._make_ready(command.lrms_key)

    def calls(self) -> list[Call]:
        """Returns what the batch system is to be asked now; each has to be answered."""
        calls: list[Call] = []
        while self._ready and len(self._under_way) < self._at_once and not self.away:
            whose, keys = self._ready.popitem(last=False)
            key = keys.popleft()
            if keys:
                self._ready[whose] = keys  # after all others
            self._under_way.add(key)
            calls.append(self._call(key))
        while self._ends_ready and len(self._ends_under_way) < ENDS_AT_ONCE and not self.away:
            key = self._ends_ready.popleft()
            self._ends_under_way.add(key)
            calls.append(self._call(key))
        return calls

    def _call(self, key: str) -> Call:
        pending = self._pending[key][0]
        return Call(pending.step, key, pending.command)

    def _make_ready(self, key: str, *, first: bool = False, at_once: bool = False) -> None:
        # Before what else its user waits for, or before everybody's.
        command = self._pending[key][0].command
        if isinstance(command, LrmsCancel) and not command.only_waiting:
            (self._ends_ready.appendleft if first else self._ends_ready.append)(key)
            return
        whose = ("", "")
        if isinstance(command, LrmsSubmit):
            whose = (command.partner, command.user)
        keys = self._ready.setdefault(whose, deque())
        (keys.appendleft if first else keys.append)(key)
        if at_once:
            self._ready.move_to_end(whose, last=False)

    def _leave(self, key: str) -> None:
        self._under_way.discard(key)
        self._ends_under_way.discard(key)

    def answered(self, call: Call, answer: LrmsRecord | bool | None, now: float) -> list[LrmsNews]:
        """Takes the answer to a call, and returns what has happened.

        Args:
            call: that was made.
            answer: what is known of the job, for a look-up; nothing that matters for others.
            now: on the site's clock, seconds.
        """
        key = call.key
        pending = self._pending[key][0]
        command = call.command
        self._leave(key)
        if pending.doubted:
            pending.doubted = False
            if call.step is LrmsStep.SUBMIT:
                pending.step, pending.since = LrmsStep.LOOK_UP, now
            self._make_ready(key, first=True, at_once=True)
            return []
        if call.step is not LrmsStep.LOOK_UP:
            self._done(key)
            return []
        assert isinstance(command, LrmsSubmit)
        assert not isinstance(answer, bool)
        news = self.looked_up(command, answer, pending.since, now)
        if news is not None:
            self._done(key)
            return news
        pending.step = LrmsStep.SUBMIT
        pending.attempts = 0
        self._make_ready(key, first=True, at_once=True)
        return []

    def looked_up(
        self, command: LrmsSubmit, answer: LrmsRecord | None, since: float, now: float
    ) -> list[LrmsNews] | None:
        """Returns what has happened, by the answer to a look-up; None where the job is to be submitted.

        Args:
            command: that the look-up was a part of.
            answer: what is known of the job.
            since: since when the batch system may have it, seconds.
            now: on the site's clock, seconds.
        """
        key = command.lrms_key
        if answer is not None:
            return self._found(key, answer, started=command.started)
        if command.started or now - since > self._remembers:
            reason = "the batch system does not know the job any more"
            return [port.Ended(key, LrmsEnd(Outcome.UNKNOWN, now, 0.0, reason=reason))]
        return None

    def refused(self, call: Call, reason: str, *, undelivered: bool = False) -> list[LrmsNews]:
        """Takes a refusal for an answer, and returns what has happened.

        Args:
            call: that was made, or laid aside.
            reason: for a person.
            undelivered: what the job runs has not come in time.
        """
        self._leave(call.key)
        first = self._pending[call.key][0].attempts == 0
        self._done(call.key)
        return self.refusal(call.command, reason, undelivered=undelivered, first=first)

    def refusal(
        self,
        command: LrmsSubmit | LrmsCancel,
        reason: str,
        *,
        undelivered: bool = False,
        first: bool = True,
    ) -> list[LrmsNews]:
        """Returns what a refusal leads to.

        Args:
            command: that is refused.
            reason: for a person.
            undelivered: what the job runs has not come in time.
            first: no attempt before had no answer.
        """
        if isinstance(command, LrmsSubmit):
            return [LrmsRefused(command.lrms_key, reason, undelivered)]
        if command.only_waiting:
            return [LrmsStays(command.lrms_key, certain=first)]
        return []

    def asks_again(self, call: Call, *, passing: bool) -> bool:
        """Returns whether what was refused is asked again later, by `put_off`, and is not over by `refused`.

        A look-up that is refused says nothing of the job, which may run: it is asked again for ever. So is the
        submission of an own job for something that passes. A partner's job has a home to go to.

        Args:
            call: that was made.
            passing: what it was refused for is no matter of the job, and passes.
        """
        if call.step is LrmsStep.SUBMIT and passing:
            return isinstance(call.command, LrmsSubmit) and not call.command.partner
        return call.step is LrmsStep.LOOK_UP

    def put_off(self, call: Call, reason: str) -> tuple[float, list[LrmsNews]]:
        """Lays a call aside that was refused for now; others have their turn until `resume`.

        Args:
            call: that was made.
            reason: for a person.

        Returns:
            The pause after which `resume` is to be called, seconds, and what has happened.
        """
        self._leave(call.key)
        pending = self._pending[call.key][0]
        is_new = pending.put_off != reason and call.step is LrmsStep.SUBMIT
        pending.put_off = reason
        pending.attempts += 1
        news: list[LrmsNews] = [LrmsRefused(call.key, reason, passing=True)] if is_new else []
        return pause_after(pending.attempts, PAUSE_FIRST_S, PAUSE_MOST_S), news

    def resume(self, call: Call) -> list[LrmsNews]:
        """Lets a call be made again that was put off; what is to be ended meanwhile is over instead.

        Args:
            call: that was put off.

        Returns:
            What has happened.
        """
        if call.step is LrmsStep.SUBMIT and self.is_to_end(call.key):
            return self.refused(call, self._pending[call.key][0].put_off)
        self.again(call)
        return []

    def is_to_end(self, key: str) -> bool:
        """Returns whether the batch system is to end a job, started or not, as soon as its turn comes."""
        return any(
            isinstance(pending.command, LrmsCancel) and not pending.command.only_waiting
            for pending in self._pending.get(key, ())
        )

    def unanswered(self, call: Call, began: float) -> float:
        """Takes note that a call had no answer: its outcome is unknown.

        Args:
            call: that was made.
            began: when it was made, on the site's clock, seconds: the batch system may have done it at
                once, and have forgotten it so much sooner.

        Returns:
            The pause after which `again` is to be called, seconds.
        """
        pending = self._pending[call.key][0]
        if pending.step is LrmsStep.SUBMIT:
            pending.step, pending.since = LrmsStep.LOOK_UP, began
        pending.attempts += 1
        pending.tried = True
        return pause_after(pending.attempts, PAUSE_FIRST_S, PAUSE_MOST_S)

    def is_first(self, call: Call) -> bool:
        """Returns whether nothing about a job can have reached the batch system before a call."""
        pending = self._pending[call.key][0]
        command = pending.command
        return isinstance(command, LrmsSubmit) and not (command.lookup or pending.tried)

    def again(self, call: Call) -> None:
        """Lets a command that had no answer be repeated."""
        self._leave(call.key)
        self._make_ready(call.key, first=True)

    def park(self, call: Call) -> None:
        """Lays a call aside, so that others have their turn, until `again` or `refused`."""
        self._leave(call.key)

    def delivered(self, call: Call, payload: bytes) -> None:
        """Takes what a job runs, which has come from its home site; `again` goes on with it."""
        pending = self._pending[call.key][0]
        assert isinstance(pending.command, LrmsSubmit)
        pending.command = replace(pending.command, payload=payload)

    def _done(self, key: str) -> None:
        waiting = self._pending[key]
        waiting.popleft()
        if waiting:
            self._make_ready(key)
        else:
            del self._pending[key]

    # --- what the batch system tells -----------------------------------------------------------

    def told(self, happened: Iterable[LrmsEvent]) -> list[LrmsNews]:
        """Returns what the batch system tells as the site is to hear it, mostly as it is; loads are none."""
        return [news for one in happened for news in self._heard(one)]

    def _heard(self, one: LrmsEvent) -> list[LrmsNews]:
        match one:
            case port.LoadSeen():
                return []
            case port.Appeared():
                there = self._found(one.key, one.record, started=False)
                ended = one.record.phase is LrmsPhase.ENDED
                return there if ended else [LrmsAppeared(one.key), *there]
            case port.Vanished():
                reason = one.reason or "gone from the batch system"
                return [port.Ended(one.key, LrmsEnd(Outcome.UNKNOWN, one.time, 0.0, reason=reason))]
            case port.Lost() if self._is_submitted_again(one.key):
                return []
            case port.Away() | port.Back():
                self.away = isinstance(one, port.Away)
        return [one]

    def _is_submitted_again(self, key: str) -> bool:
        for pending in reversed(self._pending.get(key, ())):
            if isinstance(pending.command, LrmsSubmit):
                # It is not there and has not run, so that nothing stands against submitting it again. A
                # cancel behind that ends it then: until it is over, nobody may say that it never ran.
                pending.command = replace(pending.command, started=False)
                pending.since, pending.doubted = math.inf, True
                return True
        return False

    def seen_first(self, jobs: Iterable[tuple[str, LrmsRecord]]) -> list[LrmsNews]:
        """Returns what the first look at a batch system leads to.

        Args:
            jobs: that it has, by key.
        """
        return [LrmsAppeared(key) for key, record in jobs if record.phase is not LrmsPhase.ENDED]

    @staticmethod
    def _found(key: str, record: LrmsRecord, *, started: bool) -> list[LrmsNews]:
        news: list[LrmsNews] = [port.Accepted(key)]
        waits = record.phase is LrmsPhase.WAITING or record.phase is LrmsPhase.HELD
        if waits and (started or record.restarted):
            news.append(port.Requeued(key, record.reason))
        elif not waits and record.start_time is not None:
            news.append(port.Started(key, record.start_time))
        if record.end is not None:
            news.append(port.Ended(key, record.end))
        return news
