"""What rules can look at, beside the two features of paper 003.

The paper's rules look at the queue (NWP) and at the job's width (NJP). Within rails a decision reads
two further numbers, and rules may look at them too: the time that the job requests, and whether the
site's own batch system would start it at once (docs/rule-bases.md). Both are asked in the same way in
a replay, in a site's core and in its daemon (docs/information-policy.md).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from lrms_sim.spelling import unknown

PAPER_FEATURES: Final = (
    {"name": "nwp", "definition": "waiting processors / site processors", "scale": 1},
    {"name": "njp", "definition": "job processors / site processors", "scale": 100},
)
"""The features of every rule, in their order, with the factor each is multiplied by."""


@dataclass(frozen=True, slots=True)
class FurtherFeature:
    """A feature that rules within rails may look at.

    Attributes:
        name: in files and in `grms.policy.transfer.Rule`.
        word: on the command line.
        heading: for tables.
        definition: what it is, for files.
        start: genes of its γ and σ begin between 0 and this.
        step: standard deviation of their mutation where the strategy does not adapt it: the
            thousandth part of `start`, as for the paper's features.
    """

    name: str
    word: str
    heading: str
    definition: str
    start: float
    step: float

    @property
    def document(self) -> Mapping[str, Any]:
        """What a rule base's file says of it."""
        return {"name": self.name, "definition": self.definition, "scale": 1}


REQUESTED_TIME: Final = FurtherFeature(
    "requested_time",
    "requested-time",
    "request, lg s",
    "decimal logarithm of the requested time in seconds, at least 0",
    start=6.0,
    step=0.006,
)
STARTS_NOW: Final = FurtherFeature(
    "starts_now",
    "starts-now",
    "starts now",
    "1 where the site would start the job at once, else 0",
    start=1.0,
    step=0.001,
)

FURTHER_FEATURES: Final[Mapping[str, FurtherFeature]] = MappingProxyType(
    {one.name: one for one in (REQUESTED_TIME, STARTS_NOW)}
)
"""All of them by their name, in the order in which files and genomes have them."""

FEATURE_WORDS: Final = tuple(one.word for one in FURTHER_FEATURES.values())
"""What they are called on the command line."""


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Returns names of further features once each, in their order.

    Raises:
        ValueError: there is no such feature.
    """
    wanted = set(names)
    for name in sorted(wanted - set(FURTHER_FEATURES)):
        raise ValueError(unknown("feature", name, tuple(FURTHER_FEATURES)))
    return tuple(name for name in FURTHER_FEATURES if name in wanted)
