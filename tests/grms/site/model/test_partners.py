import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.policy.location import AwrtLocation, FixedOrder, PartnerRecord, UserDefinedLocation
from grms.site.model.jobs import HomeJob, OfferId, Request
from grms.site.model.lifecycle import GuestState
from grms.site.model.partners import PartnerBook, asking_order, response_time
from tests.grms.site.jobs import home_job

COUNT = AwrtLocation(open_jobs="count")


def books(*names: str) -> dict[str, PartnerBook]:
    """Returns the books of new partners."""
    return {name: PartnerBook(name, listed=True, processors=8) for name in names}


def job(number: int, submit_time: float, requested: float = 100.0, processors: int = 1) -> HomeJob:
    """Returns a job that is offered under that number."""
    request = Request(processors, requested)
    return home_job(request, number, submit_time=submit_time, offer_number=number)


def test_partners_without_history_come_first_in_their_order() -> None:
    """Then those with the shorter responses."""
    known = books("b", "c", "d", "e")
    known["b"].count_response(10.0, 50.0)
    known["d"].count_response(10.0, 20.0)
    assert asking_order(AwrtLocation(), known, 0.0) == ["c", "e", "d", "b"]
    assert asking_order(AwrtLocation(), {}, 0.0) == []


def test_partners_without_history_are_asked_in_turn() -> None:
    """Those that have been asked before come behind the others; without turns they stay in front."""
    known = books("b", "c", "d")
    known["b"].offered = 2
    known["c"].offered = 1
    assert asking_order(AwrtLocation(), known, 0.0) == ["b", "c", "d"]
    assert asking_order(AwrtLocation(), known, 0.0, in_turn=True) == ["d", "c", "b"]
    put = {"b": 2, "c": 0}
    assert asking_order(AwrtLocation(), known, 0.0, in_turn=True, put=put) == ["b", "d", "c"]
    known["d"].count_response(10.0, 50.0)
    assert asking_order(AwrtLocation(), known, 0.0, in_turn=True) == ["c", "b", "d"]
    assert asking_order(FixedOrder(("c", "d")), known, 0.0, in_turn=True) == ["c", "d"]


def test_a_fixed_order_names_those_that_are_there() -> None:
    """A partner that was taken off the list is left out."""
    assert asking_order(FixedOrder(("c", "x", "b")), books("b", "c", "d"), 0.0) == ["c", "b"]


def test_who_does_not_decide_is_no_better_than_who_does_not_complete() -> None:
    """An open offer counts from its submission on, until it is given up on."""
    book = books("b")["b"]
    book.undecided[1] = job(1, 40.0)
    assert book.awrt(100.0, count_open=True) == 60.0
    assert book.awrt(100.0, count_open=False) == 0.0
    book.abandoned[1] = 0
    assert book.awrt(100.0, count_open=True) == 0.0


def test_a_written_policy_names_whom_it_wants() -> None:
    """Of what it is told: the history of each, without the open jobs."""
    known = books("b", "c", "d")
    known["b"].count_response(10.0, 50.0)
    known["b"].open_job(job(1, 0.0))
    known["d"].count_response(10.0, 20.0)
    told: list[PartnerRecord] = []

    def ask(partners: list[PartnerRecord]) -> list[str]:
        told.extend(partners)
        return ["d", "b"]

    assert asking_order(UserDefinedLocation(ask), known, 7.0) == ["d", "b"]
    assert told == [
        PartnerRecord("b", 10.0, 500.0),
        PartnerRecord("c", 0.0, 0.0),
        PartnerRecord("d", 10.0, 200.0),
    ]


def test_a_black_hole_sinks() -> None:
    """A partner that takes jobs and completes none loses its good name with time, or at once."""
    known = books("hole", "slow")
    known["hole"].count_response(100.0, 10.0)
    known["slow"].count_response(100.0, 500.0)
    assert asking_order(COUNT, known, 0.0) == ["hole", "slow"]
    for number in range(1, 6):
        known["hole"].open_job(job(number, float(number)))
    assert asking_order(COUNT, known, 6.0) == ["hole", "slow"]
    assert asking_order(COUNT, known, 2000.0) == ["slow", "hole"]
    assert asking_order(AwrtLocation(), known, 2000.0) == ["hole", "slow"]
    fresh = books("hole", "new")
    fresh["hole"].open_job(job(1, 0.0))
    assert asking_order(COUNT, fresh, 5.0) == ["new", "hole"]


