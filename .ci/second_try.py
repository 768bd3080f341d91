"""`.ci/second_try.py ARGUMENTS OF PYTEST`: the tests; few that fail are tried once more, alone.

Some tests drive real processes by real clocks. On a machine that is held up for seconds, one of some
thousands may fail for that reason alone. It is tried again with nothing beside it, and named at the
end: a name that is seen twice is a fault, of the product or of the test. What fails alone too has
failed, and so has everything where more than `FAILED_MAX` tests failed, or where Hypothesis has found an
example: that is no matter of time, even where it is not found again.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FAILED_MAX = 3
"""More than so many failures are no matter of time."""


EXAMPLES = ("Falsifying example", "Failing test case")
"""Words before what Hypothesis has found."""


class Failures:
    """Collects the node ids of what failed; a plugin of pytest.

    Attributes:
        tests: node ids, in the order of the failures.
        root: the folder that they begin in.
        by_example: Hypothesis has found an example for one of them.
    """

    def __init__(self) -> None:
        self.tests: dict[str, None] = {}
        self.root = Path.cwd()
        self.by_example = False

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keeps the folder that node ids begin in."""
        self.root = config.rootpath

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Is told of each phase of each test, from every worker."""
        if report.failed:
            self.tests[report.nodeid] = None
            self.by_example |= any(words in report.longreprtext for words in EXAMPLES)


def second_try(tests: list[str], root: Path, arguments: list[str]) -> int:
    """Runs these tests once more, one after the other; returns pytest's status."""
    print(f"\n{len(tests)} failed beside others; once more, alone:", *tests, sep="\n  ", flush=True)
    # What says where and how, in one word each; not what tests they were.
    settings = re.compile("--(rootdir|config-file)=.|-[op].")
    kept = [word for word in arguments if settings.match(word)]
    command = [sys.executable, "-m", "pytest", *kept, "--numprocesses=0", *tests]
    return subprocess.run(command, cwd=root, check=False).returncode


def main(arguments: list[str]) -> int:
    """Runs pytest with these arguments; returns its status, or that of the second try."""
    failures = Failures()
    status = int(pytest.main(arguments, plugins=[failures]))
    tests = list(failures.tests)
    few = 0 < len(tests) <= FAILED_MAX
    if status != pytest.ExitCode.TESTS_FAILED or not few or failures.by_example:
        return status
    status = second_try(tests, failures.root, arguments)
    if status == pytest.ExitCode.OK:
        print("\nunsteady: failed beside others, passed alone:", *tests, sep="\n  ")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
