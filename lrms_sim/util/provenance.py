"""Which program made a file: the commit of its source, where that is known."""

import shutil
import subprocess
from pathlib import Path


def source_commit(folder: Path | None = None) -> str | None:
    """Returns the commit of the program's source, with `-dirty` if it was changed.

    `None` if the program was not loaded from a repository or git is missing. The default folder is
    that of this module.
    """
    root = Path(__file__).resolve().parents[2] if folder is None else folder
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(  # noqa: S603  # a fixed command line, nothing of a user's in it
            [git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
