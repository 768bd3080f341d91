"""What `grms train` does, apart from its command line."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grms.federation.federation import Site
from grms.learning.evolution.catalog import new_strategy
from grms.learning.evolution.genes import Genome
from grms.learning.evolution.self_play import SelfPlay
from grms.learning.evolution.strategies import FitnessFunction, Strategy, StrategySettings
from grms.learning.evolution.termination import Limits
from grms.learning.training import Session, TrainingResult, check_folder
from grms.learning.transfer.comparison import (
    ComparedRow,
    cells,
    check_same_sites,
    compared,
    compared_match,
    headings,
    verdict,
)
from grms.learning.transfer.encoding import RuleBaseSettings
from grms.learning.transfer.fitness import (
    Fitness,
    MatchFitness,
    SourceError,
    TrainingCase,
    TrainingSource,
    describe_fitness,
    describe_matches,
    load_source,
    training_cases,
    within_constraints_alone,
)
from grms.learning.transfer.options import RunOptions, rule_base_file
from grms.learning.transfer.outcome import (
    PAGE,
    SelfPlayOutcome,
    TrainingOutcome,
    awrt_words,
    make_outcome,
    make_self_play_outcome,
    visited_states,
    write_outcome,
    write_self_play,
)
from grms.policy.constraints import CONSTRAINTS_WORDS, NO_CONSTRAINTS, constraints_by_word
from grms.policy.transfer import STARTS_NOW, AcceptWhenFit, Constrained
from lrms_sim.util.executors import Workers
from lrms_sim.util.messages import unknown
from lrms_sim.util.provenance import source_commit

_Fitness = TypeVar("_Fitness", bound=FitnessFunction)


@dataclass(frozen=True, slots=True)
class TrainOptions(RunOptions):
    """Options of a training run.

    Attributes:
        rules: number of rules, and how their genes begin and move.
        archive: sets of rule bases that each individual meets in self-play in addition to its
            generation; `None`: no self-play, the partners stay as they are.

    Raises:
        ValueError: an option is out of its bounds, or does not go with another.
    """

    rules: RuleBaseSettings = field(default_factory=RuleBaseSettings)
    settings: StrategySettings = field(default_factory=StrategySettings)
    limits: Limits = field(default_factory=Limits)
    workers: Workers = field(default_factory=Workers)
    archive: int | None = None

    def __post_init__(self) -> None:
        if self.rails not in CONSTRAINTS_WORDS:
            raise ValueError(unknown("word for constraints", self.rails, CONSTRAINTS_WORDS))
        if self.rails == NO_CONSTRAINTS and self.rules.further:
            raise ValueError(
                f"{' and '.join(self.rules.further)} cannot be looked at without constraints: there rules look "
                f"at queue and width, as in the paper; add --rails fair-exchange, or leave --feature out"
            )
        if self.rails == NO_CONSTRAINTS and self.archive is not None:
            raise ValueError(
                "--self-play needs constraints: without them sites that learn can ruin each other; add --rails "
                "fair-exchange"
            )
        if self.archive is not None and not self.begins_with_constraints:
            raise ValueError(
                "--self-play begins with rules that always agree, which takes at least two rules and "
                "--feature starts-now"
            )
        self.limits.termination()
        self.new_strategy()

    @property
    def begins_with_constraints(self) -> bool:
        """Whether evolution begins with a rule base that does what the constraints alone do."""
        return STARTS_NOW.name in self.rules.further and self.rules.rules >= 2

    def new_strategy(self) -> Strategy:
        """Returns the strategy, which has not begun."""
        founders = (self.rules.agreeing,) if self.begins_with_constraints else ()
        if self.archive is None:
            return self._player(self.seed, founders)
        count = 1 + len(self.partners)
        # No two runs with different seeds share the stream of a player.
        players = [self._player(count * self.seed + place, founders) for place in range(count)]
        return SelfPlay(players, founders * count, self.archive)

    def _player(self, seed: int, founders: tuple[Genome, ...]) -> Strategy:
        return new_strategy(self.strategy, self.rules.space, self.settings, seed, founders)

    @property
    def noted(self) -> dict[str, Any]:
        """The strategy as plain values, for checkpoint and provenance."""
        noted: dict[str, Any] = {
            "name": self.strategy,
            "seed": self.seed,
            "settings": self.rules.plain | asdict(self.settings),
        }
        return noted | ({} if self.archive is None else {"self_play": {"archive": self.archive}})

    @property
    def constant(self) -> str:
        """What needs no learning and has to be beaten, by its word."""
        return AcceptWhenFit().name if self.rails == NO_CONSTRAINTS else self.rails

    @property
    def folder(self) -> Path:
        """The folder for all files."""
        stem = rule_base_file(self.site, self.partners).removesuffix(".json")
        return Path("out", f"train-{stem}") if self.output is None else self.output


@dataclass(frozen=True, slots=True)
class _Problem(Generic[_Fitness]):
    """What is learned from, or tested on."""

    fitness: _Fitness
    names: tuple[str, ...]
    sources: tuple[TrainingSource, ...]  # of each case
    sites: tuple[Sequence[Site], ...]  # of each case, those whose machines are the same in all

    @property
    def origins(self) -> list[Mapping[str, Mapping[str, Any]]]:
        return [source.provenance for source in self.sources]


def _learn(
    options: TrainOptions,
    console: Console,
    load_problem: Callable[[Sequence[str]], _Problem[_Fitness]],
    describe: Callable[[_Fitness], Mapping[str, Any]],
) -> tuple[_Problem[_Fitness], _Problem[_Fitness] | None, TrainingResult]:
    check_folder(options.folder, resume=options.resume)
    problem = load_problem(options.scenarios)
    unseen = load_problem(options.unseen) if options.unseen else None
    sources = problem.sources
    if unseen is not None:
        for sites, source in zip(unseen.sites, unseen.sources, strict=True):
            check_same_sites(problem.sites[0], sites, source.name)
        sources += unseen.sources
    for warning in dict.fromkeys(text for one in sources for text in one.warnings):
        console.print(f"warning: {warning}", markup=False, highlight=False, soft_wrap=True)
    description = {
        "strategy": options.noted,
        "fitness": describe(problem.fitness),
    }
    session = Session(options.folder, description, options.limits, options.workers, options.resume)
    return problem, unseen, session.run(options.new_strategy(), problem.fitness, console)


def run_training(
    options: TrainOptions,
    console: Console,
    *,
    load: Callable[[str], TrainingSource] = load_source,
) -> TrainingOutcome:
    """Trains, and writes all files.

    Raises:
        TrainingInterrupted: Ctrl-C; a checkpoint is there if a generation was done.
        SourceError: a scenario cannot be learned from.
        CheckpointError: a checkpoint is in the way, missing, or of another run.
        ExecutorError: the workers cannot be reached, or died.
        OSError: a file cannot be written.
    """
    problem, unseen, result = _learn(
        options, console, lambda scenarios: _load(options, scenarios, load), describe_fitness
    )
    outcome = make_outcome(
        problem.fitness,
        result,
        case_names=problem.names,
        settings=options.noted,
        origins=problem.origins,
        commit=source_commit(),
        compared=_compared(options, problem, unseen, result),
        constant=options.constant,
    )
    visits = visited_states(problem.fitness, outcome.rule_base)
    write_outcome(options.folder, rule_base_file(options.site, options.partners), outcome, visits)
    return outcome


def _compared(
    options: TrainOptions,
    problem: _Problem[Fitness],
    unseen: _Problem[Fitness] | None,
    result: TrainingResult,
) -> tuple[ComparedRow, ...]:
    if options.rails == NO_CONSTRAINTS and unseen is None:
        return ()
    rows = compared(problem.fitness, problem.names, result.best.evaluation)
    if unseen is not None:
        found = unseen.fitness(result.best.genome)
        rows += compared(unseen.fitness, unseen.names, found, unseen=True)
    return tuple(rows)


def run_self_play(
    options: TrainOptions,
    console: Console,
    *,
    load: Callable[[str], TrainingSource] = load_source,
) -> SelfPlayOutcome:
    """Lets the policies of all sites evolve, and writes all files, as `run_training` does."""
    problem, unseen, result = _learn(
        options,
        console,
        lambda scenarios: _load_matches(options, scenarios, load),
        describe_matches,
    )
    genome = result.best.genome
    rows = compared_match(problem.fitness, problem.names, genome)
    if unseen is not None:
        rows += compared_match(unseen.fitness, unseen.names, genome, unseen=True)
    outcome = make_self_play_outcome(
        problem.fitness,
        result,
        rows,
        constant=options.constant,
        case_names=problem.names,
        settings=options.noted,
        origins=problem.origins,
        commit=source_commit(),
    )
    write_self_play(options.folder, problem.fitness, outcome)
    return outcome


def print_outcome(console: Console, options: TrainOptions, outcome: TrainingOutcome) -> None:
    """Prints the results and the files."""
    if outcome.compared:
        print_compared(console, outcome.compared, outcome.constant)
    else:
        table = Table("replay", "site", title=None)
        for heading in ("AWRT alone, s", "AWRT after, s", "improvement"):
            table.add_column(heading, justify="right")
        for row in outcome.rows:
            site = f"{row.site}{' *' if row.evolved else ''}"
            # As Text, for a name may look like markup.
            table.add_row(*(Text(word) for word in (row.case, site, *awrt_words(row))))
        console.print(table)
    file = rule_base_file(options.site, options.partners)
    _print_end(console, options.folder, outcome.result, "evaluations", [file])


def print_self_play(console: Console, options: TrainOptions, outcome: SelfPlayOutcome) -> None:
    """Prints the results and the files."""
    print_compared(console, outcome.compared, outcome.constant)
    _print_end(console, options.folder, outcome.result, "matches", outcome.files().values())


def _print_end(
    console: Console, folder: Path, result: TrainingResult, what: str, files: Iterable[str]
) -> None:
    cost = f"{result.evaluations:,} {what} in {result.elapsed_s:,.1f} s"
    for line in (
        f"* learned; stopped: {result.reason}; {cost}",
        *(f"Rule base: {folder / file}" for file in files),
        f"Page:      {folder / PAGE}",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_compared(console: Console, rows: Sequence[ComparedRow], constant: str) -> None:
    """Prints the comparison with constants, and its assessment."""
    replays = dict.fromkeys((row.unseen, row.case) for row in rows)
    for unseen, case in sorted(replays, key=lambda one: one[0]):
        title = Text(f"{'Unseen' if unseen else 'Learned from'}: {case}")
        # The replay is in the title, so that the table has room on a usual terminal.
        _, *columns = headings(constant)
        table = Table(title=title, title_justify="left")
        for place, heading in enumerate(columns):
            table.add_column(heading, justify="right" if place else "left")
        for row in rows:
            if (row.unseen, row.case) == (unseen, case):
                table.add_row(*(Text(word) for word in cells(row)[1:]))
        console.print(table)
    text = verdict(rows, constant).text
    console.print(Text(text), soft_wrap=False, highlight=False)


def _check_bare(source: TrainingSource, site: str, partners: Sequence[str]) -> None:
    """Refuses to learn without constraints for a site that has constraints in the scenario."""
    for one in source.sites:
        if one.name == site and any(
            isinstance(one.transfer_policies.get(partner), Constrained) for partner in partners
        ):
            raise SourceError(
                f"scenario {source.name}: site {site} keeps to constraints there; name them with --rails, which "
                f"then holds for all sites, or take them out to learn without"
            )


def _load(
    options: TrainOptions, scenarios: Sequence[str], load: Callable[[str], TrainingSource]
) -> _Problem[Fitness]:
    cases: list[TrainingCase] = []
    names: list[str] = []
    sources: list[TrainingSource] = []
    rails = constraints_by_word(options.rails)
    for reference in scenarios:
        source = load(reference)
        if rails is not None:
            source = replace(source, sites=tuple(within_constraints_alone(source.sites, rails)))
        else:
            _check_bare(source, options.site, options.partners)
        found = training_cases(source, options.site, options.partners, together=options.together)
        cases += found
        sources += [source] * len(found)
        names += [f"{source.name}: {', '.join(s.name for s in c.federation.sites)}" for c in found]
    try:
        fitness = Fitness(cases, options.objective, rails=rails, further=options.rules.further)
    except ValueError as error:
        raise SourceError(f"{', '.join(scenarios)}: {error}") from error
    evolved = tuple([one for one in c.federation.sites if one.name == c.site] for c in cases)
    return _Problem(fitness, tuple(names), tuple(sources), evolved)


def _load_matches(
    options: TrainOptions, scenarios: Sequence[str], load: Callable[[str], TrainingSource]
) -> _Problem[MatchFitness]:
    rails = constraints_by_word(options.rails)
    assert rails is not None, "options without constraints are refused"
    sources = [load(reference) for reference in scenarios]
    cases: list[Sequence[Site]] = []
    for source in sources:
        (case,) = training_cases(source, options.site, options.partners, together=True)
        by_name = {site.name: site for site in case.federation.sites}
        # The players in one order, whatever that of the scenario is.
        cases.append([by_name[name] for name in (options.site, *options.partners)])
    try:
        fitness = MatchFitness(cases, rails, options.rules, options.objective)
    except ValueError as error:
        raise SourceError(f"{', '.join(scenarios)}: {error}") from error
    names = tuple(f"{one.name}: {', '.join(fitness.names)}" for one in sources)
    sites = tuple(federation.sites for federation in fitness.federations)
    return _Problem(fitness, names, tuple(sources), sites)
