"""A plan in the terminal: a headline and tables that fit 80 columns."""

import math
from collections.abc import Sequence

from rich.console import Console

from broker.gantt.layout import axis_of
from broker.gantt.wording import fitness, headline, money, transfers_words
from broker.model.critical import critical_path
from broker.model.measures import measure
from broker.model.plan import Plan, WorkflowOutcome
from broker.model.problem import Problem
from broker.model.workflow import Workflow
from broker.planner.methods import TITLES, Result
from lrms_sim.report import terminal
from lrms_sim.report.parts import Strong, Table, Words
from lrms_sim.util.messages import NOTHING, count, duration, shorten

WORKFLOWS_MAX = 20
"""Most workflows listed, those with the largest trouble first."""

NAME_LENGTH = 18


def print_plan(console: Console, problem: Problem, plan: Plan, results: Sequence[Result]) -> None:
    """Prints what a plan achieves, methods beside each other, and what becomes of each workflow.

    The output is as wide as `console`, but at least 80 columns.
    """
    console.print()
    console.print(terminal.text(console, headline(problem, plan), "bold"))
    if results:
        terminal.print_table(console, _methods(problem, plan, results))
    terminal.print_table(console, _workflows(problem, plan))
    hidden = len(problem.workflows) - WORKFLOWS_MAX
    if hidden > 0:
        more = f"… and {count(hidden)} more workflows, with less to tell"
        console.print(terminal.text(console, more, "dim"))
    if problem.network is not None:
        console.print()
        console.print(terminal.text(console, transfers_words(plan, problem.network)))
    chain = critical_path(plan, problem.workflows)
    if chain:
        ends = chain[-1].placement
        words = "task" if len(chain) == 1 else "tasks"
        last = shorten(f"{ends.workflow}/{ends.task}", 48)
        console.print()
        text = f"Critical path: {count(len(chain))} {words}, up to {last}"
        console.print(terminal.text(console, text))


def _methods(problem: Problem, plan: Plan, results: Sequence[Result]) -> Table:
    rows: list[tuple[Words, ...]] = []
    for result in results:
        found = measure(problem, result.plan)
        rows.append(
            (
                TITLES[result.method],
                fitness(None if result.worth is None else result.worth.fitness),
                duration(found.makespan),
                duration(found.completion),
                money(found.cost),
                Strong(count(found.late), "loss" if found.late else ""),
                Strong(count(found.over_budget), "loss" if found.over_budget else ""),
                duration(result.seconds),
            )
        )
    heads = ("Method", "fitness", "makespan", "mean end", "cost", "late", "dear", "took")
    chosen = next((n for n, result in enumerate(results) if result.plan is plan), None)
    return Table(heads, rows, chosen=chosen)


def _workflows(problem: Problem, plan: Plan) -> Table:
    outcomes = list(zip(problem.workflows, plan.outcomes(problem.workflows), strict=True))
    axis = axis_of(problem.now, problem.now + 1, left=0, right=1, now=problem.now)
    # The worst first, otherwise in the order of the files.
    ranked = sorted(range(len(outcomes)), key=lambda place: (_trouble(*outcomes[place]), place))
    shown = sorted(ranked[:WORKFLOWS_MAX]) if len(outcomes) <= WORKFLOWS_MAX else ranked
    rows: list[tuple[Words, ...]] = []
    for place in shown[:WORKFLOWS_MAX]:
        workflow, outcome = outcomes[place]
        spare = workflow.due_date - outcome.completion
        left = workflow.budget - outcome.cost
        rows.append(
            (
                shorten(workflow.name, NAME_LENGTH),
                count(len(workflow.tasks)),
                axis.when(outcome.completion),
                Strong(duration(spare), "loss" if spare < 0 else ""),
                money(outcome.cost),
                Strong(money(left) if math.isfinite(left) else NOTHING, "loss" if left < 0 else ""),
            )
        )
    return Table(("Workflow", "tasks", "ends", "to spare", "cost", "left"), rows)


def _trouble(workflow: Workflow, outcome: WorkflowOutcome) -> tuple[float, float]:
    """Returns a key that puts the latest first, then those that overspend most."""
    allowed = workflow.budget if 0 < workflow.budget < math.inf else 1.0
    return -outcome.tardiness, -outcome.over_budget / allowed
