"""What is said of a daemon's memory, and the probe in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import heap


def test_growth_is_that_of_the_second_half() -> None:
    """By jobs, and not by time: the first jobs fill what is remembered."""
    ended = [float(number) for number in range(1000)]
    samples = [
        {
            "at": float(at),
            "private": 5000.0 * min(at, 400) + 30.0 * at,
            "given_out": 7.0,
            "free": 30.0 * at,
            "objects": 100.0 - at,
        }
        for at in range(0, 1200, 20)
    ]
    found = heap.growth(ended, samples)
    assert found["private"][0] == found["free"][0] == 30.0
    assert found["given_out"] == [0.0, 0.0, 0.0]
    assert found["objects"][0] == -1.0


def test_too_few_samples_say_nothing() -> None:
    """A short run ends in words, and not in a slope of two points."""
    samples = [{"at": 1.0, **dict.fromkeys(heap.FIGURES, 0.0)}] * 3
    with pytest.raises(ValueError, match="samples say nothing"):
        heap.growth([0.0, 2.0], samples)


PROGRAM = """
import os, sys, time
path = os.environ["HANSE_HEAP_LOG"]
def lines():
    return open(path).read().splitlines() if os.path.exists(path) else []
while not lines():
    time.sleep(0.02)
kept = [bytearray(1000) for _ in range(20_000)]
seen = len(lines())
while len(lines()) < seen + 2:
    time.sleep(0.02)
"""


def test_a_process_writes_down_what_it_has(tmp_path: Path) -> None:
    """Twenty thousand objects more, of a thousand bytes each, are seen in each figure but for what is free."""
    log = tmp_path / "log"
    changed = {"PYTHONPATH": str(heap.PROBE), "HANSE_HEAP_LOG": str(log)}
    subprocess.run(  # noqa: S603  # its own text
        [sys.executable, "-P", "-c", PROGRAM], env=os.environ | changed, check=True, timeout=60
    )
    first, *_, last = (json.loads(line) for line in log.read_text().splitlines())
    assert last["objects"] - first["objects"] >= 20_000
    assert last["given_out"] - first["given_out"] >= 20_000_000
    assert last["private"] - first["private"] >= 20_000_000
