"""What `grms train` does, apart from its command line."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grms.learning.evolution.catalog import new_strategy
from grms.learning.evolution.strategies import Strategy, StrategySettings
from grms.learning.rule_bases.encoding import RuleBaseSettings
from grms.learning.rule_bases.fingerprint import describe_fitness
from grms.learning.rule_bases.fitness import Fitness, Objective, TrainingCase
from grms.learning.rule_bases.outcome import (
    PAGE,
    TrainingOutcome,
    awrt_words,
    make_outcome,
    rule_base_file,
    visited_states,
    write_outcome,
)
from grms.learning.rule_bases.source import (
    SourceError,
    TrainingSource,
    load_source,
    training_cases,
)
from grms.learning.session import Limits, Session, Workers, check_folder
from lrms_sim.provenance import source_commit
from lrms_sim.version import __version__


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What a user asks for.

    Attributes:
        scenarios: names or files, at least one; their replays are averaged.
        site: whose policy evolves.
        partners: whom it is to use the policy with.
        together: one replay with all partners, in place of one with each.
        objective: what is made small.
        strategy: one of `grms.learning.evolution.catalog.STRATEGIES`.
        rules: how many rules evolve, and how their genes begin and move.
        settings: of the strategy.
        seed: of its random stream.
        limits: when to stop.
        workers: who evaluates.
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
    rules: RuleBaseSettings = field(default_factory=RuleBaseSettings)
    settings: StrategySettings = field(default_factory=StrategySettings)
    seed: int = 1
    limits: Limits = field(default_factory=Limits)
    workers: Workers = field(default_factory=Workers)
    output: Path | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        """Checks what can be checked before anything is read."""
        self.limits.termination()
        self.new_strategy()

    def new_strategy(self) -> Strategy:
        """Returns the strategy, which has not begun."""
        return new_strategy(self.strategy, self.rules.space, self.settings, self.seed)

    @property
    def folder(self) -> Path:
        """The folder for all files."""
        stem = rule_base_file(self.site, self.partners).removesuffix(".json")
        return Path("out", f"train-{stem}") if self.output is None else self.output


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
) -> TrainingOutcome:
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
    folder = options.folder
    check_folder(folder, resume=options.resume)
    problem = _load(options, load)
    for warning in dict.fromkeys(text for one in problem.sources for text in one.warnings):
        console.print(f"warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    settings = {
        "name": options.strategy,
        "seed": options.seed,
        "settings": asdict(options.rules) | asdict(options.settings),
    }
    description = {
        "program": f"hanse {__version__}",
        "strategy": settings,
        "fitness": describe_fitness(problem.fitness),
    }
    session = Session(folder, description, options.limits, options.workers, options.resume)
    result = session.run(options.new_strategy(), problem.fitness, console)
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


def print_outcome(console: Console, options: TrainOptions, outcome: TrainingOutcome) -> None:
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
