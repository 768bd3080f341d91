"""A rule base in the terminal: its rules, and a map of its decisions."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grms.policy.transfer import FURTHER_FEATURES, REQUESTED_TIME, STARTS_NOW, RuleBase
from lrms_sim.util.messages import duration

MAP_COLUMNS = 60
MAP_ROWS = 20
"""Rows of the map along NWP; along NJP, 5 % each."""

REQUEST_SHOWN = 3600.0
"""Requested time of the map if rules use it, seconds."""

ACCEPT = "█"
DECLINE = "·"


def print_rule_base(console: Console, rule_base: RuleBase, nwp_max: float) -> None:
    """Prints the rules, and a map of their decisions for NWP from 0 to `nwp_max`."""
    # As Text, as a name may look like markup.
    table = Table("rule", title=Text(rule_base.name), title_justify="left")
    for heading in ("NWP γ", "NWP σ", "NJP γ, %", "NJP σ, %"):
        table.add_column(heading, justify="right")
    for name in rule_base.further:
        table.add_column(f"{FURTHER_FEATURES[name].heading} γ", justify="right")
        table.add_column("σ", justify="right")
    table.add_column("then")
    for number, rule in enumerate(rule_base.rules, start=1):
        table.add_row(
            str(number),
            *(f"{x:.4g}" for x in rule.numbers),
            "run here" if rule.accept else "let go",
        )
    console.print(table)
    for caption, starts_now in _sections(rule_base):
        if caption:
            console.print(f"\n{caption}", markup=False, highlight=False, soft_wrap=True)
        for line in decision_lines(rule_base, nwp_max, starts_now=starts_now):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def _sections(rule_base: RuleBase) -> list[tuple[str, bool]]:
    """Returns the maps to show, with captions; a single one for the paper's rules."""
    further = rule_base.further
    request = (
        f"request of {duration(REQUEST_SHOWN)}" if REQUESTED_TIME.name in further else "any request"
    )
    if STARTS_NOW.name in further:
        return [
            (f"Within constraints, own jobs that would not start now, {request}:", False),
            (f"Within constraints, guests that would start now, {request}:", True),
        ]
    return [(f"Within constraints, {request}:" if further else "", False)]


def decision_lines(rule_base: RuleBase, nwp_max: float, *, starts_now: bool = False) -> list[str]:
    """Returns the map as lines, the widest jobs first, with axes and a legend."""
    output = rule_base.compiled.output

    def accepts(nwp: float, njp: float) -> bool:
        return output(nwp, njp, requested_time=REQUEST_SHOWN, starts_now=starts_now) > 0

    lines = [f"NJP, % of the site   {ACCEPT} run here   {DECLINE} let go"]
    for row in reversed(range(MAP_ROWS)):
        njp = 100.0 * (row + 0.5) / MAP_ROWS
        cells = (
            ACCEPT if accepts(nwp_max * (column + 0.5) / MAP_COLUMNS, njp) else DECLINE
            for column in range(MAP_COLUMNS)
        )
        # Every fourth row is labelled with its end.
        label = "" if (row + 1) % 4 else str(100 * (row + 1) // MAP_ROWS)
        lines.append(f"{label:>4} {''.join(cells)}")
    lines.append(f"     0{f'{nwp_max:g}':>{MAP_COLUMNS - 1}}")
    lines.append("     NWP: processors the queue asks for / processors of the site")
    return lines
