"""The files that a job declares as its results: names, folders, and patterns.

A declaration is one of

- a name: `out/table.csv`;
- a folder, which ends with `/`: `out/` stands for all files below it, and `./` for all of the folder in which the job
  ran;
- a pattern with `*`, `?` or `[…]`, as a shell has them: they match within one part of a path, and not its leading dot;
  a part `**` stands for any number of folders, none of them hidden.

Folders and patterns stand for what the job has made or changed: not for inputs that are as they were given, nor for
what the site itself puts into the folder. A job's folder is untrusted (`grms.daemon.job_files`): no link is followed, the
walk is bounded, and what has no valid name (`check_name`) is counted only.
"""

import fnmatch
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from grms.daemon.file_names import FILES_MAX, OWN_NAMES, PARTS_MAX, check_name
from grms.daemon.job_files import word_of

WORKING_FOLDER: Final = "./"
"""Declares everything that a job leaves in its folder."""

RESULTS_MAX: Final = 5000
"""Most files of a job that its folders and patterns stand for; further ones stay where it has run."""

RESULT_NAMES_BYTES: Final = 512 << 10
"""Most bytes of their names: with sizes and digests they are one message (`limits.message_bytes`)."""

ENTRIES_MAX: Final = 200_000
"""Most entries of folders that are looked at for one job."""

_MAGIC: Final = frozenset("*?[")
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BELOW: Final = "/"
"""In place of a part: any file below, also in hidden folders."""


def is_pattern(declared: str) -> bool:
    """Returns whether a declaration is a folder or a pattern, not a name."""
    return declared.endswith("/") or not _MAGIC.isdisjoint(declared)


def check_wanted(declared: Iterable[str]) -> "WantedFiles":
    """Returns what a job declares.

    Raises:
        ValueError: a declaration is invalid, is a site's own name, or comes twice, or there are too many.
    """
    found: dict[str, None] = {}
    for each in declared:
        if each != WORKING_FOLDER:
            name = check_name(each.removesuffix("/"))
            if name in OWN_NAMES:
                text = f"{name!r} is a name that the site itself uses in the job's folder"
                raise ValueError(text)
            if name.startswith("~") and (name == "~" or "/" in name):
                text = f"{each!r} begins with ~, which means nothing here; name files as they are in the job's folder"
                raise ValueError(text)
        if each in found:
            raise ValueError(f"{each!r} comes twice")
        found[each] = None
    if len(found) > FILES_MAX:
        text = f"{len(found)} files are declared; at most {FILES_MAX} are allowed, or a folder"
        raise ValueError(text)
    names = tuple(each for each in found if not is_pattern(each))
    return WantedFiles(names, tuple(each for each in found if is_pattern(each)))


