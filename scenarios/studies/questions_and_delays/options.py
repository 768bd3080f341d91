"""What a user can ask of the study."""

from dataclasses import dataclass, field
from pathlib import Path

import click

from lrms_sim.util.executors import Workers
from lrms_sim.util.option_fields import option
from scenarios.studies.common.options import folder_option


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """Options of the study.

    Attributes:
        more_draws: without delays, where a replay takes milliseconds.
        half_year_draws: with delays, of half a year; 0 for none.
    """

    folder: Path = folder_option("Folder for replays, figures and page.", "questions-and-delays")
    draws: int = option(
        "With delays: of the days, the clocks and the late answers.",
        default=3,
        type=click.IntRange(1, 1000),
    )
    more_draws: int = 20
    half_year_draws: int = 0
    workers: Workers = field(default_factory=lambda: Workers("processes"))
