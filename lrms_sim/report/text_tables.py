"""Tables as text for other documents: Markdown and LaTeX."""

from collections.abc import Iterable, Sequence
from typing import Final

_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table as Markdown, for documentation that is to have what a command has measured."""
    lines = [_row(heads), "|" + "---|" * len(heads), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def latex(heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Returns a table as a LaTeX `tabular`, with the rules of the package booktabs.

    The first `words` columns are at the left, the others at the right.
    """
    columns = "l" * words + "r" * (len(heads) - words)
    lines = [_cells(row) for row in rows]
    return "\n".join(
        [
            f"\\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _cells(heads),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def escaped_latex(text: str) -> str:
    """Returns text as LaTeX prints it."""
    return "".join(_LATEX.get(character, character) for character in text)


def _cells(row: Sequence[str]) -> str:
    return " & ".join(map(escaped_latex, row)) + r" \\"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
