"""What jobs ask for, as people write it in options and files: `4G/node`, `a100:2`, `2-4`."""

import re
from typing import Final, cast

from lrms_sim.workload.requests import Gpus, GpuScope, Memory, MemoryScope, RequestError

_SIZE: Final = re.compile(r"(\d{1,15})([MGT])(?:i?B)?(?:/(node|core|gpu))?", re.IGNORECASE)
_UNITS: Final = {"M": 1, "G": 1024, "T": 1024**2}
_GPUS: Final = re.compile(
    r"(?:(?P<type>[A-Za-z_][\w.-]*):)?(?P<count>\d{1,15})(?:/(?P<per>node|task|job))?"
)
_NODES: Final = re.compile(r"(\d{1,15})(?:-(\d{1,15}))?")
_LICENCE: Final = re.compile(r"([\w.@+/-]+?)(?::(\d{1,15}))?")


def nodes_of(text: str) -> tuple[int, int]:
    """Returns the least and greatest number of nodes of `2` or `2-4`; `RequestError` for any other text."""
    found = _read(_NODES, text, "no number of nodes; write 2, or 2-4")
    return int(found[1]), int(found[2] or found[1])


def memory_of(text: str) -> Memory:
    """Returns the memory of `4G` (of each core) or `64G/node`; `RequestError` for any other text."""
    found = _read(_SIZE, text, "no amount of memory; write 4G, or 64G/node")
    per = (found[3] or "core").lower()
    return Memory(int(found[1]) * _UNITS[found[2].upper()], cast("MemoryScope", per))


def gpus_of(text: str) -> Gpus:
    """Returns the GPUs of `2`, `a100:2` or `1/task`; `RequestError` for any other text."""
    found = _read(_GPUS, text, "no number of GPUs; write 2, a100:2 or 1/task")
    return Gpus(int(found["count"]), cast("GpuScope", found["per"] or "job"), found["type"] or "")


def licence_of(text: str) -> tuple[str, int]:
    """Returns name and count of `NAME` or `NAME:2`; `RequestError` for any other text."""
    found = _read(_LICENCE, text, "no licence; write NAME, or NAME:2")
    return found[1], int(found[2] or 1)


def _read(pattern: re.Pattern[str], text: str, what: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise RequestError(f"{text[:80]!r} is {what}")
    return found
