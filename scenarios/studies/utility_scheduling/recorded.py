"""Policies on recorded logs: learned in one window, judged in another."""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from lrms_sim.malleable.rules import PRESETS, utilities
from lrms_sim.malleable.source import Source
from lrms_sim.report.malleable_comparison import Plan, compare_policies
from lrms_sim.workload.swf import read_swf
from scenarios.spec.traces import TRACES, find_trace
from scenarios.studies.utility_scheduling.reference import (
    LEARN_DAYS,
    LOG_POLICIES,
    LOG_SEEDS,
    LOGS,
    TEST_DAYS,
)

RULES: Final = ("lenient", "tight")


@dataclass(frozen=True, slots=True)
class LogCase:
    """A policy on a log."""

    log: str
    rules: str
    policy: str

    @property
    def key(self) -> str:
        """What it is kept under."""
        return f"log {self.log} {self.rules} {self.policy} {LOG_SEEDS}"


def log_cases() -> Iterator[LogCase]:
    """Yields every policy on every log that is there."""
    for log in LOGS:
        if find_trace(log) is not None:
            for rules in RULES:
                for policy in LOG_POLICIES:
                    yield LogCase(log, rules, policy)


def missing_logs() -> list[str]:
    """Returns the keys of the logs that are not there."""
    return [log for log in LOGS if find_trace(log) is None]


class Logs:
    """The logs as sources, read when first asked for."""

    def __init__(self) -> None:
        self._sources: dict[tuple[str, str], Source] = {}
        self._reading = Lock()

    def source(self, log: str, rules: str) -> Source:
        """Returns the jobs of a log with the utilities of a preset."""
        with self._reading:
            if (log, rules) not in self._sources:
                path = find_trace(log)
                assert path is not None, "only logs that are there are asked for"
                read = read_swf(path)
                size = TRACES[log].processors
                for each in RULES:
                    workload, _ = utilities(read, size, PRESETS[each])
                    self._sources[log, each] = Source(log.upper(), workload, size, seconds=True)
            return self._sources[log, rules]


def run_log_case(case: LogCase, logs: Logs) -> list[dict[str, Any]]:
    """Runs a policy on a log, once for each training seed if it learns; figures as plain values."""
    plan = Plan((case.policy,), LEARN_DAYS, TEST_DAYS, LOG_SEEDS)
    (group,) = compare_policies(logs.source(case.log, case.rules), plan)
    return [each.document() for each in group]
