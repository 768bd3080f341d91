"""What is shown to a user as a message has one base, which imports nothing."""

import sys

from tests.programs import run_program

PROGRAM = """
import sys
before = set(sys.modules)
import lrms_sim.util.errors
package = {"lrms_sim", "lrms_sim.util", "lrms_sim.util.version", "lrms_sim.util.lazy_imports"}
more = set(sys.modules) - before - package - {"lrms_sim.util.errors"}
assert not more, sorted(more)
"""


def test_the_base_imports_nothing() -> None:
    """So every module can have it, and no command is slower for it."""
    done = run_program([sys.executable, "-c", PROGRAM])
    assert done.returncode == 0, done.stderr
