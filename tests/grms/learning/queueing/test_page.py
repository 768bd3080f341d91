import io
from pathlib import Path

import pytest
from markupsafe import escape
from rich.console import Console

from grms.learning.evolution.strategies import StrategySettings
from grms.learning.limits import Limits
from grms.learning.queueing.command import run_tuning
from grms.learning.queueing.options import WorkloadOptions
from grms.learning.queueing.page import pictures, render
from grms.learning.queueing.problem import TuneOptions
from lrms_sim.util.workers import Workers
from tests.pictures import svg_texts
from tests.tuning_cases import busy_log


@pytest.mark.parametrize("method", ["f2", "iterative"])
def test_the_page_has_every_figure_and_warning(tmp_path: Path, method: str) -> None:
    """Both parts of every policy; names as plain text."""
    options = TuneOptions(
        (busy_log(tmp_path / "a&b.swf"),),
        workloads=WorkloadOptions(training=(0, 1)),
        method=method,
        settings=StrategySettings(3, 6),
        limits=Limits(generations=2),
        workers=Workers(count=1),
        output=tmp_path / "out",
    )
    tuning = run_tuning(options, Console(file=io.StringIO()))
    drawings = pictures(tuning)
    page = render(tuning, drawings, "strategy.json")
    assert "a&amp;b" in page
    assert "a&b" not in page
    for text in tuning.warnings:
        assert f'<p class="warning">{escape(text)}</p>' in page
    comparison = tuning.comparisons[0]
    for judged in (*comparison.training, *comparison.unseen):
        assert f">{judged.value:,.0f}</td>" in page
    assert ("K1" in page) == (method == "f2")
    lines = svg_texts(drawings[0])
    assert "EASY" in lines
    assert any("group" in line for line in lines)
    assert page == render(tuning, drawings, "strategy.json")
