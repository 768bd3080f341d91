"""What a site does at an event, in memory, with its batch system and its users: a pure function of values.

`Actor` is all that there is of a site: what its process knows, what its journal recovers to, which commands it has not
carried out, which calls have no answer, its batch system, and what its users have been told. A step takes an actor and
something that happens to it; it returns the actors that may follow. Without a crash there is one: all is durable and
carried out. With `late` the records are not durable yet, and nothing behind them is carried out. And the process may
die between any two steps.

Time stands still, but when a place expires. Ids of events are new in each step; afterwards a question is named by the
job whose answer it waits for, so that actors that know the same are the same.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Final, NamedTuple

from grms.simulation.exhaustive.batch import (
    Batch,
    BatchJob,
    TwiceError,
    forgotten_by_site,
)
from grms.simulation.exhaustive.encoding import (
    STALE,
    Frozen,
    StateFactory,
    freeze,
    revive,
    thaw,
)
from grms.simulation.state_host import Make, Question, outcome, question
from grms.site.model.commands import (
    Answer,
    AnswerOffer,
    AnswerReport,
    AnswerStatus,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    Publish,
    PublishRound,
    Refusal,
    Refuse,
    ReplyJob,
    SendOffer,
    SendProbe,
    SendReport,
    SendResolve,
    SendWithdraw,
    TellLoad,
)
from grms.site.model.events import (
    LoadTold,
    LrmsNews,
    LrmsTold,
    OfferDisputed,
    PartnerUp,
    Restarted,
)
from grms.site.model.invariants import check
from grms.site.model.jobs import Load, OfferId, Request
from grms.site.model.lifecycle import IllegalMove
from grms.site.model.records import EpochBegun, Record
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.state import SiteState

FIRST_ID: Final = 1_000_000
"""Of the events of a step; smaller ones name questions between steps."""

COMMANDS_MAX: Final = 1000
"""More commands in one step than this are an endless loop."""

PROCESSORS: Final = 8

RENUMBERED: Final = 1000
"""The epoch of a journal that was put back, later than any other."""

USER: Final = "hidden-user"
"""No partner may ever see it, nor the name of a job, nor its key."""

NAME: Final = "hidden-name"

Ref = tuple[str, int]
"""Who has asked: a user ("submit" or "cancel", with the number of the wish), or a site by its place ("0", its call)."""


class Wish(NamedTuple):
    """What a user wants of a site, by its place; `bit` is the job's among all.

    `checkpoint` is how often it writes its state, seconds; 0 if it does not.
    """

    home: int
    bit: int
    key: str
    payload: bytes
    request: Request
    checkpoint: float = 0.0


class Told(NamedTuple):
    """What a user knows: the submission was acknowledged; a cancellation is wanted, or was acknowledged."""

    submitted: bool = False
    cancel: str = ""


class Actor(NamedTuple):
    """A site; `live` and `durable` are numbers of frozen memories, `live` -1 while the process is down.

    `copy` is that of its journal's copy, -1 for none.
    """

    live: int
    durable: int
    outbox: tuple[tuple[Command, Ref | None], ...] = ()
    calls: tuple[tuple[int, Question], ...] = ()
    jobs: tuple[BatchJob, ...] = ()
    news: tuple[LrmsNews, ...] = ()
    told: tuple[Told, ...] = ()
    age: int = 0
    copy: int = -1

    @property
    def up(self) -> bool:
        """Whether its process lives."""
        return self.live >= 0


class Message(NamedTuple):
    """A question to a site, or the answer to one.

    `asker` and `to` are places of sites; `call` is the asker's, 0 of a question whose answer nobody waits for.
    """

    asker: int
    to: int
    call: int
    question: Question
    answer: Command | None = None


class Effect(NamedTuple):
    """What a step does to the network.

    Attributes:
        ended: the site's calls that are over; nobody waits for their answers.
        sent: messages.
        dies: all calls of the site are over, those of `sent` as well.
    """

    ended: tuple[int, ...] = ()
    sent: tuple[Message, ...] = ()
    dies: bool = False


NOTHING: Final = Effect()


class Result(NamedTuple):
    """What may follow a step, and what it costs: nothing, a crash, or a late commit."""

    cost: str
    actor: Actor
    effect: Effect
    step: int = 0


class ViolationError(Exception):
    """A site does what must not be."""


class Memories:
    """Frozen memories, each once, and how their journals came to be."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._frozen: list[Frozen] = []
        self._origin: dict[int, tuple[int, tuple[Record, ...]]] = {}

    def __len__(self) -> int:
        """Returns how many there are."""
        return len(self._frozen)

    def number(self, frozen: Frozen) -> int:
        """Returns the number of a frozen memory."""
        known = self._numbers.get(frozen.key)
        if known is None:
            known = self._numbers[frozen.key] = len(self._frozen)
            self._frozen.append(frozen)
        return known

    def __getitem__(self, number: int) -> Frozen:
        """Returns a frozen memory."""
        return self._frozen[number]

    def note_origin(self, number: int, before: int, records: tuple[Record, ...]) -> None:
        """Notes of which records, after those of another, a journal is made that recovers to this."""
        if number != before:
            self._origin.setdefault(number, (before, records))

    def journal(self, number: int) -> list[Record]:
        """Returns the records of a journal that recovers to a memory."""
        parts: list[tuple[Record, ...]] = []
        while number in self._origin:
            number, records = self._origin[number]
            parts.append(records)
        return [record for part in reversed(parts) for record in part]


