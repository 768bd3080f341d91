"""Runs tests against mutants, quickly: tests are collected once, and every mutant is a fork of that.

One process imports and collects the tests of a core. It runs each of them once as it is and notes which
lines of the core it reaches. Then it forks for every mutant: the child puts the changed code into the
functions that are loaded already, runs the tests that reach the changed lines, quick ones and the module's
own first, and ends at the first that fails. Nothing is written into the tree.

A change outside functions is made when its module is imported, so its tests are run in a fork that has
not imported it yet.
"""

import contextlib
import gc
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings

from benchmarks.mutation import Finder, Mutant, changed_functions, parts_of

FOUND: Final = 1
"""Status of a fork in which a test failed."""
LIVES: Final = 0
ENDLESS: Final = 4
"""Status of a fork that had to be ended, or ended by a signal: what a test would notice as well."""
NOT_TAKEN: Final = 3
"""Status of a fork in which no function that is loaded could take the change."""
EXAMPLES: Final = 30
"""Random workloads for each property; the same ones every time."""
LEAST_S: Final = 3
"""Seconds of processor time that every test has at least; thrice what it takes as it is are added."""
IDLE_S: Final = 8
"""A mutant that has neither worked nor waited for a processor for so many seconds waits for ever."""
MEMORY_BYTES: Final = 1 << 30
"""What a mutant may use beyond what its parent had."""
_ASIDE: Final = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # hypothesis is loaded before
QUICK_S: Final = 0.2
"""Tests up to this many seconds long are run before longer ones of the module's own."""
OPTIONS: Final = ("-q", "-s", "-p", "no:cacheprovider", "--timeout=0", "--no-header", *_ASIDE)


def prepare() -> None:
    """Loads what all tests need, and chooses few and constant examples for properties."""
    import google.protobuf.message  # noqa: F401, PLC0415  # once for all forks
    import grpc  # noqa: F401, PLC0415  # same
    import numpy  # noqa: F401, ICN001, PLC0415  # same

    settings.register_profile(
        "mutants",
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),  # a failure is enough; nobody reads the smallest
        suppress_health_check=list(HealthCheck),
    )
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"  # tests/conftest.py loads it


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _limit(seconds: float) -> None:
    # A mutant may loop, grow or wait for ever. Nothing here depends on how busy the machine is.
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
    _end_when_idle()


def _busy_s() -> float:
    # Seconds that the threads of this process have worked or waited for a processor.
    spent = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            works, waits, _ = (task / "schedstat").read_text(encoding="ascii").split()
            spent += int(works) + int(waits)
    return spent / 1e9


def _end_when_idle() -> None:
    busy = _busy_s()

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal busy
        del number, frame
        now = _busy_s()
        if now - busy < IDLE_S / 20:
            os._exit(ENDLESS)
        busy = now

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, IDLE_S, IDLE_S)


def _fork(work: Callable[[], int]) -> int:
    # Runs `work` in a fork, whose status it returns there; returns the fork's id.
    pid = os.fork()
    if pid:
        return pid
    status = FOUND
    try:
        status = work()
    except BaseException as error:  # noqa: BLE001  # whatever ended it, it ended
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(status)
    raise AssertionError


def statuses(
    starts: Iterator[tuple[int, Callable[[], int]]], workers: int
) -> Iterator[tuple[int, int]]:
    """Yields numbered pieces of work with the status each ended with, some at a time.

    A fork that a signal ended has the status ENDLESS.
    """
    running: dict[int, int] = {}
    try:
        while True:
            while len(running) < workers and (begun := next(starts, None)) is not None:
                running[_fork(begun[1])] = begun[0]
            if not running:
                return
            pid, waited = os.wait()
            if pid in running:
                status = os.waitstatus_to_exitcode(waited)
                yield running.pop(pid), ENDLESS if status < 0 else status
    finally:
        for pid in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


# --- which test reaches which line -------------------------------------------------------------------


@dataclass
class Reach:
    """What one test does as it is.

    Attributes:
        seconds: of processor time that it takes while its lines are noted.
        failed: whether it fails.
        lines: those it reaches, by file.
        entered: the functions that it calls, by file, name and first line.
    """

    seconds: float = 0.0
    failed: bool = False
    lines: dict[str, set[int]] = field(default_factory=dict)
    entered: set[tuple[str, str, int]] = field(default_factory=set)


