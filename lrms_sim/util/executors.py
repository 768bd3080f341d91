"""Evaluation of a generation by threads, processes, or a cluster.

Genomes are evaluated by a fitness; a study evaluates the cases of a sweep in the same way, by a
function of a case and a bound that it ignores.

An executor is a context manager with one method. Values come back in the order of the genomes and
do not depend on kind and number of workers. Ctrl-C during an evaluation leaves neither processes
nor work behind. `Workers` are options of commands too; what is slow to import is imported where it is needed.
"""

import math
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import click

from lrms_sim.util.errors import HanseError
from lrms_sim.util.option_fields import option, taken

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection

_Case = TypeVar("_Case")
_Found = TypeVar("_Found")
Task = Callable[[_Case, float], _Found]
"""What evaluates one case: a fitness with a genome, or a study's replay."""

WORKERS_MAX = 10_000

BATCHES_PER_WORKER = 4
"""Batches of a generation for each worker process: few enough to keep sending cheap, enough to keep
all workers busy until the end.
"""


DASK_TRIES = 5
"""Attempts to evaluate a generation on a dask cluster whose workers disappear with their tasks, as
batch jobs do at their time limit.
"""

DASK_LOGGERS = ("distributed.client", "distributed.comm", "distributed.core", "distributed.utils")
"""Silenced: they log tracebacks of errors reported as `ExecutorError`."""


class ExecutorError(HanseError, RuntimeError):
    """Workers that cannot be reached, or that died; the text says what, and a remedy."""


class Executor(ABC):
    """What evaluates many genomes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self.close(at_once=error is not None)

    @abstractmethod
    def close(self, *, at_once: bool = False) -> None:
        """Ends all workers that it has started; with `at_once` without waiting for their tasks."""

    @abstractmethod
    def evaluate(
        self, fitness: Task[_Case, _Found], genomes: Sequence[_Case], bound: float = math.inf
    ) -> list[_Found]:
        """Returns the result of each genome, in order.

        `fitness` is thread-safe, and can be pickled for other processes. It is sent to each worker
        once, as long as calls come with the same one. Above `bound` the exact value does not
        matter.
        """


def default_workers() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


class ThreadExecutor(Executor):
    """Threads of this process, by default one per processor; the replay kernel releases the GIL."""

    def __init__(self, workers: int | None = None) -> None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # see the module's docstring

        self.workers = check_workers(workers)
        self._pool = ThreadPoolExecutor(self.workers, "evaluation")

    def close(self, *, at_once: bool = False) -> None:
        """Ends all workers that it has started."""
        del at_once  # the kernel does not look up in the middle of a replay
        self._pool.shutdown(wait=True, cancel_futures=True)

    def evaluate(
        self, fitness: Task[_Case, _Found], genomes: Sequence[_Case], bound: float = math.inf
    ) -> list[_Found]:
        """Returns what came of each genome, in their order."""
        # An interrupted `map` cancels what has not begun.
        return list(self._pool.map(partial(_evaluate, fitness, bound), genomes))


class ProcessExecutor(Executor):
    """Processes of this machine, by default one per processor, for fitness that holds the GIL."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = check_workers(workers)
        self._pool: ProcessPoolExecutor | None = None
        self._ends: tuple[Connection, ...] = ()
        self._fitness: Task[Any, Any] | None = None

    def close(self, *, at_once: bool = False) -> None:
        """Ends all workers that it has started."""
        if at_once and self._ends:
            self._ends[1].close()
        self._close()

    def evaluate(
        self, fitness: Task[_Case, _Found], genomes: Sequence[_Case], bound: float = math.inf
    ) -> list[_Found]:
        """Returns the result of each genome, in order; `ExecutorError` if a process died."""
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415  # see the module's docstring

        if not genomes:
            return []
        if self._pool is None or fitness is not self._fitness:
            self._open(fitness)
        assert self._pool is not None
        size = _batch_size(len(genomes), self.workers)
        try:
            with _interrupts_blocked():
                # Handing over tasks starts processes.
                found = self._pool.map(partial(_evaluate_here, bound), genomes, chunksize=size)
            return list(found)
        except BrokenProcessPool as error:
            raise ExecutorError(
                "an evaluating process ended unexpectedly, perhaps for want of memory; use fewer "
                "workers, or threads"
            ) from error

    def _open(self, fitness: Task[Any, Any]) -> None:
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  # see the module's docstring
        from multiprocessing import get_context  # noqa: PLC0415  # same

        self._close()
        # Not by forking: a fork copies locks that other threads hold.
        context = get_context("spawn")
        self._fitness = fitness
        # Only this process has the second end, so it closes, at the latest, when this one ends.
        self._ends = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(
            self.workers, context, initializer=_begin, initargs=(fitness, self._ends[0])
        )

    def _close(self) -> None:
        pool, self._pool, self._fitness = self._pool, None, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        ends, self._ends = self._ends, ()
        for end in ends:
            end.close()


