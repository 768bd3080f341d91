"""Networks between sites: how long files take from one to another, and what that costs.

A transfer from one site to another takes the latency and its bytes over the bandwidth; inside a site
everything is at hand. Either it takes that whatever else is under way, which is the model of HEFT
(`broker.model.heft`), or a link, of one site to another, carries one transfer at a time (Sinnen, Sousa:
"Communication Contention in Task Scheduling", IEEE Transactions on Parallel and Distributed Systems 16(6), 2005).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from broker.model.names import check_name

HOME: Final = "home"
"""The site where the inputs of workflows lie if nothing else is said: with who hands them in."""

Contention = Literal["none", "link"]
"""Whether transfers wait for each other: never, or where they go over the same link in the same direction."""

BYTES_MAX: Final = 1e18
"""Of one file; more is a mistake."""

BANDWIDTH_MIN: Final = 1e-6
"""Bytes a second: so the largest file still has an end, far beyond any plan."""

LATENCY_MAX: Final = 1e7
BYTE_PRICE_MAX: Final = 1.0


@dataclass(frozen=True, slots=True)
class Link:
    """A connection of two sites.

    Attributes:
        bandwidth: bytes a second, at least `BANDWIDTH_MIN`; infinite where bytes take no time.
        latency: seconds that a transfer takes in addition.
        price: for a byte.

    Raises:
        ValueError: a number is out of bounds.
    """

    bandwidth: float = math.inf
    latency: float = 0.0
    price: float = 0.0

    def __post_init__(self) -> None:
        if not self.bandwidth >= BANDWIDTH_MIN:
            raise ValueError(
                f"the bandwidth is {self.bandwidth:g}; at least {BANDWIDTH_MIN:g} bytes a second"
            )
        if not 0 <= self.latency <= LATENCY_MAX:
            raise ValueError(f"the latency is {self.latency:g} s; from 0 to {LATENCY_MAX:g}")
        if not 0 <= self.price <= BYTE_PRICE_MAX:
            raise ValueError(f"the price of a byte is {self.price:g}; from 0 to {BYTE_PRICE_MAX:g}")

    def seconds(self, size: float) -> float:
        """Returns how long so many bytes take."""
        return self.latency + size / self.bandwidth


WITHIN: Final = Link()
"""The connection of a site with itself."""


@dataclass(frozen=True, slots=True)
class Network:
    """Sites, and the links between them.

    Attributes:
        default: link of two sites between which there is no other.
        sites: by the name of a resource its site; a resource that is not named is a site of its own.
        links: by source and target.
        inputs: site where files lie that no task makes, if they say nothing else.
        contention: whether transfers over one link wait for each other.
    """

    default: Link
    sites: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[tuple[str, str], Link] = field(default_factory=dict)
    inputs: str = HOME
    contention: Contention = "none"

    def __post_init__(self) -> None:
        if self.contention not in get_args(Contention):
            known = ", ".join(get_args(Contention))
            raise ValueError(f"there is no contention {self.contention!r}; one of {known}")

    @property
    def contended(self) -> bool:
        """Whether a link carries one transfer at a time."""
        return self.contention == "link"

    def site(self, resource: str) -> str:
        """Returns the site of a resource."""
        return self.sites.get(resource, resource)

    def link(self, source: str, target: str) -> Link:
        """Returns how a site is connected with another one, or with itself."""
        if source == target:
            return WITHIN
        return self.links.get((source, target), self.default)

    def check(self, resources: Iterable[str], sites: Iterable[str] = ()) -> None:
        """Checks that links, resources and the place of inputs are of sites that there are.

        Args:
            resources: names of all of them.
            sites: more sites, which may have no resources.

        Raises:
            ValueError: a resource or a site is unknown; the text names it.
        """
        names = set(resources)
        for resource in self.sites:
            if resource not in names:
                raise ValueError(f"there is no resource {resource!r}")
        known = {self.site(name) for name in names} | {HOME, *sites}
        for pair in self.links:
            for site in pair:
                if site not in known:
                    raise ValueError(f"the link between {pair[0]!r} and {pair[1]!r}: {_no(site)}")
        if self.inputs not in known:
            raise ValueError(f"inputs: {_no(self.inputs)}")


def _no(site: str) -> str:
    return f"there is no site {site!r}, nor a resource of that name without a site"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a workflow that its tasks read, and where it comes from.

    Attributes:
        name: unique in its workflow; files of one name are one content.
        size: bytes.
        readers: names of the tasks that need it before they begin.
        maker: the task at whose end it is there, at the site of its primary resource; empty for an input
            of the workflow, which is there from the beginning.
        site: of an input; empty for where `Network.inputs` says.

    Raises:
        ValueError: a name or the size is invalid, or a made file has a site.
    """

    name: str
    size: float
    readers: tuple[str, ...]
    maker: str = ""
    site: str = ""

    def __post_init__(self) -> None:
        check_name("file", self.name)
        if not 0 <= self.size <= BYTES_MAX:
            raise ValueError(
                f"file {self.name!r}: the size is {self.size:g} bytes; from 0 to {BYTES_MAX:g}"
            )
        if self.maker and self.site:
            raise ValueError(
                f"file {self.name!r}: has a task and a site; a task leaves it where it runs"
            )
        if self.maker in self.readers:
            raise ValueError(f"file {self.name!r}: task {self.maker!r} makes and reads it")


@dataclass(frozen=True, slots=True)
class Copy:
    """A file of a workflow that is at a site from a moment on, in seconds."""

    workflow: str
    file: str
    site: str
    since: float
