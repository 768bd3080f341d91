"""The commands of `grms` around a site's daemon: it serves, users and operators look and act.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import itertools
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grms.names import printable
from lrms_sim.shown.option import json_option, print_json

if TYPE_CHECKING:
    from datetime import datetime

    from grms.client import Job, SyncClient
    from grms.v1 import operator_pb2

SOCKET_VARIABLE = "HANSE_SOCKET"
"""Names the socket of the site where no option does."""

COMMANDS: list[click.Command] = []
"""What `grms` gets from here."""

LINES_AT_ONCE = 1000
"""Lines of a list that are written together."""

_JOB_COLUMNS = "{:<14} {:<10} {:>6} {:>12} {:<12} {:<14} {}"

site_option = click.option(
    "--socket",
    "--site",
    "socket",
    envvar=SOCKET_VARIABLE,
    required=True,
    type=click.Path(path_type=Path),
    metavar="SOCKET",
    help=f"The site's Unix socket; also from the variable {SOCKET_VARIABLE}.",
)
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0.1),
    default=10.0,
    show_default=True,
    help="Seconds in which an answer is to come.",
)


@click.command(short_help="Run a site's daemon.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--until-eof",
    is_flag=True,
    help="Stop when standard input ends too: whoever started the daemon is gone.",
)
def serve(config: Path, *, until_eof: bool) -> None:
    """Run a site's daemon until SIGTERM or Ctrl-C; a second one ends it at once.

    CONFIG is the site's configuration; docs/operating.md describes it.
    """
    from grms.kit.logs import configure_logs  # noqa: PLC0415  # same
    from grms.site.configuration.files import load_config  # noqa: PLC0415  # see the module's docstring
    from grms.site.start import serve as run  # noqa: PLC0415  # same

    settings = load_config(config)
    log = configure_logs(settings.name, form=settings.logging.format, level=settings.logging.level)
    run(config, log, until_eof=until_eof)


@click.command(short_help="Print the address of a site's dashboard.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--open", "open_browser", is_flag=True, help="Show it in the browser too.")
def dashboard(config: Path, *, open_browser: bool) -> None:
    """Print the address of a site's dashboard, with the token that lets you in.

    CONFIG is the site's configuration; its part [dashboard] says where the daemon serves the pages.
    The file with the token can be read by the daemon's user alone.
    """
    from grms.kit.access import read_access  # noqa: PLC0415  # see the module's docstring
    from grms.site.configuration.config import DASHBOARD_FILE_END  # noqa: PLC0415  # same
    from grms.site.configuration.files import ConfigError, load_config  # noqa: PLC0415  # same

    settings = load_config(config)
    if settings.dashboard is None:
        raise ConfigError(f"{config}: there is no [dashboard], so no pages are served")
    access = Path(settings.journal.path).with_name(f"{settings.name}{DASHBOARD_FILE_END}")
    try:
        address = read_access(access)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        text = f"{access}: {reason}; the daemon writes it when it serves, for its own user alone"
        raise ConfigError(text) from error
    click.echo(address)
    if open_browser:
        import webbrowser  # noqa: PLC0415  # only here

        webbrowser.open(address)


STATES = [
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
"""Where a job can stand, as `grms.client.JobState` has it."""


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
@json_option("grms-jobs", "grms.shown:JobShown", lines=True)
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

    What can be done about one that is stuck: `grms take-back`, `grms resubmit`, `grms write-off`.
    """
    from grms.client import JobState  # noqa: PLC0415  # see the module's docstring

    wanted = states or (STATES[:-1] if only_open else ())
    head = _JOB_COLUMNS.format("JOB", "USER", "PROCS", "REQUESTED/s", "STATE", "RUNS ON", "NAME")
    with _client(socket, timeout_s) as site:
        found = site.jobs(
            states=[JobState(state) for state in wanted if not (only_open and state == "ended")],
            all_users=all_users or bool(user),
            user=user,
            partner=partner,
            since_s=0.0 if since is None else since.timestamp(),
            stuck=stuck,
        )
        if as_json:
            for job in itertools.islice(found, limit):
                print_json("grms-jobs", job, line=True)
            return
        first = next(found, None)
        click.echo(head)
        lines: list[str] = []
        for job in itertools.islice(
            [] if first is None else itertools.chain([first], found), limit
        ):
            lines.append(_job_line(job))
            if stuck:
                lines.append(f"  {printable(job.stuck)}")
            if len(lines) >= LINES_AT_ONCE:
                click.echo("\n".join(lines))
                lines.clear()
        if lines:
            click.echo("\n".join(lines))


def _job_line(job: "Job") -> str:
    return _JOB_COLUMNS.format(
        job.job_id,
        printable(job.user),
        job.processors,
        f"{job.requested_time_s:g}",
        str(job.outcome or job.state),
        job.executed_on or "-",
        printable(job.name),
    ).rstrip()


def _intervene(
    socket: Path, timeout_s: float, *, job_ids: tuple[str, ...], act: str, risk: str, yes: bool
) -> None:
    """Does something about jobs at partners, after a look at what it risks."""
    from grms.client import SiteError, SiteUnavailable  # noqa: PLC0415  # see the module's docstring

    if not yes:
        click.echo(textwrap.fill(risk, 79), err=True)
        count = f"{len(job_ids)} jobs" if len(job_ids) > 1 else job_ids[0]
        if not click.confirm(f"Do it to {printable(count)}?", err=True):
            click.echo("nothing was done", err=True)
            click.get_current_context().exit(1)
    refused = False
    with _client(socket, timeout_s) as site:
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


