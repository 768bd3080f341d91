from html.parser import HTMLParser

import pytest

from scenarios.studies.queue_strategies.page import render
from scenarios.studies.queue_strategies.reference import GREEDY, TITLES
from scenarios.studies.queue_strategies.statements import statements, verdict
from tests.scenarios.studies.queue_strategies.made_up import made_up

GAINS = {
    "greedy-criteria": {"f1": 8.0, "f2": 9.5},
    "genetic-fuzzy": {"iterative": -3.0, "symbiotic": 5.0},
}


class Heads(HTMLParser):
    """What heading cells head."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scopes: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a heading cell."""
        if tag == "th":
            self.scopes.append(dict(attrs).get("scope"))


@pytest.mark.parametrize("paper", TITLES)
def test_the_page_has_paper_constants_and_what_was_learned(paper: str) -> None:
    """Medians with their range, the verdicts, and the same bytes twice."""
    study = made_up(paper, GAINS[paper], many=4.0 if paper == GREEDY else None)
    page = render(study)
    assert TITLES[paper] in page
    assert verdict(study) in page
    assert all(one.claim in page for one in statements(study))
    assert "constant, unseen" in page
    printed = "+9.50" if paper == GREEDY else "-130.39"
    assert printed in page
    median, low, high = (
        ("+9.50", "+8.50", "+10.50") if paper == GREEDY else ("-3.00", "-4.00", "-2.00")
    )
    assert f'<strong>{median}</strong><span class="of">{low} … {high}</span>' in page
    assert None not in Heads(page).scopes
    assert page == render(made_up(paper, GAINS[paper], many=4.0 if paper == GREEDY else None))


def test_without_unseen_jobs_nothing_is_said_of_them() -> None:
    """The columns are empty, and the scaling is said."""
    page = render(made_up("genetic-fuzzy", GAINS["genetic-fuzzy"], unseen=None, moved=None))
    assert "scaled to 64 processors" in page
    assert "learned, unseen</" in page
    assert "all later jobs are unseen" not in page
