"""A strategy file in the terminal: its content, and the choices of its rules."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lrms_sim.scheduling.criteria import CriterionOrder
from lrms_sim.scheduling.selection import CLASSES, FEATURES, StrategyRules, StrategyTable
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.scheduling.strategy_files import StrategyFile

SITUATIONS = {"week": ("weekend", "weekday 8-18", "weekday 18-8")}

_HEADINGS = {"sd": "SD", "u": "U, %"} | {f"prcwq{g}": f"Q{g}, %" for g in range(1, 6)}


def print_strategy(console: Console, file: StrategyFile) -> None:
    """Prints what a strategy file holds, within the width of the console."""
    policy = file.policy
    # As Text, for a name may look like markup.
    console.print(Text(policy.name, style="bold"))
    if isinstance(policy, Strategy):
        console.print(f"{policy.algorithm} on {order_words(policy)}")
        if isinstance(policy.order, CriterionOrder):
            console.print(_criteria(policy.order))
    else:
        console.print(_strategies(policy))
        if isinstance(policy, StrategyTable):
            for line in table_lines(policy):
                console.print(Text(line))
        else:
            console.print(_rules(policy))
        for strategy in policy.strategies:
            if isinstance(strategy.order, CriterionOrder):
                console.print(Text(f"{strategy.name}:"))
                console.print(_criteria(strategy.order))
    for key, value in file.provenance.items():
        console.print(Text(f"{key}: {value}"))


def order_words(strategy: Strategy) -> str:
    """Returns the order of a strategy in words."""
    order = strategy.order
    if isinstance(order, str):
        return f"the order of {order.replace('_', ' ')}"
    if isinstance(order, CriterionOrder):
        return "the order of a criterion"
    return "the order of groups " + " > ".join(map(str, order.groups))


def table_lines(policy: StrategyTable) -> list[str]:
    """Returns the 192 strategies of a table as a map: SD and U down, PRCWQ across.

    Each line is one class of SD and U; a column is a combination of the five PRCWQ, that of group
    5 changing fastest; a letter is a strategy, as in the list of strategies.
    """
    lines = ["SD, U down; across PRCWQ1 … PRCWQ5 low or high, that of group 5 changing fastest"]
    rows = [f"SD {sd}, U {u}" for sd in ("≤ 2", "> 2") for u in ("≤ 75", "≤ 85", "> 85")]
    for number, words in enumerate(rows):
        first = number * CLASSES // len(rows)
        letters = (letter(s) for s in policy.table[first : first + CLASSES // len(rows)])
        lines.append(f"{words:<14} {''.join(letters)}")
    return lines


def letter(number: int) -> str:
    """Returns the letter that stands for a strategy: a, b, … z, A, B, …."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"
    return letters[number]


def _strategies(policy: StrategyTable | StrategyRules) -> Table:
    table = Table("", "strategy")
    for heading in ("classes",) if isinstance(policy, StrategyTable) else ("for", "against"):
        table.add_column(heading, justify="right")
    for number, strategy in enumerate(policy.strategies):
        if isinstance(policy, StrategyTable):
            counts = [policy.table.count(number)]
        else:
            opinions = [rule.recommendations[number] for rule in policy.rules]
            counts = [sum(o > 0 for o in opinions), sum(o < 0 for o in opinions)]
        table.add_row(letter(number), Text(strategy.name), *map(str, counts))
    return table


def _rules(policy: StrategyRules) -> Table:
    table = Table("", *(_HEADINGS[feature] for feature in FEATURES), "best")
    for number, rule in enumerate(policy.rules, start=1):
        best = max(rule.recommendations)
        chosen = "".join(letter(k) for k, r in enumerate(rule.recommendations) if r == best)
        cells = (
            f"{mean:.3g} ± {deviation:.2g}"
            for mean, deviation in zip(rule.means, rule.deviations, strict=True)
        )
        table.add_row(str(number), *cells, chosen)
    return table


def _criteria(order: CriterionOrder) -> Table:
    table = Table("situation", "f", "w1 … w5", "K1 … K5", "a", "b")
    names = SITUATIONS.get(order.kind, ())
    for number, criterion in enumerate(order.criteria):
        one = len(order.criteria) == 1
        name = "always" if one else names[number] if names else f"{number} h"
        table.add_row(
            name,
            criterion.kind,
            " ".join(f"{weight:.3g}" for weight in criterion.weights),
            " ".join(f"{constant:.3g}" for constant in criterion.constants),
            f"{criterion.waiting:.3g}",
            "–" if criterion.kind == "f3" else f"{criterion.size:.3g}",
        )
    return table
