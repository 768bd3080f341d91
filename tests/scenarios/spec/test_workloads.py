"""Workloads of a scenario file."""

import dataclasses
from typing import Any

import pytest

from lrms_sim.workload.preparation import PreparationOptions
from scenarios.spec.workloads import PreparationSpec, WindowSpec


def test_preparation_offers_what_the_preparation_offers() -> None:
    """Names, defaults and choices are those of `PreparationOptions`."""
    assert PreparationSpec().options == PreparationOptions()
    names = [option.name for option in dataclasses.fields(PreparationOptions)]
    assert list(PreparationSpec.model_fields) == names
    hints = PreparationOptions.__annotations__
    for name, option in PreparationSpec.model_fields.items():
        assert option.annotation == hints[name]
    assert PreparationSpec(overrun="extend").options.overrun == "extend"


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ({}, "the whole log"),
        ({"last_day": 150}, "before day 150"),
        ({"first_day": 0.5, "first_jobs": 1000}, "from day 0.5, the first 1,000 jobs"),
    ],
)
def test_windows_are_said_in_words(window: dict[str, Any], words: str) -> None:
    """The words are those of reports and tables."""
    assert WindowSpec(**window).words == words