class Site:
    """All steps of one site.

    `place` is that of the site among all, whose names and settings are given in this order.
    """

    def __init__(
        self,
        place: int,
        settings: Sequence[SiteSettings],
        wishes: Sequence[Wish],
        factory: StateFactory,
        memories: Memories,
    ) -> None:
        self.place = place
        self.settings = settings[place]
        self.names = [one.name for one in settings]
        self.wishes = [wish for wish in wishes if wish.home == place]
        self.memories = memories
        self.factory = factory
        self._appended: dict[tuple[int, tuple[Record, ...]], int] = {}

    def first(self) -> Actor:
        """Returns the site before its first start."""
        empty = self.memories.number(freeze(StateTables(self.settings)))
        return Actor(-1, empty, told=tuple(Told() for _ in self.wishes))

    def append(self, durable: int, records: tuple[Record, ...]) -> int:
        """Returns what a journal recovers to that has more records."""
        key = durable, records
        known = self._appended.get(key)
        if known is None:
            memory, _ = thaw(self.memories[durable], self.settings)
            for record in records:
                memory.apply(record)
            known = self._appended[key] = self.memories.number(freeze(memory))
            self.memories.note_origin(known, durable, records)
        return known

    def step(self, actor: Actor, happen: Callable[["SiteStep"], None]) -> list[Result]:
        """Returns what may follow something that happens to the site.

        Raises:
            ViolationError: the site does what must not be.
        """
        try:
            step = SiteStep(self, actor)
            happen(step)
            return step.results()
        except (IllegalMove, AssertionError, KeyError, ValueError, TwiceError) as error:
            raise ViolationError(
                f"{self.settings.name}: {type(error).__name__}: {error}"
            ) from error

    def crashed(self, actor: Actor) -> Actor:
        """Returns a site whose process has died, before anything was durable that was not."""
        return Actor(
            -1,
            actor.durable,
            jobs=forgotten_by_site(actor.jobs),
            told=actor.told,
            age=actor.age,
            copy=actor.copy,
        )

    def put_back(self, actor: Actor) -> Actor:
        """Returns a site that is down, with the copy of its journal for the journal.

        Its numbers start over (`grms journal renumber`), and users submit again what the copy does not know.
        """
        memory, _ = thaw(self.memories[actor.copy], self.settings)
        told = tuple(
            one if (USER, wish.key) in memory.keys else Told()
            for wish, one in zip(self.wishes, actor.told, strict=True)
        )
        dead = self.crashed(actor)
        renumbered = self.append(actor.copy, (EpochBegun(0.0, RENUMBERED, "a copy"),))
        return dead._replace(durable=renumbered, copy=-1, told=told)


def load(*, busy: bool = False) -> Load:
    """Returns the load of an empty machine, or of one that is full."""
    return Load(PROCESSORS, 0 if busy else PROCESSORS, PROCESSORS if busy else 0)


