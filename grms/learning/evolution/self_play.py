"""Coevolution: one population for each player, evaluated in matches.

A match brings together one individual of each player. The value of an individual depends on its
opponents, so one match says little: a policy may look good with kind partners and be ruined by
others. There are two remedies.

- **Worst case over an archive.** Every individual meets the individuals of this generation, and
  each earlier set of individuals in an archive; its value is the worst of these (Rosin and Belew
  1997, New Methods for Competitive Coevolution, section 4: a hall of fame). The first set of the
  archive never changes: it is the baseline to beat.
- **Sets are chosen, not champions.** The best of each player need not suit each other. So a whole
  meeting has a value too, and the result is the best meeting, whose members are known to suit each
  other. The newest sets of the archive are the best matches so far, so a match of one new
  individual with the others of such a set is a step of that set.

A match is a genome, the players' genes in sequence, so executors, checkpoints and the training
loop are unaffected.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np

from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Figures, Individual, Strategy, check_values

ARCHIVE_MAX: Final = 100
"""Most sets of an archive: each makes a generation longer."""

Match = tuple[Genome, ...]


def joined(match: Sequence[Genome]) -> Genome:
    """Returns the genes of all players side by side, as one genome."""
    return Genome(
        np.concatenate([one.real for one in match]),
        np.concatenate([one.binary for one in match]),
        np.concatenate([one.integer for one in match]),
    )


def parted(genome: Genome, players: int) -> Match:
    """Returns the genome of each player in one made by `joined`; all have the same genes.

    Raises:
        ValueError: the genes cannot be divided evenly.
    """
    columns = genome.real, genome.binary, genome.integer
    if any(len(column) % players for column in columns):
        raise ValueError(
            f"genes {[len(one) for one in columns]} are no meeting of {players} players"
        )
    parts = zip(*(np.split(column, players) for column in columns), strict=True)
    return tuple(Genome(*part) for part in parts)


def _same(one: Match, other: Match) -> bool:
    return joined(one).to_state() == joined(other).to_state()


class SelfPlay(Strategy):
    """A strategy that asks for matches, and is told their value and their cost to each player.

    The first row of the figures of a match is the cost to each player, smaller is better; the
    value is that of the match as a whole.

    Args:
        players: a strategy for each; all ask for the same number of genomes.
        first: the permanent set of the archive.
        archive: maximum number of sets, 1 to `ARCHIVE_MAX`.

    Raises:
        ValueError: there are fewer than two players, or the archive is out of its bounds.
    """

    name = "self-play"

    def __init__(self, players: Sequence[Strategy], first: Match, archive: int = 2) -> None:
        if len(players) < 2:
            raise ValueError(f"{len(players)} player; self-play needs two")
        if len(first) != len(players):
            raise ValueError(f"a set of {len(first)} for {len(players)} players")
        if not 1 <= archive <= ARCHIVE_MAX:
            raise ValueError(f"an archive of {archive} sets; between 1 and {ARCHIVE_MAX} can be")
        self.players = tuple(players)
        self.sets: list[Match] = [tuple(first)]
        self._archive = archive

    @property
    def generation(self) -> int:
        """Generations bred and told so far; founders do not count."""
        return self.players[0].generation

    @property
    def exhausted(self) -> str:
        """Why a player has nothing more to ask; empty while all have."""
        return next((why for player in self.players if (why := player.exhausted)), "")

    def ask(self) -> list[Genome]:
        """Returns the matches of the next generation; the same until `tell`."""
        asked = [player.ask() for player in self.players]
        together = zip(*asked, strict=True)
        others = [
            (*of[:place], one, *of[place + 1 :])
            for of in self.sets
            for place, own in enumerate(asked)
            for one in own
        ]
        return [joined(match) for match in (*together, *others)]

    def tell(self, values: Sequence[float], figures: Sequence[Figures] = ()) -> None:
        """Learns the values of the matches, in order; figures begin with the cost to each player.

        Raises:
            ValueError: there are more or fewer than matches, a number is not finite, or costs are
                missing.
        """
        asked = self.ask()
        check_values(values, len(asked))
        count = len(self.players)
        costs = [row[0] for row in figures if row and len(row[0]) == count]
        if len(costs) != len(asked):
            raise ValueError(f"{len(costs)} of {len(asked)} matches have a cost for each player")
        each = len(asked) // (1 + count * len(self.sets))
        worst = np.array(costs[:each]).T
        for number, row in enumerate(costs[each:]):
            place, one = number // each % count, number % each
            worst[place, one] = max(worst[place, one], row[place])
        for player, own in zip(self.players, worst.tolist(), strict=True):
            player.tell(own)
        if self._keep_best(asked, values) and self._best is not None:
            self._keep(parted(self._best.genome, count))

    def _keep(self, match: Match) -> None:
        # Of a set that is there already a second meeting would say nothing new.
        if any(_same(match, known) for known in self.sets):
            return
        later = [*self.sets[1:], match]
        self.sets = [self.sets[0], *later[max(0, len(later) - self._archive + 1) :]]

    def to_state(self) -> dict[str, Any]:
        """Returns all the strategy knows as plain values that JSON keeps exactly."""
        best = self._best
        return {
            "strategy": self.name,
            "players": [player.to_state() for player in self.players],
            "archive": self._archive,
            "sets": [[one.to_state() for one in match] for match in self.sets],
            "best": None
            if best is None
            else {"genome": best.genome.to_state(), "value": best.value},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], players: Sequence[Strategy]) -> Self:
        """Returns the strategy that `to_state` described; it goes on bit for bit."""
        sets = [tuple(map(Genome.from_state, match)) for match in state["sets"]]
        strategy = cls(players, sets[0], state["archive"])
        strategy.sets = sets
        if (best := state["best"]) is not None:
            strategy._best = Individual(Genome.from_state(best["genome"]), best["value"])
        return strategy
