"""What plans amount to, in words that page and terminal share."""

import math
from typing import TYPE_CHECKING

from lrms_sim.util.messages import NOTHING, count, duration

if TYPE_CHECKING:
    from broker.model.network import Network
    from broker.model.plan import Plan
    from broker.model.problem import Problem


def fitness(value: float | None) -> str:
    """Returns a fitness in whole numbers, small ones with two digits that count."""
    if value is None:
        return NOTHING
    if abs(value) >= 99.5 or value == 0:
        return count(round(value))
    return f"{value:.2g}".replace("-", "\N{MINUS SIGN}")


def money(value: float) -> str:
    """Returns a cost with as many digits as matter."""
    if math.isinf(value):
        return "∞"
    digits = 0 if abs(value) >= 1000 else 2 if abs(value) >= 1 or value == 0 else 4
    return f"{value:,.{digits}f}"


def count_of(number: int, what: str) -> str:
    """Returns "1 task" or "1,200 tasks"."""
    return f"{count(number)} {what}" if number == 1 else f"{count(number)} {what}s"


def size(value: float) -> str:
    """Returns bytes in the largest unit of which there is one at least."""
    for unit in ("B", "KB", "MB", "GB", "TB", "PB"):
        if value < 999.5 or unit == "PB":
            return f"{value:.3g} {unit}" if value < 999.5 else f"{value:,.0f} {unit}"
        value /= 1000
    raise AssertionError("the last unit is for all that is left")


def transfers_words(plan: "Plan", network: "Network | None" = None) -> str:
    """Returns how much goes from site to site, and how long that takes, in a sentence or two."""
    if not plan.transfers:
        return "No transfers: every task has its files at its site."
    sent = size(math.fsum(each.size for each in plan.transfers))
    took = duration(math.fsum(each.end - each.begin for each in plan.transfers))
    paid = math.fsum(each.cost for each in plan.transfers)
    price = f", and cost {money(paid)}" if paid else ""
    one = " A link carries one at a time." if network is not None and network.contended else ""
    return (
        f"{count_of(len(plan.transfers), 'transfer')} of {sent}; they take {took} together{price}."
        f"{one}"
    )


def headline(problem: "Problem", plan: "Plan") -> str:
    """Returns what a plan achieves, in a sentence."""
    from broker.model.measures import measure  # noqa: PLC0415  # with numpy, which `gorba status` does without

    found = measure(problem, plan)
    tasks = sum(len(workflow.tasks) for workflow in problem.workflows)
    workflows = len(problem.workflows)
    where = f"{count_of(tasks, 'task')} of {count_of(workflows, 'workflow')}"
    if found.unplanned:
        return f"{count(found.unplanned)} of {where} find no time: what they need closes for good."
    ends = f"{where} on {count_of(len(problem.resources), 'resource')} end after {duration(found.makespan)}"
    limited = [w for w in problem.workflows if min(w.due_date, w.budget) < math.inf]
    if not limited:
        return f"{ends}; none has a due date or a budget."
    broken = workflows - found.keeping
    if not broken:
        kept = "its limits are kept" if workflows == 1 else "all keep their limits"
        return f"{ends}; {kept}."
    late = f"{count(found.late)} late" if found.late else ""
    dear = f"{count(found.over_budget)} over budget" if found.over_budget else ""
    return f"{ends}; {' and '.join(part for part in (late, dear) if part)}."