class SiteStep:
    """A site while something happens to it."""

    def __init__(self, site: Site, actor: Actor) -> None:
        self.site = site
        self.actor = actor
        self.age = actor.age
        frozen = site.memories[actor.live if actor.up else actor.durable]
        self.state: SiteState = revive(frozen, site.settings, site.factory)
        self._durable = actor.durable
        self._outbox: deque[tuple[Command, Ref | None]] = deque(actor.outbox)
        self._calls = dict(actor.calls)
        self._batch = Batch(actor.jobs)
        self._news = list(actor.news)
        self._told = list(actor.told)
        self._sent: list[Message] = []
        self._ended: list[int] = []
        self._id = FIRST_ID
        self._before: list[tuple[int, tuple[BatchJob, ...], tuple[Told, ...], int]] = []

    # --- what happens --------------------------------------------------------------------------

    def happen(self, make: Make, ref: Ref | None = None) -> None:
        """Hands an event over; `ref` is who has asked, and gets the answer."""
        self._id += 1
        for command in self.state.handle(make(self._id), float(self.age)):
            asked = isinstance(command, Answer) and command.cause == self._id
            self._outbox.append((command, ref if asked else None))

    def tell(self, news: Sequence[LrmsNews]) -> None:
        """Hands over what the batch system tells."""
        for one in news:
            self.happen(lambda i, one=one: LrmsTold(i, one))  # type: ignore[misc]  # a loop's value

    def start(self) -> None:
        """Begins to work with what the journal holds."""
        self.happen(lambda i: Restarted(i, load()))

    def look(self, key: str) -> None:
        """Looks at a job in the batch system."""
        self.tell(self._batch.look(key, float(self.age)))

    def hear(self) -> None:
        """Hears the next answer of the batch system."""
        self.tell([self._news.pop(0)])

    def partner_up(self, partner: int, seen: OfferId | None) -> None:
        """Hears from a partner who it is, and which offer it has seen last."""
        name = self.site.names[partner]
        self.happen(lambda i: PartnerUp(i, load(), name, PROCESSORS, seen))

    def asked(self, message: Message, *, busy: bool = False) -> None:
        """Gets a question of a partner."""
        home = self.site.names[message.asker]
        ref = (str(message.asker), message.call) if message.call else None
        self.happen(question(message.question, home, lambda: load(busy=busy)), ref)

    def answered(self, call: int, answer: Command | None) -> None:
        """Gets the answer to a call; `None` if none has come in time."""
        command = self._calls.pop(call)
        self._ended.append(call)
        if (
            isinstance(command, SendOffer)
            and isinstance(answer, Refuse)
            and answer.refusal is Refusal.DISPUTED
        ):
            name, offer = command.partner, command.offer
            self.happen(lambda i: OfferDisputed(i, load(), name, offer))
            return
        self.happen(outcome(command, answer, load))

    # --- what it does --------------------------------------------------------------------------

    def results(self) -> list[Result]:
        """Carries out what is to be done; returns the actors that may follow."""
        if self.actor.outbox:
            # It is still writing: what is new waits behind that.
            return [Result("", self._actor(), Effect(tuple(self._ended), ()))]
        found = []
        self._rename()
        if any(isinstance(command, Append) for command, _ in self._outbox):
            found.append(Result("late", self._actor(), Effect(tuple(self._ended), ())))
        self._settle()
        found.insert(0, Result("", self._actor(), self._effect()))
        return [*found, *self._crashes()]

    def flushed(self) -> list[Result]:
        """The same for a site that has been writing."""
        self._settle()
        return [Result("", self._actor(), self._effect()), *self._crashes()]

    def _effect(self) -> Effect:
        return Effect(tuple(self._ended), tuple(self._sent))

    def _settle(self) -> None:
        steps = 0
        while self._outbox:
            steps += 1
            assert steps < COMMANDS_MAX, "it never ends"
            command, ref = self._outbox.popleft()
            if isinstance(command, TellLoad):
                self.happen(lambda i: LoadTold(i, load()))
                continue
            if isinstance(command, Publish | PublishRound):
                continue
            self._carry_out(command, ref)
            self._before.append(
                (self._durable, self._batch.jobs, tuple(self._told), len(self._sent))
            )

    def _carry_out(self, command: Command, ref: Ref | None) -> None:
        if isinstance(command, Append):
            self._commit(command)
        elif isinstance(command, LrmsSubmit):
            self._news += self._batch.submit(command, float(self.age))
        elif isinstance(command, LrmsCancel):
            self._news += self._batch.cancel(command)
        elif isinstance(command, Answer):
            self._answer(command, ref)
        elif isinstance(command, SendOffer | SendResolve | SendWithdraw | SendReport | SendProbe):
            self._send(command)
        else:
            raise ViolationError(f"nobody carries out {command}")

    def _commit(self, command: Append) -> None:
        # All that is to be written is written together.
        appends = [one for one, _ in self._outbox if isinstance(one, Append)]
        self._outbox = deque(each for each in self._outbox if not isinstance(each[0], Append))
        records = tuple(record for one in (command, *appends) for record in one.records)
        self._durable = self.site.append(self._durable, records)

    def _send(self, command: Question) -> None:
        call = next(n for n in range(1, len(self._calls) + 2) if n not in self._calls)
        self._calls[call] = command
        to = self.site.names.index(command.partner)
        self._sent.append(Message(self.site.place, to, call, bare(command)))

    def _answer(self, command: Answer, ref: Ref | None) -> None:
        if ref is None:
            return
        who, number = ref
        if who in {"submit", "cancel"}:
            if not isinstance(command, ReplyJob):
                raise AssertionError(f"a user gets {command}")
            told = self._told[number]
            self._told[number] = (
                told._replace(submitted=True) if who == "submit" else told._replace(cancel="told")
            )
        elif who == "operator":
            return  # who looks again sees what has become of it
        else:
            sent = replace(command, cause=0)
            self._sent.append(Message(int(who), self.site.place, number, _NO_QUESTION, sent))

    # --- what follows --------------------------------------------------------------------------

    def _crashes(self) -> list[Result]:
        # It dies between two steps. Before the first nothing has happened, and after the last all has.
        found = []
        for step, (durable, jobs, told, sent) in enumerate(self._before[:-1], start=1):
            actor = Actor(-1, durable, jobs=forgotten_by_site(jobs), told=told, age=self.age)
            actor = actor._replace(copy=self.actor.copy)
            effect = Effect(tuple(self._ended), tuple(self._sent[:sent]), dies=True)
            found.append(Result("crash", actor, effect, step))
        return found

    def _actor(self) -> Actor:
        self._rename()
        memory = self.state.memory
        check(memory)
        return Actor(
            self.site.memories.number(freeze(memory, self.state)),
            self._durable,
            tuple(self._outbox),
            tuple((call, self._calls[call]) for call in sorted(self._calls)),
            self._batch.jobs,
            tuple(self._news),
            tuple(self._told),
            self.age,
            self.actor.copy,
        )

    def _names(self) -> dict[tuple[str, OfferId, int], int]:
        # What a question is called whose answer still counts, by partner, offer and the id that it had.
        memory = self.state.memory
        names: dict[tuple[str, OfferId, int], int] = {}
        for job in memory.jobs.values():
            if job.question:
                names[job.partner, job.offer, job.question] = 10 + job.job
        for place, book in enumerate(memory.books.values()):
            for number, cause in book.abandoned.items():
                if cause:
                    offer = OfferId(book.abandoned_epochs[number], number)
                    names[book.name, offer, cause] = 1000 + 100 * place + number
        return names

    def _rename(self) -> None:
        names = self._names()
        self._outbox = deque(
            (self._bare(command, names), ref)
            for command, ref in self._outbox
            if not isinstance(command, Publish | PublishRound)
        )
        self._calls = {call: self._bare(command, names) for call, command in self._calls.items()}
        memory = self.state.memory
        for job in memory.jobs.values():
            if job.question:
                job.question = 10 + job.job
        for place, book in enumerate(memory.books.values()):
            for number, cause in book.abandoned.items():
                if cause:
                    book.abandoned[number] = 1000 + 100 * place + number

    def _bare(self, command: Any, names: dict[tuple[str, OfferId, int], int]) -> Any:
        if isinstance(command, SendResolve | SendWithdraw):
            cause = names.get((command.partner, command.offer, command.cause), STALE)
            return replace(command, cause=cause, delay_s=0.0)
        return bare(command)


