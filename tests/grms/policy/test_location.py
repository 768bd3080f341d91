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
