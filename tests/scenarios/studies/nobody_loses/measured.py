"""A study whose figures are made up: plain numbers for every replay, none of them run."""

from pathlib import Path

from scenarios.studies.nobody_loses.options import PARTS, StudyOptions
from scenarios.studies.nobody_loses.study import Study, cases


def small_study(parts: tuple[str, ...] = PARTS) -> Study:
    """Returns a study in which gains are 10, 11, … percent, and the last site of each replay loses 1."""
    runs = []
    for case in cases(StudyOptions(Path("nowhere"), parts=parts, federations=8)):
        gains = [10.0 + number for number in range(len(case.sites))]
        gains[-1] = -1.0
        found = {
            "gain": gains,
            "months": [[each, each - 6.0] for each in gains],
            "moved": 3,
            "offers": 7,
            "full_months": [[each, each - 6.0] for each in gains],
            "preempted": 2,
            "lost": 1.5,
            "work": 150.0,
            "jobs": 100,
        }
        runs.append((case, found))
    return Study({"parts": list(parts), "draws": 1, "federations": 8, "seed": 0}, tuple(runs))