class DaskExecutor(Executor):
    """Workers of `dask.distributed`: a scheduler's, or a cluster on this machine.

    On Slurm, `dask_jobqueue.SLURMCluster` starts workers as batch jobs and has a scheduler's
    address; docs/training.md shows it.

    Args:
        address: of a scheduler, such as `tcp://10.0.0.1:8786`; by default a cluster is started on
            this machine and ended with the executor.
        workers: of such a cluster; default one per processor. Ignored with an address.
        processes: whether that cluster's workers are processes or threads.
        patience_s: how long to wait for the scheduler, and then for its first worker, seconds.

    Raises:
        ExecutorError: `dask.distributed` is not installed, there is no scheduler at that address,
            or no cluster can be started.
        ValueError: the number of workers is out of its bounds.
    """

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        *,
        processes: bool = True,
        patience_s: float = 60.0,
    ) -> None:
        import logging  # noqa: PLC0415  # see the module's docstring

        distributed = _distributed()
        for name in DASK_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._patience_s = patience_s
        self._client: Any = None
        self._cluster: Any = None
        self._scattered: Any = None
        self._fitness: Task[Any, Any] | None = None
        count = check_workers(workers)
        # Processes and threads of the cluster inherit that Ctrl-C is not for them.
        with _interrupts_blocked():
            if address is None:
                self._cluster = distributed.LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,
                    processes=processes,
                    dashboard_address=None,
                )
            try:
                self._client = distributed.Client(self._cluster or address, timeout=patience_s)
            except (OSError, ValueError) as error:
                self._close_cluster()
                raise ExecutorError(f"there is no dask scheduler at {address}: {error}") from error
            except BaseException:
                self._close_cluster()
                raise

    def close(self, *, at_once: bool = False) -> None:
        """Ends all workers that it has started."""
        del at_once  # what was asked is cancelled already
        self._scattered = None
        self._client.close()
        self._close_cluster()

    def evaluate(
        self, fitness: Task[_Case, _Found], genomes: Sequence[_Case], bound: float = math.inf
    ) -> list[_Found]:
        """Returns the result of each genome, in order.

        Raises:
            ExecutorError: there is no worker, workers died again and again, or the scheduler is
                gone.
        """
        from concurrent.futures import CancelledError  # noqa: PLC0415  # see the module's docstring

        if not genomes:
            return []
        for _ in range(DASK_TRIES):
            try:
                return self._evaluate(fitness, genomes, bound)
            except TimeoutError as error:
                raise ExecutorError(
                    f"the dask scheduler has had no worker for {self._patience_s:g} s"
                ) from error
            except _distributed().KilledWorker as error:
                raise ExecutorError(f"dask workers died again and again: {error}") from error
            except (CancelledError, OSError) as error:
                if self._client.status != "running":
                    raise ExecutorError(
                        "the connection to the dask scheduler is lost; start it again and go on "
                        "with --resume"
                    ) from error
                # The last worker that had the fitness is gone: the next ones are given it anew.
                self._scattered = self._fitness = None
        raise ExecutorError("dask workers went away again and again; see their logs")

    def _evaluate(
        self, fitness: Task[_Case, _Found], genomes: Sequence[_Case], bound: float
    ) -> list[_Found]:
        if fitness is not self._fitness:
            self._client.wait_for_workers(1, timeout=self._patience_s)
            self._scattered = self._client.scatter(fitness, broadcast=True, hash=False)
            self._fitness = fitness
        size = _batch_size(len(genomes), len(self._client.nthreads()) or 1)
        batches = [list(genomes[i : i + size]) for i in range(0, len(genomes), size)]
        futures = self._client.map(
            _evaluate_batch, batches, fitness=self._scattered, bound=bound, pure=False
        )
        try:
            parts = self._client.gather(futures)
        except BaseException:
            self._client.cancel(futures)
            raise
        return [evaluation for part in parts for evaluation in part]

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close()


