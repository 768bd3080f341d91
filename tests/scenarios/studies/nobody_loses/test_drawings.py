from scenarios.studies.nobody_loses.drawings import strip_chart


def test_every_value_is_a_mark_and_losers_are_counted() -> None:
    """The same picture each time; what is far below is told in words."""
    rows = [("accept when fit", [3.0, -500.0, 4.0]), ("fair <exchange>", [1.0, 2.0])]
    drawing = strip_chart(rows, key="k", title="Sites")
    assert drawing == strip_chart(rows, key="k", title="Sites")
    assert "1 of 3 lose" in drawing
    assert "0 of 2 lose" in drawing
    assert "worst -500.0 %" in drawing
    assert "fair &lt;exchange&gt;" in drawing
