"""What `make test` leaves to `make test-services`."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import services
from tests.conftest import TESTS, pytest_collection_modifyitems

ROOT = TESTS.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_a_test_that_is_not_marked_may_not_need_a_program(request: pytest.FixtureRequest) -> None:
    """Whether it is there or not: on a machine without it a skip would hide the mistake."""
    for program in ("sh", "no-such-program"):
        with pytest.raises(pytest.fail.Exception, match=f"needs {program} and is not marked"):
            services.need("a-package", program)
    request.node.add_marker(pytest.mark.services)
    assert Path(services.need("a-package", "sh", "env")).name == "sh"
    with pytest.raises(pytest.skip.Exception, match="no no-such-program; on Debian: apt install a"):
        services.need("a-package", "sh", "no-such-program")


class Collected(SimpleNamespace):
    """A test as pytest collects it, as far as the hook looks."""

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        """Keeps its name."""
        self.marks.append(mark.name)


def test_tests_are_marked_by_their_fixtures() -> None:
    """Before pytest selects by marks, and in order after it."""
    names = [["tmp_path"], ["driver", "chromium"], ["mosquitto"], ["broker"], []]
    items: list[Any] = [
        Collected(path=TESTS / f"test_{number}.py", fixturenames=each, marks=[])
        for number, each in enumerate(names)
    ]
    hook: Iterator[None] = pytest_collection_modifyitems(items)
    next(hook)
    assert [each.marks for each in items] == [[], ["services"], ["services"], [], []]
    del items[2]
    next(hook, None)
    assert [each.path.stem for each in items] == ["test_1", "test_0", "test_3", "test_4"]


def recipe(target: str) -> str:
    """Returns what make runs for a target."""
    (found,) = re.findall(rf"^{target}: .*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return str(found)


def test_all_tests_are_in_one_of_two_sets() -> None:
    """Which differ in the mark alone, and `.ci/run` has both; what is said to be all tests selects nothing."""
    assert recipe("test").replace("'not services'", "services") == recipe("test-services")
    assert "-m 'not services'" in recipe("test")
    assert not re.search(r" -m ", recipe("coverage") + recipe("test-thorough"))
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for target in ("test", "test-services"):
        assert re.search(rf"^HYPOTHESIS_PROFILE=ci make {target} PYTEST_ARGS=", run, re.MULTILINE)
