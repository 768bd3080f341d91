"""The command `grms tune`."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grms.learning.run_options import (
    end_interrupted,
    limit_options,
    limits_of,
    worker_options,
    workers_of,
)
from lrms_sim.commandline.days import two_days
from lrms_sim.commandline.log_options import PROCESSORS, preparation_options
from lrms_sim.commandline.running import SEED_MAX, open_console
from lrms_sim.commandline.values import ParamType
from lrms_sim.process_guard import require
from lrms_sim.shown.option import json_option, print_json
from lrms_sim.trace_folders import located

if TYPE_CHECKING:
    from grms.learning.local_strategies.problem import TuneOptions


class _Days(ParamType[tuple[float | None, float | None]]):
    """Days as people write them: `0:150`, `150:`, `:150`."""

    name = "A:B"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float | None, float | None]:
        if isinstance(value, tuple):
            return value
        try:
            return two_days(str(value))
        except click.BadParameter as error:
            self.fail(error.message, param, ctx)


class _Theta(ParamType[tuple[float, ...]]):
    """Five weights as people write them: `10,4,0,0,0`."""

    name = "weights"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        from lrms_sim.objectives import check_theta  # noqa: PLC0415  # slow to import

        if isinstance(value, tuple):
            return value
        try:
            return check_theta([float(part) for part in str(value).split(",")])
        except ValueError as error:
            return self.fail(f"{value!r}: {error}; write five, as 10,4,0,0,0", param, ctx)


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
@click.option(
    "--method",
    default="f2",
    show_default=True,
    metavar="NAME",
    help="f1 to f4, or one for each situation as f1,f2,f3; iterative; symbiotic.",
)
@click.option(
    "--algorithm",
    type=click.Choice(["fcfs", "easy"]),
    default="fcfs",
    show_default=True,
    help="What is done with the queue in a criterion's order; fcfs is the paper's Greedy.",
)
@click.option(
    "--calendar",
    type=click.Choice(["week", "hours"]),
    default="week",
    show_default=True,
    help="Situations: weekend, day and night; or the 24 hours of a day.",
)
@click.option(
    "--theta",
    type=_Theta(),
    default="10,4,0,0,0",
    show_default=True,
    help="Weight of each user group's AWRT in what is made small.",
)
@click.option("--processors", type=PROCESSORS, help="[default: MaxProcs of the log's header]")
@click.option("--scale-to", type=PROCESSORS, metavar="N", help="Scale the workload to N.")
@click.option("--scale-factor", type=float, metavar="F", help="[default: the ratio of sizes]")
@click.option("--scale-seed", type=click.IntRange(0, SEED_MAX), default=1, show_default=True)
@click.option("--train-days", type=_Days(), help="Tune on jobs of these days.  [default: all]")
@click.option("--first-jobs", type=click.IntRange(1), metavar="N", help="The first N of those.")
@click.option("--unseen-days", type=_Days(), help="Judge by these.  [default: all later jobs]")
@click.option(
    "--combination",
    type=click.Choice(["sum", "relative"]),
    default="sum",
    show_default=True,
    help="Several logs: the sum of f, or the mean of f over EASY's.",
)
@click.option(
    "--strategy",
    "search",
    type=click.Choice(["two-parents", "self-adaptive", "cma"]),
    default="two-parents",
    show_default=True,
    help="What searches the parameters of a criterion; two-parents is the paper's.",
)
@click.option(
    "--selection",
    type=click.Choice(["plus", "comma"]),
    default="plus",
    show_default=True,
    help="Symbiotic: parents survive with their children, or for one generation.",
)
@click.option(
    "--start",
    type=click.Choice(["constant", "random"]),
    default="constant",
    show_default=True,
    help="With constants among the first individuals, or not (the paper); of symbiotic, half of the first "
    "rules recommend what the best constant does.",
)
@click.option(
    "--standard",
    default="best",
    show_default=True,
    metavar="NAME",
    help="Strategy that iterative begins with, and that states it never met keep; best: that with the "
    "least value of all it chooses among. The paper's is fcfs-arrival.",
)
@click.option(
    "--choices",
    type=click.Choice(["paper", "smith", "orders"]),
    default="paper",
    show_default=True,
    help="Of tables and rules: 13 strategies; with groups by weight over work; orders for EASY.",
)
@limit_options(generations="100; symbiotic: 30", target="value")
@click.option("--parents", type=int, help="μ  [default: 15; symbiotic: 50]")
@click.option("--offspring", type=int, help="λ  [default: 105; symbiotic: 350]")
@worker_options()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for strategy, figures and page.  [default: out/tune-LOG-ALGORITHM-METHOD]",
)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in that folder.")
@json_option("grms-tune", "grms.shown:TuningShown")
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
    from grms.learning.local_strategies.command import (  # noqa: PLC0415  # slow to import
        figures_document,
        print_tuning,
        run_tuning,
        slurm_settings,
    )
    from grms.learning.session import TrainingInterrupted  # noqa: PLC0415  # same

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
    from grms.learning.local_strategies.problem import TuneOptions  # noqa: PLC0415  # same
    from grms.learning.local_strategies.workloads import WorkloadOptions  # noqa: PLC0415  # same
    from lrms_sim.preparation import PreparationOptions  # noqa: PLC0415  # same

    if chosen["scale_factor"] is not None and chosen["scale_to"] is None:
        raise click.UsageError("--scale-factor goes with --scale-to")
    numbers = {key: chosen[key] for key in ("parents", "offspring") if chosen[key] is not None}
    taken = ("method", "algorithm", "search", "start", "standard", "choices", "combination", "seed")
    try:
        symbiotic = chosen["method"] == "symbiotic"
        return TuneOptions(
            logs=chosen["logs"],
            workloads=WorkloadOptions(
                processors=chosen["processors"],
                preparation=PreparationOptions(
                    **{each.name: chosen[each.name] for each in fields(PreparationOptions)}
                ),
                scale_to=chosen["scale_to"],
                scale_factor=chosen["scale_factor"],
                scale_seed=chosen["scale_seed"],
                training=chosen["train_days"] or (None, None),
                first_jobs=chosen["first_jobs"],
                unseen=chosen["unseen_days"],
                theta=chosen["theta"],
                calendar=chosen["calendar"],
            ),
            settings=StrategySettings(**({"parents": 15, "offspring": 105} | numbers)),
            symbiotic=SymbioticSettings(
                plus=chosen["selection"] == "plus", **(numbers if symbiotic else {})
            ),
            limits=limits_of(chosen),
            workers=workers_of(chosen),
            output=chosen["output"],
            resume=chosen["resume"],
            **{name: chosen[name] for name in taken},
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
