"""All that can happen within small bounds: nothing lost, nothing twice, everything ends.

And a test of the test: each careless protocol of the fault test that a bound can show is found, with a shortest story
that can be taken again; and what is found needs the fault that it takes.
"""

from collections import Counter
from dataclasses import replace

import pytest

from grms.lrms.base import Requeued
from grms.simulation.exhaustive import numbers
from grms.simulation.exhaustive.batch import Batch
from grms.simulation.exhaustive.bounds import AGAIN, RETURNS, ROUNDS, SMALL, WRITES, bound
from grms.simulation.exhaustive.encoding import Frozen
from grms.simulation.exhaustive.model import Bound
from grms.simulation.exhaustive.search import explore, replay
from grms.simulation.exhaustive.space import Space
from grms.simulation.exhaustive.steps import NAME, RENUMBERED, Memories, Site
from grms.site.model.commands import Command, SendOffer
from grms.site.model.events import Event, LrmsNews, ReportReceived
from grms.site.model.records import EpochBegun, JobSentHome, Record, RerunAllowed
from grms.site.scheduler.state import SiteState
from tests.grms.simulation import test_fault_run as careless
from tests.grms.simulation import test_preemption as careless_returns

BY_NAME = {one.name: one for one in SMALL}


@pytest.mark.parametrize("name", list(BY_NAME))
def test_nothing_that_must_not_be_is_found(name: str) -> None:
    """Every state within the bound is as it has to be, and leads to the end."""
    found = explore(BY_NAME[name])
    assert not found.violation, "\n".join([found.violation, *found.story])
    assert found.complete
    assert found.stuck == 0
    assert found.ends > 0
    assert found.journals > 0


class SaysNames(SiteState):
    """Tells a partner what a job is called."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Puts it in front of what runs."""
        return [
            replace(command, payload=NAME.encode()) if isinstance(command, SendOffer) else command
            for command in super().handle(event, now)
        ]


class BelievesReports(SiteState):
    """Takes a report of whatever offer for one of the job that the partner has."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """Looks for that job first."""
        if isinstance(event, ReportReceived):
            for job in self.memory.books[event.partner].open.values():
                told = tuple(replace(one, offer=job.offer) for one in event.completions)
                event = replace(event, completions=told)
        return super().handle(event, now)


UNHEARD = bound("unheard", loss=1, duplicate=1, early=1, busy=1)
DEATHS = bound("deaths", crash_0=1, crash_1=1, busy=1, duplicate=1)
FORGET = bound("forget", forget=1, crash_1=1)
HINDER = bound("hinder", hinder=1, crash_1=1, busy=1)
REFUSE = bound("refuse", refuse=1, busy=1)

GIVEN_UP = bound("an offer is declined or withdrawn", busy=1, cancel=1, loss=1)

FALSE = bound("false returns", lie=1, **RETURNS)

SENT_HOME = bound("sent home", preempt=1, down=1, lost=1, crash_0=1, **RETURNS)

CARELESS = [
    (careless.WithoutTombstone, UNHEARD, "has run 2 times", 9),
    (careless.NoAnswerIsNo, UNHEARD, "has run 2 times", 5),
    (careless.DecidesAnew, UNHEARD, "has run 2 times", 7),
    (careless.ForgetsDeclines, UNHEARD, "the journal says", 2),
    (careless.ReportsOnce, UNHEARD, "lead to no end", 6),
    (careless.JournalLast, DEATHS, "was acknowledged, and is lost", 1),
    (careless.WithoutLookup, DEATHS, "was submitted before", 4),
    (careless.TakesNothingUp, DEATHS, "lead to no end", 1),
    (careless.SubmitsEndedAgain, FORGET, "still in a batch system", 9),
    (careless.GivesBackWhatWaits, HINDER, "has run 2 times", 8),
    (careless.ForgetsWhoseWish, HINDER, "nobody has wanted that", 9),
    (careless.FailsWhatIsRefused, REFUSE, "nobody has wanted that", 5),
    (SaysNames, UNHEARD, f"says {NAME}", 1),
    (BelievesReports, FALSE, "has run 2 times", 7),
    (careless_returns.SaysItEarly, SENT_HOME, "its home says 1 times", 5),
    (careless_returns.StartsOnSilence, SENT_HOME, "its home says 1 times", 5),
    (careless_returns.without(JobSentHome), SENT_HOME, "cannot become", 6),
    (careless_returns.without(RerunAllowed), SENT_HOME, "nobody has wanted that", 8),
]
NAMES = [factory.__name__ for factory, *_ in CARELESS]


@pytest.mark.parametrize(("factory", "within", "text", "steps"), CARELESS, ids=NAMES)
def test_a_careless_protocol_is_found_with_a_shortest_story(
    factory: type[SiteState], within: Bound, text: str, steps: int
) -> None:
    """The story is told step by step, and taking its steps again leads to the same."""
    found = explore(within, factory)
    assert text in found.violation
    assert len(found.story) == steps
    if "lead to no end" not in text:
        assert text in replay(within, found.labels, factory)


def test_a_batch_system_that_hides_a_start_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job starts, waits again and is cancelled by an operator while its daemon is dead: it has not left undone."""
    look = Batch.look

    def hides(self: Batch, key: str, now: float) -> list[LrmsNews]:
        return [news for news in look(self, key, now) if not isinstance(news, Requeued)]

    reoffers = ROUNDS["settings"]
    within = bound(
        "ended by hand", settings=reoffers, busy=1, round=1, requeue=1, end_by_hand=1, crash_0=1
    )
    monkeypatch.setattr(Batch, "look", hides)
    found = explore(within)
    assert "has run 2 times, at two sites" in found.violation
    assert len(found.story) == 14
    monkeypatch.undo()
    with pytest.raises(ValueError, match="step"):
        replay(within, found.labels)


