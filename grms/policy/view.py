"""A rule base in the terminal: its rules, and a map of what it decides."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grms.policy.transfer import RuleBase

MAP_COLUMNS = 60
MAP_ROWS = 20
"""Cells of the map: along NWP, and along NJP, 5 % each."""

ACCEPT = "█"
DECLINE = "·"


def print_rule_base(console: Console, rule_base: RuleBase, nwp_max: float) -> None:
    """Prints the rules, and a map of what they decide.

    Args:
        console: where to.
        rule_base: the policy.
        nwp_max: the map shows the normalized waiting parallelism from 0 to this.
    """
    # As Text, for a name may look like markup.
    table = Table("rule", title=Text(rule_base.name), title_justify="left")
    for heading in ("NWP γ", "NWP σ", "NJP γ, %", "NJP σ, %"):
        table.add_column(heading, justify="right")
    table.add_column("then")
    for number, rule in enumerate(rule_base.rules, start=1):
        table.add_row(
            str(number),
            *(f"{x:.4g}" for x in (rule.nwp.gamma, rule.nwp.sigma, rule.njp.gamma, rule.njp.sigma)),
            "run here" if rule.accept else "let go",
        )
    console.print(table)
    for line in decision_lines(rule_base, nwp_max):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def decision_lines(rule_base: RuleBase, nwp_max: float) -> list[str]:
    """Returns the map as lines, the widest jobs first, with axes and a legend."""
    output = rule_base.compiled.output
    lines = [f"NJP, % of the site   {ACCEPT} run here   {DECLINE} let go"]
    for row in reversed(range(MAP_ROWS)):
        njp = 100.0 * (row + 0.5) / MAP_ROWS
        cells = (
            ACCEPT if output(nwp_max * (column + 0.5) / MAP_COLUMNS, njp) > 0 else DECLINE
            for column in range(MAP_COLUMNS)
        )
        # Every fourth row says where it ends.
        label = "" if (row + 1) % 4 else str(100 * (row + 1) // MAP_ROWS)
        lines.append(f"{label:>4} {''.join(cells)}")
    lines.append(f"     0{f'{nwp_max:g}':>{MAP_COLUMNS - 1}}")
    lines.append("     NWP: processors the queue asks for / processors of the site")
    return lines
