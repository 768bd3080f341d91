import json
from pathlib import Path

from scenarios.studies.nobody_loses.options import PARTS, StudyOptions
from scenarios.studies.nobody_loses.study import cases, window_of
from tests.scenarios.studies.nobody_loses.measured import small_study


def test_the_table_has_every_grid_under_every_policy() -> None:
    """Eleven grids in two windows, twelve pairs under stress, three disciplines, five policies."""
    grids = list(cases(StudyOptions(Path("x"), parts=("grids",))))
    assert len(grids) == len({case.key for case in grids}) == (2 * 11 + 12) * 3 * 5
    sites = sum(len(case.sites) for case in grids if window_of(case) == "6") // 5
    assert sites == 84
    assert sum(len(case.sites) for case in grids if window_of(case) == "stress") // 5 == 72


def test_everything_is_more_of_the_same() -> None:
    """The complete study has every replay of the short one."""
    short = {case.key for case in cases(StudyOptions(Path("x")))}
    whole = {case.key for case in cases(StudyOptions(Path("x"), draws=4, complete=True))}
    assert short < whole


def test_a_replay_that_two_parts_need_is_made_once() -> None:
    """Keys leave the part out: what came of a federation is the same whoever asks."""
    keys = [case.key for case in cases(StudyOptions(Path("x")))]
    assert len(set(keys)) < len(keys)


def test_a_study_is_found_by_part_and_kept_as_json() -> None:
    """Every replay stands in the document with its case."""
    study = small_study()
    assert {case.part for case, _ in study.runs} == set(PARTS)
    assert all(case.rogue == "liar" for case, _ in study.of("rogues", rogue="liar"))
    document = json.loads(study.to_json())
    assert len(document["runs"]) == len(study.runs)
    assert document["runs"][0]["case"]["policy"] == "awf"
