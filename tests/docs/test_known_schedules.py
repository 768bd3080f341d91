"""The suite for other simulators has what our own tests are held to."""

import runpy
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs/known-schedules"


def test_the_suite_is_that_of_the_tests() -> None:
    """Where it is not: python docs/known-schedules/write.py."""
    made = runpy.run_path(str(FOLDER / "write.py"))
    assert made["SUITE"].read_text(encoding="utf-8") == made["text"]()
    cases = made["suite"]()["cases"]
    assert len(cases) >= 20
    for case in cases:
        assert {len(starts) for starts in case["start_times"].values()} == {len(case["jobs"])}
