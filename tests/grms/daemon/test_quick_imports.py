"""Imports of a daemon leave out what it does not use, and Python as it was."""

import gc
import sys

import pytest

from grms.daemon.quick_imports import quick_imports
from tests.programs import run_program

PROGRAM = """
import gc, sys
from grms.daemon.quick_imports import quick_imports
with quick_imports():
    import structlog
    assert not gc.isenabled()
assert not [name for name in sys.modules if name.split(".")[0] == "rich"]
assert gc.isenabled() and gc.get_freeze_count()
import rich.console
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger().exception("divided")
"""


def test_rich_is_imported_only_by_who_wants_it() -> None:
    """Structlog goes without it, and writes a traceback all the same."""
    done = run_program([sys.executable, "-c", PROGRAM])
    assert done.returncode == 0, done.stderr
    assert "ZeroDivisionError: division by zero" in done.stdout


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_as_it_was(on: bool) -> None:
    """Also where an import fails, and where it was off before."""
    try:
        if not on:
            gc.disable()
        with pytest.raises(ImportError), quick_imports():
            assert not gc.isenabled()
            raise ImportError
        assert gc.isenabled() is on
    finally:
        gc.enable()
