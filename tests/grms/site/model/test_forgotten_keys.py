"""Keys of forgotten jobs."""

from hypothesis import given
from hypothesis import strategies as st

from grms.site.model.forgotten_keys import ForgottenKeys, ForgottenReservationKeys

NAMES = st.text(max_size=3)


def test_a_key_is_a_user_s_own() -> None:
    """However the two are put together."""
    keys = ForgottenKeys(10, 60.0)
    keys.add("ann", "e1", 7, 0.0)
    assert keys.number("ann", "e1") == 7
    assert keys.number("anne", "1") == 0
    assert keys.number("an", "ne1") == 0


def test_a_key_may_be_any_text() -> None:
    """Also one that is none in UTF-8, as a program may have made it."""
    keys = ForgottenKeys(10, 60.0)
    keys.add("ann", "\udce4", 7, 0.0)
    assert [keys.number("ann", key) for key in ("\udce4", "\udce5", "ä")] == [7, 0, 0]


def test_a_key_is_kept_for_a_time() -> None:
    """And is dropped when another comes after that."""
    keys = ForgottenKeys(10, 60.0)
    keys.add("ann", "a", 1, 0.0)
    keys.add("ann", "b", 2, 60.0)
    assert keys.number("ann", "a") == 1
    keys.add("ann", "c", 3, 60.5)
    assert [keys.number("ann", key) for key in "abc"] == [0, 2, 3]


@given(
    st.lists(st.tuples(NAMES, NAMES, st.integers(1, 5), st.sampled_from([0.0, 1.0, 50.0]))),
    st.integers(1, 4),
)
def test_only_the_last_ones_are_kept(told: list[tuple[str, str, int, float]], most: int) -> None:
    """In the order in which they were forgotten, also a key of two jobs; and they are made again from their rows."""
    keys, now = ForgottenKeys(most, 60.0), 0.0
    last: dict[tuple[str, str], tuple[int, float]] = {}
    for user, key, number, pause in told:
        now += pause
        keys.add(user, key, number, now)
        last.pop((user, key), None)
        last[user, key] = number, now
    expected = [row for row in last.items() if row[1][1] >= now - 60.0][-most:]
    assert [row[1:] for row in keys.rows()] == [kept for _, kept in expected]
    for (user, key), (number, _) in expected:
        assert keys.number(user, key) == number
    again = ForgottenKeys(most, 60.0)
    again.restore(keys.rows())
    assert again.rows() == keys.rows()


def test_keys_of_reservations_are_dropped_only_when_there_are_too_many_and_they_are_old() -> None:
    """What would need more room than that is refused; the moment itself is not old yet."""
    keys = ForgottenReservationKeys(2, 60.0)
    for number, moment in ((1, 0.0), (2, 1.0)):
        assert keys.has_room(1, moment)
        keys.add("ann", f"k{number}", number, moment)
    assert keys.has_room(0, 1.0)
    for moment, one, two, three in (
        (60.0, False, False, False),
        (60.5, True, False, False),
        (61.0, True, False, False),
        (61.5, True, True, False),
    ):
        assert [keys.has_room(more, moment) for more in (1, 2, 3)] == [one, two, three]
    keys.add("ann", "k3", 3, 60.0)
    assert [row[1] for row in keys.rows()] == [1, 2, 3]
    keys.add("ann", "k4", 4, 61.0)
    assert [row[1] for row in keys.rows()] == [2, 3, 4]
    keys.add("ann", "k5", 5, 500.0)
    assert [row[1] for row in keys.rows()] == [4, 5]
