"""The benchmark of learned run times: what users say, the constants, and that what is right stays."""

import json
from pathlib import Path

import pytest

from benchmarks import estimates
from benchmarks.deviation_dispatch import World
from benchmarks.estimates import CASES, MeanRatio, carried_out, drawn, recorded
from broker.model.estimates import MeasuredRun


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_truth_is_the_same_whatever_users_say(case: estimates.Case) -> None:
    """A run takes its true time times the noise; users are off by one factor for a program."""
    told = drawn("steady", 1.5, case, 1, 30)
    truth = {
        f"{flow.name}/{task.name}": task.work
        for _, flow in told.truth.arrivals
        for task in flow.tasks
    }
    for _, flow in told.load.arrivals:
        for task in flow.tasks:
            name = f"{flow.name}/{task.name}"
            share, failed = told.noise.luck(1, name, 1)
            exact, _ = told.known.luck(1, name, 1)
            assert not failed
            assert task.work * share == pytest.approx(truth[name] * exact)
            assert case.least <= exact <= case.most
            if not case.biased:
                assert task.work == truth[name]


def test_estimates_that_are_right_change_nothing_by_being_learned() -> None:
    """To the last figure; so nobody loses by it who has said the truth."""
    told = drawn("bursts", 1.5, CASES[0], 1, 20)
    runs = [carried_out(told, who, 1).as_json() for who in ("file", "learned", "known")]
    for each in runs:
        del each["processor_s"]
    assert runs[0] == runs[1] == runs[2]


def test_what_is_learned_is_nearer_to_the_truth_than_what_users_say() -> None:
    """By the end each program's ratio is the inverse of its factor, within the noise."""
    told = drawn("wide", 1.5, CASES[2], 1, 10)
    world = World(told.load, told.noise, 1, estimates="learned", extension_max=100.0)
    assert world.run().open == 0
    off = {}
    for _, flow in told.load.arrivals:
        for task, program in zip(flow.tasks, told.load.programs[flow.name], strict=True):
            off[program.called] = told.noise.true[f"{flow.name}/{task.name}"]
    known = world.state.memory.estimates.programs()
    assert len(known) == estimates.PROGRAMS
    for each in known:
        assert each.ratio == pytest.approx(off[each.program], rel=0.1)


def test_the_mean_ratio_is_of_all_programs() -> None:
    """A constant to be better than."""
    mean = MeanRatio()
    assert mean.estimate("a", None, 10.0).work == 10.0
    mean.learn("a", MeasuredRun(None, "r", 10.0, 10.0))
    mean.learn("b", MeasuredRun(None, "r", 10.0, 30.0))
    assert mean.estimate("c", None, 10.0).work == 20.0


def test_a_recording_is_run_as_it_was(tmp_path: Path) -> None:
    """Its tasks take what they took, divided by the speed of where they run; users know one time a program."""
    runs = {"a": 10.0, "b": 30.0, "c": 60.0}
    specified = [
        {"id": name, "name": name, "parents": [] if name == "a" else ["a"], "children": []}
        for name in runs
    ]
    executed = [
        {
            "id": name,
            "runtimeInSeconds": took,
            "command": {"program": "fit" if took < 60 else "end"},
        }
        for name, took in runs.items()
    ]
    path = tmp_path / "three.json"
    document = {
        "name": "three",
        "schemaVersion": "1.5",
        "workflow": {"specification": {"tasks": specified}, "execution": {"tasks": executed}},
    }
    path.write_text(json.dumps(document))
    told = recorded(path, 1)
    assert len(told.load.arrivals) == estimates.REPEATS
    flow = told.load.arrivals[0][1]
    said = {task.name: task.work for task in flow.tasks}
    assert said["a"] == said["b"]
    for task in flow.tasks:
        share, _ = told.noise.luck(1, f"w0/{task.name}", 1)
        assert task.work * share == pytest.approx(runs[task.name])
    assert carried_out(told, "learned", 1).open == 0


def test_the_small_load_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By everyone; it writes nothing."""
    assert estimates.main(["--dry", "--seeds", "1", "--output", str(tmp_path / "f.json")]) == 0
    assert "| steady | 1.5 | off by program, ±10 % | 1 |" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
