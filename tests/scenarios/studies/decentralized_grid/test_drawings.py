from scenarios.studies.decentralized_grid.drawings import DotRow, dot_chart


def test_dots_have_a_median() -> None:
    """The paper's value is 0, and is called so."""
    chart = dot_chart(
        [DotRow("I KTH", [-0.01, 0.002, 0.01])], key="dots", heading="against the paper"
    )
    assert "median +0.20%" in chart
    assert ">paper<" in chart
