"""Hypothesis profiles, and the folders of recorded traces and workflows.

Drawing examples costs more than what is tested with them, so the default tries thirty, others each time.
`HYPOTHESIS_PROFILE=ci pytest` tries as many, always the same; `checked` fewer, for kernels that are ten
times as slow because every access is checked; `mutants` more, for each of which another change may be
noticed; `thorough` many times as many, and whole logs and thousands of seeds where the others take a part
(`tests/examples.py`).
"""

import contextlib
import gc
import importlib
import os
import signal
import socket
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests import services

if TYPE_CHECKING:
    from tests.browser import Browser
    from tests.forks import Nursery

TESTS = Path(__file__).parent

T = TypeVar("T")

WAITING = (
    str(TESTS.parent / "plugins/hanse-slurm/tests/test_slurm_real.py"),
    "grms/site/test_batch_arrays.py",
    "broker/test_real_programs.py",
    "grms/lrms/batch/test_real_accounts.py",
    "grms/lrms/test_conformance.py",
    "grms/site/test_partner_maintenance.py",
    "grms/cli/test_submit_like_sbatch.py",
    "grms/site/test_real_requests.py",
    "grms/lrms/slurm/test_real_preemption.py",
    "grms/site/test_real_returns.py",
    "broker/test_two_sites.py",
    "scenarios/live/test_live.py",
    "broker/test_daemon.py",
    "grms/lrms/gridengine/test_gridengine_request.py",
    "grms/site/runtime/test_usage_writer.py",
    "grms/lrms/batch/test_adapter.py",
    "grms/site/staging/test_live_output.py",
    "grms/lrms/batch/test_real_doubts.py",
    "grms/site/test_real_batch.py",
    "grms/site/test_main.py",
    "grms/site/pilots/test_real_pilots.py",
    "docs/test_tutorial.py",
    "grms/site/test_daemon.py",
    "grms/lrms/test_own_users.py",
    "grms/site/staging/test_resumed_transfers.py",
    "docs/test_how_tos.py",
    "docs/test_readme.py",
    "grms/site/pilots/test_agent.py",
    "grms/lrms/batch/test_real_nodes.py",
    "grms/lrms/test_account_mapping.py",
    "grms/site/test_deputies.py",
    "scenarios/live/test_demo.py",
    "scenarios/live/test_sites.py",
    "grms/lrms/test_own_users_deputies.py",
    "scenarios/test_real_faults.py",
    "grms/site/test_batch_doubts.py",
    "grms/site/runtime/test_real_slurm.py",
    "broker/cli/test_daemon_cli.py",
    "scenarios/live/test_coordinator.py",
    "broker/cli/test_resources_cli.py",
    "broker/rpc/test_telemetry.py",
)
"""Tests that mostly wait, for seconds each, the longest first. Every other worker begins with its share of them,
while the others have the processors; if all waited at the same time, those would be idle. Most processes
that tests fork (`tests/forks.py`) are theirs, so few workers import for all."""

# What a shell starts in the background ignores Ctrl-C, and so would every process of a test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Compiled code is loaded by the first example, so a deadline for each would fail by chance.
settings.register_profile("dev", max_examples=30, deadline=None)
settings.register_profile(
    "ci",
    max_examples=30,
    deadline=None,
    derandomize=True,
    print_blob=True,
    # A slow shared runner is no reason to fail.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("mutants", settings.get_profile("ci"), max_examples=50)
settings.register_profile(
    "checked",
    max_examples=10,
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
    """Three workers more than there are processors: many tests wait for daemons and clusters."""
    return (os.cpu_count() or 1) + 3


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Lets what `--reruns` says to its counter go at once.

    Before each test a worker sends two small messages and waits for what a third asks. Nagle's algorithm
    and delayed acknowledgements together would hold each test up for 40 ms, eight minutes in all.
    """
    counter = getattr(getattr(config, "failures_db", None), "sock", None)
    if counter is not None and hasattr(config, "workerinput"):
        counter.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Imports this worker's share of the test modules before it collects all of them.

    pytest compiles every test module anew, with what its assertions compared, and keeps the result.
    Workers that begin with the same module would each compile all of them, which takes as long as
    some hundred tests.
    """
    gc.disable()  # nothing that is imported becomes garbage; `pytest_collection_finish` enables it
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    ignored = [Path(name).absolute() for name in session.config.getoption("ignore") or ()]
    modules = sorted(
        path.relative_to(TESTS.parent)
        for name in session.config.args
        for path in Path(name).absolute().rglob("test_*.py")
        if path.is_relative_to(TESTS) and not any(path.is_relative_to(each) for each in ignored)
    )
    own = int(worker["workerid"].removeprefix("gw"))
    for path in modules[own :: worker["workercount"]]:
        # What cannot be imported is met again, and told, when it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.with_suffix("").parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Marks tests by their fixtures, lets no property be tried twice (`--reruns`), and some workers begin with what waits.

    Some tests drive real processes by real clocks, which a machine may hold up for seconds. What
    Hypothesis finds is no matter of time, even where it is not found again.
    """
    for item in items:
        if is_hypothesis_test(getattr(item, "function", None)):
            item.add_marker(pytest.mark.flaky(reruns=0))
        if not services.FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.services)
    yield  # pytest leaves out what `-m` does not select
    rank = {name: number for number, name in enumerate(WAITING)}
    waiting: dict[int, list[pytest.Item]] = {}
    others: list[pytest.Item] = []
    for item in items:
        name = str(item.path).removeprefix(f"{TESTS}/")
        if "chromium" in getattr(item, "fixturenames", ()):
            waiting.setdefault(len(rank), []).append(item)  # one browser for all
        elif name in rank:
            waiting.setdefault(rank[name], []).append(item)
        else:
            others.append(item)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = dealt([waiting[number] for number in sorted(waiting)], others, workers)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Lets `tests/services.py` know which test asks for a program of the machine."""
    services.begins(item)


def dealt(waiting: list[list[T]], others: list[T], workers: int) -> list[T]:
    """Returns all in the order in which `--dist=worksteal` gives every other worker a share of what waits first.

    It begins with as many tests for each worker, one worker after the other.
    """
    first: list[list[T]] = [[] for _ in range((workers + 1) // 2)]
    for number, together in enumerate(waiting):
        first[number % len(first)].extend(together)
    left = iter(others)
    order: list[T] = []
    count = sum(map(len, waiting)) + len(others)
    for worker in range(workers):
        share = [] if worker % 2 else first[worker // 2]
        end = len(order) + (count - len(order)) // (workers - worker)
        order += share
        order += islice(left, max(0, end - len(order)))
    return order + list(left)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Takes everything that stays to the end out of the search for garbage."""
    gc.freeze()
    gc.enable()


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
def nursery() -> "Iterator[Nursery]":
    """Returns the process of this worker that others are forked from."""
    from tests.forks import Nursery  # noqa: PLC0415  # not every run of some tests needs one

    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def forks(nursery: "Nursery") -> Iterator[None]:
    """Lets processes of commands begin without their imports (`tests/forks.py`)."""
    from tests.forks import forked  # noqa: PLC0415  # see above

    with forked(nursery):
        yield


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
