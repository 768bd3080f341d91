"""Modules that are loaded when something of them is used."""

import sys
from pathlib import Path

from tests.programs import run_program

PROGRAM = """
import sys
from threading import Barrier, Thread
import package
from lrms_sim.util.lazy_imports import load_later

load_later("package.late", "package.nowhere", "alone", "broken", "open")
load_later("alone")
import alone, broken, package.late
from package import late
print("imported", "package.nowhere" in sys.modules, late.__name__)
together, seen = Barrier(4), []

def use():
    together.wait()
    seen.append(late.NAME)

threads = [Thread(target=use) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(seen, package.late is late)
from alone import NAME
print(NAME, hasattr(alone, "other"), "__getattr__" in vars(alone))
for _ in range(2):
    try:
        broken.NAME
    except ValueError as error:
        print(error)
import open
print(open.any, open.other)
"""


def test_a_module_is_loaded_when_something_of_it_is_used(tmp_path: Path) -> None:
    """Once, however it is imported, and all of it; what is not there is nothing."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    for name in ("package/late", "alone"):
        text = f"import time\nprint('{name} is loaded')\ntime.sleep(0.01)\nNAME = '{name}'\n"
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "broken.py").write_text("raise ValueError('broken')\nNAME = 1\n")
    (tmp_path / "open.py").write_text("def __getattr__(name):\n    return f'any {name}'\n")
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"]
    done = run_program(words, check=True)
    assert done.stdout.splitlines() == [
        "imported False package.late",
        "package/late is loaded",
        "['package/late', 'package/late', 'package/late', 'package/late'] True",
        "alone is loaded",
        "alone False False",
        "broken",
        "broken",
        "any any any other",
    ]
