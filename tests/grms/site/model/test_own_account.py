"""The account that a site keeps of itself, as its journal's records make it."""

import math

import pytest

from grms.federation.own_account import CreditChange
from grms.policy.constraints import AccountRules
from grms.site.model.account_history import RunningGuests
from grms.site.model.jobs import GuestJob, HomeJob, OfferId, Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.own_account import Exchanged, SiteAccount
from lrms_sim.scheduling.disciplines import Conservative, Fcfs
from tests.grms.site.jobs import home_job

RULES = AccountRules()
HALF = Request(2, 600.0)


def account(processors: int = 4, rules: AccountRules = RULES) -> SiteAccount:
    """Returns the account of a small site."""
    return SiteAccount(processors, Fcfs(), rules)


def own(number: int, *, end: float = math.nan, ran: float = 0.0, width: int = 2) -> HomeJob:
    """Returns a local user's job that came at 0."""
    return home_job(Request(width, 600.0), number, end_time=end, run_time=ran)


def test_a_waiting_job_that_would_run_alone_turns_it_and_its_start_turns_it_back() -> None:
    one = account()
    one.submitted(1, 0.0, HALF)
    assert one.look(0.0, ()) is CreditChange.NONE
    assert one.look(900.0, ()) is CreditChange.LOST
    turn = one.last_change
    assert turn is not None
    assert (turn.time, turn.in_credit, turn.saved) == (900.0, False, 0.0)
    assert turn.owed == 2 * 600.0 * 900.0
    one.started(1, 900.0)
    assert one.look(1800.0, ()) is CreditChange.REGAINED
    assert one.changes == 2


def test_a_job_that_will_never_run_counts_for_nothing() -> None:
    one = account()
    one.submitted(1, 0.0, HALF)
    assert one.look(900.0, ()) is CreditChange.LOST
    one.ended(own(1, end=950.0))
    assert one.look(1800.0, ()) is CreditChange.REGAINED
    assert (one.gain, one.base, one.owed) == (0.0, 0.0, 0.0)


def test_a_job_that_is_wider_than_the_machine_is_passed_over() -> None:
    one = account()
    one.submitted(1, 0.0, Request(5, 60.0))
    one.started(1, 10.0)
    one.ended(own(1, end=70.0, ran=60.0, width=5))
    assert one.look(900.0, ()) is CreditChange.NONE


def test_looks_that_were_missed_fade_all_the_same() -> None:
    there, away = account(), account()
    for one in (there, away):
        one.submitted(1, 0.0, HALF)
        one.started(1, 100.0)
        one.ended(own(1, end=700.0, ran=600.0))
        one.look(900.0, ())
        one.submitted(2, 901.0, HALF)
        one.started(2, 901.0)
    for moment in range(1800, 90_000, 900):
        there.look(float(moment), ())
    away.look(89_100.0, ())
    assert there.gain < 0.0
    assert (away.gain, away.base, away.last_look) == (there.gain, there.base, there.last_look)


def test_a_clock_that_jumps_far_ahead_costs_no_time() -> None:
    one = account()
    one.submitted(1, 0.0, HALF)
    one.look(0.0, ())
    one.look(900.0 * 10**9, ())
    assert one.last_look == 900.0 * 10**9
    assert one.due(one.last_look + 899.0) is None


def test_a_clock_that_was_set_back_is_taken_at_its_word() -> None:
    """Not by less than a period: so far it may have been read too early."""
    one = account()
    one.submitted(1, 10_000.0, HALF)
    one.look(10_800.0, ())
    assert one.due(10_000.0) is None
    assert one.due(5000.0) == 4500.0
    waits = own(2)
    assert one.look(4500.0, [waits]) is CreditChange.NONE  # it has lost credit again at once
    assert one.in_credit is False
    assert one.began == 4500.0
    one.started(2, 4600.0)
    assert one.look(5400.0, [waits]) is CreditChange.REGAINED


