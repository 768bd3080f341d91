"""Looks at every task that can begin at each event, as `broker.scheduler.ready_tasks` does not."""

from collections.abc import Collection, Iterator

from broker.scheduler.ready_tasks import ReadyTasks, TaskKey
from broker.scheduler.records import Place
from broker.scheduler.state_tables import LiveTask


class PlainReadyTasks(ReadyTasks):
    """All of them, sorted anew by their places in the plan."""

    def take(
        self, now: float, freed: Collection[Place], down: Collection[str]
    ) -> Iterator[tuple[TaskKey, LiveTask, bool]]:
        """Yields every task."""
        del freed, down
        fresh, self._fresh = self._fresh, set()
        tasks = {key: entry.task for key, entry in self._entries.items()}
        order = sorted(
            tasks, key=lambda key: now if (at := tasks[key].placement) is None else at.start
        )
        for key in order:
            yield key, tasks[key], key in fresh
