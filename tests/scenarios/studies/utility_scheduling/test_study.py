import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from scenarios.studies.common.study_folder import RUNS
from scenarios.studies.utility_scheduling import study as module
from scenarios.studies.utility_scheduling.experiments import Case, run_case
from scenarios.studies.utility_scheduling.options import StudyOptions
from scenarios.studies.utility_scheduling.study import cases, run_study
from scenarios.util.errors import OutputError
from tests.scenarios.studies.utility_scheduling.measured import small_study

QUIET = Console(quiet=True)


def options(folder: Path) -> StudyOptions:
    """Returns the smallest study there is."""
    return StudyOptions(folder, 2, 2, 0, logs=False, workers=2)


def test_every_experiment_has_a_key_of_its_own(tmp_path: Path) -> None:
    """Nothing is run twice, and nothing is taken for something else."""
    keys = [case.key for case in cases(StudyOptions(tmp_path))]
    assert len(keys) == len(set(keys))
    parts = {case.part for case in cases(StudyOptions(tmp_path))}
    assert parts == {"figure-2", "paper-p", "figure-4", "figure-5", "reachable"}


def test_an_interrupted_study_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done stays; the rest is run; the result is that of a run without a break."""
    done: list[str] = []

    def broken(case: Case) -> object:
        if len(done) == 9:
            raise KeyboardInterrupt
        done.append(case.key)
        return run_case(case)

    monkeypatch.setattr(module, "run_case", broken)
    one = replace(options(tmp_path), workers=1)
    with pytest.raises(KeyboardInterrupt):
        run_study(one, QUIET)
    kept = (tmp_path / RUNS).read_text().splitlines()
    assert 0 < len(kept) <= 9
    with (tmp_path / RUNS).open("a") as file:
        file.write('{"version": "cut o')
    monkeypatch.setattr(module, "run_case", run_case)
    whole = run_study(one, QUIET)
    other = tmp_path / "other"
    other.mkdir()
    assert run_study(options(other), QUIET).to_json() == whole.to_json()
    assert set(done) >= {json.loads(line)["key"] for line in kept}


def test_a_study_is_json_with_all_that_was_measured() -> None:
    """Every case is there with what each of its policies came to."""
    study = small_study()
    document = json.loads(study.to_json())
    assert document["options"] == {"experiments": 3, "sweep": 2, "reachable": 1, "logs": False}
    assert len(document["runs"]) == len(study.runs)
    assert study.of("figure-2", "never")[0]["best-fit"].productivity > 0
    assert study.of("figure-2", "never", 0.7) == []
    assert study.of_log("kth", "tight", "replan") == []


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """The file of experiments is a folder."""
    (tmp_path / RUNS).mkdir()
    with pytest.raises(OutputError, match="cannot be read"):
        run_study(options(tmp_path), QUIET)
