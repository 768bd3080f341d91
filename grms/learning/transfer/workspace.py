"""What a thread evaluates with, and no other thread may have meanwhile."""

import threading

from grms.federation.federation import Federation, ReplayWorkspace
from grms.policy._decisions import MembershipTable


class Workspace:
    """Membership tables and memory of replays, of each thread its own; a copy in another process begins with none."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __reduce__(self) -> tuple[type["Workspace"], tuple[()]]:
        return Workspace, ()

    def table(self, processors: int, rules: int) -> MembershipTable:
        """Returns a table for machines of a size and rule bases of so many rules."""
        tables: dict[tuple[int, int], MembershipTable] = vars(self._local).setdefault("tables", {})
        key = processors, rules
        if key not in tables:
            tables[key] = MembershipTable(processors, rules)
        return tables[key]

    def replay(self, case: int, federation: Federation) -> ReplayWorkspace:
        """Returns the memory for replays of a case."""
        memory: dict[int, ReplayWorkspace] = vars(self._local).setdefault("memory", {})
        if case not in memory:
            memory[case] = ReplayWorkspace(len(federation.jobs))
        return memory[case]
