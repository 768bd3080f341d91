from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.planner._chromosome import checked
from broker.planner._crossovers import OPERATORS, apply_operator

Parts = tuple[list[int], list[int], int]
CROSSOVERS = ("one point", "n point", "exchange", "order 3", "order n", "relink")


@st.composite
def chromosomes(draw: st.DrawFn, count: int) -> Parts:
    """Draws a chromosome of so many genes."""
    genes = draw(st.permutations(range(count)))
    lengths: list[int] = []
    while sum(lengths) < count:
        lengths.append(draw(st.integers(1, count - sum(lengths))))
    return list(genes), lengths, draw(st.integers(0, 2))


@st.composite
def couples(draw: st.DrawFn) -> tuple[Parts, Parts]:
    """Draws two chromosomes of the same genes."""
    count = draw(st.integers(1, 30))
    return draw(chromosomes(count)), draw(chromosomes(count))


@given(couples(), st.sampled_from(OPERATORS), st.integers(0, 2**64 - 1), st.integers(1, 12))
def test_every_operator_keeps_a_chromosome_one(
    couple: tuple[Parts, Parts], name: str, seed: int, points: int
) -> None:
    """Every gene stays there once, no segment is empty, and the same seed gives the same child."""
    child = apply_operator(name, *couple, seed, points)
    checked(child)
    assert apply_operator(name, *couple, seed, points) == child
    if name in CROSSOVERS:
        assert child[2] == couple[0][2]


@given(couples(), st.sampled_from(CROSSOVERS), st.integers(0, 2**32))
def test_parents_that_are_alike_have_children_like_them(
    couple: tuple[Parts, Parts], name: str, seed: int
) -> None:
    """A crossover of a chromosome with itself changes its sequence by one segment at most."""
    parent = couple[0]
    genes, _, strategy = apply_operator(name, parent, parent, seed)
    assert strategy == parent[2]
    if name != "exchange":
        assert genes == parent[0]


@given(couples(), st.integers(0, 2**32))
def test_order_crossover_takes_everything_from_somewhere(
    couple: tuple[Parts, Parts], seed: int
) -> None:
    """Two genes that the parents have in the same order stay in it, where places are refilled."""
    first, second = couple
    genes, lengths, _ = apply_operator("order 3", first, second, seed)
    assert lengths == first[1]
    refilled = [gene for gene, old in zip(genes, first[0], strict=True) if gene != old]
    order = [second[0].index(gene) for gene in refilled]
    assert order == sorted(order)


@given(couples(), st.integers(0, 10), st.integers(0, 2**32))
def test_relinking_goes_a_part_of_the_way(
    couple: tuple[Parts, Parts], tenths: int, seed: int
) -> None:
    """What both parents have in the same order stays in it; so many of the other pairs change it."""
    first, second = couple
    genes, lengths, _ = apply_operator("relink", first, second, seed, tenths)
    assert lengths == first[1]
    old, new, aim = (
        {gene: place for place, gene in enumerate(each)} for each in (first[0], genes, second[0])
    )
    pairs = list(combinations(range(len(genes)), 2))
    differ = [(a, b) for a, b in pairs if (old[a] < old[b]) != (aim[a] < aim[b])]
    turned = [(a, b) for a, b in pairs if (old[a] < old[b]) != (new[a] < new[b])]
    assert set(turned) <= set(differ)
    assert len(turned) == int(tenths / 10 * len(differ))


def parents() -> tuple[Parts, Parts]:
    """Returns two chromosomes for goldens."""
    return (list(range(12)), [4, 5, 3], 0), (list(range(11, -1, -1)), [6, 2, 4], 2)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_does_what_its_name_says(name: str) -> None:
    """Each mutation changes what it should of genes, segments and strategy, and nothing else."""
    first, second = parents()
    seen = [apply_operator(name, first, second, seed) for seed in range(40)]
    genes_change = {"shift", "move", "move and merge", "invert", *CROSSOVERS}
    assert any(child[0] != first[0] for child in seen) == (name in genes_change)
    assert any(child[2] != first[2] for child in seen) == (name == "strategy")
    counts = {len(child[1]) for child in seen}
    if name in {"move", "invert", "border", "strategy"}:
        assert counts == {3}
    if name in {"merge", "move and merge"}:
        assert counts == {2}
    if name == "split":
        assert counts == {4}
    if name == "move":
        assert all(sorted(child[1]) == [3, 4, 5] for child in seen)
    if name == "cut":
        assert all(4 <= length <= 10 for child in seen for length in child[1][:-1])


@pytest.mark.parametrize(
    "wrong",
    [
        ([], [], 0),
        ([0, 0], [2], 0),
        ([0, 1], [1], 0),
        ([0, 1], [2, 0], 0),
        ([0, 1], [2], 6),
        ([1, 2], [2], 0),
    ],
)
def test_what_is_no_chromosome_is_refused(wrong: Parts) -> None:
    """Missing genes, empty segments and unknown strategies never reach an operator."""
    with pytest.raises(ValueError, match=r"gene|segment|strategy"):
        apply_operator("shift", wrong, wrong, 0)


def test_operators_have_names() -> None:
    """There is no operator of another name, nor a crossover of chromosomes of different length."""
    first, second = parents()
    with pytest.raises(ValueError, match="no operator"):
        apply_operator("fly", first, second, 0)
    with pytest.raises(ValueError, match="12 and 1 genes"):
        apply_operator("order 3", first, ([0], [1], 0), 0)