class _Tracer:
    def __init__(self, files: set[str]) -> None:
        self.lines: dict[str, set[int]] = {file: set() for file in files}
        self.entered: set[tuple[str, str, int]] = set()

    def begin(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        if frame.f_code.co_filename not in self.lines:
            return None
        self.entered.add(_key(frame.f_code))
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        self.lines[frame.f_code.co_filename].add(frame.f_lineno)
        return self._line


class Collected:
    """The plug-in that holds collected tests, and forks for each mutant instead of running them once.

    Args:
        mutants: to try.
        workers: forks at a time.
        own: the test file of a module, by the module's path.
        report: where a line of JSON goes for each mutant: its index and status; and for each test that
            fails as it is, its name.
    """

    def __init__(
        self, mutants: Sequence[Mutant], workers: int, own: dict[str, str], report: int
    ) -> None:
        self._mutants, self._workers, self._own, self._report = mutants, workers, own, report
        self._failed = False
        self._ends_at_failure = False
        self._entered: set[tuple[str, str, int]] = set()

    def _tell(self, **words: Any) -> None:
        os.write(self._report, (json.dumps(words) + "\n").encode())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a failure; a mutant needs no second one."""
        if report.failed:
            self._failed = True
            if self._ends_at_failure:
                os._exit(FOUND)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Tries every mutant on the collected tests."""
        items = session.items
        functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        gc.unfreeze()  # what is frozen, as tests/conftest.py does, is not among the objects
        for each in gc.get_objects():
            if type(each) is FunctionType:
                functions.setdefault(_key(each.__code__), []).append(each)
        gc.collect()
        gc.freeze()  # what is there is the forks' in common
        for file in {mutant.file for mutant in self._mutants}:
            parts_of(file)  # once, for all of them
        reaches = self._reaches(items)
        self._entered = {key for one in reaches for key in one.entered}
        broken = [item.nodeid for item, one in zip(items, reaches, strict=True) if one.failed]
        if broken:
            self._tell(broken=broken)
            return True
        starts = (
            (index, self._attempt(mutant, self._chosen(mutant, items, reaches), functions))
            for index, mutant in enumerate(self._mutants)
        )
        for index, status in statuses(starts, self._workers):
            self._tell(index=index, status=status)
        return True

    def _reaches(self, items: Sequence[pytest.Item]) -> list[Reach]:
        files = {mutant.file for mutant in self._mutants}
        with tempfile.TemporaryDirectory() as folder:
            parts = [range(part, len(items), self._workers) for part in range(self._workers)]
            starts = (
                (part, lambda part=part: self._note(items, parts[part], files, folder))
                for part in range(self._workers)
            )
            for part, status in statuses(iter(starts), self._workers):
                if status != LIVES:
                    raise RuntimeError(f"part {part} of the tests did not come to an end")
            found: dict[int, Reach] = {}
            for part in range(self._workers):
                noted = json.loads((Path(folder) / str(part)).read_text(encoding="utf-8"))
                for index, seconds, failed, lines, entered in noted:
                    sets = {file: set(reached) for file, reached in lines.items()}
                    found[index] = Reach(seconds, failed, sets, set(map(tuple, entered)))
        return [found[index] for index in range(len(items))]

    def _note(self, items: Sequence[pytest.Item], part: range, files: set[str], folder: str) -> int:
        _silence()
        noted = []
        for index in part:
            tracer, self._failed = _Tracer(files), False
            begun = time.process_time()
            sys.settrace(tracer.begin)
            following = items[index + part.step] if index + part.step < len(items) else None
            items[index].config.hook.pytest_runtest_protocol(item=items[index], nextitem=following)
            sys.settrace(None)
            lines = {file: sorted(reached) for file, reached in tracer.lines.items() if reached}
            spent = time.process_time() - begun
            noted.append((index, spent, self._failed, lines, sorted(tracer.entered)))
        (Path(folder) / str(part.start)).write_text(json.dumps(noted), encoding="utf-8")
        return LIVES

    def _chosen(
        self, mutant: Mutant, items: Sequence[pytest.Item], reaches: Sequence[Reach]
    ) -> list[tuple[pytest.Item, float]]:
        # The tests that reach a mutant's lines, in their order, each with the time it may take.
        file, lines = mutant.file, set(range(mutant.line, mutant.last_line + 1))
        chosen = []
        for index, (item, one) in enumerate(zip(items, reaches, strict=True)):
            if lines & one.lines.get(file, set()):
                other = not item.nodeid.startswith(self._own.get(mutant.path, "?"))
                chosen.append(((one.seconds > QUICK_S, other, one.seconds, index), item))
        ordered = sorted(chosen, key=lambda each: each[0])
        return [(item, LEAST_S + 3.0 * order[2]) for order, item in ordered]

    def _attempt(
        self,
        mutant: Mutant,
        tests: Sequence[tuple[pytest.Item, float]],
        functions: dict[tuple[str, str, int], list[FunctionType]],
    ) -> Callable[[], int]:
        def work() -> int:
            _silence()
            try:
                changed = changed_functions(mutant)
                if not any(_key(old) in self._entered for old, _ in changed):
                    return NOT_TAKEN  # it runs as its module is imported, if ever
                for old, new in changed:
                    for function in functions[_key(old)]:
                        function.__code__ = new
            except (KeyError, ValueError):  # nobody holds it; it closes over other names
                return NOT_TAKEN
            _limit(sum(seconds for _, seconds in tests) + LEAST_S)
            self._ends_at_failure = True
            followers = [*(item for item, _ in tests[1:]), None]
            for (item, seconds), following in zip(tests, followers, strict=True):
                signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends the process
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            return FOUND if self._failed else LIVES

        return work


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


# --- a core's mutants ----------------------------------------------------------------------------


def _in_functions(
    mutants: Sequence[Mutant], tests: Sequence[str], own: dict[str, str], workers: int
) -> Iterator[tuple[int, int]]:
    # Yields (index, status) of mutants tried on tests collected once.
    reading, writing = os.pipe()
    folder = tempfile.mkdtemp(prefix="mutants-")

    def work() -> int:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        plugin = Collected(mutants, workers, own, writing)
        options = [*OPTIONS, f"--basetemp={folder}", *tests]
        return int(pytest.main(options, plugins=[plugin]))

    pid = _fork(work)
    os.close(writing)
    try:
        with os.fdopen(reading, encoding="utf-8") as told:
            for line in told:
                words = json.loads(line)
                if "broken" in words:
                    raise SystemExit(
                        "these tests fail without any mutant: " + ", ".join(words["broken"])
                    )
                yield words["index"], words["status"]
        _, waited = os.waitpid(pid, 0)
        pid = 0
        if waited:
            raise SystemExit(f"the tests could not be collected: {', '.join(tests)}")
    finally:
        if pid:
            os.kill(pid, signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)


def _at_import(
    mutants: Sequence[tuple[int, Mutant]], tests: Sequence[str], own: dict[str, str], workers: int
) -> Iterator[tuple[int, int]]:
    # Yields (index, status) of mutants that take effect when their module is imported.
    def attempt(mutant: Mutant) -> Callable[[], int]:
        def work() -> int:
            _silence()
            sys.meta_path.insert(0, Finder(mutant))
            _limit(20 * LEAST_S)
            mine = [own[mutant.path]] if mutant.path in own else []
            with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
                options = [*OPTIONS, "-x", f"--basetemp={folder}"]
                status = int(pytest.main([*options, *dict.fromkeys([*mine, *tests])]))
            return LIVES if status == 0 else FOUND

        return work

    yield from statuses(((index, attempt(mutant)) for index, mutant in mutants), workers)


def results(
    mutants: Sequence[Mutant], tests: Sequence[str], own: dict[str, str], workers: int
) -> Iterator[tuple[Mutant, int]]:
    """Yields every mutant with FOUND, ENDLESS or LIVES, as they come to an end.

    Args:
        mutants: to try.
        tests: files and folders of tests.
        own: the test file of a module, by the module's path.
        workers: processes at a time.

    Raises:
        SystemExit: a test fails without any mutant.
    """
    late = []
    for index, status in _in_functions(mutants, tests, own, workers):
        if status == NOT_TAKEN:
            late.append((index, mutants[index]))
        else:
            yield mutants[index], status
    for index, status in _at_import(late, tests, own, workers):
        yield mutants[index], status
