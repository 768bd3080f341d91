"""The account that a site keeps of itself, for those who read it: from its journal, while its daemon runs.

Amounts are hours in which an own job of mean work waits. The account itself counts processor seconds times
seconds, which nobody can picture.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from grms.site.model.account_history import HISTORY_S, AccountPoint
from grms.site.model.lifecycle import JobState
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.runtime.journal import JournalError, reading_of
from grms.site.runtime.recovery import without_collection

COMPARED_MIN: Final = 100
"""With fewer own jobs than so many the account says nothing in a sentence."""

_HARDLY: Final = 0.01
"""Where own jobs would have waited for less than this part of their time alone, waiting is no measure."""


@dataclass(frozen=True, slots=True)
class AccountFigures:
    """The account of a site at its last look.

    Times are seconds, work is in processor seconds, amounts are hours in which an own job of mean work waits (nan while no job has been compared).

    Attributes:
        in_credit: until the next look.
        since: when it has turned last; nan if it never has.
        turns: how often it has turned since it began.
        began: when it began.
        last_look: minus infinity before the first.
        guests: "preempt" or "run".
        allowed: what exchange may cost own jobs beyond what it has brought, as part of B.
        others: whether the batch system may have jobs that did not come through the site, as every real one may.
        compared: number of own jobs that it has compared, fading.
        gain: S as part of B: by so much own jobs have taken less time than alone, fading; nan without any.
        waiting_gain: S as part of what they would have waited alone, likewise.
        waiting_part: that as part of B.
        brought: S, an amount.
        saved: SB and what exchange may cost beyond, an amount.
        owed: H, an amount.
        turned_saved: `saved` when it has turned last; nan if it never has.
        turned_owed: `owed` then.
        waiting: own jobs that wait at home.
        protected: guests that run and are not ended for own jobs now.
        preemptible: guests that run and are.
        staying: guests that run to their ends.
        lent: by partners' jobs that have run here to their ends since it began.
        lent_lost: by partners' jobs that were sent home.
        given: by own jobs that have run at partners to their ends.
        given_lost: by own jobs that partners have sent home.
        guests_sent_home: how often guests were sent home.
        sent_home: how often own jobs were.
        history: the last 30 days, oldest first.
    """

    in_credit: bool
    since: float
    turns: int
    began: float
    last_look: float
    guests: str
    allowed: float
    others: bool
    compared: float
    gain: float
    waiting_gain: float
    waiting_part: float
    brought: float
    saved: float
    owed: float
    turned_saved: float
    turned_owed: float
    waiting: int
    protected: int
    preemptible: int
    staying: int
    lent: float
    lent_lost: float
    given: float
    given_lost: float
    guests_sent_home: int
    sent_home: int
    history: Sequence[AccountPoint] = field(default=(), repr=False)

    @property
    def balance(self) -> float:
        """What is saved and not owed, an amount; negative where the site is out of credit."""
        return self.saved - self.owed


def figures_of(memory: StateTables) -> AccountFigures | None:
    """Returns the account of a site for those who read it; `None` if it keeps none."""
    account = memory.account
    if account is None:
        return None
    last = account.last_change
    own = [job for job in memory.at_lrms.values() if not job.owner[1]]
    allowed, waiting_alone = account.rules.allowed, account.waiting_alone
    return AccountFigures(
        in_credit=account.in_credit,
        since=math.nan if last is None else last.time,
        turns=account.changes,
        began=account.began,
        last_look=account.last_look,
        guests=account.rules.guests,
        allowed=allowed,
        others=not memory.settings.runs_nothing,
        compared=account.compared,
        gain=_part(account.gain, account.base),
        waiting_gain=_part(account.gain, waiting_alone),
        waiting_part=_part(waiting_alone, account.base),
        brought=account.hours(account.gain),
        saved=account.hours(account.saved + allowed * account.base),
        owed=account.hours(account.owed),
        turned_saved=(
            math.nan
            if last is None
            else _part(last.saved + allowed * last.base, 3600.0 * last.job_work)
        ),
        turned_owed=math.nan if last is None else _part(last.owed, 3600.0 * last.job_work),
        waiting=sum(job.state is not JobState.RUNNING for job in own),
        **asdict(memory.running_guests()),
        **asdict(account.exchanged),
        history=account.history.points,
    )


def in_a_sentence(account: AccountFigures) -> str:
    """Returns what a director can be told: what the account has measured of the site's own users, and no more."""
    if not account.compared >= COMPARED_MIN:
        return (
            f"It is too early for a sentence: the account has compared {account.compared:,.0f} own jobs "
            f"(old ones count less and less); {COMPARED_MIN} are needed."
        )
    # What a real batch system's other jobs take is not in the shadow, which has the whole machine for those of the site.
    against = "alone on the whole machine" if account.others else "without exchange"
    if account.waiting_part < _HARDLY:
        took = _than(account.gain, "took", against)
        found = f"your users' jobs {took}, where they would hardly have waited"
    else:
        found = f"your users {_than(account.waiting_gain, 'waited', against)}"
    waited = _waited(account.history, against)
    return f"In a sentence: {found} (weighted by work, recent jobs most){waited}."


def _waited(history: Sequence[AccountPoint], against: str) -> str:
    looks, late = sum(point.looks for point in history), sum(point.late for point in history)
    if not looks:
        return ""
    span = min(history[-1].time - history[0].time, HISTORY_S)
    days = max(1, math.ceil(span / 86_400.0))
    of_all = f"of {looks:,} looks in {'a day' if days == 1 else f'{days} days'}"
    which = f"that would have begun by then {against}"
    if not late:
        return f"; at none {of_all} did a job of theirs wait {which}"
    return f"; at {late:,} {of_all} a job of theirs waited {which}"


def _than(part: float, verb: str, against: str) -> str:
    shown = f"{100.0 * abs(part):.0f} %" if abs(part) >= 0.0995 else f"{100.0 * abs(part):.1f} %"
    if abs(part) < 0.0005:
        word = "as long as"
    elif verb == "took":
        word = f"{shown} {'less' if part > 0 else 'more'} time than"
    else:
        word = f"{shown} {'less' if part > 0 else 'longer'} than"
    return f"{verb} {word} {against}"


def _part(amount: float, base: float) -> float:
    return amount / base if base > 0 else math.nan


def account_of_site(path: Path, settings: SiteSettings) -> AccountFigures | None:
    """Returns the account that the journal of a site makes; `None` if it keeps none.

    Raises:
        JournalError: the file is missing, unreadable, or no journal of this site.
    """
    if settings.account is None:
        return None
    if not path.is_file():
        raise JournalError(f"{path}: there is no such journal; has the site's daemon ever run?")
    memory = StateTables(settings)
    with without_collection(), reading_of(path, settings.name) as scan:
        for record in scan.records():
            memory.apply(record)
    return figures_of(memory)
