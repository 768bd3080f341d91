"""What all benchmarks begin and end with: options, and figures that say where they were measured."""

import argparse
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

HERE: Final = Path(__file__).parent


def options_of(text: str | None) -> argparse.ArgumentParser:
    """Returns a parser of options that shows a module's docstring as it stands."""
    return argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def keep(path: Path, document: Any) -> None:
    """Writes figures, and says so."""
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"written: {path}")


def _commit() -> str:
    git = partial(subprocess.run, cwd=HERE, capture_output=True, text=True, check=False)
    commit = git(["git", "describe", "--always"]).stdout.strip()
    # Figures of what was measured before are no change of the code.
    code = ":/", ":(top,exclude)benchmarks/*.json"
    changed = git(["git", "diff", "--quiet", "HEAD", "--", *code]).returncode == 1
    return f"{commit}-dirty" if changed else commit


def machine() -> dict[str, object]:
    """Returns what the figures were measured on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": _commit(),
        "measured": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
