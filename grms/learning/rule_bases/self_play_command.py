"""What `grms train --self-play` does, apart from its command line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console

from grms.federation.federation import Site
from grms.learning.rule_bases.command import TrainOptions, print_compared, print_warnings
from grms.learning.rule_bases.fingerprint import describe_meetings
from grms.learning.rule_bases.outcome import PAGE
from grms.learning.rule_bases.self_play import MeetingFitness
from grms.learning.rule_bases.self_play_outcome import (
    SelfPlayOutcome,
    make_self_play_outcome,
    write_self_play,
)
from grms.learning.rule_bases.source import (
    SourceError,
    TrainingSource,
    load_source,
    training_cases,
)
from grms.learning.rule_bases.unseen import check_same_sites, compared_meeting
from grms.learning.session import Session, check_folder
from grms.policy.rails_table import rails_by_word
from lrms_sim.provenance import source_commit
from lrms_sim.version import __version__


@dataclass(frozen=True, slots=True)
class _Problem:
    fitness: MeetingFitness
    sources: tuple[TrainingSource, ...]

    @property
    def names(self) -> list[str]:
        return [f"{one.name}: {', '.join(self.fitness.names)}" for one in self.sources]


def run_self_play(
    options: TrainOptions,
    console: Console,
    *,
    load: Callable[[str], TrainingSource] = load_source,
) -> SelfPlayOutcome:
    """Lets the policies of all sites evolve, and writes all files.

    Args:
        options: what a user asks for, with rails and an archive.
        console: shows how far it is.
        load: reads a scenario.

    Raises:
        TrainingInterrupted: Ctrl-C; a checkpoint is there if a generation was done.
        SourceError: a scenario cannot be learned from.
        CheckpointError: a checkpoint is in the way, missing, or of another run.
        ExecutorError: the workers cannot be reached, or died.
        OSError: a file cannot be written.
    """
    check_folder(options.folder, resume=options.resume)
    problem = _load(options, options.scenarios, load)
    unseen = _load(options, options.unseen, load) if options.unseen else None
    if unseen is not None:
        learned = problem.fitness.federations[0].sites
        for source, federation in zip(unseen.sources, unseen.fitness.federations, strict=True):
            check_same_sites(learned, federation.sites, source.name)
    print_warnings(console, (*problem.sources, *(unseen.sources if unseen else ())))
    description = {
        "program": f"hanse {__version__}",
        "strategy": options.noted,
        "fitness": describe_meetings(problem.fitness),
    }
    session = Session(options.folder, description, options.limits, options.workers, options.resume)
    result = session.run(options.new_strategy(), problem.fitness, console)
    genome = result.best.genome
    rows = compared_meeting(problem.fitness, problem.names, genome)
    if unseen is not None:
        rows += compared_meeting(unseen.fitness, unseen.names, genome, unseen=True)
    outcome = make_self_play_outcome(
        problem.fitness,
        result,
        rows,
        constant=options.constant,
        case_names=problem.names,
        settings=options.noted,
        origins=[source.provenance for source in problem.sources],
        commit=source_commit(),
    )
    write_self_play(options.folder, problem.fitness, outcome)
    return outcome


def print_self_play(console: Console, options: TrainOptions, outcome: SelfPlayOutcome) -> None:
    """Prints what has been learned and where it is."""
    print_compared(console, outcome.compared, outcome.constant)
    result = outcome.result
    cost = f"{result.evaluations:,} meetings in {result.elapsed_s:,.1f} s"
    lines = [
        f"* learned; stopped: {result.reason}; {cost}",
        *(f"Rule base: {options.folder / file}" for file in outcome.files().values()),
        f"Page:      {options.folder / PAGE}",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _load(
    options: TrainOptions, scenarios: Sequence[str], load: Callable[[str], TrainingSource]
) -> _Problem:
    rails = rails_by_word(options.rails)
    assert rails is not None, "options without rails are refused"
    sources = [load(reference) for reference in scenarios]
    cases: list[Sequence[Site]] = []
    for source in sources:
        (case,) = training_cases(source, options.site, options.partners, together=True)
        by_name = {site.name: site for site in case.federation.sites}
        # The players in one order, whatever that of the scenario is.
        cases.append([by_name[name] for name in (options.site, *options.partners)])
    try:
        fitness = MeetingFitness(cases, rails, options.rules, options.objective)
    except ValueError as error:
        raise SourceError(f"{', '.join(scenarios)}: {error}") from error
    return _Problem(fitness, tuple(sources))
