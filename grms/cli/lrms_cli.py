"""The commands of `grms` around a site's batch system: `lrms check` says whether a site can work with it.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import WIDTH, printable
from lrms_sim.util.option_fields import FloatRange

if TYPE_CHECKING:
    from grms.lrms.checks import Finding
    from grms.lrms.preemption import FileLines


DEPUTIES_S = 5.0
"""Longest wait for what the daemon says of deputies, seconds."""


@click.group()
def lrms() -> None:
    """Look at a site's batch system."""


@lrms.command(short_help="Say whether everything is there that a site needs.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--run", is_flag=True, help="Also run a job of one processor, as a site does.")
@click.option(
    "--timeout",
    "timeout_s",
    type=FloatRange(0.1),
    default=120.0,
    show_default=True,
    help="Seconds in which that job has to end.",
)
@click.option(
    "--as",
    "users",
    multiple=True,
    metavar="USER",
    help="Also say whether a job can be submitted as this user of the site, as lrms.own_jobs has it; repeatable.",
)
@json_option("grms-lrms-check", "grms.cli.output_models:CheckOutput")
def check(
    config: Path, *, run: bool, timeout_s: float, users: tuple[str, ...], as_json: bool
) -> None:
    """Say whether everything is there that a site above this batch system needs.

    CONFIG is the site's configuration. Run it as the daemon's user, on the daemon's host; the daemon may
    run meanwhile. Each line that is not as it should be has its cure below it. Status 1 where something
    is missing, so that jobs would not run, or not as promised.
    """
    from grms.site.config.load import load_config  # noqa: PLC0415  # see the module's docstring

    settings = load_config(config)

    import asyncio  # noqa: PLC0415  # none of this where the configuration is wrong

    from grms.daemon.clock import WallClock  # noqa: PLC0415  # same
    from grms.lrms.adapter import LrmsSite  # noqa: PLC0415  # same
    from grms.lrms.batch_systems import adapter_of  # noqa: PLC0415  # same
    from grms.lrms.checks import FindingLevel  # noqa: PLC0415  # same
    from grms.lrms.privileges import check_sudo, listener  # noqa: PLC0415  # same
    from grms.site.assembly import sudo_needs  # noqa: PLC0415  # same
    from grms.site.peers.accounts import guest_accounts  # noqa: PLC0415  # same

    kind = settings.lrms.kind
    look = adapter_of(kind).check
    if look is None and as_json:
        print_json("grms-lrms-check", {"kind": kind, "job_run": False, "findings": []})
        return
    if look is None:
        click.echo(f"lrms.kind = {kind!r}: there is nothing to look at")
        return
    clock = WallClock()
    folder = Path(settings.journal.path).parent
    guests = guest_accounts(settings)
    site = LrmsSite(
        settings.name,
        settings.processors,
        clock,
        folder,
        accounts=guests.accounts,
        users=users,
        partitions=settings.guests.translate.partitions_here,
    )
    needs = sudo_needs(settings, guests)
    socket = Path(settings.listen.users)
    found = check_sudo(needs, listener(socket))
    if "lrms.own_jobs" in needs or settings.lrms.by_deputies:
        found += _reaching(guests.as_daemon(partner.name for partner in settings.partners))
    found += asyncio.run(look(settings.lrms, site, timeout_s if run else None))
    if settings.lrms.by_deputies:
        found += _deputies(socket, [*users, *guests.accounts])
    if as_json:
        print_json("grms-lrms-check", {"kind": kind, "job_run": run, "findings": found})
    else:
        click.echo("\n".join(lines(found)))
    if not run and not as_json:
        click.echo("no job was run; --run runs one, and sees whether nodes see lrms.spool")
    if any(finding.level is FindingLevel.MISSING for finding in found):
        click.get_current_context().exit(1)


