import pytest

from grms.policy.location import AwrtLocation, FixedOrder


def test_a_fixed_order_names_each_partner_once() -> None:
    """A name that comes twice is refused."""
    with pytest.raises(
        ValueError, match=r"^partner 'a' comes twice in the order \('a', 'b', 'a'\)$"
    ):
        FixedOrder(("a", "b", "a"))


def test_location_policies_have_names_for_people() -> None:
    """Reports print these."""
    assert AwrtLocation().name == "awrt"
    assert AwrtLocation(open_jobs="count").name == "awrt-open"
    assert FixedOrder(("b", "a")).name == "fixed: b, a"


def test_open_jobs_are_counted_or_not() -> None:
    """There is no third way."""
    assert AwrtLocation().open_jobs == "ignore"
    assert not AwrtLocation().count_open
    assert AwrtLocation(open_jobs="count").count_open
    assert not FixedOrder(("a",)).count_open
    with pytest.raises(ValueError, match=r"^open_jobs is 'some'; it must be 'ignore' or 'count'$"):
        AwrtLocation(open_jobs="some")  # type: ignore[arg-type]  # what a file might say


def test_a_policy_among_fewer_partners() -> None:
    """A fixed order leaves out those that are not there; the other one has no names in it."""
    assert FixedOrder(("c", "a", "b")).among({"a", "c"}) == FixedOrder(("c", "a"))
    assert AwrtLocation(open_jobs="count").among({"a"}) == AwrtLocation(open_jobs="count")
    assert AwrtLocation().order is None
