"""Decisions by transfer policies, and by the constraints around them.

Constraints use what the site has recorded itself: local users' completed jobs, work exchanged with a partner, and
how the partner has kept its promise to start accepted jobs at once. The decision is the compiled one that
replays use (`grms.policy`); docs/disciplines.md has its rules.
"""

from grms.policy._constraints import CompiledConstraints
from grms.policy.transfer import TransferPolicy, compiled_transfer
from grms.site.model.jobs import Load, Request
from grms.site.model.partners import PartnerBook
from grms.site.model.records import PromisesReviewed
from grms.site.model.state_tables import StateTables
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
    compiled = compiled_transfer(policy)
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
    rails = None if policy is None else compiled_transfer(policy).rails
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
