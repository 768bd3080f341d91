import re

import matplotlib as mpl
import pytest

from lrms_sim.report import svg


def draw(text: str = "hello", key: str = "k") -> str:
    """Returns a small figure with a line, an area and a text."""
    with svg.drawing():
        figure = svg.new_figure(200, 100)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.plot([0, 1], [0, 1], color=svg.color("federated"))
        axes.stairs([1.0, 2.0], [0, 1, 2], fill=True, color=svg.site_color(9))
        axes.text(0.5, 0.5, text, color=svg.color("ink"))
        return svg.render(figure, key=key, title="A <title>", description='A "text"')


def test_colours_are_variables_of_the_page() -> None:
    """The page's style sheet, not the figure, says how a colour looks; sites' colours repeat."""
    drawing = draw()
    assert "stroke: var(--federated)" in drawing
    assert "fill: var(--site-1)" in drawing
    assert not re.search(r"#0000[0-9a-f]{2}", drawing)


def test_text_stays_text_and_takes_the_font_of_the_page() -> None:
    """A figure's words can be found, read aloud and restyled."""
    drawing = draw("Lübeck & <Wismar>")
    assert ">Lübeck &amp; &lt;Wismar&gt;</text>" in drawing
    assert "font-family" not in drawing


@pytest.mark.parametrize("text", ["$x_1$", "$", "#000002", "a\tb", "但泽"])
def test_any_text_is_drawn_as_it_is(text: str) -> None:
    """Nothing in a name is a formula, a colour or a reason to fail."""
    assert f">{text}</text>".replace("\t", " ") in draw(text).replace("\t", " ")


def test_a_figure_names_itself() -> None:
    """Title and description are there for those who cannot see the figure."""
    drawing = draw()
    assert 'role="img" aria-labelledby="k-title k-text"' in drawing
    assert '<title id="k-title">A &lt;title&gt;</title>' in drawing
    assert '<desc id="k-text">A &quot;text&quot;</desc>' in drawing


def test_figures_share_no_id() -> None:
    """Two figures of one page do not clip each other."""
    ids = re.compile(r'\bid="([^"]*)"')
    one, other = set(ids.findall(draw(key="a"))), set(ids.findall(draw(key="b")))
    assert one
    assert not one & other


def test_references_within_a_figure_are_kept() -> None:
    """What is referred to is there."""
    drawing = draw()
    used = set(re.findall(r'(?:url\(|href=")#([^")]*)', drawing))
    assert used <= set(re.findall(r'\bid="([^"]*)"', drawing))


def test_drawing_twice_gives_the_same_bytes() -> None:
    """Neither time nor chance gets into a figure."""
    assert draw() == draw()


def test_drawing_leaves_matplotlib_as_it_was() -> None:
    """Settings of a program that also draws are its own."""
    before = dict(mpl.rcParams)
    draw()
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("style", "restyled"),
    [
        ("font: 700 11px 'DejaVu Sans'; text-anchor: end", "font-weight: 700; text-anchor: end"),
        ("font: 11px 'DejaVu Sans'; text-anchor: end", "text-anchor: end"),
        (
            "font-weight: 700; font-size: 11px; font-family: 'DejaVu Sans'; text-anchor: end",
            "font-weight: 700; text-anchor: end",
        ),
        ("font-size: 9px; font-family: 'DejaVu Sans'", "font-size: 9px; "),
    ],
)
def test_fonts_of_every_matplotlib_are_the_pages(style: str, restyled: str) -> None:
    """Old versions write one font property, new ones several; weight and odd sizes stay."""
    tag = re.fullmatch(r"<.*>", f'<text style="{style}">')
    assert tag is not None
    assert svg._restyled(tag) == f'<text style="{restyled}">'