def test_a_submission_by_a_clock_that_was_set_back_comes_behind_the_others() -> None:
    one = account()
    one.submitted(1, 1000.0, HALF)
    one.submitted(2, 400.0, HALF)
    one.started(1, 1000.0)
    one.started(2, 1000.0)
    assert one.look(1800.0, ()) is CreditChange.NONE


def test_its_record_goes_on_with_other_rules_and_another_machine() -> None:
    one = account()
    one.submitted(1, 0.0, HALF)
    one.look(900.0, ())
    again = account(2, AccountRules(guests="run"))
    again.resume(one.record())
    assert (again.in_credit, again.last_look, again.changes) == (False, 900.0, 1)
    assert again.last_change == one.last_change
    again.started(1, 950.0)
    assert again.look(1800.0, ()) is CreditChange.REGAINED
    with pytest.raises(ValueError, match=r"^the record of an account has version 0$"):
        again.resume(b'{"account": {"version": 0}}')


def test_what_a_guest_that_runs_to_its_end_may_cost() -> None:
    """The work of own jobs that would find no room beside it, as often as such have come."""
    rules = AccountRules(guests="run", allowance=100.0)
    one = SiteAccount(8, Fcfs(), rules)
    for number, width in enumerate((2, 4, 8)):
        one.submitted(number, 0.0, Request(width, 1000.0))
        one.started(number, 0.0)
    for number, width in enumerate((2, 4, 8)):
        one.ended(own(number, end=1000.0, ran=1000.0, width=width))
    one.look(9000.0, ())
    # Idle are 6 of 8: beside a guest of 4 there is no room for those of more than 2.
    charge = one.charge(10_000.0, 6, Request(4, 500.0), ())
    assert charge == 4 * 1000.0 * 500.0 * 500.0 / 86_400.0

    def beside(*charges: float) -> float | None:
        """Returns the same where guests of one processor run, which may cost so much."""
        others = [
            GuestJob(
                partner="b",
                offer=OfferId(1, number),
                lrms_key=f"b/1/{number}",
                request=Request(1, 10.0),
                payload=b"",
                accept_time=0.0,
                charge=charge,
            )
            for number, charge in enumerate(charges, 1)
        ]
        return one.charge(10_000.0, 6, Request(4, 500.0), others)

    # Two of them would leave, with what is idle, room for those of 8 as well.
    more = (4 + 8) * 1000.0 * 500.0 * 500.0 / 86_400.0
    assert (beside(0.0), beside(0.0, 0.0)) == (charge, more)
    room = one.gain + rules.allowed * one.base - one.owed - more
    assert beside(0.6 * room, 0.3 * room) == beside(0.3 * room, 0.6 * room) == more
    assert beside(0.6 * room, 0.6 * room) is None
    assert beside(1e12) is None


def test_a_discipline_that_promises_starts_has_no_account() -> None:
    with pytest.raises(
        ValueError, match=r"^the account of a site needs one of the disciplines fcfs, list, easy$"
    ):
        SiteAccount(4, Conservative(), RULES)


def test_amounts_are_hours_in_which_a_job_of_mean_work_waits() -> None:
    """Two jobs of 600 s on 2 and on 4 processors; both wait for an hour that they would not wait alone."""
    one = SiteAccount(8, Fcfs(), AccountRules(memory=1e12))
    assert math.isnan(one.hours(1.0))
    for number, width in ((1, 2), (2, 4)):
        one.submitted(number, 0.0, Request(width, 600.0))
        one.started(number, 3600.0)
        one.ended(own(number, end=4200.0, ran=600.0, width=width))
    one.look(7200.0, ())
    one.remember(RunningGuests(protected=3))
    assert one.compared == pytest.approx(2.0)
    assert one.job_work == pytest.approx(3 * 600.0)
    # In hours: each has lost one of them, weighted by work.
    assert one.hours(one.gain) == pytest.approx(-2.0)
    assert one.waiting_alone == pytest.approx(0.0, abs=1e-3)
    (point,) = one.history.points
    assert (point.in_credit, point.late, point.protected) == (0, 0, 3)
    assert point.balance == pytest.approx(-2.0)
    again = SiteAccount(8, Fcfs(), one.rules)
    again.resume(one.record())
    assert again.history.points == one.history.points
    assert (again.compared, again.job_work) == (one.compared, one.job_work)


