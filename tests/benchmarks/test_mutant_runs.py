"""Mutants of a tiny module: what its tests find, and what is said of that."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.mutant_runs import ENDLESS, FOUND, LIVES
from benchmarks.mutants import State, report
from benchmarks.mutation import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]

MODULE = """
from threading import Event


def limit():
    return (lambda: 3 if 1 < 2 else 4)


LIMIT = limit()()


def count(number):
    steps = 0
    while steps != number:
        steps += 1
    return steps


def larger(a, b):
    return a > b


def within(a):
    return a <= LIMIT


def told():
    event = Event()
    event.set()
    return event
"""
"""A change of `count` never ends, one of `told` lets its test wait for ever; `larger` has a bound that no
test looks at; `limit` runs once, before there is a test."""

TESTS = """
from small import count, larger, told, within


def test_count():
    assert count(3) == 3


def test_larger():
    assert larger(2, 1)
    assert not larger(1, 2)


def test_within():
    assert within(3)
    assert not within(4)


def test_told():
    assert told().wait()
"""

SCRIPT = """
import json, sys
from pathlib import Path
import benchmarks.mutant_runs as runs
from benchmarks.mutation import mutants_of

runs.LEAST_S, runs.IDLE_S = 0.9, 2  # seconds for what does not end
runs.prepare()
mutants = mutants_of("small", Path.cwd())
own = {"small.py": "test_small.py"}
for mutant, fate in runs.results(mutants, ["test_small.py"], own, 2):
    print(json.dumps([mutant.place, mutant.change, fate]))
"""


def run(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (folder / "small.py").write_text(MODULE, encoding="utf-8")
    (folder / "test_small.py").write_text(tests, encoding="utf-8")
    paths = {"PYTHONPATH": f"{ROOT}:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    few = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_timeout"}
    return subprocess.run(  # noqa: S603  # this interpreter
        [sys.executable, "-c", SCRIPT],
        cwd=folder,
        env={**os.environ, **paths, **few},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_mutant_has_its_fate(tmp_path: Path) -> None:
    """What a test notices is found, what loops is ended, and only what no test looks at lives."""
    done = run(tmp_path, TESTS)
    assert done.returncode == 0, done.stderr
    fates = {
        (place, change): fate
        for place, change, fate in map(json.loads, done.stdout.split("\n")[:-1])
    }
    assert fates == {
        ("limit", "return lambda: 3 if 1 < 2 else 4 → return None"): FOUND,
        ("limit", "1 < 2 → 1 <= 2"): LIVES,
        ("count", "steps != number → steps == number"): FOUND,
        ("count", "steps += 1 → pass"): ENDLESS,
        ("count", "return steps → return None"): FOUND,
        ("larger", "return a > b → return None"): FOUND,
        ("larger", "a > b → a >= b"): LIVES,
        ("within", "return a <= LIMIT → return None"): FOUND,
        ("within", "a <= LIMIT → a < LIMIT"): FOUND,
        ("told", "event.set() → pass"): ENDLESS,
        ("told", "return event → return None"): FOUND,
    }
    assert (tmp_path / "small.py").read_text(encoding="utf-8") == MODULE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.py", "test_small.py"]


def test_tests_that_fail_anyway_are_named(tmp_path: Path) -> None:
    """With a test that fails as it is, nothing can be said of mutants, and the test is named."""
    done = run(tmp_path, TESTS + "\n\ndef test_wrong():\n    assert count(1) == 2\n")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip() == "these tests fail without any mutant: test_small.py::test_wrong"


def test_the_figures_leave_out_what_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A listed mutant that lives does not count; one that is found does, and its reason is not needed."""
    found, endless, lives, equal = (
        Mutant("small", "small.py", number, 1, 1, "f", f"change {number}") for number in range(4)
    )
    reasons = {equal.key: "the same", found.key: "not true any more"}
    fates = [(found, FOUND), (endless, ENDLESS), (lives, LIVES), (equal, LIVES)]
    assert report("tiny", fates, reasons, ["small.py", "other.py"]) == {
        "mutants": 4,
        "found": 2,
        "endless": 1,
        "found_share": 0.6667,
        "found_by_module": {"small.py": "2 of 3"},
        "survivors": ["small.py: f: change 2"],
        "equivalent": {"small.py: f: change 3": "the same"},
    }
    assert capsys.readouterr().out.splitlines() == [
        "small.py:1: f: change 2",
        "tiny: 2 of 3 mutants found (66.7%), 1 of them as they did not come to an end; 1 more change nothing",
        "no reason is needed any more, as a test finds it: small.py: f: change 0",
    ]


def test_what_was_found_is_not_tried_again(tmp_path: Path) -> None:
    """A state keeps what was found, over restarts, until the module changes; what lived is tried again."""
    file = tmp_path / "small.py"
    file.write_text("a = 1 < 2\nb = 1 > 2\n", encoding="utf-8")
    mutants = mutants_of("small", tmp_path)
    state = State(tmp_path / "state", "tiny", mutants)
    assert state.found == {}
    state.note(mutants[0], ENDLESS)
    state.note(mutants[1], LIVES)
    assert State(tmp_path / "state", "tiny", mutants).found == {mutants[0]: ENDLESS}
    assert State(None, "tiny", mutants).found == {}
    file.write_text("a = 1 < 3\nb = 1 > 2\n", encoding="utf-8")
    assert State(tmp_path / "state", "tiny", mutants).found == {}
