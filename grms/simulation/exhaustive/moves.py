"""All that may happen to a site, and what follows: once for each of its states."""

from collections.abc import Callable, Iterable
from functools import partial

from grms.lrms.base import Hindered
from grms.simulation.batch_system import GOES_ON
from grms.simulation.exhaustive.batch import (
    CANCELLED,
    COMPLETED,
    GONE,
    KEPT,
    NEW,
    OVER,
    PREEMPTED,
    RUNS,
    WAITS,
    BatchJob,
    forgotten,
    moved,
)
from grms.simulation.exhaustive.exploration import FoundError, Label
from grms.simulation.exhaustive.numbers import Numbers
from grms.simulation.exhaustive.steps import (
    NAME,
    NOTHING,
    USER,
    Actor,
    Effect,
    Message,
    Result,
    SiteStep,
    ViolationError,
    Wish,
    as_known,
    load,
)
from grms.site.model.commands import SendOffer, SendReport
from grms.site.model.events import (
    Cancel,
    LrmsRefused,
    PartnerDown,
    PartnerLost,
    Resubmit,
    RoundDue,
    StateFetched,
    Submit,
    TakeBack,
    TimePassed,
    WriteOff,
)
from grms.site.model.jobs import Completion, OfferId, StateThere
from grms.site.model.lifecycle import Outcome

Move = tuple[int, int, int, Label]
"""What it costs, the actor after it, what it does to the network, and what it is."""


