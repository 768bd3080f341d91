"""The suites for other simulators have what our own tests are held to."""

import runpy
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs/known-schedules"


def test_the_suites_are_those_of_the_tests() -> None:
    """Where they are not: python docs/known-schedules/write.py."""
    made = runpy.run_path(str(FOLDER / "write.py"))
    assert {path.name for path in made["SUITES"]} == {path.name for path in FOLDER.glob("*.json")}
    for path, sources in made["SUITES"].items():
        assert path.read_text(encoding="utf-8") == made["text"](sources)
        cases = made["suite"](sources)["cases"]
        assert len(cases) >= 3
        for case in cases:
            assert {len(starts) for starts in case["start_times"].values()} == {len(case["jobs"])}
