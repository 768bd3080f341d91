"""A training run: the loop of ask, evaluate, tell and stop, and for a user its folder, progress and Ctrl-C.

The command brings the strategy and the fitness.
"""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from grms.learning.checkpoint import Best, Checkpoint, CheckpointError, Snapshot, is_unfinished
from grms.learning.evolution.catalog import strategy_from_state
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Evaluation, FitnessFunction, Strategy
from grms.learning.evolution.termination import GenerationRecord, Limits, Termination
from lrms_sim.cli.running import EXIT_INTERRUPTED
from lrms_sim.util.executors import Executor, Workers
from lrms_sim.util.version import __version__


@dataclass(frozen=True, slots=True, eq=False)
class TrainingResult:
    """Result of a training run.

    Attributes:
        best: the best individual, with its generation; of equal ones the earliest.
        reason: why the run stopped, for display.
    """

    best: Best
    history: tuple[GenerationRecord, ...]
    reason: str

    @property
    def evaluations(self) -> int:
        """Genomes evaluated."""
        return self.history[-1].evaluations

    @property
    def elapsed_s(self) -> float:
        """Seconds of training, of all sessions where the run was resumed."""
        return self.history[-1].elapsed_s

    @property
    def noted(self) -> dict[str, Any]:
        """How much it took and why it stopped, plain values."""
        return {
            "generations": self.history[-1].generation,
            "evaluations": self.evaluations,
            "stopped": self.reason,
        }

    def facts(self, unit: str, value: str = "fitness") -> list[tuple[str, object]]:
        """Returns the best value, named `value` in a `unit`, and its generation, for a page."""
        found = f"{self.best.generation} of {self.history[-1].generation}"
        best = f"{self.best.evaluation.value:,.4f} ({unit})"
        return [(value, best), ("found in generation", found)]


