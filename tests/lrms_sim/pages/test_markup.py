from lrms_sim.pages import markup


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
