"""The resources that workflows can be planned onto, by kind, and what belongs to each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, cycle_words, find_cycle

KIND_DEFAULT: Final = "cpu"
"""Kind of resource that a task runs on where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The resources there are, and what using one of them takes besides.

    Attributes:
        resources: their order breaks ties.
        requires: by the name of a resource, what it takes besides (co-allocation), which may
            require more in its turn; of resources that are not here, nothing.

    Raises:
        ValueError: resources require each other in a circle; the text names them.
    """

    resources: tuple[Resource, ...]
    requires: Mapping[str, tuple[Demand, ...]]

    def __post_init__(self) -> None:
        """Checks that following what is required comes to an end."""
        graph = {
            name: [each.resource for each in demands if each.resource in self.requires]
            for name, demands in self.requires.items()
        }
        if cycle := find_cycle(graph):
            raise ValueError(f"resources require each other: {cycle_words(cycle)}")

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
        """Returns the alternative of a resource together with all that it requires.

        That is what it requires itself, what each of these requires, and so on; the nearest come
        first. What is required in several ways is held once, with the most units of these.
        """
        held = {name: units}
        following = [name]
        for each in following:
            for demand in self.requires.get(each, ()):
                if demand.resource not in held:
                    following.append(demand.resource)
                held[demand.resource] = max(demand.units, held.get(demand.resource, 0))
        return Alternative(tuple(Demand(each, held[each]) for each in following))

    @property
    def kinds(self) -> list[str]:
        """The kinds there are, each once."""
        return list(dict.fromkeys(resource.kind for resource in self.resources))
