"""The commands `scenario paper …`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lrms_sim.util.option_fields import field_options
from scenarios.studies.common.options import run_and_tell
from scenarios.studies.decentralized_grid.options import StudyOptions as GridOptions
from scenarios.studies.gorba_rescheduling.options import PARTS
from scenarios.studies.gorba_rescheduling.options import StudyOptions as ReschedulingOptions
from scenarios.studies.gorba_rescheduling.reference import SIZES
from scenarios.studies.queue_strategies.options import StudyOptions as StrategyOptions
from scenarios.studies.utility_scheduling.options import StudyOptions as UtilityOptions


@click.group(short_help="Run the experiments of a paper and compare the results.")
def paper() -> None:
    """Run the experiments of a paper, and compare the results with what it prints."""


@paper.command("decentralized-grid")
@field_options(GridOptions, ("folder", "seeds", "generations", "more_seeds", "more_generations"))
@click.option("--shipped", is_flag=True, help="Train nothing; use the included rule bases.")
@field_options(GridOptions, ("workers",))
def decentralized_grid(*, shipped: bool, **chosen: Any) -> None:
    """Tables 1 and 2, Figures 4 and 5 of "Decentralized Grid Scheduling with Evolutionary Fuzzy
    Systems" (JSSPP 2009), and what the paper leaves open: learning with a penalty for what
    partners lose, and EASY queues at every site.

    Needs the logs kth, ctc, sdsc05 and sdsc00. It trains 30 policies as the paper does and 54
    more, which takes three quarters of an hour on two cores; after Ctrl-C the same command goes
    on. --shipped is done in half a minute.
    """  # noqa: D205  # click takes the first paragraph as the summary
    options = GridOptions(**chosen)
    run_and_tell("decentralized_grid", replace(options, seeds=()) if shipped else options)


@paper.command("gorba-rescheduling")
@field_options(ReschedulingOptions, ("folder", "runs", "evaluations", "seconds", "sizes"))
@click.option(
    "--part",
    type=click.Choice(["all", *PARTS]),
    default="all",
    show_default=True,
    help="settings: Figure 4.1 and Table 4.1; sweep: Figures 4.2 to 4.5.",
)
@field_options(ReschedulingOptions, ("reduction",))
@click.option("--complete", is_flag=True, help="50 runs of 180 s on all sizes: over three weeks.")
@field_options(ReschedulingOptions, ("workers",))
def gorba_rescheduling(*, part: str, complete: bool, **chosen: Any) -> None:
    """Table 4.1 and Figures 4.1 to 4.5 of "Fast Multi-Objective Rescheduling of Workflows to
    Constrained Resources Using Heuristics and Memetic Evolution" (2010).

    32 rescheduling events, and a sweep over loads in four classes, with both memetic variants and
    our own, compared with what the paper says. By default it takes some minutes; after Ctrl-C the same
    command goes on.
    """  # noqa: D205  # click takes the first paragraph as the summary
    options = ReschedulingOptions(**chosen, parts=PARTS if part == "all" else (part,))
    if complete:
        options = replace(options, runs=50, seconds=180.0, sizes=SIZES)
    run_and_tell("gorba_rescheduling", options)


@paper.command("utility-scheduling")
@field_options(UtilityOptions)
def utility_scheduling(**chosen: Any) -> None:
    """Figures 2 to 5 of "A Reinforcement Learning Framework for Utility-Based Scheduling in
    Resource-Constrained Systems", under three readings of its text.

    Also every statement of the paper with what was measured, other policies on the same jobs,
    and all of them on the logs kth, ctc and sdsc05, if present, alone and in exchange. It takes less than a minute on two cores; after Ctrl-C the same command goes on.
    """  # noqa: D205  # click takes the first paragraph as the summary
    run_and_tell("utility_scheduling", UtilityOptions(**chosen))


_strategy_study = field_options(
    StrategyOptions,
    ("folder", "seeds", "generations", "start", "logs", "front", "scaled", "workers"),
)


@paper.command("greedy-criteria")
@_strategy_study
def greedy_criteria(**chosen: Any) -> None:
    """Table III and Figures 1 to 5 of "Greedy Scheduling with Custom-made Objectives" (2007).

    Learns the criteria f1 to f4 on the first jobs of the logs ctc, kth and sdsc00, and judges
    them on all later jobs, compared with constant orders of user groups. After Ctrl-C the same command
    goes on.
    """
    _run_strategy_study("greedy-criteria", **chosen)


@paper.command("genetic-fuzzy")
@_strategy_study
def genetic_fuzzy(**chosen: Any) -> None:
    """Tables 3 and 4, Figures 4 to 7 of "Genetic Fuzzy Systems applied to Online Job Scheduling"
    (2007).

    Searches tables by the iterative method, evolves rules by symbiotic evolution, and judges
    both on all later jobs, compared with constant orders of user groups. After Ctrl-C the same command
    goes on.
    """  # noqa: D205  # click takes the first paragraph as the summary
    _run_strategy_study("genetic-fuzzy", **chosen)


def _run_strategy_study(name: str, *, folder: Path | None, **chosen: Any) -> None:
    options = StrategyOptions(name, folder or Path("out", name), **chosen)
    run_and_tell(
        "queue_strategies", replace(options, generations=100) if options.scaled else options
    )
