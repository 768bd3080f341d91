"""What `lrms-sim utility` prints: tables for people, JSON for programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from lrms_sim.malleable.machine import Outcome
from lrms_sim.util import messages

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one run.

    Attributes:
        seed: of its training; `None` for a policy that has learned nothing.
        productivity: sum of final utilities.
        share: of the possible utility.
        utilization: of the processors.
        left: jobs that left the queue.
        price: of both, in processor-seconds of ideal work.
        busy: processor-seconds held by jobs.
    """

    policy: str
    seed: int | None
    productivity: float
    share: float
    utilization: float
    completed: int
    left: int
    suspensions: int
    resizes: int
    price: float
    busy: float

    def document(self) -> dict[str, Any]:
        """Returns the figures for JSON."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}


def figures_of(policy: str, outcome: Outcome, seed: int | None = None) -> Figures:
    """Returns the figures of a run."""
    return Figures(
        policy,
        seed,
        outcome.productivity,
        outcome.share,
        outcome.utilization,
        outcome.count("completed"),
        outcome.count("left"),
        sum(machine.suspensions for machine in outcome.machines),
        sum(machine.resizes for machine in outcome.machines),
        outcome.price,
        sum(machine.busy for machine in outcome.machines),
    )


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124  # NaN, which JSON cannot say


def print_figures(console: Console, groups: Sequence[Sequence[Figures]], title: str) -> None:
    """Prints a table of policies, each with its runs; medians are shown."""
    seeds = any(len(group) > 1 for group in groups)
    # No wider than 80 columns with the longest names and a recorded log's numbers.
    table = Table(title=title, title_justify="left", caption_justify="left")
    table.box, table.pad_edge, table.padding = box.SIMPLE, False, (0, 1, 0, 0)
    table.add_column("policy", no_wrap=True)
    heads = ["share", "range"] if seeds else ["share", "utility"]
    for name in (*heads, "busy", "done", "left", "susp.", "resized", "price"):
        table.add_column(name, justify="right", no_wrap=True)
    table.caption = "price: work lost by suspensions and resizes, of all held"
    if seeds:
        table.caption = "medians over training seeds; price: work lost, of all held"
    for group in groups:
        shares = [each.share for each in group]
        spread = f"{100 * min(shares):.1f}–{100 * max(shares):.1f}" if len(group) > 1 else ""
        table.add_row(
            group[0].policy,
            messages.share(median(shares)),
            spread if seeds else f"{median(each.productivity for each in group):.4g}",
            messages.share(median(each.utilization for each in group)),
            *(
                messages.count(round(median(getattr(each, name) for each in group)))
                for name in ("completed", "left", "suspensions", "resizes")
            ),
            messages.share(median(each.price / each.busy if each.busy else 0.0 for each in group)),
        )
    console.print(table)
