"""What the pages are told: figures, lists, and why a job is where it is."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.policy.transfer import AcceptWhenFit, AlwaysKeep, Gaussian, Rule, RuleBase
from grms.site.model import records
from grms.site.model.account_history import AccountPoint
from grms.site.model.jobs import Load, Weighed
from grms.site.monitoring.dashboard_events import AccountSeen, Decided
from grms.site.monitoring.dashboard_state import DashboardState
from grms.site.monitoring.dashboard_views import (
    account_document,
    history_document,
    jobs_document,
    membership,
    now_document,
    story_document,
    thinned,
)
from tests.grms.site.accounting.accounts_of_sites import account
from tests.grms.site.monitoring.notes_of_records import (
    delegated_story,
    guest_story,
    home_story,
    received,
    sampled,
    told,
)

RULES = RuleBase(
    (
        Rule(Gaussian(0.0, 1.0), Gaussian(50.0, 30.0), accept=True),
        Rule(Gaussian(2.0, -0.5), Gaussian(100.0, 20.0), accept=False),
    ),
    "learned",
)


def filled() -> DashboardState:
    """Returns a ledger with three jobs: one away, one at home, one of a partner."""
    ledger = DashboardState("home")
    told(ledger, *delegated_story(), *home_story(), *guest_story())
    return ledger


def test_what_is_now_is_the_last_sample() -> None:
    """And nothing where there is none yet."""
    ledger = DashboardState("home")
    assert now_document(ledger)["sample"] is None
    ledger.take(sampled(1.0))
    ledger.take(sampled(2.0, free=4, waiting=0))
    found = now_document(ledger)
    assert found["sample"]["processors_free"] == 4
    (one,) = found["partners"]
    assert (one["asked"], one["accepted"], one["declined"], one["undecided"]) == (5, 3, 1, 1)
    assert one["guests_declined"] == 1
    json.dumps(found)


def test_the_account_is_told_in_hours_and_its_history_apart() -> None:
    """Nothing of a site that keeps none; what is not known is not a number."""
    ledger = DashboardState("home")
    assert now_document(ledger)["account"] is None
    assert account_document(ledger)["points"] == []
    point = AccountPoint(7200.0, 8, 7, 1, math.nan, 2, 3, 4)
    ledger.take(AccountSeen(account(lent=7200.0, turned_owed=math.nan, history=(point,))))
    found = now_document(ledger)["account"]
    assert (found["lent_hours"], found["lent_lost_hours"]) == (2.0, 0.5)
    assert (found["turned_owed_hours"], found["saved_hours"]) == (None, 96.0)
    assert found["sentence"].startswith("In a sentence: your users waited 21 % less")
    assert account_document(ledger) == {
        "point_s": 7200.0,
        "points": [
            {
                "time_s": 7200.0,
                "looks": 8,
                "in_credit": 7,
                "balance_hours": None,
                "protected": 2,
                "guests": 9,
            }
        ],
    }
    json.dumps(found, allow_nan=False)


@settings(max_examples=30)
@given(st.integers(0, 60), st.integers(1, 40))
def test_thinning_keeps_order_bound_and_the_last(count: int, most: int) -> None:
    """A chart ends with what is now."""
    rows = [sampled(float(second)) for second in range(count)]
    found = thinned(rows, most)
    times = [each.time for each in found]
    assert len(found) == min(count, most)
    assert times == sorted(set(times))
    assert not rows or found[-1] is rows[-1]


def test_the_past_is_that_of_the_window() -> None:
    """Thin samples come before thick ones, never twice."""
    ledger = DashboardState("home")
    for second in range(100):
        ledger.take(sampled(float(second)))
    ledger.near.popleft()
    times = [each["time_s"] for each in history_document(ledger, 0.0)["samples"]]
    assert times == [float(second) for second in range(100)]
    assert history_document(ledger, 97.5)["samples"][0]["time_s"] == 98.0


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["home-2", "home-1", "away #7"]),
        ({"kind": "away"}, ["home-1"]),
        ({"kind": "home"}, ["home-2"]),
        ({"kind": "guests"}, ["away #7"]),
        ({"kind": "open"}, []),
        ({"search": "RENDER"}, ["home-1"]),
        ({"search": "anna failed"}, ["home-2"]),
        ({"search": "beyond"}, ["home-1"]),
        ({"search": "anna beyond failed"}, []),
        ({"search": "<b>"}, []),
        ({"limit": 0}, []),
    ],
)
def test_jobs_are_found(options: dict[str, Any], names: list[str]) -> None:
    """By kind, and by words that a job has all of; the newest first."""
    assert [job["job_id"] for job in jobs_document(filled(), **options)["jobs"]] == names


def test_how_many_there_are_is_told_where_not_all_are_shown() -> None:
    """The count is of those that match."""
    found = jobs_document(filled(), limit=1)
    assert (found["matching"], found["known"], len(found["jobs"])) == (3, 3, 1)


def test_a_story_says_why_a_job_is_at_a_partner() -> None:
    """Who declined before is named."""
    found = story_document(filled(), "home-1")
    assert found is not None
    assert found["summary"] == "It was given to beyond, which accepted it, after away declined."
    assert [step["text"] for step in found["steps"]] == [
        "anna handed it in.",
        "It was offered to away.",
        "away did not take it.",
        "It was offered to beyond.",
        "beyond accepted it.",
        "It ended: completed.",
    ]
    assert story_document(filled(), "home-9") is None


def test_a_story_says_whose_job_it_is() -> None:
    """A partner's job was offered; one that failed says how."""
    guest = story_document(filled(), "away/abc/7")
    assert guest is not None
    assert guest["summary"] == "away offered it, and this site took it."
    failed = story_document(filled(), "home-2")
    assert failed is not None
    assert failed["steps"][-1]["text"] == "It ended: failed (exit 3)."


