"""The table `[circuit_breaker]` of a site's file."""

import math
import tomllib

import pytest
from pydantic import ValidationError

from grms.policy.circuit_breaker import CircuitBreaker
from grms.site.config.circuit_breaker_table import CircuitBreakerConfig, circuit_breaker_of
from grms.site.config.schema import SiteConfig


def read(text: str) -> CircuitBreakerConfig:
    """Returns the table of a file."""
    return CircuitBreakerConfig.model_validate(tomllib.loads(text))


def test_an_empty_table_is_a_circuit_breaker_with_the_standard_numbers() -> None:
    """Two per cent in three months, with a hundred jobs, looked at every hour."""
    assert read("").circuit_breaker == CircuitBreaker(0.02, 90 * 86400.0, 100, 3600.0, -math.inf)


def test_every_number_can_be_said() -> None:
    """Spans are texts as everywhere; the moment is a date or seconds on the clock."""
    text = 'cost = 0.05\nwindow = "30d"\njobs = 20\nevery = "10min"\nsince = '
    assert read(text + "2026-01-01T01:00:00+01:00").circuit_breaker == CircuitBreaker(
        0.05, 30 * 86400.0, 20, 600.0, 1_767_225_600.0
    )
    assert read(text + "1800").circuit_breaker.since == 1800.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cost = 2.0", "less than or equal to 1"),
        ("jobs = 0", "greater than or equal to 1"),
        ('window = "soon"', "no span of time"),
        ('every = "10s"', "at least 1min"),
        ("since = 2026-01-01T00:00:00", "no zone; write 2026-01-01T00:00:00Z"),
        ("since = nan", "finite"),
        ("percent = 2", "Extra inputs"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    """In the words that a user reads."""
    with pytest.raises(ValidationError, match=said):
        read(text)


def test_a_site_has_no_circuit_breaker_unless_it_says_so_and_none_in_a_replay() -> None:
    """A virtual clock does not go on by itself."""
    document = {
        "name": "home",
        "processors": 8,
        "listen": {"users": "/run/home.sock"},
        "journal": {"path": "/run/home.journal"},
    }
    assert circuit_breaker_of(SiteConfig.model_validate(document).circuit_breaker) is None
    guarded = {**document, "circuit_breaker": {"jobs": 5}}
    assert circuit_breaker_of(SiteConfig.model_validate(guarded).circuit_breaker) == CircuitBreaker(
        jobs=5
    )
    with pytest.raises(ValidationError, match="a virtual clock stands still"):
        SiteConfig.model_validate({**guarded, "clock": {"kind": "virtual"}})
