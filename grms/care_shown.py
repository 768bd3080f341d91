"""What `grms exchange` shows: its document for programs, and what it says of the guard."""

import math
from typing import Any

from grms.policy.guard import DAY, ExchangeGuard
from grms.site.care.alone import Compared, ExchangeReport
from grms.site.configuration.config import SiteConfig
from grms.site.configuration.guard_table import guard_of


def exchange_document(
    found: ExchangeReport, settings: SiteConfig, word: str, seen: Compared | None
) -> dict[str, Any]:
    """Returns what `grms exchange` tells programs.

    Args:
        found: what exchange has brought.
        settings: of the site.
        word: for the discipline of its machine alone.
        seen: the jobs that its guard looks at; None where it has none.
    """
    return {
        "site": settings.name,
        "processors": settings.processors,
        "discipline": word,
        "begin_s": found.begin,
        "end_s": found.end,
        "total": _compared(found.total),
        "places": [{"place": row.place, **_compared(row)} for row in found.places],
        "partners": [
            {
                "name": row.partner,
                "given": row.given,
                "given_work": row.given_work,
                "taken": row.taken,
                "taken_work": row.taken_work,
            }
            for row in found.partners
        ],
        "open": found.left_out.open,
        "never_ran": found.left_out.never_ran,
        "disbelieved": found.left_out.disbelieved,
        "too_wide": found.left_out.too_wide,
        "home_awrt_replayed_s": found.home_awrt_replayed,
        "known_since_s": found.known_since,
        "guests_known_since_s": found.guests_known_since,
        "guard": _guard(guard_of(settings.guard), seen),
    }


def _compared(row: Compared) -> dict[str, Any]:
    return {
        "jobs": row.jobs,
        "work": row.work,
        "mean_wait_s": row.mean_wait,
        "mean_wait_alone_s": row.mean_wait_alone,
        "awrt_s": row.awrt,
        "awrt_alone_s": row.awrt_alone,
        "improvement_percent": 100.0 * row.improvement,
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
    """Returns what a site's guard says by its journal, for a person; empty where it has none.

    Args:
        guard: of the site.
        seen: the jobs that it looks at.
    """
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
