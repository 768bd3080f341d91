"""Pictures of a training run, as `<svg>` elements of its page.

Two drawings of the same data are equal byte for byte.
"""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from grms.learning.evolution.termination import GenerationRecord
from lrms_sim.report import svg
from lrms_sim.report.parts import WIDE

BLUE = svg.color("federated")

ORANGE = svg.color("site-5")


def convergence_svg(history: Sequence[GenerationRecord], unit: str) -> str:
    """Draws the best value so far, and below it the mean of each generation.

    Each has its own scale: one flipped recommendation can make a child many times worse, so the
    mean stays far above the best. The history is not empty.
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
            axes.grid(color=svg.color("grid"))
        figure.supylabel(unit, fontsize="medium")

    about = "Best value so far and mean of each generation"
    return drawn("convergence", "Convergence", about, draw)


def drawn(key: str, title: str, description: str, draw: Callable[[Figure], None]) -> str:
    """Returns what `draw` draws on a figure of the usual size.

    `key` is unique within the page; `title` and `description` are for screen readers.
    """
    with svg.drawing():
        figure = svg.new_figure(WIDE, 450.0)
        figure.set_layout_engine("constrained")
        draw(figure)
        return svg.render(figure, key=key, title=title, description=description)
