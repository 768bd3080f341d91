"""How many connections a door beside the main ones may take."""

import resource

import pytest

from grms.daemon.process import LEAST, PART, beside


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        (64, 64 // PART),
        (1024, 64),
        (1_000_000, 64),
        (PART, LEAST),
        (resource.RLIM_INFINITY, 64),
    ],
)
def test_a_door_has_a_small_part(limit: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the descriptors that the process may have, so that the rest is there for users and partners."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert beside(64) == most
