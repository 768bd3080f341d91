"""A site's state in memory, and the shell that carries out what it wants.

The shell of a daemon without sockets, disks and clocks: events go in, commands are carried out one after the
other, questions of partners are answered, and what was asked of partners comes back as an event. What a
network does with messages, what the clock shows, what a batch system is and when records are durable is for
whoever puts the site together: a replay (`grms.simulation.replay`) or the fault test (`grms.simulation.simulated_site`).
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from grms.simulation.clock import ManualClock
from grms.site.model.commands import (
    AnswerOffer,
    AnswerReport,
    AnswerStatus,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    ProtectGuests,
    Publish,
    PublishReservation,
    PublishRound,
    Refuse,
    ReplyJob,
    ReplyReservation,
    SendOffer,
    SendProbe,
    SendReport,
    SendResolve,
    SendWithdraw,
    TellLoad,
)
from grms.site.model.events import (
    Event,
    LoadTold,
    LrmsNews,
    LrmsTold,
    OfferAnswered,
    OfferFailed,
    OfferReceived,
    ProbeAnswered,
    ProbeFailed,
    ReportAnswered,
    ReportFailed,
    ReportReceived,
    ResolveReceived,
    StatusAnswered,
    StatusFailed,
    WithdrawReceived,
)
from grms.site.model.jobs import Load
from grms.site.model.records import Record
from grms.site.model.settings import SiteSettings
from grms.site.scheduler.state import SiteState

Question = SendOffer | SendResolve | SendWithdraw | SendReport | SendProbe
Make = Callable[[int], Event]
"""Makes an event with an id."""

Reply = Callable[[Command], None]
StateFactory = Callable[[SiteSettings, Iterable[Record]], SiteState]
"""Makes a state from settings and a journal's records."""


class Network(Protocol):
    """Carries messages between sites."""

    def send(
        self,
        source: str,
        target: str,
        arrive: Callable[[], None],
        message: Command | None = None,
        *,
        answer: bool = False,
    ) -> None:
        """Sends a message; `arrive` is called once for each copy that gets through.

        `message` is a question or an answer; `None` asks a site who it is. `answer` tells the two apart.
        """


@dataclass(slots=True, kw_only=True)
class Host(ABC):
    """A site in memory; `clock_offset` is how far its own clock is ahead, in seconds."""

    settings: SiteSettings
    clock: ManualClock
    clock_offset: float = 0.0
    network: Network
    sites: Mapping[str, "Host"]
    factory: StateFactory = SiteState
    up: bool = False
    state: SiteState = field(init=False)
    _life: int = 0
    _last_id: int = 0
    _last_call: int = 0
    _pumping: bool = False
    _outbox: deque[Command] = field(default_factory=deque)
    _askers: dict[int, tuple[Make, Reply]] = field(default_factory=dict)
    _calls: dict[int, Question] = field(default_factory=dict)
    _execute: dict[type[Command], Callable[[Any], None]] = field(init=False)

    def __post_init__(self) -> None:
        replies = (ReplyJob, ReplyReservation, Refuse, AnswerOffer, AnswerStatus, AnswerReport)
        questions = (SendOffer, SendResolve, SendWithdraw, SendReport, SendProbe)
        published = (Publish, PublishReservation, PublishRound)
        self._execute = {
            Append: self._append,
            LrmsSubmit: self._lrms_submit,
            LrmsCancel: self._lrms_cancel,
            ProtectGuests: self._protect,
            TellLoad: lambda _: self.happen(lambda i: LoadTold(i, self.load())),
            **dict.fromkeys(replies, self._reply),
            **dict.fromkeys(questions, self._send),
            **dict.fromkeys(published, lambda _: None),
        }

    @property
    def now(self) -> float:
        """What the site's own clock shows, seconds."""
        return self.clock.now + self.clock_offset

    @abstractmethod
    def load(self) -> Load | None:
        """Returns the load of the batch system, as the site knows it."""

    # --- events and commands -------------------------------------------------------------------

    def happen(self, make: Make) -> None:
        """Hands an event over, and carries out what comes of it."""
        self._last_id += 1
        self.hand_over(make(self._last_id))

    def lrms_told(self, news: LrmsNews) -> None:
        """Hands over what the batch system tells."""
        self.happen(lambda i: LrmsTold(i, news))

    def hand_over(self, event: Event) -> None:
        """Hands over an event that has its id, and carries out what comes of it."""
        self._outbox += self.state.handle(event, self.now)
        self._pump()

    def _pump(self) -> None:
        # What an event leads to that comes of a command is carried out when that one is.
        if self._pumping:
            return
        self._pumping = True
        try:
            life = self._life
            while self._outbox and self._life == life and self._goes_on():
                self._carry_out(self._outbox.popleft())
        finally:
            self._pumping = False

    def _goes_on(self) -> bool:
        # Whether the next command can be carried out now.
        return True

    def _carry_out(self, command: Command) -> None:
        self._execute[type(command)](command)

    def _die(self) -> None:
        # What it was about to do is lost, and so is what it has asked or was asked.
        self.up = False
        self._life += 1
        self._outbox.clear()
        self._askers.clear()
        self._calls.clear()

    @abstractmethod
    def _append(self, command: Append) -> None:
        # Records are durable.
        ...

    @abstractmethod
    def _lrms_submit(self, command: LrmsSubmit) -> None: ...

    @abstractmethod
    def _lrms_cancel(self, command: LrmsCancel) -> None: ...

    def _protect(self, command: ProtectGuests) -> None:
        # Where no batch system ends guests, none are protected.
        del command

    # --- partners ------------------------------------------------------------------------------

    def ask(self, make: Make, reply: Reply) -> None:
        """Puts a question to the site, if it is up; the answer may never come."""
        if self.up:
            self._askers[self._last_id + 1] = make, reply
            self.happen(make)

    def _reply(self, command: Command) -> None:
        asker = self._askers.pop(command.cause, None)
        if asker is not None:
            asker[1](command)

    def _send(self, command: Question) -> None:
        self._last_call += 1
        call, life = self._last_call, self._life
        delay = 0.0 if isinstance(command, SendOffer) else command.delay_s
        if delay:
            self.clock.after(delay, self._begin, call, life, command)
        else:
            self._begin(call, life, command)

    def _begin(self, call: int, life: int, command: Question) -> None:
        if self._life == life:
            self._calls[call] = command
            arrive = partial(self._arrives, call, life, command)
            self.network.send(self.settings.name, command.partner, arrive, command)

    def _arrives(self, call: int, life: int, command: Question) -> None:
        target, name = self.sites[command.partner], self.settings.name

        def reply(answer: Command) -> None:
            told = partial(self._hear, call, life, target.says(answer))
            target.network.send(target.settings.name, name, told, answer, answer=True)

        target.ask(question(command, name, target.load), reply)

    def says(self, answer: Command) -> Command:
        """Returns a partner's version of an answer; an honest site says the truth."""
        return answer

    def _hear(self, call: int, life: int, answer: Command) -> None:
        if self._life == life and call in self._calls:
            self._answered(self._calls.pop(call), answer)

    def _answered(self, command: Question, answer: Command | None) -> None:
        self.happen(outcome(command, answer, self.load))