@lrms.command(short_help="Print what lets own jobs end guests.")
@click.argument("config", type=click.Path(path_type=Path))
@json_option("grms-lrms-preemption", "grms.cli.output_models:PreemptionOutput")
def preemption(config: Path, *, as_json: bool) -> None:
    """Print the lines that an operator adds so that the batch system ends guests for own jobs.

    CONFIG is the site's configuration. Run it as the daemon's user, on the daemon's host. It asks the batch
    system what there is, and changes nothing.
    """
    from grms.site.config.load import load_config  # noqa: PLC0415  # see the module's docstring

    settings = load_config(config)

    import asyncio  # noqa: PLC0415  # as above

    from grms.daemon.clock import WallClock  # noqa: PLC0415  # same
    from grms.lrms.adapter import LrmsSite  # noqa: PLC0415  # same
    from grms.lrms.batch_systems import adapter_of  # noqa: PLC0415  # same
    from grms.site.peers.accounts import guest_accounts  # noqa: PLC0415  # same

    kind = settings.lrms.kind
    ask = adapter_of(kind).preemption
    site = LrmsSite(
        settings.name,
        settings.processors,
        WallClock(),
        Path(settings.journal.path).parent,
        accounts=guest_accounts(settings).accounts,
    )
    found = [] if ask is None else asyncio.run(ask(settings.lrms, site))
    if as_json:
        print_json("grms-lrms-preemption", {"kind": kind, "files": found})
    elif ask is None:
        click.echo(f"lrms.kind = {kind!r}: it ends no guests for own jobs, whatever is added")
    else:
        click.echo("\n\n".join("\n".join(_of_file(each)) for each in found))


def _of_file(found: "FileLines") -> Iterator[str]:
    yield from textwrap.wrap(
        printable(f"{found.file}: {found.what}"),
        WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_on_hyphens=False,
    )
    yield from map(printable, found.lines)
    if found.then:
        yield printable(f"# then: {found.then}")


def _reaching(partners: "Sequence[str]") -> "list[Finding]":
    # Whose jobs run as the daemon's account, which can become each user of the site.
    from grms.lrms.account_mapping import own_name  # noqa: PLC0415  # as above
    from grms.lrms.checks import doubt  # noqa: PLC0415  # same

    if not partners:
        return []
    text = (
        f"those of {', '.join(partners)} run as {own_name()}: they can change the jobs of all users here, and submit "
        "as these users wherever sudo has the line or a deputy is there"
    )
    cure = "set partners.account for each, or guests.unknown_users = 'refuse'; have the line for sudo on this host alone"
    return [doubt("partners' jobs", text, cure)]


def _deputies(socket: Path, users: "Sequence[str]") -> "list[Finding]":
    # Whether the deputies of these users are there, and whose else, as the running daemon says.
    from google.protobuf.message import DecodeError  # noqa: PLC0415  # as above

    from grms.client.errors import SiteError  # noqa: PLC0415  # same
    from grms.client.unary import ask  # noqa: PLC0415  # same
    from grms.lrms.checks import doubt, good, missing  # noqa: PLC0415  # same
    from grms.v1 import deputy_pb2  # noqa: PLC0415  # same

    what = "deputies"
    try:
        answer = ask(socket, "/grms.v1.DeputyService/Look", b"", DEPUTIES_S)
        look = None if answer is None else deputy_pb2.DeputyLook.FromString(answer)
    except (SiteError, DecodeError):
        look = None
    if look is None:
        text = f"no daemon answers on {socket}, so that it is not known whose deputies are there"
        return [doubt(what, text, "start the daemon, and look again")]
    there = {each.user: each.problem for each in look.deputies}
    found = []
    for user in dict.fromkeys(users):
        if user not in there:
            cure = f"as {user}: grms deputy --socket {socket}, or hanse-deputy.service"
            found.append(missing(what, f"that of {user} is not there, and the jobs wait", cure))
        elif there[user]:
            cure = f"restart the deputy of {user}"
            found.append(doubt(what, f"{user}: {there[user]}", cure))
        else:
            found.append(good(what, f"that of {user} is there"))
    text = f"{len(there)} are there: {', '.join(sorted(there))}" if there else "none is there now"
    return [*found, good(what, text)]


def lines(found: "Sequence[Finding]") -> Iterator[str]:
    """Yields what was found as lines of a terminal."""
    for finding in found:
        head = f"{finding.level.value:<4}  {finding.what:<14}  "
        yield from _wrapped(finding.text, head)
        if finding.cure:
            yield from _wrapped(finding.cure, " " * 6 + "→ ")


def _wrapped(text: str, head: str) -> list[str]:
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )
