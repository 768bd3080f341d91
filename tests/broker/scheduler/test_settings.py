"""Bounds of the broker's settings."""

import math
import re
from typing import Any

import pytest

from broker.scheduler.settings import BrokerSettings


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cycle": 0.0}, "the cycle is 0.0 s; it must be more than 0 and finite"),
        ({"slot": math.inf}, "the slot is inf s; it must be more than 0 and finite"),
        ({"pause": -1.0}, "the pause is -1.0 s; it must be more than 0 and finite"),
        ({"cycle": math.inf}, "the cycle is inf s; it must be more than 0 and finite"),
        ({"margin": math.nan}, "the margin is nan s; it must be at least 0 and finite"),
        ({"margin": math.inf}, "the margin is inf s; it must be at least 0 and finite"),
        ({"gather": -0.5}, "the gather is -0.5 s; it must be at least 0 and finite"),
        ({"extension": math.inf}, "extension is inf; it must be at least 0 and finite"),
        ({"extension_max": -0.5}, "extension_max is -0.5; it must be at least 0 and finite"),
        ({"runs_max": 0}, "runs_max is 0; it must be at least 1"),
        ({"tasks_max": 0}, "tasks_max is 0; it must be at least 1"),
        ({"ended_max": -1}, "ended_max is -1; it must be at least 0"),
    ],
)
def test_a_number_out_of_bounds_is_named(change: dict[str, Any], says: str) -> None:
    """The error has the setting's name, and what is possible."""
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
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
