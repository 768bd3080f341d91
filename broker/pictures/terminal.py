"""A plan in the terminal: a headline and tables that fit 80 columns.

Without colours nothing is lost, and where the terminal does not speak UTF-8 the few special
characters give way to ASCII.
"""

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from broker.model.critical import critical_path
from broker.model.measures import measure
from broker.model.plan import Plan, WorkflowOutcome
from broker.model.problem import Problem
from broker.model.workflow import Workflow
from broker.pictures.layout import axis_of
from broker.pictures.words import fitness, headline, money
from broker.planner.methods import TITLES, Result
from lrms_sim.spelling import NOTHING, count, duration, shorten

WORKFLOWS_MAX = 20
"""Most workflows that are listed, those with the largest trouble first."""

NAME_LENGTH = 18
"""Longer names are cut."""

_ASCII = str.maketrans({"–": "-", "…": "~", "·": "-", "∞": "inf", "→": ">", "\N{MINUS SIGN}": "-"})


def print_plan(console: Console, problem: Problem, plan: Plan, results: Sequence[Result]) -> None:
    """Prints what a plan achieves, methods beside each other, and what becomes of each workflow.

    Args:
        console: where to; its width is kept to, down to 80 columns.
        problem: that was planned.
        plan: for it.
        results: of all methods, one of which found the plan.
    """
    say = console.print
    say()
    say(_text(console, headline(problem, plan), "bold"))
    if results:
        say()
        say(_methods(console, problem, plan, results))
    say()
    say(_workflows(console, problem, plan))
    hidden = len(problem.workflows) - WORKFLOWS_MAX
    if hidden > 0:
        say(_text(console, f"… and {count(hidden)} more workflows, with less to tell", "dim"))
    chain = critical_path(plan, problem.workflows)
    if chain:
        ends = chain[-1].placement
        words = "task" if len(chain) == 1 else "tasks"
        last = shorten(f"{ends.workflow}/{ends.task}", 48)
        say()
        say(_text(console, f"Critical path: {count(len(chain))} {words}, up to {last}"))


def _text(console: Console, text: str, style: str = "") -> Text:
    if console.options.ascii_only:
        text = text.translate(_ASCII).encode(console.encoding, "replace").decode(console.encoding)
    return Text(text, style=style)


def _table(console: Console, columns: Sequence[str]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        header_style="dim",
    )
    for index, column in enumerate(columns):
        table.add_column(_text(console, column), justify="right" if index else "left")
    return table


def _methods(console: Console, problem: Problem, plan: Plan, results: Sequence[Result]) -> Table:
    columns = ("Method", "fitness", "makespan", "mean end", "cost", "late", "dear", "took")
    table = _table(console, columns)
    for result in results:
        found = measure(problem, result.plan)
        chosen = result.plan is plan
        table.add_row(
            _text(console, TITLES[result.method], "bold" if chosen else ""),
            _text(console, fitness(None if result.worth is None else result.worth.fitness)),
            _text(console, duration(found.makespan)),
            _text(console, duration(found.completion)),
            _text(console, money(found.cost)),
            _text(console, count(found.late), "red" if found.late else ""),
            _text(console, count(found.over_budget), "red" if found.over_budget else ""),
            _text(console, duration(result.seconds)),
        )
    return table


def _workflows(console: Console, problem: Problem, plan: Plan) -> Table:
    outcomes = list(zip(problem.workflows, plan.outcomes(problem.workflows), strict=True))
    axis = axis_of(problem.now, problem.now + 1, left=0, right=1, now=problem.now)
    # The worst first, otherwise in the order of the files.
    ranked = sorted(range(len(outcomes)), key=lambda place: (_trouble(*outcomes[place]), place))
    shown = sorted(ranked[:WORKFLOWS_MAX]) if len(outcomes) <= WORKFLOWS_MAX else ranked
    table = _table(console, ("Workflow", "tasks", "ends", "to spare", "cost", "left"))
    for place in shown[:WORKFLOWS_MAX]:
        workflow, outcome = outcomes[place]
        spare = workflow.due_date - outcome.completion
        left = workflow.budget - outcome.cost
        table.add_row(
            _text(console, shorten(workflow.name, NAME_LENGTH)),
            count(len(workflow.tasks)),
            _text(console, axis.when(outcome.completion)),
            _text(console, duration(spare), "red" if spare < 0 else ""),
            _text(console, money(outcome.cost)),
            _text(
                console, money(left) if math.isfinite(left) else NOTHING, "red" if left < 0 else ""
            ),
        )
    return table


def _trouble(workflow: Workflow, outcome: WorkflowOutcome) -> tuple[float, float]:
    """Returns a key that puts the latest first, then those that overspend most."""
    allowed = workflow.budget if 0 < workflow.budget < math.inf else 1.0
    return -outcome.tardiness, -outcome.over_budget / allowed
