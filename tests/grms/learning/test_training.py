"""The loop: what it finds, and that an interruption changes nothing."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from grms.learning.checkpoint import Checkpoint, CheckpointError
from grms.learning.evolution.catalog import STRATEGIES, new_strategy, strategy_from_state
from grms.learning.evolution.class_search import ClassSearch
from grms.learning.evolution.evaluation import Evaluation, FitnessFunction
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.strategies import StrategySettings
from grms.learning.evolution.termination import (
    AnyOf,
    EvaluationLimit,
    GenerationLimit,
    GenerationRecord,
    TargetValue,
    TimeLimit,
)
from grms.learning.training import TrainingResult, train
from lrms_sim.util.executors import ProcessExecutor, ThreadExecutor
from tests.training_grids import (
    grid_of_known_optimum,
    rule_space,
    same_genome,
    small_fitness,
    sphere,
)

SPACE = rule_space(3)
SETTINGS = StrategySettings(parents=4, offspring=12)


def run(
    name: str,
    generations: int,
    checkpoint: Checkpoint | None = None,
    *,
    resume: bool = False,
    fitness: FitnessFunction | None = None,
) -> TrainingResult:
    earlier = checkpoint.read() if checkpoint is not None and resume else None
    strategy = (
        new_strategy(name, SPACE, SETTINGS, 5)
        if earlier is None
        else strategy_from_state(earlier.strategy)
    )
    with ThreadExecutor(1) as executor:
        return train(
            strategy,
            fitness or small_fitness(),
            executor,
            GenerationLimit(generations),
            checkpoint=checkpoint,
            earlier=earlier,
        )


def but_seconds(history: Sequence[GenerationRecord]) -> list[tuple[float, ...]]:
    return [(one.generation, one.evaluations, one.best, one.mean, one.spread) for one in history]


def assert_same(one: TrainingResult, other: TrainingResult) -> None:
    """Asserts that two runs found the same in the same way; seconds may differ."""
    assert but_seconds(one.history) == but_seconds(other.history)
    assert same_genome(one.best.genome, other.best.genome)
    assert one.best.evaluation == other.best.evaluation
    assert one.best.generation == other.best.generation
    assert one.reason == other.reason


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_run_that_is_resumed_finds_what_one_without_a_break_does(
    tmp_path: Path, name: str
) -> None:
    """After every single generation anew, bit for bit; only the seconds differ."""
    whole = run(name, 6)
    checkpoint = Checkpoint(tmp_path / "c.json", {})
    part = run(name, 1, checkpoint)
    for generations in range(2, 7):
        part = run(name, generations, checkpoint, resume=True)
        assert part.elapsed_s > 0
    assert_same(part, whole)
    assert checkpoint.read().finished == whole.reason == "generation 6 of 6 is done"
    # And once more: there is nothing left to do.
    assert_same(run(name, 6, checkpoint, resume=True), whole)


class _Interrupted:
    """Raises in the middle of an evaluation, once."""

    def __init__(self, after: int, error: type[BaseException]) -> None:
        self._left = after
        self._error = error

    def __call__(self, genome: Genome, bound: float) -> Evaluation:
        self._left -= 1
        if self._left == 0:
            raise self._error
        return sphere(genome, bound)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("after", [13, 30, 41])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ArithmeticError])
def test_an_interruption_anywhere_loses_nothing_but_its_generation(
    tmp_path: Path, name: str, after: int, error: type[BaseException]
) -> None:
    """The checkpoint has all generations that were done; going on gives the very same result."""
    whole = run(name, 5, fitness=sphere)
    checkpoint = Checkpoint(tmp_path / "c.json", {}, interval_s=1e9)
    with pytest.raises(error):
        run(name, 5, checkpoint, fitness=_Interrupted(after, error))
    snapshot = checkpoint.read()
    assert snapshot.finished == ""
    assert 0 < snapshot.history[-1].evaluations < after
    assert_same(run(name, 5, checkpoint, resume=True, fitness=sphere), whole)


def test_an_interruption_before_anything_is_done_leaves_no_checkpoint(tmp_path: Path) -> None:
    """There is nothing to go on from."""
    checkpoint = Checkpoint(tmp_path / "c.json", {})
    with pytest.raises(KeyboardInterrupt):
        run("paper", 5, checkpoint, fitness=_Interrupted(2, KeyboardInterrupt))
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_written_now_and_then(tmp_path: Path) -> None:
    """Once the interval is over, and in the end; a kill in between costs no more than that."""
    ticks = iter(range(1000))
    checkpoint = Checkpoint(tmp_path / "c.json", {}, interval_s=5.0)
    seen: list[int] = []

    def look(_: GenerationRecord) -> None:
        seen.append(len(checkpoint.read().history) if checkpoint.path.exists() else 0)

    with ThreadExecutor(1) as executor:
        train(
            new_strategy("paper", SPACE, SETTINGS, 1),
            sphere,
            executor,
            GenerationLimit(9),
            progress=look,
            checkpoint=checkpoint,
            clock=lambda: float(next(ticks)),
        )
    assert seen[0] == 0
    assert 2 <= len(set(seen)) <= 6
    assert seen == sorted(seen)
    assert len(checkpoint.read().history) == 10


def test_workers_make_no_difference() -> None:
    """One, two or three threads, or two processes: the same run, bit for bit."""
    fitness = small_fitness(3)
    results = []
    for executor in (ThreadExecutor(1), ThreadExecutor(2), ThreadExecutor(3), ProcessExecutor(2)):
        with executor:
            strategy = new_strategy("self-adaptive", SPACE, SETTINGS, 2)
            results.append(train(strategy, fitness, executor, GenerationLimit(5)))
    for result in results[1:]:
        assert_same(result, results[0])


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_known_optimum_is_found(name: str, seed: int) -> None:
    """Keep narrow jobs and give wide ones away: every strategy gets there, and no further."""
    fitness, least = grid_of_known_optimum()
    settings = StrategySettings(parents=6, offspring=30)
    with ThreadExecutor(1) as executor:
        result = train(
            new_strategy(name, rule_space(4), settings, seed),
            fitness,
            executor,
            AnyOf((TargetValue(least * (1 + 1e-12)), EvaluationLimit(6000))),
        )
    assert result.reason.startswith("the target")
    assert result.best.evaluation.value == pytest.approx(least, rel=1e-12)
    assert all(record.best >= least * (1 - 1e-12) for record in result.history)


def test_the_history_says_what_happened() -> None:
    """Evaluations add up, the best never worsens, mean and spread are of the generation."""
    told: list[GenerationRecord] = []
    with ThreadExecutor(1) as executor:
        result = train(
            new_strategy("paper", SPACE, SETTINGS, 3),
            sphere,
            executor,
            GenerationLimit(20),
            progress=told.append,
        )
    assert tuple(told) == result.history
    assert [one.generation for one in told] == list(range(21))
    assert [one.evaluations for one in told] == [4 + 12 * number for number in range(21)]
    assert result.evaluations == 4 + 240
    best = [one.best for one in told]
    assert best == sorted(best, reverse=True)
    assert all(one.mean >= one.best and one.spread >= 0 for one in told)
    assert [one.elapsed_s for one in told] == sorted(one.elapsed_s for one in told)
    # The best came up in the generation that is named.
    assert best[result.best.generation] == result.best.evaluation.value == best[-1]
    assert all(value > best[-1] for value in best[: result.best.generation])


def test_seconds_go_on_where_they_stopped(tmp_path: Path) -> None:
    """A time limit counts the training of all sessions, not the night in between."""

    def seconds(start: float) -> Iterator[float]:
        while True:
            yield start
            start += 1.0

    checkpoint = Checkpoint(tmp_path / "c.json", {})
    elapsed = []
    for start, limit in ((0.0, 10.0), (1e6, 20.0)):
        clock = seconds(start)
        earlier = checkpoint.read() if start else None
        strategy = (
            strategy_from_state(earlier.strategy)
            if earlier
            else new_strategy("paper", SPACE, SETTINGS, 1)
        )
        with ThreadExecutor(1) as executor:
            result = train(
                strategy,
                sphere,
                executor,
                TimeLimit(limit),
                checkpoint=checkpoint,
                earlier=earlier,
                clock=lambda clock=clock: next(clock),  # type: ignore[misc]  # bound in the loop
            )
        elapsed.append(result.elapsed_s)
    assert 10 <= elapsed[0] < 15
    assert 20 <= elapsed[1] < 25


def test_a_checkpoint_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    """Nobody trains for hours to find that nothing was kept."""
    checkpoint = Checkpoint(tmp_path / "gone" / "c.json", {}, interval_s=0.0)
    with pytest.raises(CheckpointError, match="cannot be written"):
        run("paper", 1000, checkpoint, fitness=sphere)


def test_a_strategy_with_nothing_left_to_ask_ends_the_run() -> None:
    """Its word is the reason; a limit that comes first still counts."""

    def judge(genome: Genome, _: float) -> Evaluation:
        value = float(genome.integer.sum())
        return Evaluation(value, ((value,), (1.0,) * len(genome.integer)))

    choices = np.full(3, 4, np.int64)
    for limit, reason in ((9, "all 3 classes are done"), (2, "generation 2 of 2 is done")):
        search = ClassSearch(choices, np.full(3, 2, np.int64))
        with ThreadExecutor(2) as executor:
            result = train(search, judge, executor, GenerationLimit(limit))
        assert result.reason == reason
    assert result.best.genome.integer.tolist() == [0, 0, 2]
    assert result.evaluations == 1 + 3 + 3
