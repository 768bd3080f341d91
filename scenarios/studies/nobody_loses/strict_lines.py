"""What was measured of strict exchange: one line for each rule and part, and whether it keeps to what is expected."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from grms.federation.sites import BYZANTINE_PARTNERS, BYZANTINE_PREEMPTING
from scenarios.studies.nobody_loses.drawn import MONTH
from scenarios.studies.nobody_loses.federations import Case
from scenarios.studies.nobody_loses.reference import POLICIES, ROUNDS, SETS, TABLE
from scenarios.studies.nobody_loses.statements import Line, gains, line
from scenarios.studies.nobody_loses.strict import (
    ADOPTION,
    HALF_YEAR_WORST,
    JITTER,
    MONTH_WORST,
    NO_CHECKPOINTS,
    OWN,
    ROGUES,
    STRICT,
    words_of_rule,
)
from scenarios.studies.nobody_loses.study import COMPARISON, Found, Study, window_of

FOUR_DRAWS: Final = 4
"""Of the other program's figure."""

_PLACES: Final = ("", *BYZANTINE_PARTNERS, *BYZANTINE_PREEMPTING)

ORDER: Final = COMPARISON
"""Rules in the order of the page."""


def words_of(policy: str) -> str:
    """Returns what a rule is called on the page."""
    return words_of_rule(policy) or POLICIES[policy]


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


def random_lines(study: Study, part: str = "random") -> list[StrictLine]:
    """Returns what federations by chance came to, by rule; `part` is `random` or `short`."""
    return [
        strict_line(policy, runs) for policy in ORDER if (runs := study.of(part, policy=policy))
    ]


@dataclass(frozen=True, slots=True)
class RestartLine:
    """A rule where each new start costs so much.

    Attributes:
        minutes: of run time and request, more after each return.
        half_years: of the federations of half a year.
        months: of those of 30 days.
    """

    policy: str
    minutes: int
    half_years: Line
    months: Line


def restart_lines(study: Study) -> list[RestartLine]:
    """Returns what the cost of a new start does, by rule and cost."""
    found = []
    for policy in dict.fromkeys(case.policy for case, _ in study.of("restarts")):
        runs = study.of("restarts", policy=policy)
        short = [run for run in runs if run[0].sites[0].endswith(f"+{MONTH}")]
        rule, _, minutes = policy.partition(" restart ")
        half_years = line(words_of(rule), gains(tuple(run for run in runs if run not in short)))
        months = line(words_of(rule), gains(tuple(short)))
        if half_years is not None and months is not None:
            found.append(RestartLine(rule, int(minutes or 0), half_years, months))
    return found


def jitter_of_strict(study: Study) -> Line | None:
    """Returns what chance does to strict exchange: federations whose arrivals are shifted."""
    other = JITTER if study.options.get("draws") == FOUR_DRAWS else None
    return line("arrivals up to ten minutes later", gains(study.of("strict-jitter")), other)


def own_lines(study: Study) -> dict[str, dict[str, StrictLine]]:
    """Returns what the grids of the four logs came to, by rule and window."""
    table: dict[str, dict[str, StrictLine]] = {}
    for policy in ORDER:
        for window in SETS:
            runs = tuple(
                run for run in study.of("strict", policy=policy) if window_of(run[0]) == window
            )
            if runs:
                other = (OWN.get(policy) or TABLE.get(policy, {})).get(window)
                table.setdefault(policy, {})[window] = strict_line(policy, runs, other)
    return table


@dataclass(frozen=True, slots=True)
class StrictByzantineLine:
    """What one Byzantine partner does to strict sites.

    Attributes:
        rule: of the honest ones.
        honest: what these gain; each in turn is left out where there is no Byzantine partner.
        own: what it gains itself, on the average, percent; its jobs keep no state.
        own_other: the same of the other program; `None` if it has none.
    """

    rule: str
    honest: Line
    own: float
    own_other: float | None

    @property
    def margin(self) -> float:
        """How far the worst honest site is above what is expected, points."""
        return self.honest.worst - HALF_YEAR_WORST


def rogue_lines(study: Study) -> list[StrictByzantineLine]:
    """Returns what Byzantine partners do to strict sites, by rule and partner."""
    found = []
    rules = dict.fromkeys(_rule(case) for case, _ in study.of("strict-rogues"))
    for rule, rogue in ((rule, word) for rule in rules for word in _rogues(study)):
        runs = [run for run in study.of("strict-rogues", rogue=rogue) if _rule(run[0]) == rule]
        pairs = [
            (run, who)
            for case, run in runs
            for who in ((case.who,) if rogue else range(len(case.sites)))
        ]
        own = [run["gain"][who] for run, who in pairs]
        honest = [
            gain for run, who in pairs for site, gain in enumerate(run["gain"]) if site != who
        ]
        other = ROGUES.get(rule, {}).get(rogue)
        each = line(rogue or "none", honest, other[:2] if other else None)
        if each is not None:
            mean = sum(own) / len(own)
            found.append(StrictByzantineLine(rule, each, mean, other[2] if other else None))
    return found


def _rogues(study: Study) -> list[str]:
    return sorted({case.rogue for case, _ in study.of("strict-rogues")}, key=_PLACES.index)


def _rule(case: Case) -> str:
    return case.others or case.policy


def adoption_of_strict(study: Study) -> list[Line]:
    """Returns what one site gains whose rule is another than that of all others, and what these gain."""
    found: list[Line | None] = []
    words = {(case.policy, case.others): None for case, _ in study.of("strict-adoption")}
    for own, others in words:
        runs = study.of("strict-adoption", policy=own, others=others)
        of_one, of_others = ADOPTION.get((own, others), (None, None))
        if not others:
            found.append(line(f"all {words_of(own)}", gains(runs), of_one))
            continue
        found += [
            line(
                f"one {words_of(own)} among {words_of(others)}",
                (run["gain"][case.who] for case, run in runs),
                of_one,
            ),
            line(
                f"{words_of(others)} next to one {words_of(own)}",
                (
                    gain
                    for case, run in runs
                    for site, gain in enumerate(run["gain"])
                    if site != case.who
                ),
                of_others,
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
    ).replace(" -", " −")
