"""The page, tables and figure of a comparison."""

import math
from pathlib import Path
from typing import Any

from lrms_sim import Comparison, compare, generate
from lrms_sim.analysis.comparison import METRICS
from lrms_sim.report.comparison_figure import figure_file
from lrms_sim.report.comparison_page import headline, page_of
from lrms_sim.report.comparison_tables import differences_csv, to_latex, to_markdown
from tests.browser import Browser, complaints, is_wider, look, requests, violations

JOBS = generate(16, jobs=60, load=0.9, seed=2)


def compared(*logs: str, **more: Any) -> Comparison:
    """Returns a comparison on the same jobs by several names."""
    return compare(dict.fromkeys(logs, (JOBS, 16)), {"easy": "easy", "<b>$x_1$&": "fcfs"}, **more)


def test_everybody_can_read_the_page(driver: Browser, tmp_path: Path) -> None:
    """On a phone and on a wide screen, dark and light; nothing is loaded, and names are text."""
    page = tmp_path / "page.html"
    for logs in (("<i>log", "other"), ("<i>log",)):
        page.write_text(str(page_of(compared(*logs, shifts=3))), encoding="utf-8")
        driver.get(page.as_uri())
        for width, dark in ((390, True), (1600, False)):
            look(driver, width, dark=dark)
            assert violations(driver) == []
            assert not is_wider(driver)
    assert "&lt;b&gt;$x_1$&amp;" in driver.page_source
    assert requests(driver) == set()
    assert complaints(driver) == []


def test_what_the_page_says() -> None:
    """How it was made, with what is cut off; the caption of its figure; sources of the method."""
    found = compared("log", shifts=2, warm_up_days=0.1, metrics=("makespan",))
    page = str(page_of(found))
    assert "Tsafrir, Feitelson 2006" in page
    assert "2, by up to 60 s, seed 0" in page
    assert "0.1 and 0 days, whose jobs run but do not count" in page
    assert f"60 jobs, of which {found.sizes['log'][1]} count, 16 processors" in page
    assert headline(found).startswith("Makespan against easy: <b>$x_1$& ")
    many = compared("one", "two", shifts=2)
    assert " on 2 logs: <b>$x_1$& is " in headline(many)


def test_tables_have_names_as_text() -> None:
    """What would be a command to LaTeX, or the end of a cell of Markdown, is neither."""
    found = compared("a|b_c%", shifts=2)
    assert r"a|b\_c\% & AWRT, s & <b>\$x\_1\$\& & " in to_latex(found)
    assert r"| a\|b_c% | AWRT, s | <b>$x_1$& | " in to_markdown(found)
    assert differences_csv(found).splitlines()[1].startswith("a|b_c%,<b>$x_1$&,awrt,s,")


def test_every_metric_can_be_drawn() -> None:
    """Also of one shift, without intervals, where nothing differs, and of figures without a meaning."""
    found = compared("log", shifts=1, metrics=tuple(METRICS))
    same = compare({"log": (JOBS, 16)}, {"a": "easy", "b": "easy"}, seconds=0.0, shifts=2)
    unknown = compare(
        {"log": (JOBS[:1], 16)}, {"a": "easy", "b": "fcfs"}, metrics=("user-fairness",), shifts=2
    )
    for each in (found, same, unknown, compared("a", "b", shifts=2)):
        drawn = figure_file(each, "svg").decode()
        assert all(METRICS[metric].words in drawn for metric in each.metrics)
        assert figure_file(each, "pdf").startswith(b"%PDF")
    assert all(math.isnan(each.low) for each in found.differences)
