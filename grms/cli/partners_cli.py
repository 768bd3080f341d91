"""The command of `grms` for partners: what the site knows of them, and a pardon.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grms.cli.site_connection import client_of, site_option
from grms.daemon.timeout_option import timeout_option
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from grms.v1 import operator_pb2

_COLUMNS = "{:<24} {:>7} {:<4} {:>8} {:>8} {:>6} {:>6} {:>9}"


@click.command(short_help="Show what the site knows of its partners; pardon one.")
@click.argument("words", nargs=-1, metavar="[pardon NAME]")
@site_option
@timeout_option
@json_option("grms-partners", "grms.cli.output_models:PartnersOutput")
def partners(words: tuple[str, ...], socket: Path, *, timeout_s: float, as_json: bool) -> None:
    """Show what the site knows of its partners; for operators.

    Under each one's figures: where it is, how it has kept its promises where it is held to them, and
    what is in the way.

    With `pardon NAME` the suspension of a partner that has broken its promises ends, and its breaches
    are forgotten. Its credit stays gone.
    """
    if words and (len(words) != 2 or words[0] != "pardon" or as_json):
        raise click.UsageError("there is: partners [--json], and partners pardon NAME")
    with client_of(socket, timeout_s) as site:
        if words:
            name = words[1]
            breaches = site.pardon(name)
            forgotten = "1 breach is" if breaches == 1 else f"{breaches} breaches are"
            click.echo(f"{printable(name)}: {forgotten} forgotten")
            return
        known = site.partners()
    if as_json:
        from grms.daemon.messages import of_message  # noqa: PLC0415  # see the module's docstring

        print_json("grms-partners", {"partners": [of_message(partner) for partner in known]})
    else:
        _show(known)


def _show(known: "Sequence[operator_pb2.PartnerStatus]") -> None:
    click.echo(
        _COLUMNS.format("PARTNER", "PROCS", "UP", "OFFERED", "ACCEPTED", "OPEN", "GUESTS", "AWRT/s")
    )
    for partner in known:
        click.echo(
            _COLUMNS.format(
                partner.name,
                partner.processors or "-",
                "lost" if partner.lost else "yes" if partner.reachable else "no",
                partner.offered,
                partner.accepted,
                partner.open,
                partner.guest_open,
                f"{partner.awrt_s:.0f}",
            )
        )
        click.echo(f"  {partner.endpoint or 'no address'}")
        if partner.credit or partner.breaches or partner.overdue:
            click.echo(
                f"  promise: broken {partner.breaches}×, overdue {partner.overdue}, "
                f"{partner.credit / 3600:.1f} processor hours of credit"
            )
        for owner in partner.guest_owners:
            more = f" and {len(owner.jobs) - 1} more" if len(owner.jobs) > 1 else ""
            whose = printable(owner.pseudonym) or "a user whom it has not named"
            click.echo(f"  guests of {whose}: {printable(owner.jobs[0])}{more}")
        if partner.problem:
            click.echo(
                textwrap.fill(
                    printable(partner.problem),
                    79,
                    initial_indent="  ",
                    subsequent_indent="    ",
                    break_on_hyphens=False,
                )
            )
