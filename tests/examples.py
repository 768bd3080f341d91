"""How many examples a property is tried with."""

from typing import Final

from hypothesis import settings

FEW: Final = settings(max_examples=max(20, settings().max_examples // 4))
"""For a property whose single example takes tens of milliseconds, most of them for drawing it: a
quarter of the profile's examples, each of which has many of the thing the property is about."""
