import pytest

from grms.policy.location import AwrtLocation, FixedOrder


def test_a_fixed_order_names_each_partner_once() -> None:
    """A name that comes twice is refused."""
    with pytest.raises(ValueError, match="'a' comes twice"):
        FixedOrder(("a", "b", "a"))


def test_location_policies_have_names_for_people() -> None:
    """Reports print these."""
    assert AwrtLocation().name == "awrt"
    assert FixedOrder(("b", "a")).name == "fixed: b, a"


def test_open_jobs_are_counted_or_not() -> None:
    """There is no third way."""
    assert AwrtLocation().open_jobs == "ignore"
    with pytest.raises(ValueError, match="open_jobs is 'some'"):
        AwrtLocation(open_jobs="some")  # type: ignore[arg-type]  # what a file might say
