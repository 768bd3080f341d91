"""What the studies' pages are made of: a head, sections, tables, and how it all was measured."""

from collections.abc import Iterable, Sequence
from html import escape

from lrms_sim.pages.markup import brand, cells, column_heads, document, heading, scrolling
from scenarios.papers.verdicts import tone


def study_page(title: str, *about: str, command: str, verdict: str, sections: Sequence[str]) -> str:
    """Returns the page of a study.

    Args:
        title: of the study; plain text.
        about: paragraphs that say what was studied; HTML.
        command: what runs it, without `scenario`; plain text.
        verdict: the outcome; plain text.
        sections: HTML; empty ones are left out.
    """
    paragraphs = "".join(f'<p class="about">{paragraph}</p>\n' for paragraph in about)
    head = (
        f"<header>\n{brand(command)}\n<h1>{escape(title)}</h1>\n"
        f'<p class="headline">{escape(verdict)}</p>\n{paragraphs}</header>'
    )
    return document(title, [head, *sections])


def section(title: str, *parts: str, about: str = "") -> str:
    """Returns a section; nothing where it has no parts.

    Args:
        title: plain text.
        parts: HTML.
        about: HTML above the parts.
    """
    return f"<section>\n{heading(title)}\n{about}{''.join(parts)}</section>" if parts else ""


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[str],
    *first: str,
    name: str = "",
    compact: bool = False,
) -> str:
    """Returns a table that scrolls where it is too wide.

    Args:
        caption: plain text; none where empty.
        heads: of the columns with figures; HTML.
        rows: see `row`.
        first: heads of the columns before them; plain text, none for one without a head.
        name: for those who cannot see it; the caption where empty.
        compact: whether it takes no more room than it needs.
    """
    names = "".join(f'<th class="left" scope="col">{escape(each)}</th>' for each in first or ("",))
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(rows) if compact else "\n" + "\n".join(rows) + "\n"
    kind = ' class="compact"' if compact else ""
    return scrolling(
        f"<table{kind}>{above}<thead><tr>{names}"
        f"{column_heads(heads)}</tr></thead><tbody>{body}</tbody></table>",
        name or caption,
    )


def row(name: str, values: Sequence[str], *more: str, left: bool = True) -> str:
    """Returns a row of a table.

    Args:
        name: its head; plain text.
        values: its figures; HTML.
        more: plain text between both.
        left: whether the head is aligned at the left.
    """
    aligned = ' class="left"' if left else ""
    between = "".join(f'<td class="left">{escape(each)}</td>' for each in more)
    return f'<tr><th{aligned} scope="row">{escape(name)}</th>{between}{cells(values)}</tr>'


def stacked(value: str, below: str) -> str:
    """Returns a cell's figure with another one below it, both HTML."""
    return f'{value}<span class="of">{below}</span>'


def mark(holds: bool | None, word: str) -> str:
    """Returns the word of a verdict in the verdict's colour."""
    return f'<strong class="{tone(holds)}">{word}</strong>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Returns names with what is to be said of each; plain text."""
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f'<dl class="made">{listed}</dl>'


def points(title: str, texts: Iterable[str]) -> str:
    """Returns a section that lists points; plain text."""
    listed = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return section(title, f"<ul>{listed}</ul>")


def made(rows: Iterable[tuple[str, str]], version: str, after: str = "") -> str:
    """Returns the section that says how the study was made.

    Args:
        rows: names and what is to be said of each; plain text.
        version: of the program; plain text.
        after: HTML.
    """
    return section("How it was made", facts([*rows, ("Program", f"Hanse {version}")]), after)
