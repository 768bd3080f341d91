"""Prices and power in a scenario file, and what comes of them in its figures."""

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from lrms_sim.analysis.electricity import machine_consumption, span_of
from lrms_sim.electricity.power import Power, Supply
from lrms_sim.electricity.series import Series
from scenarios.report.html import render_html
from scenarios.report.output import load_run, save_run
from scenarios.report.terminal import print_result
from scenarios.run.replay import check_files, run_scenario
from scenarios.spec.files import load_spec
from scenarios.util.errors import SpecError

PRICES = "time,value\n" + "".join(f"2024-01-01T{hour:02}:00,{hour % 7 - 1}\n" for hour in range(24))


def scenario(folder: Path, first: str, second: str = "price = 50", head: str = "") -> Path:
    """Returns a scenario of two sites with these tables of electricity."""
    (folder / "prices.csv").write_text(PRICES, encoding="utf-8")
    sites = "".join(
        f"""
[[sites]]
name = "{name}"
processors = 32
discipline = "easy"
workload = {{ model = "lublin", jobs = 150, load = 0.8 }}
transfer = {{ default = "start-now" }}
{f"[sites.electricity]{chr(10)}{table}" if table else ""}
"""
        for name, table in (("A", first), ("B", second))
    )
    path = folder / "two.toml"
    path.write_text(f'name = "two"\nseed = 3\n{head}\n{sites}', encoding="utf-8")
    return path


