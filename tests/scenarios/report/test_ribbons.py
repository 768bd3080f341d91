import re

import pytest

from scenarios.report.ribbons import flow_ribbons
from tests.scenarios.towns import random_towns, two_towns


def ribbons(drawing: str) -> list[list[float]]:
    """Returns the four corners' heights of each ribbon: start, end, end below, start below."""
    corners = []
    for path in re.findall(r'<path d="([^"]*C [^"]*)"', drawing):
        numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path)]
        ys = numbers[1::2]
        corners.append([ys[0], ys[3], ys[4], ys[7]])
    return corners


def test_every_exchange_is_a_ribbon_as_wide_as_its_jobs() -> None:
    """Ribbons are proportional to what was given, on both ends, in the giver's order."""
    result = random_towns(["a", "b", "c"], 900, away=0.4)
    drawn = ribbons(flow_ribbons(result, by_area=False))
    given = [int(result.flow_jobs[i, j]) for i in range(3) for j in range(3) if i != j]
    assert len(drawn) == len(given)
    scales = [
        (below - above) / jobs for (above, _, _, below), jobs in zip(drawn, given, strict=True)
    ]
    ends = [(below - above) / jobs for (_, above, below, _), jobs in zip(drawn, given, strict=True)]
    assert scales == pytest.approx([scales[0]] * len(scales), rel=1e-3)
    assert ends == pytest.approx(scales, rel=1e-3)


def test_ribbons_are_told_in_words() -> None:
    """Who cannot see the ribbons reads the same amounts, in the unit of the picture."""
    jobs = flow_ribbons(two_towns(), by_area=False)
    assert "Lübeck gave Wismar 1; Wismar gave Lübeck 1." in jobs
    area = flow_ribbons(two_towns(), by_area=True)
    assert "Lübeck gave Wismar 0.28 ph; Wismar gave Lübeck 0.056 ph." in area


def test_jobs_kept_are_not_drawn() -> None:
    """The picture is of the exchange; what stayed at home would hide it."""
    result = random_towns(["a", "b"], 400, away=0.1)
    given = int(result.flow_jobs[0, 1])
    drawing = flow_ribbons(result, by_area=False)
    assert f">{given}</text>" in drawing
    assert len(ribbons(drawing)) == 2


@pytest.mark.parametrize("sites", [2, 5, 8, 20])
def test_ribbons_stay_within_the_picture(sites: int) -> None:
    """However many sites there are, nothing is drawn outside the view box."""
    drawing = flow_ribbons(
        random_towns([f"s{k}" for k in range(sites)], 2000, away=0.8), by_area=True
    )
    box = re.search(r'viewBox="0 0 \S+ ([\d.]+)"', drawing)
    assert box is not None
    heights = [y for ribbon in ribbons(drawing) for y in ribbon]
    assert 0 <= min(heights) <= max(heights) <= float(box.group(1))
