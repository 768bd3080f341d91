"""Pictures of a training run, as SVG that stands alone.

Two drawings of the same data are equal byte for byte.
"""

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from grms.learning.evolution.termination import GenerationRecord

BLUE = (0.13, 0.40, 0.67)
"""Colour of what is good or usual; red, green and blue from 0 to 1."""

ORANGE = (0.85, 0.45, 0.10)
"""Colour of what stands out."""

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
        above.step(generation, best, where="post", color=ORANGE, linewidth=1.8, marker=marker)
        above.set_title("best so far", loc="left", fontsize="medium")
        below.fill_between(
            generation, mean - spread, mean + spread, color=BLUE, alpha=0.15, linewidth=0
        )
        below.plot(generation, mean, color=BLUE, linewidth=1.2, marker=marker)
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

    return svg("Convergence", draw)


def svg(title: str, draw: Callable[[Figure], None]) -> str:
    """Returns what a function draws on a figure of the usual size, as SVG with that title."""
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
