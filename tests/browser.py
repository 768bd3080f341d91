"""A browser without a window, for tests of pages; Debian's chromium with its driver."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from tests.services import need

TIME_OUT_S = 300.0
AXE = Path(str(files("axe_core_python").joinpath("axe.min.js")))

Browser = webdriver.Chrome


def program(*names: str) -> str:
    """Returns the path of a program that has one of the names; skips the test where there is none."""
    return need("chromium chromium-driver", next(filter(shutil.which, names), names[0]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Yields a browser with a profile of its own.

    Args:
        folder: for the profile.
    """
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium", "chromium-browser", "google-chrome")
    for word in (
        "--headless=new",
        "--no-sandbox",  # tests in a container are root's
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        f"--user-data-dir={folder}",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(program("chromedriver")))
    driver.set_page_load_timeout(TIME_OUT_S)
    driver.set_script_timeout(TIME_OUT_S)
    try:
        yield driver
    finally:
        driver.quit()


def look(driver: Browser, width: int, *, dark: bool = False, still: bool = False) -> None:
    """Makes the page so wide, in CSS pixels, dark or light, and for who wants no motion."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    motion = {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, motion]})


def until(driver: Browser, script: str) -> Any:
    """Returns what a script of the page returns, as soon as that is true."""

    def ask(_: Any) -> Any:
        return driver.execute_script(script)

    return WebDriverWait(driver, TIME_OUT_S, 0.05).until(ask, f"never true: {script}")


def violations(driver: Browser) -> list[str]:
    """Returns what axe-core finds wrong with the page: rule, and first place."""
    # Not as an element: the page's policy would not let it in.
    driver.execute_script(AXE.read_text(encoding="utf-8"))
    found = driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, {resultTypes: ['violations']}).then((r) => done(r.violations));"
    )
    return [f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in found]


def requests(driver: Browser) -> set[str]:
    """Returns the addresses that were asked for since it was last called."""
    found = set()
    for entry in driver.get_log("performance"):  # type: ignore[no-untyped-call]  # it has no types
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.add(message["params"]["request"]["url"])
    # The browser's own pages are asked for by other words.
    return {each for each in found if each.startswith(("http", "ws"))}


def complaints(driver: Browser) -> list[str]:
    """Returns what the browser has complained of since it was last called."""
    log = driver.get_log("browser")  # type: ignore[no-untyped-call]  # it has no types
    return [entry["message"] for entry in log if entry["level"] in {"WARNING", "SEVERE"}]


def is_wider(driver: Browser) -> bool:
    """Returns whether the page is wider than the window, so that one has to scroll sideways."""
    script = "const e = document.documentElement; return e.scrollWidth > e.clientWidth;"
    return bool(driver.execute_script(script))
