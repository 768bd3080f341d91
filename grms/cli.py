"""The command `grms`.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grms.care_cli import COMMANDS as CARE_COMMANDS
from grms.jobs_cli import COMMANDS as JOBS_COMMANDS
from grms.lrms_cli import lrms
from grms.partners_cli import COMMANDS as PARTNERS_COMMANDS
from grms.pki.cli import pki
from grms.results_cli import COMMANDS as RESULTS_COMMANDS
from grms.site_cli import COMMANDS as SITE_COMMANDS
from grms.submit_cli import submit
from grms.top_cli import top
from grms.tune_cli import tune
from lrms_sim.commandline.running import EXIT_INTERRUPTED, SEED_MAX, open_console, run_group
from lrms_sim.commandline.sections import SectionedGroup
from lrms_sim.process_guard import require
from lrms_sim.version import __version__

if TYPE_CHECKING:
    from grms.learning.rule_bases.command import TrainOptions


@click.group(cls=SectionedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="grms")
def cli() -> None:
    """Run a site of a federation, hand jobs to it, and learn how it exchanges them.

    \b
    A site, and a job that runs there or at a partner's (docs/operating.md):
      grms serve site.toml &
      export HANSE_SOCKET=site.sock
      grms submit --processors 4 --time 3600 --script job.sh --wait

    \b
    Two sites on one machine, step by step: docs/tutorial.md.
    """  # noqa: D301  # click's mark for a block that is not wrapped


for command in (
    pki,
    tune,
    top,
    lrms,
    submit,
    *SITE_COMMANDS,
    *JOBS_COMMANDS,
    *RESULTS_COMMANDS,
    *PARTNERS_COMMANDS,
    *CARE_COMMANDS,
):
    cli.add_command(command)


@cli.command()
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option("--site", required=True, help="Whose transfer policy evolves.")
@click.option(
    "--partner",
    "partners",
    required=True,
    multiple=True,
    help="Whom the policy is for; several are averaged, each in a replay of its own.",
)
@click.option("--together", is_flag=True, help="One replay with all partners instead.")
@click.option(
    "--objective",
    type=click.Choice(["egoistic", "no-loser"]),
    default="egoistic",
    show_default=True,
    help="The site's AWRT alone, or so that no partner falls behind being alone.",
)
@click.option(
    "--strategy",
    type=click.Choice(["paper", "self-adaptive", "two-parents", "cma"]),
    default="paper",
    show_default=True,
)
@click.option("--seed", type=click.IntRange(0, SEED_MAX), default=1, show_default=True)
@click.option("--generations", type=int, help="Stop after so many.  [default: 150]")
@click.option("--evaluations", type=int, help="Stop after so many.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Stop after so much time.")
@click.option("--stagnation", type=int, help="Stop after so many generations without gain.")
@click.option("--target", type=float, help="Stop at this fitness.")
@click.option("--rules", type=int, default=10, show_default=True, help="Rules in a rule base.")
@click.option("--parents", type=int, default=13, show_default=True, help="μ")
@click.option("--offspring", type=int, default=91, show_default=True, help="λ")
@click.option("--nwp-step", type=float, default=0.01, show_default=True, help="Mutation of NWP.")
@click.option("--njp-step", type=float, default=0.1, show_default=True, help="Mutation of NJP.")
@click.option("--flip", type=float, default=0.1, show_default=True, help="Chance of a flip.")
@click.option(
    "--executor",
    type=click.Choice(["threads", "processes", "dask"]),
    default="threads",
    show_default=True,
    help="Who evaluates; the result is the same.",
)
@click.option("--workers", type=int, help="How many.  [default: one for each processor]")
@click.option("--scheduler", metavar="ADDRESS", help="Of a dask scheduler, tcp://HOST:PORT.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for rule base, pictures and checkpoint.  [default: out/train-SITE-for-PARTNER]",
)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in that folder.")
def train(scenarios: tuple[str, ...], **chosen: Any) -> None:
    """Evolve a site's transfer policy on the workloads of a scenario.

    A scenario is a TOML file, or the name of one that comes with the program; of several the
    results are averaged. Partners use the policies that the scenario gives them.
    """
    from grms.learning.rule_bases.command import (  # noqa: PLC0415  # see the module's docstring
        print_outcome,
        run_training,
    )
    from grms.learning.session import (  # noqa: PLC0415  # same
        TrainingInterrupted,
        command_to_resume,
    )

    options = _train_options(scenarios, chosen)
    require("matplotlib")  # for the pictures at the end
    if chosen["strategy"] == "cma":
        require("cma")
    try:
        outcome = run_training(options, open_console(stderr=True))
    except TrainingInterrupted as interruption:
        click.echo(f"\n{interruption}", err=True)
        if interruption.resumable:
            arguments = click.get_current_context().obj or ()
            again = shlex.join(["grms", *command_to_resume(arguments)])
            click.echo(f"go on with: {again}", err=True)
        click.get_current_context().exit(EXIT_INTERRUPTED)
    print_outcome(open_console(), options, outcome)


def _train_options(scenarios: tuple[str, ...], chosen: dict[str, Any]) -> "TrainOptions":
    from grms.learning.evolution.strategies import StrategySettings  # noqa: PLC0415  # same
    from grms.learning.rule_bases.command import TrainOptions  # noqa: PLC0415  # see the docstring
    from grms.learning.rule_bases.encoding import RuleBaseSettings  # noqa: PLC0415  # same
    from grms.learning.session import Limits, Workers  # noqa: PLC0415  # same

    if chosen["scheduler"] is not None and chosen["executor"] != "dask":
        raise click.UsageError("--scheduler goes with --executor dask")
    taken = ("site", "partners", "together", "strategy", "seed")
    try:
        return TrainOptions(
            scenarios=scenarios,
            objective=chosen["objective"].replace("-", "_"),
            rules=RuleBaseSettings(
                rules=chosen["rules"], nwp_step=chosen["nwp_step"], njp_step=chosen["njp_step"]
            ),
            settings=StrategySettings(
                parents=chosen["parents"],
                offspring=chosen["offspring"],
                flip_probability=chosen["flip"],
            ),
            workers=Workers(chosen["executor"], chosen["workers"], chosen["scheduler"]),
            limits=Limits(
                chosen["generations"],
                chosen["evaluations"],
                chosen["time_limit"],
                chosen["stagnation"],
                chosen["target"],
            ),
            output=chosen["output"],
            resume=chosen["resume"],
            **{name: chosen[name] for name in taken},
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@cli.group()
def policy() -> None:
    """Look at rule bases."""


@policy.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--nwp-max", type=float, default=5.0, show_default=True, help="Width of the map.")
def policy_show(file: Path, *, nwp_max: float) -> None:
    """Show a rule base: its rules, and a map of what it decides."""
    from grms.policy.files import load_rule_base  # noqa: PLC0415  # see the module's docstring
    from grms.policy.view import print_rule_base  # noqa: PLC0415  # same

    if not 0 < nwp_max < float("inf"):
        raise click.UsageError(f"--nwp-max is {nwp_max}; it must be more than 0")
    print_rule_base(open_console(), load_rule_base(file), nwp_max)


cli.set_sections(
    {
        "Jobs": ("submit", "status", "jobs", "watch", "logs", "fetch", "cancel"),
        "A site": (
            "serve",
            "partners",
            "exchange",
            "advise",
            "drain",
            "reload",
            "take-back",
            "resubmit",
            "write-off",
            "top",
            "dashboard",
            "pki",
            "lrms",
        ),
        "Learning, without a daemon": ("train", "tune", "policy"),
    }
)


def run_command(arguments: Sequence[str]) -> int:
    """Runs the command line.

    Args:
        arguments: what follows the command's name.

    Returns:
        The status for the process: 0, or one of the `EXIT_…` values.
    """
    return run_group(
        cli,
        "grms",
        arguments,
        user_errors=_user_errors,
        no_memory="use fewer workers or shorter windows",
        obj=tuple(arguments),
    )


def _user_errors() -> tuple[type[Exception], ...]:
    """Returns the errors that a user can put right; their text says what, where and how."""
    try:
        return _all_user_errors()
    except ModuleNotFoundError:
        # Of a part that is not installed nothing can have come; an `OSError` and a file's mistakes can.
        from grms.learning.local_strategies.workloads import WorkloadError  # noqa: PLC0415  # same
        from grms.learning.rule_bases.source import SourceError  # noqa: PLC0415  # same
        from grms.policy.files import RuleBaseError  # noqa: PLC0415  # same

        return (RuleBaseError, SourceError, WorkloadError, OSError)


def _all_user_errors() -> tuple[type[Exception], ...]:
    from grms.client import SiteError  # noqa: PLC0415  # same
    from grms.kit.unix_sockets import SocketInUseError  # noqa: PLC0415  # same
    from grms.learning.checkpoint import CheckpointError  # noqa: PLC0415  # see the docstring
    from grms.learning.executors import ExecutorError  # noqa: PLC0415  # same
    from grms.learning.local_strategies.workloads import WorkloadError  # noqa: PLC0415  # same
    from grms.learning.rule_bases.source import SourceError  # noqa: PLC0415  # same
    from grms.lrms.port import LrmsError  # noqa: PLC0415  # same
    from grms.pki.certificates import PkiError  # noqa: PLC0415  # same
    from grms.policy.files import RuleBaseError  # noqa: PLC0415  # same
    from grms.site.configuration.files import ConfigError  # noqa: PLC0415  # same
    from grms.site.engine.journal import JournalError  # noqa: PLC0415  # same

    training = (CheckpointError, ExecutorError, RuleBaseError, SourceError, WorkloadError)
    serving = (ConfigError, JournalError, LrmsError, PkiError, SiteError, SocketInUseError)
    return (*training, *serving, OSError)
