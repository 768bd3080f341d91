"""The switch for checking a daemon's memory after every event."""

import os
from typing import Final

CHECK: Final = "HANSE_CHECK"
"""Environment variable; 1 enables the checks, which cost time with every job kept."""


def checks_wanted() -> bool:
    """Returns whether this process is to check what must always hold, after every event."""
    return os.environ.get(CHECK, "") not in {"", "0"}
