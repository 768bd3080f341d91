"""Further features for rules, besides the two of paper 003.

The paper's rules use the queue (NWP) and the job's width (NJP). Within constraints, rules may also use
numbers that a decision reads anyway: the requested time of the job, whether the site's own batch
system would start it at once, and on machines of nodes the job's shares of memory and GPUs
(docs/rule-bases.md). A replay, a site's core and its daemon obtain
both in the same way (docs/information-policy.md).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from lrms_sim.util.messages import unknown

PAPER_FEATURES: Final = (
    {"name": "nwp", "definition": "waiting processors / site processors", "scale": 1},
    {"name": "njp", "definition": "job processors / site processors", "scale": 100},
)
"""The features of every rule, in order, with the factor each is multiplied by."""


@dataclass(frozen=True, slots=True)
class FurtherFeature:
    """A feature that rules within constraints may use.

    Attributes:
        name: in files and in `grms.policy.transfer.Rule`.
        start: initial range of the genes of its γ and σ, from 0.
        step: standard deviation of their mutation if the strategy does not adapt it: a thousandth of
            `start`, as for the paper's features.
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
MEMORY_SHARE: Final = FurtherFeature(
    "memory_share",
    "memory-share",
    "memory, %",
    "100 times the job's memory over the memory of the site's nodes; 0 where it is not counted",
    start=100.0,
    step=0.1,
)
GPU_SHARE: Final = FurtherFeature(
    "gpu_share",
    "gpu-share",
    "GPUs, %",
    "100 times the job's GPUs over the GPUs of the site's nodes; 0 where there are none",
    start=100.0,
    step=0.1,
)
DOMINANT_SHARE: Final = FurtherFeature(
    "dominant_share",
    "dominant-share",
    "dominant, %",
    "the largest of NJP, memory_share and gpu_share",
    start=100.0,
    step=0.1,
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
    {one.name: one for one in (REQUESTED_TIME, MEMORY_SHARE, GPU_SHARE, DOMINANT_SHARE, STARTS_NOW)}
)
"""By name, in the order of files and genomes."""

FEATURE_WORDS: Final = tuple(one.word for one in FURTHER_FEATURES.values())


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Returns names of further features without duplicates, in their order.

    Raises:
        ValueError: there is no such feature.
    """
    wanted = set(names)
    for name in sorted(wanted - set(FURTHER_FEATURES)):
        raise ValueError(unknown("feature", name, tuple(FURTHER_FEATURES)))
    return tuple(name for name in FURTHER_FEATURES if name in wanted)
