import io
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from grms.learning.checkpoint import Checkpoint, CheckpointError
from grms.learning.evolution.catalog import STRATEGIES, new_strategy, strategy_from_state
from grms.learning.evolution.class_search import ClassSearch
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.randomness import generator
from grms.learning.evolution.strategies import (
    Evaluation,
    EvolutionStrategy,
    FitnessFunction,
    StrategySettings,
)
from grms.learning.evolution.termination import (
    GENERATIONS,
    AnyOf,
    EvaluationLimit,
    GenerationLimit,
    GenerationRecord,
    Limits,
    TargetValue,
    TimeLimit,
)
from grms.learning.training import (
    Pace,
    Session,
    TrainingInterrupted,
    TrainingResult,
    check_folder,
    command_to_resume,
    duration,
    end_interrupted,
    shown,
    train,
    value_words,
)
from lrms_sim.cli.running import EXIT_INTERRUPTED
from lrms_sim.util.executors import ProcessExecutor, ThreadExecutor, Workers, workers_of
from lrms_sim.util.option_fields import field_options, taken
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


def record(generation: int, elapsed_s: float, best: float = 54_109.4) -> GenerationRecord:
    return GenerationRecord(generation, 13 + 91 * generation, best, 2 * best, 1.0, elapsed_s)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"),
        (0.6, "0:01"),
        (59.6, "1:00"),
        (61, "1:01"),
        (3600, "1:00:00"),
        (1e6, "277:46:40"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """Minutes and seconds, and hours where there are any."""
    assert duration(seconds) == text


def test_values_have_the_digits_that_tell() -> None:
    """Seconds without decimals, ratios with."""
    assert value_words(54109.4165) == "54,109"
    assert value_words(0.4590043) == "0.459004"
    assert value_words(-2345678.9) == "-2,345,679"


def test_the_pace_is_that_of_this_session() -> None:
    """Rate and time left do not count what an earlier session did, or waited."""
    pace = Pace(150, None)
    assert pace.words(record(0, 0.5)) == (
        "generation 0/150",
        "best 54,109  mean 108,219  26 evaluations/s",
    )
    assert pace.words(record(50, 20.0))[0] == "generation 50/150  0:40 left"
    resumed = Pace(150, None, record(100, 1000.0))
    assert resumed.evaluations_per_s(record(110, 1001.0)) == 910.0
    assert resumed.left_s(record(110, 1001.0)) == 4.0
    assert resumed.left_s(record(100, 1000.0)) is None
    assert resumed.evaluations_per_s(record(100, 1000.0)) == 0.0


def test_whichever_limit_is_nearer_counts() -> None:
    """Generations, seconds, or nobody knows; never less than nothing."""
    assert Pace(100, 30.0).left_s(record(50, 20.0)) == 10.0
    assert Pace(100, 300.0).left_s(record(50, 20.0)) == 20.0
    assert Pace(None, 30.0).left_s(record(50, 31.0)) == 0.0
    assert Pace(None, None).left_s(record(50, 20.0)) is None
    assert Pace(None, None).words(record(50, 20.0))[0] == "generation 50"


def lines_of(console: Console, clock: list[float], generations: int) -> list[str]:
    ticks = iter(clock)
    with shown(Pace(generations, None), generations, console, lambda: next(ticks)) as show:
        for generation in range(len(clock)):
            show(record(generation, float(generation)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_pipe_gets_plain_lines_now_and_then() -> None:
    """The first, one each second, and the last."""
    console = Console(file=io.StringIO(), width=40)
    lines = lines_of(console, [0.0, 0.2, 0.5, 1.1, 1.2, 1.3], 5)
    assert [line.split()[1] for line in lines] == ["0/5", "3/5", "5/5"]
    assert lines[1].startswith("generation 3/5  0:02 left  best 54,109  mean 108,219  ")
    assert "\x1b" not in "".join(lines)


def test_nothing_is_shown_of_nothing() -> None:
    """An interruption in the first generation leaves no line."""
    assert lines_of(Console(file=io.StringIO()), [], 5) == []


def test_a_terminal_of_80_columns_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest lines of a long run fit beside the bar, and disappear in the end."""
    monkeypatch.setenv("TERM", "xterm")
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system=None)
    with shown(Pace(1_000_000, None), 1_000_000, console) as show:
        show(record(999_000, 1e6, best=98_765_432.1))
    text = file.getvalue()
    assert "generation 999000/1000000  16:41 left" in text
    assert "best 98,765,432  mean 197,530,864  91 evaluations/s" in text
    assert "…" not in text
    erase_line = "\x1b[2K"
    assert text.endswith(erase_line)


def test_the_papers_150_generations_are_the_default() -> None:
    """Unless any other limit is set."""
    assert Limits().generations_max == GENERATIONS == 150
    assert Limits(generations=7).generations_max == 7
    for limit in ({"evaluations": 1}, {"seconds": 1}, {"stagnation": 1}, {"target": 0.0}):
        assert Limits(**limit).generations_max is None


def test_the_first_limit_that_is_reached_counts() -> None:
    """All of them are in force; a target that is reached is the reason that matters."""
    history = [GenerationRecord(3, 100, 5.0, 6.0, 1.0, 10.0)]
    assert Limits(3, 100, 10.0, 1, 5.0).termination().reason(history) == "the target 5 is reached"
    reason = Limits(3, 100, 10.0, 1).termination().reason(history)
    assert reason == "generation 3 of 3 is done"
    assert Limits(4, 101, 10.5, 1, 4.9).termination().reason(history) is None


def test_the_command_to_go_on() -> None:
    """What was typed, and --resume once."""
    assert command_to_resume(["train", "x"]) == ["train", "x", "--resume"]
    assert command_to_resume(["train", "x", "--resume"]) == ["train", "x", "--resume"]


def test_every_kind_of_worker_has_its_word() -> None:
    """The right executor for each; a cluster has a test of its own."""
    with Workers("processes", 1).started() as executor:
        assert isinstance(executor, ProcessExecutor)
    with Workers(count=1).started() as executor:
        assert isinstance(executor, ThreadExecutor)
    with pytest.raises(ValueError, match="0 workers"):
        Workers(count=0)


class _Judge:
    """Values a genome by its distance from 3, and notes the bounds it is given."""

    def __init__(self) -> None:
        self.bounds: list[float] = []

    def __call__(self, genome: Genome, bound: float) -> Evaluation:
        self.bounds.append(bound)
        return sphere(genome)


def session(folder: Path, generations: int, *, resume: bool = False) -> Session:
    return Session(folder, {"x": 1}, Limits(generations), Workers(count=1), resume)


def new() -> EvolutionStrategy:
    return EvolutionStrategy(rule_space(1), StrategySettings(parents=2, offspring=4), generator(1))


def test_a_session_trains_whatever_judges(tmp_path: Path) -> None:
    """Any strategy with any fitness; the folder is made, and the run can go on from there."""
    console = Console(file=io.StringIO())
    folder = tmp_path / "new" / "folder"
    whole = session(tmp_path / "whole", 6).run(new(), _Judge(), console)
    first = session(folder, 3).run(new(), _Judge(), console)
    assert first.reason == "generation 3 of 3 is done"
    again = session(folder, 6, resume=True).run(new(), _Judge(), console)
    assert same_genome(again.best.genome, whole.best.genome)
    assert [one.best for one in again.history] == [one.best for one in whole.history]


def test_a_generation_is_judged_with_the_bound_it_was_asked_with(tmp_path: Path) -> None:
    """Infinite for founders, then the worst parent's value, the same for the whole generation."""
    judge = _Judge()
    result = session(tmp_path, 2).run(new(), judge, Console(file=io.StringIO()))
    assert judge.bounds[:2] == [math.inf] * 2
    assert len(set(judge.bounds[2:6])) == len(set(judge.bounds[6:])) == 1
    assert math.inf > judge.bounds[2] >= judge.bounds[6] >= result.best.evaluation.value


@pytest.mark.parametrize(
    ("make", "resume", "complaint"),
    [
        (lambda folder: folder.write_text("x"), False, "is a file"),
        (Path.mkdir, True, "nothing to resume"),
        (Path.exists, True, "nothing to resume"),
    ],
)
def test_folders_in_which_nothing_can_begin(
    tmp_path: Path, make: Callable[[Path], object], complaint: str, *, resume: bool
) -> None:
    """A file in the way, or nothing to go on from."""
    folder = tmp_path / "run"
    make(folder)
    with pytest.raises(CheckpointError, match=complaint):
        check_folder(folder, resume=resume)


def options_of(arguments: Sequence[str]) -> tuple[Result, list[Any]]:
    """Runs a command with all options.

    Returns:
        the result, and what was said: the limits, the workers; nothing after an error.
    """
    said: list[Any] = []

    @click.command()
    @field_options(Limits, target={"help": "Stop at this height."})
    @field_options(Workers, executor={"default": "processes"})
    def command(**chosen: Any) -> None:
        said.extend((Limits(**taken(Limits, chosen)), workers_of(chosen)))

    return CliRunner().invoke(command, arguments), said


def test_what_is_said_is_what_comes() -> None:
    """Each option has its place in limits and workers."""
    arguments = (
        "--generations 4 --evaluations 50 --time-limit 1.5 --stagnation 6 --target 0.25 "
        "--executor dask --workers 2 --scheduler tcp://localhost:8786"
    )
    result, said = options_of(arguments.split())
    assert result.exit_code == 0, result.output
    assert said == [
        Limits(generations=4, evaluations=50, seconds=1.5, stagnation=6, target=0.25),
        Workers("dask", 2, "tcp://localhost:8786"),
    ]


def test_nothing_said_leaves_the_defaults() -> None:
    """The executor is the one that the command named."""
    result, said = options_of([])
    assert result.exit_code == 0, result.output
    assert said == [Limits(), Workers("processes")]


def test_the_help_has_the_words_of_the_command() -> None:
    """Where it has its own; else those of the fields."""
    result, _ = options_of(["--help"])
    assert "Stop at this height." in result.output
    assert "Who evaluates; the result is the same." in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--scheduler tcp://localhost:8786", "--scheduler goes with --executor dask"),
        ("--workers 0", "workers"),
        ("--executor none", "--executor"),
    ],
)
def test_what_cannot_be_is_refused(arguments: str, says: str) -> None:
    """In one line and with the status of a wrong use."""
    result, said = options_of(arguments.split())
    assert (result.exit_code, said) == (2, [])
    assert says in result.output


@pytest.mark.parametrize("resumable", [False, True])
def test_an_interrupted_command_says_how_to_go_on(*, resumable: bool) -> None:
    """Where there is something to go on with."""

    @click.command()
    def command() -> None:
        end_interrupted(TrainingInterrupted("interrupted", resumable=resumable))

    result = CliRunner().invoke(command, obj=("train", "a b", "--output", "there"))
    assert result.exit_code == EXIT_INTERRUPTED
    assert "interrupted" in result.output
    again = "go on with: grms train 'a b' --output there --resume"
    assert (again in result.output) is resumable
