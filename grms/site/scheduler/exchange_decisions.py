"""Decisions about the exchange of a job: by transfer policies, by the constraints around them, and by limits of a month.

Constraints use what the site has recorded itself: local users' completed jobs, work exchanged with a partner, and
how the partner has kept its promise to start accepted jobs at once. The decision is the compiled one that
replays use (`grms.policy`); docs/disciplines.md has its rules.

Limits are of partners' jobs here, and of own users' jobs there. A job is let through if what was used in the present month,
what open jobs may still use by their requests, and its own request are within the limit together. So a limit is never
exceeded by jobs that end in the month in which they were let through; one that ends in the next counts there
(`grms.site.model.usage`).

Partners are told of none of it: an offer that is beyond a limit is declined like any other. The texts are for this
site's own users and operators.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from grms.policy._constraints import CompiledConstraints
from grms.policy.transfer import TransferPolicy, rails_of
from grms.site.model.jobs import GuestJob, HomeJob, Load, OfferId, Request
from grms.site.model.partners import PartnerBook
from grms.site.model.records import DebtNoted, PromisesReviewed
from grms.site.model.state_tables import StateTables
from grms.site.model.usage import Committed, Used, month_of, total
from grms.site.scheduler.transaction import Transaction


def wants(
    policy: TransferPolicy,
    memory: StateTables,
    book: PartnerBook,
    request: Request,
    load: Load,
    *,
    own: bool,
    waits: bool = False,
    left: float = 0.0,
) -> bool:
    """Returns whether the site wants to run a job itself.

    The request is no wider than the machine. `own`: it is a local user's job rather than the partner's. `waits`: it
    is queued already; so it does not start at once, and is not among the jobs that wait before it. `left` is what is left of
    its requested time as it goes on from state that it has written, seconds, 0 if it does not: rules go by that, the batch
    system by the whole.
    """
    requested_time = left or request.requested_time
    waiting = load.processors_waiting
    if waits:  # what the batch system has said may be older than the job
        waiting = max(0, waiting - request.processors)
    compiled = policy.compiled
    rails, free = compiled.rails, load.room_for(request)
    if rails is None:
        return compiled.accept(
            request.processors,
            processors=load.processors,
            processors_free=free,
            processors_waiting=waiting,
            own=own,
            requested_time=requested_time,
        )
    return compiled.accept(
        request.processors,
        processors=load.processors,
        processors_free=free,
        processors_waiting=waiting,
        own=own,
        requested_time=requested_time,
        starts_now=rails.start_now and not waits and load.starts_now(request),
        books=(memory.own_work, memory.own_requested, book.taken, book.given),
    )


@dataclass(frozen=True, slots=True)
class Handing:
    """How a site takes a partner's job.

    Attributes:
        preemptible: it is taken as one that may be sent home, on processors that nobody uses.
        protected: of such a one: not as long as the site is in credit.
        charge: what it may cost local users, where it runs to its end and the account says whether it may;
            processor seconds times seconds.
    """

    preemptible: bool = False
    protected: bool = False
    charge: float | None = None


AS_EVER: Final = Handing()
"""It runs to its end, or is ended as an operator has set it up, and no account is asked."""

_PREEMPTIBLE, _PROTECTED = 1, 2


def takes(
    policy: TransferPolicy,
    memory: StateTables,
    book: PartnerBook,
    request: Request,
    load: Load,
    *,
    now: float,
    rerun: bool,
    left: float = 0.0,
    checkpoint: float = 0.0,
) -> Handing | None:
    """Returns how the site takes a partner's job; `None` if it declines.

    A job that is not to be run again (`rerun`) cannot be sent home: where guests may be, it is taken as where they run to
    their ends. `now` is in seconds; so are `left`, what is left of its requested time as it goes on from state that it has written, and
    `checkpoint`, how often it writes such state, both 0 where it does not.
    """
    account = memory.account
    constraints = None if account is None else rails_of(policy)
    rules = None if constraints is None else constraints.account
    if rules is None or account is None:
        agreed = wants(policy, memory, book, request, load, own=False, left=left)
        return AS_EVER if agreed else None
    if rules.guests == "preempt" and rerun:
        return _may_go(
            policy,
            memory,
            book,
            request,
            load,
            requested_time=left or request.requested_time,
            checkpoint=checkpoint,
        )
    if request.processors > load.idle or not wants(
        policy, memory, book, request, load, own=False, left=left
    ):
        return None
    here = [one for one in memory.at_lrms.values() if isinstance(one, GuestJob)]
    charge = account.charge(now, load.idle, request, [one for one in here if not one.preemptible])
    return None if charge is None else Handing(charge=charge)


def _may_go(
    policy: TransferPolicy,
    memory: StateTables,
    book: PartnerBook,
    request: Request,
    load: Load,
    *,
    requested_time: float,
    checkpoint: float,
) -> Handing | None:
    account = memory.account
    assert account is not None
    if request.processors > load.idle:
        return None
    compiled = policy.compiled
    rails = compiled.rails
    assert rails is not None
    found = rails.handing(
        request.processors,
        requested_time,
        checkpoint,
        processors=load.processors,
        own_work=memory.own_work,
        own_requested=memory.own_requested,
        taken=book.taken,
        given=book.given,
        in_credit=account.in_credit,
        starts_now=load.starts_now(request),
    )
    agreed = found in {_PREEMPTIBLE, _PROTECTED} and compiled.accept(
        request.processors,
        processors=load.processors,
        processors_free=load.processors_free,
        processors_waiting=load.processors_waiting,
        own=False,
        requested_time=requested_time,
        starts_now=True,  # as a guest; also where the batch system would let others go first
        within=False,
    )
    return Handing(preemptible=True, protected=found == _PROTECTED) if agreed else None


def owed_for(
    policy: TransferPolicy | None, book: PartnerBook, lost: float, processors: int, now: float
) -> DebtNoted | None:
    """Returns what comes of work that was lost at a partner with a job that it has sent home; `None` for nothing.

    Args:
        policy: of the site for that partner.
        book: of the partner.
        lost: processor seconds.
        processors: of this site.
        now: seconds.
    """
    constraints = rails_of(policy)
    if policy is None or constraints is None or constraints.account is None:
        return None
    rails, trust = policy.compiled.rails, book.trust
    assert rails is not None
    after = rails.lost(
        lost,
        now,
        processors=processors,
        debt=trust.debt,
        credit=trust.credit,
        breaches=trust.breaches,
        suspended_until=trust.suspended_until,
    )
    return DebtNoted(now, book.name, *after)


def entrusts(
    policy: TransferPolicy,
    book: PartnerBook,
    request: Request,
    load: Load,
    transaction: Transaction,
) -> bool:
    """Returns whether the site trusts a partner's promise enough to offer it a job.

    Findings about the jobs already there are recorded. While the circuit breaker stops exchange, only partners that are held to
    their promise are asked: with others, local jobs might wait as well.
    """
    rails = held_to(policy)
    if rails is None:
        return not transaction.memory.guarded
    found = review(book, rails, transaction.now)
    if found is not None:
        transaction.note(found)
    trust = book.trust
    return rails.may_offer(
        request.processors,
        request.requested_time,
        processors=load.processors,
        now=transaction.now,
        credit=trust.credit,
        open_work=trust.work,
        open_count=len(trust.promised),
        suspended_until=trust.suspended_until,
    )


def held_to(policy: TransferPolicy | None) -> CompiledConstraints | None:
    """Returns the constraints by which a partner is held to its promise; `None` if it is not."""
    rails = None if policy is None else policy.compiled.rails
    return rails if rails is not None and rails.promise else None


def review(book: PartnerBook, rails: CompiledConstraints, now: float) -> PromisesReviewed | None:
    """Returns findings on all jobs at a partner, in order of acceptance; `None` if there are none.

    `now` is in seconds.
    """
    trust = book.trust
    if not (trust.promised and (trust.stale or rails.overdue(trust.due, 0.0, now))):
        return None
    closed, overdue = [], []
    credit, breaches, until = trust.credit, trust.breaches, trust.suspended_until
    for number, one in trust.promised.items():
        broken = False
        if one.ended is not None:
            closed.append(number)
            if not one.counted:
                broken = rails.late(one.since, one.lasted or 0.0, one.ended)
                if one.done and not broken:
                    credit += one.work
        elif not one.counted and rails.overdue(one.since, one.requested_time, now):
            overdue.append(number)
            broken = True
        if broken:
            credit = 0.0
            breaches, until = rails.broken(now, breaches=breaches, suspended_until=until)
    if not closed and not overdue:
        trust.recount()
        return None
    return PromisesReviewed(now, book.name, tuple(closed), tuple(overdue), credit, breaches, until)


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
