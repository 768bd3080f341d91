"""Networks in files: the table `[network]`; docs/workflows.md describes it."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError, model_validator

from broker.model.network import (
    BANDWIDTH_MIN,
    BYTE_PRICE_MAX,
    BYTES_MAX,
    HOME,
    LATENCY_MAX,
    Contention,
    Link,
    Network,
)
from broker.util.errors import FileError
from grms.daemon.config_base import Model, wrong
from grms.daemon.config_errors import mistakes_of
from lrms_sim.util.file_errors import Mistake

SITES_MAX: Final = 10_000
LINKS_MAX: Final = 100_000

Name = Annotated[str, Field(min_length=1, max_length=4096)]
Bytes = Annotated[float, Field(ge=0, le=BYTES_MAX, allow_inf_nan=False)]
Bandwidth = Annotated[float, Field(ge=BANDWIDTH_MIN, le=BYTES_MAX, allow_inf_nan=False)]
Latency = Annotated[float, Field(ge=0, le=LATENCY_MAX, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, le=BYTE_PRICE_MAX * 1e9, allow_inf_nan=False)]


class LinkTable(Model):
    """How two sites are connected.

    Attributes:
        bandwidth: bytes a second.
        latency_s: of a transfer, in addition.
        price_per_gb: of 10⁹ bytes.
    """

    bandwidth: Bandwidth
    latency_s: Latency = 0.0
    price_per_gb: Price = 0.0

    def link(self) -> Link:
        """Returns it as planned with."""
        return Link(self.bandwidth, self.latency_s, self.price_per_gb / 1e9)


class PairTable(LinkTable):
    """A link of two sites: `between` both ways, or one way only by `source` and `target`."""

    between: Annotated[list[Name], Field(min_length=2, max_length=2)] | None = None
    source: Name | None = None
    target: Name | None = None

    @model_validator(mode="after")
    def _check_ends(self) -> "PairTable":
        one_way = self.source is not None and self.target is not None
        if (self.source is None) != (self.target is None) or one_way == (self.between is not None):
            raise wrong("needs between, a list of two sites, or source and target")
        first, second = self.pairs()[0]
        if first == second:
            raise wrong(f"goes from {first!r} to itself; within a site everything is at hand")
        return self

    def pairs(self) -> list[tuple[str, str]]:
        """Returns source and target, for each direction that it is of."""
        if self.between is not None:
            first, second = self.between
            return [(first, second), (second, first)]
        assert self.source is not None, "checked above"
        assert self.target is not None, "same"
        return [(self.source, self.target)]


class NetworkTable(LinkTable):
    """What files take from site to site: between any two, and between those of `links`.

    Attributes:
        sites: by name the resources there; a resource that is of none is a site of its own.
        inputs: site where files are that no task makes; with who hands workflows in by default.
        contention: whether transfers wait for each other; `"link"` where those over one link in one direction do.
    """

    sites: Annotated[dict[Name, list[Name]], Field(max_length=SITES_MAX)] = {}  # noqa: RUF012  # pydantic copies it
    links: Annotated[list[PairTable], Field(max_length=LINKS_MAX)] = []  # noqa: RUF012  # same
    inputs: Name = HOME
    contention: Contention = "none"

    @model_validator(mode="after")
    def _check_once(self) -> "NetworkTable":
        first: dict[str, str] = {}
        for site, resources in self.sites.items():
            for name in resources:
                if first.setdefault(name, site) != site:
                    raise wrong(f"sites: {name!r} is at {first[name]!r} and {site!r}")
        seen = set()
        for pair in (pair for link in self.links for pair in link.pairs()):
            if pair in seen:
                raise wrong(f"links: there are two from {pair[0]!r} to {pair[1]!r}")
            seen.add(pair)
        return self

    def network(
        self, resources: Iterable[str] | None, sites: Mapping[str, str] | None = None
    ) -> Network:
        """Returns it as planned with.

        Args:
            resources: names of all resources; `None` if they are not known yet, and may change.
            sites: by resource its site, where the table says nothing of it.

        Raises:
            ValueError: a site or a resource is unknown.
        """
        by_resource = {name: site for site, names in self.sites.items() for name in names}
        links = {pair: link.link() for link in self.links for pair in link.pairs()}
        known = (*self.sites, *(sites or {}).values())
        found = Network(
            self.link(), {**(sites or {}), **by_resource}, links, self.inputs, self.contention
        )
        if resources is not None:
            found.check(resources, known)
        return found


class _NetworkFile(Model):
    network: NetworkTable


def parse_network(document: Mapping[str, Any], *, file: str) -> NetworkTable:
    """Returns the network of a decoded file that has nothing else.

    Raises:
        FileError: it breaks the format.
    """
    if "network" not in document:
        text = "is missing: a table [network] with the bandwidth, in bytes a second"
        raise FileError(file, [Mistake("network", text)])
    try:
        return _NetworkFile.model_validate(document).network
    except ValidationError as error:
        raise FileError(file, mistakes_of(error, document, _NetworkFile)) from None
