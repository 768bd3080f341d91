"""Limits of a month on what is exchanged: of partners' jobs here, and of own users' jobs there.

A job is let through if what was used in the present month, what open jobs may still use by their requests, and its own
request are within the limit together. So a limit is never exceeded by jobs that end in the month in which they were let
through; one that ends in the next counts there (`grms.site.model.usage`).

Partners are told of none of it: an offer that is beyond a limit is declined like any other. The texts are for this
site's own users and operators.
"""

import math
from collections.abc import Collection

from grms.site.model.jobs import GuestJob, HomeJob, OfferId, Request
from grms.site.model.partners import PartnerBook
from grms.site.model.state_tables import StateTables
from grms.site.model.usage import Committed, Used, month_of, total
from grms.util.values import dataclass


@dataclass(frozen=True, slots=True)
class Standing:
    """How far one is from a limit, weighted processor seconds.

    Attributes:
        month: which it is about.
        used: by jobs that have ended in it.
        open: at most, by jobs that have not ended.
        limit: infinity for none.
    """

    month: str
    used: float
    open: float
    limit: float

    def lacks(self, asked: float) -> bool:
        """Returns whether there is no room for a job that may use so much."""
        return self.used + self.open + asked > self.limit


def taken(memory: StateTables, book: PartnerBook, now: float) -> Standing:
    """Returns what a partner's jobs use here this month; `now` is in seconds."""
    month = month_of(now)
    used = total(memory.usage.taken, month, partner=book.name)
    return _standing(memory, month, used, book.committed.used, book.limits.taken)


def taken_by_user(
    memory: StateTables,
    book: PartnerBook,
    pseudonym: str,
    now: float,
    *,
    without: GuestJob | None = None,
    also: Collection[str] = (),
) -> Standing:
    """Returns what the jobs of one of a partner's users use here this month.

    `without` one that is asked about; `also` are keys of jobs that are this user's, though it is not noted yet.
    """
    month, open_ = month_of(now), Committed()
    for guest in book.guests.values():
        is_theirs = guest.pseudonym == pseudonym or guest.lrms_key in also
        if is_theirs and guest.outcome is None and guest is not without:
            open_.add(guest.asked_here)
    used = total(memory.usage.taken, month, partner=book.name, user=pseudonym)
    return _standing(memory, month, used, open_.used, book.limits.taken_user)


def given(memory: StateTables, book: PartnerBook, now: float) -> Standing:
    """Returns what own users' jobs use at a partner this month."""
    month, open_ = month_of(now), _offered(book)
    for committed in book.committed_there.values():
        open_ = open_.and_(committed.used)
    used = total(memory.usage.given, month, partner=book.name)
    return _standing(memory, month, used, open_, book.limits.given)


def given_by_user(memory: StateTables, user: str, now: float) -> Standing:
    """Returns what one own user's jobs use at all partners this month."""
    month, open_ = month_of(now), Used()
    for book in memory.books.values():
        open_ = open_.and_(_offered(book, user))
        if user in book.committed_there:
            open_ = open_.and_(book.committed_there[user].used)
    used = total(memory.usage.given, month, user=user)
    return _standing(memory, month, used, open_, memory.settings.given_user)


def _offered(book: PartnerBook, user: str | None = None) -> Used:
    # By offers whose outcome is open. A job that the partner was told to end may run there until it hears of it.
    committed = Committed()
    for number, job in book.undecided.items():
        if number not in book.abandoned and user in {None, job.user}:
            committed.add(job.request)
    return committed.used


def _standing(memory: StateTables, month: str, used: Used, open_: Used, limit: float) -> Standing:
    weights = memory.settings.weights
    return Standing(month, used.cost(weights), open_.cost(weights), limit)


# --- what stands in the way ----------------------------------------------------------------------


def why_not_taken(memory: StateTables, book: PartnerBook, request: Request, now: float) -> str:
    """Returns which limit keeps a partner's job out, for this site's operator; empty if none does.

    `request` is in the names of this site, `now` in seconds.
    """
    if book.limits.taken == math.inf:
        return ""
    key = f"partners.{book.name}.taken_hours_per_month"
    return _why(memory, f"{book.name}'s jobs here", taken(memory, book, now), request, key)


def why_user_not_taken(
    memory: StateTables,
    partner: str,
    offer: OfferId,
    pseudonym: str,
    now: float,
    *,
    also: Collection[str] = (),
) -> str:
    """Returns which limit keeps out the job of a partner's user that was accepted; empty if none does.

    `also` are keys of jobs of the same user, though it is not noted yet.
    """
    book = memory.books.get(partner)
    guest = None if book is None else book.guests.get(offer)
    if book is None or guest is None or book.limits.taken_user == math.inf:
        return ""
    key = f"partners.{partner}.taken_hours_per_user"
    standing = taken_by_user(memory, book, pseudonym, now, without=guest, also=also)
    return _why(memory, "jobs of its user here", standing, guest.asked_here, key)


def why_not_given(memory: StateTables, book: PartnerBook, job: HomeJob, now: float) -> str:
    """Returns which limit keeps an own user's job from being offered to a partner; empty if none does."""
    settings = memory.settings
    if settings.given_user != math.inf:
        standing = given_by_user(memory, job.user, now)
        key = "usage.given_hours_per_user"
        if why := _why(memory, f"{job.user}'s jobs at partners", standing, job.request, key):
            return why
    if book.limits.given == math.inf:
        return ""
    key = f"partners.{book.name}.given_hours_per_month"
    standing = given(memory, book, now)
    return _why(memory, f"own users' jobs at {book.name}", standing, job.request, key)


def limits_in_the_way(memory: StateTables, job: HomeJob, now: float) -> str:
    """Returns which limits keep an own user's job from being offered to partners, for its user; empty for none."""
    names = memory.settings.transfer
    found = [
        why_not_given(memory, book, job, now)
        for name, book in memory.books.items()
        if name in names and book.listed
    ]
    return "; ".join(dict.fromkeys(filter(None, found)))


def _why(memory: StateTables, whose: str, standing: Standing, request: Request, key: str) -> str:
    weights = memory.settings.weights
    asked = Used.by(request, request.requested_time).cost(weights)
    if not standing.lacks(asked):
        return ""
    unit = "processor hours" if weights.plain else "weighted hours"
    return (
        f"{whose} may use {standing.limit / 3600:,.1f} {unit} in {standing.month}: "
        f"{standing.used / 3600:,.1f} are used, {standing.open / 3600:,.1f} requested by open jobs, and this one "
        f"asks for {asked / 3600:,.1f} ({key})"
    )
