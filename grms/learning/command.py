"""What `grms train` does, apart from its command line."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grms.learning.catalog import new_strategy, strategy_from_state
from grms.learning.checkpoint import Checkpoint, CheckpointError, Snapshot, is_unfinished
from grms.learning.display import Pace, shown
from grms.learning.executors import (
    DaskExecutor,
    Executor,
    ProcessExecutor,
    ThreadExecutor,
    check_workers,
)
from grms.learning.fingerprint import describe_fitness
from grms.learning.fitness import Fitness, Objective, TrainingCase
from grms.learning.outcome import (
    PAGE,
    Outcome,
    awrt_words,
    make_outcome,
    rule_base_file,
    source_commit,
    visited_states,
    write_outcome,
)
from grms.learning.source import SourceError, TrainingSource, load_source, training_cases
from grms.learning.strategies import Strategy, StrategySettings
from grms.learning.termination import (
    AnyOf,
    EvaluationLimit,
    GenerationLimit,
    Stagnation,
    TargetValue,
    Termination,
    TimeLimit,
)
from grms.learning.training import TrainingResult, train
from lrms_sim.version import __version__

CHECKPOINT = "checkpoint.json"
"""Name of the checkpoint in the output folder."""

GENERATIONS = 150
"""Where a run stops if nobody sets a limit: the paper's number (section 4.5)."""

ExecutorName = Literal["threads", "processes", "dask"]


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop; the first limit that is reached counts.

    Attributes:
        generations: so many; `GENERATIONS` where no limit at all is set.
        evaluations: after the generation in which so many are reached.
        seconds: after the generation in which so much time is over.
        stagnation: after so many generations without gain.
        target: at this fitness.
    """

    generations: int | None = None
    evaluations: int | None = None
    seconds: float | None = None
    stagnation: int | None = None
    target: float | None = None

    @property
    def generations_max(self) -> int | None:
        """The generation limit in force."""
        others = (self.evaluations, self.seconds, self.stagnation, self.target)
        if self.generations is None and all(other is None for other in others):
            return GENERATIONS
        return self.generations

    def termination(self) -> Termination:
        """Returns the limits as a termination.

        Raises:
            ValueError: a limit is out of its bounds.
        """
        kinds: tuple[tuple[Any, Callable[[Any], Termination]], ...] = (
            (self.target, TargetValue),
            (self.generations_max, GenerationLimit),
            (self.evaluations, EvaluationLimit),
            (self.seconds, TimeLimit),
            (self.stagnation, Stagnation),
        )
        return AnyOf(tuple(kind(value) for value, kind in kinds if value is not None))


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What a user asks for.

    Attributes:
        scenarios: names or files, at least one; their replays are averaged.
        site: whose policy evolves.
        partners: whom it is to use the policy with.
        together: one replay with all partners, in place of one with each.
        objective: what is made small.
        strategy: one of `grms.learning.catalog.STRATEGIES`.
        settings: of the strategy.
        seed: of its random stream.
        limits: when to stop.
        executor: who evaluates.
        workers: how many; as many as there are processors where None.
        scheduler: address of a dask scheduler; a cluster on this machine where None.
        output: folder for all files; chosen by site and partners where None.
        resume: go on from the checkpoint there.

    Raises:
        ValueError: an option is out of its bounds.
    """

    scenarios: tuple[str, ...]
    site: str
    partners: tuple[str, ...]
    together: bool = False
    objective: Objective = "egoistic"
    strategy: str = "paper"
    settings: StrategySettings = field(default_factory=StrategySettings)
    seed: int = 1
    limits: Limits = field(default_factory=Limits)
    executor: ExecutorName = "threads"
    workers: int | None = None
    scheduler: str | None = None
    output: Path | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        """Checks what can be checked before anything is read."""
        self.limits.termination()
        new_strategy(self.strategy, self.settings, self.seed)
        check_workers(self.workers)

    @property
    def folder(self) -> Path:
        """The folder for all files."""
        stem = rule_base_file(self.site, self.partners).removesuffix(".json")
        return Path("out", f"train-{stem}") if self.output is None else self.output


class TrainingInterrupted(Exception):  # noqa: N818  # it is no error
    """Ctrl-C, once everything is saved.

    Attributes:
        resumable: whether there is a checkpoint to go on from.
    """

    def __init__(self, text: str, *, resumable: bool) -> None:
        self.resumable = resumable
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class _Problem:
    """What is to be learned."""

    fitness: Fitness
    case_names: tuple[str, ...]
    sources: tuple[TrainingSource, ...]  # of each case


