"""The notation of arrays and of dependencies."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.util.dependencies import DEPENDENCIES_MAX, Dependency, parse_dependencies
from grms.util.job_arrays import ELEMENTS_MAX, INDEX_MAX, ArraySpec


@given(
    st.lists(st.integers(0, 300), unique=True, min_size=1, max_size=60),
    st.integers(0, 9),
)
def test_indices_go_there_and_back(indices: list[int], limit: int) -> None:
    """What is written is read as the same, and each element is where it is."""
    indices.sort()
    spec = ArraySpec.of(indices, limit)
    assert list(spec) == indices
    assert len(spec) == len(indices)
    assert (spec.first, spec.last) == (indices[0], indices[-1])
    assert [spec.position(index) for index in indices] == list(range(len(indices)))
    assert all(spec.position(index) == -1 for index in range(302) if index not in set(indices))
    assert ArraySpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "indices", "limit", "step", "again"),
    [
        ("0-15:4", [0, 4, 8, 12], 0, 4, "0-12:4"),
        ("1-10%2", list(range(1, 11)), 2, 1, "1-10%2"),
        ("1,3,5-7", [1, 3, 5, 6, 7], 0, 1, "1-5:2,6-7"),
        ("7,5,5-6", [5, 6, 7], 0, 1, "5-7"),
        ("3", [3], 0, 1, "3"),
        ("1,5", [1, 5], 0, 1, "1,5"),
    ],
)
def test_the_notation_of_slurm(
    text: str, indices: list[int], limit: int, step: int, again: str
) -> None:
    """Ranges with steps, lists, and how many at a time."""
    spec = ArraySpec.parse(text)
    assert (list(spec), spec.limit, spec.step, str(spec)) == (indices, limit, step, again)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no index and no range"),
        ("1-", "is no index and no range"),
        ("5-3", "has no elements"),
        ("1-9:0", "has no elements"),
        ("1-3%0", "after % comes how many"),
        ("1-3%x", "after % comes how many"),
        ("-1", "is no index and no range"),
        ("١", "is no index and no range"),
        (f"0-{INDEX_MAX + 1}", "indices ascend to at most"),
        (f"0-{ELEMENTS_MAX}", f"more than {ELEMENTS_MAX} elements"),
        (",".join(["0-59999"] * 50_000), f"more than {ELEMENTS_MAX} elements"),
    ],
)
def test_what_is_no_array(text: str, says: str) -> None:
    """The message shows what is wrong."""
    with pytest.raises(ValueError, match=says):
        ArraySpec.parse(text)


def test_ranges_that_overlap_are_none() -> None:
    """Each element is one."""
    with pytest.raises(ValueError, match="indices ascend"):
        ArraySpec(((0, 4, 1), (4, 5, 1)))
    with pytest.raises(ValueError, match="the limit is -1"):
        ArraySpec(((0, 4, 1),), -1)
    with pytest.raises(ValueError, match="an array of 0 elements"):
        ArraySpec(())


def test_an_element_is_found_at_once_among_irregular_ones() -> None:
    """A site looks up each element of such an array when another follows it element by element."""
    indices = [index for index in range(60_000) if index % 6 in {0, 1, 4}]
    spec = ArraySpec.of(indices)
    assert len(spec.ranges) > 10_000
    before = time.thread_time()
    positions = [spec.position(index) for index in range(60_000)]
    assert time.thread_time() - before < 2.0  # a twentieth of a second where nothing else runs
    assert [position for position in positions if position >= 0] == list(range(len(indices)))
    assert [index for index, position in enumerate(positions) if position >= 0] == indices


def test_dependencies_are_read() -> None:
    """Several of a kind, several kinds; a job alone is waited for however it ends, as with Slurm."""
    found = parse_dependencies("afterok:a-12:a-13_4,singleton,a-14,afterok:a-12")
    assert [str(each) for each in found] == [
        "afterok:a-12",
        "afterok:a-13_4",
        "singleton",
        "afterany:a-14",
    ]
    assert found[-1] == Dependency("afterany", "a-14")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("afterok:a-1?afterany:a-2", "alternatives"),
        ("afterok", "afterok needs a job"),
        ("singleton:a-1", "goes without a job"),
        ("after:a-1", "is none that a site knows; there are afterok"),
        ("expand:a-1", "is none that a site knows"),
        ("afterok:", "is no job"),
        ("afterok:a-1,", "is none that a site knows"),
        ("afterok:" + ":".join(f"a-{n}" for n in range(DEPENDENCIES_MAX + 1)), "at most 1000"),
    ],
)
def test_what_is_no_dependency(text: str, says: str) -> None:
    """The message shows what there is."""
    with pytest.raises(ValueError, match=says):
        parse_dependencies(text)
