import re

from scenarios.studies.gorba_rescheduling.page import render, verdict
from scenarios.studies.gorba_rescheduling.study import Study
from tests.scenarios.studies.gorba_rescheduling.measured import paper_study


def test_the_page_has_every_figure_and_table() -> None:
    """Beside what the paper says; it opens offline, and is the same for the same study."""
    study = paper_study()
    page = render(study)
    for heading in (
        "Statements",
        "Figure 4.1: 32 events",
        "Table 4.1: the heuristics",
        "Figure 4.2: increasing load",
        "Figure 4.3: sRlD",
        "Figure 4.4: lRlD",
        "Figure 4.5: evaluations",
        "How it was made",
    ):
        assert f">{heading}</h" in page
    assert not re.search(r"<script|\bsrc=|<link|url\([^)#]*//|@import", page)
    assert "12 of 12 statements of the paper hold" in page
    assert page == render(study)
    assert page.count('class="matrix"') == 1


def test_parts_that_were_not_run_are_left_out() -> None:
    """Without settings no Figure 4.1, without a sweep none of the others."""
    settings = render(paper_study(parts=("settings",)))
    assert "Figure 4.1" in settings.split("How it was made")[0]
    assert ">Figure 4.2: increasing load<" not in settings
    sweep = render(paper_study(parts=("sweep",)))
    assert ">Table 4.1: the heuristics<" not in sweep
    assert ">Figure 4.2: increasing load<" in sweep


def test_a_study_of_one_run_has_no_intervals() -> None:
    """Dashes stand where widths are not known."""
    study = paper_study()
    one = Study(study.options | {"runs": 1}, tuple(r for r in study.records if r.seed in {0, 1}))
    page = render(one)
    assert "<td>–</td>" in page
    assert "nan" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert " are open in what was measured." in verdict(one)
