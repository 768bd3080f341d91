"""Writes the suite of known schedules as JSON: `python docs/known-schedules/write.py`."""

import json
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "tests/lrms_sim/known_schedules"
SUITE = HERE / "known-schedules.json"


def suite() -> dict[str, Any]:
    """Returns all cases, by the names of the files in which they are kept."""
    cases = [
        {"name": path.stem, **tomllib.loads(path.read_text(encoding="utf-8"))}
        for path in sorted(SOURCES.glob("*.toml"))
    ]
    return {"version": 1, "cases": cases}


def text() -> str:
    """Returns the suite as it is published."""
    return json.dumps(suite(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


if __name__ == "__main__":
    SUITE.write_text(text(), encoding="utf-8")
