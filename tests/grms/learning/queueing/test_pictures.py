import numpy as np

from grms.learning.evolution.termination import GenerationRecord
from grms.learning.queueing.pictures import choices, convergence, table_cells
from lrms_sim.scheduling.selection import (
    CLASSES,
    StrategyRule,
    StrategyRules,
    StrategyTable,
    class_number,
)
from tests.pictures import svg_texts


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
