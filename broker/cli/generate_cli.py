"""The commands `gorba generate`: resources and problems to plan with.

Heavy modules are imported by the commands that need them, so that help and errors appear at once.
"""

from pathlib import Path

import click

from lrms_sim.cli.running import SEED_MAX
from lrms_sim.util.option_fields import FloatRange

_FILE = click.Path(path_type=Path, dir_okay=False)
_SEED = click.option("--seed", type=click.IntRange(0, SEED_MAX), default=1, show_default=True)


@click.group(short_help="Generate resources and problems to plan with.")
def generate() -> None:
    """Generate resources and problems to plan with, reproducibly."""


@generate.command("pool", short_help="Generate a pool of resources.")
@click.option(
    "--resources",
    "count",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    help="Number of resources.",
)
@_SEED
@click.option(
    "-o", "--output", type=_FILE, help="File, .toml or .json.  [default: standard output]"
)
def pool_command(count: int, *, seed: int, output: Path | None) -> None:
    """Generate a pool of resources that differ in speed, price, size and opening hours."""
    import numpy as np  # noqa: PLC0415  # see the module's docstring

    from broker.io.writing import document_of  # noqa: PLC0415  # same
    from broker.model.pools import generate_pool  # noqa: PLC0415  # same

    said = f"A heterogeneous pool: gorba generate pool --resources {count} --seed {seed}"
    pool = generate_pool(count, np.random.default_rng(seed))
    _write(document_of(pool, description=said), output)


@generate.command("benchmark", short_help="Generate a problem of the paper's classes.")
@click.option(
    "--class",
    "benchmark",
    type=click.Choice(["sRsD", "sRlD", "lRsD", "lRlD"]),
    default="sRlD",
    show_default=True,
    help="Small or large freedom of choosing resources R, few or many dependencies D.",
)
@click.option(
    "--tasks", type=click.IntRange(1, 100_000), default=200, show_default=True, help="Their number."
)
@click.option(
    "--resources",
    "count",
    type=click.IntRange(1, 10_000),
    help="Number of resources.  [default: a tenth of the tasks]",
)
@click.option(
    "--reduction",
    type=FloatRange(0, 1),
    default=0.08,
    show_default=True,
    help="How much tighter due dates and budgets are than the best heuristic can just keep; 1 for "
    "what is hardly possible at all.",
)
@_SEED
@click.option(
    "-o", "--output", type=_FILE, help="File, .json or .toml.  [default: standard output]"
)
def benchmark_command(
    benchmark: str,
    *,
    tasks: int,
    count: int | None,
    reduction: float,
    seed: int,
    output: Path | None,
) -> None:
    """Generate a planning problem of one of the paper's benchmark classes.

    Workflows have three to seven tasks of three to seven minutes (Jakob et al. 2010, section 3.5).
    The file has resources and workflows: gorba plan FILE is all it takes.
    """
    from broker.cli.benchmark import benchmark_problem  # noqa: PLC0415  # see the module's docstring
    from broker.io.writing import document_of  # noqa: PLC0415  # same

    problem = benchmark_problem(benchmark, tasks, resources=count, reduction=reduction, seed=seed)
    said = (
        f"gorba generate benchmark --class {benchmark} --tasks {tasks} --resources "
        f"{len(problem.resources)} --reduction {reduction:g} --seed {seed}"
    )
    document = document_of(problem.resources, problem.workflows, now=problem.now, description=said)
    _write(document, output, as_json=True)


def _write(document: dict[str, object], output: Path | None, *, as_json: bool = False) -> None:
    from broker.io.writing import to_json, write_document  # noqa: PLC0415  # see the module's docstring
    from lrms_sim.util.files import to_toml  # noqa: PLC0415  # same

    if output is None:
        click.echo(to_json(document) if as_json else to_toml(document), nl=False)
        return
    write_document(output, document)
    click.echo(f"written to {output}", err=True)
