"""What pages are made of: text is text, what heads a cell says so, and wide things scroll."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from lrms_sim.report.parts import (
    Card,
    Cell,
    Facts,
    Figure,
    Folded,
    Group,
    Html,
    Legend,
    Named,
    Note,
    Page,
    Points,
    Section,
    Stacked,
    Strong,
    Table,
    Together,
    Words,
    made,
)
from lrms_sim.report.templates import alone
from tests.browser import Browser, is_wider, look

HOSTILE = "<b>x & 'y'</b>\""


class Collected(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, text: object) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(str(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Notes a text."""
        self.words.append(data)


def test_what_people_wrote_is_text() -> None:
    """Wherever it stands: in no part does it become an element, or end an attribute."""
    parts: list[Words] = [
        HOSTILE,
        Table([HOSTILE, HOSTILE], [[Named(HOSTILE, 0), HOSTILE]], HOSTILE, HOSTILE, HOSTILE),
        Table([HOSTILE], [[Together([Strong(HOSTILE), Stacked(HOSTILE, HOSTILE)])]]),
        Table(["", "x"], [["y", Cell(HOSTILE)]], groups=[(HOSTILE, 1)]),
        Figure("<svg></svg>", HOSTILE, label=HOSTILE),
        Facts([(HOSTILE, HOSTILE)]),
        Points([HOSTILE]),
        Note(HOSTILE),
        Legend([(1, HOSTILE), ("mark", HOSTILE)]),
        Folded(HOSTILE, HOSTILE),
        Group(HOSTILE, [HOSTILE], HOSTILE),
    ]
    card = Card(HOSTILE, HOSTILE, HOSTILE, HOSTILE, facts=[(HOSTILE, HOSTILE)])
    page = Collected(
        Page(
            HOSTILE,
            HOSTILE,
            [Section(HOSTILE, parts, about=HOSTILE)],
            headline=HOSTILE,
            notes=[HOSTILE],
            about=[HOSTILE],
            cards=[card],
            cards_of=HOSTILE,
        )
    )
    written = [tag for tag, attributes in page.tags if tag == "b" and not attributes]
    assert len(written) == 2  # of Hanse, and of the title in a caption
    assert sum(words.count(HOSTILE) for words in page.words) == 39
    labels = [attributes.get("aria-label") for _, attributes in page.tags]
    assert labels.count(HOSTILE) == 3


def test_rows_and_columns_have_heads() -> None:
    """Heading cells say what they head; a column without a head has none, and words may break."""
    table = Table(
        ("a", "", "b"),
        [["1", "2", "3"], ["below"], ["4", Html("<i>5</i>"), Cell("6", "home", 0.25)]],
        groups=[("c", 1), ("", 1)],
        words={2},
        chosen=0,
    )
    text = str(table)
    assert (
        '<th class="group" colspan="1" scope="colgroup"><span>c</span></th><td colspan="1">' in text
    )
    assert '<th class="left" scope="col">a</th><td></td><th class="left" scope="col">b</th>' in text
    assert (
        '<tr class="chosen"><th scope="row">1</th><td>2</td><td class="words">3</td></tr>' in text
    )
    assert '<tr><th scope="rowgroup" colspan="3">below</th></tr>' in text
    assert '<td><i>5</i></td><td class="home" style="--w:0.250">6</td></tr>' in text
    assert "<caption>" not in text


def test_wide_tables_and_figures_can_be_scrolled_from_the_keyboard() -> None:
    """A box that scrolls can be focused and has a name: that of the table, or else its caption."""
    assert 'role="region" tabindex="0" aria-label="What"' in str(
        Table((), (), "Caption", name="What")
    )
    assert 'role="region" tabindex="0" aria-label="Caption"' in str(Table((), (), "Caption"))
    assert 'role="group" tabindex="0" aria-label="Figure"' in str(Figure("<svg></svg>"))
    assert "tabindex" not in str(Figure("<svg></svg>", kind="pair"))


def test_what_is_empty_takes_no_room() -> None:
    """A figure without caption has no empty one, and a section without parts is none."""
    assert "figcaption" not in str(Figure("<svg></svg>"))
    assert not str(Section("Empty", ["", ""], about="Nothing")).strip()
    assert str(Section("Full", ["text"])) == "<section>\n<h2>Full</h2>\n<p>text</p>\n</section>\n"


def test_colours_repeat_after_eight() -> None:
    """There are no more on a page."""
    assert "var(--site-1)" in str(Named("a", 9))


def test_how_it_was_made_ends_with_the_program_and_thanks() -> None:
    """Names and facts are one list."""
    text = str(made([("Runs", 1)], "9.9", ["Thanks <all>"]))
    assert "<dt>Runs</dt><dd>1</dd><dt>Program</dt><dd>Hanse 9.9</dd></dl>" in text
    assert '<p class="thanks">Thanks &lt;all&gt;</p>' in text


def test_a_page_is_whole_and_loads_nothing() -> None:
    """A browser runs the page's own script alone; the window may have a name of its own."""
    text = str(Page("Title", "x", [], window="Window", script="let a = 1 < 2;"))
    assert text.startswith("<!DOCTYPE html>\n")
    assert "<title>Window · Hanse</title>" in text
    assert "script-src 'sha256-" in text
    assert "<script>let a = 1 < 2;</script>" in text
    assert "script-src 'none'" in str(Page("Title", "x", []))


def test_a_picture_alone_has_the_colours_of_pages() -> None:
    """It is a document of its own, and its words are as they were."""
    picture = alone('<svg class="chart" viewBox="0 0 1 1"><text>a &gt; b</text></svg>')
    root = ET.fromstring(picture)  # noqa: S314  # our own
    assert [child.tag.rpartition("}")[2] for child in root] == ["style", "text"]
    assert root[1].text == "a > b"
    assert "prefers-color-scheme: dark" in (root[0].text or "")


def test_templates_are_loaded_with_the_first_page() -> None:
    """Commands that write none do not wait for them."""
    code = (
        "import sys, lrms_sim.report.run_page, lrms_sim.report.parts as p; before = 'jinja2' in sys.modules; "
        "str(p.Page('x', 'y', [])); sys.exit(before or 'jinja2' not in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603  # our own interpreter and text


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
    row = [f"{number:020}" for number in range(12)]
    page = tmp_path / "page.html"
    table = Table(row, [row], "What the columns are. " * 9)
    page.write_text(str(Page("t", "x", [table])), encoding="utf-8")
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
    page.write_text(str(Page("t", "x", [Html(element)])), encoding="utf-8")
    driver.get(page.as_uri())
    for width in (390, 1280):
        look(driver, width)
        higher = "return [...document.querySelectorAll('.formula')].map((each) => each.scrollHeight - each.clientHeight)"
        assert set(driver.execute_script(higher)) == {0}
