"""The time machine: what the page holds is the schedule, and what a browser makes of it."""

import base64
import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from lrms_sim.analysis import occupancy
from lrms_sim.workload.jobs import JobTable
from scenarios.report import time_machine
from scenarios.report.html import write_html
from scenarios.report.time_machine import BINS, data, packed, section
from scenarios.run.results import ScenarioResult, evaluate
from tests.browser import Browser, complaints, is_wider, look, requests, until, violations
from tests.scenarios.towns import HOSTILE, random_towns, schedule_of, two_towns


def unpacked(text: str) -> list[int]:
    """Returns the numbers of a column, read one byte after the other."""
    found, value, bits = [], 0, 0
    for byte in zlib.decompress(base64.b64decode(text)):
        value |= (byte & 127) << bits
        bits += 7
        if byte < 128:
            found.append(-(value + 1) // 2 if value % 2 else value // 2)
            value, bits = 0, 0
    assert bits == 0
    return found


def columns(document: dict[str, Any]) -> dict[str, list[int]]:
    """Returns the columns of a document."""
    return {name: unpacked(text) for name, text in document["columns"].items()}


@given(st.lists(st.integers(-(2**51), 2**51)))
def test_numbers_come_back(values: list[int]) -> None:
    """Any whole numbers, of either sign and of any size below 2**52."""
    assert unpacked(packed(np.array(values, np.int64))) == values


def test_the_page_holds_every_job() -> None:
    """Arrival, start, end, width, home, place, number, and the wait without exchange."""
    result = random_towns(["Lübeck", "Wismar", "Rostock"], 400, seed=5)
    document = data(result)
    assert document["complete"]
    assert document["unit"] == 1.0
    found = columns(document)
    schedule = result.schedule
    arrival = np.cumsum(found["submit"]) + document["begin"]
    start = arrival + found["wait"]
    pair = np.array(found["pair"])
    assert np.abs(arrival - schedule.jobs.submit_time).max() <= 0.5
    assert np.abs(start - schedule.start_time).max() <= 0.5
    assert np.abs(start + found["run"] - schedule.end_time).max() <= 0.5
    assert found["processors"] == schedule.jobs.processors.tolist()
    assert (pair // 4).tolist() == schedule.submitted_to.tolist()
    assert (pair % 4).tolist() == schedule.executed_on.tolist()
    assert np.abs(found["alone"] - result.schedule_alone.wait_time).max() <= 0.5
    last: Counter[int] = Counter()
    for home, step, number in zip(pair // 4, found["job"], schedule.log_job_id, strict=True):
        last[int(home)] += step
        assert last[int(home)] == number
    for lane in range(3):
        times, values = occupancy.busy_processors(schedule, lane)
        worked = float(np.sum(np.diff(times) * values[:-1]))
        width = (document["end"] - document["begin"]) / BINS
        assert sum(unpacked(document["busy"][lane])) * width == pytest.approx(worked, rel=0.02)


def test_a_short_run_is_shown_to_the_hundredth() -> None:
    """Four jobs of some seconds are not rounded to whole ones."""
    document = data(two_towns())
    assert document["unit"] == 0.01
    assert columns(document)["run"] == [10_000, 10_000, 5_000, 4_000]


def test_of_too_many_jobs_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with the most work are drawn; curves have who waits and who has given what."""
    monkeypatch.setattr(time_machine, "CHARACTERS_MAX", 1000)
    result = random_towns(["a", "b", "c"], 300, seed=3)
    schedule = result.schedule
    document = data(result)
    assert not document["complete"]
    count = document["count"]
    assert 40 < count < 80
    assert 900 < sum(len(text) for text in document["columns"].values()) <= 1000
    work = np.sort(schedule.jobs.resource_consumption)[-count:]
    found = columns(document)
    drawn = np.sort(np.array(found["processors"]) * np.array(found["run"]))
    assert np.abs(drawn / work - 1).max() < 0.02
    moments = np.linspace(document["begin"], document["end"], BINS + 1)[:-1]
    for lane in range(3):
        here = schedule.executed_on == lane
        waits = (schedule.jobs.submit_time[here] <= moments[:, None]) & (
            schedule.start_time[here] > moments[:, None]
        )
        assert np.cumsum(unpacked(document["waiting"][lane])).tolist() == waits.sum(axis=1).tolist()
    for pair, text in document["given"].items():
        giver, taker = map(int, pair.split("-"))
        assert sum(unpacked(text)) == result.flow_jobs[giver, taker]
    assert f"The {count} jobs with the most work are drawn one by one" in str(section(result))


def test_a_hundred_thousand_jobs_stay_below_three_megabytes() -> None:
    """With room for the charts that the report has anyway."""
    assert 1_000_000 < len(str(section(random_towns(["a", "b", "c"], 100_000)))) < 1_500_000


def test_of_many_sites_the_most_important_have_a_chart() -> None:
    """Jobs that other sites gave them come from "another site"."""
    result = random_towns([f"town {k}" for k in range(30)], 600, away=0.5)
    document = data(result)
    assert len(document["sites"]) == time_machine.LANES_MAX
    homes = {pair // 9 for pair in columns(document)["pair"]}
    assert 8 in homes
    assert {pair % 9 for pair in columns(document)["pair"]} <= set(range(8))
    assert "8 of 30 sites are shown" in str(section(result))


def test_without_jobs_there_is_none() -> None:
    """A page does not offer what has nothing to show."""
    assert section(random_towns(["a", "b"], 0)) == ""


def test_no_name_ends_the_data() -> None:
    """Names of sites are data, whatever is in them."""
    names = [*HOSTILE, "</script><script>alert(1)</script>"]
    text = str(section(random_towns(names, 100)))
    assert text.count("<script") == text.count("</script>") == 1
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text)
    assert found is not None
    assert [site["name"] for site in json.loads(found[1])["sites"]] == names


def by_hand() -> ScenarioResult:
    """Returns two sites of 4 processors and three jobs a day apart, of which one goes to the other site."""
    machines = [("Lübeck", 4), ("Wismar", 4)]
    day = 86400.0
    jobs = JobTable.from_columns(
        submit_time=[0, day, 2 * day], processors=[4, 4, 2], run_time=[day, day, day]
    )
    alone = schedule_of(machines, jobs, [0, day + 7200, 2 * day], [0, 0, 1], [0, 0, 1])
    together = schedule_of(machines, jobs, [0, day, 2 * day + 600], [0, 0, 1], [0, 1, 1])
    return evaluate(
        name="by-hand",
        title="By hand",
        description="",
        seed=1,
        disciplines=["fcfs", "fcfs"],
        schedule=together,
        schedule_alone=alone,
    )


@pytest.fixture
def page(tmp_path: Path, driver: Browser) -> Browser:
    """Returns the browser with the report of `by_hand`."""
    path = tmp_path / "report.html"
    write_html(by_hand(), path)
    look(driver, 1600)
    requests(driver)
    driver.get(path.as_uri())
    until(driver, "return document.getElementById('tm-now').textContent")
    return driver


def shows(driver: Browser, moment: str) -> None:
    """Waits until the page shows a moment that begins so."""
    until(driver, f"return document.getElementById('tm-now').textContent.startsWith('{moment}')")


def slide(driver: Browser) -> None:
    """Moves the slider, and sees what flies."""
    # A third of three days and ten minutes: the second job has just come.
    shows(driver, "day 1, 00:03:20")
    assert [each.text for each in driver.find_elements(By.CSS_SELECTOR, ".tm-lane small")] == [
        "0 of 4 processors busy, 0 jobs waiting",
        "4 of 4 processors busy, 0 jobs waiting",
    ]
    assert driver.find_element(By.ID, "tm-given").text == "Given so far: Lübeck to Wismar 1."
    flying = "return Number(document.getElementById('tm-ribbons').dataset.flying)"
    assert driver.execute_script(flying) == 1
    look(driver, 1600, still=True)
    slider = driver.find_element(By.ID, "tm-moment")
    slider.send_keys(Keys.ARROW_RIGHT)
    shows(driver, "day 1, 00:0")
    until(driver, "return document.getElementById('tm-now').textContent !== 'day 1, 00:03:20'")
    assert slider.get_attribute("aria-valuetext") == driver.find_element(By.ID, "tm-now").text
    assert driver.execute_script(flying) == 0
    look(driver, 1600)
    slider.send_keys(Keys.HOME)
    shows(driver, "day 0, 00:00:00")


def ask_for_stories(driver: Browser) -> None:
    """Points at a job, clicks on it, and goes on to the next by keys."""
    second = driver.find_elements(By.CSS_SELECTOR, ".tm-lane canvas")[1]
    story = driver.find_element(By.ID, "tm-story")
    ActionChains(driver).move_to_element(second).perform()
    tip = driver.find_element(By.ID, "tm-tip")
    assert tip.text == "Job 2 of Lübeck: 4 processors, ran 1 d, waited 0 s"
    ActionChains(driver).click(second).perform()
    until(driver, "return document.querySelectorAll('#tm-story li').length === 4")
    assert "went to Wismar, which took it" in story.text
    assert "Started at once." in story.text
    assert "would have waited 2 h: 2 h sooner by the exchange" in story.text
    second.send_keys(Keys.ARROW_RIGHT)
    until(driver, "return document.querySelector('#tm-story h3').textContent === 'Job 3 of Wismar'")
    shows(driver, "day 2, 00:10:00")
    assert "10 min later by the exchange" in story.text
    second.send_keys(Keys.ESCAPE)
    until(driver, "return document.querySelector('#tm-story h3') === null")


def zoom(driver: Browser) -> None:
    """Drags over a chart, and goes back to the whole run."""
    first = driver.find_element(By.CSS_SELECTOR, ".tm-lane canvas")
    chain = ActionChains(driver).move_to_element_with_offset(first, -200, 0)
    chain.click_and_hold().move_by_offset(100, 0).release().perform()
    width = first.size["width"]
    begin = (width / 2 - 200) / width * (3 * 86400 + 600)
    shows(driver, "day 0, ")
    until(driver, "return document.getElementById('tm-now').textContent !== 'day 0, 00:00:00'")
    text = driver.find_element(By.ID, "tm-now").text.removeprefix("day 0, ")
    hours, minutes, _ = (int(part) for part in text.split(":"))
    assert abs(hours * 3600 + minutes * 60 - begin) < 1800
    driver.find_element(By.ID, "tm-whole").click()


def test_the_page_moves(page: Browser) -> None:
    """Slider, flight, hover, click, brush, keys and play; nothing else is loaded; everybody can read it."""
    slide(page)
    ask_for_stories(page)
    zoom(page)
    before = page.find_element(By.ID, "tm-now").text
    page.find_element(By.ID, "tm-play").click()
    until(page, f"return document.getElementById('tm-now').textContent !== '{before}'")
    page.find_element(By.ID, "tm-play").click()
    for width, dark in ((390, True), (1600, False)):
        look(page, width, dark=dark)
        assert violations(page) == []
        assert not is_wider(page)
    assert requests(page) == set()
    assert complaints(page) == []
