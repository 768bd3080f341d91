"""The page on a tuning run, and its pictures: how it converged, and which strategy is chosen when."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grms.learning.evolution.termination import GenerationRecord
from grms.learning.plots import BLUE, ORANGE, drawn
from grms.learning.queueing.outcome import (
    Comparison,
    Tuning,
    gain_words,
    group_words,
    value_words,
)
from lrms_sim.report import svg
from lrms_sim.report.parts import Facts, Group, Note, Page, Section, Table, Words
from lrms_sim.report.parts import Figure as PageFigure
from lrms_sim.scheduling.criteria import CriterionOrder
from lrms_sim.scheduling.selection import FEATURES, StrategyRules, StrategyTable
from lrms_sim.scheduling.strategies import Strategy

RULES_SHOWN = 50
"""Most rules of a picture; a run of the paper's size has as many."""

_ROWS = ("SD ≤ 2, U ≤ 75", "SD ≤ 2, U ≤ 85", "SD ≤ 2, U > 85", "SD > 2, U ≤ 75", "SD > 2, U ≤ 85",
         "SD > 2, U > 85")  # fmt: skip
_COLUMNS = 32
_NEVER = 0.18  # how strong the colour of a class is that was never met


def convergence(
    history: Sequence[GenerationRecord], unit: str, constants: Mapping[str, float]
) -> str:
    """Draws the best value so far and constants, by name, that need no learning.

    The mean of a generation is not drawn: an evaluation stops once it is certain to be worse than
    all parents, so the values of bad genomes are unknown. The history is not empty.
    """
    evaluations = [record.evaluations for record in history]
    best = [record.best for record in history]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        marker = "o" if len(history) == 1 else None
        axes.step(
            evaluations,
            best,
            where="post",
            color=ORANGE,
            linewidth=1.8,
            marker=marker,
            label="learned",
        )
        for (name, value), style in zip(constants.items(), ("--", ":", "-."), strict=False):
            axes.axhline(value, color=BLUE, linestyle=style, linewidth=1.2, label=name)
        axes.set_xlabel("evaluations")
        axes.set_ylabel(unit)
        axes.grid(color=svg.color("grid"))
        axes.legend(frameon=False)
        axes.set_title("best so far", loc="left", fontsize="medium")

    about = "Best value so far beside constants"
    return drawn("convergence", "Convergence", about, draw)


def choices(
    policy: StrategyTable | StrategyRules,
    visits: Sequence[float],
    passes: Sequence[float],
    description: str = "",
) -> str:
    """Draws the choices of a table or a rule base; `description` is for screen readers."""

    def draw(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, height_ratios=(3, 2))
        if isinstance(policy, StrategyTable):
            _draw_table(above, policy, visits)
        else:
            _draw_rules(above, policy)
        _draw_passes(below, [one.name for one in policy.strategies], passes)

    return drawn("choices", "What is chosen", description, draw)


def table_cells(table: Sequence[int], visits: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the strategy and the share of passes of each class, both of shape (6, 32).

    Row 3·(SD > 2) + class of U; column PRCWQ₁ … PRCWQ₅ as binary digits, the first the highest.
    """
    met = np.array(visits, np.float64)
    share = met / met.sum() if met.sum() else met
    return np.array(table).reshape(6, _COLUMNS), share.reshape(6, _COLUMNS)


def _draw_table(axes: Axes, policy: StrategyTable, visits: Sequence[float]) -> None:
    chosen, share = table_cells(policy.table, visits)
    shades = _shades(len(policy.strategies))
    strength = np.where(share > 0, 0.45 + 0.55 * np.sqrt(share / max(share.max(), 1e-12)), _NEVER)
    axes.imshow(np.concatenate([shades[chosen], strength[..., None]], axis=2), aspect="auto")
    axes.set_yticks(range(6), _ROWS)
    axes.set_xticks(range(0, _COLUMNS, 4), [f"{place:05b}" for place in range(0, _COLUMNS, 4)])
    axes.set_xlabel("which groups' share of the waiting work is above its border: PRCWQ₁ … PRCWQ₅")
    axes.set_title("strategy of each class, stronger where met more often", loc="left",
                   fontsize="medium")  # fmt: skip
    used = sorted({int(one) for one in chosen[share > 0].ravel()})
    axes.legend(
        handles=[
            Patch(color=tuple(shades[one].tolist()), label=policy.strategies[one].name)
            for one in used
        ],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize="small",
    )


def _draw_rules(axes: Axes, policy: StrategyRules) -> None:
    rules = policy.rules[:RULES_SHOWN]
    low = np.array([1.0] + [0.0] * (len(FEATURES) - 1))
    span = np.array([4.0] + [100.0] * (len(FEATURES) - 1))
    centres = np.clip((np.array([rule.means for rule in rules]) - low) / span, 0.0, 1.0)
    order = np.lexsort(centres.T[::-1])
    thought = np.array([rule.recommendations for rule in rules]) / 10.0 + 0.5
    picture = np.concatenate([centres, np.full((len(rules), 1), np.nan), thought], axis=1)[order]
    axes.imshow(picture.T, aspect="auto", cmap="RdYlBu", vmin=0.0, vmax=1.0)
    names = [*FEATURES, "", *(one.name for one in policy.strategies)]
    axes.set_yticks(range(len(names)), names, fontsize="x-small")
    axes.set_xlabel("rule")
    axes.set_title("where each rule is centred, and what it recommends: red low, blue high",
                   loc="left", fontsize="medium")  # fmt: skip


def _draw_passes(axes: Axes, names: Sequence[str], passes: Sequence[float]) -> None:
    total = sum(passes) or 1.0
    shares = [100.0 * one / total for one in passes]
    axes.barh(range(len(names)), shares, color=BLUE)
    axes.set_yticks(range(len(names)), names, fontsize="x-small")
    axes.invert_yaxis()
    axes.set_xlabel("percent of the passes that each strategy made")


def _shades(count: int) -> np.ndarray:
    return np.array([colormaps["tab20"](place % 20)[:3] for place in range(count)])


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
        learned = Section("What is chosen", [PageFigure(drawings[1])])
    page = Page(
        f"Local strategy {tuning.policy.name}",
        "grms tune",
        [
            Facts(facts),
            *(Note(text) for text in tuning.warnings),
            *(_workload(comparison) for comparison in tuning.comparisons),
            Section("Convergence", [PageFigure(drawings[0])]),
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
