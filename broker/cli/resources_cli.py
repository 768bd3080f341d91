"""The commands `gorba resources`: the resources that a broker plans with.

Heavy modules are imported by the commands that need them, so that help and errors appear at once.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from broker.cli.connection import pool_of, with_broker
from lrms_sim.util.json_output import json_option, print_json

if TYPE_CHECKING:
    from broker.client import BrokerClient

_RESOURCE = "{:<24} {:<8} {:>7} {:>7} {:>10}  {}"
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(short_help="List and change the resources of a broker.")
def resources() -> None:
    """List and change the resources of a broker.

    What sites have to reserve a broker learns from them; others are simulated.

    \b
      gorba resources list
      gorba resources add pool.toml
      gorba resources broken luebeck-fast
      gorba resources broken luebeck-fast --repaired
    """  # noqa: D301  # \b keeps the lines of the examples as they are


@resources.command("list")
@with_broker
@json_option("gorba-resources-list", "broker.cli.output_models:ResourcesOutput")
def resources_list(*, broker: "BrokerClient", as_json: bool) -> None:
    """List the resources of a broker.

    Speed is work done in a second, the price is for a second of one unit.
    """
    known = list(broker.resources())
    if as_json:
        print_json("gorba-resources-list", {"resources": known})
        return
    click.echo(_RESOURCE.format("RESOURCE", "KIND", "SPEED", "UNITS", "PRICE", "SITE"))
    for supply in known:
        resource = supply.resource
        site = (supply.site or "simulated") + ("  broken" if supply.broken else "")
        numbers = f"{resource.performance:.4g}", resource.capacity, f"{resource.price:.4g}"
        click.echo(_RESOURCE.format(resource.name, resource.kind, *numbers, site))


@resources.command("add", short_help="Register the resources of files.")
@click.argument("files", nargs=-1, required=True, type=_FILE)
@with_broker
@click.option("--site", default="", help="The site that has them.  [default: the simulation]")
@click.option("--replace", "replaces", is_flag=True, help="Replace those that are there.")
def resources_add(
    files: tuple[Path, ...], *, broker: "BrokerClient", site: str, replaces: bool
) -> None:
    """Register the resources of files, in Hanse's own format.

    \b
      gorba generate pool --output pool.toml && gorba resources add pool.toml
      gorba resources add luebeck.toml --site luebeck --replace
    """  # noqa: D301  # same
    from broker.io.pools import read_file  # noqa: PLC0415  # see the module's docstring
    from broker.scheduler.records import Supply  # noqa: PLC0415  # same

    pools = [read_file(path).pool for path in files]
    found = [
        Supply(each, site, requires=pool.requires[each.name])
        for pool in pools
        for each in pool.resources
    ]
    there = {supply.name: supply for supply in broker.resources()}
    pool_of([*there.values(), *found])  # a circle is refused before any of it is there
    for supply in found:
        if replaces and supply.name in there:
            broker.update(supply)
        else:
            broker.register(supply)
        click.echo(supply.name)


@resources.command("broken", short_help="Say that resources are broken, or in order again.")
@click.argument("names", nargs=-1, required=True, metavar="RESOURCE...")
@with_broker
@click.option("--repaired", is_flag=True, help="They are in order again.")
def resources_broken(names: tuple[str, ...], *, broker: "BrokerClient", repaired: bool) -> None:
    """Say that resources are broken: what runs there is ended and planned anew at once."""
    known = {supply.name: supply for supply in broker.resources()}
    for name in names:
        if name not in known:
            raise click.UsageError(
                f"there is no resource {name!r}; there are: {', '.join(known) or 'none'}"
            )
        broker.update(replace(known[name], broken=not repaired))


@resources.command("remove", short_help="Take resources out.")
@click.argument("names", nargs=-1, required=True, metavar="RESOURCE...")
@with_broker
def resources_remove(names: tuple[str, ...], *, broker: "BrokerClient") -> None:
    """Take resources out: what runs there ends, and all of it is planned anew."""
    for name in names:
        broker.remove(name)
