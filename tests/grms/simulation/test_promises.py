"""The fault test with sites that keep to constraints, and the judge of their promises."""

from collections import Counter

import pytest

from grms.policy.constraints import Promise
from grms.simulation.fault_run import run_trial
from grms.simulation.promises import PromiseChecker
from grms.site.model.jobs import Request
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import (
    JobDelegated,
    JobEnded,
    JobOffered,
    JobPromised,
    JobReceived,
    PromisesReviewed,
    Record,
)
from grms.site.scheduler import exchange_decisions as fairness
from grms.site.scheduler import outgoing_offers

RUNS = 100

STARTS_NOTHING = (146, 307, 704)
"""Seeds of runs in which a partner takes jobs, starts none, and is asked for another in vain."""


def test_every_job_runs_once_and_promises_are_held_to() -> None:
    """Whatever goes wrong, sites keep to their constraints, by a second opinion on all of their records."""
    seen: Counter[str] = Counter()
    for seed in range(RUNS):
        verdict = run_trial(seed, rails=True)
        assert not verdict.problems, (
            f"{verdict.problems}\nto replay: python -m grms.simulation --seed {seed} --rails"
        )
        seen["delegated"] += verdict.delegated
        seen["breaches"] += verdict.breaches
        seen["crashes"] += verdict.crashes
        seen[verdict.rogue] += 1
    assert seen["delegated"] > RUNS // 2
    assert seen["breaches"] > 3
    assert seen["crashes"] > RUNS // 2
    # Some have a partner that takes jobs and starts none.
    assert seen["starts nothing"] > RUNS // 20


def test_what_is_taken_and_never_started_is_found_out() -> None:
    """The promise is broken, the operator takes the job back, and it runs once."""
    verdicts = [run_trial(seed, rails=True) for seed in STARTS_NOTHING]
    assert [verdict.problems for verdict in verdicts] == [()] * len(STARTS_NOTHING)
    assert {verdict.rogue for verdict in verdicts} == {"starts nothing"}
    assert all(verdict.resubmitted and verdict.breaches for verdict in verdicts)


def found_out(runs: int) -> bool:
    """Returns whether one of some runs with constraints has a problem."""
    return any(run_trial(seed, rails=True).problems for seed in range(runs))


def test_a_site_that_never_looks_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its partners are trusted whatever they do."""
    monkeypatch.setattr(fairness, "review", lambda *_: None)
    assert found_out(RUNS)


def test_a_site_that_trusts_everybody_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It offers more than it should."""
    monkeypatch.setattr(outgoing_offers, "entrusts", lambda *_: True)
    assert found_out(RUNS)


def test_a_site_that_forgets_in_a_restart_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was promised is in the journal, or the journal does not give what the site knows."""
    monkeypatch.setattr("grms.site.model.compaction.PartnerBooks", _forgetful)
    assert found_out(RUNS)


def _forgetful(*_: object, **__: object) -> Record:
    return PromisesReviewed(0.0, "nobody", (), (), 0.0, 0, 0.0)


# By hand.

PROMISE = Promise(tolerance=5, trust=1, suspension=100, doublings=1)
BEGIN: tuple[Record, ...] = (
    JobReceived(0.0, 1, "ann", "1", "", Request(2, 10.0), b""),
    JobOffered(0.0, 1, "b", 1),
    JobDelegated(1.0, 1),
    JobPromised(1.0, 1),
    JobReceived(1.0, 2, "ann", "2", "", Request(4, 5.0), b""),
)


def judge(*records: Record) -> PromiseChecker:
    """Returns a judge of a site of eight processors that has lived this."""
    made = PromiseChecker(PROMISE, 8)
    for record in BEGIN + records:
        assert made.follow(record) == ""
    return made


def test_what_was_done_in_time_gives_credit() -> None:
    """Until then there is room for 8 processor seconds beside what is there."""
    ended = JobEnded(9.0, 1, Outcome.COMPLETED, 8.0, 7.0, "")
    assert "not to be trusted so far" in judge().judge(JobOffered(2.0, 2, "b", 2))
    assert "nobody has looked" in judge(ended).judge(JobOffered(9.0, 2, "b", 2))
    looked = judge(ended, PromisesReviewed(9.0, "b", (1,), (), 20.0, 0, 0.0))
    assert looked.judge(JobOffered(9.0, 2, "b", 2)) == ""


@pytest.mark.parametrize(
    "record",
    [
        PromisesReviewed(16.5, "b", (), (1,), 0.0, 1, 116.0),
        PromisesReviewed(16.5, "b", (), (), 0.0, 0, 0.0),
        PromisesReviewed(16.5, "b", (1,), (), 20.0, 0, 0.0),
    ],
)
def test_a_look_that_finds_something_else_is_wrong(record: Record) -> None:
    """The job is overdue from 16 on, and the suspension a hundred seconds."""
    right = PromisesReviewed(16.5, "b", (), (1,), 0.0, 1, 116.5)
    assert judge().follow(right) == ""
    assert "was to be found" in judge().follow(record)


def test_nobody_is_asked_while_he_is_suspended() -> None:
    """The end of a suspension is no part of it."""
    looked = judge(
        PromisesReviewed(16.5, "b", (), (1,), 0.0, 1, 116.5),
        JobEnded(20.0, 1, Outcome.COMPLETED, 20.0, 1.0, ""),
        PromisesReviewed(20.0, "b", (1,), (), 0.0, 1, 116.5),
    )
    assert "not to be trusted" in looked.judge(JobOffered(116.0, 2, "b", 2))
    assert looked.judge(JobOffered(116.5, 2, "b", 2)) == ""
