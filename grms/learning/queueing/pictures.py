"""Pictures of a tuning run: how it converged, and which strategy is chosen when."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grms.learning.evolution.termination import GenerationRecord
from grms.learning.plots import BLUE, ORANGE, drawn
from lrms_sim.report import svg
from lrms_sim.scheduling.selection import FEATURES, StrategyRules, StrategyTable

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
