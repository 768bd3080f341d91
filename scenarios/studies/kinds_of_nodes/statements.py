"""What the study says, with the figures by which each statement is judged; draw by draw."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from scenarios.studies.common.frame import having
from scenarios.studies.common.verdicts import Margin, Statement
from scenarios.studies.kinds_of_nodes.study import (
    CLASSES,
    DISCIPLINES,
    POLICIES,
    PROCESSORS,
    REQUESTS,
    Study,
)

Value = Callable[[dict[str, Any]], float]

WORDS: Final = {"easy": "EASY", "fcfs": "FCFS", "logs": "logs", "pods": "pods"}


def mean_gain(found: dict[str, Any]) -> float:
    """Returns the mean over sites of the gain by dominant share, percent."""
    gains: list[float] = found["gain_by_share"]
    return sum(gains) / len(gains)


def worst_gain(found: dict[str, Any]) -> float:
    """Returns the gain by dominant share of the site that gains least, percent."""
    return float(min(found["gain_by_share"]))


def wait_saved(number: int) -> Value:
    """Returns what gives the change of the mean wait of a class of jobs, percent of alone; positive if shorter."""

    def saved(found: dict[str, Any]) -> float:
        figures = found["classes"][number]
        return 100.0 * (1.0 - figures["together"] / figures["alone"]) if figures["alone"] else 0.0

    return saved


def values(study: Study, value: Value, **wanted: object) -> list[float]:
    """Returns a figure of the cases with these attributes, in order of draws."""
    found = sorted(having(study.runs, **wanted), key=lambda run: run[0].draw)
    return [value(figures) for _, figures in found]


def workloads(study: Study) -> list[str]:
    """Returns the words of the workloads that were replayed, in order."""
    return list(dict.fromkeys(case.workload for case, _ in study.runs))


def statements(study: Study) -> Iterator[Statement]:
    """Yields the statements with what was found, for each workload, discipline and policy."""
    for workload in workloads(study):
        for discipline in DISCIPLINES:
            for policy in POLICIES:
                where = f"{WORDS[workload]}, {WORDS[discipline]}, {policy}"
                same = {"workload": workload, "discipline": discipline, "policy": policy}
                yield from _statements(study, where, same)


def _statements(study: Study, where: str, same: Mapping[str, object]) -> Iterator[Statement]:
    full = values(study, mean_gain, **same, told=REQUESTS)
    plain = values(study, mean_gain, **same, told=PROCESSORS)
    gained = Margin.of(full)
    yield Statement(
        f"{where}: exchange shortens response times",
        f"{gained.words(1)} %",
        gained.above(0.0),
        "mean over sites, by dominant share",
    )
    cost = Margin.between(full, plain)
    yield Statement(
        f"{where}: it brings more if the whole request is told",
        f"{cost.words(1)} points",
        cost.above(0.0),
        "against processors alone, in the same draw",
    )
    saved = Margin.of(values(study, wait_saved(CLASSES.index("GPUs")), **same, told=REQUESTS))
    yield Statement(
        f"{where}: jobs with GPUs wait less than alone", f"{saved.words(1)} %", saved.above(0.0)
    )
    worst = Margin.of(values(study, worst_gain, **same, told=REQUESTS))
    yield Statement(
        f"{where}: no site loses",
        f"{worst.words(1)} %",
        worst.at_least(0.0),
        "the site that gains least, by dominant share",
    )
