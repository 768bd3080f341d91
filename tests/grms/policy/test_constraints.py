"""Exchange constraints as values and as every host keeps to them."""

import math
import pickle
import re

import pytest

from grms import Site, replay, replay_alone
from grms.policy._decisions import CompiledTransfer
from grms.policy.constraints import (
    CONSTRAINTS,
    DAY,
    DOUBLINGS_MAX,
    FAIR_EXCHANGE,
    GUESTS,
    HOUR,
    SHORT_GUESTS,
    START_NOW,
    AccountRules,
    ExchangeConstraints,
    Promise,
)
from grms.policy.transfer import AcceptWhenFit, AlwaysAgree, Constrained
from lrms_sim import Easy, JobTable, awrt

NOBODY = (0.0, 0.0, 0.0, 0.0)


def takes(
    rails: ExchangeConstraints,
    processors: int,
    requested_time: float,
    *,
    books: tuple[float, float, float, float] = NOBODY,
    starts_now: bool = True,
    own: bool = False,
) -> bool:
    """Returns whether an idle site of ten processors wants a job, all within the constraints agreed."""
    return Constrained(rails).compiled.accept(
        processors,
        processors=10,
        processors_free=10,
        processors_waiting=0,
        own=own,
        requested_time=requested_time,
        starts_now=starts_now,
        books=books,
    )


def test_an_account_of_what_there_is_not_is_refused() -> None:
    """With all that there is."""
    says = "guests is 'keep'; it must be one of " + ", ".join(GUESTS)
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        AccountRules(guests="keep")  # type: ignore[arg-type]  # the mistake


def test_home_keeps_what_starts_now_and_offers_the_rest() -> None:
    """A partner takes the one and not the other."""
    assert takes(START_NOW, 1, 5, own=True)
    assert not takes(START_NOW, 1, 5, own=True, starts_now=False)
    assert takes(START_NOW, 1, 5)
    assert not takes(START_NOW, 1, 5, starts_now=False)
    off = ExchangeConstraints(start_now=False, guest_length=None, balance=None, promise=None)
    assert takes(off, 1, 5, starts_now=False)
    assert not takes(off, 1, 5, own=True)


def test_a_guest_may_request_so_many_times_what_own_jobs_did() -> None:
    """At the bound it is taken; without own completed jobs there is no bound."""
    books = (4.0, 400.0, 0.0, 0.0)
    assert takes(SHORT_GUESTS, 1, 200, books=books)
    assert not takes(SHORT_GUESTS, 1, 201, books=books)
    assert takes(SHORT_GUESTS, 1, 1e9)
    assert takes(START_NOW, 1, 1e9, books=books)


def test_what_was_given_counts_twice_against_what_was_taken() -> None:
    """At the bound the job is taken."""
    rails = ExchangeConstraints(guest_length=None, balance=6, promise=None)
    assert takes(rails, 2, 10, books=(0, 0, 40, 0))
    assert not takes(rails, 2, 10, books=(0, 0, 41, 0))
    assert takes(rails, 2, 10, books=(0, 0, 61, 10.5))


def test_a_policy_within_constraints_decides_among_what_they_allow() -> None:
    """It can only say no more often."""
    policy = Constrained(START_NOW, AcceptWhenFit())
    for free, starts_now, own, expected in (
        (4, True, False, True),
        (3, True, False, False),
        (4, False, False, False),
        (4, False, True, True),
        (3, False, True, False),
        (3, True, True, True),
    ):
        assert expected == policy.compiled.accept(
            4,
            processors=10,
            processors_free=free,
            processors_waiting=0,
            own=own,
            requested_time=5,
            starts_now=starts_now,
        )


def test_an_open_promise_is_late_or_overdue_beyond_the_tolerance() -> None:
    """At the tolerance it is neither."""
    rails = ExchangeConstraints(promise=Promise(tolerance=5)).compiled
    assert not rails.late(100, 20, 125)
    assert rails.late(100, 20, 126)
    assert not rails.overdue(100, 30, 135)
    assert rails.overdue(100, 30, 136)


def test_a_partner_holds_what_trust_and_credit_allow() -> None:
    """Or one job of any length; while it is suspended nothing."""
    trust = 4 * HOUR * 10

    def may_offer(
        rails: ExchangeConstraints, processors: int, requested_time: float, *held: float
    ) -> bool:
        credit, open_work, suspended_until = held
        return rails.compiled.may_offer(
            processors,
            requested_time,
            processors=10,
            now=0,
            credit=credit,
            open_work=open_work,
            open_count=int(open_work > 0),
            suspended_until=suspended_until,
        )

    assert may_offer(FAIR_EXCHANGE, 2, 50, 0, trust - 100, 0)
    assert not may_offer(FAIR_EXCHANGE, 2, 50, 0, trust - 99, 0)
    assert may_offer(FAIR_EXCHANGE, 2, 50, 1, trust - 99, 0)
    assert may_offer(FAIR_EXCHANGE, 10, 1e9, 0, 0, 0)
    assert not may_offer(FAIR_EXCHANGE, 1, 1, 1e9, 0, 0.5)
    assert may_offer(SHORT_GUESTS, 1, 1, 0, 1e9, 0.5)


