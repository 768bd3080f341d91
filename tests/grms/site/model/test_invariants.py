from collections.abc import Callable
from dataclasses import replace

import pytest

from grms.lrms import base
from grms.site.model.events import OfferAnswered, OfferReceived, ReleaseReservation
from grms.site.model.invariants import check
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import GuestState, JobState, Outcome
from grms.site.model.records import ReservationReleased
from grms.site.model.settings import Limits
from grms.site.model.state_tables import StateTables
from tests.grms.site.conversation import FREE, FULL, REQUEST, Conversation, offer
from tests.grms.site.scheduler.test_reservations import Desk


def lived() -> StateTables:
    """Returns the memory of a site with a job here, one offered, one delegated, and a guest."""
    site = Conversation()
    site.submit()
    site(OfferAnswered, load=FULL, partner="b", offer=offer(1), accepted=True)
    site.submit()
    site.submit(FREE, user="bob")
    site(base.Accepted, key=site.job(3).lrms_key)
    site(
        OfferReceived,
        load=FREE,
        partner="c",
        offer=offer(4, 9),
        settled_below=1,
        request=Request(1, 10.0),
        payload=b"",
    )
    memory = site.state.memory
    memory.books["b"].trust.promise(1, 0.0, REQUEST.requested_time, REQUEST.processors)
    return memory


def test_what_has_been_lived_holds() -> None:
    """Every place of a job is there, so that each rule below has something to look at."""
    memory = lived()
    check(memory)
    states = [job.state for job in memory.jobs.values()]
    assert states == [JobState.DELEGATED, JobState.OFFERING, JobState.QUEUED]
    assert [guest.state for guest in memory.books["c"].guests.values()] == [JobState.SUBMITTING]


def _reservations_lived() -> StateTables:
    desk = Desk()
    for key in ("a", "b"):
        desk.book(0.0, 10.0, key)
    desk.book(0.0, 10.0, "c", owner="you")
    desk(ReleaseReservation, owner="me", reservation=2)
    return desk.state.memory


def _forget_an_open_one(memory: StateTables) -> None:
    del memory.reservations.open[1]


def _hold_what_is_over(memory: StateTables) -> None:
    book = memory.reservations
    book.open[2] = book.reservations[2]


def _count_an_owner_twice(memory: StateTables) -> None:
    memory.reservations.open_by_owner["you"] += 1


def _forget_what_is_over(memory: StateTables) -> None:
    memory.reservations.over.clear()


def _remember_it_twice(memory: StateTables) -> None:
    memory.reservations.over.append(2)


def _forget_a_word(memory: StateTables) -> None:
    del memory.reservations.keys["me", "b"]


def _book_a_number_again(memory: StateTables) -> None:
    memory.reservations.next_number = 3


def _misnumber(memory: StateTables) -> None:
    book = memory.reservations
    book.reservations[9] = book.reservations.pop(3)


def _miss_a_moment(memory: StateTables) -> None:
    memory.reservations._due.clear()


def _forget_out_of_order(memory: StateTables) -> None:
    for number, moment in ((1, 9.0), (2, 8.0)):
        memory.reservations.forgotten_keys.add("me", f"old-{number}", number, moment)


def _forget_what_is_known(memory: StateTables) -> None:
    memory.reservations.forgotten_keys.add("me", "a", 1, 9.0)


def _keep_too_many(memory: StateTables) -> None:
    memory.settings = replace(memory.settings, limits=Limits(reservations_kept=1))
    memory.reservations.changes[ReservationReleased](ReservationReleased(1.0, 1))


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (_forget_an_open_one, "open reservations"),
        (_hold_what_is_over, "open reservations"),
        (_count_an_owner_twice, "owners"),
        (_forget_what_is_over, "reservations that are over"),
        (_remember_it_twice, "reservations that are over"),
        (_forget_a_word, "keys of reservations"),
        (_book_a_number_again, "next_reservation"),
        (_misnumber, "reservations"),
        (_miss_a_moment, "when a reservation is due"),
        (_keep_too_many, "reservations_kept"),
        (_forget_out_of_order, "order of forgotten reservations"),
        (_forget_what_is_known, "keys of forgotten reservations"),
    ],
)
def test_each_contradiction_of_reservations_is_found(
    damage: Callable[[StateTables], None], place: str
) -> None:
    """One place changed without the other, and which one is said."""
    memory = _reservations_lived()
    check(memory)
    damage(memory)
    with pytest.raises(AssertionError) as error:
        check(memory)
    assert str(error.value).splitlines()[0] == place