class Moves:
    """What may happen to sites."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self._deliveries: dict[tuple[int, int, int], list[Move]] = {}
        self._timeouts: dict[tuple[int, int, int], list[Move]] = {}
        self._ups: dict[tuple[int, int, int, OfferId | None], list[Move]] = {}

    def _results(
        self, place: int, results: Iterable[Result], label: Label, *kinds: str
    ) -> list[Move]:
        moves: list[Move] = []
        for one in results:
            cost = one.cost if one.cost != "crash" else f"crash {place}"
            number = self.numbers.budgets.cost(*kinds, cost)
            if number >= 0:
                told = (*label, one.cost, one.step) if one.cost else label
                actor = self.numbers.actor(place, one.actor, told)
                moves.append((number, actor, self.numbers.effect(one.effect), told))
        return moves

    def _step(
        self,
        place: int,
        actor: Actor,
        happen: Callable[[SiteStep], None],
        label: Label,
        *kinds: str,
    ) -> list[Move]:
        if self.numbers.budgets.cost(*kinds) < 0:
            return []
        try:
            results = self.numbers.sites[place].step(actor, happen)
        except ViolationError as error:
            raise FoundError(str(error), label) from error
        return self._results(place, results, label, *kinds)

    def of_site(self, place: int, number: int) -> list[Move]:
        """Returns all that may happen to a site without a message, or a look at a partner."""
        actor, site = self.numbers.actors[place][number], self.numbers.sites[place]
        moves = self._of_batch(place, actor) + self._of_copies(place, actor)
        if not actor.up:
            moves += self._step(place, actor, SiteStep.start, (place, "starts"))
            return moves
        dead = Result("crash", site.crashed(actor), Effect(dies=True))
        moves += self._results(place, [dead], (place, "idle"))
        if actor.outbox:
            label: Label = (place, "its records are durable")
            try:
                moves += self._results(place, SiteStep(site, actor).flushed(), label)
            except (AssertionError, KeyError, ValueError) as error:
                raise FoundError(f"{self.numbers.judge.name(place)}: {error}", label) from error
        if actor.news:
            moves += self._step(place, actor, SiteStep.hear, (place, "the batch system answers"))
        for job in actor.jobs:
            if job.heard not in {"", job.phase}:
                key = job.key
                moves += self._step(
                    place,
                    actor,
                    partial(SiteStep.look, key=key),
                    (place, "looks at", key),
                )
        moves += self._of_users(place, actor)
        moves += self._of_operators(place, actor)
        for home, offer in self.numbers.judge.known(place, actor).never_had:
            moves += self._lies(place, actor, home, offer)
        return moves

    def _of_copies(self, place: int, actor: Actor) -> list[Move]:
        kind = f"put back {place}"
        if actor.copy < 0:
            copied = actor._replace(copy=actor.durable)
            return self._results(
                place, [Result("", copied, NOTHING)], (place, "has its journal copied"), kind
            )
        back = self.numbers.sites[place].put_back(actor)
        result = Result("", back, Effect(dies=True))
        return self._results(place, [result], (place, "dies, and the copy is put back"), kind)

    def _of_users(self, place: int, actor: Actor) -> list[Move]:
        moves: list[Move] = []
        asked = {ref for _, ref in actor.outbox}
        for at, (wish, told) in enumerate(
            zip(self.numbers.sites[place].wishes, actor.told, strict=True)
        ):
            if not told.submitted:
                if ("submit", at) not in asked:
                    moves += self._step(
                        place, actor, _submits(wish, at), (place, "a user submits", at)
                    )
                break  # one after the other
            if told.cancel == "told" or ("cancel", at) in asked:
                continue
            wanted = list(actor.told)
            wanted[at] = told._replace(cancel="wanted")
            moves += self._step(
                place,
                actor._replace(told=tuple(wanted)),
                _cancels(f"{self.numbers.judge.name(place)}-{at + 1}", at),
                (place, "a user cancels", at),
                "" if told.cancel else "cancel",
            )
        return moves

    def _of_operators(self, place: int, actor: Actor) -> list[Move]:
        known, moves = self.numbers.judge.known(place, actor), list[Move]()
        if known.held:
            moves += self._step(place, actor, _time_passes, (place, "places expire"), "expire")
        if known.waits:
            moves += self._step(
                place,
                actor,
                lambda step: step.happen(lambda i: RoundDue(i, load())),
                (place, "offers again what waits"),
                "round",
            )
        for job_number, there in known.fetching:
            for reason, kind in (("", ""), ("it has none", "missed")):
                moves += self._step(
                    place,
                    actor,
                    _fetched(job_number, there, reason),
                    (place, "state", reason or "comes", job_number),
                    kind,
                )
        for job_id in known.away:
            for kind, act in (
                ("take back", TakeBack),
                ("resubmit", Resubmit),
                ("write off", WriteOff),
            ):
                # What a partner's older journal has lost only an operator gets going again.
                free = self.numbers.bound.again and act is Resubmit and job_id in known.suspect
                label: Label = (place, f"an operator: {kind}", job_id)
                moves += self._step(place, actor, _acts(act, job_id), label, "" if free else kind)
        for at, name in enumerate(one.name for one in self.numbers.bound.settings):
            if at == place:
                continue
            if at not in known.unreachable:
                # That a daemon has died, and is back with another journal, shows at its connections.
                kind = "" if self.numbers.bound.again else "down"
                moves += self._step(
                    place, actor, _down(name), (place, "does not reach", name), kind
                )
            else:
                moves += self._step(place, actor, _lost(name), (place, "has lost", name), "lost")
        return moves

    def _lies(self, place: int, actor: Actor, home: int, offer: OfferId) -> list[Move]:
        # It says that it has kept work, too. Nobody waits for the answer.
        name = self.numbers.judge.name(home)
        said = Completion(offer, Outcome.PREEMPTED, 0.0, 1.0, kept=KEPT)
        message = Message(place, home, 0, SendReport(0, name, said, 0.0))
        result = Result("", actor, Effect(sent=(message,)))
        return self._results(place, [result], (place, "says it has sent home", message), "lie")

    def _of_batch(self, place: int, actor: Actor) -> list[Move]:
        # A batch system goes on whether anybody is above it or not.
        moves: list[Move] = []
        for job in actor.jobs:
            steps: list[tuple[str, str]] = []
            if job.phase == WAITS:
                steps = [(RUNS, ""), (CANCELLED, "end by hand")]
                if not job.runs:
                    steps.append((GONE, "gone"))
            elif job.phase == RUNS:
                steps = [(COMPLETED, ""), (WAITS, "requeue")]
                if job.preemptible:
                    steps.append((PREEMPTED, "preempt"))
            for phase, kind in steps:
                after = actor._replace(jobs=moved(job, actor.jobs, phase))
                moves += self._batch_move(place, after, (place, "job", job.key, phase), kind)
            if actor.up:
                moves += self._batch_says(place, actor, job)
        return moves

    def _batch_says(self, place: int, actor: Actor, job: BatchJob) -> list[Move]:
        moves: list[Move] = []
        key, told = job.key, (place, "the batch system")
        guest = not key.startswith(f"{self.numbers.judge.name(place)}/")
        if guest and job.phase == WAITS and job.heard == NEW:
            jobs = tuple(one for one in actor.jobs if one.key != key)
            news = (*actor.news, LrmsRefused(key, "it is shut"))
            after = actor._replace(jobs=jobs, news=news)
            moves += self._batch_move(place, after, (*told, "refuses", key), "refuse")
        if job.phase == WAITS and job.heard == WAITS:
            news = (*actor.news, Hindered(key, "it is shut"))
            after = actor._replace(news=news)
            moves += self._batch_move(place, after, (*told, "does not start", key), "hinder")
        if job.phase in OVER and job.heard == job.phase and not actor.outbox:
            after = actor._replace(jobs=forgotten(job, actor.jobs))
            moves += self._batch_move(place, after, (*told, "forgets", key), "forget")
        return moves

    def _batch_move(self, place: int, after: Actor, label: Label, kind: str) -> list[Move]:
        if self.numbers.budgets.cost(kind) < 0:
            return []
        return self._results(place, [Result("", after, NOTHING)], label, kind)

    # --- between sites ---

    def delivered(self, place: int, number: int, message: int) -> list[Move]:
        """Returns what follows when a message arrives."""
        key = place, number, message
        moves = self._deliveries.get(key)
        if moves is None:
            actor, told = self.numbers.actors[place][number], self.numbers.messages[message]
            told = as_known(told, self.numbers.bound.unknown)
            label: Label = (place, "gets", told)
            if told.answer is None:
                moves = self._step(place, actor, lambda step: step.asked(told), label)
                if isinstance(told.question, SendOffer):
                    moves += self._step(
                        place,
                        actor,
                        lambda step: step.asked(told, busy=True),
                        (*label, "while it is full"),
                        "busy",
                    )
            else:
                moves = self._step(
                    place, actor, lambda step: step.answered(told.call, told.answer), label
                )
            self._deliveries[key] = moves
        return moves

    def unanswered(self, place: int, number: int, call: int) -> list[Move]:
        """Returns what follows when a call has had no answer for too long."""
        key = place, number, call
        moves = self._timeouts.get(key)
        if moves is None:
            actor = self.numbers.actors[place][number]
            command = dict(actor.calls)[call]
            moves = self._timeouts[key] = self._step(
                place,
                actor,
                lambda step: step.answered(call, None),
                (place, "no answer to", command),
            )
        return moves

    def up(self, place: int, number: int, partner: int, seen: OfferId | None) -> list[Move]:
        """Returns what follows when a partner is reached, which has seen that offer last."""
        key = place, number, partner, seen
        moves = self._ups.get(key)
        if moves is None:
            moves = self._ups[key] = self._step(
                place,
                self.numbers.actors[place][number],
                lambda step: step.partner_up(partner, seen),
                (place, "reaches", self.numbers.judge.name(partner)),
            )
        return moves


def _submits(wish: Wish, at: int) -> Callable[[SiteStep], None]:
    def happen(step: SiteStep) -> None:
        step.happen(
            lambda i: Submit(
                *(i, load(), USER, wish.key, NAME, wish.request, wish.payload),
                checkpoint=wish.checkpoint,
            ),
            ("submit", at),
        )

    return happen


def _cancels(job_id: str, at: int) -> Callable[[SiteStep], None]:
    def happen(step: SiteStep) -> None:
        step.happen(lambda i: Cancel(i, load(), job_id, USER), ("cancel", at))

    return happen


def _fetched(job: int, there: StateThere, reason: str) -> Callable[[SiteStep], None]:
    come = b"" if reason else GOES_ON + b"1"
    return lambda step: step.happen(
        lambda i: StateFetched(i, load(), job, there.partner, there.offer, come, reason)
    )


def _acts(act: type[TakeBack | Resubmit | WriteOff], job_id: str) -> Callable[[SiteStep], None]:
    def happen(step: SiteStep) -> None:
        step.happen(lambda i: act(i, load(), job_id, "root"), ("operator", 0))

    return happen


def _time_passes(step: SiteStep) -> None:
    step.age += 1
    step.happen(lambda i: TimePassed(i, load()))


def _down(name: str) -> Callable[[SiteStep], None]:
    return lambda step: step.happen(lambda i: PartnerDown(i, name))


def _lost(name: str) -> Callable[[SiteStep], None]:
    return lambda step: step.happen(lambda i: PartnerLost(i, load(), name))
