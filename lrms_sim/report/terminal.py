"""Pages in a terminal: sentences and tables, without pictures and explanations.

Nothing depends on colours, and without UTF-8 the few special characters become ASCII.
"""

import re
from collections.abc import Iterator

from rich import box
from rich import table as rich_table
from rich.console import Console
from rich.text import Text

from lrms_sim.report.parts import (
    Cell,
    Named,
    Page,
    Section,
    Stacked,
    Strong,
    Table,
    Together,
    Words,
)

_STYLES = {"gain": "green", "loss": "red", "home": "dim"}
_ASCII = str.maketrans(
    {
        "Δ": "d",
        "→": ">",
        "–": "-",
        "±": "~",
        "…": "~",
        "·": "-",
        "∞": "inf",
        "\N{MINUS SIGN}": "-",
    }
)


def print_page(console: Console, page: Page) -> None:
    """Prints the tables of a page and, last, its headline, within the console's width."""
    for table in tables(page):
        print_table(console, table)
    console.print()
    console.print(text(console, page.headline))


def tables(page: Page) -> Iterator[Table]:
    """Yields the tables of a page's sections."""
    for section in page.parts:
        if isinstance(section, Section):
            yield from (part for part in section.parts if isinstance(part, Table))


def print_table(console: Console, table: Table) -> None:
    """Prints an empty line, what a table is called, and the table."""
    console.print()
    if table.label:
        console.print(text(console, table.label, "bold"))
    console.print(drawn(console, table))


def drawn(console: Console, table: Table) -> rich_table.Table:
    """Returns a table for a terminal: words at the left of their columns, figures at the right."""
    shown = rich_table.Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        header_style="dim",
    )
    for column, head in enumerate(table.heads):
        words = column == 0 or column in table.words
        shown.add_column(text(console, head), justify="left" if words else "right", overflow="fold")
    for number, row in enumerate(table.rows):
        first = text(console, row[0], "bold" if number == table.chosen else "")
        shown.add_row(first, *(text(console, each) for each in row[1:]))
    return shown


def text(console: Console, words: Words, style: str = "") -> Text:
    """Returns a part's text in characters the terminal has; user text is never markup."""
    if isinstance(words, Strong):
        return text(console, words.text, _STYLES.get(words.tone, ""))
    if isinstance(words, Stacked):
        return Text("\n").join((text(console, words.text), text(console, words.below)))
    if isinstance(words, Together):
        # What is beside each other on a page stands below each other where columns are narrow.
        return Text("\n").join(text(console, part) for part in words.parts if str(part) != "<br>")
    if isinstance(words, Cell):
        return text(console, words.text, _STYLES.get(words.kind, ""))
    if isinstance(words, Named):
        words = words.name
    said = (
        words if isinstance(words, str) else re.sub(r"<[^>]*>", "", str(words).replace("<br>", " "))
    )
    if console.options.ascii_only:
        said = said.translate(_ASCII).encode(console.encoding, "replace").decode(console.encoding)
    return Text(said, style=style)
