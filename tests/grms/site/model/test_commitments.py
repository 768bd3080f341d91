"""What a site notes of a partner's promise."""

import math

import pytest

from grms.site.model.lifecycle import Outcome
from grms.site.model.partner_conduct import PromiseBook


def with_two() -> PromiseBook:
    """Returns what is noted of a partner that has two jobs."""
    trust = PromiseBook()
    trust.promise(3, 10.0, 100.0, 2)
    trust.promise(4, 50.0, 20.0, 4)
    return trust


def test_open_work_is_summed_up() -> None:
    """What is requested, times the width; the first that should be over is known."""
    trust = with_two()
    assert (trust.work, trust.due, trust.stale) == (280.0, 70.0, False)
    trust.promise(5, 60.0, 100.0, 1)
    assert trust.due == 70.0
    trust.drop(5)
    trust.drop(4)
    assert trust.work == 200.0
    trust.drop(3)
    trust.drop(3)
    assert (trust.work, trust.promised) == (0.0, {})


def test_a_partner_without_jobs_has_no_work_of_ours() -> None:
    """Whatever rounding has left of it: over years that would cost it jobs."""
    trust = PromiseBook()
    for number, requested_time in enumerate((0.1, 0.2, 0.3)):
        trust.promise(number, 0.0, requested_time, 1)
    for number in range(3):
        trust.drop(number)
    assert 0.1 + 0.2 + 0.3 - 0.1 - 0.2 - 0.3 > 0.0
    assert trust.work == 0.0


@pytest.mark.parametrize("outcome", Outcome)
def test_only_what_has_run_counts_for_credit(outcome: Outcome) -> None:
    """A job that fails at once, or is cancelled, gives none."""
    trust = with_two()
    trust.end(4, 65.0, 15.0, outcome)
    assert trust.stale
    assert trust.promised[4].done == (outcome.value in {"completed", "timeout", "not_run"})
    assert trust.promised[3].ended is None


def test_a_job_that_is_lost_there_is_late_for_ever() -> None:
    """It will not be done; one that is not in the list changes nothing."""
    trust = with_two()
    trust.lose(3)
    trust.lose(9)
    assert trust.promised[3].ended == math.inf
    assert sorted(trust.promised) == [3, 4]


def test_a_look_closes_and_counts() -> None:
    """What is left is looked at again when the next is due; what is counted is never due."""
    trust = with_two()
    trust.end(4, 65.0, 15.0, Outcome.COMPLETED)
    trust.look((4,), (3,), 0.0, 1, 500.0)
    assert (trust.credit, trust.breaches, trust.suspended_until) == (0.0, 1, 500.0)
    assert (trust.work, trust.due, trust.stale) == (200.0, math.inf, False)
    assert trust.overdue == 1
    trust.promise(5, 60.0, 10.0, 1)
    trust.end(3, 600.0, 90.0, Outcome.COMPLETED)
    assert trust.overdue == 0
    trust.pardon()
    assert (trust.breaches, trust.suspended_until) == (0, 0.0)


def test_rows_give_it_back() -> None:
    """To the last bit, with what rounding has left in a sum."""
    trust = with_two()
    trust.end(3, 65.0, 15.0, Outcome.TIMEOUT)
    trust.look((), (4,), 7.0, 2, 9.0)
    trust.work += 1e-9
    again = PromiseBook(7.0, 2, 9.0)
    again.promise(1, 0.0, 1.0, 1)
    again.restore(trust.rows(), trust.work)
    assert again == trust
    assert (again.stale, again.due) == (trust.stale, trust.due) == (True, math.inf)


def test_books_are_equal_by_what_is_promised() -> None:
    """What is only kept to save work, such as when the next one is due, makes no difference."""
    one, other = with_two(), with_two()
    other.stale, other.due = True, 0.0
    assert one == other
    other.drop(4)
    assert one != other
