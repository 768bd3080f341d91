"""The page has every table, curve and statement, and nothing of what was not measured."""

import re
from dataclasses import replace

import pytest

from scenarios.studies.questions_and_delays import page as page_module
from scenarios.studies.questions_and_delays.page import page_of
from scenarios.studies.questions_and_delays.replays import TEN_DAYS
from tests.scenarios.studies.questions_and_delays.measured import as_stated, small_study


def test_all_of_the_study_is_on_the_page() -> None:
    """With what it does not show, and every picture under a name of its own."""
    page = str(page_of(small_study()))
    for words in (
        "Nine sites, ten days: partners asked",
        "Six sites, half a year: delay",
        "late answers, clocks apart",
        "clocks ±30 min",
        "What this does not show",
        "2 with delays, 3 without; of half a year 2 with delays",
        "48 of 48 statements hold",
    ):
        assert words in page, words
    assert page.count('<svg class="chart"') == 12
    assert len(set(re.findall(r'id="([^"]+-title)"', page))) == 12
    assert '<strong class="loss">' not in page
    assert page.count(">yes</strong>") == 48


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves a mark where a picture would be, which takes long to draw."""

    def mark(*_: object, key: str, **_more: str) -> str:
        return f'<svg class="chart" id="{key}"/>'

    monkeypatch.setattr(page_module, "line_chart", mark)


@pytest.mark.usefixtures("without_pictures")
def test_what_fails_is_marked() -> None:
    """In words and by a colour."""
    page = str(page_of(small_study(lambda case: as_stated(case) - 0.1 * case.delay)))
    assert '<strong class="loss">no</strong>' in page
    assert "These do not: a delay of 60 s costs" in page


@pytest.mark.usefixtures("without_pictures")
def test_what_was_not_measured_is_not_there() -> None:
    """Without half a year there is nothing of it."""
    study = small_study()
    runs = tuple(run for run in study.runs if run[0].window == TEN_DAYS)
    page = str(page_of(replace(study, runs=runs, options=study.options | {"half_year_draws": 0})))
    assert "Six sites" not in page
    assert "no half year" in page
    assert page.count('<svg class="chart"') == 6
    assert "Nine sites" not in str(page_of(replace(study, runs=())))