def bare(command: Any) -> Any:
    """Returns a command without what the network does not carry."""
    if isinstance(command, SendOffer | Append | LrmsSubmit | LrmsCancel | Answer | TellLoad):
        return replace(command, cause=0)
    return replace(command, cause=0, delay_s=0.0)


def as_known(message: Message, unknown: Sequence[str]) -> Message:
    """Returns a message as it is between two sites of which one does not know some fields."""
    if message.answer is not None:
        return message._replace(answer=_without(message.answer, unknown))
    return message._replace(question=_without(message.question, unknown))


def _without(told: Any, unknown: Sequence[str]) -> Any:
    completion = getattr(told, "completion", None)
    if completion is not None:
        told = replace(told, completion=_without(completion, unknown))
    usual = {one.name: one.default for one in fields(told) if one.name in unknown}
    return replace(told, **usual)


_NO_QUESTION: Final = SendProbe(0, "", OfferId(1, 1), 0.0)

ON_THE_WIRE: Final = (
    *(SendOffer, SendResolve, SendWithdraw, SendReport, SendProbe),
    *(AnswerOffer, AnswerStatus, AnswerReport, Refuse),
)
"""All that sites say to one another."""


def why_not_said(message: Message) -> str:
    """Returns what of a message the information policy does not let cross; empty if nothing."""
    said = message.question if message.answer is None else message.answer
    if not isinstance(said, ON_THE_WIRE):
        return f"{type(said).__name__} is no message between sites"
    text = repr(said)
    for hidden in (USER, NAME):
        if hidden in text:
            return f"{type(said).__name__} says {hidden}"
    return ""
