"""The command `grms tune`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grms.learning.evolution.termination import Limits
from grms.learning.queueing.options import SearchOptions, WorkloadOptions
from lrms_sim.cli.log_options import preparation_options
from lrms_sim.cli.running import open_console
from lrms_sim.util.executors import Workers, workers_of
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.option_fields import field_options, taken
from lrms_sim.util.process_guard import require
from lrms_sim.util.trace_folders import located
from lrms_sim.workload.preparation_report import PreparationOptions

if TYPE_CHECKING:
    from grms.learning.queueing.problem import TuneOptions


def _paths(_: click.Context, __: click.Parameter, value: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(map(located, value))


@click.command()
@click.argument(
    "logs",
    nargs=-1,
    required=True,
    metavar="LOG...",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_paths,
)
@field_options(SearchOptions, ("method", "algorithm"))
@field_options(WorkloadOptions)
@field_options(SearchOptions, ("combination", "search"))
@click.option(
    "--selection",
    type=click.Choice(["plus", "comma"]),
    default="plus",
    show_default=True,
    help="Symbiotic: parents survive with their children, or for one generation.",
)
@field_options(SearchOptions, ("start", "standard", "choices", "seed"))
@field_options(
    Limits,
    generations={"help": "Stop after so many.  [default: 100; symbiotic: 30]"},
    target={"help": "Stop at this value."},
)
@click.option("--parents", type=int, help="μ  [default: 15; symbiotic: 50]")
@click.option("--offspring", type=int, help="λ  [default: 105; symbiotic: 350]")
@field_options(Workers)
@field_options(SearchOptions, ("output", "resume"))
@json_option("grms-tune", "grms.cli.output_models:TuningOutput")
@click.option("--slurm", is_flag=True, help="Print the order of groups as settings for Slurm.")
@preparation_options
def tune(*, as_json: bool, slurm: bool, **chosen: Any) -> None:
    """Tune how a batch machine orders its queue, on recorded logs.

    The objective is a weighted sum of the average weighted response times of five user groups.
    The result is compared with constants that need no learning, on the jobs it was tuned on and
    on unseen jobs; if a constant is as good, the command says so.

    \b
    Evolve a criterion on the first 150 days, judge it on the rest:
      grms tune ctc --method f3 --train-days 0:150
    The same with EASY backfilling in the order of the criterion:
      grms tune ctc --method f3 --algorithm easy --train-days 0:150
    """  # noqa: D301  # \b keeps the lines of the examples as they are
    from grms.learning.queueing.command import (  # noqa: PLC0415  # slow to import
        figures_document,
        print_tuning,
        run_tuning,
        slurm_settings,
    )
    from grms.learning.training import TrainingInterrupted, end_interrupted  # noqa: PLC0415  # same

    options = _options(chosen)
    require("matplotlib")  # for the pictures at the end
    try:
        tuning = run_tuning(options, open_console(stderr=True))
    except TrainingInterrupted as interruption:
        end_interrupted(interruption)
    if as_json:
        print_json("grms-tune", figures_document(tuning, slurm=slurm))
        return
    print_tuning(open_console(), options, tuning)
    if slurm:
        click.echo(f"\n{slurm_settings(tuning)}", nl=False)


def _options(chosen: dict[str, Any]) -> "TuneOptions":
    from grms.learning.evolution.strategies import StrategySettings  # noqa: PLC0415  # slow
    from grms.learning.evolution.symbiotic import SymbioticSettings  # noqa: PLC0415  # same
    from grms.learning.queueing.problem import TuneOptions  # noqa: PLC0415  # same

    if chosen["scale_factor"] is not None and chosen["scale_to"] is None:
        raise click.UsageError("--scale-factor goes with --scale-to")
    numbers = {key: chosen[key] for key in ("parents", "offspring") if chosen[key] is not None}
    symbiotic = numbers if chosen["method"] == "symbiotic" else {}
    try:
        return TuneOptions(
            workloads=WorkloadOptions(
                preparation=PreparationOptions(**taken(PreparationOptions, chosen)),
                **taken(WorkloadOptions, chosen),
            ),
            settings=StrategySettings(**({"parents": 15, "offspring": 105} | numbers)),
            symbiotic=SymbioticSettings(plus=chosen["selection"] == "plus", **symbiotic),
            limits=Limits(**taken(Limits, chosen)),
            workers=workers_of(chosen),
            **taken(SearchOptions, chosen),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
