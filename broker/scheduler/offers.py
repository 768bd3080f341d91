"""What a site offers for reservation, and how much of its time others hold.

A site reports when its resources are free, whoever holds the rest. The broker's own bookings are
subtracted, so that they never block its plans.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from broker.model.resources import Resource, join


@dataclass(frozen=True, slots=True)
class ResourceOffer:
    """A resource that a site offers.

    Attributes:
        labels_kind: whether the site says of which kind it is.
        free: begin, end and units of each stretch of time with any units free, seconds.
        groups: whether programs can be launched there in groups.
    """

    resource: Resource
    labels_kind: bool = False
    free: tuple[tuple[float, float, int], ...] = ()
    groups: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Units of a resource that the broker holds from `begin` to `end`, in seconds."""

    begin: float
    end: float
    units: int


def learned(known: Resource, offer: ResourceOffer) -> Resource:
    """Returns a resource as its site now describes it.

    Speed and size are the site's, as are price and kind if it gives any. Hours, price rules and the
    name are the broker's own.
    """
    said = offer.resource
    return Resource(
        known.name,
        said.kind if offer.labels_kind else known.kind,
        said.performance,
        said.price or known.price,
        known.price_rules,
        known.calendar,
        said.capacity,
        known.utc_offset,
    )


def held_by_others(
    offer: ResourceOffer, own: Iterable[Held], begin: float, end: float
) -> Sequence[tuple[float, float]]:
    """Returns when others hold all that the broker does not hold itself: joined spans in order.

    `offer` is the site's for the window from `begin` to `end`, in seconds; `own` is what the broker
    holds there.
    """
    mine = [each for each in own if each.end > begin and each.begin < end]
    edges = {begin, end}
    edges.update(edge for left, right, _ in offer.free for edge in (left, right))
    edges.update(edge for each in mine for edge in (each.begin, each.end))
    spans = []
    for left, right in pairwise(sorted(edge for edge in edges if begin <= edge <= end)):
        free = sum(units for a, b, units in offer.free if a <= left and right <= b)
        ours = sum(each.units for each in mine if each.begin <= left and right <= each.end)
        if free + ours <= 0:
            spans.append((left, right))
    return join(spans)
