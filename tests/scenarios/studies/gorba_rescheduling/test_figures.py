import pytest

from scenarios.studies.gorba_rescheduling.figures import (
    largest_solved,
    load_of,
    settings_of,
    table_4_1,
)
from scenarios.studies.gorba_rescheduling.reference import TABLE_4_1
from scenarios.studies.gorba_rescheduling.study import Study
from tests.scenarios.studies.gorba_rescheduling.measured import OPTIONS, paper_study, record


def test_settings_have_heuristics_of_both_kinds() -> None:
    """All 32, in the paper's order, in percent."""
    found = settings_of(paper_study())
    assert len(found) == 32
    first = found[0]
    assert (first.benchmark, first.tasks, first.finished, first.new) == ("sRlD", 100, 0.1, 0.1)
    assert first.replanning == 20.0
    assert first.basic == pytest.approx(20.0 * 0.58 / 0.97)
    assert first.best_heuristic == 20.0
    assert first.gleam.mean == pytest.approx(50.002)
    assert first.is_improved
    assert [each.violations for each in found].count(1.0) == 4


def test_the_table_comes_out_of_its_own_shares() -> None:
    """Relative to the best of a column: the paper's rows over the largest of each."""
    found = table_4_1(paper_study())
    assert set(found) == set(TABLE_4_1)
    best = max(row[0] for row in TABLE_4_1.values())
    for name, row in found.items():
        assert row[0] == pytest.approx(TABLE_4_1[name][0] / best)
        assert row[8] == pytest.approx(sum(row[:8]) / 8)


def test_loads_are_summed_up_over_their_runs() -> None:
    """Success, factor and violations of one method at one load."""
    study = Study(
        OPTIONS,
        tuple(
            record(
                "sweep", "gleam", seed=n, late=n, fitness=20_000.0 * (3 - n), evaluations=100 * n
            )
            for n in (0, 1, 2)
        ),
    )
    found = load_of(study, "sRlD", 200, "gleam")
    assert found is not None
    assert found.success == pytest.approx(1 / 3)
    assert (found.factor.mean, found.violations, found.evaluations) == (2.0, 1.0, 100.0)
    assert load_of(study, "sRlD", 400, "gleam") is None


def test_the_largest_solved_load_is_before_the_first_failure() -> None:
    """Loads count in order; what was not run ends it."""
    study = paper_study()
    assert largest_solved(study, "sRlD", "gleam") == 400
    assert largest_solved(study, "lRlD", "gleam") == 1000
    assert largest_solved(study, "sRsD", "blocks") == 0


def test_what_was_not_run_is_left_out() -> None:
    """No sweep without its part, no settings without theirs."""
    assert settings_of(paper_study(parts=("sweep",))) == []
    assert table_4_1(paper_study(parts=("sweep",))) == {}
    assert paper_study(parts=("settings",)).sizes == []
