"""Who has how many calls open, and what of theirs is too much."""

import math

import pytest

from grms.site.gateway.open_calls import CallBudget, CallShares, CallWatch
from tests.grms.site.gateway.raw_http2 import (
    END_HEADERS,
    END_STREAM,
    PREFACE,
    call,
    data,
    frame,
    settings,
)


def answered(stream: int) -> bytes:
    """Returns the whole answer of a server to a call."""
    return frame(1, END_HEADERS | END_STREAM, stream, b"\x88")


def watch(budget: CallBudget, who: str, calls: int, first: int = 1) -> tuple[CallWatch, str]:
    """Returns a connection of a caller with so many calls open, and what is too much of them."""
    made = CallWatch(budget, who)
    asked = b"".join(call(first + 2 * n, "/t.T/Get", b"x") for n in range(calls))
    return made, made.asked(PREFACE + settings() + asked, 0.0)


def test_one_caller_has_a_share_over_all_connections() -> None:
    """What is more is too much; whoever is nobody in particular may have any number; ends make room."""
    budget = CallBudget(CallShares(100, 10, 2, 10_000))
    first, problem = watch(budget, "eve", 6)
    assert not problem
    second, problem = watch(budget, "eve", 5)
    assert problem == "has 11 calls open; one caller may have 10"
    _, problem = watch(budget, "", 50)
    assert not problem
    second.close()
    second.answered(answered(1), 1.0)
    assert budget.calls["eve"] == 6
    first.answered(b"".join(answered(1 + 2 * n) for n in range(6)), 1.0)
    assert "eve" not in budget.calls
    assert "eve" not in budget.bytes


def test_some_are_kept_for_each_caller_however_many_others_have() -> None:
    """Where all is taken, nobody gets more than these."""
    budget = CallBudget(CallShares(25, 10, 2, 10_000))
    for name in ("a", "b"):
        assert not watch(budget, name, 10)[1]
    assert not watch(budget, "c", 5)[1]
    assert watch(budget, "d", 3)[1] == "has 3 of 28 calls that are open; in all 25 may be"
    assert not watch(budget, "e", 2)[1]


def test_who_has_sent_too_much_is_full_until_it_is_answered() -> None:
    """Over all his connections, and whether his calls are sent in full or not."""
    budget = CallBudget(CallShares(100, 10, 2, 30_000))
    made, other = CallWatch(budget, "eve"), CallWatch(budget, "eve")
    made.asked(PREFACE + settings() + call(1, "/t.T/Talk", b"x" * 20_000, ends=False), 0.0)
    assert not made.full
    made.asked(call(3, "/t.T/Put", b"x" * 20_000), 0.0)
    assert made.full
    assert other.full
    assert not CallWatch(budget, "").full
    made.answered(answered(3), 1.0)
    assert not made.full


@pytest.mark.parametrize("waiting", [0, 500])
def test_a_connection_that_takes_no_bytes_is_not_read(waiting: int) -> None:
    """Since it took the last ones."""
    made = CallWatch(CallBudget(CallShares(100, 10, 2, 30_000)), "eve")
    made.wrote(1000)
    assert made.unread_since(waiting, 5.0) == (5.0 if waiting else math.inf)
    made.wrote(200)
    made.answered(data(1, b""), 6.0)
    later = waiting + 200 if waiting else 0
    assert made.unread_since(later, 9.0) == (5.0 if waiting else math.inf)
    assert made.unread_since(later // 2, 9.5) == (9.5 if waiting else math.inf)


def test_half_of_the_calls_are_one_callers_at_most() -> None:
    """And he may have sent some of the largest messages at least."""
    assert CallShares.of(2000, 1 << 20) == CallShares(2000, 1000, 16, 32 << 20)
    assert CallShares.of(1, 1024) == CallShares(1, 1, 1, 1 << 25)


@pytest.mark.parametrize(
    ("calls", "callers", "each"),
    [(2000, 0, 250), (2000, 8, 250), (2000, 20, 100), (2000, 500, 16), (80, 20, 10), (1, 3, 1)],
)
def test_connections_of_all_callers_stay_within_the_total(
    calls: int, callers: int, each: int
) -> None:
    """Or have no more than what is kept for each in any case."""
    shares = CallShares.of(calls, 1024)
    assert shares.per_connection(callers) == each
    assert each * callers <= calls or each <= shares.kept


def test_what_connections_are_told_is_kept_for_callers_who_come_later() -> None:
    """Nine callers on connections for eight: together they have more than the total, and nobody is cut."""
    budget = CallBudget(CallShares.of(2000, 1024))
    each = budget.promise(8)
    assert each == 250
    for name in "abcdefghi":
        assert not watch(budget, name, each)[1]
    assert (
        watch(budget, "j", each + 1)[1] == "has 251 of 2501 calls that are open; in all 2000 may be"
    )
