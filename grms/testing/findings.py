"""What a site still waits for, and what it knows that has to survive a restart."""

from collections import Counter

from grms.site.core.state import SiteState


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
    return jobs, books, reservations, numbers, sorted(memory.at_lrms)
