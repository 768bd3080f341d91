"""Valid names of files that travel between a user, a site and its partner.

A name is relative to a job's folder. It becomes part of paths at sites that do not trust each other, so it cannot
lead out of the folder, nor contain anything that confuses a terminal or a shell script.
"""

from collections.abc import Iterable
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
            raise ValueError(f"{name!r} comes twice")
        found[name] = None
    if len(found) > INPUTS_MAX:
        text = f"{len(found)} files are given; at most {INPUTS_MAX} are allowed: pack them (tar)"
        raise ValueError(text)
    return tuple(found)
