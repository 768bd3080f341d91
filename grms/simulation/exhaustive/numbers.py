"""Small numbers for what a state is made of: actors, messages and sets of them, effects, and what may still go wrong."""

from collections.abc import Iterable
from typing import Final

from grms.simulation.exhaustive.budgets import BUDGET_BITS, Budgets
from grms.simulation.exhaustive.encoding import StateFactory
from grms.simulation.exhaustive.exploration import FoundError, Label
from grms.simulation.exhaustive.model import Bound, Facts, Judge
from grms.simulation.exhaustive.steps import (
    NOTHING,
    Actor,
    Effect,
    Memories,
    Message,
    Site,
    why_not_said,
)

BITS: Final = 24
"""Of the number of an actor, and of a set of messages."""

MASK: Final = (1 << BITS) - 1
ABOVE: Final = BITS + BUDGET_BITS
"""Bits of a state below those of its actors."""


class Numbers:
    """The numbers of an exploration."""

    def __init__(self, bound: Bound, factory: StateFactory) -> None:
        self.bound = bound
        self.memories = Memories()
        self.judge = Judge(bound, self.memories, factory)
        self.late = bool(bound.faults.get("late"))
        self.sites = [
            Site(place, bound.settings, self.judge.wishes, factory, self.memories)
            for place in range(len(bound.settings))
        ]
        self.actors: list[list[Actor]] = [[] for _ in self.sites]
        self.facts: list[list[Facts]] = [[] for _ in self.sites]
        self._numbers: list[dict[Actor, int]] = [{} for _ in self.sites]
        self.messages: list[Message] = []
        self._message_numbers: dict[Message, int] = {}
        self.nets: list[tuple[int, ...]] = [()]
        self._net_numbers: dict[tuple[int, ...], int] = {(): 0}
        self.net_calls: list[frozenset[tuple[int, int]]] = [frozenset()]
        self.effects: list[Effect] = [NOTHING]
        self._effect_numbers: dict[Effect, int] = {NOTHING: 0}
        self._net_after: dict[tuple[int, int, int, int], int] = {}
        self._unasked: dict[tuple[int, int, int, int], int] = {}
        self.budgets = Budgets(dict(bound.faults))

    def actor(self, place: int, actor: Actor, label: Label) -> int:
        """Returns the number of an actor.

        Raises:
            FoundError: it is as it must not be.
        """
        number = self._numbers[place].get(actor)
        if number is None:
            facts = self.judge.facts_of(place, actor, label)
            number = self._numbers[place][actor] = len(self.actors[place])
            self.actors[place].append(actor)
            self.facts[place].append(facts)
        return number

    def message(self, message: Message, label: Label) -> int:
        """Returns the number of a message.

        Raises:
            FoundError: it says what must not be said.
        """
        number = self._message_numbers.get(message)
        if number is None:
            why = why_not_said(message)
            if why:
                raise FoundError(f"{self.judge.name(message.asker)}: {why}", label)
            number = self._message_numbers[message] = len(self.messages)
            self.messages.append(message)
        return number

    def net(self, messages: Iterable[int]) -> int:
        """Returns the number of a set of messages, some of them perhaps twice."""
        key = tuple(sorted(messages))
        number = self._net_numbers.get(key)
        if number is None:
            number = self._net_numbers[key] = len(self.nets)
            self.nets.append(key)
            carried = (self.messages[one] for one in key)
            self.net_calls.append(frozenset((m.asker, m.call) for m in carried if m.call))
        return number

    def effect(self, effect: Effect) -> int:
        """Returns the number of an effect; 0 is none."""
        number = self._effect_numbers.get(effect)
        if number is None:
            number = self._effect_numbers[effect] = len(self.effects)
            self.effects.append(effect)
        return number

    def net_after(self, net: int, removed: int, place: int, effect: int) -> int:
        """Returns the messages under way after a step; `removed` was delivered, -1 for none.

        Raises:
            FoundError: one says what must not be said.
        """
        key = net, removed, place, effect
        number = self._net_after.get(key)
        if number is None:
            what = self.effects[effect]
            kept = list(self.nets[net])
            if removed >= 0:
                kept.remove(removed)
            sent = [self.message(one, (place, "sends")) for one in what.sent]
            messages = [*self._forgets(kept, place, set(what.ended)), *sent]
            if what.dies:
                messages = self._forgets(messages, place, None)
            number = self._net_after[key] = self.net(messages)
        return number

    def _forgets(self, messages: list[int], place: int, calls: set[int] | None) -> list[int]:
        # Of calls that are over (`None`: all of them) the questions are still under way.
        kept = []
        for number in messages:
            message = self.messages[number]
            is_over = message.asker == place and (calls is None or message.call in calls)
            if not message.call or not is_over:
                kept.append(number)
            elif message.answer is None:
                kept.append(self.message(message._replace(call=0), ()))
        return kept

    def unasked(self, other: int, number: int, place: int, effect: int) -> int:
        """Returns a site that has not answered yet, after it is known that nobody waits for that any more."""
        key = other, number, place, effect
        known = self._unasked.get(key)
        if known is None:
            actor, what = self.actors[other][number], self.effects[effect]

            def is_over(ref: tuple[str, int] | None) -> bool:
                return (
                    ref is not None and ref[0] == str(place) and (what.dies or ref[1] in what.ended)
                )

            outbox = tuple(
                (command, None if is_over(ref) else ref) for command, ref in actor.outbox
            )
            known = self._unasked[key] = self.actor(other, actor._replace(outbox=outbox), ())
        return known
