"""What must always hold of what the broker knows."""

from collections import Counter

from broker.scheduler.lifecycle import AT_SITE, DONE, HELD
from broker.scheduler.state_tables import StateTables


def check(memory: StateTables) -> None:
    """Checks everything, for tests and after a restart; `AssertionError` if it does not hold."""
    for workflow in memory.workflows.values():
        assert (memory.live.get(workflow.workflow.name) is workflow) != workflow.has_ended
        states = Counter(task.state for task in workflow.tasks.values())
        assert +workflow.counts == states, workflow.workflow.name
        for task in workflow.tasks.values():
            bound = task.state in HELD | AT_SITE
            assert bound == (task.booking is not None), task.name
            if task.booking is not None:
                assert memory.booked[task.booking.booking] is task
                for before in task.predecessors:
                    launched = task.state in AT_SITE
                    assert before.state in DONE or not launched, task.name
                    assert not before.plannable, task.name
    assert not memory.booked.keys() & memory.releasing.keys()
