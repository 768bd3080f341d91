import math
from dataclasses import replace

import pytest

from broker.gantt.wording import count_of, fitness, headline, money
from broker.model.heft import heft
from broker.model.problem import Problem
from broker.model.resources import Calendar, Resource
from broker.model.workflow import Alternative, Task, Workflow

R = (Alternative.of("r"),)


def problem(*workflows: Workflow, resource: Resource | None = None) -> Problem:
    return Problem(workflows, (resource or Resource("r"), Resource("idle")))


def test_headlines_say_what_was_achieved() -> None:
    """In time, late, over budget, without limits, or without a place."""
    free = Workflow("w", (Task("a", 2.0, R), Task("b", 2.0, R)))
    for case, text in (
        (
            problem(free),
            "2 tasks of 1 workflow on 2 resources end after 4 s; none has a due date or a budget.",
        ),
        (
            problem(replace(free, due_date=4.0)),
            "2 tasks of 1 workflow on 2 resources end after 4 s; its limits are kept.",
        ),
        (
            problem(
                replace(free, due_date=3.0),
                Workflow("v", free.tasks, budget=1.0),
                resource=Resource("r", price=1.0),
            ),
            "4 tasks of 2 workflows on 2 resources end after 8 s; 1 late and 1 over budget.",
        ),
        (
            problem(replace(free, due_date=9.0), Workflow("v", free.tasks, due_date=9.0)),
            "4 tasks of 2 workflows on 2 resources end after 8 s; all keep their limits.",
        ),
        (
            problem(free, resource=Resource("r", calendar=Calendar((), ((3.0, math.inf),)))),
            "1 of 2 tasks of 1 workflow find no time: what they need closes for good.",
        ),
    ):
        assert headline(case, heft(case)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (0.01234, "0.0123"), (3.456, "3.46"), (12345.6, "12,346"), (math.inf, "∞")],
)
def test_costs_have_the_digits_that_matter(value: float, text: str) -> None:
    """Small sums more, large ones none."""
    assert money(value) == text


def test_things_are_counted_in_words() -> None:
    """One is not many."""
    assert count_of(1, "task") == "1 task"
    assert count_of(1200, "task") == "1,200 tasks"


def test_no_fitness_reads_as_nothing() -> None:
    """Whole numbers, and of small ones the digits that count; minus says that tasks lack places."""
    assert [fitness(x) for x in (None, 54_321.4, 99.6, 2.345, 0.0123, -3.4)] == [
        *("–", "54,321", "100", "2.3", "0.012", "−3.4"),
    ]
