"""Partners that answer as they have answered."""

import numpy as np
import pytest

from grms.site.accounting.accounts import Accounts
from grms.site.accounting.peer_model import ANSWERS_MIN, PartnerAnswers, size_class
from grms.site.model import records
from tests.grms.site.accounting.stories import at_home, at_partner, received


def accounts(accepted: int = 20, declined: int = 20, wait: float = 5.0) -> Accounts:
    """Returns what a site knows of one partner and jobs of 2 of its 8 processors, 100 s requested."""
    found = Accounts()
    for job in range(1, accepted + 1):
        for record in at_partner(job, 0.0, wait, 10.0):
            found.take(record)
    for job in range(accepted + 1, accepted + declined + 1):
        found.take(received(job, 0.0))
        found.take(records.JobOffered(0.0, job, "near", job))
        found.take(records.JobDeclined(0.0, job))
        for record in at_home(job, 0.0, 0.0, 10.0)[1:]:
            found.take(record)
    return found


def answers(
    known: Accounts, partners: tuple[str, ...] = ("near",), jobs: int = 2000
) -> PartnerAnswers:
    """Returns the model for jobs 1 to 2000."""
    return PartnerAnswers(known, 8, partners, range(1, jobs + 1), np.random.default_rng(7))


def test_size_classes_are_by_width_and_request() -> None:
    """Bounds belong to the smaller class."""
    assert size_class(1, 60.0, 16) == (0, 0)
    assert size_class(2, 3600.0, 16) == (1, 0)
    assert size_class(16, 6 * 3600.0 + 1, 16) == (2, 2)


def test_what_was_asked_is_answered_as_then() -> None:
    """Also who was asked first."""
    said = answers(accounts(), ("far", "near", "stern"))
    assert said.order(1) == ["stern", "near", "far"]
    assert said.order(999) == ["far", "near", "stern"]
    assert said.accepts(1, "near", 2, 100.0)
    assert not said.accepts(1, "stern", 2, 100.0)
    assert not said.accepts(40, "near", 2, 100.0)
    assert said.wait(1, "near", 2, 100.0) == 5.0


def test_other_jobs_are_accepted_as_often_as_those_of_their_class() -> None:
    """Half of them here."""
    said = answers(accounts())
    found = sum(said.accepts(job, "near", 2, 100.0) for job in range(41, 2001))
    assert found == pytest.approx(980, abs=100)
    assert {said.wait(job, "near", 2, 100.0) for job in range(41, 2001)} == {5.0}


def test_a_class_with_few_answers_is_judged_by_all() -> None:
    """Nothing is made of a single answer."""
    few = accounts(ANSWERS_MIN - 1, 0)
    said = answers(few)
    assert said.accepts(500, "near", 1, 100.0)
    assert said.wait(500, "near", 1, 100.0) == 5.0


def test_who_was_never_asked_declines() -> None:
    """And so does a partner that was never asked for so wide a job: it may be too small."""
    said = answers(accounts(), ("near", "new"))
    assert not any(said.accepts(job, "new", 1, 100.0) for job in range(41, 500))
    assert not any(said.accepts(job, "near", 3, 100.0) for job in range(41, 500))


def test_another_seed_draws_otherwise_and_each_pair_for_itself() -> None:
    """What is asked before changes nothing."""
    one, other = (
        answers(accounts()),
        PartnerAnswers(accounts(), 8, ("near",), range(1, 2001), np.random.default_rng(8)),
    )
    first = [one.accepts(job, "near", 2, 100.0) for job in range(41, 200)]
    assert first == [one.accepts(job, "near", 2, 100.0) for job in range(41, 200)]
    assert first != [other.accepts(job, "near", 2, 100.0) for job in range(41, 200)]
