"""What is left out of an exploration is missed nowhere: with and without it the same is found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.simulation.exhaustive import choices
from grms.simulation.exhaustive.bounds import SMALL, bound
from grms.simulation.exhaustive.budgets import BUDGET_BITS, Budgets
from grms.simulation.exhaustive.choices import Action, ChoiceSpace, explore_model
from grms.simulation.exhaustive.exploration import Explorer, Found
from grms.simulation.exhaustive.model import Bound
from grms.simulation.exhaustive.queue_bounds import SMALL_QUEUES
from grms.simulation.exhaustive.queue_model import QueueModel
from grms.simulation.exhaustive.search import explore
from grms.simulation.exhaustive.space import Space
from grms.site.scheduler.state import SiteState
from tests.grms.simulation.exhaustive.test_search import CARELESS, NAMES

BY_NAME = {one.name: one for one in SMALL}
STATES = 8


@dataclass(frozen=True)
class Toy:
    """A few states, with arrows between them of which some cost a fault."""

    arrows: tuple[tuple[int, int, str], ...]
    bad: frozenset[int]
    ends: frozenset[int]
    faults: Mapping[str, int]

    def first(self) -> int:
        """Returns the first state."""
        return 0

    def actions(self, state: int) -> Iterable[Action[int]]:
        """Returns the arrows from a state."""
        for at, (one, to, kind) in enumerate(self.arrows):
            if one == state:
                yield Action((at,), lambda _, to=to: to, kind)  # type: ignore[misc]  # a loop's value

    def wrong(self, state: int) -> str:
        """Returns what must not be."""
        return f"{state} is bad" if state in self.bad else ""

    def is_end(self, state: int) -> bool:
        """Returns whether it is an end."""
        return state in self.ends


_place = st.integers(0, STATES - 1)
TOYS = st.builds(
    Toy,
    st.lists(
        st.tuples(_place, _place, st.sampled_from(["", "", "loss", "crash"])), max_size=24
    ).map(tuple),
    st.frozensets(st.integers(1, STATES - 1), max_size=1),
    st.frozensets(_place, min_size=1, max_size=3),
    st.fixed_dictionaries({"loss": st.integers(0, 2), "crash": st.integers(0, 1)}),
)


def _both(model: Toy) -> tuple[Explorer[Found], Explorer[Found]]:
    space = ChoiceSpace(model)
    explorers = Explorer(space, Found()), Explorer(space, Found(), all_budgets=True)
    for one in explorers:
        one.run()
    return explorers


def _kinds(explorer: Explorer[Found], shift: int = BUDGET_BITS) -> set[int]:
    return {state >> shift for state in explorer._states}


@given(TOYS)
def test_with_fewer_budgets_the_same_is_found(toy: Toy) -> None:
    """The same states, the same violations with stories as short, and the same that lead to no end."""
    less, all_of_them = _both(toy)
    assert less.found.states <= all_of_them.found.states
    assert len(less.found.labels) == len(all_of_them.found.labels)
    assert (less.found.stuck > 0) == (all_of_them.found.stuck > 0)
    assert bool(less.found.violation) == bool(all_of_them.found.violation)
    if less.found.complete:
        assert _kinds(less) == _kinds(all_of_them)


@pytest.mark.parametrize(
    "within",
    [
        *(BY_NAME[name] for name in ("loss, duplicate", "cancelled, loss", "sent home; loss, duplicate")),
        bound("home dies, loss, duplicate", crash_0=1, loss=1, duplicate=1),
    ],
)  # fmt: skip
def test_of_sites_the_same_states_are_found(within: Bound) -> None:
    """Whatever may still go wrong, each state of the sites and the network is visited, and has an end before it."""
    space = Space(within)
    less, all_of_them = (
        Explorer(space, Found(), all_budgets=False),
        Explorer(space, Found(), all_budgets=True),
    )
    for one in (less, all_of_them):
        found = one.run()
        assert found.complete
        assert not found.violation
    assert _kinds(less) == _kinds(all_of_them)
    assert less.found.states < all_of_them.found.states
    assert less.found.depth <= all_of_them.found.depth


@pytest.mark.parametrize(("factory", "within", "text", "steps"), CARELESS, ids=NAMES)
def test_with_all_budgets_no_other_story_is_found(
    factory: type[SiteState], within: Bound, text: str, steps: int
) -> None:
    """Each careless protocol is found with as few steps as without them."""
    found = explore(within, factory, all_budgets=True)
    assert text in found.violation
    assert len(found.labels) == steps


@pytest.mark.parametrize("name", ["an answer is lost", "refused for now, cancelled"])
def test_above_a_batch_system_the_same_states_are_found(name: str) -> None:
    """A model's states are no others either."""
    within = next(one for one in SMALL_QUEUES if one.name.endswith(name))
    space = ChoiceSpace(QueueModel(within))
    less, all_of_them = Explorer(space, Found()), Explorer(space, Found(), all_budgets=True)
    assert not less.run().violation
    assert not all_of_them.run().violation
    assert _kinds(less) == _kinds(all_of_them)


def _budgets_count_for_nothing(self: Budgets, budget: int) -> int:
    del self, budget
    return -1


BELOW = Budgets.below


def _the_other_way_round(self: Budgets, budget: int) -> int:
    return sum(
        1 << number for number in range(len(self._vectors)) if BELOW(self, number) >> budget & 1
    )


def test_what_may_still_go_wrong_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer way that leaves more of it is not left out for a shorter one that has paid."""
    arrows = ((0, 1, "loss"), (0, 2, ""), (2, 3, ""), (3, 1, ""), (1, 4, "loss"))
    toy = Toy(arrows, frozenset({4}), frozenset({1}), {"loss": 1})
    assert len(explore_model(toy).labels) == 4
    for mutant in (_budgets_count_for_nothing, _the_other_way_round):
        with monkeypatch.context() as patch:
            patch.setattr(Budgets, "below", mutant)
            assert not explore_model(toy).violation


class Pair(NamedTuple):
    """A state of two parts."""

    left: tuple[object, ...]
    right: tuple[object, ...]


def test_equal_parts_of_states_are_kept_once() -> None:
    """Each by the field in which it is: elsewhere a truth stays one, though it equals a number."""
    parts = choices._Parts()
    one = parts.shared(Pair(("a", 1), (True,)))
    other = parts.shared(Pair((*one.left[:1], 1), (True, "b")))
    third = parts.shared(Pair((True,), (1, "c")))
    assert one.left is other.left
    assert third.left[0] is True
    assert (one, other) == (Pair(("a", 1), (True,)), Pair(("a", 1), (True, "b")))
