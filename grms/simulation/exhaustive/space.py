"""The states of sites and a network: which follow one, and why.

A state is one number, made of small ones (`numbers`): each site as an actor, the messages under way, and what may
still go wrong. What a site does at an event is computed once for each of its states (`moves`), so that a state of the
whole costs some microseconds. `steps` says what may follow, with labels for a story; `successors` says the same in
haste.
"""

from collections.abc import Iterable
from typing import Final

from grms.simulation.exhaustive.budgets import BUDGET_BITS, BUDGET_MASK
from grms.simulation.exhaustive.encoding import StateFactory
from grms.simulation.exhaustive.exploration import Label, Step
from grms.simulation.exhaustive.model import Bound
from grms.simulation.exhaustive.moves import Move, Moves
from grms.simulation.exhaustive.numbers import (
    ABOVE,
    BITS,
    MASK,
    Numbers,
)
from grms.simulation.exhaustive.steps import SiteStep
from grms.site.scheduler.state import SiteState

Quick = tuple[list[int], list[tuple[int, int, int]], tuple[tuple[int, int], ...], tuple[int, ...]]
"""Of an actor: what is added to a state where nothing is sent or paid; other moves by cost, what is added, and effect;
its open calls with the partner of each; partners that it does not reach."""

NEVER: Final = -1


