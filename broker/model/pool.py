"""Resources for workflows, by kind, and their requirements."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from broker.model.resources import Resource
from broker.model.workflow import Alternative, Demand, cycle_words, find_cycle

KIND_DEFAULT: Final = "cpu"
"""Default kind of resource that a task runs on."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The resources, and what else using one of them takes.

    Attributes:
        resources: their order breaks ties.
        requires: by the name of a resource, what it takes in addition (co-allocation), which may
            have requirements of its own.

    Raises:
        ValueError: requirements form a circle; the text names the resources.
    """

    resources: tuple[Resource, ...]
    requires: Mapping[str, tuple[Demand, ...]]
    _known: dict[tuple[frozenset[str], int], tuple[Alternative, ...]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _known_of: dict[tuple[str, int], Alternative] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        graph = {
            name: [each.resource for each in demands if each.resource in self.requires]
            for name, demands in self.requires.items()
        }
        if cycle := find_cycle(graph):
            raise ValueError(f"resources require each other: {cycle_words(cycle)}")

    def alternatives(self, kinds: Iterable[str], units: int = 1) -> tuple[Alternative, ...]:
        """Returns an alternative per resource of the kinds with at least `units` units.

        Tasks with the same wishes share one tuple: tens of thousands of tasks on hundreds of resources would
        be gigabytes otherwise.
        """
        key = frozenset(kinds), units
        if key not in self._known:
            self._known[key] = tuple(
                self.alternative(resource.name, units)
                for resource in self.resources
                if resource.kind in key[0] and resource.capacity >= units
            )
        return self._known[key]

    def alternative(self, name: str, units: int = 1) -> Alternative:
        """Returns the alternative of a resource together with everything it requires.

        Requirements are followed transitively, nearest first. A resource required in several ways is
        held once, with the largest of these units.
        """
        if (name, units) not in self._known_of:
            self._known_of[name, units] = self._alternative(name, units)
        return self._known_of[name, units]

    def _alternative(self, name: str, units: int) -> Alternative:
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
