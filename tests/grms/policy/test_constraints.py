import math
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from grms import Site, replay, replay_alone
from grms.policy._decisions import CompiledTransfer
from grms.policy.constraints import (
    CONSTRAINTS,
    DAY,
    DOUBLINGS_MAX,
    EMPTY_RETURNS_MAX,
    FAIR_EXCHANGE,
    GUESTS,
    HOUR,
    SHORT_GUESTS,
    SPAN_MAX,
    START_NOW,
    STRICT_EXCHANGE,
    AccountRules,
    ConstraintsSpec,
    ExchangeConstraints,
    Promise,
    rounds_said,
    span,
)
from grms.policy.rebalancing import Rebalancing
from grms.policy.transfer import AcceptWhenFit, AlwaysAgree, Constrained, rounds_in_force
from lrms_sim import Easy, JobTable, awrt
from lrms_sim.util.files import to_toml
from scenarios.spec.files import load_spec, parse_spec
from scenarios.spec.spec import SiteSpec
from scenarios.util.errors import SpecError

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


@pytest.mark.parametrize(
    ("name", "values", "bound"),
    [
        ("allowance", (-1.0, math.inf, math.nan), "be finite and at least 0"),
        ("memory", (0.0, -1.0, math.inf), "be finite and more than 0"),
        ("cap", (-0.5, math.inf), "be finite and at least 0"),
        ("every", (0.0, math.nan), "be finite and more than 0"),
        ("lost_work", (-1.0, math.inf), "be finite and at least 0"),
        ("empty_returns", (0, EMPTY_RETURNS_MAX + 1), f"be in 1..{EMPTY_RETURNS_MAX}"),
    ],
)
def test_rules_of_an_account_have_bounds(name: str, values: tuple[float, ...], bound: str) -> None:
    """The error has the number and what is possible; the least is."""
    for value in values:
        says = f"{name} is {value}; it must {bound}"
        with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
            AccountRules(**{name: value})  # type: ignore[arg-type]  # a number
    AccountRules(allowance=0.0, memory=1e-9, cap=0.0, every=1e-9, lost_work=0.0, empty_returns=1)


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


WORKLOAD = {"model": "lublin", "jobs": 0}


def site(**values: Any) -> SiteSpec:
    """Returns a site with these keys."""
    return SiteSpec.model_validate({"name": "a", "processors": 4, "workload": WORKLOAD} | values)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (0, 0),
        (SPAN_MAX, SPAN_MAX),
        (90, 90),
        (1.5, 1.5),
        ("900s", 900),
        ("15min", 900),
        ("1.5h", 5400),
        ("2 d", 2 * DAY),
    ],
)
def test_a_span_is_seconds_or_has_a_unit(given: object, seconds: float) -> None:
    """Both say the same."""
    assert span(given) == seconds


@pytest.mark.parametrize("given", ["", "15", "15 minutes", "-1h", -1, True, "1e3s", "99999999d"])
def test_what_is_no_span_is_refused(given: object) -> None:
    """The text says what there is."""
    with pytest.raises(ValidationError, match="is no span of time; there are seconds, and"):
        site(reoffer=given)


def test_a_period_is_a_second_at_least() -> None:
    """A round in no time would never end."""
    with pytest.raises(ValidationError, match="at least 1 s is needed"):
        site(reoffer="0.5s")
    assert site(reoffer="15min").reoffer == 900
    assert site(reoffer="1s").reoffer == 1
    assert site().reoffer is None


def test_words_are_constraints() -> None:
    """Nothing and `none` are the same."""
    assert site().constraints_in_force is None
    assert site(rails="none").constraints_in_force is None
    assert site(rails="start-now").constraints_in_force == START_NOW
    assert site(rails="short-guests").constraints_in_force == SHORT_GUESTS
    assert site(rails="fair-exchange").constraints_in_force == FAIR_EXCHANGE
    with pytest.raises(
        ValidationError, match="'fair' is no word for constraints; there are: start-now"
    ):
        site(rails="fair")


