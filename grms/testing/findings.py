"""What came of a run: the verdict, what a site still waits for, and what has to survive a restart."""

from collections import Counter
from dataclasses import dataclass

from grms.site.core.state import SiteState


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a run.

    Attributes:
        seed: of the run.
        problems: what was not as it has to be, in sentences; empty where all was well.
        jobs: how many were acknowledged.
        delegated: how many of these ran elsewhere.
        cancelled: how many of these ended cancelled.
        crashes: how often daemons died.
        twice: how many ran more than once; a problem unless jobs are resubmitted.
        rogue: what one of the sites was; empty where all were honest.
        faults: how often honest sites found it faulty.
        disbelieved: how many of its reports they did not believe.
        resubmitted: how many jobs operators have taken out of its hands.
        epochs: how many were begun because a journal was put back.
        judged: how many offers were judged by the order of those who are asked.
        reserved: how many questions of brokers were answered with a reservation.
        reoffered: how many jobs that waited were offered again.
        moved: how many of these have left the queue.
        breaches: how many promises honest sites have found to be broken.
    """

    seed: int
    problems: tuple[str, ...]
    jobs: int
    delegated: int
    cancelled: int
    crashes: int
    twice: int
    rogue: str = ""
    faults: int = 0
    disbelieved: int = 0
    resubmitted: int = 0
    epochs: int = 0
    judged: int = 0
    reserved: int = 0
    reoffered: int = 0
    moved: int = 0
    breaches: int = 0


def unfinished(state: SiteState, rogue: str) -> list[str]:
    """Returns what a site still waits for, but of a rogue, in sentences."""
    found = []
    for name, book in state.partners.items():
        if name == rogue:
            continue  # what it never answers is never settled
        for what, things in (
            ("undecided offers", book.undecided),
            ("open jobs", book.open),
            ("abandoned offers", book.abandoned),
            ("guests", book.guests),
        ):
            if things:
                found.append(f"{what} with {name}: {list(things)}")
    if state.memory.reservations.open:
        found.append(f"open reservations: {list(state.memory.reservations.open)}")
    if state.memory.at_lrms or state.memory.unconfirmed:
        found.append(f"jobs thought to be in the batch system: {list(state.memory.at_lrms)}")
    return found


def known(state: SiteState) -> object:
    """Returns what a site knows that has to survive a restart, to compare."""
    memory = state.memory
    jobs = [
        (job.job_id, job.state, job.outcome, job.partner, job.asked, job.end_time)
        for job in memory.jobs.values()
    ]
    books = [
        (
            name,
            book.next_number,
            book.settled(),
            book.consumption,
            book.weighted_response,
            book.epoch,
            book.settled_below,
            sorted(book.answered),
            sorted((offer.epoch, offer.number) for offer in book.guests),
            Counter(type(answer).__name__ for answer in book.answered.values()),
            (book.offered, book.accepted, book.ended, book.guest_offered, book.guest_accepted),
            (book.faults, book.disbelieved, book.distrust, book.doubt, book.number_seen),
            sorted(book.abandoned_epochs.items()),
            (book.taken, book.given, book.trust.credit, book.trust.breaches),
            (book.trust.suspended_until, book.trust.work, book.trust.rows()),
        )
        for name, book in memory.books.items()
        # Of one that was taken off the list before anything happened nothing needs to be known.
        if book.listed or book.offered or book.faults or book.offer_seen
    ]
    reservations = [
        # As text, in which a moment that has not come is equal to itself.
        repr(one)
        for one in memory.reservations.reservations.values()
    ]
    numbers = (memory.next_job, memory.reservations.next_number, memory.epoch)
    sums = (memory.own_work, memory.own_requested)
    there = (sorted(memory.at_lrms), sorted(memory.reserved))
    return jobs, books, reservations, numbers, sums, there
