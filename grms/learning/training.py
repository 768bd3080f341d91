"""The loop of a training run: ask, evaluate, tell, stop."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grms.learning.checkpoint import Best, Checkpoint, Snapshot
from grms.learning.evolution.evaluation import Evaluation, FitnessFunction
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import Strategy
from grms.learning.evolution.termination import GenerationRecord, Termination
from lrms_sim.util.executors import Executor


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
