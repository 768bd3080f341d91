"""Looks for processes that a test may have left behind."""

from pathlib import Path


def running_with(word: str) -> list[int]:
    """Returns the processes that have a word in their command line and still run."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if word in line and "serve" in line and state != "Z":
            found.append(int(folder.name))
    return found
