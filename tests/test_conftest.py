"""In which order `make test` goes through the tests."""

from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import TESTS, WAITING, dealt


def test_what_waits_is_there() -> None:
    """A file that was renamed would wait where it stands."""
    assert [name for name in WAITING if not (TESTS / name).is_file()] == []
    assert len(set(WAITING)) == len(WAITING)


def begins(order: list[str], workers: int) -> list[str]:
    """Returns with which test each worker begins."""
    found = []
    at, left = 0, len(order)
    for worker in range(workers):
        found.append(order[at])
        share = left // (workers - worker)
        at, left = at + share, left - share
    return found


def test_every_other_worker_begins_with_what_waits() -> None:
    """The longest come first, and the tests of a file stay together."""
    waiting = [["a1", "a2"], ["b"], ["c1", "c2", "c3"], ["d"], ["e"]]
    others = [str(number) for number in range(30)]
    assert dealt(waiting, others, 1) == ["a1", "a2", "b", "c1", "c2", "c3", "d", "e", *others]
    order = dealt(waiting, others, 4)
    assert begins(order, 4) == ["a1", "3", "b", "20"]
    assert order[:7] == ["a1", "a2", "c1", "c2", "c3", "e", "0"]
    assert order[18:22] == ["b", "d", "12", "13"]


@given(
    st.lists(st.lists(st.integers(), max_size=4), max_size=8),
    st.lists(st.integers(), max_size=30),
    st.integers(1, 9),
)
def test_no_test_is_left_out(waiting: list[list[int]], others: list[int], workers: int) -> None:
    """However few there are."""
    numbered = list(enumerate(others))
    kept = [list(enumerate(each, 100 * (1 + number))) for number, each in enumerate(waiting)]
    order = dealt(kept, numbered, workers)
    assert sorted(order) == sorted([*numbered, *(one for each in kept for one in each)])
    assert [one for one in order if one[0] < 100] == numbered
