"""The account that a site keeps of itself, for those who read it: from its journal, while its daemon runs."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

from grms.site.model.lifecycle import JobState
from grms.site.model.settings import SiteSettings
from grms.site.model.state_tables import StateTables
from grms.site.runtime.journal import JournalError, reading_of
from grms.site.runtime.recovery import without_collection


@dataclass(frozen=True, slots=True)
class AccountFigures:
    """The account of a site at its last look. Times are seconds, work is in processor seconds.

    Attributes:
        in_credit: until the next look.
        since: when it has turned last; nan if it never has.
        turns: how often it has turned since it began.
        began: when it began.
        last_look: minus infinity before the first.
        guests: "preempt" or "run".
        gain: S as part of B: by so much own jobs have taken less time than alone, fading; nan without any.
        saved: SB as part of B.
        owed: H as part of B.
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
    """

    in_credit: bool
    since: float
    turns: int
    began: float
    last_look: float
    guests: str
    gain: float
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


def figures_of(memory: StateTables) -> AccountFigures | None:
    """Returns the account of a site for those who read it; `None` if it keeps none."""
    account = memory.account
    if account is None:
        return None
    last = account.last_change
    guests = [job for job in memory.at_lrms.values() if job.owner[1]]
    running = [job for job in guests if job.state is JobState.RUNNING]
    may_go = [job for job in running if job.preemptible]
    protected = [job for job in may_go if job.protected and account.in_credit]
    return AccountFigures(
        in_credit=account.in_credit,
        since=math.nan if last is None else last.time,
        turns=account.changes,
        began=account.began,
        last_look=account.last_look,
        guests=account.rules.guests,
        gain=_part(account.gain, account.base),
        saved=_part(account.saved, account.base),
        owed=_part(account.owed, account.base),
        turned_saved=math.nan if last is None else _part(last.saved, last.base),
        turned_owed=math.nan if last is None else _part(last.owed, last.base),
        waiting=len(memory.at_lrms) - len(guests) - _running(memory),
        protected=len(protected),
        preemptible=len(may_go) - len(protected),
        staying=len(running) - len(may_go),
        **asdict(account.exchanged),
    )


def _running(memory: StateTables) -> int:
    own = (job for job in memory.at_lrms.values() if not job.owner[1])
    return sum(job.state is JobState.RUNNING for job in own)


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
