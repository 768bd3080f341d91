import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from broker.planner.search import Budget
from scenarios.studies.common.study_folder import RUNS
from scenarios.studies.gorba_rescheduling import study as module
from scenarios.studies.gorba_rescheduling.options import StudyOptions
from scenarios.studies.gorba_rescheduling.study import (
    HEURISTICS,
    Case,
    budget_of,
    cases,
    run_study,
)

QUIET = Console(file=io.StringIO())


def tiny(folder: Path) -> StudyOptions:
    return StudyOptions(
        folder,
        runs=1,
        sizes=(20,),
        parts=("sweep",),
        evaluations=30,
        first_evaluations=30,
        workers=1,
    )


def test_the_whole_study_has_32_settings_and_four_classes(tmp_path: Path) -> None:
    """Heuristics once on every event, searches as often as asked for."""
    found = list(cases(StudyOptions(tmp_path, runs=2, sizes=(200, 400))))
    settings = [each for each in found if each.part == "settings"]
    assert len({each.setting for each in settings}) == 32
    assert len(settings) == 32 * (1 + 2)
    sweep = [each for each in found if each.part == "sweep"]
    assert len({each.setting for each in sweep}) == 8
    assert len(sweep) == 8 * 1 + 8 * 2 * 4
    assert {each.setting.resources for each in settings} == {10}
    assert {each.setting.resources for each in sweep} == {20, 40}
    keys = [each.key(StudyOptions(tmp_path)) for each in found]
    assert len(set(keys)) == len(keys)


def test_a_run_is_kept_under_all_that_it_depends_on(tmp_path: Path) -> None:
    """Another budget, reduction or seed is another run; threads and folder are not."""
    options = tiny(tmp_path)
    case = next(iter(cases(options)))
    keys = {case.key(options)}
    for other in (
        replace(options, evaluations=31),
        replace(options, seconds=2.0),
        replace(options, seconds=3.0),
    ):
        keys.add(case.key(other))
    keys.add(replace(case, seed=9).key(options))
    keys.add(replace(case, setting=replace(case.setting, reduction=0.5)).key(options))
    assert len(keys) == 6
    assert case.key(replace(options, workers=2, folder=Path())) == case.key(options)
    assert budget_of(options) == Budget(math.inf, 30)
    assert budget_of(replace(options, seconds=2.0)) == Budget(2.0)
    assert budget_of(StudyOptions(tmp_path)) == Budget(math.inf, 5000), "the same on every machine"


def test_a_study_is_run_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on disk is not run again, and the result is the same."""
    options = tiny(tmp_path)
    first = run_study(options, QUIET)
    assert len(first.records) == 4 + 4 * 4
    assert first.sizes == [20]
    for each in first.records:
        assert (each.method == HEURISTICS) == bool(each.each)
        assert len(each.each) in {0, 18}
        assert each.fitness >= each.heuristic * (1 - 1e-9)
    lines = (tmp_path / RUNS).read_text().splitlines()
    (tmp_path / RUNS).write_text("\n".join(lines[:5]) + "\n")
    ran = []
    really = module.run_case

    def counted(case: Case, given: StudyOptions) -> object:
        ran.append(case)
        return really(case, given)

    monkeypatch.setattr(module, "run_case", counted)
    second = run_study(options, QUIET)
    assert len(ran) == len(lines) - 5
    took = [each.processor_seconds for each in first.records if each.processor_seconds is not None]
    assert took
    assert min(took) > 0
    timeless = [
        [replace(r, seconds=0.0, processor_seconds=None) for r in study.records]
        for study in (first, second)
    ]
    assert timeless[0] == timeless[1]


def test_the_result_is_plain_json(tmp_path: Path) -> None:
    """With everything that it was measured with, and nothing of this machine."""
    document = json.loads(run_study(tiny(tmp_path), QUIET).to_json())
    assert document["format"] == 1
    assert document["options"]["sizes"] == [20]
    assert "folder" not in document["options"]
    assert len(document["runs"]) == 20
