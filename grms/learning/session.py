"""A training run for a user: folder, checkpoint, limits, workers, progress, Ctrl-C.

The command brings the strategy and the fitness.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from grms.learning.checkpoint import Checkpoint, CheckpointError, Snapshot, is_unfinished
from grms.learning.display import Pace, shown
from grms.learning.evolution.catalog import strategy_from_state
from grms.learning.evolution.evaluation import FitnessFunction
from grms.learning.evolution.strategies import Strategy
from grms.learning.limits import Limits
from grms.learning.training import TrainingResult, train
from lrms_sim.util.workers import Workers

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
    if resume and not path.exists():
        raise CheckpointError(f"{path}: is not there; nothing to resume")
    if not resume and is_unfinished(path):
        raise CheckpointError(
            f"{path}: a training run was interrupted; go on with --resume, or remove that file, or "
            f"name another folder with --output"
        )


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
        description: data and settings of the run, plain values, for its checkpoint.
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
        return Checkpoint(self.folder / CHECKPOINT, self.description)

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