def test_suspensions_double_and_never_become_shorter() -> None:
    """A breach that is found during a suspension counts for its length once only."""
    rails = FAIR_EXCHANGE.compiled
    assert rails.broken(0, breaches=0, suspended_until=0) == (1, DAY)
    assert rails.broken(100, breaches=1, suspended_until=DAY) == (1, DAY + 100)
    assert rails.broken(100, breaches=1, suspended_until=9 * DAY) == (1, 9 * DAY)
    assert rails.broken(DAY, breaches=1, suspended_until=DAY) == (2, 3 * DAY)
    assert rails.broken(0, breaches=5, suspended_until=0) == (6, 32 * DAY)
    assert rails.broken(0, breaches=9, suspended_until=0) == (10, 32 * DAY)


def test_constraints_go_to_other_processes() -> None:
    """What is compiled is made anew there."""
    policy = Constrained(ExchangeConstraints(guest_length=3.0), AlwaysAgree())
    assert policy.compiled.rails is not None
    sent = pickle.loads(pickle.dumps(policy))  # noqa: S301  # our own bytes
    assert sent == policy
    assert sent.compiled.rails.start_now
    assert sent.compiled.rails.promise
    assert not START_NOW.compiled.promise
    assert CompiledTransfer.always_keep().rails is None
    assert list(CONSTRAINTS) == ["start-now", "short-guests", "fair-exchange", "strict-exchange"]


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_numbers_may_be_at_their_bounds_and_just_above(value: float) -> None:
    """Those that have to be more than 0 are refused there, and the text says which they are."""
    rails = ExchangeConstraints(balance=value, balance_weight=value)
    assert (rails.balance, rails.balance_weight) == (value, value)
    promise = Promise(tolerance=value, trust=value, doublings=DOUBLINGS_MAX)
    assert (promise.tolerance, promise.trust) == (value, value)
    for kind, name in ((ExchangeConstraints, "guest_length"), (Promise, "suspension")):
        if value:
            assert getattr(kind(**{name: value}), name) == value  # type: ignore[arg-type]  # a number
        else:
            text = f"^{name} is 0.0; it must be finite and more than 0$"
            with pytest.raises(ValueError, match=text):
                kind(**{name: value})  # type: ignore[arg-type]  # a number
    with pytest.raises(ValueError, match=r"^trust is -1; it must be finite and at least 0$"):
        Promise(trust=-1)


@pytest.mark.parametrize("value", [-1, math.inf, math.nan])
@pytest.mark.parametrize("name", ["guest_length", "balance", "balance_weight"])
def test_numbers_of_constraints_have_bounds(name: str, value: float) -> None:
    """The text names the number."""
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be finite and"):
        ExchangeConstraints(**{name: value})  # type: ignore[arg-type]  # any name


@pytest.mark.parametrize(
    ("name", "value"),
    [("tolerance", -1), ("trust", -1), ("suspension", 0), ("doublings", -1), ("doublings", 31)],
)
def test_numbers_of_a_promise_have_bounds(name: str, value: float) -> None:
    """The text names the number."""
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be"):
        Promise(**{name: value})  # type: ignore[arg-type]  # same


def test_one_guest_can_cost_a_site_nearly_all_it_has() -> None:
    """All four rules are kept, and four jobs are enough: nothing in them bounds a loss.

    The guest starts at once on the empty wide machine, is within twice what its users request, and within a
    day of its work. A moment later an own job comes that needs nearly all of the machine.
    """
    wide = JobTable.from_columns(
        submit_time=[0, 3001],
        processors=[8, 60],
        run_time=[2400, 2400],
        requested_time=[20_000, 2400],
    )
    narrow = JobTable.from_columns(
        submit_time=[0, 3000], processors=[8, 8], run_time=[50_000, 20_000]
    )
    policy = Constrained(FAIR_EXCHANGE)
    sites = [
        Site("wide", 64, wide, Easy(), transfer_policies={"narrow": policy}),
        Site("narrow", 8, narrow, Easy(), transfer_policies={"wide": policy}),
    ]
    alone, together = replay_alone(sites), replay(sites)
    assert [awrt(alone, submitted_to=site) for site in (0, 1)] == [
        2400.0,
        (50_000 * 5 + 67_000 * 2) / 7,
    ]
    # Its second job waits from 3001 until the guest's end at 23,000.
    assert math.isclose(awrt(together, submitted_to=0), (2400 * 2 + 22_399 * 15) / 17)
    assert math.isclose(awrt(together, submitted_to=1), (50_000 * 5 + 20_000 * 2) / 7)
