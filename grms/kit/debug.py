"""The switch by which a daemon checks its own memory after every event."""

import os
from typing import Final

CHECK: Final = "HANSE_CHECK"
"""The variable of the environment; 1 switches the checks on. They cost time with every job kept."""


def checks_wanted() -> bool:
    """Returns whether this process is to check what must always hold, after every event."""
    return os.environ.get(CHECK, "") not in {"", "0"}