def test_problems_name_the_key(tmp_path: Path) -> None:
    """A word, a key of the table and a period, each where it stands."""
    path = tmp_path / "wrong.toml"
    head = 'name = "x"\nsites = [\n'
    one = '{{ name = "{}", processors = 4, workload = {{ model = "lublin", jobs = 1 }}, {} }},\n'
    wrong = ('rails = "fair"', "rails = { balanse = 3 }", 'reoffer = "15 minutes"')
    rows = [one.format(name, keys) for name, keys in zip("abc", wrong, strict=True)]
    path.write_text(head + "".join(rows) + "]\n")
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert [(problem.key, problem.text[:30]) for problem in caught.value.mistakes] == [
        ("sites.a.rails", "'fair' is no word for constrai"),
        ("sites.b.rails.balanse", "'balanse' is no key here, did "),
        ("sites.c.reoffer", "'15 minutes' is no span of tim"),
    ]


def test_a_table_changes_numbers() -> None:
    """What is left out is that of the word; a number of a promise makes one."""
    found = site(rails={"guest_length": 3, "balance": "2d", "trust": "1h"}).constraints_in_force
    assert found == ExchangeConstraints(
        guest_length=3, balance=2 * DAY, promise=Promise(trust=HOUR)
    )
    assert site(rails={}).constraints_in_force == FAIR_EXCHANGE
    found = site(rails={"rules": "start-now", "doublings": 0}).constraints_in_force
    assert found == ExchangeConstraints(
        guest_length=None, balance=None, promise=Promise(doublings=0)
    )
    with pytest.raises(ValidationError):
        ConstraintsSpec.model_validate({"guest_lenght": 3})


def test_a_number_puts_its_rule_in_force_whatever_the_word() -> None:
    """Nobody who has written a bound goes without it."""
    bare = ExchangeConstraints(start_now=False, guest_length=None, balance=None, promise=None)
    assert site(rails={"rules": "none"}).constraints_in_force is None
    found = site(rails={"rules": "none", "balance": 5}).constraints_in_force
    assert found == replace(bare, balance=5)
    found = site(rails={"rules": "none", "guest_length": 3, "tolerance": 9}).constraints_in_force
    assert found == replace(bare, guest_length=3, promise=Promise(tolerance=9))
    found = site(rails={"rules": "start-now", "balance_weight": 1}).constraints_in_force
    assert found == replace(START_NOW, balance=DAY, balance_weight=1)


@pytest.mark.parametrize("key", ["guest_length", "balance_weight"])
@pytest.mark.parametrize("value", ["2", True, -1, 10**12])
def test_a_number_that_is_none_is_one_mistake(key: str, value: object) -> None:
    """Whole numbers and others are one kind."""
    one = {"name": "a", "processors": 4, "workload": WORKLOAD, "rails": {key: value}}
    document = to_toml({"name": "x", "sites": [one]})
    with pytest.raises(SpecError) as caught:
        parse_spec(document.encode(), folder=Path(), shown="x.toml")
    (problem,) = caught.value.mistakes
    assert problem.key == f"sites.a.rails.{key}"
    assert problem.text.startswith("is ")


def test_rounds_are_a_period_or_a_table() -> None:
    """What is left out of the table is no bound."""
    assert rounds_said(site().reoffer) is None
    assert rounds_said(site(reoffer="15min").reoffer) == 900.0
    assert rounds_said(site(reoffer={"every": "15min"}).reoffer) == Rebalancing(900.0)
    table = {"every": 600, "order": "widest", "questions": 20, "pause": "4h"}
    assert rounds_said(site(reoffer=table).reoffer) == Rebalancing(600.0, "widest", 20, 4 * HOUR)


