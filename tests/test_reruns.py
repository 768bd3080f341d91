"""Of a run, `make test` tries at most three tests that fail once more, and names them."""

import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import pytest_configure

ROOT = Path(__file__).resolve().parents[1]
RETRIED_MAX = 3
ONCE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_held_up(number):
    seen = Path({folder!r}) / f"seen-{{number}}"
    had_been = seen.exists()
    seen.touch()
    assert had_been or {steady}
"""


def trial(folder: Path, text: str, workers: int = 0) -> tuple[int, str]:
    """Returns status and output for a module of tests, run as `make test` does."""
    (folder / "test_trial.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (options,) = re.findall(r"^RERUNS := (.*)", makefile, re.MULTILINE)
    done = subprocess.run(  # noqa: S603  # this very interpreter
        [
            *(sys.executable, "-m", "pytest", *options.split(), "-pno:cacheprovider", "-pno:anyio"),
            f"--numprocesses={workers}",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def once(folder: Path, count: int, steady: str = "False") -> str:
    """Returns tests of which each fails at its first run only; the steady ones never."""
    return ONCE.format(count=count, folder=str(folder), steady=steady)


def test_what_failed_once_is_named_and_has_not_failed(tmp_path: Path) -> None:
    """With the error it met; only what failed is tried again."""
    status, output = trial(tmp_path, once(tmp_path, 3, steady="number == 1"))
    assert status == pytest.ExitCode.OK, output
    assert "3 passed, 2 rerun" in output
    summary = output.partition("rerun test summary info")[2]
    for number in (0, 2):
        assert f"RERUN test_trial.py::test_held_up[{number}]" in summary
    assert summary.count("E       assert ") == 2
    assert "test_held_up[1]" not in summary


def test_what_fails_twice_has_failed(tmp_path: Path) -> None:
    """A test that can never pass."""
    status, output = trial(tmp_path, "def test_never():\n    assert False\n")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 1 rerun" in output


def test_many_failures_are_no_matter_of_time(tmp_path: Path) -> None:
    """One more than the most fails, counted over all workers."""
    status, output = trial(tmp_path, once(tmp_path, RETRIED_MAX + 1), workers=2)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert f"1 failed, {RETRIED_MAX} passed, {RETRIED_MAX} rerun" in output


def test_what_hypothesis_finds_is_no_matter_of_time(tmp_path: Path) -> None:
    """A property is tried once, as `tests/conftest.py` has it: an example may be found by the first of two tries."""
    hook = "from tests.conftest import pytest_collection_modifyitems"
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{hook}\n"
    )
    text = once(tmp_path, 1).replace(
        "def test_held_up(number):", "@given(st.just(0))\ndef test_held_up(number, zero):"
    )
    status, output = trial(tmp_path, f"from hypothesis import given, strategies as st\n{text}")
    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert "1 failed" in output.splitlines()[-1]
    assert "rerun" not in output.splitlines()[-1]


@pytest.mark.parametrize("worker", [True, False])
def test_what_workers_ask_of_the_counter_of_reruns_goes_at_once(worker: bool) -> None:
    """Each test asks: Nagle's algorithm would hold it up until the last question is acknowledged."""
    with socket.socket() as counter:
        config: Any = SimpleNamespace(failures_db=SimpleNamespace(sock=counter))
        if worker:
            config.workerinput = {}
        pytest_configure(config)
        assert bool(counter.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)) == worker


def test_there_need_be_no_counter_of_reruns() -> None:
    pytest_configure(SimpleNamespace(workerinput={}))  # type: ignore[arg-type]  # all that is asked
