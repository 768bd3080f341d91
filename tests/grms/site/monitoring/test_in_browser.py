"""The pages in a browser: clicks, what moves, both widths, both schemes, keyboard, accessibility."""

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from grms.daemon.ports import free_port
from grms.policy.files import save_rule_base
from grms.policy.transfer import Gaussian, Rule, RuleBase
from grms.site.model.account_history import POINT_S, POINTS_MAX, AccountHistory, AccountPoint
from tests.browser import (
    Browser,
    complaints,
    is_wider,
    look,
    requests,
    until,
    violations,
)
from tests.grms.site.daemons import Running, document, running

T = TypeVar("T")

RULES = RuleBase(
    (
        Rule(Gaussian(0.0, 1.0), Gaussian(25.0, 30.0), accept=True),
        Rule(Gaussian(0.0, 1.0), Gaussian(100.0, 40.0), accept=False),
    ),
    "let wide jobs go",
)
"""A job of one processor of four stays, one of all four goes."""


@dataclass
class Stage:
    """Two sites that serve in a thread of their own, and a browser.

    Attributes:
        driver: the browser.
        loop: of the sites.
        home: the site whose pages are looked at.
        away: its partner, which keeps an account of itself.
    """

    driver: Browser
    loop: asyncio.AbstractEventLoop
    home: Running
    away: Running

    @property
    def address(self) -> str:
        """A link to the pages, another one each time."""
        assert self.home.core.dashboard is not None
        return self.home.core.dashboard.server.link()

    def enter(self, path: str) -> None:
        """Opens a page."""
        self.driver.get(self.address)
        self.driver.get(urljoin(self.driver.current_url, path))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns what happens at the sites."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)


@asynccontextmanager
async def sites(folder: Path) -> AsyncIterator[tuple[Running, Running]]:
    """Yields a site with a rule base, and a partner with strict exchange."""
    save_rule_base(RULES, folder / "rules.json")
    ports = {"home": free_port(), "away": free_port()}
    home = document(folder, "home", partners={"away": ports["away"]}, port=ports["home"])
    home["partners"][0]["transfer"] = str(folder / "rules.json")
    home["dashboard"] = {"listen": f"127.0.0.1:{free_port()}"}
    away = document(folder, "away", partners={"home": ports["home"]}, port=ports["away"])
    away["rails"] = "strict-exchange"
    away["dashboard"] = {"listen": f"127.0.0.1:{free_port()}"}
    async with running(home, folder) as first, running(away, folder) as second:
        await first.linked()
        await second.linked()
        yield first, second


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Stage]:
    """Returns sites that serve, and the browser; one job has ended at home, one at the partner."""
    folder = tmp_path_factory.mktemp("stage")
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Running, Running]] = Future()

    async def serve() -> None:
        over = asyncio.Event()
        async with sites(folder) as (home, away):
            small = await home.submit("small", processors=1, name="small one")
            wide = await home.submit("wide", processors=4, name="wide one")
            await home.ended(small.job_id)
            await home.ended(wide.job_id)
            ready.set_result((asyncio.get_running_loop(), over, home, away))
            await over.wait()

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    thread = threading.Thread(target=work, name="sites")
    thread.start()
    loop, over, home, away = ready.result(60)
    try:
        yield Stage(chromium, loop, home, away)
    finally:
        chromium.get("about:blank")  # before it asks for a site that is gone
        loop.call_soon_threadsafe(over.set)
        thread.join(60)


def rows(driver: Browser) -> list[str]:
    """Returns the jobs that are shown."""
    # By one script: the page replaces its rows whenever something happens.
    script = (
        "return [...document.querySelectorAll('#timeline tbody th a')].map((a) => a.textContent)"
    )
    return list(driver.execute_script(script))


def press(driver: Browser, key: str) -> None:
    """Presses a key, wherever the focus is."""
    ActionChains(driver).send_keys(key).perform()


def open_overview(stage: Stage) -> Browser:
    """Opens the page of the site and waits until it is filled."""
    driver = stage.driver
    driver.get(stage.address)
    until(driver, "return document.querySelectorAll('#timeline tbody tr').length >= 2")
    until(driver, "return document.querySelector('#partners tbody tr') !== null")
    until(driver, "return document.getElementById('live').textContent === 'live'")
    return driver


def test_the_page_fills_itself_and_moves(stage: Stage) -> None:
    """The link leaves the address; a new job appears without a click, from this site alone."""
    look(stage.driver, 1600)
    requests(stage.driver)
    driver = open_overview(stage)
    assert "login" not in driver.current_url
    assert driver.find_element(By.TAG_NAME, "h1").text == "home"
    partner = driver.execute_script(
        "return document.querySelector('#partners tbody tr').textContent"
    )
    assert "away" in partner
    assert "reachable" in partner
    before = rows(driver)
    job = stage.do(stage.home.submit("live", processors=1))
    assert job.job_id not in before
    until(driver, f"return document.body.textContent.includes('{job.job_id}')")
    origin = stage.address.partition("?")[0]
    assert {each for each in requests(driver) if not each.startswith(origin)} == set()
    assert complaints(driver) == []


def test_jobs_are_searched_and_chosen(stage: Stage) -> None:
    """By words, and by where they run; the choice is told to who does not see it."""
    driver = open_overview(stage)
    field = driver.find_element(By.ID, "search")
    field.send_keys("wide")
    until(driver, "return document.querySelectorAll('#timeline tbody tr').length === 1")
    assert rows(driver) == ["home-2"]
    for _ in "wide":
        field.send_keys(Keys.BACKSPACE)
    until(driver, "return document.querySelectorAll('#timeline tbody tr').length > 1")
    kinds = {each.text: each for each in driver.find_elements(By.CSS_SELECTOR, "#kinds button")}
    kinds["at partners"].click()
    until(driver, "return document.querySelectorAll('#timeline tbody tr').length === 1")
    assert rows(driver) == ["home-2"]
    assert kinds["at partners"].get_attribute("aria-pressed") == "true"
    assert kinds["all"].get_attribute("aria-pressed") == "false"


