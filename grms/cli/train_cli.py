"""The command `grms train`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from grms.learning.evolution.termination import Limits
from grms.learning.transfer.options import FEATURE_WORDS, RunOptions
from lrms_sim.cli.running import open_console
from lrms_sim.util.executors import Workers, workers_of
from lrms_sim.util.option_fields import FINITE, field_options, taken
from lrms_sim.util.process_guard import require

if TYPE_CHECKING:
    from grms.learning.transfer.command import TrainOptions

ARCHIVE = 2
"""Default sets of an archive: the constraints alone, and the best so far."""


@click.command()
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@field_options(RunOptions, ("site", "partners", "together", "rails"))
@click.option(
    "--feature",
    "features",
    multiple=True,
    type=click.Choice(FEATURE_WORDS),
    metavar="WORD",
    help=f"What rules use besides queue and width: {', '.join(FEATURE_WORDS)}.  [default: with constraints "
    "requested-time and starts-now, else none]",
)
@click.option(
    "--self-play",
    is_flag=True,
    help="The partners evolve as well, and all meet in one replay; needs --rails.",
)
@click.option(
    "--archive",
    type=int,
    help=f"Sets of policies that each meets in self-play.  [default: {ARCHIVE}]",
)
@field_options(RunOptions, ("unseen", "objective", "strategy", "seed"))
@field_options(
    Limits,
    generations={"help": "Stop after so many.  [default: 150]"},
    target={"help": "Stop at this fitness."},
)
@click.option("--rules", type=int, default=10, show_default=True, help="Rules in a rule base.")
@click.option("--parents", type=int, default=13, show_default=True, help="μ")
@click.option("--offspring", type=int, default=91, show_default=True, help="λ")
@click.option("--nwp-step", type=FINITE, default=0.01, show_default=True, help="Mutation of NWP.")
@click.option("--njp-step", type=FINITE, default=0.1, show_default=True, help="Mutation of NJP.")
@click.option("--flip", type=FINITE, default=0.1, show_default=True, help="Chance of a flip.")
@field_options(Workers)
@field_options(RunOptions, ("output", "resume"))
def train(**chosen: Any) -> None:
    """Evolve a site's transfer policy on the workloads of a scenario.

    A scenario is a TOML file, or the name of one that comes with the program; of several the
    results are averaged. Partners use the policies that the scenario gives them.

    \b
    As in the paper, for one partner:
      grms train three-sites-6 --site KTH --partner CTC

    \b
    Within constraints, all sites evolve, judged on months not learned from:
      grms train spring.toml --site ours --partner theirs --rails fair-exchange \\
        --self-play --objective no-loser --unseen summer.toml

    Use what was learned within constraints only where it beats the constraints alone on unseen workloads, with
    several --seed: the last lines say whether it does. docs/training.md explains the rest.
    """  # noqa: D301  # click's mark for a block that is not wrapped
    from grms.learning.training import TrainingInterrupted, end_interrupted  # noqa: PLC0415  # see `grms.cli.main`

    options = _train_options(chosen)
    require("matplotlib")  # for the pictures at the end
    if options.strategy == "cma":
        require("cma")
    try:
        print_it = _run(options)
    except TrainingInterrupted as interruption:
        end_interrupted(interruption)
    print_it()


def _run(options: "TrainOptions") -> Callable[[], None]:
    """Trains, and returns what prints the outcome."""
    progress = open_console(stderr=True)
    from grms.learning.transfer.command import (  # noqa: PLC0415  # see `grms.cli.main`
        print_outcome,
        print_self_play,
        run_self_play,
        run_training,
    )

    if options.archive is not None:
        played = run_self_play(options, progress)
        return lambda: print_self_play(open_console(), options, played)
    trained = run_training(options, progress)
    return lambda: print_outcome(open_console(), options, trained)


def _train_options(chosen: dict[str, Any]) -> "TrainOptions":
    from grms.learning.evolution.strategies import StrategySettings  # noqa: PLC0415  # see `grms.cli.main`
    from grms.learning.transfer.command import TrainOptions  # noqa: PLC0415  # same
    from grms.learning.transfer.encoding import RuleBaseSettings  # noqa: PLC0415  # same

    if chosen["archive"] is not None and not chosen["self_play"]:
        raise click.UsageError("--archive goes with --self-play")
    if "none" in chosen["features"] and len(set(chosen["features"])) > 1:
        raise click.UsageError(
            "--feature none means no further feature; leave it or the others out"
        )
    archive = ARCHIVE if chosen["archive"] is None else chosen["archive"]
    try:
        return TrainOptions(
            rules=RuleBaseSettings(
                rules=chosen["rules"],
                nwp_step=chosen["nwp_step"],
                njp_step=chosen["njp_step"],
                further=_further(chosen["features"], chosen["rails"]),
            ),
            settings=StrategySettings(
                parents=chosen["parents"],
                offspring=chosen["offspring"],
                flip_probability=chosen["flip"],
            ),
            workers=workers_of(chosen),
            limits=Limits(**taken(Limits, chosen)),
            archive=archive if chosen["self_play"] else None,
            **taken(RunOptions, chosen),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _further(words: tuple[str, ...], rails: str) -> tuple[str, ...]:
    """Returns the further features by their names, or the default."""
    if words:
        return tuple(word.replace("-", "_") for word in words if word != "none")
    return () if rails == "none" else ("requested_time", "starts_now")
