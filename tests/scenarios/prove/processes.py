"""Which processes live."""

import contextlib
import os
from pathlib import Path


def named_in_commands(word: str) -> list[str]:
    """Returns the command lines of other processes in which a word is."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if word in words:
                    found.append(words)
    return found
