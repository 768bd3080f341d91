"""The command `grms`.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from lrms_sim.cli.running import SectionedGroup, open_console, run_group
from lrms_sim.util.values import FINITE
from lrms_sim.util.version import __version__


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


cli.add_lazily(
    {
        "submit": "grms.cli.submit_cli",
        **dict.fromkeys(
            ("jobs", "cancel", "watch", "take-back", "resubmit", "write-off"), "grms.cli.jobs_cli"
        ),
        **dict.fromkeys(
            ("serve", "validate", "status", "drain", "reload", "dashboard", "journal"),
            "grms.cli.site_cli",
        ),
        **dict.fromkeys(("logs", "fetch"), "grms.cli.results_cli"),
        **dict.fromkeys(("exchange", "advise"), "grms.cli.accounting_cli"),
        **dict.fromkeys(("partners", "guests"), "grms.cli.partners_cli"),
        "deputy": "grms.cli.deputy_cli",
        "usage": "grms.cli.usage_cli",
        "pilots": "grms.cli.pilots_cli",
        "pki": "grms.cli.pki_cli",
        "relay": "grms.cli.relay_cli",
        "lrms": "grms.cli.lrms_cli",
        "top": "grms.cli.top_cli",
        "train": "grms.cli.train_cli",
        "tune": "grms.cli.tune_cli",
        "examples": "lrms_sim.cli.examples",
    }
)


@cli.group()
def policy() -> None:
    """Look at rule bases."""


@policy.command("show")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--nwp-max", type=FINITE, default=5.0, show_default=True, help="Width of the map.")
def policy_show(file: Path, *, nwp_max: float) -> None:
    """Show a rule base: its rules, and a map of what it decides."""
    from grms.policy.files import load_rule_base  # noqa: PLC0415  # see the module's docstring
    from grms.policy.view import print_rule_base  # noqa: PLC0415  # same

    if nwp_max <= 0:
        raise click.UsageError(f"--nwp-max is {nwp_max}; it must be more than 0")
    print_rule_base(open_console(), load_rule_base(file), nwp_max)


cli.set_sections(
    {
        "Jobs": ("submit", "status", "jobs", "watch", "logs", "fetch", "cancel", "deputy"),
        "A site": (
            "serve",
            "validate",
            "partners",
            "guests",
            "usage",
            "pilots",
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
            "relay",
            "lrms",
            "journal",
            "examples",
        ),
        "Learning, without a daemon": ("train", "tune", "policy"),
    }
)


def run_command(arguments: Sequence[str]) -> int:
    """Runs the command line and returns the exit status: 0, or one of the `EXIT_…` values."""
    return run_group(
        cli,
        "grms",
        arguments,
        no_memory="use fewer workers or shorter windows",
        obj=tuple(arguments),
    )
