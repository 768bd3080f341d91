"""What `scenario paper decentralized-grid` does, apart from its command line."""

from typing import Final

from rich.console import Console

from lrms_sim.report.parts import Table
from lrms_sim.report.terminal import print_table
from scenarios.report import wording as words
from scenarios.studies.common.frame import StudyCommand
from scenarios.studies.common.samples import Spread
from scenarios.studies.decentralized_grid.grids import EGOISTIC
from scenarios.studies.decentralized_grid.page import render, verdict
from scenarios.studies.decentralized_grid.reference import FOUR_SITES, PAIRS, SETUPS, THREE_SITES
from scenarios.studies.decentralized_grid.study import Study, awrt_of, improvement_of, run_study


def print_study(console: Console, study: Study) -> None:
    """Prints the heart of the study: Table 2, and the gains on unseen months."""
    rows = []
    for setup in SETUPS:
        awrt = awrt_of(study.of(setup.scenario, EGOISTIC.key), setup.site)
        paper = setup.paper[setup.site].awrt
        figures = (paper, awrt.median, awrt.low, awrt.high)
        seconds = (words.seconds(value, 0) for value in figures)
        change = words.change(awrt.median / paper - 1)
        rows.append((f"{setup.number} {setup.site}", *seconds, change))
    heads = ("setup", "paper", "median", "least", "greatest", "change")
    print_table(console, Table(heads, rows, "Table 2: AWRT of the learning site, seconds"))
    for discipline in dict.fromkeys(run.discipline for run in study.runs):
        print_table(console, _unseen(study, discipline))
    console.print()
    console.print(verdict(study), highlight=False)


def _unseen(study: Study, discipline: str) -> Table:
    rows = []
    for scenario in (*PAIRS, THREE_SITES, FOUR_SITES):
        awf = study.of(scenario, "awf", discipline)
        kinds = [study.of(scenario, f"{discipline}-{kind}", discipline) for kind in _OBJECTIVES]
        for index, site in enumerate(awf[0].sites):
            rows.append(
                (
                    scenario if index == 0 else "",
                    site.name,
                    f"{100 * site.awrt_improvement:+.1f}",
                    *(_spread(improvement_of(runs, site.name)) if runs else "" for runs in kinds),
                )
            )
    return Table(
        ("grid", "site", "AWF", "learned", "no loser"),
        rows,
        f"Unseen months, {discipline.upper()}: improvement of AWRT in percent, median (least…greatest)",
        words={1},
    )


_OBJECTIVES: Final = ("egoistic", "no-loser")


def _spread(spread: Spread) -> str:
    median = f"{100 * spread.median:+.1f}"
    if spread.count == 1:
        return median
    return f"{median} ({100 * spread.low:.1f}…{100 * spread.high:.1f})"


run_command = StudyCommand(run_study, render, print_study)
