"""Models of what is shown: fields made of dataclasses."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError, create_model

from lrms_sim.cli.output_models import OutputModel, fields_of


@dataclass(frozen=True)
class Pair:
    """A number that has a meaning, and one that may have none."""

    count: int
    mean: float


def test_a_figure_may_have_no_meaning() -> None:
    """A float may be null, nothing else; and there are no other fields."""
    made: Any = create_model("made", __base__=OutputModel, **fields_of(Pair))
    assert made.model_validate({"count": 1, "mean": None}).model_dump() == {
        "count": 1,
        "mean": None,
    }
    for bad in ({"count": None, "mean": 1.0}, {"count": 1}, {"count": 1, "mean": 1.0, "more": 2}):
        with pytest.raises(ValidationError):
            made.model_validate(bad)
