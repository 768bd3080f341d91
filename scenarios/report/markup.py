"""Small pieces of HTML that the parts of the page share."""

from collections.abc import Sequence
from html import escape


def heading(text: str) -> str:
    """Returns the heading of a section."""
    return f"<h2>{escape(text)}</h2>"


def figure(drawing: str, caption: str, kind: str) -> str:
    """Returns a figure.

    Args:
        drawing: one or more `<svg>` elements.
        caption: plain text; none where empty.
        kind: "wide" for one drawing of full width, "pair" for two side by side.
    """
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure><div class="{kind}">{drawing}</div>{below}</figure>\n'


def scrolling(table: str, name: str) -> str:
    """Returns a table in a box that scrolls sideways where the window is too narrow for it."""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}">'
        f"{table}</div>\n"
    )


def cells(values: Sequence[str]) -> str:
    """Returns table cells of texts that are HTML already."""
    return "".join(f"<td>{value}</td>" for value in values)


def site_cell(name: str, index: int) -> str:
    """Returns the heading cell of a site's row, with the dot of its colour."""
    return (
        f'<th scope="row"><span class="name"><span class="dot" '
        f'style="--site:var(--site-{index % 8})"></span><span>{escape(name)}</span></span></th>'
    )


def column_heads(names: Sequence[str]) -> str:
    """Returns heading cells of columns; the names are HTML already."""
    return "".join(f'<th scope="col">{name}</th>' for name in names)
