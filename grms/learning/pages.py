"""Self-contained HTML pages on training runs: the look, tables and pictures that they share."""

import html
from base64 import b64encode
from collections.abc import Sequence


def document(title: str, parts: Sequence[str]) -> str:
    """Returns a whole HTML document.

    Args:
        title: plain text; the headline too.
        parts: what stands below it, HTML.
    """
    name = html.escape(title)
    return f"{_HEAD.replace('TITLE', name)}<h1>{name}</h1>\n" + "\n".join(parts) + _END


def facts_table(facts: Sequence[tuple[str, object]]) -> str:
    """Returns a table of names and what they stand for, plain text."""
    return f'<table class="facts">{"".join(_row(fact) for fact in facts)}</table>'


def figures_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], name: str, *, texts: int = 1
) -> str:
    """Returns a table that scrolls sideways where the window is too narrow for it.

    Args:
        columns: their headings, plain text.
        rows: a cell for each column; the first one is the heading of its row.
        name: what the table is, for those who cannot see it.
        texts: how many columns are words; the others are numbers, to the right.
    """
    heads = "".join(
        f'<th scope="col"{"" if place < texts else _NUMBER}>{html.escape(column)}</th>'
        for place, column in enumerate(columns)
    )
    body = "".join(_row(row, texts=texts) for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{html.escape(name)}">\n'
        f'<table class="figures"><thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table></div>'
    )


def image(drawing: str, description: str) -> str:
    """Returns a picture.

    Args:
        drawing: SVG that stands alone.
        description: for those who cannot see it.
    """
    data = b64encode(drawing.encode()).decode()
    alt = html.escape(description)
    return f'<img alt="{alt}"\n src="data:image/svg+xml;base64,{data}">'


def _row(cells: Sequence[object], *, texts: int = 1 << 30) -> str:
    inner = "".join(
        f'<th scope="row">{html.escape(str(cell))}</th>'
        if place == 0
        else f"<td{'' if place < texts else _NUMBER}>{html.escape(str(cell))}</td>"
        for place, cell in enumerate(cells)
    )
    return f"<tr>{inner}</tr>"


_NUMBER = ' class="number"'

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>TITLE</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>
:root { color-scheme: light; --paper: #fff; --ink: #222; --line: #ddd; --mark: #fff3dc; }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --paper: #11161d; --ink: #e8ecf1; --line: #394454; --mark: #3a2f18; }
}
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 860px; margin: 2em auto; padding: 0 1em;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { text-align: left; padding: .25em .9em .25em 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.figures th, .figures td { white-space: nowrap; overflow-wrap: normal; }
.facts th { min-width: 8em; overflow-wrap: normal; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.warning { background: var(--mark); padding: .5em .8em; border-radius: 6px; }
pre { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; padding: .6em .8em;
  font-size: 13px; overflow-wrap: normal; }
/* The pictures are drawn on white, and stay so. */
img { display: block; width: 100%; background: #fff; border-radius: 6px; }
</style></head><body><main>
"""

_END = "\n</main></body></html>\n"
