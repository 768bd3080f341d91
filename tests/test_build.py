"""The kernels that the tests run are the ones that were built for them."""

import importlib
import os
import sys
from pathlib import Path

import pytest

from tests.programs import run_program

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("HANSE_CHECKED_BUILD", ROOT))
KERNELS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("lrms_sim", "grms", "broker")
    for path in (ROOT / package).rglob("*.pyx")
)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_comes_from_this_build(name: str) -> None:
    """Under `make debug` the kernel is the checked one, otherwise the one in the checkout."""
    file = importlib.import_module(name).__file__
    assert file is not None
    assert Path(file).is_relative_to(BUILD)
    assert (b"__asan_" in Path(file).read_bytes()) == ("HANSE_CHECKED_BUILD" in os.environ)


def test_a_process_of_its_own_uses_the_same_build(tmp_path: Path) -> None:
    """Command lines that tests start load the same kernels as the tests themselves."""
    code = "import lrms_sim.kernel._machine as m; print(m.__file__)"
    done = run_program([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert Path(done.stdout.strip()).is_relative_to(BUILD)
