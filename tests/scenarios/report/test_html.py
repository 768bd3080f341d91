import base64
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from scenarios.report.html import render_html, write_html
from scenarios.run.results import ScenarioResult
from tests.scenarios.towns import HOSTILE, random_towns, two_towns

VOID = {"meta", "br", "link", "img", "input", "hr", "wbr"}


class Page(HTMLParser):
    """Reads a page strictly: every element that opens closes in its turn.

    Attributes:
        elements: name and attributes of each element.
        words: all text outside style sheets.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opens an element."""
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} repeats an attribute"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Takes an element that closes itself."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Closes the innermost element."""
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collects words."""
        if not {"style", "script"} & set(self.open):
            self.words += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Returns the attributes of every element of that name."""
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def towns_page() -> str:
    """Returns the page of three months of three towns."""
    return render_html(random_towns(["Lübeck", "Wismar", "Rostock"], 3000))


@pytest.fixture(scope="module")
def two_towns_page() -> Page:
    """Returns the page of two towns, as read."""
    return Page(render_html(two_towns()))


@pytest.mark.parametrize(
    "result",
    [
        two_towns(),
        random_towns(["Visby"], 40),
        random_towns(["a", "b"], 60, away=0.0),
        random_towns(["a", "b"], 0),
        random_towns([f"town {k}" for k in range(8)], 800, away=0.7),
        random_towns([f"town {k}" for k in range(30)], 900, away=0.5),
        random_towns([f"town {k}" for k in range(90)], 900, away=0.5),
        random_towns([f"town {k}" for k in range(30)], 40, away=0.0),
        random_towns([f"town {k}" for k in range(30)], 1, away=1.0),
        random_towns(["a", "b"], 2, away=1.0, span_s=1.0),
        random_towns(["a", "b", "c"], 1),
    ],
    ids=[
        "two",
        "one",
        "no exchange",
        "no jobs",
        "eight",
        "thirty",
        "ninety",
        "thirty at home",
        "one of thirty",
        "an instant",
        "one job",
    ],
)
def test_page_is_well_formed(result: ScenarioResult, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every element closes, ids are unique and references lead somewhere, whatever the result."""
    if len(result.sites) > 8:
        monkeypatch.setattr("scenarios.report.html.DETAIL_MAX", 3)  # each costs two pictures
    text = render_html(result)
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for target in (attributes.get("aria-labelledby") or "").split():
            assert target in ids
    assert len(page.all("h1")) == 1
    assert "nan" not in re.sub(r"[a-z]{2,}nan|nan[a-z]+", "", page.words.lower())


def test_page_needs_nothing_else(towns_page: str) -> None:
    """No script, style sheet, font, image or frame is loaded from anywhere, and only the page's own script may run."""
    text = towns_page
    page = Page(text)
    assert [each.get("type") for each in page.all("script")] == ["application/json", None]
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (each["content"] for each in page.all("meta") if "http-equiv" in each)
    assert f"default-src 'none'; script-src 'sha256-{digest}';" in str(policy)
    for tag in ("link", "img", "iframe", "object", "embed", "base"):
        assert page.all(tag) == []
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert (attributes.get("href") or attributes.get("xlink:href") or "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)", text))
    assert not re.search(r"https?://", text)


def test_page_holds_the_figures_of_every_site(two_towns_page: Page) -> None:
    """Table cells are the figures of the result, spelled for people."""
    page = two_towns_page
    for figure in ("150.00", "100.00", "+33.3%", "−148.5%", "−40.0%", "+66.7%", "85.7%", "2.90"):
        assert figure in page.words
    for words in ("Two towns", "Four jobs, worked out by hand.", "Lübeck gains, Wismar loses"):
        assert words in page.words


def test_page_says_how_it_was_made(two_towns_page: Page) -> None:
    """Scenario, seed, disciplines, duration, records left out, and thanks."""
    page = two_towns_page
    for words in ("two-towns", "Lübeck: fcfs; Wismar: easy", "250 ms", "With thanks to the towns."):
        assert words in page.words
    for words in ("run time 0 s", "dropped", "equation 11", "equation 14"):
        assert words in page.words


def test_page_has_all_figures(towns_page: str) -> None:
    """Bars, flows, and for every site its time line and its distributions, all with a name."""
    page = Page(towns_page)
    charts = [attributes for attributes in page.all("svg") if attributes.get("class") == "chart"]
    assert len(charts) == 2 + 2 + 3 * 2
    assert not re.search(r'style="[^"]*#[0-9a-f]{6}', towns_page), "every colour is a variable"
    assert all(chart.get("role") == "img" and chart.get("aria-labelledby") for chart in charts)
    assert len(page.all("table")) == len(page.all("caption"))


def test_page_without_exchange_shows_no_flows() -> None:
    """Nothing given gives no picture of giving, but says so."""
    page = Page(render_html(random_towns(["a", "b"], 60, away=0.0)))
    assert "No job left its home site." in page.words
    assert "Who gained" not in page.words


def test_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two pages of equal results are equal, so that a report can be compared and cached."""
    write_html(random_towns(["a", "b"], 500, seed=5), tmp_path / "one.html")
    write_html(random_towns(["a", "b"], 500, seed=5), tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_names_are_text_and_never_markup() -> None:
    """Names of sites, scenarios and reasons cannot put elements into the page."""
    harmless = random_towns([f"s{k}" for k in range(len(HOSTILE))], 300)
    hostile = random_towns(
        HOSTILE,
        300,
        title="<script>alert(1)</script>",
        description="</p><img src=x onerror=y> & so",
    )
    page = Page(render_html(hostile))
    plain = [name for name, _ in Page(render_html(harmless)).elements]
    extra = {"p"}  # the description's own paragraph
    assert [name for name, _ in page.elements if name not in extra] == [
        name for name in plain if name not in extra
    ]
    assert "<script>alert(1)</script>" in page.words
    assert "</p><img src=x onerror=y> & so" in page.words
    for name in HOSTILE:
        assert name in page.words


def test_page_of_a_large_run_is_small() -> None:
    """150,000 jobs of eight sites stay below two megabytes."""
    text = render_html(random_towns([f"town {k}" for k in range(8)], 150_000))
    assert len(text.encode()) < 2_000_000


def test_page_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    """The caller learns which file it was."""
    with pytest.raises(OSError, match="missing"):
        write_html(two_towns(), tmp_path / "missing" / "report.html")


def test_matplotlib_is_loaded_only_when_something_is_drawn() -> None:
    """Commands that draw nothing do not wait for the drawing library."""
    code = (
        "import sys, scenarios.report.html, scenarios.report.terminal; "
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603  # our own interpreter and text


def test_blank_lines_of_a_description_part_paragraphs() -> None:
    """A description is written as in any text file."""
    result = random_towns(["a"], 5, description="One\nline.\n\nAnother.\n")
    text = render_html(result)
    assert '<p class="about">One\nline.</p>\n<p class="about">Another.</p>' in text
