"""What was measured, beside the figures of the independent program, with a verdict on each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scenarios.studies.nobody_loses.reference import (
    ADOPTION,
    BYZANTINE_PARTNERS,
    JITTER,
    MONTHS,
    NEAR,
    POLICIES,
    ROUNDS,
    SAME,
    SETS,
    TABLE,
    Pair,
)
from scenarios.studies.nobody_loses.study import Found, Study, window_of

VERDICTS = ("the same", "near", "differs")


@dataclass(frozen=True, slots=True)
class Line:
    """A figure: mean and worst of many sites, and what another program found.

    Attributes:
        name: what it is.
        mean: percent of AWRT alone.
        worst: of all sites, percent.
        count: how many sites these are.
        below: how many of them are below 0.
        other: the other program's mean and worst; `None` if it has none.
    """

    name: str
    mean: float
    worst: float
    count: int
    below: int
    other: Pair | None

    @property
    def verdict(self) -> str:
        """How near both are to each other; empty if there is no other."""
        if self.other is None:
            return ""
        apart = max(abs(self.mean - self.other[0]), abs(self.worst - self.other[1]))
        return VERDICTS[(apart > SAME + 1e-9) + (apart > NEAR)]


def line(name: str, gains: Iterable[float], other: Pair | None = None) -> Line | None:
    """Returns the line of some gains, percent; `None` if there are none."""
    found = list(gains)
    if not found:
        return None
    below = sum(gain < 0 for gain in found)
    return Line(name, sum(found) / len(found), min(found), len(found), below, other)


def gains(runs: Found) -> Iterator[float]:
    """Yields the gain of every site of every replay, percent."""
    for _, found in runs:
        yield from found["gain"]


def grid_lines(study: Study) -> dict[str, dict[str, Line]]:
    """Returns the table: by policy and window."""
    table: dict[str, dict[str, Line]] = {}
    for policy, words in POLICIES.items():
        for window in SETS:
            runs = study.of("grids", policy=policy)
            chosen = tuple(run for run in runs if window_of(run[0]) == window)
            each = line(words, gains(chosen), TABLE[policy][window])
            if each is not None:
                table.setdefault(policy, {})[window] = each
    return table


@dataclass(frozen=True, slots=True)
class MonthLine:
    """Months of own jobs.

    Attributes:
        values: percent below 0, percent below −5 %, the worst.
        count: months of sites.
        other: the same of the other program; `None` if it has none.
    """

    name: str
    values: tuple[float, float, float]
    count: int
    other: tuple[float, float, float] | None

    @property
    def verdict(self) -> str:
        """How near both are to each other; empty if there is no other."""
        if self.other is None:
            return ""
        pairs = zip(self.values, self.other, strict=True)
        # The other's worst may be rounded to a whole percent.
        apart = max(abs(own - other) - 0.45 * (abs(other) > 100) for own, other in pairs)
        return VERDICTS[(apart > SAME + 1e-9) + (apart > NEAR)]


def months_of(study: Study, policy: str, part: str = "grids", window: str = "6") -> list[float]:
    """Returns the gain of every month of every site, percent."""
    return [
        month
        for case, found in study.of(part, policy=policy)
        if window_of(case) == window
        for site in found["months"]
        for month in site
    ]


def month_line(
    name: str, months: Sequence[float], other: tuple[float, float, float] | None
) -> MonthLine:
    """Returns the line of some months, at least one."""
    share = 100.0 / len(months)
    below = share * sum(month < 0 for month in months)
    far = share * sum(month < -5 for month in months)
    return MonthLine(name, (below, far, min(months)), len(months), other)


def month_lines(study: Study) -> list[MonthLine]:
    """Returns what single months are like, by policy."""
    return [
        month_line(words, months, MONTHS.get(policy))
        for policy, words in POLICIES.items()
        if (months := months_of(study, policy))
    ]


@dataclass(frozen=True, slots=True)
class ByzantineLine:
    """What one Byzantine partner does to the others.

    Attributes:
        policy: of the others, its word.
        rogue: its word; empty for none.
        honest: what the others gain.
        own: what it gains itself, on the average, percent.
        own_other: the same of the other program; `None` if it has none.
    """

    policy: str
    rogue: str
    honest: Line
    own: float
    own_other: float | None


def byzantine_lines(study: Study) -> list[ByzantineLine]:
    """Returns what Byzantine partners do, each site of the large grids in turn."""
    found = []
    for policy in POLICIES:
        words = list(dict.fromkeys(case.rogue for case, _ in study.of("rogues", policy=policy)))
        for rogue in words:
            honest: list[float] = []
            own: list[float] = []
            for case, run in study.of("rogues", policy=policy, rogue=rogue):
                for who in range(len(case.sites)) if not rogue else (case.who,):
                    own.append(run["gain"][who])
                    honest += [gain for site, gain in enumerate(run["gain"]) if site != who]
            other = BYZANTINE_PARTNERS.get(policy, {}).get(rogue)
            each = line(rogue or "none", honest, other[:2] if other else None)
            assert each is not None, "a replay has honest sites"
            found.append(
                ByzantineLine(policy, rogue, each, sum(own) / len(own), other[2] if other else None)
            )
    return found


def adoption_lines(study: Study) -> list[Line]:
    """Returns what a site gains that adopts fair exchange alone, and what all have."""
    runs = study.of("adoption")
    alone = (run["gain"][case.who] for case, run in runs if case.who >= 0)
    lines = (
        line(name, values, ADOPTION[name])
        for name, values in (
            ("all accept when fit", gains(study.of("adoption", policy="awf"))),
            ("one fair among accept when fit", alone),
            ("all fair", gains(study.of("adoption", policy=ROUNDS, who=-1))),
        )
    )
    return [each for each in lines if each is not None]


def jitter_line(study: Study) -> Line | None:
    """Returns what chance does: federations whose arrivals are shifted."""
    # The other program's figure is of four draws in both windows.
    other = JITTER if study.options.get("complete") else None
    return line("arrivals up to ten minutes later", gains(study.of("jitter")), other)


@dataclass(frozen=True, slots=True)
class HeadroomLine:
    """Fair exchange with rounds that keeps some processors free beside guests.

    Attributes:
        name: which share of the mean width of own jobs.
        windows: by `5`, `6` and `w` (a job over the whole machine every week at one of two sites).
        months: of the second window.
        filled: of the sites with such jobs alone.
    """

    name: str
    windows: dict[str, Line]
    months: MonthLine
    filled: Line


def headroom_lines(study: Study) -> list[HeadroomLine]:
    """Returns the experiment on the rule that could mend single losses."""
    found = []
    runs = study.of("headroom")
    for policy in dict.fromkeys(case.policy for case, _ in runs):
        share = policy.partition(" headroom ")[2] or "none"
        mine = study.of("headroom", policy=policy)
        by_window: dict[str, list[float]] = {"5": [], "6": [], "w": []}
        filled: list[float] = []
        for case, run in mine:
            wide = [name.endswith("-w") for name in case.sites]
            by_window["w" if any(wide) else window_of(case)] += run["gain"]
            filled += [gain for gain, one in zip(run["gain"], wide, strict=True) if one]
        windows = {key: each for key, values in by_window.items() if (each := line(key, values))}
        months = months_of(study, policy, "headroom")
        at_filled = line(share, filled)
        if at_filled is not None and months:
            found.append(HeadroomLine(share, windows, month_line(share, months, None), at_filled))
    return found


def headroom_verdict(study: Study) -> str:
    """Returns what headroom does to the days from day 150 on; empty if it was not tried."""
    lines = headroom_lines(study)
    if len(lines) < 2:
        return ""
    none, *tried = lines
    costs = [none.windows["6"].mean - each.windows["6"].mean for each in tried]
    months = [each.months.values[1] for each in tried]
    fewer = sum(month < none.months.values[1] for month in months)
    return (
        f"From day 150 on it costs {min(costs):.1f} to {max(costs):.1f} points of the mean gain. Months below "
        f"−5 % are {none.months.values[1]:.1f} % without it and fewer with {fewer} of {len(tried)} shares; "
        f"of filled sites {none.filled.below} of {none.filled.count} lose without it."
    )


def verdict(study: Study) -> str:
    """Returns the outcome in two sentences."""
    table = grid_lines(study)
    every = [each for row in table.values() for each in row.values()]
    if not every:
        return "Nothing was measured of grids."
    alike = sum(each.verdict == "the same" for each in every)
    near = sum(each.verdict == "near" for each in every)
    said = ""
    if ROUNDS in table and "6" in table[ROUNDS]:
        fair, awf = table[ROUNDS]["6"], table["awf"]["6"]
        said = (
            f"With fair exchange and rounds {fair.below} of {fair.count} sites lose from day 150 on; "
            f"they gain {fair.mean:.1f} % on the average, the worst {fair.worst:+.2f} %. With accept "
            f"when fit {awf.below} lose, the worst {-awf.worst:.1f} %. "
        )
    return (
        f"{said}Of {len(every)} figures of the table {alike} are those of an independent program"
        + (f", {near} more within {NEAR:g} point." if near else ".")
    )
