"""What an agent that is a site's transfer policy has to beat: `hanse-gym-transfer LOG LOG…`."""

import json
from typing import Any, Final

import click
import numpy as np
from rich.console import Console

from grms.federation.sites import Site
from grms.policy.transfer import AcceptWhenFit
from hanse_gym.bench import result
from hanse_gym.sequences import SPLITS, Split
from hanse_gym.transfer import TransferEnv, Windows, constant_agents, judged
from hanse_gym.workloads import Workload, workload
from lrms_sim.cli.log_options import preparation_options, user_errors
from lrms_sim.report.parts import Table
from lrms_sim.report.terminal import print_table
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.util.option_fields import FloatRange
from lrms_sim.workload.preparation_report import PreparationOptions

DAY_S: Final = 86_400.0


def federation(workloads: list[Workload], discipline: str) -> tuple[Site, ...]:
    """Returns sites that accept when a job fits, on one clock that begins with the first job of each.

    Raises:
        ValueError: an unknown discipline, or a name that comes twice.
    """
    names = [one.name.split(".")[0] for one in workloads]
    return tuple(
        Site(
            name,
            one.processors,
            one.jobs.shifted(-float(one.jobs.submit_time[0])) if len(one.jobs) else one.jobs,
            discipline=discipline_by_name(discipline),
            transfer_policies={other: AcceptWhenFit() for other in names if other != name},
        )
        for name, one in zip(names, workloads, strict=True)
    )


@click.command()
@click.argument("logs", metavar="LOG LOG...", nargs=-1, required=True)
@click.option("--days", type=FloatRange(0, min_open=True), default=14.0, show_default=True)
@click.option("--windows", "count", type=click.IntRange(1), default=20, show_default=True)
@click.option("--split", type=click.Choice(SPLITS), default="test", show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--discipline", default="easy", show_default=True, help="Of all sites.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the values of each window.")
@preparation_options
def main(
    logs: tuple[str, ...],
    *,
    days: float,
    count: int,
    split: Split,
    seed: int,
    discipline: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Replay constant transfer policies of the first of some sites, whose partners accept when a job fits.

    LOG is a file in the Standard Workload Format, the key of a known log, or lublin-N, a model of a machine of N
    processors.
    """
    if len(logs) < 2:
        raise click.UsageError("one site has nobody to exchange jobs with; name two logs or more")
    with user_errors():
        try:
            found = [workload(name, options=PreparationOptions(**given)) for name in logs]
        except FileNotFoundError as error:
            raise click.ClickException(str(error)) from error
        sites = federation(found, discipline)
        env = TransferEnv(Windows(sites, days * DAY_S, split), sites[0].name)
        starts = env.windows.fixed(count, seed)
        results = [
            (result(name, [one.own for one in each]), [one.worst for one in each])
            for name, agent in constant_agents(seed).items()
            for each in [judged(env, agent, starts)]
        ]
    if as_json:
        rows_of_json = [
            {"name": own.name, "own": own.values, "worst_partner": worst} for own, worst in results
        ]
        document = {
            "sites": [site.name for site in sites],
            "days": days,
            "split": split,
            "seed": seed,
            "starts": starts,
            "results": rows_of_json,
        }
        click.echo(json.dumps(document, indent=2))
        return
    rows = [
        (
            own.name,
            f"{own.mean:.3f}",
            f"{own.low:.3f} to {own.high:.3f}",
            f"{float(np.mean(worst)):.3f}",
        )
        for own, worst in results
    ]
    title = (
        f"AWRT with exchange over AWRT without, {count} windows of {days:g} days (less is better)"
    )
    heads = ("policy", sites[0].name, "95 % interval", "worst partner")
    print_table(Console(), Table(heads, rows, title=title))


if __name__ == "__main__":
    main()
