from html import escape

from grms.federation.sites import BYZANTINE_PARTNERS
from scenarios.studies.nobody_loses.page import WEAK, page_of
from scenarios.studies.nobody_loses.statements import verdict
from tests.scenarios.studies.nobody_loses.measured import small_study
from tests.scenarios.studies.utility_scheduling.test_page import Tags


def test_the_page_has_every_part_and_where_it_is_weak() -> None:
    """The same document each time, with all of its elements closed, and no address of anybody."""
    study = small_study()
    page = str(page_of(study))
    assert page == str(page_of(study))
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    for words in (
        "Half a year",
        "Single months",
        "Byzantine partners",
        "Adoption and chance",
        "headroom",
        "Federations by chance",
        "Strict exchange on the four logs",
        "Federations of 30 days",
        "What a new start costs",
        "Byzantine partners of strict sites",
        "Adoption of strict exchange, and chance",
    ):
        assert words in page
    assert all(escape(point) in page for point in WEAK)
    assert all(f"<dt>{word}</dt>" in page for word in BYZANTINE_PARTNERS)
    assert escape(verdict(study)) in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_parts_that_were_not_run_are_left_out() -> None:
    """What is weak is said all the same."""
    page = str(page_of(small_study(("adoption",))))
    assert "Half a year</h2>" not in page
    assert "Adoption and chance" in page
    assert escape(WEAK[0]) in page
