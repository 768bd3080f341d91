"""Who evaluates makes no difference, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from grms.learning.evolution.genes import Genome, uniform_genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.strategies import Evaluation
from lrms_sim.util.executors import (
    WORKERS_MAX,
    DaskExecutor,
    Executor,
    ExecutorError,
    ProcessExecutor,
    ThreadExecutor,
    check_workers,
    default_workers,
)
from tests.training_grids import no_genome, rule_space, small_fitness

ROOT = Path(__file__).parents[3]


def individuals(count: int) -> list[Genome]:
    rng = generator(1)
    return [uniform_genome(rng, rule_space(3)) for _ in range(count)]


def children() -> dict[int, str]:
    """Returns the processes that this one has started and that are still there, by their id."""
    found = {}
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found[child.pid] = " ".join(child.cmdline())
    return found


@contextmanager
def nothing_left() -> Iterator[None]:
    """Asserts that the block leaves no Python, and no thread that evaluates."""
    before = children()
    yield
    # The browser of other tests starts what it likes. Python's own helper that cleans up after
    # spawned processes stays until the end.
    new = [
        name
        for pid, name in children().items()
        if pid not in before and name.startswith(sys.executable)
    ]
    assert [name for name in new if "resource_tracker" not in name] == []
    assert [one.name for one in threading.enumerate() if "evaluation" in one.name] == []


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_threads_find_what_one_finds(workers: int) -> None:
    """In the order of the genomes, whatever the number of threads."""
    fitness, genomes = small_fitness(), individuals(40)
    expected = [fitness(genome) for genome in genomes]
    with nothing_left(), ThreadExecutor(workers) as executor:
        assert executor.evaluate(fitness, genomes) == expected
        assert executor.evaluate(fitness, genomes[:1]) == expected[:1]
        assert executor.evaluate(fitness, []) == []


def test_processes_find_what_one_finds() -> None:
    """Also when the fitness changes in between, for which new processes are started."""
    fitness, other, genomes = small_fitness(), small_fitness(2, "no_loser"), individuals(30)
    with nothing_left(), ProcessExecutor(2) as executor:
        assert executor.evaluate(fitness, []) == []
        assert executor.evaluate(fitness, genomes) == [fitness(genome) for genome in genomes]
        assert executor.evaluate(fitness, genomes[:3]) == [fitness(one) for one in genomes[:3]]
        assert executor.evaluate(other, genomes) == [other(genome) for genome in genomes]


# Warnings of a library's own clean-up are not ours; what we have to close is asserted.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_dask_cluster_of_two_workers_finds_what_one_finds() -> None:
    """Two processes that `dask.distributed` starts and ends; a change of fitness reaches them."""
    fitness, other, genomes = small_fitness(), small_fitness(2), individuals(30)
    before = children()
    with nothing_left(), DaskExecutor(workers=2) as executor:
        assert executor.evaluate(fitness, []) == []
        assert executor.evaluate(fitness, genomes) == [fitness(genome) for genome in genomes]
        assert executor.evaluate(other, genomes) == [other(genome) for genome in genomes]
        with DaskExecutor(executor._cluster.scheduler_address) as guest:
            assert guest.evaluate(fitness, genomes) == [fitness(genome) for genome in genomes]
        # Where `setproctitle` is installed dask gives them a title of its own.
        workers = [
            pid
            for pid, name in children().items()
            if pid not in before
            and ("spawn_main" in name or name.lower().startswith("dask worker"))
        ]
        assert len(workers) == 2
        for pid in workers:
            psutil.Process(pid).kill()
        # Whatever they were given is gone with them; their successors are given it anew.
        assert executor.evaluate(other, genomes) == [other(genome) for genome in genomes]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_scheduler_that_is_not_there_is_named() -> None:
    """An address where nobody listens, and one that is none."""
    with nothing_left():
        for address in ("tcp://127.0.0.1:9", "nonsense"):
            with pytest.raises(ExecutorError, match=f"no dask scheduler at {address}"):
                DaskExecutor(address, patience_s=0.3)


def test_dask_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExecutorError, match=r"pip install 'hanse\[cluster\]'"):
        DaskExecutor()


def fails(genome: Genome, _: float) -> Evaluation:
    raise ArithmeticError(f"{len(genome.binary)} rules")


def ends_its_process(_: Genome, _bound: float) -> Evaluation:
    os._exit(3)


@pytest.mark.parametrize("make", [ThreadExecutor, ProcessExecutor])
def test_an_error_of_the_fitness_comes_through(make: Callable[[int], Executor]) -> None:
    """As it was raised, and the executor can be used again."""
    fitness, genomes = small_fitness(), individuals(5)
    with nothing_left(), make(2) as executor:
        with pytest.raises(ArithmeticError, match="2 rules"):
            executor.evaluate(fails, [no_genome(2)] * 5)
        assert executor.evaluate(fitness, genomes) == [fitness(genome) for genome in genomes]


def test_a_process_that_dies_is_an_error_with_advice() -> None:
    """Not a hang, and not a traceback of the library."""
    with (
        nothing_left(),
        ProcessExecutor(2) as executor,
        pytest.raises(ExecutorError, match=r"ended unexpectedly.*fewer workers"),
    ):
        executor.evaluate(ends_its_process, [no_genome()] * 5)


PARENT = """
import os, sys, time
from pathlib import Path
from lrms_sim.util.executors import ProcessExecutor
from tests.training_grids import no_genome
from tests.grms.learning.sleeping import sleep_long
if __name__ == "__main__":
    with ProcessExecutor(2) as executor:
        executor.evaluate(sleep_long, [no_genome()] * 20)
"""


@pytest.mark.parametrize(
    ("killer", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_workers_end_with_the_process_that_started_them(
    tmp_path: Path, killer: signal.Signals, status: int
) -> None:
    """Ctrl-C, or a kill that nobody can catch, in the middle of an evaluation: nobody stays."""
    program = tmp_path / "parent.py"
    # Shells have background jobs ignore Ctrl-C, and children inherit that.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program.write_text(listening + PARENT)
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])
    with subprocess.Popen(  # noqa: S603  # this very interpreter
        [sys.executable, str(program)],
        env=os.environ | {"PYTHONPATH": path, "SLEEPING_FOLDER": str(tmp_path)},
        stderr=subprocess.PIPE,
    ) as parent:
        _wait_until(lambda: len(list(tmp_path.glob("worker-*"))) == 2)
        workers = psutil.Process(parent.pid).children(recursive=True)
        assert len(workers) >= 2
        parent.send_signal(killer)
        error = parent.communicate(timeout=300)[1].decode()
    assert parent.returncode in {status, 1, 130}
    if killer == signal.SIGINT:
        assert "KeyboardInterrupt" in error
    _gone, alive = psutil.wait_procs(workers, timeout=300)
    assert alive == []


def _wait_until(true: Callable[[], bool], patience_s: float = 60.0) -> None:
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("workers", [0, -1, WORKERS_MAX + 1])
def test_numbers_of_workers_that_cannot_be(workers: int) -> None:
    """The text has the number and the bounds."""
    for make in (check_workers, ThreadExecutor, ProcessExecutor):
        with pytest.raises(ValueError, match=f"{workers} workers; between 1 and {WORKERS_MAX}"):
            make(workers)
    with pytest.raises(ValueError, match=f"{workers} workers"):
        DaskExecutor(workers=workers)


def test_as_many_workers_as_processors_by_default() -> None:
    """Those that this process may use, which a cluster's batch system restricts."""
    assert check_workers(None) == default_workers() == len(os.sched_getaffinity(0))
