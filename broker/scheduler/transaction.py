"""What comes of one event: records first, then what is to be done."""

from broker.scheduler.commands import Append, Command, PublishWorkflow
from broker.scheduler.records import Record
from broker.scheduler.state_tables import LiveTask, LiveWorkflow, StateTables


class Transaction:
    """Gathers records and commands while one event is handled at `now`, in seconds.

    `touched` are tasks for which something may be due. Every record noted changes the memory.
    """

    def __init__(self, memory: StateTables, now: float) -> None:
        self.now = now
        self.touched: list[LiveTask] = []
        self._memory = memory
        self._records: list[Record] = []
        self._commands: list[Command] = []
        self._changed: dict[str, None] = {}

    def note(self, record: Record) -> None:
        """Lets a fact be known now, and be journaled."""
        self._records.append(record)
        self._memory.apply(record)

    def do(self, command: Command) -> None:
        """Has something done once everything noted is durable."""
        self._commands.append(command)

    def changed(self, workflow: LiveWorkflow) -> None:
        """Tells watchers of a workflow."""
        self._changed[workflow.workflow_id] = None

    def commands(self) -> list[Command]:
        """Returns everything to be done, in order."""
        append = [Append(tuple(self._records))] if self._records else []
        return [*append, *self._commands, *map(PublishWorkflow, self._changed)]