def run_training(
    options: TrainOptions,
    console: Console,
    *,
    load: Callable[[str], TrainingSource] = load_source,
) -> Outcome:
    """Trains, and writes all files.

    Args:
        options: what a user asks for.
        console: shows how far it is.
        load: reads a scenario.

    Raises:
        TrainingInterrupted: Ctrl-C; a checkpoint is there if a generation was done.
        SourceError: a scenario cannot be learned from.
        CheckpointError: a checkpoint is in the way, missing, or of another run.
        ExecutorError: the workers cannot be reached, or died.
        OSError: a file cannot be written.
    """
    strategy = new_strategy(options.strategy, options.settings, options.seed)
    folder = options.folder
    _check_folder(folder, resume=options.resume)
    problem = _load(options, load)
    for warning in dict.fromkeys(text for one in problem.sources for text in one.warnings):
        console.print(f"warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    settings = {"name": strategy.name, "seed": options.seed, "settings": asdict(options.settings)}
    description = {
        "program": f"hanse {__version__}",
        "strategy": settings,
        "fitness": describe_fitness(problem.fitness),
    }
    checkpoint = Checkpoint(folder / CHECKPOINT, description)
    earlier: Snapshot | None = None
    if options.resume:
        earlier = checkpoint.read()
        strategy = _resumed(checkpoint.path, earlier)
    _make_folder(folder)
    if earlier is None:
        # One of a finished run; after an early Ctrl-C it would be taken for this run's.
        checkpoint.path.unlink(missing_ok=True)
    result = _train(options, console, problem.fitness, strategy, checkpoint, earlier=earlier)
    outcome = make_outcome(
        problem.fitness,
        result,
        case_names=problem.case_names,
        settings=settings,
        origins=[source.provenance for source in problem.sources],
        commit=source_commit(),
    )
    visits = visited_states(problem.fitness, outcome.rule_base)
    write_outcome(folder, rule_base_file(options.site, options.partners), outcome, visits)
    return outcome


def print_outcome(console: Console, options: TrainOptions, outcome: Outcome) -> None:
    """Prints what has been learned and where it is."""
    table = Table("replay", "site", title=None)
    for heading in ("AWRT alone, s", "AWRT after, s", "improvement"):
        table.add_column(heading, justify="right")
    for row in outcome.rows:
        site = f"{row.site}{' *' if row.evolved else ''}"
        # As Text, for a name may look like markup.
        table.add_row(*(Text(word) for word in (row.case, site, *awrt_words(row))))
    console.print(table)
    result = outcome.result
    folder = options.folder
    cost = f"{result.evaluations:,} evaluations in {result.elapsed_s:,.1f} s"
    for line in (
        f"* learned; stopped: {result.reason}; {cost}",
        f"Rule base: {folder / rule_base_file(options.site, options.partners)}",
        f"Page:      {folder / PAGE}",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _load(options: TrainOptions, load: Callable[[str], TrainingSource]) -> _Problem:
    cases: list[TrainingCase] = []
    names: list[str] = []
    sources: list[TrainingSource] = []
    for reference in options.scenarios:
        source = load(reference)
        found = training_cases(source, options.site, options.partners, together=options.together)
        cases += found
        sources += [source] * len(found)
        names += [f"{source.name}: {', '.join(s.name for s in c.federation.sites)}" for c in found]
    try:
        fitness = Fitness(cases, options.objective)
    except ValueError as error:
        raise SourceError(f"{', '.join(options.scenarios)}: {error}") from error
    return _Problem(fitness, tuple(names), tuple(sources))


def _check_folder(folder: Path, *, resume: bool) -> None:
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


def _resumed(path: Path, earlier: Snapshot) -> Strategy:
    try:
        return strategy_from_state(earlier.strategy)
    except (KeyError, TypeError, ValueError) as error:
        reason = error if isinstance(error, ValueError) else f"is damaged: {error!r}"
        raise CheckpointError(f"{path}: {reason}") from error


def _train(
    options: TrainOptions,
    console: Console,
    fitness: Fitness,
    strategy: Strategy,
    checkpoint: Checkpoint,
    *,
    earlier: Snapshot | None,
) -> TrainingResult:
    generations = options.limits.generations_max
    last = earlier.history[-1] if earlier and earlier.history else None
    pace = Pace(generations, options.limits.seconds, last)
    try:
        with _executor(options) as executor, shown(pace, generations, console) as show:
            return train(
                strategy,
                fitness,
                executor,
                options.limits.termination(),
                progress=show,
                checkpoint=checkpoint,
                earlier=earlier,
            )
    except KeyboardInterrupt as error:
        # What the file says counts: Ctrl-C may come anywhere, between two generations too.
        if not checkpoint.path.exists():
            text = "interrupted before the first generation was done: nothing to resume"
            raise TrainingInterrupted(text, resumable=False) from error
        history = checkpoint.read().history
        text = (
            f"interrupted after generation {history[-1].generation}; the checkpoint is "
            f"{checkpoint.path}"
        )
        raise TrainingInterrupted(text, resumable=True) from error


def _executor(options: TrainOptions) -> AbstractContextManager[Executor]:
    if options.executor == "processes":
        return ProcessExecutor(options.workers)
    if options.executor == "dask":
        return DaskExecutor(options.scheduler, options.workers)
    return ThreadExecutor(options.workers)


def command_to_resume(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments that go on with a run, from those that began it."""
    return [*arguments, *(() if "--resume" in arguments else ("--resume",))]