def _count_one_more(memory: StateTables) -> None:
    memory.jobs_open += 1


def _forget_a_user(memory: StateTables) -> None:
    del memory.open_by_user["bob"]


def _forget_a_key(memory: StateTables) -> None:
    memory.keys.popitem()


def _end_unseen(memory: StateTables) -> None:
    memory.ended.append(1)


def _give_a_number_again(memory: StateTables) -> None:
    memory.next_job = 3


def _lose_at_lrms(memory: StateTables) -> None:
    memory.at_lrms.popitem()


def _confirm_unseen(memory: StateTables) -> None:
    memory.unconfirmed = 0


def _lose_an_offer(memory: StateTables) -> None:
    next(book for book in memory.books.values() if book.undecided).undecided.clear()


def _lose_a_delegated_job(memory: StateTables) -> None:
    memory.books["b"].open.clear()
    memory.books["b"].open_consumption = 0.0


def _offer_a_number_again(memory: StateTables) -> None:
    memory.books["b"].next_number = 1


def _misjudge_consumption(memory: StateTables) -> None:
    memory.books["b"].open_consumption += 1.0


def _abandon_half(memory: StateTables) -> None:
    memory.books["b"].abandoned[1] = 0


def _count_too_many_ends(memory: StateTables) -> None:
    memory.books["b"].ended = 9


def _end_a_guest_unseen(memory: StateTables) -> None:
    next(iter(memory.books["c"].guests.values())).state = JobState.ENDED


def _take_a_guest_of_nobody(memory: StateTables) -> None:
    memory.books["c"].guest_offered = 0


def _remember_what_is_settled(memory: StateTables) -> None:
    memory.books["c"].answered[0] = GuestState.DECLINED


def _go_on_deciding(memory: StateTables) -> None:
    memory.jobs[3].remaining = ["b"]


def _misjudge_promised_work(memory: StateTables) -> None:
    memory.books["b"].trust.work += 1.0


def _promise_a_job_that_is_not_there(memory: StateTables) -> None:
    memory.books["b"].trust.promise(7, 0.0, 10.0, 1)


def _be_due_too_late(memory: StateTables) -> None:
    memory.books["b"].trust.due = 101.0


def _overlook_an_end(memory: StateTables) -> None:
    trust = memory.books["b"].trust
    trust.end(1, 5.0, 5.0, Outcome.COMPLETED)
    trust.stale = False


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (_go_on_deciding, "a-3"),
        (_misjudge_promised_work, "b: trust"),
        (_promise_a_job_that_is_not_there, "b: promised 7"),
        (_be_due_too_late, "b"),
        (_overlook_an_end, "b: ended 1"),
        (_count_one_more, "jobs_open"),
        (_forget_a_user, "open_by_user"),
        (_forget_a_key, "keys"),
        (_end_unseen, "ended"),
        (_give_a_number_again, "next_job"),
        (_lose_at_lrms, "at_lrms"),
        (_confirm_unseen, "unconfirmed"),
        (_lose_an_offer, "a-2"),
        (_lose_a_delegated_job, "b: promised 1"),
        (_offer_a_number_again, "b"),
        (_misjudge_consumption, "b"),
        (_abandon_half, "b: abandoned"),
        (_count_too_many_ends, "b: tallies"),
        (_end_a_guest_unseen, "at_lrms"),
        (_take_a_guest_of_nobody, "c: guest tallies"),
        (_remember_what_is_settled, "c: answered"),
    ],
)
def test_each_contradiction_is_found(damage: Callable[[StateTables], None], place: str) -> None:
    """One place changed without the other, and which one is said."""
    memory = lived()
    check(memory)
    damage(memory)
    with pytest.raises(AssertionError) as error:
        check(memory)
    assert str(error.value).splitlines()[0] == place
