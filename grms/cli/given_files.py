"""The input files of a job, as `grms submit --input` names them: files, folders, patterns and URLs.

It is this command that reads and downloads them, as the user: a site never opens a path or a URL of somebody else's, and
no partner learns where a file came from.
"""

import os
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Final

import click

from grms.daemon.job_files import INPUTS_MAX, check_name
from lrms_sim.util.messages import printable

URLS: Final = ("https://", "http://", "file://")
_HINT: Final = "'--input'"


def is_url(word: str) -> bool:
    """Returns whether a word names a file by a URL."""
    return word.startswith(URLS)


def given_files(words: Sequence[str], folder: Path) -> dict[str, Path]:
    """Returns the files that a job is given: names in its folder, and paths here; downloads go into a folder.

    Raises:
        click.BadParameter: there is no such file, a name comes twice, or there are too many.
    """
    found: dict[str, Path] = {}
    for word in words:
        for name, path in _named(word, folder):
            if name in found:
                raise click.BadParameter(f"{printable(name)} comes twice", param_hint=_HINT)
            found[name] = path
            if len(found) > INPUTS_MAX:
                text = f"more than {INPUTS_MAX} files; pack them (tar)"
                raise click.BadParameter(text, param_hint=_HINT)
    return found


def _named(word: str, folder: Path) -> Iterator[tuple[str, Path]]:
    if is_url(word):
        yield _downloaded(word, folder)
        return
    places = [word] if os.path.lexists(word) else sorted(glob(word, recursive=True))  # noqa: PTH207  # absolute ones too
    if not places:
        what = "nothing matches" if set("*?[") & set(word) else "there is no file"
        raise click.BadParameter(f"{what} {printable(word)}", param_hint=_HINT)
    for place in places:
        path = Path(place)
        above = path.parent if path.is_absolute() else Path()
        if not path.is_dir():
            yield str(path.relative_to(above)), _plain(path)
            continue
        for inside, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                file = Path(inside, name)
                yield str(file.relative_to(above)), _plain(file)


def _plain(path: Path) -> Path:
    # A link to a file counts as the file; links to folders are not walked.
    if not path.is_file():
        what = "is no plain file" if os.path.lexists(path) else "does not exist"
        raise click.BadParameter(f"{printable(str(path))} {what}", param_hint=_HINT)
    return path


def _downloaded(url: str, folder: Path) -> tuple[str, Path]:
    from grms.cli.download import DownloadError, brought, parse  # noqa: PLC0415  # few jobs have some

    try:
        source = parse(url)
        name = check_name(source.name)
        if source.path:
            return name, _plain(Path(source.path))
        target = folder / f"{len(os.listdir(folder))}"  # noqa: PTH208  # one for each URL
        brought(source, target)
    except (DownloadError, ValueError, OSError) as error:
        raise click.BadParameter(printable(f"{url}: {error}"), param_hint=_HINT) from error
    return name, target
