"""Files of jobs: their names, reading them beneath a job's folder, and what a job declares as its results.

A name is relative to a job's folder. It becomes part of paths at sites that do not trust each other, so it cannot
lead out of the folder, nor contain anything that confuses a terminal or a shell script.

The content of a folder is untrusted. Every part of a path is opened separately, beneath the one before, without following
links, and the result must be a regular file. So a job that places a link to its site's keys in its folder gains nothing,
whatever it changes concurrently. Reading blocks: these functions belong in a thread.

A declaration of results is one of

- a name: `out/table.csv`;
- a folder, which ends with `/`: `out/` stands for all files below it, and `./` for all of the folder in which the job
  ran;
- a pattern with `*`, `?` or `[…]`, as a shell has them: they match within one part of a path, and not its leading dot;
  a part `**` stands for any number of folders, none of them hidden.

Folders and patterns stand for what the job has made or changed: not for inputs that are as they were given, nor for
what the site itself puts into the folder. The walk is bounded, and what has no valid name (`check_name`) is counted only.
"""

import errno
import fnmatch
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Final

NAME_BYTES_MAX: Final = 512
"""Longest name, in UTF-8."""

PARTS_MAX: Final = 16
"""Most parts of a path, including the file itself."""

PART_BYTES_MAX: Final = 255
"""Longest part; the limit of file systems."""

FILES_MAX: Final = 100
"""Most declarations of results of a job."""

INPUTS_MAX: Final = 1000
"""Most input files of a job."""

STDOUT: Final = "stdout"
STDERR: Final = "stderr"
STREAMS: Final = (STDOUT, STDERR)
OWN_NAMES: Final = frozenset(
    (
        *STREAMS,
        "launch",
        "values",
        "program",
        "begun",
        "begun.aside",
        "begun.died",
        "begun.evicted",
        "begun.once",
        "begun.since",
        "collect",
        "environ",
        "forward",
        "forward.end",
        "forward.pid",
        "outputs.json",
    )
)
"""Files that a site itself creates in a job's folder; users' files cannot have these names."""


def check_name(name: str) -> str:
    """Returns a valid name of a file in a job's folder; `ValueError` if it is invalid."""
    if not name or len(name.encode("utf-8", "surrogateescape")) > NAME_BYTES_MAX:
        raise ValueError(f"a file's name has 1 to {NAME_BYTES_MAX} bytes; it is {name[:40]!r}")
    parts = name.split("/")
    if len(parts) > PARTS_MAX:
        raise ValueError(f"{name!r} has {len(parts)} parts; at most {PARTS_MAX} are allowed")
    for part in parts:
        if part in {"", ".", ".."}:
            text = "it is relative to the job's folder, without `.`, `..` or an empty part"
            raise ValueError(f"{name!r} is no name of a file; {text}")
        if len(part.encode("utf-8", "surrogateescape")) > PART_BYTES_MAX:
            raise ValueError(f"{name!r} has a part of more than {PART_BYTES_MAX} bytes")
    if not name.isprintable() or "\\" in name:
        raise ValueError(f"{name!r} has a character that is not allowed in a file's name")
    return name


