"""The commands of `grms` for what jobs leave: `logs` shows it, `fetch` brings it.

Everything heavy is imported by the command that needs it, so that help and errors come at once.
"""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grms.cli.site_connection import client_of, site_option
from grms.daemon.timeout_option import timeout_option
from lrms_sim.util.messages import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grms.client import OutputPiece, Results, SyncClient


@click.command()
@click.argument("job_id", metavar="JOB")
@site_option
@timeout_option
@click.option("--stderr", "error", is_flag=True, help="What it has written to standard error.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what it prints, until its end.")
def logs(job_id: str, socket: Path, *, timeout_s: float, error: bool, follow: bool) -> None:
    """Show what a job has printed.

    Of a job that runs, what it has printed so far, also at a partner that says such things. What ran at a
    partner comes home after its end; the command waits for that as long as --timeout says. With -f it can be begun
    before the job.
    """
    name = "stderr" if error else "stdout"
    with client_of(socket, timeout_s) as site:
        if follow or not site.get(job_id).has_ended:
            _follow(site.follow(job_id, error=error, once=not follow))
            return
        from grms.client.fetching import PROBLEMS  # noqa: PLC0415  # see the module's docstring

        results, where = _here(site, job_id)
        file = next(file for file in results.files if file.name == name)
        if file.problem:
            stays = _stays(results, where) if file.problem == "too_large" else ""
            problem = PROBLEMS.get(file.problem, file.problem)
            raise click.ClickException(f"{name}: {problem}{stays and f'; {stays}'}")
        out = sys.stdout.buffer
        for some in site.fetch(job_id, name):
            out.write(some)
        out.flush()


def _follow(pieces: "Iterator[OutputPiece]") -> None:
    out = sys.stdout.buffer
    for piece in pieces:
        if piece.anew:
            click.echo("it runs anew; what was printed before is of an earlier run", err=True)
        if piece.notice:
            click.echo(printable(piece.notice), err=True)
        out.write(piece.content)
        out.flush()


@click.command(short_help="Bring the files that a job has left.")
@click.argument("job_id", metavar="JOB")
@site_option
@timeout_option
@click.option(
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the files go; it is made where it is missing.  [default: a folder named as the job]",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option(
    "--remove", is_flag=True, help="Delete them at the site when all are here, which makes room."
)
def fetch(
    job_id: str, socket: Path, *, timeout_s: float, folder: Path | None, force: bool, remove: bool
) -> None:
    """Bring the files that a job has left: stdout, stderr, and its outputs.

    What is here already as it is there is left alone, and a file that was cut off goes on where it stopped, so
    that the command can be repeated. Files keep their permissions, as far as the umask allows.

    Status 1 where an output is missing, or does not come as the site has said. What is larger than the site
    hands out, and what the job has not declared, stays where the job has run; the last line says where, and
    until when.
    """
    from grms.client.fetching import Bringer  # noqa: PLC0415  # see the module's docstring

    with client_of(socket, timeout_s) as site:
        results, where = _here(site, job_id)
        if not results.complete:
            raise click.ClickException(f"{job_id} has not ended; `grms logs` shows what there is")
        target = Path(job_id) if folder is None else folder
        target.mkdir(parents=True, exist_ok=True)
        missed = bool(results.left_out)
        read = partial(site.fetch, job_id)
        bring = Bringer(read, target, force=force, append=results.append)
        for file in results.files:
            if file.written_as == "/dev/null":
                continue
            problem = bring(file)
            words = problem or f"{file.size_bytes} bytes"
            shown = printable(str(target / (file.written_as or file.name)))
            click.echo(f"{shown}: {words}", err=bool(problem))
            missed = missed or bool(problem)
        if stays := _stays(results, where):
            click.echo(stays, err=True)
        if remove and not missed:
            site.remove_results(job_id)
    if missed:
        click.get_current_context().exit(1)


def _here(site: "SyncClient", job_id: str) -> "tuple[Results, str]":
    # And the site that has run it.
    job = site.get(job_id)
    results = site.results(job_id, wait=job.has_ended)
    if results.problem:
        raise click.ClickException(f"{job_id}: {printable(results.problem)}")
    return results, job.executed_on


def _stays(results: "Results", site: str) -> str:
    """Returns where files that are not handed out are, and until when; empty if there are none."""
    from datetime import datetime  # noqa: PLC0415  # see the module's docstring

    kept = [file for file in results.files if file.problem == "too_large"]
    files = len(kept) + results.other_files
    if not files or not results.folder:
        return ""
    size = sum(file.size_bytes for file in kept) + results.other_bytes
    until = datetime.fromtimestamp(results.kept_until_s).astimezone()
    words = f"{files} file{'s' * (files > 1)} ({size} bytes)"
    undeclared = results.other_files - results.left_out
    why = f"; {undeclared} of them the job has not declared" if undeclared > 0 else ""
    if results.left_out:
        why += f"; at least {results.left_out} are too many or have names that cannot travel; pack them (tar)"
    return printable(
        f"not brought: {words} at {site} in {results.folder}, until {until:%Y-%m-%d %H:%M}{why}"
    )
