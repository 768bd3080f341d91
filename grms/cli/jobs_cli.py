"""The commands of `grms` on jobs: list, watch and cancel them, and what operators do about those at partners.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import itertools
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grms.cli.handing_in import start_deputy
from grms.cli.job_table import columns, head, job_words
from grms.cli.job_table import lines as lines_of
from grms.cli.site_connection import client_of, site_option
from grms.daemon.timeout_option import timeout_option
from lrms_sim.util.json_output import json_option, print_json
from lrms_sim.util.messages import WIDTH, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from grms.client import Job

LINES_AT_ONCE = 1000

STATES = [
    "held",
    "received",
    "offering",
    "resolving",
    "withdrawing",
    "submitting",
    "queued",
    "running",
    "delegated",
    "suspect",
    "ended",
]


@click.command()
@site_option
@timeout_option
@click.option("--all", "all_users", is_flag=True, help="Other users' jobs too; for operators.")
@click.option("--open", "only_open", is_flag=True, help="Only jobs that have not ended.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    metavar="STATE",
    help=f"Only these: {', '.join(STATES)}.",
)
@click.option("--user", default="", help="Only this user's jobs; for operators.")
@click.option("--partner", default="", help="Only jobs that are, or were, at this site.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]),
    help="Only jobs received at this local time or later.",
)
@click.option(
    "--stuck", is_flag=True, help="Only jobs that do not go on by themselves, each with its reason."
)
@click.option("--limit", type=click.IntRange(1), help="So many at most.  [default: all]")
@json_option("grms-jobs", "grms.cli.output_models:JobOutput", lines=True)
def jobs(
    socket: Path,
    *,
    timeout_s: float,
    all_users: bool,
    only_open: bool,
    states: tuple[str, ...],
    user: str,
    partner: str,
    since: "datetime | None",
    stuck: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """List your jobs, in the order in which they were received.

    AT is the site that has a job or has run it. STATE is what the batch system there says of it: waiting
    or queued, running, suspended, completing; or how it ended. A partner is asked for that every 10 s;
    of one that has not said it the state is delegated. PROC-H is what the job has used, in processor
    hours, so far if it runs. Elements of an array that wait for the same have one line.

    A terminal of 136 columns or more also shows users, limits and since when a job is where it is;
    `grms status JOB` says all of one job.

    What can be done about one that is stuck: `grms take-back`, `grms resubmit`, `grms write-off`.
    """
    since_s = 0.0 if since is None else _moment(since)
    limit = None if limit is None else min(limit, sys.maxsize)
    wanted = states or (STATES[:-1] if only_open else ())
    width = columns()
    with client_of(socket, timeout_s) as site:
        from grms.client import JobState  # noqa: PLC0415  # see the module's docstring

        found = site.jobs(
            states=[JobState(state) for state in wanted if not (only_open and state == "ended")],
            all_users=all_users or bool(user),
            user=user,
            partner=partner,
            since_s=since_s,
            stuck=stuck,
        )
        if as_json:
            for job in itertools.islice(found, limit):
                print_json("grms-jobs", job, line=True)
            return
        first = next(found, None)
        click.echo(head(width))
        lines: list[str] = []
        shown = itertools.islice([] if first is None else itertools.chain([first], found), limit)
        for same in _alike(shown):
            lines.extend(lines_of(width, *same, users=all_users))
            if stuck:
                lines.append(f"  {printable(same[0].stuck)}")
            if len(lines) >= LINES_AT_ONCE:
                click.echo("\n".join(lines))
                lines.clear()
        if lines:
            click.echo("\n".join(lines))


def _moment(since: "datetime") -> float:
    try:
        return since.timestamp()
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(f"{since} is out of range", param_hint="--since") from error


def _alike(jobs: "Iterable[Job]") -> "Iterator[list[Job]]":
    # Held elements of one array that wait for the same are shown together, as there may be very many.
    def of(job: "Job") -> object:
        held = job.array_id and job.state == "held"
        return (job.array_id, job.reason, job.cancel_requested) if held else job.job_id

    for _, same in itertools.groupby(jobs, of):
        yield list(same)


def _intervene(
    socket: Path, timeout_s: float, *, job_ids: tuple[str, ...], act: str, risk: str, yes: bool
) -> None:
    if not yes:
        click.echo(textwrap.fill(risk, WIDTH), err=True)
        count = f"{len(job_ids)} jobs" if len(job_ids) > 1 else job_ids[0]
        if not click.confirm(f"Do it to {printable(count)}?", err=True):
            click.echo("nothing was done", err=True)
            click.get_current_context().exit(1)
    _each(socket, timeout_s, job_ids, act)


def _each(socket: Path, timeout_s: float, job_ids: tuple[str, ...], act: str) -> None:
    """Does something about each job; one that refuses does not keep the others from it."""
    from grms.client import SiteError, SiteUnavailable  # noqa: PLC0415  # see the module's docstring

    refused = False
    with client_of(socket, timeout_s) as site:
        for job_id in job_ids:
            try:
                job = getattr(site, act)(job_id)
            except SiteUnavailable:
                raise  # the others would only wait as long
            except SiteError as error:
                click.echo(f"Error: {printable(str(error))}", err=True)
                refused = True
            else:
                click.echo(job_words(job))
    if refused:
        click.get_current_context().exit(2)


jobs_argument = click.argument("job_ids", nargs=-1, required=True, metavar="JOB...")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command("take-back", short_help="End jobs at their partner and decide them anew.")
@jobs_argument
@site_option
@timeout_option
@yes_option
def take_back(job_ids: tuple[str, ...], socket: Path, *, timeout_s: float, yes: bool) -> None:
    """End jobs at their partner and decide them anew; for operators.

    Nothing runs twice at one time. What a job has done there is lost and done again, and while the
    partner says nothing the job stays where it is.
    """
    risk = (
        "The partner is asked to end it; when it has, the job is decided anew. What it has done "
        "there is lost. While the partner says nothing the job stays where it is."
    )
    _intervene(socket, timeout_s, job_ids=job_ids, act="take_back", risk=risk, yes=yes)


@click.command(short_help="Decide jobs anew at once.")
@jobs_argument
@site_option
@timeout_option
@yes_option
def resubmit(job_ids: tuple[str, ...], socket: Path, *, timeout_s: float, yes: bool) -> None:
    """Decide jobs anew at once, whatever their partner does; for operators.

    A job MAY RUN TWICE, whole or in part: the partner ends it once it can be reached, but
    may run it until then. For jobs that may not run twice use `grms take-back`.
    """
    risk = (
        "The job is decided anew at once. It MAY RUN TWICE: its partner is told to end it as soon "
        "as it listens, but may run it until then, and write the same files."
    )
    _intervene(socket, timeout_s, job_ids=job_ids, act="resubmit", risk=risk, yes=yes)


@click.command("write-off", short_help="End jobs as failed.")
@jobs_argument
@site_option
@timeout_option
@yes_option
def write_off(job_ids: tuple[str, ...], socket: Path, *, timeout_s: float, yes: bool) -> None:
    """End jobs as failed, whatever their partner does; for operators.

    The partner ends a job once it can be reached. If the job runs there to its end after all,
    THAT IS NOT REPORTED: its user sees a failed job.
    """
    risk = (
        "The job ends as failed, for good. If its partner runs it after all, NOBODY HEARS OF IT: "
        "what it has done is not reported to its user."
    )
    _intervene(socket, timeout_s, job_ids=job_ids, act="write_off", risk=risk, yes=yes)


@click.command(short_help="Ask for the end of jobs.")
@jobs_argument
@site_option
@timeout_option
def cancel(job_ids: tuple[str, ...], socket: Path, *, timeout_s: float) -> None:
    """Ask for the end of jobs; one that cannot be cancelled does not keep the others from it.

    A JOB may also be an array, as a-12, or some of its elements, as a-12_[1-5,9].
    """
    start_deputy(socket)
    _each(socket, timeout_s, job_ids, "cancel")


@click.command()
@click.argument("job_id", metavar="JOB")
@site_option
@timeout_option
@json_option("grms-watch", "grms.cli.output_models:JobOutput", lines=True)
def watch(job_id: str, socket: Path, *, timeout_s: float, as_json: bool) -> None:
    """Show a job and every change, until its end."""
    with client_of(socket, timeout_s) as site:
        for job in site.watch(job_id):
            if as_json:
                print_json("grms-watch", job, line=True)
            else:
                click.echo(job_words(job))
