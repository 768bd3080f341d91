"""The study from training to figures: what is learned, what is replayed, and in which order."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from grms.learning.evolution.termination import Limits
from grms.learning.training import CHECKPOINT
from grms.learning.transfer.command import TrainOptions, run_training
from grms.learning.transfer.fitness import TrainingSource
from grms.learning.transfer.outcome import TrainingOutcome
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.util.executors import Workers
from lrms_sim.util.version import __version__
from scenarios.library import rule_base_folder, scenario_path
from scenarios.run.replay import run_scenario
from scenarios.run.training_source import load_training_source
from scenarios.spec.files import load_spec
from scenarios.studies.common.frame import RESULT_FORMAT
from scenarios.studies.common.samples import Spread, machine_words
from scenarios.studies.decentralized_grid.grids import (
    EASY_EGOISTIC,
    EASY_NO_LOSER,
    EGOISTIC,
    NO_LOSER,
    GridRun,
    Regime,
    grid_spec,
    learned_file,
    run_grid,
)
from scenarios.studies.decentralized_grid.options import StudyOptions
from scenarios.studies.decentralized_grid.reference import (
    FOUR_SITES,
    PAIRS,
    SETUPS,
    THREE_SITES,
    Setup,
)

POLICIES: Final = "policies"
"""In the study's folder."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is learned in one regime.

    Attributes:
        seeds: one run for each setup and seed; none if shipped rule bases are looked at.
    """

    regime: Regime
    seeds: tuple[int, ...]
    generations: int


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One training run.

    Attributes:
        setup: the setup's number in Table 2.
        site: who learned.
        partner: for whom.
        elapsed_s: seconds of training.
        awrt: of the learning site on the training window, seconds.
        partner_awrt: of the partner there, seconds.
    """

    regime: str
    setup: str
    site: str
    partner: str
    seed: int
    generations: int
    evaluations: int
    elapsed_s: float
    awrt: float
    partner_awrt: float


@dataclass(frozen=True, slots=True)
class Study:
    """Everything the study has found.

    Attributes:
        windows: the sites alone, by site and months: Table 1.
        trainings: all training runs; none if shipped rule bases were looked at.
        runs: all replays: the setups of Table 2, the grids of Figures 4 and 5.
        machine: processor and number of them, for people.
        acknowledgements: sentences that thank those who gave the recorded logs.
    """

    options: Mapping[str, Any]
    windows: Mapping[str, Mapping[str, float]]
    trainings: tuple[TrainingRun, ...]
    runs: tuple[GridRun, ...]
    machine: str
    acknowledgements: tuple[str, ...]
    version: str = field(default=__version__)

    def of(self, scenario: str, policies: str, discipline: str = "fcfs") -> list[GridRun]:
        """Returns the runs of one grid with one kind of policies, in the order of seeds."""
        return [
            run
            for run in self.runs
            if (run.scenario, run.policies, run.discipline) == (scenario, policies, discipline)
        ]

    def to_json(self) -> str:
        """Returns every figure as JSON."""
        document = {
            "format": RESULT_FORMAT,
            "version": self.version,
            "machine": self.machine,
            "options": dict(self.options),
            "windows": {name: dict(values) for name, values in self.windows.items()},
            "trainings": [asdict(run) for run in self.trainings],
            "runs": [asdict(run) for run in self.runs],
            "acknowledgements": list(self.acknowledgements),
        }
        return json.dumps(document, indent=1) + "\n"


def efforts_of(options: StudyOptions) -> tuple[Effort, ...]:
    """Returns the efforts, the paper's regime first."""
    chosen = [Effort(EGOISTIC, options.seeds, options.generations)]
    if options.more_generations:
        seeds = options.more_seeds if options.seeds else ()
        chosen += [
            Effort(regime, seeds, options.more_generations)
            for regime in (NO_LOSER, EASY_EGOISTIC, EASY_NO_LOSER)
        ]
    return tuple(chosen)


def awrt_of(runs: Sequence[GridRun], site: str) -> Spread:
    """Returns the spread of a site's AWRT over runs, seconds."""
    return Spread.of(one.awrt for run in runs for one in run.sites if one.name == site)


def improvement_of(runs: Sequence[GridRun], site: str) -> Spread:
    """Returns the spread of a site's ΔAWRT over runs, shares of 1."""
    return Spread.of(one.awrt_improvement for run in runs for one in run.sites if one.name == site)


def run_study(
    options: StudyOptions,
    console: Console,
    environment: Mapping[str, str] = os.environ,
) -> Study:
    """Learns the missing policies, and replays all grids with them.

    What an interrupted study has learned is kept in its folder; the next one goes on from there.

    Raises:
        ScenarioError: a log is missing or a file cannot be used.
        SourceError: the same, while learning.
        CheckpointError: the folder has policies of other settings.
        TrainingInterrupted: Ctrl-C.
    """
    windows, acknowledgements = _windows(environment)
    trainings = list(_learn_all(options, console, environment)) if options.seeds else []
    runs: list[GridRun] = []
    for discipline in dict.fromkeys(effort.regime.discipline for effort in efforts_of(options)):
        for scenario in (*PAIRS, THREE_SITES, FOUR_SITES, *_one_of_each_pair()):
            console.print(
                f"replaying {scenario} with {discipline.upper()} and AWF", highlight=False
            )
            spec = grid_spec(scenario, discipline)
            runs.append(run_grid(spec, policies="awf", seed=None, environment=environment))
    for effort in efforts_of(options):
        for seed in effort.seeds or (None,):
            console.print(
                f"replaying all grids with policies of {effort.regime.words}"
                + (", as shipped" if seed is None else f", seed {seed}"),
                highlight=False,
            )
            folder = rule_base_folder(effort.regime.key) if seed is None else None
            runs += _replay_learned(options, effort.regime, seed, folder, environment)
    return Study(
        options={
            "seeds": list(options.seeds),
            "generations": options.generations,
            "more_seeds": list(options.more_seeds) if options.seeds else [],
            "more_generations": options.more_generations,
        },
        windows=windows,
        trainings=tuple(trainings),
        runs=tuple(runs),
        machine=machine_words(),
        acknowledgements=acknowledgements,
    )