@dataclass(frozen=True)
class WantedFiles:
    """What a job declares: names, and folders and patterns. `check_wanted` makes valid ones."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    @property
    def declared(self) -> tuple[str, ...]:
        """Everything, names first."""
        return self.names + self.patterns

    def matches(self, name: str) -> tuple[str, ...]:
        """Returns the folders and patterns that stand for a file, by its valid name."""
        if name in OWN_NAMES:
            return ()
        here = _begin(self.patterns)
        *folders, last = name.split("/")
        for part in folders:
            here = _entered(here, part)
        return tuple(dict.fromkeys(each.text for each in here if each.ends_with(last)))


@dataclass(frozen=True, slots=True)
class _At:
    # A pattern, and what is left of its parts.
    text: str
    left: tuple[str, ...]

    def ends_with(self, name: str) -> bool:
        return len(self.left) == 1 and (self.left[0] == _BELOW or _is_like(name, self.left[0]))


@lru_cache
def _begin(patterns: tuple[str, ...]) -> tuple[_At, ...]:
    return _skipped(_At(text, _parts(text)) for text in patterns)


def _parts(text: str) -> tuple[str, ...]:
    text = text.replace("[^", "[!")  # as most shells have it
    if text == WORKING_FOLDER:
        return (_BELOW,)
    if text.endswith("/"):
        return (*text[:-1].split("/"), _BELOW)
    parts = tuple(text.split("/"))
    return (*parts, "*") if parts[-1] == "**" else parts  # what it stands for are files


def _is_like(name: str, part: str) -> bool:
    if _MAGIC.isdisjoint(part):
        return name == part
    if name.startswith(".") and not part.startswith("."):
        return False
    return fnmatch.fnmatchcase(name, part)


def _skipped(places: Iterable[_At]) -> tuple[_At, ...]:
    # With those at which one is where `**` stands for no folder.
    found: dict[_At, None] = {}
    for place in places:
        each = place
        found[each] = None
        while each.left[0] == "**":
            each = _At(each.text, each.left[1:])
            found[each] = None
    return tuple(found)


def _entered(places: Iterable[_At], folder: str) -> tuple[_At, ...]:
    # Where one is below a folder.
    found = []
    for place in places:
        first, *rest = place.left
        if first == _BELOW or (first == "**" and not folder.startswith(".")):
            found.append(place)
        elif first != "**" and rest and _is_like(folder, first):
            found.append(_At(place.text, tuple(rest)))
    return _skipped(found)


@dataclass(slots=True)
class Matching:
    """The files that folders and patterns of a job stand for.

    Attributes:
        names: valid, in order.
        left_out: number of others: beyond the limits, or without a valid name; at least so many.
        unmatched: patterns and folders without a file.
    """

    names: list[str] = field(default_factory=list)
    left_out: int = 0
    unmatched: tuple[str, ...] = ()


def matching(folder: Path, wanted: WantedFiles, given: Mapping[str, str]) -> Matching:
    """Returns what the folders and patterns of a job stand for in its folder; accesses the disk.

    `given` are its inputs as they were, each with its `word_of`; what is a link, or no plain file, is in the list, too.

    Raises:
        OSError: the folder cannot be read.
    """
    found = Matching()
    if not wanted.patterns:
        return found
    looked, size, met = 0, 0, set[str]()
    literal, begin = frozenset(wanted.names), _begin(wanted.patterns)
    for name, status in _walked(os.open(folder, _FOLDER_FLAGS), "", begin, found):
        looked += 1
        if looked > ENTRIES_MAX:
            found.left_out += 1
            break
        if status is None or given.get(name) == word_of(status):
            continue
        texts = wanted.matches(name)
        if not texts:
            continue
        met.update(texts)
        if name in literal:
            continue
        try:
            check_name(name)
        except ValueError:
            found.left_out += 1
            continue
        size += len(name.encode())
        if len(found.names) == RESULTS_MAX or size > RESULT_NAMES_BYTES:
            found.left_out += 1
            continue
        found.names.append(name)
    met.add(WORKING_FOLDER)  # a job may leave nothing
    found.unmatched = tuple(each for each in wanted.patterns if each not in met)
    return found


def _walked(
    folder: int, above: str, places: tuple[_At, ...], found: Matching
) -> Iterator[tuple[str, os.stat_result | None]]:
    # Every entry below a folder, whose descriptor is closed here, that a pattern may have; with the status of what is no folder.
    try:
        for name, status in sorted(_entries(folder), key=lambda entry: entry[0]):
            if not stat.S_ISDIR(status.st_mode):
                yield f"{above}{name}", status
                continue
            yield f"{above}{name}", None
            below = _entered(places, name)
            if not below:
                continue
            if above.count("/") == PARTS_MAX - 1:
                found.left_out += 1
                continue
            try:
                inner = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
            except OSError:  # closed to this process, or another thing by now
                found.left_out += 1
                continue
            yield from _walked(inner, f"{above}{name}/", below, found)
    finally:
        os.close(folder)


def _entries(folder: int) -> list[tuple[str, os.stat_result]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                found.append((entry.name, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue
            if len(found) > ENTRIES_MAX:
                break
    return found


def find_words(pattern: str) -> str:
    """Returns arguments of `find`, for a POSIX shell, that find what a folder or pattern stands for below the present folder.

    If a part after `**` is not the last, they may find more. What is found begins with `./`; no link is, nor a name with
    a line feed.
    """
    *folders, last = _parts(pattern)
    deep = last == _BELOW
    if "**" in folders:
        folders, deep = folders[: folders.index("**")], True
    words = ["/".join((".", *map(_expanded, folders))), "-mindepth 1"]
    if not deep:
        words.append("-maxdepth 1")
    if last != _BELOW:
        words.append(f"-name {shlex.quote(last)}")
        if not last.startswith("."):
            words.append("! -name '.*'")
    if deep and last != _BELOW:
        words.append("! -path '*/.*'" if not any(each.startswith(".") for each in folders) else "")
    return " ".join(filter(None, [*words, "! -path '*\n*'", "-type f"]))


def _expanded(part: str) -> str:
    # A part of a path of which a shell expands the pattern, and nothing else.
    said, at = [], 0
    while at < len(part):
        end = part.find("]", at + 2 + (part[at + 1 : at + 2] == "!")) if part[at] == "[" else -1
        if part[at] in "*?":
            said.append(part[at])
        elif end < 0:
            said.append(shlex.quote(part[at]))
        else:
            begin = at + 1 + (part[at + 1] == "!")
            inner = (each if each == "-" else shlex.quote(each) for each in part[begin:end])
            said.append(f"{part[at:begin]}{''.join(inner)}]")
            at = end
        at += 1
    return "".join(said)