@given(
    st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0.0, 1e6)), max_size=5),
    st.lists(st.tuples(st.floats(0.0, 1e6), st.floats(1.0, 1e6)), max_size=5),
    st.floats(1e6, 1e7),
)
def test_open_jobs_never_make_a_partner_look_better(
    ended: list[tuple[float, float]], still: list[tuple[float, float]], now: float
) -> None:
    """With them the AWRT is what it is without them, or more."""
    book = PartnerBook("b", listed=True)
    for consumption, response in ended:
        book.count_response(consumption, response)
    for number, (submit_time, requested) in enumerate(still, 1):
        book.open_job(job(number, submit_time, requested))
    without = book.awrt(now, count_open=False)
    assert book.awrt(now, count_open=True) >= without * (1 - 1e-12)


def test_closing_all_jobs_leaves_no_rounding_behind() -> None:
    """The sums of open jobs are nothing when there is none."""
    book = PartnerBook("b", listed=True)
    jobs = [job(number, 0.1 * number, 0.3) for number in range(1, 50)]
    for each in jobs:
        book.open_job(each)
    for each in jobs[1:]:
        book.close_job(each)
    assert math.isclose(book.open_consumption, 0.3)
    book.close_job(jobs[0])
    assert (book.open_consumption, book.open_submitted) == (0.0, 0.0)


def test_jobs_are_weighted_by_what_they_consumed() -> None:
    """Σ p·m·(C−r) over Σ p·m; a job that consumed nothing has no weight."""
    book = PartnerBook("b", listed=True)
    assert book.awrt(0.0, count_open=False) == 0.0
    book.count_response(10.0, 100.0)
    book.count_response(30.0, 20.0)
    book.count_response(0.0, 10.0**9)
    assert book.awrt(0.0, count_open=False) == pytest.approx((1000 + 600) / 40)


def test_a_partners_clock_may_be_behind() -> None:
    """No job responds before it was submitted."""
    assert response_time(10.0, 25.0) == 15.0
    assert response_time(10.0, 5.0) == 0.0


def test_open_jobs_are_weighed_with_when_they_were_submitted() -> None:
    """Exactly: two jobs, of 100 and 300 processor seconds, submitted at 40 and at 60."""
    book = books("b")["b"]
    first, second = job(1, 40.0), job(2, 60.0, processors=3)
    book.open_job(first)
    book.open_job(second)
    assert (book.open_consumption, book.open_submitted) == (400.0, 22000.0)
    assert book.awrt(100.0, count_open=True) == (100 * 60 + 300 * 40) / 400
    book.close_job(first)
    assert (book.open_consumption, book.open_submitted) == (300.0, 18000.0)
    assert book.awrt(100.0, count_open=True) == 40.0
    book.close_job(second)
    assert (book.open_consumption, book.open_submitted) == (0.0, 0.0)


def test_open_jobs_that_have_waited_as_long_as_the_others_took_change_nothing() -> None:
    """Only what has waited longer counts."""
    book = books("b")["b"]
    book.count_response(100.0, 60.0)
    book.open_job(job(1, 40.0))
    assert book.history(100.0, count_open=True) == (100.0, 6000.0)
    assert book.history(101.0, count_open=True) == (200.0, 6000.0 + 6100.0)


def test_answers_of_an_older_epoch_are_forgotten() -> None:
    """The same number means another job in the epoch after it."""
    book = PartnerBook("b", listed=True)
    book.see(OfferId(7, 3))
    book.answered[3] = GuestState.DECLINED
    book.settle(3)
    assert book.is_stale(OfferId(7, 2))
    assert book.answer_to(OfferId(7, 3)) is GuestState.DECLINED
    book.see(OfferId(8, 1))
    assert not book.is_stale(OfferId(8, 2))
    assert book.answer_to(OfferId(8, 3)) is None
    assert (book.epoch, book.number_seen, book.settled_below, book.answered) == (8, 1, 1, {})
