import csv
import math
from pathlib import Path

import pytest

from scenarios.report.csv_files import write_flows_csv, write_sites_csv
from tests.scenarios.towns import HOSTILE, random_towns, two_towns


def read(path: Path) -> list[dict[str, str]]:
    """Returns the lines of a CSV file by column."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_site_has_a_line_with_every_figure(tmp_path: Path) -> None:
    """Numbers come back to the last bit, names however odd as they are."""
    result = random_towns(HOSTILE, 900)
    write_sites_csv(result, tmp_path / "sites.csv")
    lines = read(tmp_path / "sites.csv")
    assert [line["name"] for line in lines] == list(HOSTILE)
    assert [float(line["awrt"]) for line in lines] == [site.awrt for site in result.sites]
    assert [int(line["jobs_given"]) for line in lines] == [s.jobs_given for s in result.sites]


def test_a_figure_without_meaning_is_empty(tmp_path: Path) -> None:
    """A site without jobs has no response time."""
    result = random_towns(["a", "b"], 0)
    assert math.isnan(result.sites[0].awrt)
    write_sites_csv(result, tmp_path / "sites.csv")
    assert read(tmp_path / "sites.csv")[0]["awrt"] == ""


def test_every_flow_has_a_line(tmp_path: Path) -> None:
    """Jobs between two sites, and those kept; pairs between which nothing went are left out."""
    write_flows_csv(two_towns(), tmp_path / "flows.csv")
    assert [list(line.values()) for line in read(tmp_path / "flows.csv")] == [
        ["Lübeck", "Lübeck", "1", "1000.0"],
        ["Lübeck", "Wismar", "1", "1000.0"],
        ["Wismar", "Lübeck", "1", "200.0"],
        ["Wismar", "Wismar", "1", "1000.0"],
    ]
    result = random_towns([f"s{k}" for k in range(30)], 500, away=0.5)
    write_flows_csv(result, tmp_path / "flows.csv")
    lines = read(tmp_path / "flows.csv")
    assert sum(int(line["jobs"]) for line in lines) == 500
    assert sum(float(line["area_processor_s"]) for line in lines) == pytest.approx(
        result.flow_area.sum()
    )