@click.command("take-back", short_help="Have jobs ended at their partner, then decided anew.")
@jobs_argument
@site_option
@timeout_option
@yes_option
def take_back(job_ids: tuple[str, ...], socket: Path, *, timeout_s: float, yes: bool) -> None:
    """Have jobs ended at their partner, then decided anew; for operators.

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

    A job MAY RUN TWICE, whole or in part: the partner is told to end it as soon as it listens, but
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

    The partner is told to end a job as soon as it listens. If it runs there to its end after all,
    NOBODY HEARS OF IT: its user sees a failed job.
    """
    risk = (
        "The job ends as failed, for good. If its partner runs it after all, NOBODY HEARS OF IT: "
        "what it has done is not reported to its user."
    )
    _intervene(socket, timeout_s, job_ids=job_ids, act="write_off", risk=risk, yes=yes)


@click.command(short_help="Ask for the end of jobs.")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...")
@site_option
@timeout_option
def cancel(job_ids: tuple[str, ...], socket: Path, *, timeout_s: float) -> None:
    """Ask for the end of jobs; one that cannot be cancelled does not keep the others from it."""
    from grms.client import SiteError, SiteUnavailable  # noqa: PLC0415  # see the module's docstring

    refused = False
    with _client(socket, timeout_s) as site:
        for job_id in job_ids:
            try:
                job = site.cancel(job_id)
            except SiteUnavailable:
                raise  # the others would only wait as long
            except SiteError as error:
                click.echo(f"Error: {printable(str(error))}", err=True)
                refused = True
            else:
                click.echo(job_words(job))
    if refused:
        click.get_current_context().exit(2)


@click.command()
@click.argument("job_id", metavar="JOB")
@site_option
@timeout_option
@json_option("grms-watch", "grms.shown:JobShown", lines=True)
def watch(job_id: str, socket: Path, *, timeout_s: float, as_json: bool) -> None:
    """Show a job and every change, until its end."""
    with _client(socket, timeout_s) as site:
        for job in site.watch(job_id):
            if as_json:
                print_json("grms-watch", job, line=True)
            else:
                click.echo(job_words(job))


@click.command(short_help="Show how a job is; without one, how the site is.")
@click.argument("job_id", metavar="[JOB]", required=False)
@site_option
@timeout_option
@json_option("grms-status", "grms.shown:StatusShown")
def status(job_id: str | None, socket: Path, *, timeout_s: float, as_json: bool) -> None:
    """Show how a job is; without one, how the site is (for operators)."""
    with _client(socket, timeout_s) as site:
        if job_id is not None:
            job = site.get(job_id)
            if as_json:
                print_json("grms-status", job)
            else:
                click.echo(job_words(job))
            return
        answer = site.status()
    if as_json:
        from grms.kit.messages import of_message  # noqa: PLC0415  # see the module's docstring

        print_json("grms-status", of_message(answer))
        return
    draining = ", draining: takes no work" if answer.draining else ""
    click.echo(f"{answer.site}: {answer.clock} clock at {answer.now_s:.3f} s{draining}")
    click.echo(
        f"  processors  {answer.processors}, {answer.processors_free} free, "
        f"{answer.processors_waiting} waited for"
    )
    for line in _lrms_lines(answer):
        click.echo(line)
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
    if answer.lrms_commands_open:
        lines.append(f"  commands    {answer.lrms_commands_open} wait for the batch system")
    return lines


@click.command(short_help="Take no more work; end what there is in order.")
@site_option
@timeout_option
@click.option("--undo", is_flag=True, help="Take work again.")
def drain(socket: Path, *, timeout_s: float, undo: bool) -> None:
    """Let the site take no more work; what it has is brought to its end. For operators."""
    with _client(socket, timeout_s) as site:
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
    with _client(socket, timeout_s) as site:
        answer = site.reload()
    for partner, policy in sorted(answer.policies.items()):
        click.echo(f"{partner}: {policy}")
    if answer.restart_needed:
        click.echo(f"to be restarted for: {', '.join(answer.restart_needed)}", err=True)


def _client(socket: Path, timeout_s: float) -> "SyncClient":
    from grms.client import SyncClient  # noqa: PLC0415  # see the module's docstring

    return SyncClient(socket, timeout_s=timeout_s)


def job_words(job: "Job") -> str:
    """Returns a line on how a job is."""
    state = f"{job.state}, {job.outcome}" if job.outcome else str(job.state)
    where = f" on {job.executed_on}" if job.executed_on else ""
    took = ""
    if job.end_time_s is not None:
        took = f" {job.end_time_s - job.submit_time_s:.3f} s after its submission"
    left = "" if not job.exit_code else f", exit code {job.exit_code}"
    if job.signal is not None:
        left += f", signal {job.signal}"
    reason = f" ({printable(job.reason)})" if job.reason else ""
    return f"{job.job_id}: {state}{left}{where}{took}{reason}"


COMMANDS += [serve, status, jobs, cancel, watch]
COMMANDS += [take_back, resubmit, write_off, drain, reload, dashboard]
