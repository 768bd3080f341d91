"""Two daemons under one name: when they are found, and that restarts are not taken for it."""

from hypothesis import given
from hypothesis import strategies as st

from grms.site.peers.instances import COMES_BACK, KNOWN_MAX, SPACING_S, WINDOW_S, Instances
from tests.grms.hand_clock import Clock


def heard(*instances: int, every_s: float = 10.0) -> tuple[Instances, Clock]:
    """Returns what was heard at such an interval."""
    clock = Clock()
    found = Instances(clock)
    for instance in instances:
        found.heard(instance)
        clock.now += every_s
    return found, clock


def test_two_that_alternate_are_found_until_one_is_silent_for_long() -> None:
    """Both have to come back often enough; what is older than the window does not count."""
    pair = [1, 2] * (COMES_BACK + 1)
    assert not heard(*pair[:-1])[0].duplicated
    found, clock = heard(*pair)
    assert found.duplicated
    clock.now += WINDOW_S
    assert not found.duplicated
    assert not heard(*pair, every_s=WINDOW_S / 2)[0].duplicated


def test_who_does_not_say_it_is_never_found() -> None:
    """As with partners of older versions, beside one that does."""
    assert not heard(*[0, 0, 1, 0, 1] * 10)[0].duplicated


def test_what_comes_all_at_once_counts_once() -> None:
    """As where this site has stood still while questions of a dead daemon, and of the next, have come."""
    assert not heard(*[1, 2] * 50, every_s=SPACING_S / 1000)[0].duplicated


@given(st.lists(st.tuples(st.integers(1, 6), st.booleans(), st.booleans()), max_size=30))
def test_restarts_are_not_taken_for_it(lives: list[tuple[int, bool, bool]]) -> None:
    """However many follow: of each daemon that has died a question and an answer come late at most."""
    said: list[int] = []
    for number, (times, question, answer) in enumerate(lives, 1):
        said.append(number)
        for late in (question, answer):
            said += [number - 1] * late + [number] * times
    assert not heard(*said)[0].duplicated


def test_no_more_is_remembered_than_is_bounded() -> None:
    """A daemon that starts again and again fills no memory."""
    found, _ = heard(*range(1, 1000))
    assert len(found._returns) == KNOWN_MAX