def train(
    strategy: Strategy,
    fitness: FitnessFunction,
    executor: Executor,
    termination: Termination,
    *,
    progress: Callable[[GenerationRecord], None] | None = None,
    checkpoint: Checkpoint | None = None,
    earlier: Snapshot | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> TrainingResult:
    """Trains until the termination says stop.

    Everything but the seconds in the history depends on strategy and fitness alone: a run that is
    interrupted and resumed gives the same results as one without a break, bit for bit.

    Args:
        strategy: new, or the one of `earlier`.
        fitness: evaluates a genome.
        executor: evaluates generations.
        termination: asked after each generation; of a resumed run, before the first.
        progress: called after each generation.
        checkpoint: where to keep the run; an interruption (Ctrl-C or any error) is written too.
        earlier: the snapshot to resume; `strategy_from_state` makes the strategy of it.
        clock: seconds from any origin.

    Raises:
        CheckpointError: the checkpoint cannot be written.
        KeyboardInterrupt: Ctrl-C, once the checkpoint is written.
    """
    run = _Run(strategy, earlier, clock)
    written_s = clock()
    try:
        while not (reason := run.reason(termination)):
            genomes = strategy.ask()
            evaluations = executor.evaluate(fitness, genomes, strategy.bound)
            record = run.tell(genomes, evaluations)
            if checkpoint is not None and clock() - written_s >= checkpoint.interval_s:
                checkpoint.write(run.snapshot)
                written_s = clock()
            if progress is not None:
                progress(record)
    except BaseException:
        if checkpoint is not None and run.history:
            checkpoint.write(run.snapshot)
        raise
    if checkpoint is not None:
        checkpoint.write(run.ended(reason))
    assert run.best is not None
    return TrainingResult(run.best, run.snapshot.history, reason)


class _Run:
    """State of `train` between two generations."""

    def __init__(
        self, strategy: Strategy, earlier: Snapshot | None, clock: Callable[[], float]
    ) -> None:
        self._strategy = strategy
        self._clock = clock
        self.snapshot = earlier or Snapshot(strategy.to_state(), (), None)
        self._begin_s = clock() - (self.history[-1].elapsed_s if self.history else 0.0)

    @property
    def history(self) -> tuple[GenerationRecord, ...]:
        return self.snapshot.history

    @property
    def best(self) -> Best | None:
        return self.snapshot.best

    def reason(self, termination: Termination) -> str | None:
        """Returns why to stop now; nothing for going on."""
        if self.best is None:
            return None
        return self._strategy.exhausted or termination.reason(self.history)

    def tell(
        self, genomes: Sequence[Genome], evaluations: Sequence[Evaluation]
    ) -> GenerationRecord:
        values = [evaluation.value for evaluation in evaluations]
        self._strategy.tell(values, [evaluation.figures for evaluation in evaluations])
        first = min(range(len(values)), key=values.__getitem__)
        best = self.best
        if best is None or values[first] < best.evaluation.value:
            best = Best(genomes[first], evaluations[first], self._strategy.generation)
        record = GenerationRecord(
            generation=self._strategy.generation,
            evaluations=len(values) + (self.history[-1].evaluations if self.history else 0),
            best=best.evaluation.value,
            mean=float(np.mean(values)),
            spread=float(np.std(values)),
            elapsed_s=self._clock() - self._begin_s,
        )
        # One assignment: an interruption finds the old snapshot or the new one.
        self.snapshot = Snapshot(self._strategy.to_state(), (*self.history, record), best)
        return record

    def ended(self, reason: str) -> Snapshot:
        return Snapshot(self.snapshot.strategy, self.history, self.best, reason)


LINE_INTERVAL_S = 1.0
"""Least time between two plain lines, seconds; the first and the last always appear."""

Show = Callable[[GenerationRecord], None]


class Pace:
    """Speed and remaining time of a session.

    `generations` and `seconds` are the limits, if any; `earlier` is the last record of the previous
    session of a resumed run.
    """

    def __init__(
        self,
        generations: int | None,
        seconds: float | None,
        earlier: GenerationRecord | None = None,
    ) -> None:
        self._generations = generations
        self._seconds = seconds
        self._begin = earlier or GenerationRecord(0, 0, 0.0, 0.0, 0.0, 0.0)

    def evaluations_per_s(self, record: GenerationRecord) -> float:
        """Returns evaluations per second in this session."""
        elapsed = record.elapsed_s - self._begin.elapsed_s
        return (record.evaluations - self._begin.evaluations) / elapsed if elapsed > 0 else 0.0

    def left_s(self, record: GenerationRecord) -> float | None:
        """Returns the seconds until a limit stops the run; `None` if unknown."""
        left = []
        done = record.generation - self._begin.generation
        if self._generations is not None and done > 0:
            each = (record.elapsed_s - self._begin.elapsed_s) / done
            left.append(max(0, self._generations - record.generation) * each)
        if self._seconds is not None:
            left.append(max(0.0, self._seconds - record.elapsed_s))
        return min(left) if left else None

    def words(self, record: GenerationRecord) -> tuple[str, str]:
        """Returns how far a run is, and what it has found at which speed."""
        limit = "" if self._generations is None else f"/{self._generations}"
        left = self.left_s(record)
        far = f"generation {record.generation}{limit}"
        found = (
            f"best {value_words(record.best)}  mean {value_words(record.mean)}  "
            f"{self.evaluations_per_s(record):,.0f} evaluations/s"
        )
        return far if left is None else f"{far}  {duration(left)} left", found


def value_words(value: float) -> str:
    """Returns a fitness value as text: seconds without decimals, ratios with."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


def duration(seconds: float) -> str:
    """Returns seconds as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def shown(
    pace: Pace,
    generations: int | None,
    console: Console,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Show]:
    """Yields a function that shows each generation."""
    if console.is_terminal:
        # Two lines beside the bar: one would not fit on 80 columns.
        columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("the first generation", total=generations)

            def update(record: GenerationRecord) -> None:
                description = "\n".join(pace.words(record))
                progress.update(task, completed=record.generation, description=description)

            yield update
        return
    last: list[float] = []
    pending: list[str] = []

    def write(record: GenerationRecord) -> None:
        pending[:] = ["  ".join(pace.words(record))]
        now = clock()
        if not last or now - last[0] >= LINE_INTERVAL_S:
            last[:] = [now]
            console.print(pending.pop(), markup=False, highlight=False, soft_wrap=True)

    try:
        yield write
    finally:
        for line in pending:
            console.print(line, markup=False, highlight=False, soft_wrap=True)


CHECKPOINT = "checkpoint.json"


class TrainingInterrupted(Exception):  # noqa: N818  # it is no error
    """Ctrl-C, after everything is saved; `resumable` if there is a checkpoint."""

    def __init__(self, text: str, *, resumable: bool) -> None:
        self.resumable = resumable
        super().__init__(text)


def check_folder(folder: Path, *, resume: bool) -> None:
    """Refuses a folder in which a run cannot begin or be resumed.

    Raises:
        CheckpointError: a file is in the way, there is nothing to resume, or something would be
            lost.
    """
    path = folder / CHECKPOINT
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{folder}: is a file; name a folder with --output")
    begun = path.exists()
    if resume and not begun:
        raise CheckpointError(f"{path}: is not there; nothing to resume")
    if begun and not resume and is_unfinished(path):
        raise CheckpointError(
            f"{path}: a training run was interrupted; go on with --resume, or remove that file, or "
            f"name another folder with --output"
        )


def program(commit: str | None = None) -> dict[str, str]:
    """Returns the program's version, and the commit of its source if known."""
    known = {"program": f"hanse {__version__}"}
    return known if commit is None else known | {"commit": commit}


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(
            f"{folder}: the folder cannot be made: {error.strerror or error}; name another one "
            f"with --output"
        ) from error


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a training run.

    Attributes:
        folder: for all files of the run.
        description: data and settings of the run, plain values, for its checkpoint, which adds the program.
        resume: resume from the checkpoint in the folder.
    """

    folder: Path
    description: Mapping[str, Any]
    limits: Limits = field(default_factory=Limits)
    workers: Workers = field(default_factory=Workers)
    resume: bool = False

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint in the folder."""
        return Checkpoint(self.folder / CHECKPOINT, {**program(), **self.description})

    def run(self, strategy: Strategy, fitness: FitnessFunction, console: Console) -> TrainingResult:
        """Trains until a limit is reached.

        A resumed run uses the checkpoint's strategy, a new one `strategy`, which must not have
        begun.

        Raises:
            TrainingInterrupted: Ctrl-C; a checkpoint is there if a generation was done.
            CheckpointError: a checkpoint cannot be read or written, or is of another run.
            ExecutorError: the workers cannot be reached, or died.
        """
        earlier: Snapshot | None = None
        if self.resume:
            earlier = self.checkpoint.read()
            strategy = _resumed(self.checkpoint.path, earlier)
        generations = self.limits.generations_max
        last = earlier.history[-1] if earlier and earlier.history else None
        pace = Pace(generations, self.limits.seconds, last)
        try:
            with self.workers.started() as executor, shown(pace, generations, console) as show:
                _make_folder(self.folder)
                if earlier is None:
                    # One of a finished run; after an early Ctrl-C it would be taken for this run's.
                    self.checkpoint.path.unlink(missing_ok=True)
                return train(
                    strategy,
                    fitness,
                    executor,
                    self.limits.termination(),
                    progress=show,
                    checkpoint=self.checkpoint,
                    earlier=earlier,
                )
        except KeyboardInterrupt as error:
            raise self._interruption() from error

    def _interruption(self) -> TrainingInterrupted:
        # What the file says counts: Ctrl-C may come anywhere, between two generations too.
        if not self.checkpoint.path.exists():
            text = "interrupted before the first generation was done: nothing to resume"
            return TrainingInterrupted(text, resumable=False)
        history = self.checkpoint.read().history
        text = (
            f"interrupted after generation {history[-1].generation}; the checkpoint is "
            f"{self.checkpoint.path}"
        )
        return TrainingInterrupted(text, resumable=True)


def _resumed(path: Path, earlier: Snapshot) -> Strategy:
    try:
        return strategy_from_state(earlier.strategy)
    except (KeyError, TypeError, ValueError) as error:
        reason = error if isinstance(error, ValueError) else f"is damaged: {error!r}"
        raise CheckpointError(f"{path}: {reason}") from error


def command_to_resume(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments that go on with a run, from those that began it."""
    return [*arguments, *(() if "--resume" in arguments else ("--resume",))]


def end_interrupted(interruption: TrainingInterrupted) -> NoReturn:
    """Ends a command after Ctrl-C, and says how to resume."""
    context = click.get_current_context()
    click.echo(f"\n{interruption}", err=True)
    if interruption.resumable:
        again = shlex.join(["grms", *command_to_resume(context.obj or ())])
        click.echo(f"go on with: {again}", err=True)
    context.exit(EXIT_INTERRUPTED)
