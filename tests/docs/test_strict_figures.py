"""The tables on strict exchange are those of the figures that are kept."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FIGURES: dict[str, Any] = json.loads(
    (ROOT / "benchmarks/figures-nobody-loses.json").read_text(encoding="utf-8")
)
EXPERIMENTS = (ROOT / "docs/experiments.md").read_text(encoding="utf-8")
NOTE = (ROOT / "docs/strict-exchange.md").read_text(encoding="utf-8")

RULES = {
    "accept when fit": "awf",
    "fair exchange, rounds": "fair-exchange+rounds",
    "strict, guests run to their end": "strict-exchange run",
    "[strict exchange](strict-exchange.md), guests run to their end": "strict-exchange run",
    "strict, no job keeps its state": "strict-exchange",
    "strict, every second job hourly": "strict-exchange half",
    "strict, every job hourly": "strict-exchange all",
    "always preemptible, none": "always",
    "always preemptible, all": "always all",
    "quota, none": "quota",
    "quota, all": "quota all",
    "network of favors, none": "favors",
    "network of favors, all": "favors all",
    "every second site strict, the others' guests run on": "strict-exchange|strict-exchange run",
    "a centre that knows all run times": "central",
    "the same, may preempt": "central preempting",
}


def rows(text: str, head: str) -> list[list[str]]:
    """Returns the cells of the table with that first line, without its head; minus signs as Python reads them."""
    table = text.partition(head)[2].partition("\n\n")[0].replace("**", "").splitlines()[2:]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]


def numbers(cell: str) -> list[float]:
    return [float(each) for each in re.findall(r"-?[\d.]+", cell.replace("−", "-"))]


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (EXPERIMENTS, "| rule | half a year | months in it | 30 days | sent home, work lost |"),
        (NOTE, "| rule | half a year | months below −5 %, worst | 30 days |"),
    ],
)
def test_rules_on_federations_by_chance(text: str, head: str) -> None:
    found = rows(text, head)
    assert len(found) >= 10
    for name, half_years, months, short, *home in found:
        kept, lone = FIGURES["random"][RULES[name]], FIGURES["short"][RULES[name]]
        assert numbers(half_years) == [kept["mean"], kept["worst"], kept["below"]]
        assert numbers(months) == [kept["months"][0], round(kept["month_worst"], 1)]
        assert numbers(short) == [lone["mean"], lone["worst"], lone["below"]]
        if home and kept["sent_home"]:
            assert numbers(home[0]) == [round(kept["sent_home"], 1), round(kept["lost"], 1)]


def test_the_cost_of_a_new_start() -> None:
    words = {"none": "strict-exchange", "every second job": "strict-exchange half"}
    found = rows(EXPERIMENTS, "| jobs that keep their state | cost | half a year | 30 days |")
    assert len(found) == 12
    for name, cost, half_years, months in found:
        kept = FIGURES["restarts"][f"{words.get(name, 'strict-exchange all')}, {cost}"]
        for cell, part in ((half_years, "half_years"), (months, "months")):
            assert numbers(cell) == [kept[part]["mean"], kept[part]["worst"]]


def test_byzantine_partners() -> None:
    rules = ("strict-exchange", "strict-exchange half", "strict-exchange all")
    found = rows(
        EXPERIMENTS,
        "| Byzantine partner | no job keeps its state | every second job | every job |",
    )
    assert len(found) == 11
    for name, *cells in found:
        for rule, cell in zip(rules, cells, strict=True):
            if not cell:
                continue
            kept = FIGURES["byzantine"][f"{rule}: {name.strip('`')}"]
            wanted = [kept["mean"], kept["worst"], kept["own"]]
            assert numbers(cell) == pytest.approx(wanted, abs=0.0501)


def test_what_is_expected_of_the_rule_is_kept() -> None:
    """No half year below −0.5 %, no full month below −5 %, no honest site below −0.5 % but beside who starts nothing."""
    for rule in ("strict-exchange", "strict-exchange half", "strict-exchange all"):
        kept = FIGURES["random"][rule]
        assert kept["worst"] >= -0.5
        assert kept["months"][0] == 0
        assert kept["month_worst"] >= -5
    lines = FIGURES["byzantine"].items()
    worst = {name: line["worst"] for name, line in lines if not name.endswith("starts-nothing")}
    assert min(worst.values()) >= -0.5
