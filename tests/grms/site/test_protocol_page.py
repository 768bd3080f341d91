"""docs/protocol.md says what the code does."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from grms.site.model import records
from grms.site.model.lifecycle import (
    GUEST_BEGINNING,
    GUEST_MOVES,
    JOB_BEGINNING,
    JOB_MOVES,
    RESERVATION_BEGINNING,
    RESERVATION_MOVES,
    JobState,
    ReservationState,
)
from grms.site.model.settings import Limits

PAGE = Path(__file__).resolve().parents[3] / "docs" / "protocol.md"

State = JobState | ReservationState


def diagram(moves: Mapping[State, Mapping[State, str]], beginnings: Sequence[State]) -> str:
    """Returns the diagram of a table of moves."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {state.name}" for state in beginnings]
    for state, targets in moves.items():
        lines += [f"    {state.name} --> {to.name}: {why}" for to, why in targets.items()]
        if not targets:
            lines.append(f"    {state.name} --> [*]")
    return "\n".join([*lines, "```"])


@pytest.mark.parametrize(
    ("moves", "beginnings"),
    [
        (JOB_MOVES, JOB_BEGINNING),
        (GUEST_MOVES, GUEST_BEGINNING),
        (RESERVATION_MOVES, RESERVATION_BEGINNING),
    ],
)
def test_the_diagrams_are_drawn_from_the_tables(
    moves: Mapping[State, Mapping[State, str]], beginnings: Sequence[State]
) -> None:
    """Every move is in the picture, with its reason, and no other."""
    expected = diagram(moves, beginnings)
    assert expected in PAGE.read_text(encoding="utf-8"), f"the page should have:\n{expected}"


def test_every_limit_is_explained() -> None:
    """The page says what happens at each limit."""
    text = PAGE.read_text(encoding="utf-8")
    assert {field.name for field in fields(Limits) if f"`{field.name}`" not in text} == set()


def test_every_record_that_is_named_exists() -> None:
    """What the page calls a record is one; handlers are named for what they handle."""
    text = PAGE.read_text(encoding="utf-8")
    found = set(re.findall(r"\b(?:Job|Guest|Reservation)[A-Z]\w+", text))
    named = {name for name in found if not name.endswith("Handler")}
    assert len(named) > 8
    assert {name for name in named if not hasattr(records, name)} == set()
