import pytest

from scenarios.papers.queue_strategies.statements import statements, verdict
from tests.scenarios.papers.queue_strategies.made_up import made_up

CRITERIA = {"f1": 8.0, "f2": 9.5, "f3": 9.0, "f4": 7.0}


def held(paper: str, gains: dict[str, float], **more: float | None) -> list[bool | None]:
    return [one.holds for one in statements(made_up(paper, gains, **more))]


@pytest.mark.parametrize(
    ("gains", "more", "expected"),
    [
        (CRITERIA, {}, [True, True, True, None, False, False]),
        (CRITERIA, {"many": 3.0}, [True, True, True, True, False, False]),
        (CRITERIA, {"many": -3.0, "moved": 1.0}, [True, True, False, False, False, False]),
        (CRITERIA | {"f3": 11.0}, {"moved": None}, [True, False, True, None, False, False]),
        ({"f2": 8.0, "f3": 7.0}, {}, [False, True, True, None, False, False]),
        (
            dict.fromkeys(CRITERIA, 11.0) | {"f2": 12.0},
            {"unseen": 13.0},
            [True, True, True, None, True, True],
        ),
        (CRITERIA, {"unseen": None}, [True, True, True, None, False, None]),
    ],
)
def test_statements_on_criteria(
    gains: dict[str, float], more: dict[str, float | None], expected: list[bool | None]
) -> None:
    """Each is judged by medians over seeds; what was not run is neither right nor wrong."""
    assert held("greedy-criteria", gains, **more) == expected


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ({"iterative": -3.0, "symbiotic": 5.0}, [True, True, True, False, False]),
        ({"iterative": 6.0, "symbiotic": 5.0}, [True, False, False, False, False]),
        ({"iterative": -3.0, "symbiotic": -1.0}, [False, True, True, False, False]),
    ],
)
def test_statements_on_rules(gains: dict[str, float], expected: list[bool | None]) -> None:
    """Of the two methods, EASY and the constants."""
    assert held("genetic-fuzzy", gains) == expected


def test_the_verdict_counts_and_says_what_was_found() -> None:
    """With the figures of the last statement, on unseen jobs."""
    text = verdict(made_up("genetic-fuzzy", {"iterative": -3.0, "symbiotic": 5.0}))
    assert text.startswith("3 of 5 statements hold")
    assert "On unseen jobs 0 of 6 medians" in text
    assert "median difference -4.00 points" in text
