"""What `grms exchange` shows: its document for programs, and what it says of the guard."""

import math
from dataclasses import asdict, fields
from typing import Any

from grms.policy.circuit_breaker import DAY, ExchangeGuard
from grms.site.accounting.counterfactual import Compared, ExchangeReport
from grms.site.config.circuit_breaker_table import guard_of
from grms.site.config.schema import SiteConfig


def exchange_document(
    found: ExchangeReport, settings: SiteConfig, word: str, seen: Compared | None
) -> dict[str, Any]:
    """Returns the JSON of `grms exchange`.

    `word` stands for the discipline of the site's machine alone, `seen` for the jobs that its guard
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
        "guard": _guard(guard_of(settings.guard), seen),
    }


def _guard(guard: ExchangeGuard | None, seen: Compared | None) -> dict[str, Any] | None:
    if guard is None or seen is None:
        return None
    return {
        "cost": guard.cost,
        "window_s": guard.window,
        "jobs_min": guard.jobs,
        "since_s": guard.since,
        "jobs": seen.jobs,
        "improvement_percent": 100.0 * seen.improvement,
        "stops": guard.stops(seen.jobs, seen.improvement),
    }


def guard_words(guard: ExchangeGuard | None, seen: Compared | None) -> str:
    """Returns what a site's guard says by its journal, for a person; empty if it has none."""
    if guard is None or seen is None:
        return ""
    jobs = "1 own job" if seen.jobs == 1 else f"{seen.jobs:,} own jobs"
    span = f"of {guard.window / DAY:g} days"
    if seen.jobs < guard.jobs:
        return f"Guard: {jobs} {span} are too few to judge by ({guard.jobs:,}); exchange goes on."
    gain = 100.0 * seen.improvement
    found = "nothing" if math.isnan(gain) else f"{abs(gain):.1f} %"
    way = "cost" if gain < 0 else "brought"
    limit = f"{100.0 * guard.cost:g} %"
    if guard.stops(seen.jobs, seen.improvement):
        return (
            f"Guard: exchange stands still. It has {way} {jobs} {span} {found}, and {limit} is "
            "what it may cost: guests are declined, and only partners that are held to their promise "
            "are asked."
        )
    return f"Guard: exchange goes on. It has {way} {jobs} {span} {found}; it may cost {limit}."
