"""What of a page is told in a terminal."""

import io

from rich.console import Console

from lrms_sim.report.parts import (
    Cell,
    Figure,
    Html,
    Named,
    Page,
    Section,
    Stacked,
    Strong,
    Table,
    Together,
    Words,
)
from lrms_sim.report.terminal import print_page


def printed(page: Page, *, width: int = 80, color: bool = False) -> str:
    """Returns what a terminal is told."""
    out = io.StringIO()
    print_page(
        Console(
            file=out, width=width, color_system="standard" if color else None, force_terminal=color
        ),
        page,
    )
    return out.getvalue()


def test_tables_come_first_and_the_outcome_last() -> None:
    """Every kind of cell is words; names are no markup, and what is not a table is left out."""
    rows: list[list[Words]] = [
        [Named("[b]a[/b]", 0), Stacked("1", "2"), Cell(Strong("3", "gain"), "home")],
        ["only a head"],
        [Html("C<sub>max</sub>"), Together([Strong("yes"), Html("<br>"), "4"]), ""],
    ]
    table = Table(("site", "x", "y"), rows, "Some figures")
    page = Page("t", "b", [Section("s", ["text", Figure("<svg/>"), table])], headline="It is so.")
    lines = [line.split() for line in printed(page).splitlines()]
    assert [line for line in lines if line and "─" not in line[0]] == [
        ["Some", "figures"],
        ["site", "x", "y"],
        ["[b]a[/b]", "1", "3"],
        ["2"],
        ["only", "a", "head"],
        ["Cmax", "yes"],
        ["4"],
        ["It", "is", "so."],
    ]


def test_verdicts_have_colours_and_long_words_are_broken() -> None:
    """Nothing is cut off in a narrow window."""
    table = Table(("a", "b"), [["x" * 30, Strong("no", "loss")]], "t")
    page = Page("t", "b", [Section("s", [table])])
    assert "\x1b[31mno" in printed(page, color=True)
    narrow = printed(page, width=20)
    assert narrow.count("x") == 30
    assert max(map(len, narrow.splitlines())) <= 20
