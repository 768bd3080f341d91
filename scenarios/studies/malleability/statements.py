"""What the study says, with the figures by which each statement is judged; part by part of a log."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from scenarios.studies.common.frame import having
from scenarios.studies.common.verdicts import Margin, Statement
from scenarios.studies.malleability.study import EASY, PERFECT, SQUEEZING, SUSPENDING, Study

SOURCE: Final = (
    "Zojer, Posner, Özden: Evaluating Malleable Job Scheduling in HPC Clusters using Real-World "
    "Workloads, arXiv 2602.17318, 2026"
)
"""The published claims: the logs of Cori, Eagle and Theta, the best of five strategies for each."""

FAMILIES: Final = {"squeezing alone": SQUEEZING, "squeezing and suspending": SUSPENDING}


@dataclass(frozen=True, slots=True)
class Claim:
    """A published range of changes against rigid jobs, percent, all jobs being malleable.

    Attributes:
        figure: of a run.
        words: what changes.
        least: the smaller of the two ends.
        most: the greater.
    """

    figure: str
    words: str
    least: float
    most: float

    def holds(self, change: Margin) -> bool | None:
        """Returns whether a change is at least the lesser of the published ones."""
        return change.at_least(self.least) if self.least > 0 else change.at_most(self.least)


WAITS: Final = Claim("wait", "mean waits", -73, -99)
CLAIMS: Final = (
    WAITS,
    Claim("response", "mean response times", -37, -67),
    Claim("makespan", "the makespan", -16, -65),
    Claim("utilization", "utilization", 5, 52),
)


def logs(study: Study) -> list[str]:
    """Returns the logs, in order."""
    return list(dict.fromkeys(case.log for case, _ in study.runs))


def variant(study: Study) -> dict[str, Any]:
    """Returns the speed-up and the least width with which every share was run."""
    case = study.runs[0][0]
    return {"speedup": case.speedup, "least": case.least}


def values(study: Study, figure: str, **wanted: object) -> list[float]:
    """Returns a figure for each part of a log, in order; the mean over seeds, where there are several."""
    by_part: dict[int, list[float]] = {}
    for case, found in having(study.runs, **wanted):
        by_part.setdefault(case.part, []).append(float(found[figure]))
    return [fmean(by_part[part]) for part in sorted(by_part)]


def changes(study: Study, figure: str, log: str, **wanted: object) -> list[float]:
    """Returns what a figure changes against EASY with the users' estimates, percent, for each part."""
    base = values(study, figure, log=log, policy=EASY)
    found = values(study, figure, log=log, **wanted)
    return [_percent(value, start) for value, start in zip(found, base, strict=True)]


def _percent(value: float, base: float) -> float:
    return 100.0 * (value / base - 1.0) if base else 0.0 if value == base else 100.0


def best(study: Study, log: str, policies: Iterable[str], share: int) -> str:
    """Returns the policy under which the mean wait is shortest, over the parts of a log."""

    def wait(policy: str) -> float:
        same = {"log": log, "policy": policy, "share": share, **variant(study)}
        return fmean(values(study, "wait", **same))

    return min(policies, key=wait)


def statements(study: Study) -> Iterator[Statement]:
    """Yields the statements with what was found, for each log."""
    for log in logs(study):
        for words, policies in FAMILIES.items():
            yield from _family(study, log, words, policies)


def _family(study: Study, log: str, words: str, policies: tuple[str, ...]) -> Iterator[Statement]:
    where = f"{log}, {words}"

    def of(figure: str, share: int, policy: str) -> list[float]:
        return changes(study, figure, log, policy=policy, share=share, **variant(study))

    full, few, none = (best(study, log, policies, share) for share in (100, 20, 0))
    for claim in CLAIMS:
        change = Margin.of(of(claim.figure, 100, full))
        verb = "rises" if claim.least > 0 else "fall" if claim.words.endswith("s") else "falls"
        yield Statement(
            f"{where}: {claim.words} {verb} by {abs(claim.least):g} to {abs(claim.most):g} % where all jobs are malleable",
            f"{change.words(1)} %, {full}",
            claim.holds(change),
            f"against EASY with users’ estimates; at least {abs(claim.least):g} %",
        )
    start = Margin.of(of("wait", 20, few))
    yield Statement(
        f"{where}: 20 % of malleable jobs shorten mean waits",
        f"{start.words(1)} %, {few}",
        start.below(0.0),
        "against EASY with users’ estimates",
    )
    added = Margin.between(of("wait", 100, full), of("wait", 0, none))
    yield Statement(
        f"{where}: it is the malleable jobs that shorten mean waits",
        f"{added.words(1)} points, {full} against {none}",
        added.below(0.0),
        "all jobs malleable against none, each with the best policy of the kind",
    )
    known = changes(study, "wait", log, policy=PERFECT)
    against = Margin.between(of("wait", 100, full), known)
    yield Statement(
        f"{where}: malleable jobs shorten mean waits by more than perfect run times do",
        f"{against.words(1)} points, {full}",
        against.below(0.0),
        f"EASY with perfect run times: {Margin.of(known).words(1)} %",
    )
    longest = Margin.of(of("longest_wait", 100, full))
    yield Statement(
        f"{where}: the longest wait gets no longer where all jobs are malleable",
        f"{longest.words(1)} %, {full}",
        longest.at_most(0.0),
        "against EASY with users’ estimates",
    )
