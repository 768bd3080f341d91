"""A site above a batch system in trouble: its state, its queue of commands and its tracker, as they are in the daemon.

What users are told rests on the site's journal; what is true, on what nodes have run. In every state:

- no script has begun twice, unless its user lets it and a batch system or an operator has caused it
- no job was started twice by the batch system, unless the controller has forgotten something or an operator has started
  it anew
- what was acknowledged is in the journal
- a job is completed for its user only if its script has run to its end, and ended otherwise only if not, whoever wanted that, or if its end is
  not known; a cancellation that the controller has carried out, and forgets, is nobody's to know
- none has ended while its script runs, but at its user's wish
- nothing that runs was ended without its user's wish, and no operator's hold was lifted
- where nothing is in doubt, what an operator has ended before it began is not started
- none is cancelled, lost or unknown unless somebody or something that the bound has can have caused it

When all states are known each leads, without a fault, to the end: each job has ended once, nothing is left in the batch
system, and the daemon waits for nothing.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from grms.simulation.exhaustive.batch_state import Knowledge, of_queue
from grms.simulation.exhaustive.budgets import Budgets
from grms.simulation.exhaustive.choices import Action, Choices, ViolationError
from grms.simulation.exhaustive.cluster import (
    AGES,
    HAS,
    NOTHING_WRITTEN,
    RAN_THERE,
    RUNS,
    SENT_HOME,
    SITE_NAME,
    Cluster,
    Program,
    World,
    cluster_steps,
    key_of,
    program_of,
)
from grms.simulation.exhaustive.encoding import StateFactory, freeze, revive, thaw
from grms.simulation.exhaustive.queue_arrays import ARRAYS
from grms.simulation.exhaustive.queue_places import GIVES, PARTNER, PLACES, Partner, is_over
from grms.simulation.exhaustive.queue_steps import (
    COMMANDS,
    Below,
    DiedError,
    Parts,
    QueueStep,
)
from grms.simulation.exhaustive.steps import (
    COMMANDS_MAX,
    FIRST_ID,
    USER,
    Memories,
    Told,
    bare,
    load,
)
from grms.simulation.state_host import outcome
from grms.site.model.commands import (
    Answer,
    AnswerReport,
    Append,
    Command,
    LrmsCancel,
    LrmsSubmit,
    Publish,
    PublishRound,
    ReplyJob,
    SendOffer,
    SendResolve,
    SendWithdraw,
    TellLoad,
)
from grms.site.model.events import (
    Cancel,
    Event,
    LoadTold,
    LrmsNews,
    LrmsTold,
    PartnerUp,
    ReportReceived,
    Restarted,
    RoundDue,
    Submit,
)
from grms.site.model.invariants import check
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import IllegalMove, JobState, Outcome
from grms.site.model.records import Record
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.runtime.executor_queue import LrmsQueue, LrmsStep
from grms.site.scheduler.state import SiteState

QUEUE_FAULTS: Final[Mapping[str, str]] = {
    "crash": "the daemon dies",
    "answer": "a command, or the answer to it, is lost",
    "late": "a submission comes when nobody waits for it any more",
    "partial": "a table is empty or without a job, or the batch system does not say whether it has one",
    "undo": "the controller dies, and forgets what it had not written down",
    "meanwhile": "a poll comes while a call is under way",
    "refuse": "a submission is refused for now",
    "deny": "a submission is refused for good",
    "cancel": "a user cancels a job",
    "end by hand": "an operator ends a job at the batch system",
    "requeue": "an operator has a job started anew",
    "hold": "an operator holds a job that waits, until it is released",
    "orphan": "a node ends what the controller has forgotten",
    "decline": "a partner declines a job",
    "round": "a job that waits is offered again",
    "send home": "a partner ends a job for another one, and sends it home",
    "race": "a job starts as it is asked to leave",
    "start by hand": "an operator gives a marker a start now, or a year passes",
    "part": "an operator changes an element of an array",
}
"""What may go wrong, or has to be wanted by somebody."""


_DOUBTS: Final = ("crash", "answer", "late", "partial", "undo")
"""Faults by which what an operator has ended may count as lost."""


@dataclass(frozen=True)
class QueueBound:
    """What may happen.

    Attributes:
        name: for people.
        faults: how often each may come (`QUEUE_FAULTS`); the others never.
        jobs: how many users submit.
        once: no script may begin twice.
        guests: jobs are held for partners' by their keys.
        places: jobs are offered to a partner, and their places are kept.
        arrays: jobs are submitted as an array, where they come together, as the first two do.
        parts: what drives the batch system.
        factory: makes the state of the site.
    """

    name: str
    faults: Mapping[str, int]
    jobs: int = 1
    once: bool = True
    guests: bool = False
    places: bool = False
    arrays: bool = False
    parts: Parts = field(default_factory=Parts)
    factory: StateFactory = SiteState


def queue_bound(
    name: str,
    *,
    jobs: int = 1,
    once: bool = True,
    guests: bool = False,
    places: bool = False,
    arrays: bool = False,
    parts: Parts | None = None,
    **faults: int,
) -> QueueBound:
    """Returns a bound; faults are named as in `QUEUE_FAULTS`, with `_` for a space."""
    named = {fault.replace("_", " "): most for fault, most in faults.items()}
    wrong = set(named) - set(QUEUE_FAULTS)
    if wrong:
        raise ValueError(
            f"there is no fault {', '.join(sorted(wrong))}; there are {', '.join(QUEUE_FAULTS)}"
        )
    return QueueBound(name, named, jobs, once, guests, places, arrays, parts or Parts())


class QueueState(NamedTuple):
    """All that there is.

    Attributes:
        site: the number of what the daemon's state knows; -1 while it is down.
        known: what it knows of its batch system; `None` while it is down.
        durable: the number of what its journal recovers to.
        told: what its users have been told.
        cluster: the batch system.
    """

    site: int
    known: Knowledge | None
    durable: int
    told: tuple[Told, ...]
    cluster: Cluster


class SiteEvents:
    """What a site's state makes of events: once for each state and event."""

    def __init__(self, settings: SiteSettings, factory: StateFactory) -> None:
        self.settings = settings
        self.memories = Memories()
        self._factory = factory
        self._done: dict[tuple[int, Event], tuple[int, tuple[Command, ...]]] = {}
        self._appended: dict[tuple[int, tuple[Record, ...]], int] = {}

    def empty(self) -> int:
        """Returns the number of what a new site knows."""
        return self.memories.number(freeze(StateTables(self.settings)))

    def handle(self, number: int, event: Event) -> tuple[int, tuple[Command, ...]]:
        """Returns what a site knows after an event, and its commands."""
        known = self._done.get((number, event))
        if known is None:
            state = revive(self.memories[number], self.settings, self._factory)
            commands = tuple(map(_bare, state.handle(event, 0.0)))
            check(state.memory)
            after = self.memories.number(freeze(state.memory, state))
            known = self._done[number, event] = after, commands
        return known

    def append(self, durable: int, records: tuple[Record, ...]) -> int:
        """Returns what a journal recovers to that has more records."""
        key = durable, records
        known = self._appended.get(key)
        if known is None:
            memory, _ = thaw(self.memories[durable], self.settings)
            for record in records:
                memory.apply(record)
            known = self._appended[key] = self.memories.number(freeze(memory))
        return known


