import re
from html.parser import HTMLParser

from scenarios.studies.utility_scheduling.page import render
from scenarios.studies.utility_scheduling.recorded import LogCase
from scenarios.studies.utility_scheduling.statements import statements, verdict
from scenarios.studies.utility_scheduling.study import Study
from tests.scenarios.studies.utility_scheduling.measured import small_study


class Tags(HTMLParser):
    """Counts open elements."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Notes an element."""
        del attrs
        if tag not in {"meta", "br", "path", "use", "rect"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Closes one."""
        if tag not in {"path", "use", "rect"}:
            assert self.open.pop() == tag


def test_the_page_has_every_figure_and_its_verdict() -> None:
    """The same document each time, with all of its elements closed."""
    page = render(small_study())
    assert page == render(small_study())
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    for words in ("Figures 2 and 3", "Figure 4", "Figure 5", "What else is reachable"):
        assert words in page
    assert "Recorded logs" not in page
    assert verdict(small_study()).split("“")[0].strip() in page


def test_every_statement_stands_beside_its_figure() -> None:
    """In the order of the readings, with a word for each verdict."""
    study = small_study()
    page = render(study)
    found = statements(study, "never")
    assert all(each.measured in page for each in found)
    for verdict_is, word in ((True, "yes"), (False, "no"), (None, "open")):
        told = sum(
            each.holds is verdict_is and each.run
            for reading in ("never", "printed", "growth")
            for each in statements(study, reading)
        )
        assert len(re.findall(rf"<strong[^>]*>{word}</strong>", page)) == told


def test_logs_are_shown_where_they_were_run() -> None:
    """Median and range of the training runs, and suspensions."""
    figures = [
        {"share": share, "suspensions": stops}
        for share, stops in ((0.5, 10), (0.75, 1000), (0.625, 20))
    ]
    logs = ((LogCase("kth", "lenient", "both-value"), figures),)
    page = render(Study(small_study().options, small_study().runs, logs))
    assert "Recorded logs" in page
    assert '62.5 %<span class="of">50.0 to 75.0</span></td><td>20</td>' in page


def test_an_empty_study_is_a_page() -> None:
    """Nothing measured is nothing shown."""
    options = {"experiments": 2, "sweep": 2, "reachable": 0}
    page = render(Study(options, ()))
    assert "0 of 0 statements" in page
    assert "Figure 4: arrival rates" not in page
