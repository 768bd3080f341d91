import io
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape
from rich.console import Console

from grms.learning.evolution.strategies import StrategySettings
from grms.learning.evolution.termination import GenerationRecord, Limits
from grms.learning.queueing.command import run_tuning
from grms.learning.queueing.options import WorkloadOptions
from grms.learning.queueing.page import choices, convergence, pictures, render, table_cells
from grms.learning.queueing.problem import TuneOptions
from lrms_sim.scheduling.selection import (
    CLASSES,
    StrategyRule,
    StrategyRules,
    StrategyTable,
    class_number,
)
from lrms_sim.util.executors import Workers
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


def test_convergence_is_drawn_beside_the_constants() -> None:
    """With names; the same twice; a single generation too."""
    history = [GenerationRecord(g, 10 * g, 900.0 - g, 950.0, 1.0, 1.0) for g in range(3)]
    drawn = convergence(history, "f, s", {"EASY": 1000.0, "$x$": 890.0})
    assert {"EASY", "$x$", "learned", "f, s"} <= set(svg_texts(drawn))
    assert drawn == convergence(history, "f, s", {"EASY": 1000.0, "$x$": 890.0})
    assert "learned" in svg_texts(convergence(history[:1], "f, s", {}))


def test_a_class_stands_where_its_features_say() -> None:
    """Rows are SD and U, columns the five shares as binary digits."""
    number = class_number((3.0, 80.0, 50.0, 0.0, 0.0, 0.0, 30.0))
    visits = np.zeros(CLASSES)
    visits[number] = 4
    table = np.zeros(CLASSES, np.int64)
    table[number] = 7
    chosen, share = table_cells(table.tolist(), visits.tolist())
    assert chosen[4, 0b10001] == 7
    assert share[4, 0b10001] == 1.0
    assert share.sum() == 1.0


def test_what_is_chosen_names_the_strategies() -> None:
    """Only classes that were met are in the legend; nothing met is no error."""
    table = StrategyTable((3,) * 100 + (7,) * 92)
    visits = [1.0] * 50 + [0.0] * 142
    drawn = svg_texts(choices(table, visits, [1.0] * 13))
    assert drawn.count("fcfs-group") == 2
    assert drawn.count("conservative-group") == 1
    assert svg_texts(choices(table, [0.0] * CLASSES, [0.0] * 13)).count("fcfs-group") == 1
    rules = StrategyRules(
        tuple(StrategyRule((1.5,) * 7, (0.5,) * 7, (float(k),) * 13) for k in (-5, 5))
    )
    assert {"prcwq5", "greedy-f2"} <= set(svg_texts(choices(rules, (), [1.0] * 13)))
