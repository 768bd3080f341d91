"""How runs of the fault test are added up, by commit, and gone on with."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.faults import CHUNK, LONGEST, Record, Tally, chunks


def record(path: Path, commit: str = "c1", *, anew: bool = False) -> Record:
    return Record(path, {"commit": commit}, "wait", anew)


def tally(runs: int, problems: int = 0) -> Tally:
    found: dict[int, tuple[str, ...]] = dict.fromkeys(range(problems), ("lost",))
    return Tally(Counter(runs=runs, jobs=6 * runs), found)


def test_every_seed_is_in_one_piece() -> None:
    """Also the last ones, where their number is no multiple."""
    pieces = chunks(7, 7 + 2 * CHUNK + 1)
    assert [seed for piece in pieces for seed in piece] == list(range(7, 8 + 2 * CHUNK))
    assert [len(piece) for piece in pieces] == [CHUNK, CHUNK, 1]
    assert chunks(5, 5) == []


def test_runs_go_on_after_the_last_seed(tmp_path: Path) -> None:
    """One commit has one part, another commit the next; figures are sums over both."""
    path = tmp_path / "faults.json"
    first = record(path)
    assert first.next_seed == 0
    first.add(range(250), tally(250), 2.0)
    first.add(range(250, 300), tally(50, 1), 0.5)
    first.write()
    again = record(path)
    assert again.next_seed == 300
    again.add(range(300, 310), tally(10), 0.1)
    again.write()
    other = record(path, "c2")
    other.add(range(310, 320), tally(10), 0.1)
    assert [(part["machine"]["commit"], part["first"], part["next"]) for part in other.parts] == [
        ("c1", 0, 310),
        ("c2", 310, 320),
    ]
    figures = other.figures
    assert (figures["runs"], figures["jobs"], figures["problems"]) == (320, 1920, 1)
    assert round(figures["seconds"], 3) == 2.7
    assert [path.name for path in tmp_path.iterdir()] == ["faults.json"]


def test_other_runs_are_not_added(tmp_path: Path) -> None:
    """Those before a start anew, and those of the other way to deal with lost partners."""
    path = tmp_path / "faults.json"
    first = record(path)
    first.add(range(250), tally(250), 2.0)
    first.write()
    assert record(path, anew=True).parts == []
    assert Record(path, {"commit": "c1"}, "resubmit", anew=False).next_seed == 0


@pytest.mark.parametrize("together_first", [False, True])
def test_runs_with_all_together_have_a_place_of_their_own(
    tmp_path: Path, together_first: bool
) -> None:
    """Neither kind drops what the other has; the longest wait is no sum."""
    path = tmp_path / "faults.json"
    for together in (together_first, not together_first):
        one = Record(path, {"commit": "c1"}, "wait", anew=True, together=together)
        for first, longest in ((0, 3.25), (10, 2.0)):
            told = tally(10 if together else 20)
            told.longest = longest
            one.add(range(first, first + 10), told, 0.5)
        one.write()
    for together, total in ((False, 40), (True, 20)):
        again = Record(path, {"commit": "c1"}, "wait", anew=False, together=together)
        assert again.next_seed == 20
        assert (again.figures["runs"], again.figures[LONGEST]) == (total, 3.2)