def _bare(command: Command) -> Command:
    if isinstance(command, LrmsSubmit):
        return replace(command, cause=0, since=0.0)
    if isinstance(command, SendResolve | SendWithdraw):
        return replace(command, delay_s=0.0)
    return bare(command) if isinstance(command, LrmsCancel) else command


class _Life:
    # A daemon while something happens to it.
    def __init__(
        self, model: "QueueModel", state: QueueState, choices: Choices, passed: float = 0.0
    ) -> None:
        self._model = model
        self._site = state.site
        self._durable = state.durable
        self._told = list(state.told)
        self._outbox: deque[Command] = deque()
        self._ref: tuple[str, int] | None = None
        self.world = model.world(state.cluster)
        known = state.known or model.knows_nothing
        self.step = QueueStep(
            known,
            self.world,
            choices,
            model.bound.parts,
            self._hears,
            self._is_wanted,
            once=model.bound.once,
            site="" if model.bound.guests else SITE_NAME,
            below=model.below,
            passed=passed,
        )
        self._partner = Partner(self.step)

    def starts(self) -> None:
        self._site = self._durable
        self.happens(Restarted(FIRST_ID, load()))
        if self._model.bound.places:
            seen = self._partner.seen()
            self.happens(PartnerUp(FIRST_ID, load(), PARTNER, 8, seen))

    def happens(self, event: Event, ref: tuple[str, int] | None = None) -> None:
        self._ref = ref
        self._take(event)
        steps = 0
        while self._outbox:
            steps += 1
            if steps > COMMANDS_MAX:
                raise ViolationError("the site never ends")
            self._carry_out(self._outbox.popleft())

    def _take(self, event: Event) -> None:
        self._site, commands = self._model.events.handle(self._site, event)
        self._outbox.extend(commands)

    def _hears(self, news: LrmsNews) -> None:
        self.happens(LrmsTold(FIRST_ID, news))

    def _is_wanted(self, key: str) -> bool:
        return bool(self._told[program_of(key)].cancel)

    def _carry_out(self, command: Command) -> None:
        match command:
            case TellLoad():
                self._take(LoadTold(FIRST_ID + 1, load()))
            case Append():
                self.step.may_die("the journal is written")
                self._durable = self._model.events.append(self._durable, command.records)
                self.step.may_die("it carries out what follows")
            case LrmsSubmit() | LrmsCancel():
                self.step.do(command)
            case SendOffer() | SendResolve() | SendWithdraw():
                answer = self._partner.asked(command)
                self.step.may_die("the partner's answer comes")
                self._take(outcome(command, answer, load)(FIRST_ID))
            case Answer():
                self._answer(command)
            case Publish() | PublishRound():
                pass
            case _:
                raise ViolationError(f"nobody carries out {command}")

    def _answer(self, command: Answer) -> None:
        if self._ref is None:
            return
        who, at = self._ref
        if isinstance(command, AnswerReport):
            self._partner.heard(at)
            return
        if not isinstance(command, ReplyJob):
            raise ViolationError(f"a user gets {command}")
        told = self._told[at]
        self._told[at] = (
            told._replace(submitted=True) if who == "submit" else told._replace(cancel="told")
        )

    def reports(self, at: int) -> None:
        completion = self._partner.completion(at)
        event = ReportReceived(FIRST_ID, load(), PARTNER, (completion,))
        self.happens(event, ("report", at))

    def wants_end(self, at: int) -> None:
        self._told[at] = self._told[at]._replace(cancel="wanted")

    def state(self) -> QueueState:
        return QueueState(
            self._site, self.step.knowledge(), self._durable, tuple(self._told), self.world.value
        )

    def dead(self) -> QueueState:
        return QueueState(-1, None, self._durable, tuple(self._told), self.world.value)


