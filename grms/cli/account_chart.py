"""The last 30 days of a site's account of itself, drawn with characters."""

import math
from collections.abc import Iterator, Sequence

from grms.site.model.account_history import HISTORY_S, AccountPoint
from lrms_sim.util.messages import moment

COLUMNS = 60
"""Of half a day each."""

ROWS = 8
"""Of the balance."""

_HEAD = 11
_BARS = " ▁▂▃▄▅▆▇█"


def chart_lines(points: Sequence[AccountPoint], *, wall: bool) -> Iterator[str]:
    """Yields the lines of a chart: the balance over time, whether the site was in credit, and its guests.

    They have no more than 80 columns. `wall`: times are of the calendar.
    """
    if not points:
        yield "The last 30 days: the account has not been looked at yet."
        return
    end = points[-1].time
    columns = _columns(points, end)
    yield f"Account, hours of own users' waiting, 30 days to {moment(end, wall=wall)}"
    yield ""
    yield from _balance([_last(each) for each in columns])
    yield _row("in credit", "".join(map(_credit, columns)))
    most = max(max(map(_guests, each), default=0) for each in columns)
    bars = "".join(_bar(max(map(_guests, each), default=0), most) for each in columns)
    yield _row("guests", bars, f" {most:,}")
    yield _row("", f"{'30 days ago':<{COLUMNS - 3}}now")
    yield ""
    yield "In credit: █ at all looks of half a day, ▄ at some, · at none; empty: no looks."
    yield "Guests: the most that ran at the ends of two hours."


def _columns(points: Sequence[AccountPoint], end: float) -> list[list[AccountPoint]]:
    columns: list[list[AccountPoint]] = [[] for _ in range(COLUMNS)]
    width = HISTORY_S / COLUMNS
    for point in points:
        back = math.floor((end - point.time) / width)
        if back < COLUMNS:
            columns[COLUMNS - 1 - back].append(point)
    return columns


def _last(column: Sequence[AccountPoint]) -> float:
    return column[-1].balance if column else math.nan


def _credit(column: Sequence[AccountPoint]) -> str:
    if not column:
        return " "
    looks, good = sum(each.looks for each in column), sum(each.in_credit for each in column)
    return "█" if good == looks else "▄" if good else "·"


def _guests(point: AccountPoint) -> int:
    return point.protected + point.preemptible + point.staying


def _bar(value: int, most: int) -> str:
    return _BARS[math.ceil(value / most * (len(_BARS) - 1))] if most else " "


def _balance(values: Sequence[float]) -> Iterator[str]:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        yield _row("", "no own job has been compared yet")
        return
    high, low = max(0.0, *known), min(0.0, *known)
    step = (high - low) / (ROWS - 1) or 1.0
    rows = [round((value - low) / step) if math.isfinite(value) else None for value in values]
    zero = round(-low / step)
    digits = 0 if high - low >= 10 else 1 if high - low >= 1 else 3
    for row in reversed(range(ROWS)):
        named = row in {0, ROWS - 1, zero}
        amount = 0.0 if row == zero else low + row * step
        name = f"{amount:,.{digits}f}" if named else ""
        rest = "-" if row == zero else " "
        yield _row(name, "".join("•" if at == row else rest for at in rows))


def _row(name: str, cells: str, after: str = "") -> str:
    return f"{name[:_HEAD]:>{_HEAD}} |{cells}{after}".rstrip() if name or cells else ""
