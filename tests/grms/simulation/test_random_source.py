from collections import Counter

from grms.simulation.random_source import RandomSource


def test_the_same_seed_gives_the_same_numbers() -> None:
    """A run can be replayed; seeds and purposes have streams of their own."""
    first = [RandomSource(5).uniform() for _ in range(2)]
    assert first[0] == first[1]
    streams = [RandomSource(seed, purpose) for seed in (5, 6) for purpose in (0, 1)]
    assert len({stream.uniform() for stream in streams}) == 4


def test_draws_keep_to_their_bounds() -> None:
    """Both ends of a range of whole numbers are possible; chances are as likely as said."""
    draws = RandomSource(1)
    assert set(Counter(draws.integer(2, 4) for _ in range(1000))) == {2, 3, 4}
    assert all(1.0 <= draws.between(1.0, 3.0) < 3.0 for _ in range(1000))
    assert all(draws.exponential(2.0) >= 0 for _ in range(1000))
    assert 200 < sum(draws.chance(0.3) for _ in range(1000)) < 400


def test_an_impossible_chance_takes_no_draw() -> None:
    """Switching a fault off does not shift the stream of the others."""
    one, other = RandomSource(1), RandomSource(1)
    assert not one.chance(0.0)
    assert one.uniform() == other.uniform()
