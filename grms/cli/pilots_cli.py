"""The command of `grms` for pilots: which there are, and how much of what they hold is used.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from grms.cli.site_connection import client_of, site_option
from grms.daemon.timeout_option import timeout_option
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import moment, printable

if TYPE_CHECKING:
    from grms.v1 import operator_pb2

_COLUMNS = "{:<16} {:<9} {:<12} {:>5} {:>5}  {:<23} {:>9} {:>9} {:>6}"


@click.command(short_help="Show the site's pilots, and how much of what they hold is used.")
@site_option
@timeout_option
@json_option("grms-pilots", "grms.cli.output_models:PilotsOutput")
def pilots(socket: Path, *, timeout_s: float, as_json: bool) -> None:
    """Show the jobs whose processors run programs in reservations; for operators.

    A pilot is asked for, then open, and over when its job has ended. HELD and USED are processor hours of
    the job, and of the programs in it: the rest was not reserved, or free again as a program had ended
    early. Under it: where it is, and why it takes no more programs.

    The last line sums up all pilots that are over.
    """
    with client_of(socket, timeout_s) as site:
        known = site.pilots()
    if as_json:
        from grms.daemon.messages import of_message  # noqa: PLC0415  # see the module's docstring

        print_json("grms-pilots", of_message(known))
    else:
        _show(known)


def _show(known: "operator_pb2.PilotsResponse") -> None:
    click.echo(
        _COLUMNS.format(
            *("RESOURCE", "STATE", "JOB", "PROCS", "PROGS", "UNTIL", "HELD/h", "USED/h", "USE")
        )
    )
    for each in known.pilots:
        until = moment(each.until_s, wall=True) if each.HasField("until_s") else "-"
        use = _use(each.held, each.used)
        click.echo(
            _COLUMNS.format(
                printable(each.resource_id),
                each.state,
                each.job_id or "-",
                each.processors,
                each.programs,
                until,
                *use,
            )
        )
        silent = each.state in {"open", "draining"} and not each.connected
        notes = [each.host, "silent" if silent else "", printable(each.reason)]
        if any(notes):
            click.echo(f"  {': '.join(filter(None, notes))}")
    held, used, share = _use(known.held, known.used)
    click.echo(f"over so far: {held} processor hours held, {used} used ({share})")


def _use(held: float, used: float) -> tuple[str, str, str]:
    share = f"{100 * used / held:.0f} %" if held > 0 else "-"
    return f"{held / 3600:.2f}", f"{used / 3600:.2f}", share
