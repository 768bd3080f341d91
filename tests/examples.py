"""How many examples a property is tried with, and how many seeds a loop."""

import os
from typing import Final

from hypothesis import settings

THOROUGH: Final = os.environ.get("HYPOTHESIS_PROFILE", "") == "thorough"
"""Whether this is `make test-thorough`, which has the time that `make test` has not."""

FEW: Final = settings(max_examples=max(10, settings().max_examples // 4))
"""For a property whose single example takes tens of milliseconds, most of them for drawing it: a
quarter of the profile's examples, each of which has many of the thing the property is about."""


def runs(usual: int, thorough: int) -> int:
    """Returns how often a loop over seeds or a long input is gone through: the first is `make test`."""
    return thorough if THOROUGH else usual
