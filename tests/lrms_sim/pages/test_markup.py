from importlib.resources import files
from pathlib import Path

import pytest

from lrms_sim.pages import markup
from tests.browser import Browser, is_wider, look


def test_what_people_wrote_is_escaped() -> None:
    """Headings, captions, labels and names are text, whatever stands in them."""
    assert markup.heading("a < b & c") == "<h2>a &lt; b &amp; c</h2>"
    assert "<figcaption>x &amp; y</figcaption>" in markup.figure("<svg></svg>", "x & y", "wide")
    assert 'aria-label="&quot;x&quot;"' in markup.scrolling("<table></table>", '"x"')
    assert "<span>&lt;b&gt;</span>" in markup.site_cell("<b>", 0)


def test_a_figure_without_caption_has_no_empty_one() -> None:
    """Nothing to say takes no room."""
    assert "figcaption" not in markup.figure("<svg></svg>", "", "pair")


def test_wide_tables_can_be_scrolled_from_the_keyboard() -> None:
    """A box that scrolls can be focused and has a name."""
    box = markup.scrolling("<table></table>", "Results")
    assert 'role="region" tabindex="0" aria-label="Results"' in box


def test_rows_and_columns_have_heads() -> None:
    """Heading cells say which way they head; colours of sites repeat after eight."""
    assert markup.column_heads(["a", "b"]) == '<th scope="col">a</th><th scope="col">b</th>'
    assert markup.cells(["1", "2"]) == "<td>1</td><td>2</td>"
    assert 'scope="row"' in markup.site_cell("a", 1)
    assert "var(--site-1)" in markup.site_cell("a", 9)


CAPTION_SEEN = """
const box = document.querySelector('.scroll'), text = document.createRange();
text.selectNodeContents(box.querySelector('caption'));
box.scrollLeft = arguments[0];
const {left, right} = text.getBoundingClientRect(), seen = box.getBoundingClientRect();
return [box.scrollLeft > 0, seen.left - 1 < left && right < seen.right + 1];
"""
"""Moves the table sideways; returns whether it moved, and whether all of the caption's text is in its box."""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_caption_of_a_wide_table_stays_in_view(
    tmp_path: Path, driver: Browser, width: int
) -> None:
    """It has the width of the window, not of the table, and does not move with the columns."""
    row = "".join(f"<td>{number:020}</td>" for number in range(12))
    table = f"<table><caption>{'What the columns are. ' * 9}</caption><tr>{row}</tr></table>"
    page = tmp_path / "page.html"
    page.write_text(markup.document("t", [markup.scrolling(table, "Results")]), encoding="utf-8")
    driver.get(page.as_uri())
    look(driver, width)
    assert driver.execute_script(CAPTION_SEEN, 0) == [False, True]
    assert driver.execute_script(CAPTION_SEEN, 300) == [True, True]
    assert driver.execute_script(CAPTION_SEEN, 100_000) == [True, True]
    assert not is_wider(driver)


def test_formulas_are_moved_sideways_alone(tmp_path: Path, driver: Browser) -> None:
    """They have no bar at their side for the half line by which sums and indices stand out."""
    page = tmp_path / "page.html"
    element = files("scenarios.report").joinpath("explained.html").read_text(encoding="utf-8")
    page.write_text(markup.document("t", [element]), encoding="utf-8")
    driver.get(page.as_uri())
    for width in (390, 1280):
        look(driver, width)
        higher = "return [...document.querySelectorAll('.formula')].map((each) => each.scrollHeight - each.clientHeight)"
        assert set(driver.execute_script(higher)) == {0}
