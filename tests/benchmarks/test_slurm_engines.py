"""What engines tell of their jobs is judged by what was to come of these."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engines.plan import KINDS, Plan
from benchmarks.slurm_engines import ENGINES, SLURMS, is_right, judged, write_recorders
from tests.programs import run_program

Lines = list[dict[str, Any]]
Ends = list[list[str]]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    made = Plan(tmp_path / "jobs")
    made.write()
    for number in range(len(KINDS)):
        (made.folder / "marks" / str(number)).write_text("home\n" if number % 2 else "away\n")
    return made


def all_right(name: str) -> tuple[Lines, Ends]:
    """Returns what an engine, and `sacct`, have to tell."""
    engine = ENGINES[name]
    lines = [
        {
            "number": number,
            "state": engine.states.get(kind),
            "exit": engine.codes.get(kind),
        }
        for number, kind in enumerate(KINDS)
    ]
    words = {**SLURMS, "bad": "FAILED" if engine.status else "COMPLETED"}
    codes = {"bad": f"{engine.status}:0", "gone": "0:15"}
    return lines, [[words[kind], codes.get(kind, "0:0")] for kind in KINDS]


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_an_engine_that_tells_all_is_right(name: str, plan: Plan) -> None:
    """None of its jobs has travelled that must not."""
    lines, ends = all_right(name)
    engine = ENGINES[name]
    found = judged(engine, lines, ends, plan)
    assert (found["jobs"], found["sacct right"]) == (20, 20)
    assert found["ran"] == {"away": 10, "home": 10}
    assert is_right(name, found) == engine.travels
    assert is_right(name, {**found, "ran": {"home": 20}})


def test_each_fault_is_found(plan: Plan) -> None:
    """A state, an exit code, an account, a job that ran twice, one that never ran, and one that is missing."""
    lines, ends = all_right("toil")
    over, bad = KINDS.index("over"), KINDS.index("bad")

    def right(lines: Lines, ends: Ends) -> bool:
        return is_right("toil", judged(ENGINES["toil"], lines, ends, plan))

    assert right(lines, ends)
    assert not right([*lines[:over], {**lines[over], "state": "FAILED"}, *lines[over + 1 :]], ends)
    assert not right([*lines[:bad], {**lines[bad], "exit": 1}, *lines[bad + 1 :]], ends)
    assert not right(lines[:-1], ends)
    assert not right(lines, [*ends[:bad], ["FAILED", "1:0"], *ends[bad + 1 :]])
    assert not right(lines, ends[:-1])
    mark = plan.folder / "marks/7"
    mark.write_text("home\nhome\n")
    assert not right(lines, ends)
    mark.unlink()
    assert not right(lines, ends)


def test_calls_are_recorded_as_they_are_made(tmp_path: Path) -> None:
    """Words, a script, the answer and its status; and the answer goes on to the engine."""
    (tmp_path / "bin").mkdir()
    own = tmp_path / "bin/sbatch"
    own.write_text('#!/bin/sh\necho "$#: $1"\necho no >&2\nexit 3\n')
    own.chmod(0o755)
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    calls = tmp_path / "calls"
    write_recorders(tmp_path / "recorders", tmp_path / "bin", calls)
    words = ["sbatch", "a  b'c", str(script)]
    for _ in range(2):
        said = run_program([tmp_path / "recorders/sbatch", *words[1:]])
        assert (said.returncode, said.stdout, said.stderr) == (3, "2: a  b'c\n", "no\n")
    call = {"words": words, "script": [script.read_text()], "status": 3, "error": "no\n"}
    found = [json.loads(line) for line in calls.read_text().splitlines()]
    assert found == [{**call, "out": "2: a  b'c\n"}] * 2
