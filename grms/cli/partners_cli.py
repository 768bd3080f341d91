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
from lrms_sim.util.messages import day_and_time, duration, printable, shorten

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
        click.echo(f"  {where(partner)}")
        if partner.credit or partner.breaches or partner.overdue:
            click.echo(
                f"  promise: broken {partner.breaches}×, overdue {partner.overdue}, "
                f"{partner.credit / 3600:.1f} processor hours of credit"
            )
        for what, month in (
            ("its jobs here", partner.taken_month),
            ("own jobs there", partner.given_month),
        ):
            if month.used or month.open or month.HasField("limit"):
                click.echo(f"  {month.month}: {what} {_standing_words(month)}")
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


def where(partner: "operator_pb2.PartnerStatus") -> str:
    """Returns where a partner is, and over whose connections it and this site call each other, in a line."""
    kept = "1 connection" if partner.tunnels == 1 else f"{partner.tunnels} connections"
    match partner.way:
        case "callback":
            return f"called back over {kept} of its own"
        case "relay":
            return f"met at the relay {partner.endpoint}; {kept} kept open there"
        case way:
            via = ", through the proxy" if way == "proxy" else ""
            back = f"; calls back over {kept} kept open there" if partner.tunnels else ""
            return f"{partner.endpoint or 'no address'}{via}{back}"


def _standing_words(month: "operator_pb2.MonthStanding") -> str:
    limit = f" of {month.limit / 3600:,.1f}" if month.HasField("limit") else ""
    open_ = f", {month.open / 3600:,.1f} more requested" if month.open else ""
    return f"have used {month.used / 3600:,.1f}{limit} hours{open_}"


_GUEST = "{:<20} {:<10} {:<9} {:<10} {:>5} {:<12} {:>7}"
_GUEST_WIDE = "{:<34} {:<12} {:<32} {:<10} {:>6} {:>8} {:>5} {:>9} {:<12} {:<12} {:>9}"
_USER = "{:<12} {:<33} {:>10} {:>10} {:>10}"
WIDE = 160
"""Columns of a terminal from which on jobs are shown with all that they hold."""


@click.command(short_help="Show partners' jobs here, and what their users use.")
@site_option
@timeout_option
@click.option("--partner", default="", help="Only this site's.")
@json_option("grms-guests", "grms.cli.output_models:GuestsOutput")
def guests(socket: Path, *, timeout_s: float, partner: str, as_json: bool) -> None:
    """Show partners' jobs that are here: from whom, since when, what they hold; for operators.

    A USER is known by the pseudonym that the partner has given to this site alone; `-` before the job's
    program has come. STATE is what the batch system says of it, or `place` where only a place is held, or
    `reported` where it has ended and its home does not know that yet. PROC-H is what it has used so far.

    Below, what each user's jobs have used this month of UTC, what open ones may still use, and the limit
    (`partners[].taken_hours_per_user`). The limit of all jobs of a partner is in `grms partners`.

    A terminal of 160 columns or more also shows memory, GPUs and limits of time, and pseudonyms in full.
    """
    with client_of(socket, timeout_s) as site:
        found = site.guests(partner)
    if as_json:
        from grms.daemon.messages import of_message  # noqa: PLC0415  # see the module's docstring

        print_json("grms-guests", of_message(found))
        return
    from grms.cli.job_table import columns  # noqa: PLC0415  # same

    wide = columns() >= WIDE
    head = ("JOB", "FROM", "USER", "STATE", "PROCS", "SINCE", "PROC-H")
    more = (
        "JOB",
        "FROM",
        "USER",
        "STATE",
        "PROCS",
        "MEMORY",
        "GPUS",
        "LIMIT",
        "ACCEPTED",
        "SINCE",
        "PROC-H",
    )
    click.echo(_GUEST_WIDE.format(*more) if wide else _GUEST.format(*head))
    for guest in found.guests:
        click.echo(guest_line(guest, wide=wide))
        if guest.reason:
            click.echo(f"  {printable(guest.reason)}")
    if found.users:
        click.echo()
        click.echo(
            _USER.format(
                "PARTNER", f"USER, {found.users[0].month.month}", "USED/h", "OPEN/h", "LIMIT/h"
            )
        )
    for user in found.users:
        month = user.month
        click.echo(
            _USER.format(
                shorten(printable(user.partner), 12),
                printable(user.pseudonym) or "not named",
                f"{month.used / 3600:,.1f}",
                f"{month.open / 3600:,.1f}",
                f"{month.limit / 3600:,.1f}" if month.HasField("limit") else "-",
            )
        )


def guest_line(guest: "operator_pb2.Guest", *, wide: bool) -> str:
    """Returns the line of a partner's job in a list."""
    from lrms_sim.workload.requests import size_text  # noqa: PLC0415  # see the module's docstring

    state = guest.state
    used = f"{guest.cost / 3600:,.1f}" if guest.HasField("cost") else "-"
    whose, since = printable(guest.pseudonym) or "-", day_and_time(guest.since_s)
    if not wide:
        home, epoch, number = guest.key.split("/")
        key = shorten(f"{home}/{epoch[:4]}…/{number}" if len(epoch) > 5 else guest.key, 20)
        home = shorten(guest.partner, 10)
        return _GUEST.format(*(key, home, shorten(whose, 9), state, guest.processors, since, used))
    return _GUEST_WIDE.format(
        *(guest.key, shorten(guest.partner, 12), whose, state, guest.processors),
        size_text(guest.memory_mib) if guest.memory_mib else "-",
        guest.gpus or "-",
        duration(guest.requested_time_s),
        *(day_and_time(guest.accept_time_s), since, used),
    )
