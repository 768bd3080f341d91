"""The parts of offline pages: data here, their HTML in `parts.html`, which has a macro for each.

Text is escaped; `Html` and drawings of figures are not. A template writes a part by naming it, so
parts can be nested.
"""

import base64
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from lrms_sim.report.templates import macro, resource

WIDE: Final = 820.0
"""Width of a figure that takes the whole column, in units of its view box."""

HALF: Final = 400.0
"""Width of a figure that shares the column with another, in the same units."""


class Part:
    """Something that the macro of the same name in `parts.html` writes."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(macro(type(self).__name__.lower())(self))

    __str__ = __html__


@dataclass(frozen=True, slots=True)
class Html:
    """HTML that is taken as it is: the program's own, never what people wrote."""

    text: str

    def __html__(self) -> str:
        return self.text

    __str__ = __html__


Words: TypeAlias = str | Html | Part
"""Plain text, or something that knows its HTML."""


@dataclass(frozen=True, slots=True)
class Strong(Part):
    """Text that stands out; `tone` is "gain", "loss" or nothing, and colours it."""

    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Stacked(Part):
    """A figure with a smaller one below it."""

    text: Words
    below: str


@dataclass(frozen=True, slots=True)
class Together(Part):
    """Parts in one line, or cell."""

    parts: Sequence[Words]


@dataclass(frozen=True, slots=True)
class Named(Part):
    """A name behind the dot of its colour; colours repeat after eight."""

    name: str
    color: int


@dataclass(frozen=True, slots=True)
class Cell(Part):
    """A cell that differs from the others of its column.

    Attributes:
        kind: its class: "home" for local jobs in a matrix.
        shade: how dark it is, 0 to 1; `None` for none.
    """

    text: Words
    kind: str = ""
    shade: float | None = None


@dataclass(frozen=True, slots=True)
class Table(Part):
    """A table in a box that scrolls sideways in a narrow window.

    Attributes:
        heads: of the columns, possibly empty.
        rows: a cell for each column, the first being the row's head; or one cell, a heading of the
            rows below it.
        caption: none if it and `title` are empty.
        title: emphasized at the beginning of the caption.
        name: for screen readers; default title or caption.
        groups: heads above those of the columns after the first, each with its number of columns.
        words: the numbers of the columns that are text, which wraps, and not figures.
        kind: "compact", "matrix" or "statements"; default the usual look.
        chosen: the number of the marked row; `None` for none.
    """

    heads: Sequence[Words]
    rows: Sequence[Sequence[Words]]
    caption: str = ""
    title: str = ""
    name: str = ""
    groups: Sequence[tuple[Words, int]] = ()
    words: Collection[int] = ()
    kind: str = ""
    chosen: int | None = None

    @property
    def label(self) -> str:
        """What the table is called."""
        return self.name or self.title or self.caption


@dataclass(frozen=True, slots=True)
class Figure(Part):
    """One or more drawings, which are HTML.

    Attributes:
        drawing: `<svg>` elements.
        caption: none if empty.
        kind: "wide" for one of full width, "pair" for two side by side.
        label: of one that scrolls in a narrow window.
    """

    drawing: str
    caption: str = ""
    kind: str = "wide"
    label: str = "Figure"


@dataclass(frozen=True, slots=True)
class Facts(Part):
    """Names with facts."""

    rows: Sequence[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class Points(Part):
    """A list of points."""

    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Note(Part):
    """A paragraph of a kind: "warning" or "thanks"."""

    text: str
    kind: str = "warning"


@dataclass(frozen=True, slots=True)
class Legend(Part):
    """What colours and marks of a chart mean: each a number of a colour, or the class of a mark, and its name."""

    marks: Sequence[tuple[int | str, str]]


@dataclass(frozen=True, slots=True)
class Folded(Part):
    """A part that is collapsed by default."""

    summary: str
    part: Words


@dataclass(frozen=True, slots=True)
class Card(Part):
    """A key figure.

    Attributes:
        name: above it, with `below`; none if empty.
        below: note on the name.
        tone: "gain", "loss" or nothing.
    """

    value: str
    meaning: str
    name: str = ""
    below: str = ""
    tone: str = ""
    color: int = 0
    facts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Group(Part):
    """Parts below a small heading.

    Attributes:
        parts: text is a paragraph.
        small: note next to the heading.
        color: number of the dot before it; `None` for none.
    """

    title: str
    parts: Sequence[Words]
    small: str = ""
    color: int | None = None


@dataclass(frozen=True, slots=True)
class Section(Part):
    """Parts below a heading; nothing without parts.

    Attributes:
        parts: text is a paragraph; empty text is left out.
        about: paragraph above the parts.
        whole: whether it is kept on one printed page.
    """

    title: str
    parts: Sequence[Words]
    about: Words = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Page(Part):
    """A whole document in the look of all reports.

    Its content policy allows the page's own script only, and no loading.

    Attributes:
        title: the headline, and the window's name if `window` is empty.
        brand: kind of page, in the line above.
        headline: the outcome, in a sentence.
        about: paragraphs on the content.
        broad: whether it is as wide as a chart of many rows needs.
    """

    title: str
    brand: str
    parts: Sequence[Words]
    headline: str = ""
    notes: Sequence[str] = ()
    about: Sequence[Words] = ()
    cards: Sequence[Card] = ()
    cards_of: str = ""
    script: str = ""
    broad: bool = False
    window: str = ""

    @property
    def style(self) -> str:
        """Its style sheet."""
        return "".join(
            resource("lrms_sim.report", f"{name}.css") for name in ("colors", "page", "chart")
        )

    @property
    def policy(self) -> str:
        """What a browser is allowed."""
        digest = base64.b64encode(hashlib.sha256(self.script.encode()).digest()).decode("ascii")
        runs = f"'sha256-{digest}'" if self.script else "'none'"
        return (
            f"default-src 'none'; script-src {runs}; style-src 'unsafe-inline'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )


def made(rows: Sequence[tuple[str, object]], version: str, thanks: Sequence[str] = ()) -> Section:
    """Returns the section on provenance, with the version and thanks last."""
    facts = Facts([*rows, ("Program", f"Hanse {version}")])
    return Section("How it was made", [facts, *(Note(line, "thanks") for line in thanks)])
