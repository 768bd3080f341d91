"""The page on one run: what it says, how large it gets, and that everybody can read it."""

from pathlib import Path

import numpy as np
import pytest

from lrms_sim import JobTable, generate, simulate
from lrms_sim.cli.main import run_command
from lrms_sim.report.run_page import render_run
from lrms_sim.report.run_report import RunReport
from lrms_sim.workload.preparation_report import PreparationEntry, PreparationReport
from lrms_sim.workload.schedule import MachineInfo, Schedule
from tests.browser import Browser, complaints, is_wider, look, requests, violations


def report_of(schedule: Schedule) -> RunReport:
    """Returns a report on a schedule as EASY would have made it."""
    entry = PreparationEntry("run-time-zero", "run time <0> s", 3, "dropped")
    done = PreparationReport("log.swf", len(schedule) + 3, len(schedule), (entry,))
    return RunReport(schedule, "easy", done, 0.0, processors_from_header=True)


def made_up(count: int) -> Schedule:
    """Returns a schedule of one machine, whether or not a discipline would make it."""
    rng = np.random.default_rng(1)
    jobs = JobTable.from_columns(
        submit_time=np.sort(rng.uniform(0, 300.0 * count, count)),
        processors=rng.integers(1, 9, count),
        run_time=rng.uniform(1, 5000, count),
        user=rng.integers(0, 50, count),
    )
    start = jobs.submit_time + np.maximum(0.0, rng.normal(0, 5000, count))
    here = np.zeros(count, np.int16)
    machine = (MachineInfo("<b>&", 1024),)
    return Schedule(jobs, start, start + jobs.run_time, machine, here, here, jobs.job_id)


def test_what_the_page_says() -> None:
    """Every figure of the terminal, three charts and the rules; names are text."""
    page = render_run(report_of(simulate(generate(16, jobs=40, seed=1), 16, name="<b>&")))
    assert "<h1>&lt;b&gt;&amp;</h1>" in page
    assert "40 jobs on 16 processors under easy, in " in page
    for words in ("AWRT", "median wait time", "fairness over users", "1: above 8 % of the work"):
        assert f'<th scope="row">{words}</th>' in page
    assert page.count('<svg class="chart') == 3
    assert "run time &lt;0&gt; s" in page
    assert "Repetitions" not in page
    assert "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'none'" in page  # fmt: skip


def test_a_hundred_thousand_jobs_are_no_larger_page() -> None:
    """Curves have bins and points, not jobs; there is no Gantt chart, and the page says so."""
    page = render_run(report_of(made_up(100_000)))
    assert len(page) < 120_000
    assert page.count('<svg class="chart') == 2
    assert "A Gantt chart has up to 1,500 jobs." in page


def test_one_job() -> None:
    """It has a page too."""
    assert render_run(report_of(made_up(1))).count('<svg class="chart') == 3


def test_everybody_can_read_it(
    tmp_path: Path, driver: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the command writes it: narrow and dark, wide and light, without a request to anywhere."""
    log, page = tmp_path / "log.swf", tmp_path / "run.html"
    assert run_command(["generate", "--processors", "32", "--jobs", "60", "-o", str(log)]) == 0
    options = ["--discipline", "easy", "--repeat", "2", "--html", str(page)]
    assert run_command(["run", str(log), *options]) == 0
    assert capsys.readouterr().out.count(f"Written to {page}") == 1
    driver.get(page.as_uri())
    for width, dark in ((390, True), (1600, False)):
        look(driver, width, dark=dark)
        assert violations(driver) == []
        assert not is_wider(driver)
    assert "2 repetitions, arrivals shifted by up to 60 s." in driver.page_source
    assert requests(driver) == set()
    assert complaints(driver) == []