def _distributed() -> Any:
    # Optional, untyped, and takes half a second.
    try:
        return import_module("distributed")
    except ImportError as error:
        raise ExecutorError(
            "dask.distributed is not installed; install it with: pip install 'hanse[cluster]'"
        ) from error


def check_workers(workers: int | None) -> int:
    """Returns a number of workers, by default that of processors.

    Raises:
        ValueError: the number is out of its bounds.
    """
    count = default_workers() if workers is None else workers
    if not 1 <= count <= WORKERS_MAX:
        raise ValueError(f"{count} workers; between 1 and {WORKERS_MAX} are possible")
    return count


ExecutorName = Literal["threads", "processes", "dask"]


@dataclass(frozen=True, slots=True)
class Workers:
    """Executor and number of workers.

    Attributes:
        count: default one per processor.
        scheduler: address of a dask scheduler; default a cluster on this machine.
    """

    executor: ExecutorName = option("Who evaluates; the result is the same.", default="threads")
    count: int | None = option(
        "How many.  [default: one for each processor]", default=None, flag="--workers"
    )
    scheduler: str | None = option(
        "Of a dask scheduler, tcp://HOST:PORT.", default=None, metavar="ADDRESS"
    )

    def __post_init__(self) -> None:
        _ = self.number

    @property
    def number(self) -> int:
        """Number of workers; a guess for an existing cluster."""
        return check_workers(self.count)

    def started(self) -> Executor:
        """Returns the workers as a context that ends them; `ExecutorError` if a cluster is unreachable."""
        if self.executor == "processes":
            return ProcessExecutor(self.count)
        if self.executor == "dask":
            return DaskExecutor(self.scheduler, self.count)
        return ThreadExecutor(self.count)


def workers_of(chosen: dict[str, Any]) -> Workers:
    """Removes the workers' options from `chosen`, and returns the workers.

    Raises:
        click.UsageError: there is a scheduler for another executor, or a number is out of its
            bounds.
    """
    if chosen["scheduler"] is not None and chosen["executor"] != "dask":
        raise click.UsageError("--scheduler goes with --executor dask")
    try:
        return Workers(**taken(Workers, chosen))
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _batch_size(genomes: int, workers: int) -> int:
    return max(1, genomes // (BATCHES_PER_WORKER * workers))


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Blocks Ctrl-C permanently for processes and threads that are started in the block.

    In this thread it takes effect after the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _evaluate(fitness: Task[_Case, _Found], bound: float, genome: _Case) -> _Found:
    return fitness(genome, bound)


# --- in another process --------------------------------------------------------------------------

_here: list[Task[Any, Any]] = []
"""The fitness that this process was started with."""


def _begin(fitness: Task[Any, Any], parents_life: "Connection") -> None:
    _here[:] = [fitness]
    threading.Thread(target=_end_with_parent, args=(parents_life,), daemon=True).start()


def _end_with_parent(parents_life: "Connection") -> None:
    from multiprocessing.connection import wait  # noqa: PLC0415  # see the module's docstring

    # A parent that is killed tells nobody, and the pool's own pipes stay open in all its workers.
    wait([parents_life])
    os._exit(1)


def _evaluate_here(bound: float, genome: Any) -> Any:
    return _here[0](genome, bound)


def _evaluate_batch(
    genomes: Sequence[_Case], fitness: Task[_Case, _Found], bound: float
) -> list[_Found]:
    return [fitness(genome, bound) for genome in genomes]
