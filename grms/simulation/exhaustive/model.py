"""What may happen within a bound, and what must not be true of a state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from grms.simulation.exhaustive.batch import COMPLETED, OVER, PREEMPTED, RUNS
from grms.simulation.exhaustive.encoding import StateFactory, durable, revive, thaw
from grms.simulation.exhaustive.exploration import FoundError, Label
from grms.simulation.exhaustive.steps import USER, Actor, Memories, Wish
from grms.simulation.findings import unfinished
from grms.site.model.jobs import OfferId, Request, StateThere
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.partners import PartnerBook
from grms.site.model.settings import SiteSettings


@dataclass(frozen=True, slots=True)
class Bound:
    """What may happen.

    Attributes:
        name: for people.
        settings: of the sites, in order.
        homes: places of the sites at which a job is submitted, one for each job.
        faults: how often each may come, by name (`FAULTS`); the others never.
        once: no job may run twice; else not at two places at a time.
        promised: what a user is told is true; not where an operator, or a lost partner, takes the risk.
        writes: jobs write their state, and go on from it.
        unknown: fields of messages that partners' older program does not know.
        again: what runs may run once more beside that, as a journal may be put back; what completes has run to its end.
    """

    name: str
    settings: tuple[SiteSettings, ...]
    homes: tuple[int, ...]
    faults: Mapping[str, int]
    once: bool = True
    promised: bool = True
    writes: bool = False
    again: bool = False
    unknown: tuple[str, ...] = ()

    def wishes(self) -> tuple[Wish, ...]:
        """Returns what users want."""
        return tuple(
            Wish(
                *(home, bit, f"hidden-key-{bit}", b"job %d" % bit, Request(1, 100.0)),
                checkpoint=float(self.writes),
            )
            for bit, home in enumerate(self.homes)
        )


FAULTS: Final[Mapping[str, str]] = {
    **{f"crash {place}": f"the process of site {place} dies" for place in range(3)},
    **{
        f"put back {place}": f"the journal of site {place} is copied; or put back"
        for place in range(3)
    },
    "loss": "a message is lost",
    "duplicate": "a question arrives twice",
    "early": "a call has no answer in time though question or answer is under way",
    "late": "records take their time, and other events come meanwhile",
    "busy": "the site that is asked is full",
    "cancel": "a user cancels a job",
    "expire": "places have been held for too long",
    "round": "jobs that wait are offered again",
    "down": "a partner does not answer",
    "lost": "a partner is lost",
    "requeue": "a batch system starts a job anew",
    "preempt": "a batch system ends a partner's job for another one",
    "lie": "a site reports that it has ended a partner's job for another one, which it never had or has declined",
    "missed": "what a job has written at a partner cannot come",
    "end by hand": "an operator ends a job that waits in a batch system",
    "gone": "a batch system loses a job that waits",
    "forget": "a batch system forgets a job that has ended",
    "refuse": "a batch system refuses a job",
    "hinder": "a batch system says that it does not start a job",
    "take back": "an operator wants a job back",
    "resubmit": "an operator has a job decided anew",
    "write off": "an operator gives up on a job",
}
"""What may go wrong, or has to be wanted by somebody."""


NEVER_MADE: Final = 99
"""No site makes so many offers."""


def _declined(book: PartnerBook) -> list[int]:
    declined = GuestState.DECLINED
    return sorted(number for number, answer in book.answered.items() if answer is declined)


class Known(NamedTuple):
    """What others have to know of a site's memory.

    Attributes:
        unreachable: places of partners that it does not ask.
        seen: by place, the partner's last offer that it has seen.
        open: what it waits for, in sentences.
        never_had: of each site an offer that it has never got, and those that this site has declined.
        held: it holds places.
        waits: it may hold a round of offers.
        away: names of jobs that are at a partner.
        suspect: those of them of which nobody knows where they are.
        fetching: numbers of jobs whose state is on its way home, with where it is.
        at_rest: what has to survive a restart.
    """

    unreachable: tuple[int, ...]
    seen: tuple[OfferId | None, ...]
    open: tuple[str, ...]
    never_had: tuple[tuple[int, OfferId], ...]
    held: bool
    waits: bool
    away: tuple[str, ...]
    suspect: tuple[str, ...]
    fetching: tuple[tuple[int, StateThere], ...]
    at_rest: object


class Facts(NamedTuple):
    """What is true of an actor, by bits of jobs.

    Attributes:
        ran: it has run them.
        lives: they wait or run there.
        runs: they run there.
        done: it has run them to their end.
        ended: their users see them ended.
        claimed: their users see them completed.
        denied: their users see another end, but for an unknown one.
        preempted: how often each was ended there for another job.
        returned: how often their home has noted that of each.
        over: nothing is left to be done.
    """

    ran: int
    lives: int
    runs: int
    done: int
    ended: int
    claimed: int
    denied: int
    preempted: tuple[int, ...]
    returned: tuple[int, ...]
    over: bool


class Seen(NamedTuple):
    """What a user sees of a job: how it has ended, or stands; and how often it was sent home."""

    outcome: Outcome | JobState | None
    returned: int


class Judge:
    """Says what is true of actors, and what must not be; `factory` makes the states of sites."""

    def __init__(self, bound: Bound, memories: Memories, factory: StateFactory) -> None:
        self.bound = bound
        self.memories = memories
        self.factory = factory
        self.wishes = bound.wishes()
        count = len(bound.settings)
        self._known: list[dict[int, Known]] = [{} for _ in range(count)]
        self._users_see: list[dict[int, tuple[Seen, ...]]] = [{} for _ in range(count)]

    def name(self, place: int) -> str:
        """Returns the name of a site."""
        return self.bound.settings[place].name

    def wishes_of(self, place: int) -> list[Wish]:
        """Returns what the users of a site want."""
        return [wish for wish in self.wishes if wish.home == place]

    def known(self, place: int, actor: Actor) -> Known:
        """Returns what others have to know of a site that is up."""
        found = self._known[place].get(actor.live)
        if found is None:
            state = revive(self.memories[actor.live], self.bound.settings[place], self.factory)
            memory = state.memory
            books = memory.books
            names = [one.name for one in self.bound.settings]
            found = self._known[place][actor.live] = Known(
                unreachable=tuple(
                    at
                    for at, name in enumerate(names)
                    if name in books and not books[name].reachable
                ),
                seen=tuple(books[name].offer_seen if name in books else None for name in names),
                open=tuple(unfinished(state, "")),
                never_had=tuple(
                    (names.index(book.name), OfferId(book.epoch or 1, number))
                    for book in books.values()
                    for number in (NEVER_MADE, *_declined(book))
                ),
                held=bool(memory.reserved),
                waits=any(job.state is JobState.QUEUED for job in memory.jobs.values())
                and memory.settings.reoffer is not None,
                away=tuple(job.job_id for job in memory.jobs.values() if job.partner),
                suspect=tuple(
                    job.job_id for job in memory.jobs.values() if job.state is JobState.SUSPECT
                ),
                fetching=tuple(
                    (number, job.state_there)
                    for number, job in memory.fetching.items()
                    if job.state_there is not None
                ),
                at_rest=durable(memory),
            )
        return found

    def _seen(self, place: int, number: int) -> tuple[Seen, ...]:
        # What the users of a site see, by what its journal recovers to.
        seen = self._users_see[place].get(number)
        if seen is None:
            memory, _ = thaw(self.memories[number], self.bound.settings[place])
            found: list[Seen] = []
            for wish in self.wishes_of(place):
                number_of_job = memory.keys.get((USER, wish.key))
                job = None if number_of_job is None else memory.jobs[number_of_job]
                if job is None:
                    found.append(Seen(None, 0))
                else:
                    times = sum(each.times for each in job.sent_home)
                    found.append(Seen(job.outcome or job.state, times))
            seen = self._users_see[place][number] = tuple(found)
        return seen

    def facts_of(self, place: int, actor: Actor, label: Label) -> Facts:
        """Returns what is true of an actor.

        Raises:
            FoundError: it must not be.
        """
        bits = {wish.payload: 1 << wish.bit for wish in self.wishes}
        runs: dict[bytes, int] = {}
        preempted = [0] * len(self.wishes)
        returned = [0] * len(self.wishes)
        numbers = {wish.payload: wish.bit for wish in self.wishes}
        ran = lives = running = done = 0
        for job in actor.jobs:
            bit = bits[job.payload]
            again = job.phase == PREEMPTED  # it may run once more, elsewhere or here
            preempted[numbers[job.payload]] += again
            runs[job.payload] = runs.get(job.payload, 0) + job.runs - job.requeued - again
            ran |= bit if job.runs and not again else 0
            running |= bit if job.phase == RUNS else 0
            done |= bit if job.phase == COMPLETED else 0
            if job.phase not in OVER:
                if lives & bit and not self.bound.again:
                    raise FoundError(f"{self.name(place)} has {job.payload!r} twice", label)
                lives |= bit
        if self.bound.once and max(runs.values(), default=0) > 1:
            raise FoundError(f"a job has run 2 times at {self.name(place)}", label)
        ended = claimed = denied = 0
        seen = self._seen(place, actor.durable)
        settled = True
        for wish, told, (outcome, times) in zip(
            self.wishes_of(place), actor.told, seen, strict=True
        ):
            bit = 1 << wish.bit
            returned[wish.bit] = times
            if told.submitted and outcome is None:
                raise FoundError(f"{wish.payload!r} was acknowledged, and is lost", label)
            if not isinstance(outcome, Outcome):
                settled = False
                continue
            ended |= bit
            claimed |= bit if outcome is Outcome.COMPLETED else 0
            denied |= bit if outcome not in {Outcome.COMPLETED, Outcome.UNKNOWN} else 0
            settled = settled and told.submitted and told.cancel != "wanted"
            wanted = told.cancel or "end by hand" in self.bound.faults
            if self.bound.promised and outcome is not Outcome.COMPLETED and not wanted:
                text = f"{wish.payload!r} has ended as {outcome.value}, and nobody has wanted that"
                raise FoundError(text, label)
        over = settled and actor.up and not (actor.outbox or actor.calls or actor.news or lives)
        if over:
            over = self._is_over(place, actor, label)
        return Facts(
            *(ran, lives, running, done, ended, claimed, denied),
            tuple(preempted),
            tuple(returned),
            over,
        )

    def _is_over(self, place: int, actor: Actor, label: Label) -> bool:
        if self.known(place, actor).open or any(
            job.heard not in {"", job.phase} for job in actor.jobs
        ):
            return False
        memory, _ = thaw(self.memories[actor.durable], self.bound.settings[place])
        if durable(memory) != self.known(place, actor).at_rest:
            text = (
                f"{self.name(place)}: the journal says {durable(memory)}, the site "
                f"{self.known(place, actor).at_rest}"
            )
            raise FoundError(text, label)
        return True

    def judge(self, facts: Sequence[Facts], label: Label) -> None:
        """Looks at what is true of all sites together.

        Raises:
            FoundError: it must not be.
        """
        ended = claimed = denied = done = lives = 0
        ran = running = 0
        for one in facts:
            if self.bound.once and ran & one.ran:
                raise FoundError("a job has run 2 times, at two sites", label)
            if self.bound.promised and not self.bound.again and running & one.runs:
                raise FoundError("a job runs 2 times at a time", label)
            ran, running = ran | one.ran, running | one.runs
            ended, claimed, denied = ended | one.ended, claimed | one.claimed, denied | one.denied
            done, lives = done | one.done, lives | one.lives
        if "preempt" in self.bound.faults:
            self._judge_returns(facts, claimed, label)
        if not self.bound.promised:
            return
        if claimed & ~done:
            raise FoundError("a job is completed at home, and has not run to its end", label)
        if self.bound.again:
            return
        if ended & lives:
            raise FoundError("a job has ended for its user, and is still in a batch system", label)
        if denied & done:
            raise FoundError("a job has run to its end, and its home says otherwise", label)

    def _judge_returns(self, facts: Sequence[Facts], claimed: int, label: Label) -> None:
        # What a home notes has happened; and in the end all that has happened is noted, but for the last end of a job
        # that did not complete.
        over = all(one.over for one in facts)
        for wish in self.wishes:
            happened = sum(one.preempted[wish.bit] for one in facts)
            noted = sum(one.returned[wish.bit] for one in facts)
            left = happened - noted
            lied = (
                left < 0 and "lie" in self.bound.faults
            )  # of one that was declined it may be believed
            if (left < 0 and not lied) or (over and left > (not claimed & 1 << wish.bit)):
                text = f"{wish.payload!r} was sent home {happened} times, and its home says {noted} times"
                raise FoundError(text, label)
