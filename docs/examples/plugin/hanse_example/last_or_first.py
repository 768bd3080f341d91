"""A study: `scenario study last-or-first`."""

import click


@click.command()
@click.option("--jobs", type=click.IntRange(1), default=1000, show_default=True, help="Jobs.")
def last_or_first(jobs: int) -> None:
    """Whether the first come should be first served, on a synthetic workload."""
    from lrms_sim import Fcfs, awrt, generate, simulate  # noqa: PLC0415  # --help needs none of these

    from .lifo import Lifo  # noqa: PLC0415  # same

    workload = generate(64, jobs=jobs, load=0.9, seed=1)
    for name, discipline in (("first come", Fcfs()), ("last come", Lifo())):
        click.echo(f"{name} first: AWRT {awrt(simulate(workload, 64, discipline)):.0f} s")
