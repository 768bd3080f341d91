"""Writes the suite of known schedules as JSON: `python docs/known-schedules/write.py`."""

import json
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1] / "tests/lrms_sim"
SUITES = {
    HERE / "known-schedules.json": TESTS / "known_schedules",
    HERE / "known-node-schedules.json": TESTS / "known_node_schedules",
    HERE / "known-readings.json": TESTS / "known_readings",
}
"""The folder with the cases of each suite: machines of processors, machines of nodes, and other readings."""


def suite(sources: Path) -> dict[str, Any]:
    """Returns all cases of a folder, by the names of the files in which they are kept."""
    cases = [
        {"name": path.stem, **tomllib.loads(path.read_text(encoding="utf-8"))}
        for path in sorted(sources.glob("*.toml"))
    ]
    return {"version": 1, "cases": cases}


def text(sources: Path) -> str:
    """Returns a suite as it is published."""
    return json.dumps(suite(sources), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


if __name__ == "__main__":
    for path, sources in SUITES.items():
        path.write_text(text(sources), encoding="utf-8")
