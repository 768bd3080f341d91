"""Matplotlib figures as inline SVG that matches its page.

Text stays text, in the page's font, and palette colours are CSS variables, for white paper and dark
mode. Two drawings of one figure are equal byte for byte.
"""

import html
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

FONT_SIZE = 11.0
"""Size of all text, in units of the SVG's view box."""

NAME_LENGTH = 11
"""Longer names of sites are cut in figures."""

_VARIABLES = (
    "ink",
    "muted",
    "grid",
    "paper",
    "alone",
    "federated",
    "gain",
    "loss",
    "work",
    *(f"site-{n}" for n in range(8)),
)

# Matplotlib knows no CSS variables. Each stands in as a colour nobody would choose.
_STAND_INS = {name: f"#0000{number:02x}" for number, name in enumerate(_VARIABLES, start=1)}
_STAND_IN = re.compile(r"#0000([0-9a-f]{2})")

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text as text: it can be searched, read aloud and restyled
    "text.parse_math": False,  # a site may be called $x$
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same layout everywhere
    "font.size": FONT_SIZE,
    "path.simplify": True,
}


def color(name: str) -> str:
    """Returns the placeholder of a CSS variable of the page.

    Names: ink, muted, grid, paper, alone, federated, gain, loss, work, site-0 … site-7.
    """
    return _STAND_INS[name]


def site_color(index: int) -> str:
    """Returns the stand-in for the colour of a site; colours repeat after eight sites."""
    return _STAND_INS[f"site-{index % 8}"]


@contextmanager
def drawing() -> Iterator[None]:
    """Sets up matplotlib for the figures of a page, within the block only."""
    # Names may hold characters that DejaVu lacks; the browser's fonts do the drawing anyway.
    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def new_figure(width: float, height: float) -> Figure:
    """Returns an empty figure of so many units of the view box."""
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    FigureCanvasSVG(figure)
    return figure


def bare(axes: Axes) -> None:
    """Takes away frame and tick marks; grid and labels are enough."""
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(
        length=0,
        labelcolor=color("muted"),
        labelsize=FONT_SIZE,
        labelleft=True,
        pad=5,
    )
    axes.set_facecolor("none")


def heading(axes: Axes, text: str, *, height: float, x: float = 0.0, rows: int = 1) -> None:
    """Writes a heading above axes of a height in units; row 1 is the lowest, `x` in axes widths."""
    axes.text(
        x,
        1 + (18 * rows - 6) / height,
        text,
        transform=axes.transAxes,
        color=color("ink"),
        fontweight="bold",
    )


def render(figure: Figure, *, key: str, title: str, description: str) -> str:
    """Returns a figure drawn within `drawing` as an `<svg>` element for a page.

    `key` is unique within the page: letters, digits and dashes. `title` and `description` are for
    screen readers.
    """
    out = io.StringIO()
    with rc_context({"svg.hashsalt": f"hanse-{key}"}):
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=metadata)
    body = out.getvalue()
    body = body[body.index("<svg") :]
    box = re.search(r'viewBox="([^"]+)"', body)
    assert box is not None, "matplotlib writes a viewBox"
    body = body[body.index(">") + 1 : body.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"<[^>]*>", _restyled, body)
    body = re.sub(r"<defs>\s*</defs>", "", body)
    body = re.sub(r"\s*\n\s*", "\n", body)
    return (
        f'<svg class="chart" viewBox="{box.group(1)}" role="img" '
        f'aria-labelledby="{key}-title {key}-text">'
        f'<title id="{key}-title">{html.escape(title)}</title>'
        f'<desc id="{key}-text">{html.escape(description)}</desc>{body}</svg>'
    )


def _restyled(match: re.Match[str]) -> str:
    """Returns a tag with the page's colours and font, and without unused ids.

    Matplotlib escapes `<` and `>` in texts, so the pattern finds tags only.
    """
    tag = match.group()
    # Groups are numbered alike in every figure; in one page those ids would clash.
    tag = re.sub(r'^<g id="[^"]*"', "<g", tag)
    tag = tag.replace("xlink:href=", "href=").replace("rotate(-0 ", "rotate(0 ")
    tag = re.sub(r' transform="rotate\(0 [^"]*\)"', "", tag)
    tag = re.sub(r"font-family: [^;\"]*(; )?", "", tag)
    # Matplotlib before 3.10 writes the shorthand.
    tag = re.sub(r"font: (\d+) ([\d.]+px)[^;\"]*", r"font-weight: \1; font-size: \2", tag)
    tag = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", tag)
    tag = tag.replace(f"font-size: {FONT_SIZE:g}px; ", "").replace(
        f"font-size: {FONT_SIZE:g}px", ""
    )
    return _STAND_IN.sub(_variable, tag)


def _variable(match: re.Match[str]) -> str:
    number = int(match.group(1), 16)
    if number > len(_VARIABLES):
        return match.group()
    # 0 is black, which matplotlib takes where nobody chose a colour.
    return f"var(--{_VARIABLES[max(number, 1) - 1]})"
