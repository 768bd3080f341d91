"""Values of which very many are made."""

import copy
import pickle

from grms.site.model.lifecycle import JobState
from grms.util.values import QuickEnum, dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A place."""

    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Named(Point):
    """A place with a name."""

    name: str = ""


class Way(QuickEnum):
    """A direction."""

    UP = "up"
    DOWN = "down"


def test_values_are_compared_and_hashed_by_their_fields() -> None:
    """As those of the standard library that are frozen; the kinds are never mixed."""
    assert Point(1) == Point(1, 0) != Point(2)
    assert Point(1) != Named(1)
    assert len({Point(1), Point(1, 0), Named(1), Named(1, name="a")}) == 3
    assert repr(Named(1, name="a")) == "Named(x=1, y=0, name='a')"
    assert not hasattr(Named(1), "__dict__")
    assert pickle.loads(pickle.dumps(Named(1, 2, "a"))) == Named(1, 2, "a")  # noqa: S301  # our own


def test_members_are_found_by_identity() -> None:
    """In tables and sets, after copies, and after a way through bytes."""
    table = {Way.UP: 1, Way.DOWN: 2}
    assert table[Way("up")] == 1
    assert copy.deepcopy(Way.UP) is Way.UP
    assert pickle.loads(pickle.dumps(table)) == table  # noqa: S301  # our own
    assert hash(JobState.ENDED) == object.__hash__(JobState.ENDED)
