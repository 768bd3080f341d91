import io
import json

from rich.console import Console

from scenarios.studies.queue_strategies.command import print_study
from tests.scenarios.studies.queue_strategies.made_up import made_up


def test_the_table_fits_a_terminal_of_80_columns() -> None:
    """No figure is cut."""
    console = Console(width=80, record=True, file=io.StringIO())
    print_study(console, made_up("genetic-fuzzy", {"iterative": -30.0, "symbiotic": 15.0}))
    text = console.export_text()
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "-31.0 … -29.0" in text
    assert "-130.4" in text


def test_figures_go_through_json() -> None:
    """No number that JSON has not."""
    study = made_up("genetic-fuzzy", {"iterative": -3.0, "symbiotic": 5.0}, moved=None)
    document = json.loads(study.to_json())
    assert document["runs"][0]["method"] == "iterative"
    assert document["transfers"][0]["gain"] is None
