"""Small pieces of HTML that pages share."""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib import resources

_MARK = (
    '<svg viewBox="0 0 22 22" aria-hidden="true"><path d="M3 2h16v9H3z" fill="#fff"/>'
    '<path d="M3 11h16c0 5-4 8-8 9-4-1-8-4-8-9z" fill="var(--brand)"/>'
    '<path d="M3 2h16v9c0 5-4 8-8 9-4-1-8-4-8-9z" fill="none" stroke="var(--brand)" '
    'stroke-width="1.4"/></svg>'
)


def document(title: str, parts: Sequence[str], script: str = "") -> str:
    """Returns a whole HTML document in the look of all reports.

    A browser is told to run this script and no other, and to load nothing from anywhere.

    Args:
        title: for the window; plain text.
        parts: what stands on the page, HTML; empty ones are left out.
        script: what runs at the end of the page; nothing where empty.
    """
    body = "\n".join(part for part in parts if part)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    runs = f"'sha256-{digest}'" if script else "'none'"
    policy = (
        f"default-src 'none'; script-src {runs}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    element = f"<script>{script}</script>\n" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)} · Hanse</title>\n"
        f"<style>\n{resource('lrms_sim.pages', 'page.css')}</style>\n</head>\n<body>\n"
        f'<main class="page">\n{body}\n</main>\n{element}</body>\n</html>\n'
    )


def resource(package: str, name: str) -> str:
    """Returns the text of a file that lies in a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def brand(words: str) -> str:
    """Returns the line above a page's headline.

    Args:
        words: what the page is; plain text.
    """
    return f'<div class="brand">{_MARK}<span><b>Hanse</b> · {escape(words)}</span></div>'


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
    # In a narrow window a wide one scrolls, by keyboard too.
    scrolls = ' role="group" tabindex="0" aria-label="Figure"' if kind == "wide" else ""
    return f'<figure><div class="{kind}"{scrolls}>{drawing}</div>{below}</figure>\n'


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
