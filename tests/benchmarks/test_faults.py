"""How runs of the fault test are added up, by commit, and gone on with."""

from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest

from benchmarks.faults import (
    CHUNK,
    LONGEST,
    SETTLED,
    SHARES,
    Kind,
    Record,
    Tally,
    chunks,
    features,
    replayed_by,
    work,
)

RUNS_OF: dict[Kind, int] = {"alone": 20, "together": 10, "mixed": 5}


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


@pytest.mark.parametrize("order", list(permutations(RUNS_OF)))
def test_each_kind_of_run_has_a_place_of_its_own(tmp_path: Path, order: tuple[Kind, ...]) -> None:
    """No kind drops what another has; the longest waits are no sums."""
    path = tmp_path / "faults.json"
    for kind in order:
        one = Record(path, {"commit": "c1"}, "wait", anew=True, kind=kind)
        for first, longest in ((0, 3.25), (10, 2.0)):
            told = tally(RUNS_OF[kind])
            told.longest, told.settled = longest, 10 * longest
            one.add(range(first, first + 10), told, 0.5)
        one.write()
    for kind, count in RUNS_OF.items():
        again = Record(path, {"commit": "c1"}, "wait", anew=False, kind=kind)
        assert again.next_seed == 20
        figures = again.figures
        assert (figures["runs"], figures[LONGEST], figures[SETTLED]) == (2 * count, 3.2, 32.5)


def test_mixed_runs_have_each_in_a_share_of_them_and_the_same_again() -> None:
    """Rounds and returns in all; a run is replayed with what it had."""
    drawn = [features(seed, "mixed") for seed in range(400)]
    assert drawn == [features(seed, "mixed") for seed in range(400)]
    assert all(one["reoffers"] and one["returns"] for one in drawn)
    for name, share in SHARES.items():
        assert abs(sum(bool(dict(one)[name]) for one in drawn) / 400 - share) < 0.1
    assert features(7, "alone", returns=True) == {
        **dict.fromkeys(("rails", "rogues", "one_way", "account"), False),
        **dict.fromkeys(("reoffers", "returns"), True),
    }
    told = replayed_by(7, "wait", features(7, "together"))
    assert told == "python -m grms.simulation --seed 7 --on-lost wait --rails --reoffers --rogues"


def test_a_chunk_of_mixed_runs_is_as_it_has_to_be() -> None:
    """With figures of what only calls out, and of when all had ended."""
    told = work(range(3_000_000, 3_000_012), on_lost="wait", kind="mixed")
    assert not told.problems
    assert told.counts["runs"] == told.counts["with returns"] == 12
    assert told.counts["blocked"] > 0
    assert 0.0 < told.settled <= 600.0
