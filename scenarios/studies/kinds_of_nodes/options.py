"""What a user can ask of the study."""

from dataclasses import dataclass
from pathlib import Path

import click

from lrms_sim.util.option_fields import option
from scenarios.studies.common.options import folder_option, workers_option


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """What a user asks for.

    Attributes:
        draws: how often requests are drawn, and pods dealt to sites.
        pods: table of the pods of Alibaba's GPU cluster, 2023; `None` for the recorded logs alone.
    """

    folder: Path = folder_option("Folder for replays, figures and page.", "kinds-of-nodes")
    draws: int = option(
        "Draws of requests, and of the pods' sites.", default=5, type=click.IntRange(2, 1000)
    )
    pods: Path | None = option(
        "openb_pod_list_default.csv of Alibaba's cluster-trace-gpu-v2023, plain or packed: replay its pods too.",
        default=None,
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        metavar="CSV",
    )
    workers: int | None = workers_option()