def test_what_own_jobs_would_have_waited_alone() -> None:
    """The second stands behind the first there, and ran elsewhere at once."""
    one = SiteAccount(2, Fcfs(), AccountRules(memory=1e12))
    for number in (1, 2):
        one.submitted(number, 0.0, HALF)
        one.started(number, 0.0)
        one.ended(own(number, end=600.0, ran=600.0))
    one.look(1800.0, ())
    assert one.waiting_alone == pytest.approx(1200.0 * 600.0)
    assert one.gain == pytest.approx(one.waiting_alone)
    assert one.hours(one.gain) == pytest.approx(600.0 / 3600.0)


def test_what_guests_have_had_is_counted_by_how_they_end() -> None:
    """Work of those that ended here is lent, that of those that were sent home is lost."""
    one = account()
    ends = ((Outcome.COMPLETED, 3.0), (Outcome.PREEMPTED, 5.0), (Outcome.FAILED, 7.0)) * 2
    for number, (outcome, ran) in enumerate(ends, 1):
        guest = GuestJob(
            partner="b",
            offer=OfferId(1, number),
            lrms_key=f"b/1/{number}",
            request=Request(2, 10.0),
            payload=b"",
            accept_time=0.0,
        )
        guest.outcome, guest.run_time = outcome, ran
        one.guest_ended(guest)
    assert one.exchanged == Exchanged(lent=40.0, guests_sent_home=2, lent_lost=20.0)


def test_what_own_jobs_have_had_elsewhere_is_counted() -> None:
    """Also what came to nothing, as a partner has sent the job home."""
    one = account()
    for number, ran in ((1, 3.0), (2, 5.0)):
        elsewhere = own(number, end=9.0, ran=ran)
        elsewhere.partner = "b"
        one.sent_home(elsewhere, 7.0)
        one.ended(elsewhere)
    one.ended(own(3, end=9.0, ran=100.0))
    assert one.exchanged == Exchanged(given=16.0, sent_home=2, given_lost=28.0)


def test_jobs_that_are_there_already_are_entered_as_if_they_had_been_told() -> None:
    """Where they were accepted or have started, and no later than `latest`; one that has never run is left out."""
    there = [own(1), own(2), own(3), own(4, end=700.0, ran=100.0), own(5, end=50.0), own(6)]
    for one, eligible, start, accept in zip(
        there,
        (10.0, 20.0, 30.0, 40.0, 45.0, 900.0),
        (math.nan, 100.0, 300.0, 600.0, math.nan, 950.0),
        (math.nan, math.nan, 200.0, math.nan, math.nan, math.nan),
        strict=True,
    ):
        one.released_time, one.start_time, one.accept_time = eligible, start, accept
    entered, told = account(), account()
    entered.enter(there, 800.0)
    for number, eligible, start in (
        (1, 10.0, math.nan), (2, 20.0, 100.0), (3, 30.0, 200.0), (4, 40.0, 600.0), (6, 800.0, 800.0),
    ):  # fmt: skip
        told.submitted(number, eligible, HALF)
        if start > 0.0:
            told.started(number, start)
        if number == 4:
            told.ended(there[3])
    assert entered.record() == told.record()


def test_a_record_of_an_account_that_has_seen_nothing_goes_on() -> None:
    """As if it had been made anew."""
    one, again = account(), account()
    again.resume(account().record())
    for each in (one, again):
        assert math.isnan(each.began)
        assert each.due(0.0) == 0.0
        each.submitted(1, 5.0, HALF)
        each.look(900.0, ())
    assert again.record() == one.record()
