"""Every figure of a run as CSV, for spreadsheets and for runs of more sites than a page can show."""

import csv
import math
from dataclasses import fields
from os import PathLike
from typing import Final

import numpy as np

from scenarios.run.electricity import SiteElectricity
from scenarios.run.results import ScenarioResult, SiteResult

FLOW_COLUMNS: Final = ("submitted_to", "executed_on", "jobs", "area_processor_s")


def write_sites_csv(result: ScenarioResult, path: str | PathLike[str]) -> None:
    """Writes a line for each site, in site order, with the columns of `SiteResult`.

    Where sites have electricity, those of `SiteElectricity` follow.

    The file is UTF-8; a figure without a meaning is empty.

    Raises:
        OSError: the file cannot be written.
    """
    names = [field.name for field in fields(SiteResult)]
    used = {one.name: one for one in result.electricity}
    further = [field.name for field in fields(SiteElectricity)[1:]] if used else []
    with open(path, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123  # any path-like
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, *further])
        for site in result.sites:
            own = [_cell(getattr(site, name)) for name in names]
            bill = [_cell(getattr(used.get(site.name), name, "")) for name in further]
            writer.writerow([*own, *bill])


def write_flows_csv(result: ScenarioResult, path: str | PathLike[str]) -> None:
    """Writes a line for each pair of sites between which jobs went, and for jobs kept at home.

    Lines are in site order, of the users' site first. Columns: the site whose users submitted the
    jobs, the site that ran them, their number, and their processor-seconds. The file is UTF-8.

    Raises:
        OSError: the file cannot be written.
    """
    names = [site.name for site in result.sites]
    with open(path, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123  # any path-like
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FLOW_COLUMNS)
        for i, j in np.argwhere(result.flow_jobs):
            jobs, area = int(result.flow_jobs[i, j]), float(result.flow_area[i, j])
            writer.writerow([names[i], names[j], jobs, _cell(area)])


def _cell(value: object) -> object:
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    return value
