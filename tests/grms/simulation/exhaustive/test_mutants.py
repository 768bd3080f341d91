"""A test of the exploration itself: each small slip in it would be noticed.

A mutant leaves out something that may happen, something that is looked at, or something of which a state is made. It is
noticed if a careless protocol is not found by it any more that is found without it.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from grms.simulation.exhaustive import encoding, numbers, search
from grms.simulation.exhaustive.batch import Batch
from grms.simulation.exhaustive.bounds import bound
from grms.simulation.exhaustive.budgets import Budgets
from grms.simulation.exhaustive.encoding import Frozen
from grms.simulation.exhaustive.exploration import Explorer
from grms.simulation.exhaustive.model import Bound, Facts, Judge
from grms.simulation.exhaustive.moves import Moves
from grms.simulation.exhaustive.numbers import Numbers
from grms.simulation.exhaustive.search import explore
from grms.simulation.exhaustive.steps import Actor, Memories, SiteStep
from grms.site.model.commands import LrmsSubmit
from grms.site.model.compaction import compacted
from grms.site.model.records import JobEnded, Record
from grms.site.scheduler.state import SiteState
from tests.grms.simulation import test_fault_run as careless
from tests.grms.simulation.exhaustive.test_search import (
    DEATHS,
    FORGET,
    GIVEN_UP,
    HINDER,
    REFUSE,
    UNHEARD,
    LastKept,
    SaysNames,
)

TWICE = bound("arrives twice", duplicate=1, busy=1)
LOST = bound("is lost", loss=1)

Patch = Callable[[pytest.MonkeyPatch], None]


def without(kind: str) -> Patch:
    """Returns a mutant in which a fault never comes."""
    cost = Budgets.cost

    def never(self: Budgets, *kinds: str) -> int:
        return -1 if kind in kinds else cost(self, *kinds)

    return lambda patch: patch.setattr(Budgets, "cost", never)


def never(of: type[Any], name: str, nothing: Callable[[], Any]) -> Patch:
    """Returns a mutant in which a method does nothing."""
    return lambda patch: patch.setattr(of, name, lambda *_, **__: nothing())


def _facts(**more: Any) -> Patch:
    # What is true of an actor, with something of it forgotten.
    facts_of = Judge.facts_of

    def forgets(self: Judge, place: int, actor: Actor, label: Any) -> Facts:
        return facts_of(self, place, actor, label)._replace(**more)

    return lambda patch: patch.setattr(Judge, "facts_of", forgets)


def _submits_twice(patch: pytest.MonkeyPatch) -> None:
    submit = Batch.submit

    def takes_all(self: Batch, command: LrmsSubmit, now: float) -> Any:
        if not command.lookup and command.lrms_key in self._jobs:
            return []
        return submit(self, command, now)

    patch.setattr(Batch, "submit", takes_all)


def _all_acknowledged_is_there(patch: pytest.MonkeyPatch) -> None:
    facts_of = Judge.facts_of

    def forgets(self: Judge, place: int, actor: Actor, label: Any) -> Facts:
        told = tuple(one._replace(submitted=False) for one in actor.told)
        return facts_of(self, place, actor._replace(told=told), label)._replace(over=True)

    patch.setattr(Judge, "facts_of", forgets)


def _each_message_once(patch: pytest.MonkeyPatch) -> None:
    net = Numbers.net

    def as_set(self: Numbers, messages: Iterable[int]) -> int:
        return net(self, set(messages))

    patch.setattr(Numbers, "net", as_set)


def _actors_without(**more: Any) -> Patch:
    # Actors count as the same though these differ.
    number_of = Numbers.actor

    def blind(self: Numbers, place: int, actor: Actor, label: Any) -> int:
        known = vars(self).setdefault("_known_to_mutant", {})
        return number_of(
            self, place, known.setdefault((place, actor._replace(**more)), actor), label
        )

    return lambda patch: patch.setattr(Numbers, "actor", blind)


class FirstOfAll(Memories):
    """Takes memories for the same whose keys have the same length."""

    def number(self, frozen: Frozen) -> int:
        """Returns its number."""
        return super().number(Frozen(len(frozen.key).to_bytes(4), frozen.blob))


MUTANTS: dict[str, tuple[Patch, type[SiteState], Bound]] = {
    # What may happen.
    "nothing is lost": (without("loss"), careless.ReportsOnce, LOST),
    "nothing arrives twice": (without("duplicate"), careless.DecidesAnew, TWICE),
    "each message is there once": (_each_message_once, careless.DecidesAnew, TWICE),
    "no place is full": (without("busy"), careless.ForgetsDeclines, UNHEARD),
    "nothing is forgotten": (without("forget"), careless.SubmitsEndedAgain, FORGET),
    "nothing is refused": (without("refuse"), careless.FailsWhatIsRefused, REFUSE),
    "all is started": (without("hinder"), careless.GivesBackWhatWaits, HINDER),
    "the partner never dies": (without("crash 1"), careless.SubmitsEndedAgain, FORGET),
    "every call has its answer": (
        never(Moves, "unanswered", list),
        careless.NoAnswerIsNo,
        UNHEARD,
    ),
    "no process dies between two steps": (
        never(SiteStep, "_crashes", list),
        careless.JournalLast,
        DEATHS,
    ),
    # What is looked at.
    "no liveness": (never(Explorer, "_check_liveness", lambda: None), careless.ReportsOnce, LOST),
    "sites are not looked at together": (
        never(Judge, "judge", lambda: None),
        careless.NoAnswerIsNo,
        UNHEARD,
    ),
    "runs are forgotten": (_facts(ran=0, runs=0), careless.NoAnswerIsNo, UNHEARD),
    "ends are forgotten": (_facts(lives=0), careless.SubmitsEndedAgain, FORGET),
    "what was acknowledged": (_all_acknowledged_is_there, careless.JournalLast, DEATHS),
    "journals of sites at rest": (
        never(Judge, "_is_over", lambda: True),
        careless.ForgetsDeclines,
        UNHEARD,
    ),
    "a second submission": (_submits_twice, careless.WithoutLookup, DEATHS),
    "what is said": (
        lambda patch: patch.setattr(numbers, "why_not_said", lambda _: ""),
        SaysNames,
        UNHEARD,
    ),
    # What a state is made of.
    "batch systems are not compared": (_actors_without(jobs=()), careless.NoAnswerIsNo, UNHEARD),
    "open calls are not compared": (
        _actors_without(calls=()),
        careless.GivesBackWhatWaits,
        HINDER,
    ),
    "journals are not compared": (_actors_without(durable=0), careless.TakesNothingUp, DEATHS),
    "memories are hardly compared": (
        lambda patch: patch.setattr(numbers, "Memories", FirstOfAll),
        careless.NoAnswerIsNo,
        UNHEARD,
    ),
}


def _text(factory: type[SiteState], within: Bound) -> str:
    try:
        violation = explore(within, factory).violation
    except KeyError as error:
        return f"it breaks off: {error}"  # at a job that nobody has handed in
    # The number of states does not matter.
    return "lead to no end" if "lead to no end" in violation else violation


@pytest.mark.parametrize("name", list(MUTANTS))
def test_each_mutant_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not find, or not for the same reason, what is found without it."""
    mutate, factory, within = MUTANTS[name]
    rightly = _text(factory, within)
    assert rightly
    mutate(monkeypatch)
    assert _text(factory, within) != rightly


def test_a_careless_compaction_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each journal that is reached is compacted and compared."""

    def drops_ends(settings: Any, records: Any) -> list[Record] | None:
        shorter = compacted(settings, records)
        return shorter and [one for one in shorter if not isinstance(one, JobEnded)]

    within = bound("no fault at all")
    assert not explore(within).violation
    monkeypatch.setattr(search, "compacted", drops_ends)
    assert "a compacted journal recovers to another" in explore(within).violation


def test_a_memory_is_not_compared_without_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """An offer that was declined is another than one that was withdrawn: which of both is kept would decide."""
    blind = frozenset({*encoding.SUMS_OF_BOOK, "answered"})
    monkeypatch.setattr(encoding, "SUMS_OF_BOOK", blind)
    monkeypatch.setattr(encoding, "_FIELDS", {})
    first = explore(GIVEN_UP)
    monkeypatch.setattr(numbers, "Memories", LastKept)
    last = explore(GIVEN_UP)
    assert (first.states, first.transitions) != (last.states, last.transitions)
