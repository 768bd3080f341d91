"""What a user can ask of the study."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from lrms_sim.util.option_fields import ParamType, option
from scenarios.studies.common.options import folder_option

SITES_MIN: Final = 20
"""More than are asked where not all are."""

SITES_MAX: Final = 1_000_000


class SiteCounts(ParamType[tuple[int, ...]]):
    """Numbers of sites as people write them: `100,1000,10000`."""

    name = "sites"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Returns the numbers in ascending order; fails with what is possible."""
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(re.fullmatch(r"\s*\d{1,9}\s*", part) for part in parts):
            self.fail(f"{value!r} are no numbers of sites; write them as 100,1000", param, ctx)
        counts = sorted({int(part) for part in parts})
        if not SITES_MIN <= counts[0] <= counts[-1] <= SITES_MAX:
            self.fail(f"{value!r}: from {SITES_MIN} to {SITES_MAX} sites", param, ctx)
        return tuple(counts)


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for.

    Attributes:
        sites: numbers of sites, ascending.
        jobs: of each site.
        draws: of sites and their workloads.
    """

    folder: Path = folder_option("Folder for replays, figures and page.", "scale")
    sites: tuple[int, ...] = option(
        "How many sites there are.", default=(100, 1000), type=SiteCounts(), multiple=False
    )
    jobs: int = option("Of each site.", default=100, type=click.IntRange(1, 100_000))
    draws: int = option("Of sites and their workloads.", default=3, type=click.IntRange(1, 100))
