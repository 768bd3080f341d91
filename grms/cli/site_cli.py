"""The commands of `grms` around a site's daemon: it serves, users and operators look and act.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grms.cli.job_table import job_details, job_words
from grms.cli.partners_cli import where
from grms.cli.site_connection import SOCKET_VARIABLE, client_of, site_option
from grms.daemon.journal_commands import journal_group
from grms.daemon.timeout_option import timeout_option
from grms.daemon.web.link_command import link_command
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import WIDTH, moment, printable, share

if TYPE_CHECKING:
    from grms.daemon.journal import JournalKind
    from grms.site.model.records import Record
    from grms.v1 import operator_pb2


@click.command(short_help="Run a site's daemon.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--until-eof",
    is_flag=True,
    help="Stop when standard input ends too, as the starting process is gone.",
)
@click.option(
    "--behind",
    is_flag=True,
    help="The system's clock is right, and the journal was written while it was more than a day ahead.",
)
def serve(config: Path, *, until_eof: bool, behind: bool) -> None:
    """Run a site's daemon until SIGTERM or Ctrl-C; a second one ends it at once.

    SIGHUP lets it read its configuration anew, as `grms reload` does.

    CONFIG is the site's configuration; docs/operating.md describes it.
    """
    from grms.daemon.quick_imports import quick_imports  # noqa: PLC0415  # see the module's docstring

    with quick_imports():
        from grms.site.config.load import load_config  # noqa: PLC0415  # same

    settings = load_config(config)
    with quick_imports():  # none of this where the configuration is wrong
        from grms.daemon.logs import configure_logs  # noqa: PLC0415  # same
        from grms.site.main import serve as run  # noqa: PLC0415  # same

    log = configure_logs(settings.name, form=settings.logging.format, level=settings.logging.level)
    run(config, log, until_eof=until_eof, behind=behind)


@click.command(short_help="Check a site's configuration, and the policies that it names.")
@click.argument("config", type=click.Path(path_type=Path))
@json_option("grms-validate", "grms.cli.output_models:ValidatedOutput")
def validate(config: Path, *, as_json: bool) -> None:
    """Check a site's configuration, and the policies that it names, offline.

    Status 2 where something is wrong, with a line for each. Whether the batch system has what a site
    needs is what `grms lrms check` says.
    """
    from grms.site.config.load import load_config, policies_of  # noqa: PLC0415  # see the module's docstring

    settings = load_config(config)
    policies_of(settings, str(config))
    partners = [partner.name for partner in settings.partners]
    if as_json:
        found = {
            "file": str(config),
            "site": settings.name,
            "processors": settings.processors,
            "lrms": settings.lrms.kind,
            "partners": partners,
            "ways": {partner.name: settings.way_of(partner) for partner in settings.partners},
        }
        print_json("grms-validate", found)
        return
    listed = ", ".join(partners) or "none"
    click.echo(f"valid: {settings.name}, {settings.processors} processors, partners: {listed}")
    for partner in settings.partners:
        if (way := settings.way_of(partner)) != partner.address:
            click.echo(f"  {partner.name}: {way}")


def _socket_in(config: Path) -> str:
    from grms.site.config.load import load_config  # noqa: PLC0415  # see the module's docstring

    return load_config(config).listen.users


def _link(socket: Path, timeout_s: float) -> str:
    with client_of(socket, timeout_s) as site:
        return site.open_pages().address


dashboard = link_command(
    "site",
    "pages",
    variable=SOCKET_VARIABLE,
    socket_in=_socket_in,
    link=_link,
    operators=True,
)


@click.command(short_help="Show how a job is; without one, how the site is.")
@click.argument("job_id", metavar="[JOB]", required=False)
@site_option
@timeout_option
@json_option("grms-status", "grms.cli.output_models:StatusOutput")
def status(job_id: str | None, socket: Path, *, timeout_s: float, as_json: bool) -> None:
    """Show how a job is; without one, how the site is (for operators)."""
    with client_of(socket, timeout_s) as site:
        if job_id is not None:
            job = site.get(job_id)
            if as_json:
                print_json("grms-status", job)
            else:
                click.echo("\n".join((job_words(job), *job_details(job))))
            return
        answer = site.status()
        partners = [] if as_json else site.partners()
    if as_json:
        from grms.daemon.messages import of_message  # noqa: PLC0415  # see the module's docstring

        print_json("grms-status", of_message(answer))
        return
    draining = ", draining: takes no work" if answer.draining else ""
    click.echo(f"{answer.site}: {answer.clock} clock at {answer.now_s:.3f} s{draining}")
    if answer.HasField("clock_ahead_s"):
        click.echo(
            f"  clock       {answer.clock_ahead_s:.0f} s ahead, as its journal is; it goes at half its speed "
            "until the system's clock has caught up"
        )
    click.echo(
        f"  processors  {answer.processors}, {answer.processors_free} free, "
        f"{answer.processors_waiting} waited for"
    )
    for line in (*_lrms_lines(answer), *circuit_breaker_lines(answer)):
        click.echo(line)
    for partner in partners:
        if partner.tunnels or partner.way not in {"", "address"}:
            click.echo(f"  {partner.name:<10}  {where(partner)}")
    for what, counts in (("own jobs", answer.jobs), ("guests", answer.guest_jobs)):
        words = ", ".join(f"{counts[key]} {key.lower()}" for key in sorted(counts))
        click.echo(f"  {what:<10}  {words or 'none'}")
    click.echo(f"  journal     {answer.journal_records} records, {answer.journal_bytes} bytes")


def _lrms_lines(answer: "operator_pb2.StatusResponse") -> list[str]:
    # Nothing where all is well.
    lines = []
    if not answer.lrms_reachable:
        problem = printable(answer.lrms_problem) or "its load is too old"
        age = f"; load of {answer.lrms_load_age_s:.0f} s ago" if answer.lrms_load_age_s else ""
        lines.append(f"  batch system does not answer: {problem}{age}; offers are declined")
    elif answer.lrms_problem:
        lines.append(f"  batch system: {printable(answer.lrms_problem)}")
    if answer.lrms_commands_open:
        lines.append(f"  commands    {answer.lrms_commands_open} wait for the batch system")
    return lines


def circuit_breaker_lines(answer: "operator_pb2.StatusResponse") -> list[str]:
    """Returns what a site's circuit breaker does, in lines for the terminal; none if it has no circuit breaker."""
    if not answer.HasField("circuit_breaker"):
        return []
    circuit_breaker = answer.circuit_breaker
    jobs = "1 own job" if circuit_breaker.jobs == 1 else f"{circuit_breaker.jobs:,} own jobs"
    cost = f"what it may cost is {100 * circuit_breaker.cost:g}%"
    way = "cost" if circuit_breaker.improvement_percent < 0 else "brought"
    found = (
        f"it has {way} {jobs} {share(abs(circuit_breaker.improvement_percent) / 100)} of AWRT alone"
    )
    if not circuit_breaker.HasField("looked_s"):
        words = "no guests are accepted until it has looked"
    elif circuit_breaker.stops:
        since = moment(circuit_breaker.stopped_since_s, wall=answer.clock == "wall")
        words = f"exchange has been stopped since {since}: {found}; {cost}"
    elif circuit_breaker.jobs < circuit_breaker.jobs_min:
        words = f"exchange goes on; to judge by it has {jobs} of {circuit_breaker.jobs_min:,}"
    else:
        words = f"exchange goes on: {found}; {cost}"
    indent = " " * 14
    return textwrap.wrap(
        f"  breaker     {words}", WIDTH, subsequent_indent=indent, break_on_hyphens=False
    )


