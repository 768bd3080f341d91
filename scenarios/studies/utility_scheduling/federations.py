"""Sites with utility machines that exchange jobs of recorded logs."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, Final

from grms.federation.malleable import UtilitySite, exchange
from lrms_sim.malleable.machine import Learning
from lrms_sim.malleable.options import MachineOptions
from lrms_sim.malleable.policies import policy_by_name
from lrms_sim.malleable.training import Training, learn, scales_for
from lrms_sim.malleable.value import ValueFunction
from scenarios.spec.traces import find_trace
from scenarios.studies.utility_scheduling.recorded import RULES, Logs
from scenarios.studies.utility_scheduling.reference import LEARN_DAYS, TEST_DAYS

GRIDS: Final = (("kth", "ctc"), ("kth", "ctc", "sdsc05"))
"""Sites, by the keys of their logs, in site order."""

TRANSFERS: Final = ("keep", "awf", "value")
"""How sites decide: alone, accept when fit, by value."""

POLICIES: Final = ("both-value", "replan")
_LEARNING: Final = Lock()


@dataclass(frozen=True, slots=True)
class FederationCase:
    """An exchange."""

    grid: tuple[str, ...]
    rules: str
    policy: str
    transfer: Any

    @property
    def key(self) -> str:
        """What it is kept under."""
        return f"federation {'+'.join(self.grid)} {self.rules} {self.policy} {self.transfer}"


def federation_cases() -> Iterator[FederationCase]:
    """Yields every exchange whose logs are there."""
    for grid in GRIDS:
        if all(find_trace(log) is not None for log in grid):
            for rules in RULES:
                for policy in POLICIES:
                    for transfer in TRANSFERS:
                        yield FederationCase(grid, rules, policy, transfer)


@lru_cache(maxsize=32)
def _learned(logs: Logs, log: str, rules: str) -> ValueFunction:
    source = logs.source(log, rules)
    train = source.window(*LEARN_DAYS)
    start = Training(ValueFunction(scales=scales_for(train, source.processors)), Learning())
    policy = policy_by_name("both-value")
    return learn(start, train, source.processors, policy, MachineOptions()).value


def run_federation(case: FederationCase, logs: Logs) -> dict[str, Any]:
    """Runs an exchange; shares of the possible utility of each site's users, as plain values."""
    sites = []
    for log in case.grid:
        source = logs.source(log, case.rules)
        with _LEARNING:
            value = _learned(logs, log, case.rules)
        test = source.window(*TEST_DAYS)
        policy = policy_by_name(case.policy)
        sites.append(UtilitySite(log, test, source.processors, policy, case.transfer, value))
    found = exchange(sites)
    numbers = range(len(sites))
    return {
        "shares": [found.share(site) for site in numbers],
        "total": float(found.utility.sum() / found.workload.possible.sum()),
        "given": [found.given(site) for site in numbers],
        "taken": [found.taken(site) for site in numbers],
        "suspensions": list(found.suspensions),
    }
