"""Bounds of the broker's settings."""

import math
from typing import Any

import pytest

from broker.scheduler.settings import BrokerSettings


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"cycle": 0.0}, "cycle"),
        ({"slot": math.inf}, "slot"),
        ({"pause": -1.0}, "pause"),
        ({"cycle": math.inf}, "cycle"),
        ({"margin": math.nan}, "margin"),
        ({"margin": math.inf}, "margin"),
        ({"gather": -0.5}, "gather"),
        ({"extension": math.inf}, "extension"),
        ({"extension_max": -0.5}, "extension_max"),
        ({"runs_max": 0}, "runs_max"),
        ({"tasks_max": 0}, "tasks_max"),
        ({"ended_max": -1}, "ended_max"),
    ],
)
def test_a_number_out_of_bounds_is_named(change: dict[str, Any], word: str) -> None:
    """The error has the setting's name."""
    with pytest.raises(ValueError, match=word):
        BrokerSettings(**change)


def test_bounds_themselves_are_possible() -> None:
    """No margin, nothing gathered, no extension, one run, one task, and nothing kept."""
    none: dict[str, Any] = dict.fromkeys(("gather", "margin", "extension", "extension_max"), 0.0)
    settings = BrokerSettings(**none, runs_max=1, tasks_max=1, ended_max=0)
    assert (settings.margin, settings.runs_max, settings.ended_max) == (0.0, 1, 0)


def test_the_paper_plans_every_three_minutes() -> None:
    """Cycle and planning slot are 180 s where nothing else is said."""
    settings = BrokerSettings()
    assert (settings.cycle, settings.slot) == (180.0, 180.0)
