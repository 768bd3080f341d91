import re
from dataclasses import replace
from html import escape

from scenarios.studies.decentralized_grid.page import logs, render, verdict
from tests.scenarios.studies.decentralized_grid.made_up import made_up


def test_the_verdict_is_of_medians() -> None:
    """One bad seed of three does not change it, one good seed neither."""
    assert verdict(made_up({1: 0.99, 2: 0.98, 3: 1.2})) == (
        "In 6 of 6 setups the learned policy's AWRT is shorter than the paper's, in 6 of 6 within "
        "1 % of it or shorter (medians over 3 seeds); beyond what seeds differ by it is shorter in 0 and longer in 0."
    )
    assert verdict(made_up({1: 1.005, 2: 1.006, 3: 0.5})).startswith("In 0 of 6")
    assert "in 6 of 6 within" in verdict(made_up({1: 1.005, 2: 1.006, 3: 0.5}))
    assert "in 0 of 6 within" in verdict(made_up({1: 1.02, 2: 1.03, 3: 0.5}))


def test_the_page_has_every_table_and_figure_of_the_paper() -> None:
    """Beside the paper's numbers, with spread; it needs no network and no script."""
    page = render(made_up({1: 1.0, 2: 1.1, 3: 0.9}))
    for heading in (
        "Table 1",
        "Table 2",
        "Figure 4",
        "Figure 5(a)",
        "Figure 5(b)",
        "EASY",
        "What the learning cost",
    ):
        assert re.search(rf"<h2>[^<]*{re.escape(heading)}", page), heading
    assert "66,100.77" in page
    assert "59,490.69 … 72,710.85" in page
    assert page.count("<svg") == 12
    assert "&lt;gave&gt;" in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=\"http", page)
    assert len(set(re.findall(r'id="([^"]+)"', page))) == len(re.findall(r'id="([^"]+)"', page))


def test_shipped_policies_have_no_spread_and_no_cost() -> None:
    """What was not trained now is not said to have taken time."""
    page = render(made_up({1: 1.0}, shipped=True))
    assert "no spread" in page
    assert "What the learning cost" not in page
    assert render(made_up({1: 1.0}, shipped=True)) == page


def test_which_logs_are_the_papers_is_computed() -> None:
    """One second of makespan, a hundredth of AWRT: the page does not call it the paper's log."""
    study = made_up({1: 1.0, 2: 1.1, 3: 0.9})
    assert logs(study) == (
        "To the last digit the paper’s: KTH-5, CTC-5, SDSC05-5, KTH-6, CTC-6, SDSC05-6 and SDSC00-6."
    )
    windows = {name: dict(found) for name, found in study.windows.items()}
    windows["CTC-5"]["makespan"] += 1
    windows["KTH-6"]["awrt"] += 0.01
    said = logs(replace(study, windows=windows))
    assert "Not quite: CTC-5 and KTH-6" in said
    assert escape(said) in render(replace(study, windows=windows))
