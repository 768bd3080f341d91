"""Workloads of a scenario file."""

import dataclasses
from typing import Any, get_args

import pytest

from lrms_sim.workload.preparation import PreparationOptions
from scenarios.spec.workloads import PreparationSpec, WindowSpec


def test_preparation_offers_what_the_preparation_offers() -> None:
    """Names, defaults and choices are those of `PreparationOptions`, but for jobs that run over their requests."""
    assert PreparationSpec().options == PreparationOptions()
    names = [option.name for option in dataclasses.fields(PreparationOptions)]
    assert list(PreparationSpec.model_fields) == names
    hints = dict(PreparationOptions.__annotations__)
    overruns = get_args(PreparationSpec.model_fields["overrun"].annotation)
    assert {*overruns, "run"} == set(get_args(hints.pop("overrun")))
    for name, hint in hints.items():
        assert PreparationSpec.model_fields[name].annotation == hint
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
