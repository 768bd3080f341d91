from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.model.resources import Calendar, PriceRule, Resource, WeeklyWindow
from broker.scheduler.offers import Held, ResourceOffer, held_by_others, learned

SPANS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 10), st.integers(1, 3)), max_size=6
).map(lambda found: [(float(b), float(b + n), units) for b, n, units in found])


@given(SPANS, SPANS)
def test_others_hold_what_is_neither_free_nor_ours(
    others: list[tuple[float, float, int]], ours: list[tuple[float, float, int]]
) -> None:
    """At every moment exactly where the site has nothing free and we have nothing."""
    capacity = sum(units for _, _, units in (*others, *ours)) or 1
    capacity = max(1, capacity // 2)

    def at(spans: list[tuple[float, float, int]], moment: float) -> int:
        return sum(units for begin, end, units in spans if begin <= moment < end)

    free = []
    for second in range(50):
        units = capacity - at(others, second) - at(ours, second)
        if units > 0:
            free.append((float(second), second + 1.0, units))
    offer = ResourceOffer(Resource("a", capacity=capacity), free=tuple(free))
    held = [Held(*each) for each in ours]
    spans = held_by_others(offer, held, 0.0, 50.0)
    for second in range(50):
        taken = any(begin <= second < end for begin, end in spans)
        assert taken == (at(ours, second) == 0 and at(others, second) >= capacity)
    assert all(a[1] < b[0] for a, b in pairwise(spans)), "joined, in order"


def test_others_may_hold_the_whole_window_or_its_edges() -> None:
    """What they hold beyond it is cut off where it begins and ends."""
    for free, spans in (
        ((), ((10, 90),)),
        (((20, 80, 1),), ((10, 20), (80, 90))),
        (((0, 100, 1),), ()),
    ):
        offer = ResourceOffer(Resource("a"), free=free)
        assert tuple(held_by_others(offer, (), 10, 90)) == spans


def test_a_site_says_speed_and_size_and_the_broker_keeps_the_rest() -> None:
    """Price and kind are the site's where it says any; hours and price rules are the broker's."""
    window = WeeklyWindow(0.0, 3600.0)
    known = Resource(
        "mine", "cpu", 1.0, 2.0, (PriceRule(1.0, window),), Calendar((window,)), 1, 3600.0
    )
    said = Resource("a", "gpu", performance=4.0, capacity=8)
    assert learned(known, ResourceOffer(said)) == Resource(
        "mine", "cpu", 4.0, 2.0, known.price_rules, known.calendar, 8, 3600.0
    )
    dear = Resource("a", "gpu", price=9.0)
    found = learned(known, ResourceOffer(dear, labels_kind=True))
    assert (found.kind, found.price) == ("gpu", 9.0)
