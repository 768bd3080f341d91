"""A second try of the few tests that failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "second_try.py"
FAILED_MAX = 3

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


def trial(folder: Path, text: str) -> tuple[int, str]:
    """Returns status and output for a module of tests."""
    path = folder / "test_trial.py"
    path.write_text(text)
    configuration = folder / "pytest.ini"
    configuration.write_text("[pytest]\n")
    done = subprocess.run(  # noqa: S603  # this very interpreter
        [
            *(sys.executable, str(SCRIPT), f"--config-file={configuration}", f"--rootdir={folder}"),
            *("-pxdist.plugin", "-pno:cacheprovider", "--numprocesses=0", str(path)),
        ],
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def once(folder: Path, count: int, steady: str = "False") -> str:
    """Returns tests of which each fails at its first run only; the steady ones never."""
    return ONCE.format(count=count, folder=str(folder), steady=steady)


def test_what_failed_once_is_named_and_has_not_failed(tmp_path: Path) -> None:
    """Only what failed is tried again."""
    status, output = trial(tmp_path, once(tmp_path, 3, steady="number == 1"))
    assert status == pytest.ExitCode.OK, output
    assert output.index("2 failed, 1 passed") < output.index("2 passed"), output
    unsteady = output.rpartition("unsteady")[2]
    assert "test_held_up[0]" in unsteady
    assert "test_held_up[2]" in unsteady
    assert "test_held_up[1]" not in unsteady


def test_what_fails_alone_too_has_failed(tmp_path: Path) -> None:
    """A test that can never pass."""
    status, output = trial(tmp_path, "def test_never():\n    assert False\n")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert output.count("1 failed in") == 2
    assert "unsteady" not in output


def test_many_failures_are_no_matter_of_time(tmp_path: Path) -> None:
    """One more than the most: there is no second try."""
    status, output = trial(tmp_path, once(tmp_path, FAILED_MAX + 1))
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "once more" not in output


def test_what_hypothesis_finds_is_no_matter_of_time(tmp_path: Path) -> None:
    """Also where the example would not be found again."""
    text = once(tmp_path, 1).replace(
        '@pytest.mark.parametrize("number", range(1))',
        "from hypothesis import given, settings, strategies\n\n"
        "@settings(database=None, max_examples=1, derandomize=True)\n"
        "@given(number=strategies.just(0))",
    )
    assert "hypothesis" in text
    status, output = trial(tmp_path, text)
    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert "once more" not in output
