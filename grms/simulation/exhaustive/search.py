"""All states of a few sites within a bound, and what is found on the way.

Beside what `exploration` looks at, a journal that was compacted has to recover to the same.
"""

from dataclasses import dataclass

from grms.simulation.exhaustive import exploration
from grms.simulation.exhaustive.encoding import StateFactory, durable
from grms.simulation.exhaustive.exploration import Explorer, Label, taken_again
from grms.simulation.exhaustive.model import Bound
from grms.simulation.exhaustive.space import Space
from grms.simulation.exhaustive.stories import Teller
from grms.site.model.compaction import compacted
from grms.site.model.state_tables import StateTables
from grms.site.scheduler.state import SiteState


@dataclass(slots=True)
class Found(exploration.Found):
    """What an exploration of sites has found.

    Attributes:
        actors: of each site; memories: what sites know; nets: sets of messages under way.
        journals: how many journals were compacted and compared.
    """

    actors: tuple[int, ...] = ()
    memories: int = 0
    nets: int = 0
    journals: int = 0


class Search:
    """An exploration; `factory` makes the states of sites, and `all_budgets` is that of `Explorer`."""

    def __init__(
        self, bound: Bound, factory: StateFactory = SiteState, *, all_budgets: bool = False
    ) -> None:
        self.space = Space(bound, factory)
        self.explorer = Explorer(self.space, Found(), all_budgets=all_budgets)

    def run(self, most: int = 100_000_000, *, liveness: bool = True) -> Found:
        """Visits all states, or about `most`; stops at the first violation."""
        found = self.explorer.run(most, liveness=liveness, check=self._check_journals)
        numbers = self.space.numbers
        found.actors = tuple(map(len, numbers.actors))
        found.memories, found.nets = len(numbers.memories), len(numbers.nets)
        found.story = Teller(numbers).lines(found.labels)
        return found

    def _check_journals(self, found: Found) -> None:
        numbers = self.space.numbers
        for settings, actors in zip(self.space.bound.settings, numbers.actors, strict=True):
            for number in sorted({actor.durable for actor in actors}):
                journal = numbers.memories.journal(number)
                shorter = compacted(settings, lambda journal=journal: journal)  # type: ignore[misc]  # a loop's value
                if shorter is None:
                    continue
                memories = []
                for records in (journal, shorter):
                    memory = StateTables(settings)
                    for record in records:
                        memory.apply(record)
                    memories.append(durable(memory))
                found.journals += 1
                if memories[0] != memories[1]:
                    found.violation = f"{settings.name}: a compacted journal recovers to another"
                    return


def explore(
    bound: Bound,
    factory: StateFactory = SiteState,
    *,
    most: int = 100_000_000,
    liveness: bool = True,
    all_budgets: bool = False,
) -> Found:
    """Explores a bound with sites whose states `factory` makes; at most about `most` states."""
    search = Search(bound, factory, all_budgets=all_budgets)
    return search.run(most, liveness=liveness)


def replay(bound: Bound, labels: list[Label], factory: StateFactory = SiteState) -> str:
    """Takes the steps of a story again; returns the violation at its end, empty for none.

    Raises:
        ValueError: a step cannot be taken.
    """
    return taken_again(Space(bound, factory), labels)
