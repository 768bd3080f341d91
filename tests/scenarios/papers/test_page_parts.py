"""What the studies' pages are made of."""

from scenarios.papers.page_parts import made, mark, points, row, section, stacked, study_page, table


def test_a_page_begins_with_the_outcome() -> None:
    """Then come paragraphs and sections; an empty section is none."""
    page = study_page(
        "A & B",
        "one",
        "two <i>x</i>",
        command="paper x",
        verdict="1 < 2",
        sections=[section("Empty"), section("Full", "text")],
    )
    assert '<h1>A &amp; B</h1>\n<p class="headline">1 &lt; 2</p>' in page
    assert '<p class="about">one</p>\n<p class="about">two <i>x</i></p>\n</header>' in page
    assert "Empty" not in page
    assert "<section>\n<h2>Full</h2>\ntext</section>" in page


def test_a_table_has_heads_for_all_columns() -> None:
    """Names are plain text; one without a caption is called what it shows."""
    rows = [row("a & b", ["<b>1</b>"], "c < d"), row("e", ["2"], "f", left=False)]
    text = table("Some", ["x"], rows, "who", "where")
    assert text.count('<th class="left" scope="col">') == 2
    assert '<th class="left" scope="row">a &amp; b</th><td class="left">c &lt; d</td>' in text
    assert '<th scope="row">e</th><td class="left">f</td><td>2</td></tr>' in text
    assert 'aria-label="Some"' in text
    bare = table("", [], [], name="What it shows", compact=True)
    assert 'aria-label="What it shows"><table class="compact"><thead>' in bare
    assert "<caption>" not in bare


def test_verdicts_are_coloured() -> None:
    """What is open has no colour."""
    assert [mark(each, "w") for each in (True, False, None)] == [
        '<strong class="gain">w</strong>',
        '<strong class="loss">w</strong>',
        '<strong class="">w</strong>',
    ]


def test_lists_end_a_page() -> None:
    """Points, and how it was made, which names the program."""
    assert points("Weak", ["a", "b<"]).endswith("<ul><li>a</li><li>b&lt;</li></ul></section>")
    text = made([("Runs", "1 & 2")], "9.9", "<p>thanks</p>")
    assert "<dt>Runs</dt><dd>1 &amp; 2</dd><dt>Program</dt><dd>Hanse 9.9</dd></dl><p>" in text
    assert stacked("1", "2") == '1<span class="of">2</span>'
