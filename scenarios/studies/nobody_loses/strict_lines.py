"""What was measured of strict exchange: one line for each rule and part, and whether it keeps to what is expected."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scenarios.studies.nobody_loses.reference import POLICIES, ROUNDS, SETS, TABLE
from scenarios.studies.nobody_loses.statements import Line, gains, line
from scenarios.studies.nobody_loses.strict import (
    HALF_YEAR_WORST,
    MONTH_WORST,
    NO_CHECKPOINTS,
    OWN,
    STRICT,
)
from scenarios.studies.nobody_loses.study import Found, Study, window_of

ORDER: Final = ("awf", ROUNDS, *STRICT)
"""Rules in the order of the page."""


def words_of(policy: str) -> str:
    """Returns what a rule is called on the page."""
    return STRICT[policy].words if policy in STRICT else POLICIES[policy]


@dataclass(frozen=True, slots=True)
class StrictLine:
    """A rule over many federations.

    Attributes:
        policy: its word.
        half_years: mean and worst of all sites, percent.
        below: results below −1 %.
        months: full site-months, as gains in percent.
        preempted: jobs sent home, percent of all jobs, each time counted.
        lost: work lost with these, percent of all work.
    """

    policy: str
    half_years: Line
    below: int
    months: Sequence[float]
    preempted: float
    lost: float

    @property
    def months_below(self) -> int:
        """How many full site-months are below −5 %."""
        return sum(month < MONTH_WORST for month in self.months)

    @property
    def month_worst(self) -> float:
        """The worst of them, percent; 0 if there is none."""
        return min(self.months, default=0.0)

    @property
    def keeps(self) -> bool | None:
        """Whether no half year and no full month is worse than expected; `None` for other rules than strict ones."""
        if self.policy not in STRICT or self.policy.endswith(" run"):
            return None
        return self.half_years.worst >= HALF_YEAR_WORST and self.months_below == 0

    @property
    def margin(self) -> float:
        """How far the worst half year is above what is expected, points; negative if it is below."""
        return self.half_years.worst - HALF_YEAR_WORST


def strict_line(policy: str, runs: Found, other: tuple[float, float] | None = None) -> StrictLine:
    """Returns the line of some replays of a rule, at least one."""
    half_years = line(words_of(policy), gains(runs), other)
    assert half_years is not None, "a replay has sites"
    found = [each for _, each in runs]
    jobs, work = (sum(each[name] for each in found) for name in ("jobs", "work"))
    return StrictLine(
        policy,
        half_years,
        sum(gain < -1 for gain in gains(runs)),
        [month for each in found for site in each["full_months"] for month in site],
        100 * sum(each["preempted"] for each in found) / jobs,
        100 * sum(each["lost"] for each in found) / work,
    )


def random_lines(study: Study) -> list[StrictLine]:
    """Returns what federations by chance came to, by rule."""
    return [
        strict_line(policy, runs) for policy in ORDER if (runs := study.of("random", policy=policy))
    ]


def own_lines(study: Study) -> dict[str, dict[str, StrictLine]]:
    """Returns what the grids of the four logs came to, by rule and window."""
    table: dict[str, dict[str, StrictLine]] = {}
    for policy in ORDER:
        for window in SETS:
            runs = tuple(
                run for run in study.of("strict", policy=policy) if window_of(run[0]) == window
            )
            if runs:
                other = (OWN if policy in OWN else TABLE)[policy][window]
                table.setdefault(policy, {})[window] = strict_line(policy, runs, other)
    return table


def rogue_lines(study: Study) -> list[tuple[Line, float]]:
    """Returns what each Byzantine partner does to honest sites, and its own mean gain, percent."""
    found = []
    for rogue in dict.fromkeys(case.rogue for case, _ in study.of("strict-rogues")):
        runs = study.of("strict-rogues", rogue=rogue)
        own = [run["gain"][case.who] for case, run in runs]
        honest = [
            gain for case, run in runs for site, gain in enumerate(run["gain"]) if site != case.who
        ]
        each = line(rogue, honest)
        assert each is not None, "a replay has honest sites"
        found.append((each, sum(own) / len(own)))
    return found


def adoption_of_strict(study: Study) -> list[Line]:
    """Returns what one strict site gains among others, and what these gain."""
    found: list[Line | None] = []
    for others in dict.fromkeys(case.others for case, _ in study.of("strict-adoption")):
        runs = study.of("strict-adoption", others=others)
        words = POLICIES[others]
        found += [
            line(f"one strict among {words}", (run["gain"][case.who] for case, run in runs)),
            line(
                f"{words} next to one strict",
                (
                    gain
                    for case, run in runs
                    for site, gain in enumerate(run["gain"])
                    if site != case.who
                ),
            ),
        ]
    return [each for each in found if each is not None]


def strict_verdict(study: Study) -> str:
    """Returns what federations by chance say of strict exchange; empty if none were drawn."""
    lines = {each.policy: each for each in random_lines(study)}
    if not {ROUNDS, NO_CHECKPOINTS} <= set(lines):
        return ""
    fair, strict = lines[ROUNDS], lines[NO_CHECKPOINTS]
    return (
        f"Of {strict.half_years.count:,} half years of federations by chance {strict.below} are below −1 % with strict "
        f"exchange, the worst {strict.half_years.worst:+.2f} %, and {strict.months_below} of "
        f"{len(strict.months):,} full months below −5 %; with fair exchange and rounds {fair.below} and "
        f"{fair.months_below}, the worst half year {fair.half_years.worst:+.2f} %. "
    )
