import pytest

from broker.model.heft import heft
from broker.planner.compilation import compile_problem
from broker.planner.heuristics import planning_heuristics, replanning_heuristics
from scenarios.studies.gorba_rescheduling.reference import TABLE_4_1, shown_heuristic
from tests.broker.small import SMALL


def test_the_table_has_every_heuristic_of_the_planner() -> None:
    """Rows are called as the planner calls its heuristics, eighteen of them."""
    compilation = compile_problem(SMALL)
    found = planning_heuristics(compilation) + replanning_heuristics(compilation, heft(SMALL))
    assert {each.name for each in found} == set(TABLE_4_1)


def test_rows_average_to_their_last_column() -> None:
    """The numbers were copied right, but for the paper's rounding."""
    for row in TABLE_4_1.values():
        assert len(row) == 9
        assert sum(row[:8]) / 8 == pytest.approx(row[8], abs=0.0125)


def test_names_are_shortened_as_in_the_paper() -> None:
    """RH stands for replanning, AJ and GJ for workflow and task."""
    assert shown_heuristic("replanning: shortest due time & RAS-3") == "RH SDT & RAS-3"
    assert shown_heuristic("shortest task & RAS-1") == "SWT (GJ) & RAS-1"
    assert shown_heuristic("shortest workflow & RAS-2") == "SWT (AJ) & RAS-2"
