"""The command `grms examples`: the installed files of the documentation's examples.

A checkout has them in docs/examples, a wheel as data (share/hanse/examples of the environment).
"""

import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import click

INSTALLED: Final = ("share", "hanse", "examples")
"""Folders in which a wheel has them."""

CHECKOUT: Final = Path(__file__).resolve().parents[2] / "docs" / "examples"


def example_files() -> dict[str, Path]:
    """Returns where each example is, by its name: its path below docs/examples."""
    if CHECKOUT.is_dir():
        found = {
            str(path.relative_to(CHECKOUT)): path
            for path in CHECKOUT.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        return dict(sorted(found.items()))
    try:
        files = distribution("hanse").files or []
    except PackageNotFoundError:
        files = []
    found = {}
    for file in files:
        if "__pycache__" in file.parts:
            continue
        for place in range(len(file.parts) - len(INSTALLED)):
            end = place + len(INSTALLED)
            if file.parts[place:end] == INSTALLED:
                found["/".join(file.parts[end:])] = Path(str(file.locate())).resolve()
    return dict(sorted(found.items()))


@click.command(short_help="List, print or copy the example files of the documentation.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Copy them there, all where none is named; nothing that is there already is touched.",
)
def examples(names: Sequence[str], folder: Path | None) -> None:
    """List, print or copy the files that the documentation calls examples.

    These are the systemd unit and its drop-in, lines for sudo, job_submit.lua, configurations, alerts and a board,
    access lists of an MQTT broker, and programs. Without NAME they are listed, with one it is printed; a NAME may be
    a folder.
    """
    known = example_files()
    if not known:
        raise click.ClickException(
            "this installation has no examples; they are in docs/examples of the source"
        )
    chosen = known if not names else _chosen(known, names)
    if folder is not None:
        _copy(chosen, folder)
        return
    for name, path in chosen.items():
        if names:
            click.echo(path.read_text(encoding="utf-8"), nl=False)
        else:
            click.echo(name)


def _chosen(known: Mapping[str, Path], names: Sequence[str]) -> dict[str, Path]:
    found = {}
    for name in names:
        wanted = name.rstrip("/")
        some = {
            each: path
            for each, path in known.items()
            if each == wanted or each.startswith(f"{wanted}/")
        }
        if not some:
            raise click.ClickException(f"there is no example {name!r}; `grms examples` lists them")
        found.update(some)
    return found


def _copy(chosen: Mapping[str, Path], folder: Path) -> None:
    there = [name for name in chosen if (folder / name).exists()]
    if there:
        raise click.ClickException(
            f"{folder / there[0]} is there already; name another folder with --output"
        )
    for name, path in chosen.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
        click.echo(folder / name)
