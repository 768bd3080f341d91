from dataclasses import replace

from scenarios.papers.gorba_rescheduling.statements import statements
from scenarios.papers.gorba_rescheduling.study import Study
from tests.scenarios.papers.gorba_rescheduling.measured import paper_study


def test_all_statements_hold_where_all_is_as_in_the_paper() -> None:
    """Each says what was measured."""
    found = statements(paper_study())
    assert len(found) == 12
    assert [each.paper for each in found if each.holds is not True] == []
    assert all(each.measured for each in found)


def test_each_statement_can_fail() -> None:
    """In a study where everything came out the other way round."""
    study = paper_study()
    turned = [
        replace(
            each,
            fitness=each.heuristic / (2 + each.seed),
            late=1 + int(each.new == 0.1 and each.part == "settings"),
            evaluations=each.tasks if each.benchmark.startswith("sR") else 9 * each.tasks,
            # The table upside down, columns of many new tasks in place of few.
            each={
                name: each.heuristic - value + (1e5 * each.new if "replanning" in name else 0.0)
                for name, value in each.each.items()
            },
        )
        for each in study.records
    ]
    # Nothing but local search fails; planning anew and planning on change their places.
    worse = [replace(each, late=0) if each.method == "gleam" else each for each in turned]
    swapped = [replace(each, each=_swapped(each.each)) for each in study.records]
    found = [
        each
        for records in (turned, worse, swapped)
        for each in statements(Study(study.options, tuple(records)))
    ]
    assert {each.paper for each in found if each.holds is False} == {each.paper for each in found}


def _swapped(each: dict[str, float]) -> dict[str, float]:
    def other(name: str) -> str:
        short = name.removeprefix("replanning: ")
        return short if short != name else f"replanning: {name}"

    return {other(name): value for name, value in each.items()}


def test_what_was_not_measured_is_not_judged() -> None:
    """A study of one part says nothing of the other; fixed budgets say nothing of evaluations."""
    for part, count in (("settings", 5), ("sweep", 7)):
        found = statements(paper_study(parts=(part,)))
        assert sum(each.holds is None for each in found) == count
    study = paper_study()
    fixed = Study(study.options | {"evaluations": 100}, study.records)
    assert statements(fixed)[-1].holds is None