def test_a_click_tells_why_a_job_is_where_it_is(stage: Stage) -> None:
    """Who was asked, what was answered, and the memberships by which it was let go."""
    driver = open_overview(stage)
    until(
        driver,
        "const a = [...document.querySelectorAll('#timeline a')]"
        ".find((each) => each.textContent === 'home-2'); a?.click(); return Boolean(a)",
    )
    until(driver, "return document.querySelectorAll('#story li').length === 4")
    assert driver.find_element(By.ID, "summary").text == (
        "It was given to away, which accepted it."
    )
    asked = driver.find_element(By.CSS_SELECTOR, "#story li[data-kind=asked]")
    assert (
        "4 of 4 processors were free" in asked.text or "3 of 4 processors were free" in asked.text
    )
    assert "let go" in asked.text
    assert len(asked.find_elements(By.CSS_SELECTOR, "svg path.stroke")) == 4
    assert len(asked.find_elements(By.CSS_SELECTOR, "svg circle")) == 4
    assert complaints(driver) == []
    driver.find_element(By.CLASS_NAME, "brand").click()
    until(driver, "return document.querySelector('#timeline tbody tr') !== null")


def test_keys_are_enough(stage: Stage) -> None:
    """The first one leads past all that comes before the jobs; a job opens with Enter."""
    driver = open_overview(stage)

    def focused() -> str:
        return str(driver.execute_script("return document.activeElement.textContent.trim()"))

    press(driver, Keys.TAB)
    assert focused() == "Skip to the jobs"
    press(driver, Keys.ENTER)
    reached = set()
    for _ in range(30):
        press(driver, Keys.TAB)
        reached.add(where := focused())
        if where.startswith("home-"):
            break
    assert {"all", "at partners"} <= reached
    press(driver, Keys.ENTER)
    until(driver, "return document.querySelectorAll('#story li').length > 0")


@pytest.mark.parametrize(
    ("width", "dark"), [(390, False), (1600, True)], ids=["telephone, light", "wide, dark"]
)
def test_everybody_can_read_it(stage: Stage, width: int, *, dark: bool) -> None:
    """On a telephone and on a wide screen nothing sticks out, and axe-core has nothing to say."""
    driver = stage.driver
    look(driver, width, dark=dark)
    open_overview(stage)
    assert violations(driver) == []
    assert not is_wider(driver)
    stage.enter("job.html?key=home-2")
    until(driver, "return document.querySelectorAll('#story svg').length > 0")
    assert violations(driver) == []
    assert not is_wider(driver)
    paper = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is not dark


def test_a_job_that_is_not_known_is_said(stage: Stage) -> None:
    """Not an empty page."""
    stage.enter("job.html?key=home-999")
    until(stage.driver, "return !document.getElementById('notice').hidden")
    assert "does not remember" in stage.driver.find_element(By.ID, "notice").text
    complaints(stage.driver)  # the browser notes the 404


def month(end: float) -> AccountHistory:
    """Returns a history of 30 days, in which the site was out of credit for a while and its daemon away for a day."""
    points = []
    for number in range(POINTS_MAX):
        if not 100 <= number < 112:
            time = end - POINT_S * (POINTS_MAX - 1 - number)
            balance = math.nan if number < 24 else 60.0 * math.sin(number / 40.0) + 12.0
            good = 8 if math.isnan(balance) or balance > 0 else 0
            points.append(
                AccountPoint(
                    time, 8, good, 0, balance, number % 7 if good else 0, 1 + number % 5, 0
                )
            )
    return AccountHistory(points)


async def fill(site: Running) -> None:
    """Has the account of a site have a history, of which its dashboard knows."""
    memory, dashboard = site.core.engine.state.memory, site.core.dashboard
    assert memory.account is not None
    assert dashboard is not None
    while memory.account.last_look == -math.inf:  # noqa: ASYNC110  # a look has no event
        await asyncio.sleep(0.05)
    memory.account.history = month(memory.account.last_look)
    dashboard.recorder.sample()
    ledger = dashboard.ledger
    while ledger.account is None or len(ledger.account.history) < POINTS_MAX - 12:  # noqa: ASYNC110  # same
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("width", "dark"), [(390, False), (1600, True)], ids=["telephone, light", "wide, dark"]
)
def test_the_account_of_a_site_is_a_picture(stage: Stage, width: int, *, dark: bool) -> None:
    """It is there where a site keeps one, in words, in figures, and as the last 30 days; not elsewhere."""
    stage.do(fill(stage.away))
    driver = stage.driver
    look(driver, width, dark=dark)
    assert stage.away.core.dashboard is not None
    driver.get(stage.away.core.dashboard.server.link())
    until(driver, "return document.querySelectorAll('#account-charts .credit').length > 100")
    chart = driver.find_element(By.CSS_SELECTOR, "#account-charts svg")
    assert len(chart.find_elements(By.CSS_SELECTOR, ".debt")) > 20
    assert "Account in 30 days: balance now" in str(chart.get_attribute("aria-label"))
    assert "too early" in driver.find_element(By.ID, "account-words").text
    assert violations(driver) == []
    assert not is_wider(driver)
    if dark:  # once is enough
        open_overview(stage)
        assert driver.find_element(By.ID, "account").get_attribute("hidden") is not None
