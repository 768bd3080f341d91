"""Programs that tests run to their ends."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run_program(words: Sequence[str | Path], **more: Any) -> "subprocess.CompletedProcess[str]":
    """Returns what a program has printed, and how it ended.

    Args:
        words: the program and its arguments.
        more: for `subprocess.run`; without `check` it may end as it likes.
    """
    settings = {"capture_output": True, "text": True, "check": False, **more}
    return subprocess.run(words, **settings)  # noqa: PLW1510, S603  # `check` is given; tests choose their programs
