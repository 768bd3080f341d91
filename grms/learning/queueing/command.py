"""What `grms tune` does, apart from its command line."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grms.learning.evolution.recorded import Recorded
from grms.learning.queueing.encoding import CriterionEncoding, Encoding
from grms.learning.queueing.fitness import TuningFitness
from grms.learning.queueing.front import remembered
from grms.learning.queueing.outcome import (
    LEARNED,
    Tuning,
    best_constant,
    compare,
    gain_words,
    group_order,
    group_words,
    value_words,
)
from grms.learning.queueing.page import CHOICES, CONVERGENCE, PAGE, pictures, render
from grms.learning.queueing.problem import (
    TuneOptions,
    Workload,
    WorkloadError,
    problem,
    read_workloads,
    shared_order,
)
from grms.learning.queueing.slurm import slurm_document, slurm_text, user_shares, users_csv
from grms.learning.training import Session, TrainingResult, check_folder, program
from lrms_sim.report.templates import alone
from lrms_sim.scheduling.selection import Policy
from lrms_sim.scheduling.strategy_files import StrategyFile, save_strategy
from lrms_sim.util.files import write_text
from lrms_sim.util.provenance import source_commit

STRATEGY: Final = "strategy.json"
FIGURES: Final = "tuning.json"
USERS: Final = "users.csv"


def run_tuning(
    options: TuneOptions, console: Console, workloads: Sequence[Workload] | None = None
) -> Tuning:
    """Tunes, compares with the constants, and writes all files; reads `workloads` if not given.

    Raises:
        TrainingInterrupted: Ctrl-C; a checkpoint is there if a generation was done.
        WorkloadError: a log cannot be tuned on.
        CheckpointError: a checkpoint is in the way, missing, or of another run.
        ExecutorError: the workers cannot be reached, or died.
        OSError: a file cannot be read or written.
    """
    folder = options.folder
    check_folder(folder, resume=options.resume)
    if workloads is None:
        workloads = read_workloads(options.logs, options.workloads)
    for text in (text for one in workloads for text in one.warnings):
        console.print(f"warning: {text}", markup=False, highlight=False, soft_wrap=True)
    cases = [one.training for one in workloads]
    encoding, search = problem(options, shared_order(cases))
    if options.remember:
        search = Recorded(search)
    _check_calendars(encoding, workloads)
    fitness = TuningFitness(cases, encoding, options.combination)
    description = {
        "strategy": options.words,
        "fitness": _fitness_document(options, encoding, workloads),
    }
    session = Session(folder, description, options.limits_in_force, options.workers, options.resume)
    result = session.run(search, fitness, console)
    tuning = _tuning(options, fitness, workloads, result)
    if options.remember:
        tuning = replace(tuning, judged=remembered(session.checkpoint))
    _write(folder, tuning)
    return tuning


def _check_calendars(encoding: Encoding, workloads: Sequence[Workload]) -> None:
    if not isinstance(encoding, CriterionEncoding) or len(encoding.kinds) == 1:
        return
    for one in workloads:
        if one.training.calendar is None:
            raise WorkloadError(
                f"{one.name}: criteria differ from situation to situation, and its header does not "
                f"tell the site's local time: it needs UnixStartTime, and TimeZoneString or TimeZone"
            )


def _fitness_document(
    options: TuneOptions, encoding: Encoding, workloads: Sequence[Workload]
) -> dict[str, Any]:
    return {
        **encoding.words,
        "combination": options.combination,
        "theta": list(options.workloads.theta),
        "workloads": [
            {
                **one.provenance,
                "groups_sha256": hashlib.sha256(one.training.trial.groups.tobytes()).hexdigest(),
            }
            for one in workloads
        ],
    }


def _tuning(
    options: TuneOptions,
    fitness: TuningFitness,
    workloads: Sequence[Workload],
    result: TrainingResult,
) -> Tuning:
    best = result.best
    policy: Policy = fitness.encoding.decode(best.genome)
    comparisons = tuple(compare(one, policy) for one in workloads)
    provenance: dict[str, Any] = {
        **program(source_commit()),
        "search": options.words,
        **_fitness_document(options, fitness.encoding, workloads),
        "value": best.evaluation.value,
        "easy_value": fitness.easy_value,
        **result.noted,
        "gains_percent": [
            {
                "log": one.workload.name,
                **{
                    f"{word}: {judged.name}": round(judged.gain, 4)
                    for word, _, found in one.parts
                    for judged in (best_constant(found), found[-1])
                    if judged.objectives is not None
                },
            }
            for one in comparisons
        ],
    }
    unit = "f, s" if options.combination == "sum" else "f / f of EASY"
    # Of what was given up nothing was measured.
    _, visits, passes = best.evaluation.figures or ((), (), ())
    return Tuning(policy, provenance, comparisons, result, fitness.easy_value, unit, passes, visits)


def _write(folder: Path, tuning: Tuning) -> None:
    drawings = pictures(tuning)
    for name, drawing in zip((CONVERGENCE, CHOICES), drawings, strict=False):
        write_text(folder / name, alone(drawing))
    trial = tuning.comparisons[0].workload.training.trial
    write_text(folder / USERS, users_csv(user_shares(trial.jobs, trial.groups)))
    write_text(folder / FIGURES, json.dumps(tuning.to_document(), indent=1) + "\n")
    write_text(folder / PAGE, render(tuning, drawings, STRATEGY))
    # Written last: where the strategy is, the files that explain it are complete.
    save_strategy(StrategyFile(tuning.policy, tuning.provenance), folder / STRATEGY)


def print_tuning(console: Console, options: TuneOptions, tuning: Tuning) -> None:
    """Prints the figures, what to beware of, and where the files are."""
    for comparison in tuning.comparisons:
        unseen = comparison.unseen or (None,) * len(comparison.training)
        table = Table(
            "policy",
            title=f"{comparison.workload.name}: f, and its gain over EASY",
            title_justify="left",
        )
        for heading in ("training, s", "gain", "unseen, s", "gain"):
            table.add_column(heading, justify="right")
        for seen, other in zip(comparison.training, unseen, strict=True):
            cells = (value_words(seen), gain_words(seen))
            more = ("", "") if other is None else (value_words(other), gain_words(other))
            style = "bold" if seen.name == LEARNED else ""
            table.add_row(Text(seen.name), *cells, *more, style=style)
        console.print(table)
        word, case, judged = comparison.parts[-1]
        groups = Table(
            "policy", title=f"AWRT of the groups, gain over EASY in percent, {word} jobs",
            title_justify="left",
        )  # fmt: skip
        for group in range(1, 6):
            groups.add_column(f"group {group}", justify="right")
        for one in (best_constant(judged), judged[-1]):
            groups.add_row(Text(one.name), *group_words(one, case))
        console.print(groups)
    result, folder = tuning.result, options.folder
    for line in (
        *(f"warning: {text}" for text in tuning.warnings),
        f"Stopped: {result.reason}; {result.evaluations:,} evaluations in {result.elapsed_s:,.1f} s",
        f"Strategy: {folder / STRATEGY}",
        f"Page:     {folder / PAGE}",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def figures_document(tuning: Tuning, *, slurm: bool) -> dict[str, Any]:
    """Returns all figures as JSON has them, with Slurm's settings where they are asked for."""
    document = tuning.to_document()
    if slurm:
        case = tuning.comparisons[0].workload.training
        users = user_shares(case.trial.jobs, case.trial.groups)
        document["slurm"] = slurm_document(group_order(case), users)
    return document


def slurm_settings(tuning: Tuning) -> str:
    """Returns Slurm settings for the constant group order of the first log.

    Slurm's priorities may not be able to express the learned policy; they can express the order by
    weight over work, whose gain the table shows.
    """
    comparison = tuning.comparisons[0]
    case = comparison.workload.training
    order = group_order(case)
    name = next(
        one.name
        for one in comparison.training
        if one.name.startswith("easy-group")
        and one.name.removeprefix("easy-group") in _suffixes(order.groups)
    )
    gains = {
        f"on {word} jobs": judged.gain
        for word, _, found in comparison.parts
        for judged in found
        if judged.name == name and judged.objectives is not None
    }
    return slurm_text(order, user_shares(case.trial.jobs, case.trial.groups), gains)


def _suffixes(groups: Sequence[int]) -> tuple[str, ...]:
    digits = "".join(map(str, groups))
    return ("",) if digits == "12345" else (f"-{digits}",)
