"""When a statement holds, does not, or is open."""

import math

import pytest

from scenarios.studies.common.verdicts import Margin, counted, every, judged, some, word


def test_a_greater_mean_alone_is_no_verdict() -> None:
    """Where differences scatter around 0 the statement is open, whichever mean is greater."""
    left, right = [0.7894, 0.8, 0.6, 0.9], [0.7882, 0.7, 0.8, 0.8]
    margin = Margin.between(left, right)
    assert margin.mean > 0
    assert (margin.above(), margin.below()) == (None, None)
    assert word(margin.above()) == "open"


def test_differences_that_agree_are_a_verdict() -> None:
    """By Student's t at 95 %: 12.706, 4.303 and 3.182 standard errors for 1, 2 and 3 degrees of freedom."""
    margin = Margin.of([1.0, 2.0, 3.0])
    half = 4.303 / math.sqrt(3)
    assert margin.mean == 2.0
    assert margin.high - margin.mean == pytest.approx(half, abs=1e-3)
    assert (margin.above(-0.5), margin.above(), margin.above(5.0)) == (True, None, False)
    assert (margin.below(5.0), margin.below(), margin.below(-1.0)) == (True, None, False)
    assert (margin.at_least(5.0), margin.at_most(5.0)) == (False, True)
    assert (margin.within(-1, 5), margin.within(5, 6), margin.within(0, 5)) == (True, False, None)


def test_one_value_leaves_all_open_and_what_has_no_chance_nothing() -> None:
    """A single run has no spread; a deterministic figure has none either, but is known."""
    assert Margin.of([9.0]).above() is None
    assert Margin.of([9.0]).words() == "+9.00 (one value)"
    assert Margin.exact(9.0).above() is True
    assert Margin.exact(9.0).words() == "+9.00"


def test_what_is_equal_is_not_more() -> None:
    """No difference in any pair is no tendency."""
    margin = Margin.between([1.0, 1.0], [1.0, 1.0])
    assert (margin.above(), margin.below(), margin.at_least(0.0)) == (False, False, True)


def test_verdicts_of_several_are_put_together() -> None:
    """One that does not hold refutes all; one that holds is enough for some."""
    assert [every(each) for each in ([True, True], [True, None], [None, False])] == [
        True,
        None,
        False,
    ]
    assert [some(each) for each in ([False, False], [None, False], [None, True])] == [
        False,
        None,
        True,
    ]
    assert counted([True, None, False, False]) == ("1 of 4 statements hold, 2 do not, 1 is open")


def test_a_pair_without_its_partner_is_a_mistake() -> None:
    """Differences of unlike samples mean nothing."""
    with pytest.raises(ValueError, match="zip"):
        Margin.between([1.0], [])
    with pytest.raises(ValueError, match="no values"):
        Margin.of([])


def test_what_was_not_run_is_no_verdict() -> None:
    """Open is a word, nothing is none."""
    for found, shown in ((("a", True), "yes"), (("a", None), "open"), (None, "")):
        one = judged("claim", found, "rule")
        assert (one.claim, one.rule, one.word, one.run) == ("claim", "rule", shown, bool(found))
