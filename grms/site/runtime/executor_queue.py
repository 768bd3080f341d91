"""What to ask the batch system next, and the consequences of its answers; no input, no output.

- Commands about one key are carried out in order; a few keys at one time, each user's and each partner's in turn.
- Cancellations delay nothing else, and very many are requested at one time: an adapter batches them.
- A submission without an answer may have been carried out: it is looked up before it is repeated.
- While the batch system is away nothing is begun; whatever had no answer is repeated after a pause, which
  doubles.
- If the batch system loses a job while its submission is under way, that submission continues and is looked up
  afterwards, as it may be what got lost.
- A local user's job that is refused for a passing reason is submitted again after a pause, which doubles. A
  partner's job goes home at once.
- A refusal is about one attempt. Where an earlier one had no answer, it may have arrived since it was looked up, and
  run: the job counts as refused only if another look-up, after the refusal, has not found it. One that is to end
  meanwhile is looked up behind its cancellation, which nothing that arrives later outlives.
- A job that is not found was never accepted, or was lost; unless it was seen running, or ended jobs are remembered
  for less time than it may have been there. Then it has ended, with an unknown outcome.
"""

import dataclasses
import math
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import replace

from grms.daemon.pacing import pause_after
from grms.lrms import base as port
from grms.lrms.base import LrmsEnd, LrmsEvent, LrmsPhase, LrmsRecord
from grms.site.model.commands import LrmsCancel, LrmsSubmit
from grms.site.model.events import LrmsAppeared, LrmsLetGo, LrmsNews, LrmsRefused, LrmsStays
from grms.util.outcomes import Outcome
from grms.util.values import QuickEnum, dataclass

PAUSE_FIRST_S = 0.5
"""Pause before a command without an answer is repeated, seconds."""

PAUSE_MOST_S = 30.0
"""The longest such pause."""

ENDS_AT_ONCE = 256
"""Jobs whose ends are asked for at one time; who asks for more ends waits for these, and nobody else does."""


class LrmsStep(QuickEnum):
    """Questions to the batch system."""

    LOOK_UP = "look up"
    SUBMIT = "submit"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Call:
    """A question to the batch system, as a step of a command."""

    step: LrmsStep
    key: str
    command: LrmsSubmit | LrmsCancel


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    undelivered: bool = False


@dataclasses.dataclass(slots=True)
class _Pending:
    command: LrmsSubmit | LrmsCancel
    step: LrmsStep
    since: float  # since when the batch system may have the job, seconds
    attempts: int = 0
    tried: bool = False  # by an attempt whose outcome was unknown, however long ago
    doubted: bool = False  # an answer may be about what has got lost meanwhile
    put_off: str = ""  # why it was refused for now
    over: bool = False  # an earlier attempt has come after such a refusal, and has ended
    refusal: _Refusal | None = (
        None  # final, unless the batch system has the job by an earlier attempt
    )


