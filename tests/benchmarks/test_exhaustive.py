"""The command that explores, and the figures that are kept."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import exhaustive


def test_a_bound_is_explored_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its figures in one line."""
    monkeypatch.setattr(sys, "argv", ["exhaustive", "--bound", "no fault", "--dry"])
    assert exhaustive.main() == 0
    assert capsys.readouterr().out.startswith("no fault: 26 states, 40 transitions, ")


def test_figures_are_kept_with_the_commit_as_it_was_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file to which they go is part of the commit, and would make it dirty."""
    kept = tmp_path / "figures.json"
    monkeypatch.setattr(exhaustive, "FIGURES", kept)
    monkeypatch.setattr(
        exhaustive, "machine", lambda: {"commit": "0a1b-dirty" if kept.exists() else "0a1b"}
    )
    twice = [one for one in exhaustive.ALL if one.name in {"no fault", "reservations: no fault"}]
    monkeypatch.setattr(exhaustive, "ALL", twice)
    monkeypatch.setattr(sys, "argv", ["exhaustive"])
    assert exhaustive.main() == 0
    found = json.loads(kept.read_text(encoding="utf-8"))
    assert [one["machine"] for one in found.values()] == [{"commit": "0a1b"}] * 2
    assert found["no fault"]["states"] == 26


def test_an_unknown_bound_is_refused_with_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that a slip is no success."""
    monkeypatch.setattr(sys, "argv", ["exhaustive", "--bound", "nothing"])
    assert exhaustive.main() == 1
    assert "home dies" in capsys.readouterr().out.split("\n")


def test_names_are_given_once() -> None:
    """Figures are kept by them."""
    names = [one.name for one in exhaustive.ALL]
    assert len(set(names)) == len(names)


def test_figures_are_of_bounds_that_there_are() -> None:
    """Complete ones without a violation, each with machine and commit."""
    kept = json.loads(exhaustive.FIGURES.read_text(encoding="utf-8"))
    assert set(kept) <= {one.name for one in exhaustive.ALL}
    assert {"both die, loss, duplicate"} <= set(kept)
    for name, one in kept.items():
        assert one["violations"] == 0, name
        assert one["complete"], name
        assert one["machine"]["commit"], name