def check_inputs(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the valid names of the files that a job is given.

    Raises:
        ValueError: one is invalid, is a site's own, or comes twice, or there are too many.
    """
    found: dict[str, None] = {}
    for name in names:
        if check_name(name) in OWN_NAMES:
            raise ValueError(f"{name!r} is a name that the site itself uses in the job's folder")
        if name in found:
            text = (
                f"{name!r} comes twice among the files that are given; name one of them otherwise"
            )
            raise ValueError(text)
        found[name] = None
    if len(found) > INPUTS_MAX:
        text = f"{len(found)} files are given; at most {INPUTS_MAX} are allowed: pack them (tar)"
        raise ValueError(text)
    return tuple(found)


CHUNK_BYTES: Final = 64 << 10
"""Bytes read, and sent, at a time."""

MODE_MAX: Final = 0o777
"""Permission bits of a file that travels: it brings no other account's rights."""

_NO_FILE = frozenset((errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO))
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileProblem(Enum):
    """Why there is no content of a file; the wire has the same words."""

    MISSING = "missing"
    NO_FILE = "no_file"
    TOO_LARGE = "too_large"


class FileProblemError(Exception):
    """A file cannot be served; `problem` says why."""

    def __init__(self, name: str, problem: FileProblem) -> None:
        self.problem = problem
        super().__init__(f"{name}: {problem.value.replace('_', ' ')}")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Limits of transfers: bytes of one file, and of all files of a job."""

    file_bytes: int
    job_bytes: int


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file that a job has left, or should have left.

    Attributes:
        size: bytes; 0 if there is none.
        sha256: of the content, 32 bytes; empty if not computed.
        problem: why there is no content; `None` if there is.
        mode: permission bits; 0 if unknown.
    """

    name: str
    size: int = 0
    sha256: bytes = b""
    problem: FileProblem | None = None
    mode: int = 0


def mode_of(status: os.stat_result) -> int:
    """Returns the permission bits with which a file travels."""
    return status.st_mode & MODE_MAX


def word_of(status: os.stat_result) -> str:
    """Returns what tells a file from what it was before."""
    return f"{status.st_size} {status.st_mtime_ns}"


def opened(folder: Path, name: str) -> int:
    """Returns a descriptor for reading a regular file beneath a job's folder, to be closed by the caller.

    In a folder with the sticky bit (`grms.lrms.account_mapping`) a file of this process's user must have no other name.

    Raises:
        ValueError: the name is invalid.
        FileProblemError: it is missing, or no regular file.
    """
    *folders, last = check_name(name).split("/")
    try:
        here = os.open(folder, _FOLDER)
        # Others create files in such a folder, too, and may link what they cannot read (proc(5), protected_hardlinks).
        is_lent = bool(os.fstat(here).st_mode & stat.S_ISVTX)
        try:
            for part in folders:
                here = _moved(here, os.open(part, _FOLDER, dir_fd=here))
            # A pipe there has no writer; opening it must not block.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            found = os.open(last, flags, dir_fd=here)
        finally:
            os.close(here)
    except FileNotFoundError:
        raise FileProblemError(name, FileProblem.MISSING) from None
    except OSError as error:
        if error.errno in _NO_FILE or isinstance(error, PermissionError):
            raise FileProblemError(name, FileProblem.NO_FILE) from error
        raise
    status = os.fstat(found)
    is_linked = is_lent and status.st_nlink > 1 and status.st_uid == os.geteuid()
    if not stat.S_ISREG(status.st_mode) or is_linked:
        os.close(found)
        raise FileProblemError(name, FileProblem.NO_FILE)
    return found


def _moved(before: int, now: int) -> int:
    os.close(before)
    return now


def remove_below(folder: Path, name: str) -> None:
    """Deletes a file beneath a job's folder if it exists; for a link, the link.

    Raises:
        ValueError: the name is invalid.
        OSError: it cannot be deleted.
    """
    *folders, last = check_name(name).split("/")
    try:
        here = os.open(folder, _FOLDER)
        try:
            for part in folders:
                here = _moved(here, os.open(part, _FOLDER, dir_fd=here))
            os.unlink(last, dir_fd=here)
        finally:
            os.close(here)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in _NO_FILE:  # something else is in its place
            raise


def folders_below(folder: Path, name: str) -> int:
    """Returns a descriptor of the folder of a file beneath another folder, made where it is missing.

    Raises:
        ValueError: the name is invalid.
        FileProblemError: something else is in the way, such as a link.
    """
    here = os.open(folder, _FOLDER)
    try:
        for part in check_name(name).split("/")[:-1]:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=here)
            here = _moved(here, os.open(part, _FOLDER, dir_fd=here))
    except BaseException as error:
        os.close(here)
        if isinstance(error, OSError) and error.errno in _NO_FILE:
            raise FileProblemError(name, FileProblem.NO_FILE) from error
        raise
    return here


def chunks(folder: Path, name: str, begin: int, end: int | None = None) -> Iterator[bytes]:
    """Yields the bytes of a file from `begin` to `end` (exclusive; default all) in pieces.

    Raises:
        ValueError: the name is invalid.
        FileProblemError: it is missing, or no regular file.
    """
    descriptor = opened(folder, name)
    try:
        at = begin
        while end is None or at < end:
            some = os.pread(
                descriptor, CHUNK_BYTES if end is None else min(CHUNK_BYTES, end - at), at
            )
            if not some:
                return
            at += len(some)
            yield some
    finally:
        os.close(descriptor)


def created(folder: Path, name: str, *, mode: int = 0o600) -> int:
    """Returns a descriptor of a new file beneath an existing folder; parent folders are created.

    An existing file is replaced; for a link, the link.

    Raises:
        ValueError: the name is invalid.
        FileProblemError: something else is in the way, such as a link.
    """
    here, last = folders_below(folder, name), name.rpartition("/")[2]
    try:
        with suppress(FileNotFoundError):
            os.unlink(last, dir_fd=here)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(last, flags, mode, dir_fd=here)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise FileProblemError(name, FileProblem.NO_FILE) from error
        raise
    finally:
        os.close(here)


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
            raise ValueError(f"{each!r} comes twice among the files that are left")
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
