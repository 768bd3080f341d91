import io
from pathlib import Path
from typing import Any

from rich.console import Console

from scenarios.cli.listing import print_list, print_scenario
from scenarios.library import bundled_names, scenario_path
from scenarios.spec.files import load_spec
from scenarios.spec.spec import ScenarioSpec
from scenarios.spec.traces import TRACES


def printed(show: Any, *arguments: Any, width: int = 160) -> str:
    """Returns what a function prints on a console of that width."""
    console = Console(file=io.StringIO(), width=width)
    show(console, *arguments)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_list_marks_logs_that_are_not_here(tmp_path: Path) -> None:
    """A star on each missing log, and one command that gets them all."""
    (tmp_path / TRACES["ctc"].file).write_bytes(b"x")
    environment = {"HANSE_TRACES": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    specs = [load_spec(scenario_path(name)) for name in bundled_names()]
    lines = printed(print_list, specs, environment).splitlines()
    assert sum(line.strip().startswith("setup-") for line in lines) == 6
    row = next(line for line in lines if "setup-1-kth-ctc" in line)
    assert " kth* ctc " in row
    assert lines[-1] == "* needs a download: scenario fetch kth sdsc05 sdsc00"


def test_a_list_without_missing_logs_has_no_footnote(tmp_path: Path) -> None:
    """Nothing is asked of the user where nothing is needed."""
    specs = [load_spec(scenario_path("synthetic-three-sites"))]
    text = printed(print_list, specs, {"XDG_CACHE_HOME": str(tmp_path)})
    assert "none" in text
    assert "*" not in text


def test_a_scenario_is_shown_with_workloads_and_policies(tmp_path: Path) -> None:
    """Every site's row says what it runs, whom it asks and what it gives."""
    pool = [{"processors": 100, "policy": "p.json"}, {"processors": 430, "policy": "awf"}]
    document = {
        "name": "x",
        "title": "[bold]not markup[/bold]",
        "description": "Two\nlines.",
        "sites": [
            {
                "name": "A",
                "processors": 1024,
                "location": ["C", "B"],
                "workload": {"trace": "kth", "window": {"last_day": 150}},
                "transfer": {"B": "r/b.json", "C": "none"},
            },
            {
                "name": "B",
                "processors": 8,
                "workload": {"swf": "l/own.swf.gz"},
                "transfer": {"A": "keep", "pool": pool},
            },
            {
                "name": "C",
                "processors": 8,
                "discipline": "easy",
                "workload": {"model": "lublin", "jobs": 2000, "load": 0.5},
            },
        ],
    }
    spec = ScenarioSpec.model_validate(document)
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    text = printed(print_scenario, spec, Path("f.toml"), environment)
    for part in (
        "[bold]not markup[/bold]",
        "Two lines.",
        "1,024",
        "kth, before day 150",
        "C, B",
        "B: b.json; C: none; others: awf",
        "own.swf.gz, the whole log",
        "A: keep; others by nearest size (100: p.json, 430: awf)",
        "Lublin-Feitelson model, 2,000 jobs, load 0.5",
        "Name x, seed 1, file f.toml",
        "Needs a download: scenario fetch kth",
    ):
        assert part in text


def test_nothing_of_a_scenario_steers_the_terminal(tmp_path: Path) -> None:
    """A file may come from anybody: control characters in it are spelled out."""
    steers = "\x1b[2J\x9b\N{RIGHT-TO-LEFT OVERRIDE}"
    document = {
        "name": "x",
        "title": f"t{steers}",
        "description": f"d{steers}",
        "sites": [
            {
                "name": "A",
                "processors": 8,
                "workload": {"swf": f"w{steers}.swf"},
                "transfer": {"default": f"p{steers}.json"},
            }
        ],
    }
    spec = ScenarioSpec.model_validate(document)
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    shown = printed(print_scenario, spec, tmp_path / f"f{steers}.toml", environment, width=200)
    listed = printed(print_list, [spec], environment)
    for letter, text in [(letter, shown) for letter in "tdwpf"] + [("t", listed)]:
        assert rf"{letter}\x1b[2J\x9b\u202e" in text
    assert (shown + listed).replace("\n", "").isprintable()


def test_a_scenario_is_shown_in_80_columns(tmp_path: Path) -> None:
    """Long cells fold; no line is wider than the console but the one with the path."""
    spec = load_spec(scenario_path("four-sites-6"))
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    text = printed(print_scenario, spec, Path("f"), environment, width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
