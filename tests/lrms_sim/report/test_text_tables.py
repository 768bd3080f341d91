"""Tables as text."""

from lrms_sim.report.text_tables import latex, markdown


def test_a_table_is_markdown() -> None:
    """A bar in a cell is no end of it."""
    assert markdown(("a", "b"), [("1|2", "3")]) == "| a | b |\n|---|---|\n| 1\\|2 | 3 |\n"


def test_a_table_is_latex() -> None:
    """What LaTeX takes for its own is printed as it is."""
    assert latex(("log", "change"), [("a_b & c", "−5.0%"), (r"\x^~{}", "–")]).splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"log & change \\",
        r"\midrule",
        r"a\_b \& c & $-$5.0\% \\",
        r"\textbackslash{}x\textasciicircum{}\textasciitilde{}\{\} & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
