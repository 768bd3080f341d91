"""The resources that workflows can be planned onto, by kind, and what belongs to each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from broker.resources import Resource
from broker.workflow import Alternative, Demand

KIND_DEFAULT: Final = "cpu"
"""Kind of resource that a task runs on where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The resources there are, and what using one of them takes besides.

    Attributes:
        resources: their order breaks ties.
        requires: by the name of a resource, what is held together with it (co-allocation); of
            resources that are not here, nothing.
    """

    resources: tuple[Resource, ...]
    requires: Mapping[str, tuple[Demand, ...]]

    def alternatives(self, kinds: Iterable[str], units: int = 1) -> tuple[Alternative, ...]:
        """Returns one alternative for each resource of the kinds that is large enough.

        Args:
            kinds: of the primary resource.
            units: of it.
        """
        wanted = frozenset(kinds)
        return tuple(
            self.alternative(resource.name, units)
            for resource in self.resources
            if resource.kind in wanted and resource.capacity >= units
        )

    def alternative(self, name: str, units: int = 1) -> Alternative:
        """Returns the alternative of a resource together with what it requires."""
        return Alternative((Demand(name, units), *self.requires.get(name, ())))

    @property
    def kinds(self) -> list[str]:
        """The kinds there are, each once."""
        return list(dict.fromkeys(resource.kind for resource in self.resources))
