"""The page on a tuning run."""

from collections.abc import Sequence
from typing import Final

from grms.learning.queueing.outcome import (
    Comparison,
    Tuning,
    gain_words,
    group_words,
    value_words,
)
from grms.learning.queueing.pictures import choices, convergence
from lrms_sim.report.parts import Facts, Figure, Group, Note, Page, Section, Table, Words
from lrms_sim.scheduling.criteria import CriterionOrder
from lrms_sim.scheduling.strategies import Strategy

CONVERGENCE: Final = "convergence.svg"
CHOICES: Final = "choices.svg"
PAGE: Final = "tuning.html"

_SITUATIONS: Final = {1: ("always",), 3: ("weekend", "weekday 8–18 h", "weekday night")}


def pictures(tuning: Tuning) -> tuple[str, ...]:
    """Returns how the run converged, and, for tables and rules, what they choose."""
    lines = {"EASY": tuning.easy_value}
    if len(tuning.comparisons) == 1 and tuning.unit.startswith("f, s"):
        best = min(tuning.comparisons[0].training[:-1], key=lambda one: one.value)
        lines[best.name] = best.value
    drawn = convergence(tuning.result.history, tuning.unit, lines)
    if isinstance(tuning.policy, Strategy):
        return (drawn,)
    return (drawn, choices(tuning.policy, tuning.visits, tuning.passes, _chosen(tuning)))


def render(tuning: Tuning, drawings: Sequence[str], file: str) -> str:
    """Returns a self-contained page with `pictures` and a link to the strategy's file next to it."""
    result, search = tuning.result, tuning.provenance["search"]
    facts = [
        ("method", search["method"]),
        ("seed", search.get("seed", "no chance in it")),
        ("objective", " + ".join(_terms(tuning))),
        *result.facts(tuning.unit, "value"),
        ("evaluations", f"{result.evaluations:,} in {result.elapsed_s:,.1f} s"),
        ("stopped because", result.reason),
        ("strategy", file),
    ]
    if isinstance(tuning.policy, Strategy):
        learned = _criteria(tuning.policy)
    else:
        learned = Section("What is chosen", [Figure(drawings[1])])
    page = Page(
        f"Local strategy {tuning.policy.name}",
        "grms tune",
        [
            Facts(facts),
            *(Note(text) for text in tuning.warnings),
            *(_workload(comparison) for comparison in tuning.comparisons),
            Section("Convergence", [Figure(drawings[0])]),
            learned,
        ],
    )
    return str(page)


def _terms(tuning: Tuning) -> list[str]:
    theta = tuning.provenance["theta"]
    return [f"{weight:g}·AWRT{group}" for group, weight in enumerate(theta, 1) if weight]


def _workload(comparison: Comparison) -> Section:
    unseen = comparison.unseen or (None,) * len(comparison.training)
    rows = [
        (
            seen.name,
            value_words(seen),
            gain_words(seen),
            *(("no jobs", "") if other is None else (value_words(other), gain_words(other))),
        )
        for seen, other in zip(comparison.training, unseen, strict=True)
    ]
    columns = ("policy", "training, f in s", "gain", "unseen, f in s", "gain")
    parts: list[Words] = [Table(columns, rows, name="Value of each policy"), _GAIN]
    for word, case, judged in comparison.parts:
        of_groups = [(one.name, *group_words(one, case)) for one in judged]
        heads = ("policy", *(f"AWRT{group}, %" for group in range(1, 6)))
        table = Table(heads, of_groups, name=f"Gain of each group, {word} jobs")
        parts.append(Group(f"User groups, {word} jobs: gain over EASY", [table]))
    return Section(f"{comparison.workload.name}: constants and what was learned", parts)


def _criteria(policy: Strategy) -> Section:
    order = policy.order
    assert isinstance(order, CriterionOrder)
    count = len(order.criteria)
    names = _SITUATIONS.get(count, tuple(f"{hour} h" for hour in range(count)))
    heads = ("situation", "criterion", *(f"w{g}" for g in range(1, 6)), *(f"K{g}" for g in range(1, 6)), "a", "b")  # fmt: skip
    rows = [
        (name, one.kind, *(f"{number:.4g}" for number in one.numbers))
        for name, one in zip(names, order.criteria, strict=True)
    ]
    return Section("What was learned", [Table(heads, rows, name="Parameters", words={1})])


def _chosen(tuning: Tuning) -> str:
    assert not isinstance(tuning.policy, Strategy)
    total = sum(tuning.passes) or 1.0
    said = (
        f"{one.name} {100 * count / total:.1f} %"
        for one, count in zip(tuning.policy.strategies, tuning.passes, strict=True)
        if count
    )
    return "Share of the passes that each strategy made: " + ", ".join(said)


_GAIN: Final = (
    "A gain is how much smaller the objective is than under EASY; more than 0 is better. The "
    "constants need no learning: their order of groups is known from the training jobs."
)