def _one_of_each_pair() -> tuple[str, ...]:
    """Returns one setup for each pair of sites; with AWF everywhere the other one is the same."""
    return tuple(setup.scenario for setup in SETUPS[::2])


def _replay_learned(
    options: StudyOptions,
    regime: Regime,
    seed: int | None,
    shipped: Path | None,
    environment: Mapping[str, str],
) -> Iterator[GridRun]:
    def learned(site: str, partner: str) -> Path:
        if shipped is not None:
            return learned_file(shipped, site, partner)
        assert seed is not None
        return learned_file(
            training_folder(options.folder, regime, seed, site, partner), site, partner
        )

    for setup in SETUPS:
        spec = grid_spec(
            setup.scenario,
            regime.discipline,
            learned=learned,
            learners=frozenset({setup.site}),
        )
        yield run_grid(spec, policies=regime.key, seed=seed, environment=environment)
    for scenario in (*PAIRS, THREE_SITES, FOUR_SITES):
        spec = grid_spec(scenario, regime.discipline, learned=learned)
        yield run_grid(spec, policies=regime.key, seed=seed, environment=environment)


def training_folder(folder: Path, regime: Regime, seed: int, site: str, partner: str) -> Path:
    """Returns the folder of one training run within a study's folder."""
    return folder / POLICIES / regime.key / f"seed-{seed}" / f"{site}-for-{partner}".lower()


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A training run that is wanted.

    Attributes:
        regime: how policies are learned, and where.
        setup: whose policy is learned, and for whom.
    """

    regime: Regime
    generations: int
    seed: int
    setup: Setup


def _learn_all(
    options: StudyOptions, console: Console, environment: Mapping[str, str]
) -> Iterator[TrainingRun]:
    jobs = [
        TrainingJob(effort.regime, effort.generations, seed, setup)
        for effort in efforts_of(options)
        for seed in effort.seeds
        for setup in SETUPS
    ]
    for number, job in enumerate(jobs, start=1):
        setup = job.setup
        console.print(
            f"training {number} of {len(jobs)}: {setup.site} for {setup.partner} "
            f"({job.regime.words}), seed {job.seed}",
            highlight=False,
        )
        outcome = learn(options, job, console, environment)
        after = {row.site: row.after for row in outcome.rows}
        yield TrainingRun(
            regime=job.regime.key,
            setup=setup.number,
            site=setup.site,
            partner=setup.partner,
            seed=job.seed,
            generations=outcome.result.history[-1].generation,
            evaluations=outcome.result.evaluations,
            elapsed_s=outcome.result.elapsed_s,
            awrt=after[setup.site],
            partner_awrt=after[setup.partner],
        )


def learn(
    options: StudyOptions,
    job: TrainingJob,
    console: Console,
    environment: Mapping[str, str],
) -> TrainingOutcome:
    """Does one training run of a study, or reads it where it is there and done.

    Raises:
        SourceError: a log is missing or a file cannot be used.
        CheckpointError: the folder has a run of other settings.
        TrainingInterrupted: Ctrl-C.
    """
    regime, setup = job.regime, job.setup
    folder = training_folder(options.folder, regime, job.seed, setup.site, setup.partner)

    discipline = discipline_by_name(regime.discipline)

    def load(reference: str) -> TrainingSource:
        source = load_training_source(reference, environment)
        sites = tuple(replace(site, discipline=discipline) for site in source.sites)
        return replace(source, sites=sites)

    return run_training(
        TrainOptions(
            scenarios=(setup.scenario,),
            site=setup.site,
            partners=(setup.partner,),
            objective=regime.objective,
            seed=job.seed,
            limits=Limits(generations=job.generations),
            workers=Workers(count=options.workers),
            output=folder,
            # A run that is there and done is read, not done again.
            resume=(folder / CHECKPOINT).exists(),
        ),
        console,
        load=load,
    )


def _windows(
    environment: Mapping[str, str],
) -> tuple[dict[str, dict[str, float]], tuple[str, ...]]:
    found: dict[str, dict[str, float]] = {}
    thanks: dict[str, None] = {}
    for months, words in (("5", "five"), ("6", "six")):
        spec = load_spec(scenario_path(f"table-1-{words}-months"))
        result = run_scenario(spec, environment=environment).result
        thanks.update(dict.fromkeys(result.acknowledgements))
        for site in result.sites:
            found[f"{site.name}-{months}"] = {
                "jobs": site.jobs,
                "awrt": site.awrt_alone,
                "utilization": 100 * site.utilization_alone,
                "makespan": site.makespan_alone,
            }
    return found, tuple(thanks)