@pytest.mark.parametrize(
    ("factory", "within", "faults"),
    [
        (careless.NoAnswerIsNo, UNHEARD, ("loss", "early")),
        (careless.ReportsOnce, UNHEARD, ("loss", "early")),
        (careless.DecidesAnew, UNHEARD, ("loss", "early", "duplicate")),
        (careless.WithoutTombstone, UNHEARD, ("loss", "early")),
        (careless.WithoutLookup, DEATHS, ("crash 0", "crash 1")),
        (careless.GivesBackWhatWaits, HINDER, ("hinder",)),
        (careless.FailsWhatIsRefused, REFUSE, ("refuse",)),
        (BelievesReports, FALSE, ("lie",)),
    ],
)
def test_without_the_fault_that_it_takes_nothing_is_found(
    factory: type[SiteState], within: Bound, faults: tuple[str, ...]
) -> None:
    """So each fault of a bound does something: an exploration without it would not be worth as much."""
    left = {kind: most for kind, most in within.faults.items() if kind not in faults}
    assert not explore(replace(within, faults=left), factory).violation


@pytest.mark.parametrize("name", ["loss, duplicate", "early time-out, late commit", "home dies"])
def test_what_is_found_in_haste_is_what_steps_say(name: str) -> None:
    """Both compute the states that follow one; the quick way is the other without labels."""
    space = Space(BY_NAME[name])
    states, at = [space.first()], 0
    known = set(states)
    while at < len(states):
        steps = space.steps(states[at])
        free, paid = space.successors(states[at])
        assert Counter(free) == Counter(to for to, is_free, _ in steps if is_free)
        assert Counter(paid) == Counter(to for to, is_free, _ in steps if not is_free)
        for to, *_ in steps:
            if to not in known:
                known.add(to)
                states.append(to)
        at += 1
    assert len(states) > 300


class LastKept(Memories):
    """Keeps of memories that count as the same the last one, and not the first."""

    def number(self, frozen: Frozen) -> int:
        """Returns its number."""
        known = super().number(frozen)
        self._frozen[known] = frozen
        return known


@pytest.mark.parametrize(
    "within", [BY_NAME["cancelled, loss"], UNHEARD, BY_NAME["rounds of offers"], GIVEN_UP]
)
def test_memories_that_count_as_the_same_do_the_same(
    within: Bound, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no part of a memory's key decides nothing: whichever is kept, the same is found."""
    first = explore(within)
    monkeypatch.setattr(numbers, "Memories", LastKept)
    last = explore(within)
    assert (last.states, last.transitions, last.ends) == (
        first.states,
        first.transitions,
        first.ends,
    )
    assert not last.violation


def test_an_older_journal_needs_new_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them a job gets the name that another has had in the batch system since the copy was made."""
    within = bound("not renumbered", put_back_0=2, busy=1, **AGAIN)
    append = Site.append

    def keeps_numbers(self: Site, durable: int, records: tuple[Record, ...]) -> int:
        is_copy = any(isinstance(one, EpochBegun) and one.epoch == RENUMBERED for one in records)
        return durable if is_copy else append(self, durable, records)

    monkeypatch.setattr(Site, "append", keeps_numbers)
    found = explore(within)
    assert "a/1/1 was submitted before" in found.violation
    assert len(found.story) == 6


def test_a_partner_that_knows_no_state_returns_jobs_without_it() -> None:
    """There is nothing that could happen beside what happens to jobs that write none."""
    older = explore(BY_NAME["the partner knows of no kept state"])
    plain = explore(bound("no state", preempt=1, loss=1, **RETURNS))
    assert (older.states, older.transitions) == (plain.states, plain.transitions)
    written = explore(bound("state", preempt=1, loss=1, **WRITES))
    assert written.states > older.states


def test_a_bound_names_faults_that_there_are() -> None:
    """A misspelt one would explore less than it seems to."""
    with pytest.raises(ValueError, match="there is no fault los"):
        bound("wrong", los=1)


def test_at_most_so_many_states_are_visited() -> None:
    """What is not complete says so, and claims nothing about the end."""
    found = explore(BY_NAME["home dies"], most=50)
    assert not found.complete
    assert found.states < 80
    assert found.ends == 0


def test_rounds_move_jobs() -> None:
    """Within the bound with rounds a job does leave the queue for the partner."""
    space = Space(bound("rounds", busy=1, round=1, **ROUNDS))
    states, at, moved = [space.first()], 0, False
    known = set(states)
    while at < len(states):
        for to, _, label in space.steps(states[at]):
            moved = moved or "confirm=True" in repr(label)
            if to not in known:
                known.add(to)
                states.append(to)
        at += 1
    assert moved
