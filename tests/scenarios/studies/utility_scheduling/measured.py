"""A small study, run once for all tests that look at one."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from scenarios.studies.utility_scheduling.options import StudyOptions
from scenarios.studies.utility_scheduling.study import Study, run_study


@cache
def small_study() -> Study:
    """Returns three experiments of everything but logs."""
    with TemporaryDirectory() as folder:
        options = StudyOptions(Path(folder), 3, 2, 1, logs=False, workers=2)
        return run_study(options, Console(quiet=True))
