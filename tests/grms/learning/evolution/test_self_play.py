from typing import Any

import numpy as np
import pytest

from grms.learning.evolution.catalog import new_strategy
from grms.learning.evolution.genes import GeneSpace, Genome
from grms.learning.evolution.self_play import SelfPlay, joined, parted
from grms.learning.evolution.strategies import StrategySettings
from tests.training_grids import check_resumed

SPACE = GeneSpace(np.zeros(2), np.full(2, 4.0), np.full(2, 0.2), binaries=1)
ZERO = Genome(np.zeros(2), np.array([False]))
PLAYERS = 3


def self_play(seed: int = 1, archive: int = 2, offspring: int = 4) -> SelfPlay:
    settings = StrategySettings(parents=2, offspring=offspring)
    players = [
        new_strategy("self-adaptive", SPACE, settings, PLAYERS * seed + place, [ZERO])
        for place in range(PLAYERS)
    ]
    return SelfPlay(players, (ZERO,) * PLAYERS, archive)


def costs(genome: Genome) -> tuple[float, ...]:
    """Each player wants its first gene to be 3, and its neighbour's second one to be 0."""
    parts = parted(genome, PLAYERS)
    return tuple(
        (one.real[0] - 3.0) ** 2 + abs(parts[(place + 1) % PLAYERS].real[1])
        for place, one in enumerate(parts)
    )


def step(strategy: SelfPlay) -> list[Genome]:
    asked = strategy.ask()
    found = [costs(genome) for genome in asked]
    strategy.tell([sum(one) for one in found], [(one,) for one in found])
    return asked


def test_a_meeting_is_the_genomes_side_by_side() -> None:
    """Joined and parted again nothing is changed."""
    genomes = [
        Genome(np.arange(2.0) + i, np.array([i % 2 == 0]), np.array([i, 7])) for i in range(3)
    ]
    again = parted(joined(genomes), 3)
    assert [one.to_state() for one in again] == [one.to_state() for one in genomes]
    with pytest.raises(ValueError, match="are no meeting of 4 players"):
        parted(joined(genomes), 4)


def test_everybody_meets_this_generation_and_each_set_of_the_archive() -> None:
    """With a set, one player at a time is new."""
    strategy = self_play()
    step(strategy)
    step(strategy)
    assert len(strategy.sets) == 2
    asked = [parted(genome, PLAYERS) for genome in strategy.ask()]
    own = [player.ask() for player in strategy.players]
    assert len(asked) == 4 * (1 + PLAYERS * 2)
    states = [[one.to_state() for one in match] for match in asked]
    assert states[:4] == [[one.to_state() for one in match] for match in zip(*own, strict=True)]
    number = 4
    for known in strategy.sets:
        for place in range(PLAYERS):
            for one in own[place]:
                expected = list(known)
                expected[place] = one
                assert states[number] == [each.to_state() for each in expected]
                number += 1


def test_the_worst_meeting_counts() -> None:
    """A player is told the worst of what its individual met; others' costs do not matter."""

    class Told:
        generation, exhausted = 0, ""
        values: list[float]

        def ask(self) -> list[Genome]:
            return [ZERO, ZERO]

        def tell(self, values: list[float]) -> None:
            self.values = values

    players: list[Any] = [Told(), Told()]
    strategy = SelfPlay(players, (ZERO, ZERO), archive=1)
    together = [((1.0, 5.0),), ((2.0, 6.0),)]
    first = [((4.0, 90.0),), ((1.5, 90.0),)]  # the first player meets the archive
    second = [((90.0, 4.0),), ((90.0, 7.0),)]
    strategy.tell([1.0] * 6, [*together, *first, *second])
    assert [player.values for player in players] == [[4.0, 2.0], [5.0, 7.0]]


def test_the_best_meeting_is_found_and_kept_in_the_archive() -> None:
    """The first set stays for good; the others are the best matches, the newest last."""
    strategy = self_play(archive=3)
    best = []
    for _ in range(40):
        step(strategy)
        assert strategy.best is not None
        best.append(strategy.best.value)
        assert len(strategy.sets) <= 3
        assert all(one is ZERO for one in strategy.sets[0])
    assert best == sorted(best, reverse=True)
    assert strategy.best is not None
    assert joined(strategy.sets[-1]).to_state() == strategy.best.genome.to_state()
    assert best[-1] < 2.0 < best[0]


def test_what_all_have_to_beat_is_not_met_twice() -> None:
    """While the first set is the best meeting of all the archive has nothing else."""
    strategy = self_play()
    asked = strategy.ask()
    strategy.tell([1.0 + (i > 0) for i in range(len(asked))], [((1.0,) * PLAYERS,)] * len(asked))
    assert strategy.best is not None
    assert strategy.best.genome.to_state() == joined(strategy.sets[0]).to_state()
    assert len(strategy.sets) == 1


def test_it_goes_on_bit_for_bit() -> None:
    """From plain values that went through JSON, after the founders and amid a run."""
    for generations in (1, 4):
        strategy = self_play(seed=5)
        check_resumed(strategy, step, told=generations, asked=False)
        assert strategy.generation == generations + 2
        told = (strategy.name, strategy.bound, strategy.exhausted)
        assert told == ("self-play", float("inf"), "")


@pytest.mark.parametrize(
    ("players", "first", "archive", "complaint"),
    [
        (1, 1, 2, "1 player; self-play needs two"),
        (3, 2, 2, "a set of 2 for 3 players"),
        (2, 2, 0, "an archive of 0 sets; between 1 and 100"),
        (2, 2, 101, "an archive of 101 sets"),
    ],
)
def test_what_cannot_be_is_refused(players: int, first: int, archive: int, complaint: str) -> None:
    """With the number that is wrong."""
    some = self_play().players
    with pytest.raises(ValueError, match=complaint):
        SelfPlay(some[:players], (ZERO,) * first, archive)


def test_costs_that_are_missing_are_refused() -> None:
    """A value alone does not say who has lost."""
    strategy = self_play()
    count = len(strategy.ask())
    with pytest.raises(ValueError, match=f"0 of {count} matches have a cost for each player"):
        strategy.tell([1.0] * count)
    with pytest.raises(ValueError, match=f"1 values for {count} genomes"):
        strategy.tell([1.0])