@pytest.mark.parametrize(
    ("table", "key", "text"),
    [
        ({}, "sites.a.reoffer.every", "is missing"),
        ({"every": 0.5}, "sites.a.reoffer.every", "0.5 s is too short"),
        ({"every": 9, "order": "wide"}, "sites.a.reoffer.order", "'wide' is no order of rounds"),
        ({"every": 9, "questions": 0}, "sites.a.reoffer.questions", "is 0; it must be at least 1"),
        ({"every": 9, "pause": 8}, "sites.a.reoffer.pause", "8 s is too short; it must be at l"),
        (
            {"every": 9, "questoins": 8},
            "sites.a.reoffer.questoins",
            "'questoins' is no key here, d",
        ),
    ],
)
def test_what_is_wrong_with_rounds_is_said_with_its_key(
    table: dict[str, Any], key: str, text: str
) -> None:
    """As of any other table."""
    document = {
        "name": "x",
        "sites": [{"name": "a", "processors": 4, "workload": WORKLOAD, "reoffer": table}],
    }
    with pytest.raises(SpecError) as caught:
        parse_spec(to_toml(document).encode(), folder=Path(), shown="x.toml")
    (problem,) = caught.value.mistakes
    assert (problem.key, problem.text[: len(text)]) == (key, text)


def test_a_table_says_how_the_account_of_strict_exchange_is_kept() -> None:
    """Each key is a rule of `AccountRules`; what is left out is as with the word."""
    said = {
        "rules": "strict-exchange",
        "guests": "run",
        "allowance": 0.02,
        "memory": "5d",
        "cap": 0.1,
        "account": "30min",
        "lost_work": "2h",
        "empty_returns": 3,
        "balance": "12h",
    }
    rails = site(rails=said).constraints_in_force
    account = AccountRules("run", 0.02, 5 * DAY, 0.1, 1800.0, 2 * HOUR, 3)
    assert rails == ExchangeConstraints(balance=12 * HOUR, account=account)
    assert site(rails="strict-exchange").constraints_in_force == STRICT_EXCHANGE
    assert site(rails={"rules": "strict-exchange"}).constraints_in_force == STRICT_EXCHANGE


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"allowance": "much"}, "much"),
        ({"allowance": -0.1}, "greater than or equal to 0"),
        ({"cap": 7}, "less than or equal to 1"),
        ({"allowance": 1.5}, "less than or equal to 1"),
        ({"memory": "5min"}, "memory, 300 s, is shorter than the period of the account, 900 s"),
        ({"memory": "1d", "account": "2d"}, "is shorter than the period"),
        ({"guests": "stay"}, "there are: preempt, run"),
        ({"memory": "-1d"}, "is no span of time"),
        ({"memory": 0}, "at least 1 s is needed"),
        ({"account": 0.5}, "at least 1 s is needed"),
        ({"lost_work": "often"}, "is no span of time"),
        ({"empty_returns": 0}, "greater than or equal to 1"),
        ({"rules": "fair-exchange", "guests": "run"}, 'rules = "strict-exchange" does'),
    ],
)
def test_an_account_that_cannot_be_kept_so_is_refused(wrong: dict[str, Any], said: str) -> None:
    """The text says what is wrong, and what there is."""
    with pytest.raises(ValidationError, match=re.escape(said)):
        site(rails={"rules": "strict-exchange"} | wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"every": "-1h"}, "is no span of time"),
        ({"every": 0}, "at least 1 s is needed"),
        ({"every": "1h", "jobs": 0}, "greater than or equal to 1"),
        ({"jobs": 2}, "Field required"),
        ({"every": "1h", "file": "state"}, "Extra inputs"),
    ],
)
def test_impossible_checkpoints_are_refused(wrong: dict[str, Any], said: str) -> None:
    """They are of a workload."""
    with pytest.raises(ValidationError, match=re.escape(said)):
        site(workload=WORKLOAD | {"checkpoint": wrong})


def test_checkpoints_are_said_of_a_workload() -> None:
    """All of its jobs keep their state, or every so many-th."""
    said = site(workload=WORKLOAD | {"checkpoint": {"every": "1h", "jobs": 2}}).workload.checkpoint
    assert said is not None
    assert (said.every, said.jobs) == (3600, 2)


def test_strict_exchange_offers_again_unless_said_otherwise() -> None:
    """Others only offer again where it is said."""
    strict, fair = Constrained(STRICT_EXCHANGE), Constrained(FAIR_EXCHANGE)
    assert rounds_in_force(None, [fair, strict]) == 900
    assert rounds_in_force(60.0, [strict]) == 60
    assert rounds_in_force(None, [fair]) is None