class LrmsQueue:
    """Unfinished commands to a batch system.

    `away`: it does not answer, and nothing is begun. `at_once` is the number of keys asked about concurrently;
    `remembers` is as in the port, seconds.
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
        """Returns the number of unfinished commands."""
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
        """Returns what to ask the batch system now; each call has to be answered."""
        calls: list[Call] = []
        while self._ready and len(self._under_way) < self._at_once and not self.away:
            whose, keys = self._ready.popitem(last=False)
            key = keys.popleft()
            if keys:
                self._ready[whose] = keys  # after all others
            if self._pending[key][0].over:
                self._done(key)
                continue
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
        if _ends(command):
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
        """Takes the answer to a call, and returns the news.

        `answer` is what is known of the job, for a look-up; for a cancellation, whether it ends the job; it is ignored
        for a submission.
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
        if isinstance(command, LrmsCancel):
            self._done(key)
            return cancelled(command, done=answer is True, first=pending.attempts == 0)
        if call.step is not LrmsStep.LOOK_UP:
            self._done(key)
            return []
        assert not isinstance(answer, bool)
        news = self.looked_up(command, answer, pending.since, now)
        if news is None and pending.refusal is not None:
            refusal = pending.refusal
            news = self.refusal(command, refusal.reason, undelivered=refusal.undelivered)
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
        """Returns the news by the answer to a look-up; `None` if the job is to be submitted.

        The batch system may have had the job since `since`, seconds.
        """
        key = command.lrms_key
        if command.aside:
            return None if answer is None else []  # the job itself is here
        if answer is not None:
            return self._found(key, answer, started=command.started)
        if command.started or now - since > self._remembers:
            reason = "the batch system does not know the job any more"
            return [port.Ended(key, LrmsEnd(Outcome.UNKNOWN, now, 0.0, reason=reason))]
        return None

    def refused(self, call: Call, reason: str, *, undelivered: bool = False) -> list[LrmsNews]:
        """Takes a refusal for an answer, and returns the news.

        A submission that an earlier attempt may have made all the same is looked up first.

        `undelivered`: the job's program has not arrived in time.
        """
        if call.step is LrmsStep.SUBMIT and not self.is_first(call):
            self._find_out(call.key, _Refusal(reason, undelivered))
            return []
        self._leave(call.key)
        first = self._pending[call.key][0].attempts == 0
        self._done(call.key)
        return self.refusal(call.command, reason, undelivered=undelivered, first=first)

    def _find_out(self, key: str, refusal: _Refusal) -> None:
        # Whether an earlier attempt has come. Whoever wants the job's end has it before: what is cancelled is not
        # started any more when it comes later, and a look-up before that would not know.
        self._leave(key)
        waiting = self._pending[key]
        pending = waiting.popleft()
        pending.step, pending.refusal, pending.attempts = LrmsStep.LOOK_UP, refusal, 0
        ends = (place for place, other in enumerate(waiting, 1) if _ends(other.command))
        waiting.insert(next(ends, 0), pending)
        self._make_ready(key, first=True, at_once=True)

    def refusal(
        self,
        command: LrmsSubmit | LrmsCancel,
        reason: str,
        *,
        undelivered: bool = False,
        first: bool = True,
    ) -> list[LrmsNews]:
        """Returns the consequences of a refusal.

        `undelivered`: the job's program has not arrived in time; `first`: no earlier attempt went unanswered.
        """
        if isinstance(command, LrmsSubmit):
            # A job that is elsewhere has no place then, and is not refused.
            return [] if command.aside else [LrmsRefused(command.lrms_key, reason, undelivered)]
        if command.only_waiting:
            return [LrmsStays(command.lrms_key, certain=first)]
        return []

    def asks_again(self, call: Call, *, passing: bool) -> bool:
        """Returns whether a refused call is repeated later, by `put_off`, instead of ending by `refused`.

        A refused look-up says nothing of the job, which may run: it is repeated for ever. So is the submission of a
        local user's job that is refused for a passing reason. A partner's job can go home.
        """
        command = call.command
        if isinstance(command, LrmsSubmit) and command.aside:
            return False  # then it has no place, and nothing else waits for that
        if call.step is LrmsStep.SUBMIT and passing:
            return isinstance(command, LrmsSubmit) and not command.partner
        return call.step is LrmsStep.LOOK_UP

    def put_off(self, call: Call, reason: str) -> tuple[float, list[LrmsNews]]:
        """Defers a call that was refused for now until `resume`; others proceed.

        Returns the pause before `resume` is to be called, seconds, and the news.
        """
        self._leave(call.key)
        pending = self._pending[call.key][0]
        is_new = pending.put_off != reason and call.step is LrmsStep.SUBMIT
        pending.put_off = reason
        pending.attempts += 1
        news: list[LrmsNews] = [LrmsRefused(call.key, reason, passing=True)] if is_new else []
        return pause_after(pending.attempts, PAUSE_FIRST_S, PAUSE_MOST_S), news

    def resume(self, call: Call) -> list[LrmsNews]:
        """Lets a deferred call be repeated, and returns the news; a job cancelled meanwhile ends instead."""
        if call.step is LrmsStep.SUBMIT and self.is_to_end(call.key):
            return self.refused(call, self._pending[call.key][0].put_off)
        self.again(call)
        return []

    def is_to_end(self, key: str) -> bool:
        """Returns whether a job is to be cancelled, started or not, as soon as its turn comes."""
        return any(_ends(pending.command) for pending in self._pending.get(key, ()))

    def unanswered(self, call: Call, began: float) -> tuple[float, list[LrmsNews]]:
        """Notes that a call had no answer.

        `began` is when it was made, on the site's clock, seconds: the batch system may have carried it out at once,
        and have forgotten the job that much sooner.

        Returns the pause before `again` is to be called, seconds, and the news.
        """
        pending = self._pending[call.key][0]
        if pending.step is LrmsStep.SUBMIT:
            pending.step, pending.since = LrmsStep.LOOK_UP, began
        news: list[LrmsNews] = []
        if isinstance(call.command, LrmsCancel):
            news = cancelled(call.command, done=None, first=pending.attempts == 0)
        pending.attempts += 1
        pending.tried = True
        return pause_after(pending.attempts, PAUSE_FIRST_S, PAUSE_MOST_S), news

    def is_first(self, call: Call) -> bool:
        """Returns whether nothing about a job can have reached the batch system before a call."""
        pending = self._pending[call.key][0]
        command = pending.command
        return isinstance(command, LrmsSubmit) and not (command.lookup or pending.tried)

    def again(self, call: Call) -> None:
        """Lets an unanswered command be repeated."""
        self._leave(call.key)
        self._make_ready(call.key, first=True)

    def park(self, call: Call) -> None:
        """Defers a call, so that others proceed, until `again` or `refused`."""
        self._leave(call.key)

    def delivered(self, call: Call, payload: bytes) -> None:
        """Takes a job's program, which has arrived from its home site; continue with `again`."""
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
        """Returns the batch system's news as the site gets them, mostly unchanged; loads are dropped."""
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
            case port.Ended() if one.key in self._pending:
                pending = self._pending[one.key][0]
                submits = isinstance(pending.command, LrmsSubmit) and pending.refusal is None
                pending.over = submits and pending.tried and bool(pending.put_off)
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
        """Returns the news of the first look at a batch system's jobs, which are given by key."""
        return [LrmsAppeared(key) for key, record in jobs if record.phase is not LrmsPhase.ENDED]

    @staticmethod
    def _found(key: str, record: LrmsRecord, *, started: bool) -> list[LrmsNews]:
        news: list[LrmsNews] = [port.Accepted(key)]
        waits = record.phase is LrmsPhase.WAITING or record.phase is LrmsPhase.HELD
        # Of one that has ended, too: what is cancelled as it waits may have run before.
        if record.restarted or (waits and started):
            news.append(port.Requeued(key, record.reason))
        elif not waits and record.start_time is not None:
            news.append(port.Started(key, record.start_time))
        if record.end is not None:
            news.append(port.Ended(key, record.end))
        return news


def _ends(command: LrmsSubmit | LrmsCancel) -> bool:
    # Whether it ends a job, started or not.
    return isinstance(command, LrmsCancel) and not command.only_waiting


def cancelled(command: LrmsCancel, *, done: bool | None, first: bool = True) -> list[LrmsNews]:
    """Returns the news of a cancellation that was not refused.

    `done`: whether it ends the job, `None` without an answer; `first`: no earlier attempt went unanswered.
    """
    if not command.only_waiting or not (first or done):
        # If a later attempt finds nothing, the one before may have ended the job.
        return []
    return [LrmsLetGo(command.lrms_key, done)]