def test_a_story_says_what_was_lost_with_a_return() -> None:
    """And by whom; the job is nowhere then."""
    ledger = DashboardState("home")
    offered = records.JobOffered(1.0, 1, "away", 1), records.JobDelegated(2.0, 1)
    told(ledger, received(1), *offered, records.JobSentHome(95.0, 1, "away", 90.0))
    found = story_document(ledger, "home-1")
    assert found is not None
    assert found["steps"][-1]["text"] == (
        "away ended it for another job after 1 min 30 s, and it is decided anew."
    )
    assert found["summary"] == "It is not decided yet where it runs."


@pytest.mark.parametrize(
    ("made", "summary"),
    [
        ([], "It is not decided yet where it runs."),
        ([records.JobOffered(1.0, 1, "away", 1)], "away is being asked."),
        (
            [
                records.JobOffered(1.0, 1, "away", 1),
                records.JobDeclined(1.0, 1),
                records.JobKept(1.0, 1),
            ],
            "It runs here: away did not take it.",
        ),
    ],
)
def test_a_summary_is_one_sentence(made: list[records.Record], summary: str) -> None:
    """At every point of a job's way."""
    ledger = DashboardState("home")
    told(ledger, received(1), *made)
    found = story_document(ledger, "home-1")
    assert found is not None
    assert found["summary"] == summary


def decision(decided: Decided | None) -> dict[str, Any]:
    """Returns the step of a job of two processors that was kept."""
    ledger = DashboardState("home")
    told(ledger, received(1), records.JobKept(1.0, 1), decided=decided)
    found = story_document(ledger, "home-1")
    assert found is not None
    step: dict[str, Any] = found["steps"][-1]
    return step


def test_the_memberships_are_those_of_the_decision() -> None:
    """The sum is the compiled one's, and follows from the weights (equations 2, 4, 9, 10)."""
    step = decision(Decided(Weighed(Load(4, 1, 6), "away"), RULES))
    policy = step["decision"]["policy"]
    assert (policy["nwp"], policy["njp"]) == (1.5, 50.0)
    by_hand = sum(
        (1 if rule.accept else -1)
        * math.exp(-(((1.5 - rule.nwp.gamma) / rule.nwp.sigma) ** 2))
        * math.exp(-(((50.0 - rule.njp.gamma) / rule.njp.sigma) ** 2))
        for rule in RULES.rules
    )
    assert policy["output"] == pytest.approx(by_hand)
    signs = [1 if rule["runs_here"] else -1 for rule in policy["rules"]]
    weights = [rule["weight"] for rule in policy["rules"]]
    assert sum(a * b for a, b in zip(signs, weights, strict=True)) == pytest.approx(by_hand)
    assert policy["runs_here"] == (by_hand > 0)
    assert "learned" in step["text"]


def test_a_policy_without_rules_says_what_it_looks_at() -> None:
    """Whether a job fits; any other says its name."""
    fits = decision(Decided(Weighed(Load(4, 1, 6), "away"), AcceptWhenFit()))["decision"]["policy"]
    assert (fits["needed"], fits["free"], fits["runs_here"]) == (2, 1, False)
    keep = decision(Decided(Weighed(Load(4, 1, 6), "away"), AlwaysKeep()))["decision"]["policy"]
    assert keep["name"] == "keep"


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        (None, "not in the journal"),
        (Decided(None, None), "not in the journal"),
        (Decided(Weighed(None, ""), None), "did not say how busy"),
        (Decided(Weighed(Load(4, 1, 6), ""), None, (("away", "x"),)), "no partner was left"),
    ],
)
def test_what_a_decision_did_not_rest_on_is_said(decided: Decided | None, words: str) -> None:
    """Nothing is made up where it is not known."""
    assert words in decision(decided)["text"]


def test_a_membership_is_1_at_its_centre() -> None:
    """And e^-1 one width away, whatever the sign of the width."""
    assert membership(Gaussian(2.0, -3.0), 2.0) == 1.0
    assert membership(Gaussian(2.0, -3.0), 5.0) == pytest.approx(math.exp(-1))
