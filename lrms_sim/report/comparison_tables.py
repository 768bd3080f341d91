"""A comparison of disciplines as tables: for terminal and page, as CSV, Markdown and LaTeX."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lrms_sim.analysis.comparison import Comparison, Difference, metric_named
from lrms_sim.report.text_tables import escaped_latex, latex, markdown
from lrms_sim.util import messages

HEADS: Final = ("discipline", "mean", "difference", "95 % interval", "change", "won:lost")
"""Of a table of one log and one metric."""

_PAPER_HEADS: Final = ("log", "metric", *HEADS)


def signed(value: float, digits: int) -> str:
    """Returns a number with its sign and commas between thousands."""
    if not math.isfinite(value):
        return messages.NOTHING
    return f"{value:+,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def plain(value: float, digits: int) -> str:
    """Returns a number with commas between thousands."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else messages.NOTHING


def interval(difference: Difference) -> str:
    """Returns the interval of a difference in words."""
    digits = metric_named(difference.metric).digits
    if not math.isfinite(difference.low):
        return messages.NOTHING
    return f"{signed(difference.low, digits)} to {signed(difference.high, digits)}"


def won(difference: Difference) -> str:
    """Returns won and lost shifts, and ties if there are any."""
    ties = f" ({difference.ties} tied)" if difference.ties else ""
    return f"{difference.wins}:{difference.losses}{ties}"


def cells(difference: Difference) -> tuple[str, ...]:
    """Returns the cells of `HEADS`."""
    digits = metric_named(difference.metric).digits
    return (
        difference.discipline,
        plain(difference.mean, digits),
        signed(difference.difference, digits),
        interval(difference),
        messages.change(difference.change.mean),
        won(difference),
    )


def grouped(comparison: Comparison) -> dict[tuple[str, str], list[Difference]]:
    """Returns the differences of each log and metric."""
    found: dict[tuple[str, str], list[Difference]] = {}
    for each in comparison.differences:
        found.setdefault((each.log, each.metric), []).append(each)
    return found


def caption(comparison: Comparison) -> str:
    """Returns what a table of the comparison shows, in a sentence."""
    times = f"{comparison.shifts} random shifts of arrivals by up to {comparison.seconds:g} s"
    if comparison.shifts == 1:
        times = f"one random shift of arrivals by up to {comparison.seconds:g} s, so no interval"
    return (
        f"Differences to {comparison.baseline}, discipline minus {comparison.baseline}, paired over "
        f"{times}; intervals after Student, each at 95 %; won: shifts with which the discipline is better."
    )


def to_markdown(comparison: Comparison) -> str:
    """Returns all differences as one table, with what it shows below."""
    return markdown(_PAPER_HEADS, _rows(comparison)) + f"\n{caption(comparison)}\n"


def to_latex(comparison: Comparison) -> str:
    """Returns all differences as a `tabular` that wants the package booktabs; a comment has its caption."""
    table = latex(_PAPER_HEADS, _rows(comparison), words=3)
    return f"% \\usepackage{{booktabs}}\n% {escaped_latex(caption(comparison))}\n{table}"


def _rows(comparison: Comparison) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for (log, metric), differences in grouped(comparison).items():
        label, digits = metric_named(metric).label, metric_named(metric).digits
        mean = plain(differences[0].baseline, digits)
        rows.append((log, label, comparison.baseline, mean, "", "", "", ""))
        rows += [(log, label, *cells(each)) for each in differences]
    return rows


def differences_csv(comparison: Comparison) -> str:
    """Returns the differences as CSV; a figure without a meaning is empty."""
    return _csv(comparison.columns())


def replays_csv(comparison: Comparison) -> str:
    """Returns a line for each replay as CSV, with the metrics compared; units as in `METRICS`."""
    return _csv(comparison.replay_columns())


def notes_lines(comparison: Comparison) -> str:
    """Returns a line of JSON for each replay whose discipline gave something back."""
    return "".join(
        json.dumps(
            {
                "log": each.log,
                "discipline": each.discipline,
                "shift": each.shift,
                "notes": each.notes,
            },
            ensure_ascii=False,
        )
        + "\n"
        for each in comparison.replays
        if each.notes is not None
    )


def _csv(columns: Mapping[str, Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_plain_cells, zip(*columns.values(), strict=True)))
    return out.getvalue()


def _plain_cells(row: Iterable[Any]) -> list[Any]:
    return [
        (repr(value) if math.isfinite(value) else "") if isinstance(value, float) else value
        for value in row
    ]
