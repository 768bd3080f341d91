"""The two pictures of a training run, as SVG that stands alone.

Two drawings of the same data are equal byte for byte.
"""

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from grms.learning.termination import GenerationRecord
from grms.learning.visits import Visits
from grms.policy.transfer import RuleBase

ACCEPT = (0.13, 0.40, 0.67)
"""Colour of states in which the site runs a job itself; red, green and blue from 0 to 1."""

DECLINE = (0.85, 0.45, 0.10)
"""Colour of states in which it lets a job go."""

NWP_CELLS = 120
"""Cells of the decision map along NWP."""

NJP_CELLS = 50
"""Cells along NJP: 2 % each."""

NAME_LENGTH_MAX = 20
"""Longest name of a site in a picture; longer ones are cut."""

_PALE = 0.22  # how strong the colour of a cell is that no decision has visited
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text as text: it can be searched and read aloud
    "svg.hashsalt": "hanse-training",
    "text.parse_math": False,  # a site may be called $x$
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same layout everywhere
    "font.size": 10.0,
}


def convergence_svg(history: Sequence[GenerationRecord], unit: str) -> str:
    """Draws the best value so far, and below it the mean of each generation.

    Each has its own scale: one recommendation that is turned round can make a child many times
    worse, so the mean stays far above the best.

    Args:
        history: at least one generation.
        unit: what a value is, for the axis.
    """
    generation = [record.generation for record in history]
    best = np.array([record.best for record in history])
    mean = np.array([record.mean for record in history])
    spread = np.array([record.spread for record in history])

    def draw(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        # A single generation is a point, not a line.
        marker = "o" if len(history) == 1 else None
        above.step(generation, best, where="post", color=DECLINE, linewidth=1.8, marker=marker)
        above.set_title("best so far", loc="left", fontsize="medium")
        below.fill_between(
            generation, mean - spread, mean + spread, color=ACCEPT, alpha=0.15, linewidth=0
        )
        below.plot(generation, mean, color=ACCEPT, linewidth=1.2, marker=marker)
        below.set_title("mean of the generation ± spread", loc="left", fontsize="medium")
        below.set_xlabel("generation")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(history) == 1:
            below.set_xlim(generation[0] - 1, generation[0] + 1)
        # The spread of founders, and what lies below every value, would squeeze the rest.
        settled = (mean + spread)[len(mean) // 4 :]
        around = np.concatenate([mean, settled, np.maximum(mean - spread, best.min())])
        for axes, values in ((above, best), (below, around)):
            low, high = float(values.min()), float(values.max())
            margin = 0.08 * (high - low) or 0.01 * abs(low) or 1.0
            axes.set_ylim(low - margin, high + margin)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
            if high >= 1000:
                axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axes.grid(color="0.9")
        figure.supylabel(unit, fontsize="medium")

    return _svg("Convergence", draw)


def decision_map(
    rule_base: RuleBase, nwp: npt.NDArray[np.float64], njp: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Returns what a rule base decides on a grid.

    Args:
        rule_base: the policy.
        nwp: shape (a,), values of the normalized waiting parallelism.
        njp: shape (b,), values of the normalized job parallelism, percent.

    Returns:
        Shape (b, a); True where the site runs the job itself.
    """
    output = rule_base.compiled.output
    return np.array([[output(x, y) > 0 for x in nwp.tolist()] for y in njp.tolist()])


def decision_map_svg(rule_base: RuleBase, visits: Visits, site: str) -> str:
    """Draws what a rule base decides over NWP × NJP, stronger where a replay has been.

    Args:
        rule_base: the policy.
        visits: the states in which it was asked.
        site: whose policy it is.
    """
    edge = float(max(1.0, np.quantile(visits.nwp, 0.999))) if len(visits) else 10.0
    nwp_edges = np.linspace(0.0, edge, NWP_CELLS + 1)
    njp_edges = np.linspace(0.0, 100.0, NJP_CELLS + 1)
    accepted = decision_map(
        rule_base, (nwp_edges[:-1] + nwp_edges[1:]) / 2, (njp_edges[:-1] + njp_edges[1:]) / 2
    )
    count = np.histogram2d(visits.njp, visits.nwp, (njp_edges, nwp_edges))[0]
    strength = np.where(
        count > 0, 0.5 + 0.5 * np.log1p(count) / np.log1p(max(count.max(), 1)), _PALE
    )
    color = np.where(accepted[..., None], np.array(ACCEPT), np.array(DECLINE))
    image = 1.0 - strength[..., None] * (1.0 - color)

    shown = site if len(site) <= NAME_LENGTH_MAX else site[: NAME_LENGTH_MAX - 1] + "…"

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.imshow(
            image, origin="lower", aspect="auto", interpolation="nearest", extent=(0, edge, 0, 100)
        )
        axes.set_xlabel(f"NWP: processors the queue of {shown} asks for / its processors")
        axes.set_ylabel("NJP: processors the job asks for, % of the site's")
        axes.legend(
            handles=[
                Patch(color=ACCEPT, label=f"runs at {shown}"),
                Patch(color=DECLINE, label="is let go"),
                Patch(color="0.55", label="shaded: where decisions were taken"),
            ],
            frameon=False,
            ncols=3,
            loc="lower left",
            bbox_to_anchor=(0, 1),
        )

    return _svg("Decision map", draw)


def _svg(title: str, draw: Callable[[Figure], None]) -> str:
    out = io.StringIO()
    with rc_context(_SETTINGS), warnings.catch_warnings():
        # Names may hold characters that DejaVu lacks; the browser's fonts do the drawing anyway.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(8, 4.5), dpi=72, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type")) | {"Title": title}
        figure.savefig(out, format="svg", metadata=metadata)
    return out.getvalue()
