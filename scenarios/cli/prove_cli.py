"""`scenario prove`: jobs under faults on two batch systems, and whether each ran exactly once.

Everything heavy is imported by the command itself, so that help and errors come at once.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrms_sim.cli.running import SEED_MAX, open_console
from lrms_sim.util.json_output import json_option, print_json
from scenarios.util.errors import LiveError, OutputError

if TYPE_CHECKING:
    from scenarios.prove.result import Proof

HANGS_MAX = 10_000
EXIT_BROKEN = 1
"""Status where a job of `grms submit` was lost, ran twice, or contradicts what its user was shown."""


@click.command(short_help="Break two batch systems on purpose, and count what ran.")
@click.option(
    "--hangs",
    type=click.IntRange(1, HANGS_MAX),
    default=12,
    show_default=True,
    help="How often a controller hangs; other faults are in proportion.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_MAX),
    default=1,
    show_default=True,
    help="Of all faults and jobs.",
)
@click.option("--simulated", is_flag=True, help="Do not use Slurm, even where it is installed.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep history, page, picture, logs and journals in this new folder.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PAGE",
    help="Write a page with the picture.",
)
@json_option("scenario-prove", "scenarios.cli.output_models:ProveOutput")
def prove(
    *, hangs: int, seed: int, simulated: bool, keep: Path | None, html: Path | None, as_json: bool
) -> int:
    """Break two batch systems on purpose, and count what ran.

    The batch systems are two Slurms of its own where slurmctld, slurmd and munged are installed, else two simulated ones, with a
    site's daemon above each. All of it is on loopback and below a temporary folder; no existing Slurm is touched. Users submit
    each job by `grms submit --key` and by plain `sbatch`, and repeat a command that gets no answer. Meanwhile controllers hang,
    die, and lose their last five seconds, the link between the sites is cut, slow, or carries requests only, and daemons are killed.

    Each job writes a line when it begins and when it ends. A checker that shares no code with Hanse reads the history and counts
    the jobs that were lost or ran twice. 12 hangs take about three minutes. The status is 1 if a job of `grms submit` was lost
    or ran twice. Ctrl-C ends all that was started.
    """
    from scenarios.cli.progress import bars  # noqa: PLC0415  # see the module's docstring
    from scenarios.prove.page import page_of  # noqa: PLC0415  # same
    from scenarios.prove.picture import picture  # noqa: PLC0415  # same
    from scenarios.prove.plan import Plan  # noqa: PLC0415  # same
    from scenarios.prove.proof import default_kind, run  # noqa: PLC0415  # same
    from scenarios.prove.result import judged  # noqa: PLC0415  # same

    if html is not None and not html.absolute().parent.is_dir():
        raise OutputError(f"{html} cannot be written: there is no folder {html.absolute().parent}")
    plan = Plan(hangs=hangs, seed=seed)
    with _folder(keep) as folder:
        with bars() as shown:
            made = run(plan, "simulated" if simulated else default_kind(), folder, shown.update)
        proof = judged(plan, made)
        page = page_of(proof)
        if keep is not None:
            (keep / "page.html").write_text(str(page), encoding="utf-8")
            (keep / "picture.svg").write_text(picture(proof, proof.worst), encoding="utf-8")
        if html is not None:
            html.write_text(str(page), encoding="utf-8")
    if as_json:
        print_json("scenario-prove", _plain(proof))
    else:
        _print(proof, keep, html)
    return 0 if proof.holds else EXIT_BROKEN


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        try:
            keep.mkdir(parents=True, exist_ok=True)
            if any(keep.iterdir()):
                raise LiveError(f"{keep} has files; name a new folder with --keep")
        except OSError as error:
            raise LiveError(f"{keep} cannot be used: {error.strerror or error}") from error
        yield keep.resolve()
        return
    place = Path(tempfile.mkdtemp(prefix="hanse-prove-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _plain(proof: "Proof") -> dict[str, object]:
    from scenarios.prove.page import bad_jobs  # noqa: PLC0415  # see the module's docstring
    from scenarios.prove.result import KINDS  # noqa: PLC0415  # same
    from scenarios.prove.users import CLIENTS  # noqa: PLC0415  # same

    return {
        "batch_systems": proof.run.systems,
        "seed": proof.plan.seed,
        "seconds": proof.run.seconds,
        "holds": proof.holds,
        "faults": dict(sorted(proof.counts.items())),
        "clients": [
            {
                "client": client,
                "jobs": len(proof.of(client)),
                "calls": sum(len(job.tries) for job in proof.of(client)),
                "runs": proof.starts(client),
                "kinds": {kind: proof.kinds(client)[kind] for kind in KINDS},
            }
            for client in CLIENTS
        ],
        "delegated": proof.delegated,
        "not_once": [
            {"job": f"{job.client}-{job.word}", "site": job.site, "kind": job.kind, "why": job.why}
            for job in bad_jobs(proof)
        ],
    }


def _print(proof: "Proof", keep: Path | None, html: Path | None) -> None:
    from lrms_sim.report.terminal import print_table, text  # noqa: PLC0415  # see the module's docstring
    from scenarios.prove.page import fault_table, hang_words, result_table  # noqa: PLC0415  # same
    from scenarios.prove.result import BAD  # noqa: PLC0415  # same

    console = open_console()
    console.print(text(console, f"On {proof.run.systems}, in {proof.run.seconds:.0f} s"))
    for table in (fault_table(proof), result_table(proof)):
        print_table(console, table)
    console.print()
    if proof.worst is not None:
        console.print(text(console, hang_words(proof, proof.worst)))
    console.print(text(console, proof.headline, "bold"))
    for job in proof.of("grms"):
        if job.kind in (*BAD, "failed"):
            console.print(text(console, f"{job.client}-{job.word}: {job.kind}, {job.why}"))
    for name, path in (("Kept in", keep), ("Written to", html)):
        if path is not None:
            click.echo(f"{name} {path}")
