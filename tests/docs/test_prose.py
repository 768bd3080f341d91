"""The phrases that `make lint` looks for are found in prose and not in code."""

import runpy
from pathlib import Path

PROSE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "site" / "prose.py"))


def test_a_phrase_is_found_with_its_line() -> None:
    """Also across the end of a line, and at the beginning of a sentence."""
    text = (
        "Fine.\n\n```\nnobody\n```\nThe partner is\ntold, and `beside` is code.\nNobody sees it.\n"
    )
    assert PROSE["mistakes"]("a.md", text) == [
        "a.md:6: 'is told'; better: is notified, learns, is logged, gets the request",
        "a.md:8: 'Nobody'; better: no site, a user, any partner, all jobs; or the passive",
    ]
    fine = "Names are told apart by `scenario study nobody-loses`, besides; see [there](nobody.md)."
    assert PROSE["mistakes"]("a.md", fine) == []


def test_all_texts_are_plain() -> None:
    """Pages, and the help of every command."""
    texts = dict(PROSE["texts"]())
    assert {"README.md", "docs/operating.md", "grms submit --help", "lrms-sim run --help"} <= {
        *texts
    }
    assert [line for name, text in texts.items() for line in PROSE["mistakes"](name, text)] == []