class Space:
    """All states within a bound; `factory` makes the states of sites."""

    def __init__(self, bound: Bound, factory: StateFactory = SiteState) -> None:
        self.bound = bound
        self.factory = factory
        self.numbers = Numbers(bound, factory)
        self.moves = Moves(self.numbers)
        self._count = len(bound.settings)
        self._shifts = [ABOVE + BITS * (self._count - 1 - place) for place in range(self._count)]
        self._of_site: list[dict[int, list[Move]]] = [{} for _ in range(self._count)]
        self._quick: list[dict[int, Quick]] = [{} for _ in range(self._count)]
        self._told: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
        self._mail: dict[int, list[tuple[int, int, bool]]] = {}
        self._well: set[int] = set()
        budgets = self.budgets = self.numbers.budgets
        self._loss, self._twice = budgets.cost("loss"), budgets.cost("duplicate")
        self._early = budgets.cost("early")

    def first(self) -> int:
        """Returns the first state: all sites are up and know of each other."""
        actors = []
        for place, site in enumerate(self.numbers.sites):
            actor = site.step(site.first(), SiteStep.start)[0].actor
            for partner in range(self._count):
                if partner != place:
                    actor = site.step(
                        actor,
                        lambda step, partner=partner: step.partner_up(partner, None),  # type: ignore[misc]  # a loop's value
                    )[0].actor
            actors.append(self.numbers.actor(place, actor, ()))
        return self._state(actors, 0, 0)

    def _state(self, actors: Iterable[int], net: int, budget: int) -> int:
        state = 0
        for number in actors:
            state = state << BITS | number
        return (state << BITS | net) << BUDGET_BITS | budget

    def actors_of(self, state: int) -> tuple[int, ...]:
        """Returns the numbers of a state's actors."""
        return tuple(state >> shift & MASK for shift in self._shifts)

    def is_end(self, state: int) -> bool:
        """Returns whether nothing is left to be done."""
        facts = self.numbers.facts
        return not state >> BUDGET_BITS & MASK and all(
            facts[place][number].over for place, number in enumerate(self.actors_of(state))
        )

    # --- with labels ---------------------------------------------------------------------------

    def steps(self, state: int) -> list[Step]:
        """Returns the states that may follow one.

        Raises:
            FoundError: a step leads to what must not be.
        """
        found: list[Step] = []
        numbers, moves = self.numbers, self.moves
        net = state >> BUDGET_BITS & MASK
        actors = self.actors_of(state)
        for place, number in enumerate(actors):
            self._add(found, state, place, self._moves_of(place, number), NEVER)
            actor = numbers.actors[place][number]
            if not actor.up:
                continue
            for call, command in actor.calls:
                partner = numbers.sites[place].names.index(command.partner)
                other = numbers.actors[partner][actors[partner]]
                early = (place, call) in numbers.net_calls[net] or bool(other.outbox)
                if not early or self._early != NEVER:
                    of_call = moves.unanswered(place, number, call)
                    self._add(found, state, place, of_call, NEVER, "early" if early else "")
            for partner in numbers.judge.known(place, actor).unreachable:
                other = numbers.actors[partner][actors[partner]]
                if other.up and not other.outbox:
                    seen = numbers.judge.known(partner, other).seen[place]
                    self._add(found, state, place, moves.up(place, number, partner, seen), NEVER)
        self._add_mail(found, state, actors, net)
        return found

    def _moves_of(self, place: int, number: int) -> list[Move]:
        moves = self._of_site[place].get(number)
        if moves is None:
            moves = self._of_site[place][number] = self.moves.of_site(place, number)
        return moves

    def _add_mail(self, found: list[Step], state: int, actors: tuple[int, ...], net: int) -> None:
        numbers = self.numbers
        for number in sorted(set(numbers.nets[net])):
            message = numbers.messages[number]
            place = message.to if message.answer is None else message.asker
            lost = self._loss
            if numbers.actors[place][actors[place]].up:
                moves = self.moves.delivered(place, actors[place], number)
                self._add(found, state, place, moves, number)
            else:
                lost = 0  # nobody is there to take it
            label: Label = (place, "never gets", message)
            if lost != NEVER:
                self._add(found, state, place, [(lost, actors[place], 0, label)], number)
            left = numbers.budgets.left[self._twice][state & BUDGET_MASK]
            if message.answer is None and NEVER not in {self._twice, left}:
                twice = numbers.net((*numbers.nets[net], number))
                after = self._state(actors, twice, left)
                found.append((after, False, (place, "will get twice", message)))

    def _add(  # noqa: PLR0917  # called for each step, by place
        self,
        found: list[Step],
        state: int,
        place: int,
        moves: list[Move],
        removed: int,
        kind: str = "",
    ) -> None:
        numbers, budgets = self.numbers, self.numbers.budgets
        actors, net = self.actors_of(state), state >> BUDGET_BITS & MASK
        for cost, number, effect, label in moves:
            price = budgets.cost(kind, *budgets.paid[cost]) if kind else cost
            left = NEVER if price == NEVER else budgets.left[price][state & BUDGET_MASK]
            if left == NEVER:
                continue
            after = list(actors)
            after[place] = number
            for other, one in enumerate(actors):
                if other != place and effect and numbers.actors[other][one].outbox:
                    after[other] = numbers.unasked(other, one, place, effect)
            facts = [numbers.facts[at][one] for at, one in enumerate(after)]
            numbers.judge.judge(facts, label)
            mail = numbers.net_after(net, removed, place, effect)
            found.append((self._state(after, mail, left), not price, label))

    # --- in haste ------------------------------------------------------------------------------

    def _quick_of(self, place: int, number: int) -> Quick:
        # The same as `steps` has, as differences of states.
        shift, actor = self._shifts[place], self.numbers.actors[place][number]
        plain: list[int] = []
        others: list[tuple[int, int, int]] = []
        for cost, after, effect, _ in self._moves_of(place, number):
            added = (after - number) << shift
            if cost or effect:
                others.append((cost, added, effect))
            else:
                plain.append(added)
        calls: tuple[tuple[int, int], ...] = ()
        unreachable: tuple[int, ...] = ()
        if actor.up:
            names = self.numbers.sites[place].names
            calls = tuple((call, names.index(command.partner)) for call, command in actor.calls)
            unreachable = self.numbers.judge.known(place, actor).unreachable
        quick = self._quick[place][number] = (plain, others, calls, unreachable)
        return quick

    def _mail_of(self, net: int) -> list[tuple[int, int, bool]]:
        # The messages of a net, each once, with who gets it, and whether it is a question.
        mail = []
        for number in sorted(set(self.numbers.nets[net])):
            message = self.numbers.messages[number]
            asks = message.answer is None
            mail.append((number, message.to if asks else message.asker, asks))
        self._mail[net] = mail
        return mail

    def successors(self, state: int) -> tuple[list[int], list[int]]:
        """Returns the states that follow one without a fault, and with one.

        Raises:
            FoundError: a step leads to what must not be.
        """
        free: list[int] = []
        paid: list[int] = []
        net, budget = state >> BUDGET_BITS & MASK, state & BUDGET_MASK
        numbers = self.numbers
        left = numbers.budgets.left
        actors = self.actors_of(state)
        for place, number in enumerate(actors):
            quick = self._quick[place].get(number) or self._quick_of(place, number)
            free += [state + added for added in quick[0]]
            for cost, added, effect in quick[1]:
                rest = left[cost][budget]
                if rest < 0:
                    continue
                after = state + added + rest - budget
                if effect:
                    after += (numbers.net_after(net, NEVER, place, effect) - net) << BUDGET_BITS
                    if numbers.late:
                        after = self._unasked(after, actors, place, effect)
                (paid if cost else free).append(after)
            if quick[2]:
                self._quick_calls(free, paid, state, actors, place, quick[2])
            for partner in quick[3]:
                self._quick_up(free, paid, state, actors, place, partner)
        if net:
            self._quick_mail(free, paid, state, actors)
        self._look_at(free)
        self._look_at(paid)
        return free, paid

    def _look_at(self, found: list[int]) -> None:
        well = self._well
        for after in found:
            if after >> ABOVE not in well:
                actors = self.actors_of(after)
                facts = [self.numbers.facts[place][one] for place, one in enumerate(actors)]
                self.numbers.judge.judge(facts, ())
                well.add(after >> ABOVE)

    def _unasked(self, after: int, actors: tuple[int, ...], place: int, effect: int) -> int:
        for other, one in enumerate(actors):
            if other != place and self.numbers.actors[other][one].outbox:
                changed = self.numbers.unasked(other, one, place, effect)
                after += (changed - one) << self._shifts[other]
        return after

    def _quick_add(  # noqa: PLR0917  # called for each step, by place
        self,
        free: list[int],
        paid: list[int],
        state: int,
        actors: tuple[int, ...],
        place: int,
        moves: list[tuple[int, int, int]],
        removed: int,
    ) -> None:
        numbers = self.numbers
        net, budget = state >> BUDGET_BITS & MASK, state & BUDGET_MASK
        for cost, added, effect in moves:
            rest = numbers.budgets.left[cost][budget]
            if rest < 0:
                continue
            mail = numbers.net_after(net, removed, place, effect)
            after = state + added + rest - budget + ((mail - net) << BUDGET_BITS)
            if effect and numbers.late:
                after = self._unasked(after, actors, place, effect)
            (paid if cost else free).append(after)

    def _added(
        self, place: int, number: int, moves: list[Move], kind: str = ""
    ) -> list[tuple[int, int, int]]:
        budgets, shift = self.numbers.budgets, self._shifts[place]
        found = []
        for cost, after, effect, _ in moves:
            price = budgets.cost(kind, *budgets.paid[cost]) if kind else cost
            if price != NEVER:
                found.append((price, (after - number) << shift, effect))
        return found

    def _quick_calls(  # noqa: PLR0917  # called for each step, by place
        self,
        free: list[int],
        paid: list[int],
        state: int,
        actors: tuple[int, ...],
        place: int,
        calls: tuple[tuple[int, int], ...],
    ) -> None:
        numbers = self.numbers
        waiting = numbers.net_calls[state >> BUDGET_BITS & MASK]
        number = actors[place]
        for call, partner in calls:
            early = (place, call) in waiting or (
                numbers.late and bool(numbers.actors[partner][actors[partner]].outbox)
            )
            if early and self._early == NEVER:
                continue
            key = place, number, -2 * call - early
            moves = self._told.get(key)
            if moves is None:
                of_call = self.moves.unanswered(place, number, call)
                moves = self._told[key] = self._added(
                    place, number, of_call, "early" if early else ""
                )
            self._quick_add(free, paid, state, actors, place, moves, NEVER)

    def _quick_up(  # noqa: PLR0917  # called for each step, by place
        self,
        free: list[int],
        paid: list[int],
        state: int,
        actors: tuple[int, ...],
        place: int,
        partner: int,
    ) -> None:
        numbers = self.numbers
        other = numbers.actors[partner][actors[partner]]
        if other.up and not other.outbox:
            seen = numbers.judge.known(partner, other).seen[place]
            of_site = self.moves.up(place, actors[place], partner, seen)
            moves = self._added(place, actors[place], of_site)
            self._quick_add(free, paid, state, actors, place, moves, NEVER)

    def _quick_mail(
        self, free: list[int], paid: list[int], state: int, actors: tuple[int, ...]
    ) -> None:
        numbers, net = self.numbers, state >> BUDGET_BITS & MASK
        budget = state & BUDGET_MASK
        for message, place, asks in self._mail.get(net) or self._mail_of(net):
            number = actors[place]
            lost = self._loss
            if numbers.actors[place][number].live >= 0:
                key = place, number, message
                moves = self._told.get(key)
                if moves is None:
                    of_message = self.moves.delivered(place, number, message)
                    moves = self._told[key] = self._added(place, number, of_message)
                self._quick_add(free, paid, state, actors, place, moves, message)
            else:
                lost = 0
            if lost != NEVER and (rest := numbers.budgets.left[lost][budget]) >= 0:
                mail = numbers.net_after(net, message, place, 0)
                after = state + rest - budget + ((mail - net) << BUDGET_BITS)
                (paid if lost else free).append(after)
            if asks and self._twice != NEVER:
                rest = numbers.budgets.left[self._twice][budget]
                if rest >= 0:
                    mail = numbers.net((*numbers.nets[net], message))
                    paid.append(state + rest - budget + ((mail - net) << BUDGET_BITS))
