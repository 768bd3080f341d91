"""Hypothesis profiles, and the folders of recorded traces and workflows.

Drawing examples costs more than what is tested with them, so the default tries fifty, others each time.
`HYPOTHESIS_PROFILE=ci pytest` tries as many, always the same; `checked` fewer, for kernels that are ten
times as slow because every access is checked; `thorough` ten times as many, and whole logs and thousands
of seeds where the others take a part (`tests/examples.py`).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.browser import Browser

# Compiled code is loaded by the first example, so a deadline for each would fail by chance.
settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=50,
    deadline=None,
    derandomize=True,
    print_blob=True,
    # A slow shared runner is no reason to fail.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "checked",
    max_examples=20,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are processors: many tests wait for daemons and clusters."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def traces_folder() -> Path:
    """Returns the folder of recorded traces; skips the test where there is none."""
    folder = os.environ.get("HANSE_TRACES", "")
    if not folder:
        pytest.skip(
            "HANSE_TRACES is not set: name the folder with the logs of the Parallel Workloads "
            "Archive (`scenario fetch` gets them)"
        )
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"HANSE_TRACES is {folder!r}, but there is no such folder")
    return path


@pytest.fixture(scope="session")
def workflows_folder() -> Path:
    """Returns the folder of recorded workflows; skips the test where there is none."""
    folder = os.environ.get("HANSE_WORKFLOWS", "")
    if not folder:
        pytest.skip(
            "HANSE_WORKFLOWS is not set: name the folder with workflows of WfCommons' WfInstances"
        )
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"HANSE_WORKFLOWS is {folder!r}, but there is no such folder")
    return path


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Browser]":
    """Returns the browser of this worker: a start of one costs a second and more."""
    from tests.browser import browser  # noqa: PLC0415  # few workers need selenium

    with browser(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def driver(chromium: "Browser") -> "Iterator[Browser]":
    """Returns the browser, and leaves it as a fresh one for whoever comes next."""
    from tests.browser import complaints, look, requests  # noqa: PLC0415  # few workers need selenium

    requests(chromium)
    complaints(chromium)
    yield chromium
    chromium.get("about:blank")
    look(chromium, 1600)
    requests(chromium)
    complaints(chromium)