@click.command(short_help="Take no more work; end what there is in order.")
@site_option
@timeout_option
@click.option("--undo", is_flag=True, help="Take work again.")
def drain(socket: Path, *, timeout_s: float, undo: bool) -> None:
    """Let the site take no more work; what it has is brought to its end. For operators."""
    with client_of(socket, timeout_s) as site:
        answer = site.resume() if undo else site.drain()
    open_jobs = sum(number for state, number in answer.jobs.items() if state != "ENDED")
    words = "takes no more work" if answer.draining else "takes work"
    click.echo(f"{answer.site} {words}; {open_jobs} of its users' jobs have not ended")


@click.command(short_help="Read the configuration anew, all or none.")
@site_option
@timeout_option
def reload(socket: Path, *, timeout_s: float) -> None:
    """Let the site read its configuration anew, all or none; for operators.

    Policies, partners and their addresses, operators and a renewed certificate are put into force;
    other keys that have changed are named, and take a restart.
    """
    with client_of(socket, timeout_s) as site:
        answer = site.reload()
    for partner, policy in sorted(answer.policies.items()):
        click.echo(f"{partner}: {policy}")
    if answer.restart_needed:
        click.echo(f"to be restarted for: {', '.join(answer.restart_needed)}", err=True)


def _journal_kind() -> "JournalKind[Record]":
    from grms.site.runtime.journal import KIND  # noqa: PLC0415  # see the module's docstring

    return KIND


journal = journal_group(_journal_kind, "grms", "home.journal")


@journal.command("renumber", short_help="Have a copy's numbers start over.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def renumber_journal(file: Path) -> None:
    r"""Have the numbers of FILE, a copy that was put back as a site's journal, start over.

    Without that a new job may get the name that another one has had in the batch system since the copy was made, and be taken for
    it. The daemon must not run.

    \b
      cp -p home.backup home.journal
      grms journal renumber home.journal
    """
    from grms.site.runtime.journal import renumber  # noqa: PLC0415  # see the module's docstring

    site, epoch = renumber(file)
    click.echo(f"{file}: offers and jobs of {site} are named by epoch {epoch} from now on")
