import re

import pytest

from grms.learning.evolution.termination import GenerationRecord
from grms.learning.plots import convergence_svg
from tests.pictures import svg_texts


def history(*best: float, mean: float = 2.0) -> list[GenerationRecord]:
    return [
        GenerationRecord(number, 10 * number, value, mean * value, abs(value) / 3, 0.1 * number)
        for number, value in enumerate(best)
    ]


def test_convergence_says_what_is_drawn() -> None:
    """Two panels with a scale of their own, in the unit of the fitness."""
    found = svg_texts(convergence_svg(history(60000, 57000, 54000, 54000), "AWRT, s"))
    for text in ("best so far", "mean of the generation ± spread", "generation", "AWRT, s"):
        assert text in found
    scales = [float(text.replace(",", "")) for text in found if re.fullmatch(r"[\d,]+", text)]
    assert any(54000 <= tick <= 60000 for tick in scales)
    assert any(tick >= 100_000 for tick in scales)


@pytest.mark.parametrize(
    "best", [(5.0,), (5.0, 5.0), (0.0, 0.0), (-3.0, -4.0), (1e-9, 1e-10), (1e12, 1.0), (0.5, 0.4)]
)
def test_any_history_can_be_drawn(best: tuple[float, ...]) -> None:
    """One generation, no gain at all, values of any size; no picture refers to another file."""
    svg = convergence_svg(history(*best), "x")
    assert svg_texts(svg)
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|"http://[^"]*(dtd|w3|purl)[^"]*"', "", svg)


def test_the_same_data_give_the_same_bytes() -> None:
    """Nothing in a picture tells when it was drawn."""
    records = history(3.0, 2.0)
    assert convergence_svg(records, "x") == convergence_svg(records, "x")
