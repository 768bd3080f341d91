"""All that can happen to a broker within small bounds; and each careless broker is found."""

from dataclasses import replace
from typing import Any

import pytest

from broker.scheduler import state as state_module
from broker.scheduler.commands import Append, Command, Release
from broker.scheduler.events import Ended, Event, Restarted
from broker.scheduler.lifecycle import TaskState
from broker.scheduler.state import BrokerState
from broker.scheduler.state_tables import LiveTask, LiveWorkflow
from broker.scheduler.task_execution import TaskExecution
from broker.scheduler.transaction import Transaction
from grms.simulation.exhaustive.choices import explore_model, replay_model
from tests.broker.broker_model import SMALL_BROKERS, BrokerBound, BrokerModel, broker_bound

BY_NAME = {one.name: one for one in SMALL_BROKERS}
PAIR = {"tasks": (("a", ()), ("b", ())), "resources": 2}


@pytest.mark.parametrize("name", list(BY_NAME))
def test_nothing_that_must_not_be_is_found(name: str) -> None:
    """Every state within the bound is as it has to be, and leads to the end."""
    found = explore_model(BrokerModel(BY_NAME[name]))
    assert not found.violation, "\n".join([found.violation, *found.story])
    assert found.complete
    assert found.stuck == 0
    assert found.ends > 0


class JournalLast(BrokerState):
    """Does first, and notes then."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """See `BrokerState.handle`."""
        commands = super().handle(event, now)
        return sorted(commands, key=lambda command: isinstance(command, Append))


class TakesNothingUp(BrokerState):
    """Does not ask after a restart for what was open."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """See `BrokerState.handle`."""
        return [] if isinstance(event, Restarted) else super().handle(event, now)


class ReleasesNothing(BrokerState):
    """Leaves reservations to themselves."""

    def handle(self, event: Event, now: float) -> list[Command]:
        """See `BrokerState.handle`."""
        return [each for each in super().handle(event, now) if not isinstance(each, Release)]


class Again(TaskExecution):
    """Runs each program again that has failed."""

    def _after(self, task: LiveTask, event: Ended) -> tuple[TaskState, bool]:
        state, counted = super()._after(task, event)
        return (TaskState.WAITING if state is TaskState.FAILED else state), counted


class AllAtOnce(TaskExecution):
    """Ends what runs beside a task that has failed, though that is to be waited for."""

    def close(
        self, workflow: LiveWorkflow, transaction: Transaction, *, running: bool, reason: str
    ) -> None:
        """See `TaskExecution.close`."""
        del running
        super().close(workflow, transaction, running=True, reason=reason)


def with_(execution: type[TaskExecution]) -> type[BrokerState]:
    """Returns a state of the broker whose tasks are executed so."""

    class State(BrokerState):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(state_module, "TaskExecution", execution)
                super().__init__(*arguments, **more)

    return State


FAILS = broker_bound("fails", fail=1)
DIES = broker_bound("dies", crash=1)

CARELESS = [
    (JournalLast, DIES, "is lost", 1),
    (TakesNothingUp, DIES, "lead to no end", 2),
    (ReleasesNothing, broker_bound("cancelled", cancel=1), "lead to no end", 2),
    (with_(Again), FAILS, "has run 2 times", 7),
    (with_(AllAtOnce), broker_bound("pair", fail=1, more=PAIR), "nobody has wanted that", 8),
]


@pytest.mark.parametrize(
    ("state", "within", "text", "steps"),
    CARELESS,
    ids=["JournalLast", "TakesNothingUp", "ReleasesNothing", "Again", "AllAtOnce"],
)
def test_a_careless_broker_is_found_with_a_shortest_story(
    state: type[BrokerState], within: BrokerBound, text: str, steps: int
) -> None:
    """The story is told step by step, and taking its steps again leads to the same."""
    within = replace(within, state=state)
    found = explore_model(BrokerModel(within), most=2000)
    assert text in found.violation
    assert len(found.story) == steps, found.story
    if "lead to no end" not in text:
        assert text in replay_model(BrokerModel(within), found.labels)


def test_a_bound_names_faults_that_there_are() -> None:
    """A misspelt one would explore less than it seems to."""
    with pytest.raises(ValueError, match="there is no fault fails"):
        broker_bound("wrong", fails=1)
