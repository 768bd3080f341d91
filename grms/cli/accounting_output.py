"""What `grms exchange` shows: its document for programs, and what it says of the circuit breaker."""

import math
from dataclasses import asdict, fields
from typing import Any

from grms.policy.circuit_breaker import DAY, CircuitBreaker
from grms.site.accounting.counterfactual import Compared, ExchangeReport
from grms.site.config.circuit_breaker_table import circuit_breaker_of
from grms.site.config.schema import SiteConfig


def exchange_document(
    found: ExchangeReport, settings: SiteConfig, word: str, seen: Compared | None
) -> dict[str, Any]:
    """Returns the JSON of `grms exchange`.

    `word` stands for the discipline of the site's machine alone, `seen` for the jobs that its circuit breaker
    looks at, or `None`.
    """
    report = {each.name: getattr(found, each.name) for each in fields(found)}
    left_out = report.pop("left_out")
    return {
        "site": settings.name,
        "processors": settings.processors,
        "discipline": word,
        **report,
        **asdict(left_out),
        "circuit_breaker": _circuit_breaker(circuit_breaker_of(settings.circuit_breaker), seen),
    }


def _circuit_breaker(
    circuit_breaker: CircuitBreaker | None, seen: Compared | None
) -> dict[str, Any] | None:
    if circuit_breaker is None or seen is None:
        return None
    return {
        "cost": circuit_breaker.cost,
        "window_s": circuit_breaker.window,
        "jobs_min": circuit_breaker.jobs,
        "since_s": circuit_breaker.since,
        "jobs": seen.jobs,
        "improvement_percent": 100.0 * seen.improvement,
        "stops": circuit_breaker.stops(seen.jobs, seen.improvement),
    }


def circuit_breaker_words(circuit_breaker: CircuitBreaker | None, seen: Compared | None) -> str:
    """Returns what a site's circuit breaker says by its journal, for a person; empty if it has none."""
    if circuit_breaker is None or seen is None:
        return ""
    jobs = "1 own job" if seen.jobs == 1 else f"{seen.jobs:,} own jobs"
    span = f"of {circuit_breaker.window / DAY:g} days"
    if seen.jobs < circuit_breaker.jobs:
        return f"Circuit breaker: {jobs} {span} are too few to judge by ({circuit_breaker.jobs:,}); exchange goes on."
    gain = 100.0 * seen.improvement
    found = "nothing" if math.isnan(gain) else f"{abs(gain):.1f} %"
    way = "cost" if gain < 0 else "brought"
    limit = f"{100.0 * circuit_breaker.cost:g} %"
    if circuit_breaker.stops(seen.jobs, seen.improvement):
        return (
            f"Circuit breaker: exchange stands still. It has {way} {jobs} {span} {found}, and {limit} is "
            "what it may cost: guests are declined, and only partners that are held to their promise "
            "are asked."
        )
    return f"Circuit breaker: exchange goes on. It has {way} {jobs} {span} {found}; it may cost {limit}."
