"""What `grms advise` looks at unless told otherwise, and whether it recommends strict exchange."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from grms.federation.own_account import accountable
from grms.policy.constraints import CONSTRAINTS, STRICT_EXCHANGE, AccountRules
from grms.policy.transfer import Constrained, TransferPolicy
from grms.site.accounting.policy_advice import Advised
from lrms_sim.scheduling.disciplines import Discipline
from lrms_sim.util.messages import change

JOBS_MIN: Final = 100
"""With fewer own jobs in the window nothing is recommended."""

STRICT: Final = "strict-exchange"
GUESTS_RUN: Final = "strict, guests run"
"""Strict exchange where guests run to their ends."""


def words_to_advise(queue: Discipline, *, may_preempt: bool) -> Mapping[str, TransferPolicy]:
    """Returns the policies that are looked at unless others are named.

    `queue` is the discipline of the machine alone. Strict exchange is left out where it can keep no account; where the batch
    system cannot send guests home, there is strict exchange without that, too.
    """
    words: dict[str, TransferPolicy] = {
        word: Constrained(rails, name=word)
        for word, rails in CONSTRAINTS.items()
        if rails.account is None or accountable(queue)
    }
    if STRICT in words and not may_preempt:
        rails = replace(STRICT_EXCHANGE, account=AccountRules(guests="run"))
        words[GUESTS_RUN] = Constrained(rails, name=GUESTS_RUN)
    return words


def recommendation(rows: Sequence[Advised], ends_no_guests: str) -> str:
    """Returns whether strict exchange is recommended by a site's own log, and why; empty where it was not looked at.

    `ends_no_guests` is why the site's batch system cannot send guests home; empty if it can.
    """
    found = {row.policy: row for row in rows}
    strict = found.get(STRICT)
    if strict is None:
        return ""
    if strict.jobs < JOBS_MIN or math.isnan(strict.low):
        return (
            f"Recommended: nothing yet. {strict.jobs:,} own jobs of the window have ended; {JOBS_MIN}, on at least two days, "
            "are needed."
        )
    if strict.high < 0:
        return (
            f"Recommended: no exchange with these partners. By this log own users' jobs would have taken longer than alone, "
            f"under strict-exchange too ({_gain(strict)})."
        )
    others = [found[word] for word in ("fair-exchange",) if word in found]
    beside = "".join(f"; {row.policy} {_gain(row)}" for row in others)
    more = [row.policy for row in others if row.low > strict.high]
    if more:
        beside += f". {more[0]} brings more here, and has lost more in the worst half years that were simulated"
    log = f"By this log it brings {_gain(strict)}{beside}"
    why = "guests go home when own jobs need their processors, unless exchange has paid for them"
    if not ends_no_guests:
        return f"Recommended: strict-exchange: {why}. {log}."
    run = found.get(GUESTS_RUN)
    until = "" if run is None else f", which brings {_gain(run)}"
    return (
        f"Recommended: strict-exchange, once the batch system can send guests home ({ends_no_guests}; `grms lrms preemption` "
        f"prints the lines where there are any): {why}. {log}. Until then there is rails = "
        f'{{rules = "strict-exchange", guests = "run"}}{until}.'
    )


def _gain(row: Advised) -> str:
    return f"{change(row.improvement)} ({change(row.low)} to {change(row.high)})"