Happens = Callable[[_Life], None]


class QueueModel:
    """The states of a site above a batch system in trouble."""

    def __init__(self, bound: QueueBound) -> None:
        self.bound = bound
        self.below = PLACES if bound.places else ARRAYS if bound.arrays else Below()
        settings = GIVES if bound.places else SiteSettings(SITE_NAME, 8)
        self.events = SiteEvents(settings, bound.factory)
        self.knows_nothing = Knowledge(of_queue(LrmsQueue(COMMANDS, float("inf"))))
        self._seen: dict[int, tuple[Outcome | JobState | None, ...]] = {}

    @property
    def scripts_once(self) -> bool:
        """Whether a second run of a job skips the script."""
        return self.bound.once and self.bound.parts.skips

    def world(self, cluster: Cluster) -> World:
        """Returns a batch system to which something may happen."""
        parts = self.bound.parts
        return World(cluster, self.scripts_once, looks=parts.looks, waits=parts.waits)

    @property
    def faults(self) -> Mapping[str, int]:
        """How often each fault may come."""
        return self.bound.faults

    def first(self) -> QueueState:
        """Returns the state before the daemon's first start; with arrays that where all jobs have just come."""
        jobs = self.bound.jobs
        state = QueueState(
            -1, None, self.events.empty(), (Told(),) * jobs, Cluster((Program(),) * jobs)
        )
        if not self.bound.arrays:
            return state
        state = self._lived(state, _Life.starts, _usual())
        state = self._lived(state, lambda life: life.step.compare(), _usual())
        for at in range(jobs):
            happens = partial(_Life.happens, event=_submission(at), ref=("submit", at))
            state = self._lived(state, happens, _usual())
        return state

    # --- what may happen -----------------------------------------------------------------------

    def actions(self, state: QueueState) -> Iterable[Action[QueueState]]:
        """Returns all that may happen."""
        yield from self._of_cluster(state)
        yield from self._at_partner(state)
        young = any(not job.submitted for job in state.cluster.jobs)
        if young or (state.known is not None and state.known.settles):
            yield Action(("some seconds pass",), partial(self._passes, state, AGES[1]))
        if self._waits_for_limit(state):
            yield Action(("a long time passes",), partial(self._passes, state, AGES[2]))
        if state.known is None:
            yield self._life(state, ("the daemon starts",), _Life.starts)
            return
        yield Action(("the daemon dies",), lambda _: self._died(state), "crash")
        yield from self._of_users(state)
        yield from self._of_partner(state)
        yield self._life(state, ("it polls",), lambda life: life.step.poll())
        if not state.known.compared:
            yield self._life(state, ("it compares",), lambda life: life.step.compare())
            return
        submits = [call for call in state.known.calls if call.step is LrmsStep.SUBMIT]
        if self.bound.arrays and len(submits) > 1:
            label = (f"it submits {' and '.join(call.key for call in submits)} together",)
            yield self._life(state, label, lambda life: life.step.call(*submits))
            submits = []
        for call in state.known.calls:
            if call.step is LrmsStep.SUBMIT and call not in submits:
                continue
            label = (f"it makes a call: {call.step.value} {call.key}",)
            yield self._life(state, label, lambda life, call=call: life.step.call(call))  # type: ignore[misc]  # a loop's value
        for call, put_off in state.known.paused:
            label = (f"the pause of a call is over: {call.step.value} {call.key}",)
            yield self._life(
                state,
                label,
                lambda life, call=call, put_off=put_off: life.step.again(call, put_off=put_off),  # type: ignore[misc]  # a loop's values
            )

    @staticmethod
    def _waits_for_limit(state: QueueState) -> bool:
        # Time passes where somebody waits for it.
        cluster = state.cluster
        if cluster.processes:
            return False
        doubts = state.known is not None and state.known.doubts
        return doubts or any(job.phase == RUNS and job.started < AGES[2] for job in cluster.jobs)

    def _life(
        self, state: QueueState, label: tuple[str, ...], happens: Happens, kind: str = ""
    ) -> Action[QueueState]:
        return Action(label, partial(self._lived, state, happens), kind)

    def _lived(self, state: QueueState, happens: Happens, choices: Choices) -> QueueState:
        life = _Life(self, state, choices)
        try:
            happens(life)
            return life.state()
        except DiedError:
            return life.dead()
        except (IllegalMove, AssertionError, KeyError, ValueError, IndexError) as error:
            raise ViolationError(f"{type(error).__name__}: {error}") from error

    @staticmethod
    def _died(state: QueueState) -> QueueState:
        return state._replace(site=-1, known=None)

    def _passes(self, state: QueueState, age: float, choices: Choices) -> QueueState:
        world = World(state.cluster)
        world.passes(age, writes=self._may_forget(state.cluster))
        after = state._replace(cluster=world.value)
        if state.known is None:
            return after
        life = _Life(self, after, choices, passed=age)
        return life.state()

    def _of_users(self, state: QueueState) -> Iterable[Action[QueueState]]:
        for at, told in enumerate(state.told):
            if not told.submitted:
                submit = _submission(at)
                yield self._life(
                    state,
                    (f"a user submits job {at + 1}",),
                    lambda life, at=at, event=submit: life.happens(event, ("submit", at)),  # type: ignore[misc]  # a loop's values
                )
                return  # one after the other
            if told.cancel != "told":
                yield self._life(
                    state,
                    (f"a user cancels job {at + 1}",),
                    partial(_cancels, at=at),
                    "" if told.cancel else "cancel",
                )

    def _at_partner(self, state: QueueState) -> Iterable[Action[QueueState]]:
        # What the partner does by itself.
        for at, program in enumerate(state.cluster.programs):
            if program.guest is not None and program.guest.phase == HAS:
                for phase, kind in ((RAN_THERE, ""), (SENT_HOME, "send home")):
                    happens = partial(_has_ended_there, at=at, phase=phase)
                    label = (f"the partner {phase}: job {at + 1}",)
                    yield Action(label, partial(self._changed, state, happens), kind)

    def _of_partner(self, state: QueueState) -> Iterable[Action[QueueState]]:
        if not self.bound.places:
            return
        for at, program in enumerate(state.cluster.programs):
            if program.guest is not None and is_over(program.guest) and not program.guest.reported:
                label = (f"the partner reports the end of job {at + 1}",)
                yield self._life(state, label, partial(_Life.reports, at=at))
        yield self._life(
            state,
            ("jobs that wait are offered again",),
            lambda life: life.happens(RoundDue(FIRST_ID, load())),
            "round",
        )

    def _of_cluster(self, state: QueueState) -> Iterable[Action[QueueState]]:
        forgets = self._may_forget(state.cluster)
        for label, happens, kind in cluster_steps(state.cluster, forgets=forgets):
            yield Action((label,), partial(self._changed, state, happens), kind)

    def _may_forget(self, cluster: Cluster) -> bool:
        return cluster.forgot < self.faults.get("undo", 0)

    @property
    def _is_in_doubt(self) -> bool:
        # Whether what an operator has ended may count as lost.
        return any(self.faults.get(each) for each in _DOUBTS)

    def _changed(
        self, state: QueueState, happens: Callable[[World], None], _: Choices
    ) -> QueueState:
        world = self.world(state.cluster)
        happens(world)
        cluster = world.value
        if not self._may_forget(cluster):
            # What the controller has written down decides nothing any more.
            cluster = cluster._replace(written=NOTHING_WRITTEN)
        if self._is_in_doubt:
            programs = (one._replace(ended_early=False) for one in cluster.programs)
            cluster = cluster._replace(programs=tuple(programs))
        return state._replace(cluster=cluster)

    # --- what must be --------------------------------------------------------------------------

    def _users_see(self, durable: int) -> tuple[Outcome | JobState | None, ...]:
        seen = self._seen.get(durable)
        if seen is None:
            memory, _ = thaw(self.events.memories[durable], self.events.settings)
            found: list[Outcome | JobState | None] = []
            for at in range(self.bound.jobs):
                number = memory.keys.get((USER, f"key-{at}"))
                job = None if number is None else memory.jobs[number]
                found.append(None if job is None else job.outcome or job.state)
            seen = self._seen[durable] = tuple(found)
        return seen

    def wrong(self, state: QueueState) -> str:
        """Returns what must not be of a state; empty if all is well."""
        cluster = state.cluster
        running = {program_of(one.key) for one in cluster.processes if not (one.skips or one.waits)}
        seen = self._users_see(state.durable)
        for at, (program, told, end) in enumerate(
            zip(cluster.programs, state.told, seen, strict=True)
        ):
            name = f"job {at + 1}"
            if problem := self._wrong_runs(program, cluster):
                return f"{name} {problem}"
            if told.submitted and end is None:
                return f"{name} was acknowledged, and is lost"
            if isinstance(end, Outcome):
                problem = self._wrong_end(program, told, end, cluster, running=at in running)
                if problem:
                    return f"{name} {problem}"
        return ""

    def _wrong_runs(self, program: Program, cluster: Cluster) -> str:
        excused = cluster.forgot + program.by_hand
        if program.begun and program.is_away:
            return f"has begun, and the partner {program.away_word}"
        if program.begun > (1 if self.bound.once else 1 + excused):
            return f"has begun {program.begun} times"
        if program.launched > 1 + excused:
            return f"was started {program.launched} times"
        if program.ended_early and program.launched:
            return "was ended by an operator before it began, and was started"
        return ""

    @staticmethod
    def _wrong_end(
        program: Program, told: Told, end: Outcome, cluster: Cluster, *, running: bool
    ) -> str:
        said = f"has ended as {end.value}"
        if end is Outcome.COMPLETED:
            return "" if program.finished else f"{said}, and has not run to its end"
        forgot = cluster.forgot or program.by_hand
        if program.finished and not forgot and end is not Outcome.UNKNOWN:
            return f"{said}, and has run to its end"
        if told.cancel or program.by_hand:
            return ""
        if running:
            return f"{said}, and its script runs"
        unknown = end is Outcome.UNKNOWN and cluster.forgot and program.launched
        denied = end is Outcome.FAILED and program.denied and not program.launched
        if unknown or denied:
            return ""
        return f"{said}, and nobody has wanted that"

    def is_end(self, state: QueueState) -> bool:
        """Returns whether all jobs have ended, and nothing waits for anything."""
        cluster, known = state.cluster, state.known
        if known is None or cluster.down or cluster.processes or cluster.arriving:
            return False
        if known.calls or known.paused or known.queue[1] or known.tracker[0] or not known.compared:
            return False
        if cluster.places or any(job.live for job in cluster.jobs):
            return False
        return all(
            told.submitted and told.cancel != "wanted" and isinstance(end, Outcome)
            for told, end in zip(state.told, self._users_see(state.durable), strict=True)
        )


def _has_ended_there(world: World, at: int, phase: str) -> None:
    key, guest = key_of(at), world.value.programs[at].guest
    assert guest is not None
    world.at_partner(key, guest._replace(phase=phase), ran=phase == RAN_THERE)


def _submission(at: int) -> Submit:
    return Submit(FIRST_ID, load(), USER, f"key-{at}", "", Request(1, 100.0), b"%d" % at)


def _usual() -> Choices:
    # Nothing goes wrong.
    return Choices((), Budgets({}), "")


def _cancels(life: _Life, at: int) -> None:
    life.wants_end(at)
    life.happens(Cancel(FIRST_ID, load(), f"{SITE_NAME}-{at + 1}", USER), ("cancel", at))
