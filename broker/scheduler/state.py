"""The state of the broker: what happens goes in, what is to be done comes out.

`BrokerState.handle(event, now)` is the one entry point. It reads no clock, draws no random number, opens
nothing. The parts:

- `memory`: what survives a restart, changed by journal records alone;
- `requests`: what people ask; with `open_workflows`: workflows that tasks are added to;
- `execution`: the lives of tasks, from their fixed places to their ends; with `dispatch`: where what can
  begin begins now; `moves`: what is moved as something is late or takes longer than was thought; and
  `free_time`: which time of resources is free;
- `cycle`: when to plan, what, and what becomes of the plan;
- `lifecycle`: the tables of what may follow what.
"""

from collections.abc import Callable, Iterable
from typing import Any

from broker.scheduler.commands import Command
from broker.scheduler.events import (
    Add,
    Booked,
    BookingLost,
    Cancel,
    Close,
    Ended,
    Event,
    HandedOver,
    Hindered,
    Moved,
    MoveRefused,
    Offered,
    Open,
    PlanFailed,
    PlanFound,
    Refused,
    Register,
    Released,
    Remove,
    Replan,
    Restarted,
    SiteDown,
    SiteLost,
    SiteUp,
    Started,
    Submit,
    Tick,
    Update,
)
from broker.scheduler.open_workflows import OpenWorkflows
from broker.scheduler.planning_cycle import PlanningCycle
from broker.scheduler.records import Record
from broker.scheduler.request_handler import RequestHandler
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state_tables import LiveWorkflow, StateTables
from broker.scheduler.task_execution import TaskExecution
from broker.scheduler.transaction import Transaction


class BrokerState:
    """All that the broker knows and decides.

    Attributes:
        settings: how it works.
        memory: what it knows; to be looked at only.
        cycle: when it plans; to be looked at only.

    Args:
        records: what the journal holds, oldest first; nothing for a new broker. Afterwards the
            event `Restarted` takes up what was open.
        epoch: of the journal; begins the names of bookings, so that two journals share none.

    Raises:
        IllegalMove, KeyError: the records contradict each other.
    """

    def __init__(
        self, settings: BrokerSettings, records: Iterable[Record] = (), *, epoch: str = "b"
    ) -> None:
        self.settings = settings
        self.memory = StateTables(records)
        self.cycle = PlanningCycle(self.memory, settings)
        self._execution = TaskExecution(self.memory, settings, self.cycle, epoch)
        self._requests = requests = RequestHandler(
            self.memory, settings, self.cycle, self._execution
        )
        execution, cycle = self._execution, self.cycle
        growing = OpenWorkflows(self.memory, cycle, requests)
        self._handlers: dict[type[Event], Callable[[Any, Transaction], None]] = {
            Restarted: execution.take_up,
            Tick: lambda _event, _transaction: None,
            Submit: requests.submit,
            Open: growing.open,
            Add: growing.add,
            Close: growing.close,
            Cancel: requests.cancel,
            Replan: requests.replan,
            Register: requests.register,
            Update: requests.update,
            Remove: requests.remove,
            Offered: requests.offered,
            PlanFound: cycle.found,
            PlanFailed: cycle.failed,
            Booked: execution.booked,
            BookingLost: execution.lost,
            HandedOver: execution.handed_over,
            Hindered: execution.hindered,
            Refused: execution.refused,
            Started: execution.started,
            Moved: execution.moved,
            MoveRefused: execution.moves.refused,
            Ended: execution.ended,
            Released: execution.released,
            SiteUp: execution.site_up,
            SiteDown: execution.site_down,
            SiteLost: execution.site_lost,
        }

    @classmethod
    def recover(
        cls, settings: BrokerSettings, records: Iterable[Record], *, epoch: str = "b"
    ) -> "BrokerState":
        """Returns the state that a journal's records make; see the class."""
        return cls(settings, records, epoch=epoch)

    def handle(self, event: Event, now: float) -> list[Command]:
        """Handles an event and returns the commands to carry out, in this order.

        If there are records to be journaled, one `Append` with all of them comes first. `now` is in
        seconds and never less than in the call before.

        Raises:
            IllegalMove: this program is wrong; the state must not be used any more.
        """
        transaction = Transaction(self.memory, now)
        self._handlers[type(event)](event, transaction)
        self._execution.advance(transaction)
        self.cycle.advance(transaction, self._execution.down)
        return transaction.commands()

    def find(self, workflow_id: str) -> LiveWorkflow | None:
        """Returns a workflow by its id, or the youngest of that name; to be looked at only."""
        return self._requests.find(workflow_id)

    @property
    def next_time(self) -> float:
        """When something is due if nothing happens before, seconds; infinity for never."""
        return min(self._execution.next_time, self.cycle.next_time)

    @property
    def sites_down(self) -> frozenset[str]:
        """The sites that do not answer."""
        return frozenset(self._execution.down)