def question(command: Question, home: str, load: Callable[[], Load | None]) -> Make:
    """Returns the event that a question is at the partner."""
    if isinstance(command, SendOffer):
        offer = command
        return lambda i: OfferReceived(
            i,
            load(),
            home,
            offer.offer,
            offer.settled_below,
            offer.request,
            offer.payload,
            offer.reserve,
            rerun=offer.rerun,
            checkpoint=offer.checkpoint,
            left=offer.left,
        )
    if isinstance(command, SendReport):
        completion = command.completion
        return lambda i: ReportReceived(i, load(), home, (completion,))
    number = command.offer
    if isinstance(command, SendWithdraw):
        cancel = command.cancel
        return lambda i: WithdrawReceived(i, home, number, cancel)
    confirm = isinstance(command, SendResolve) and command.confirm
    return lambda i: ResolveReceived(i, home, number, confirm)


def outcome(  # noqa: PLR0911  # one for each kind of question
    command: Question, answer: Command | None, load: Callable[[], Load | None]
) -> Make:
    """Returns the event that an answer is to the site that has asked.

    `answer` is `None` if none came in time; a refusal is no answer either.
    """
    name = command.partner
    if isinstance(command, SendReport):
        kind = ReportAnswered if isinstance(answer, AnswerReport) else ReportFailed
        offers = (command.completion.offer,)
        return lambda i: kind(i, name, offers)
    if isinstance(command, SendProbe):
        if isinstance(answer, AnswerStatus):
            seen = answer.status
            return lambda i: ProbeAnswered(i, load(), name, seen)
        return lambda i: ProbeFailed(i, name)
    offer, cause = command.offer, command.cause
    if isinstance(command, SendOffer):
        if isinstance(answer, AnswerOffer):
            accepted = answer.accepted
            return lambda i: OfferAnswered(i, load(), name, offer, accepted)
        return lambda i: OfferFailed(i, load(), name, offer)
    if isinstance(answer, AnswerStatus):
        status, completion = answer.status, answer.completion
        return lambda i: StatusAnswered(i, load(), name, offer, cause, status, completion)
    return lambda i: StatusFailed(i, load(), name, offer, cause)
