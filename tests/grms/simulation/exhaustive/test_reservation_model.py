"""All that can happen to a site's reservations within small bounds; and each careless rule is found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grms.simulation.exhaustive.choices import explore_model, replay_model
from grms.simulation.exhaustive.reservation_model import (
    SMALL_RESERVATIONS,
    ReservationBound,
    ReservationModel,
)
from grms.site.model.events import BookReservation
from grms.site.scheduler import state as state_module
from grms.site.scheduler.reservations import ReservationHandler
from grms.site.scheduler.state import SiteState
from grms.site.scheduler.transaction import Transaction
from tests.grms.simulation import test_fault_run as careless

BY_NAME = {one.name: one for one in SMALL_RESERVATIONS}


@pytest.mark.parametrize("name", list(BY_NAME))
def test_nothing_that_must_not_be_is_found(name: str) -> None:
    """Every state within the bound is as it has to be, and leads to the end."""
    found = explore_model(ReservationModel(BY_NAME[name]))
    assert not found.violation, "\n".join([found.violation, *found.story])
    assert found.complete
    assert found.stuck == 0
    assert found.ends > 0


class NeverSettles(ReservationHandler):
    """Lets time change nothing."""

    def settle(self, transaction: Transaction) -> None:
        """See `ReservationHandler.settle`."""


class ForgetsKeys(ReservationHandler):
    """Takes each question for a new one."""

    def book(self, event: BookReservation, transaction: Transaction) -> None:
        """See `ReservationHandler.book`."""
        self._book.keys.clear()
        super().book(event, transaction)


class MovesAnywhere(ReservationHandler):
    """Moves a reservation whether or not there is room."""

    def __init__(self, memory: Any) -> None:
        super().__init__(memory)
        is_free = self._book.is_free

        def free(*arguments: Any, but: int = 0) -> bool:
            return bool(but) or is_free(*arguments)

        self._book.is_free = free  # type: ignore[method-assign, assignment]  # of a test


def with_(handler: type[ReservationHandler]) -> Callable[..., SiteState]:
    """Returns what makes a site with such a handler of reservations."""

    def state(*arguments: Any, **more: Any) -> SiteState:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state_module, "ReservationHandler", handler)
            return SiteState(*arguments, **more)

    return state


ALONE = ReservationBound("alone", {"crash": 1, "answer": 1}, 1)
BOTH = ReservationBound("both", {"move": 1})

CARELESS = [
    (careless.JournalLast, ALONE, "is lost", 1),
    (with_(NeverSettles), ALONE, "lead to no end", 1),
    (with_(ForgetsKeys), ALONE, "was refused, and holds", 2),
    (with_(MovesAnywhere), BOTH, "two have the processor", 4),
]
NAMES = ["JournalLast", "NeverSettles", "ForgetsKeys", "MovesAnywhere"]


@pytest.mark.parametrize(("factory", "within", "text", "steps"), CARELESS, ids=NAMES)
def test_a_careless_rule_is_found_with_a_shortest_story(
    factory: Callable[..., SiteState], within: ReservationBound, text: str, steps: int
) -> None:
    """The story is told step by step, and taking its steps again leads to the same."""
    within = replace(within, factory=factory)
    found = explore_model(ReservationModel(within))
    assert text in found.violation
    assert len(found.story) == steps, found.story
    if "lead to no end" not in text:
        assert text in replay_model(ReservationModel(within), found.labels)
