"""Pages in a terminal: their tables and the outcome, without pictures and explanations."""

import re
from collections.abc import Iterator

from rich import box
from rich import table as rich_table
from rich.console import Console
from rich.text import Text

from lrms_sim.pages.parts import Cell, Named, Page, Section, Stacked, Strong, Table, Together, Words

_TONES = {"gain": "green", "loss": "red"}


def print_page(console: Console, page: Page) -> None:
    """Prints the tables of a page and, last, its headline.

    Args:
        console: where to; its width is kept to, as words that are too long are broken.
        page: what is printed.
    """
    for table in tables(page):
        print_table(console, table)
        console.print()
    console.print(Text(page.headline))


def tables(page: Page) -> Iterator[Table]:
    """Yields the tables of a page's sections."""
    for section in page.parts:
        if isinstance(section, Section):
            yield from (part for part in section.parts if isinstance(part, Table))


def print_table(console: Console, table: Table) -> None:
    """Prints a table: words at the left of their columns, figures at the right."""
    shown = rich_table.Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        header_style="dim",
        title=Text(table.label),
        title_justify="left",
        title_style="bold",
    )
    for column, head in enumerate(table.heads):
        side = "left" if column == 0 or column in table.words else "right"
        shown.add_column(text(head), justify=side, overflow="fold")  # type: ignore[arg-type]  # it is one of rich's words
    for row in table.rows:
        shown.add_row(*map(text, row))
    console.print(shown)


def text(words: Words) -> Text:
    """Returns what a part says, in its colour; what people wrote is never markup."""
    if isinstance(words, Strong):
        return Text(words.text, style=_TONES.get(words.tone, "bold"))
    if isinstance(words, Stacked):
        return Text.assemble(text(words.text), "\n", words.below)
    if isinstance(words, Together):
        # What is beside each other on a page stands below each other where columns are narrow.
        return Text("\n").join(text(part) for part in words.parts if str(part) != "<br>")
    if isinstance(words, Cell):
        return text(words.text)
    if isinstance(words, Named | str):
        return Text(words if isinstance(words, str) else words.name)
    return Text(re.sub(r"<[^>]*>", "", str(words).replace("<br>", " ")))