def test_bills_are_those_of_both_schedules(tmp_path: Path) -> None:
    """Idle nodes included, over the same time; they are in every figure, and in a saved run."""
    table = 'price = "prices.csv"\ntime_zone = "Europe/Berlin"\nidle_watts = 40\nbusy_watts = 90\ncarbon = 300'
    run = run_scenario(load_spec(scenario(tmp_path, table)))
    found = run.result
    assert [one.name for one in found.electricity] == ["A", "B"]
    begin, end = span_of(found.schedule, found.schedule_alone)
    flat = Supply(Series.constant(50.0), None, Power())
    for schedule, bill in (
        (found.schedule, found.electricity[1].cost),
        (found.schedule_alone, found.electricity[1].cost_alone),
    ):
        assert bill == pytest.approx(machine_consumption(schedule, flat, 1, (begin, end)).cost)
    first = found.electricity[0]
    assert first.carbon_kg == pytest.approx(0.3 * first.energy_kwh)
    assert first.energy_kwh != first.energy_kwh_alone
    assert not first.covered
    shown = io.StringIO()
    print_result(Console(file=shown, width=120), found)
    page = render_html(found)
    for text in (shown.getvalue(), page):
        assert "Electricity" in text
        assert f"{first.cost_alone:,.2f}" in text
    folder = tmp_path / "out"
    save_run(folder, run.spec, found, html=False)
    assert load_run(folder).electricity[0] == first
    document = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert document["electricity"][0]["cost"] == first.cost
    assert document["electricity"][1]["carbon_kg"] is None
    with (folder / "sites.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["cost"]) == first.cost
    assert rows[1]["carbon_kg"] == ""
    again = run_scenario(load_spec(folder / "scenario.toml")).result
    assert again.electricity[0] == first


def test_what_sites_prefer_changes_the_schedule(tmp_path: Path) -> None:
    """The cheap site gets more work, and by carbon the clean one; a delay lets own jobs wait."""

    def taken(first: str, second: str) -> list[int]:
        found = run_scenario(load_spec(scenario(tmp_path, first, second))).result
        return [site.jobs_taken for site in found.sites]

    plain = taken("price = 90\ncarbon = 10", "price = 30\ncarbon = 500")
    prefer = '\nprefer = "{}"'
    by_cost = taken(
        "price = 90\ncarbon = 10" + prefer.format("cost"),
        "price = 30\ncarbon = 500" + prefer.format("cost"),
    )
    by_carbon = taken(
        "price = 90\ncarbon = 10" + prefer.format("carbon"),
        "price = 30\ncarbon = 500" + prefer.format("carbon"),
    )
    assert by_cost[1] > plain[1]
    assert by_carbon[0] > plain[0]
    delayed = run_scenario(
        load_spec(scenario(tmp_path, 'price = "prices.csv"\ntime_zone = 0\ndelay = "6h"'))
    )
    at_once = run_scenario(load_spec(scenario(tmp_path, "price = 50")))
    assert (
        delayed.result.sites[0].mean_wait_time_alone > at_once.result.sites[0].mean_wait_time_alone
    )


def test_the_moment_on_second_0(tmp_path: Path) -> None:
    """A file is laid so that the moment that is said falls on second 0."""
    table = 'price = "prices.csv"\ntime_zone = 0'
    first = run_scenario(load_spec(scenario(tmp_path, table))).result.electricity[0]
    same = run_scenario(
        load_spec(scenario(tmp_path, table, head='[electricity]\nbegin = "2024-01-01T00:00Z"'))
    ).result.electricity[0]
    later = run_scenario(
        load_spec(scenario(tmp_path, table, head='[electricity]\nbegin = "2024-01-01T03:00Z"'))
    ).result.electricity[0]
    assert same == first
    assert later.energy_kwh == first.energy_kwh
    assert later.cost != first.cost


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ('price = "none.csv"', r"sites\.A\.electricity\.price: .*none\.csv: No such file"),
        (
            'price = "prices.csv"',
            r"sites\.A\.electricity\.price: .*prices\.csv:2: .*no offset from UTC",
        ),
        (
            'price = 1\ncarbon = "prices.csv"\ntime_zone = 0',
            r"carbon: .*prices\.csv:2: value is '-1'",
        ),
        ("price = true", r"sites\.A\.electricity\.price: "),
        ("carbon = 1", r"sites\.A\.electricity\.price: "),
        (
            'price = 1\ntime_zone = "Moon"',
            r"sites\.A\.electricity\.time_zone: time zone 'Moon' is not known",
        ),
        ("price = 1\nidle_watts = 500", r"sites\.A\.electricity: a node draws"),
        ('price = 1\nprefer = "carbon"', r"sites\.A\.electricity: prefers less carbon"),
        ('price = 1\ncarbon = 1\nprefer = "carbon"', r"prefer less carbon, and B does not say"),
        ("price = 1\nonly = true", r"sites\.A\.electricity: only goes with prefer"),
        ('price = 1\ndelay = "soon"', r"sites\.A\.electricity\.delay: "),
        ("price = 1\nsaving = 2", r"sites\.A\.electricity\.saving: "),
        ("price = 1\ntarif = 2", r"sites\.A\.electricity\.tarif: "),
    ],
)
def test_mistakes_name_file_and_key(tmp_path: Path, first: str, said: str) -> None:
    """In the scenario's file, and in those that it names."""
    path = scenario(tmp_path, first)
    with pytest.raises(SpecError, match=rf"two\.toml: .*{said}"):
        check_files(load_spec(path), shown=str(path))


def test_mistakes_between_keys(tmp_path: Path) -> None:
    """Sites compare by one measure; a moment has an offset; delays are for EASY; daemons know no prices."""
    both = scenario(
        tmp_path, 'price = 1\nprefer = "cost"', 'price = 1\ncarbon = 1\nprefer = "carbon"'
    )
    with pytest.raises(SpecError, match="need the same measure"):
        load_spec(both)
    with pytest.raises(SpecError, match=r"electricity\.begin: .*no offset from UTC"):
        load_spec(scenario(tmp_path, "price = 1", head='[electricity]\nbegin = "2024-01-01"'))
    path = scenario(tmp_path, 'price = 1\ndelay = "1h"')
    path.write_text(path.read_text(encoding="utf-8").replace('"easy"', '"fcfs"'), encoding="utf-8")
    with pytest.raises(SpecError, match='goes with discipline = "easy" alone'):
        load_spec(path)
