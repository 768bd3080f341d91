"""Data and settings of a training run as plain values, for provenance and comparison.

A run is resumed only with the same data and settings, and its results record where they come from.
Workloads are included as checksums.
"""

import hashlib
from collections.abc import Iterator, Mapping

import numpy as np

from lrms_sim.util.version import __version__
from lrms_sim.workload.jobs import JobTable

_COLUMNS = ("submit_time", "processors", "requested_time", "run_time")
"""What of a job a replay looks at."""


def program(commit: str | None = None) -> dict[str, str]:
    """Returns the program's version, and the commit of its source if known."""
    known = {"program": f"hanse {__version__}"}
    return known if commit is None else known | {"commit": commit}


def jobs_sha256(jobs: JobTable) -> str:
    """Returns a checksum of all that a replay sees of a workload, hexadecimal."""
    digest = hashlib.sha256()
    for name in _COLUMNS:
        column = getattr(jobs, name)
        little_endian = column.astype(column.dtype.newbyteorder("<"), copy=False)
        digest.update(np.ascontiguousarray(little_endian).tobytes())
    return digest.hexdigest()


def first_difference(saved: object, found: object) -> str | None:
    """Returns where two descriptions first differ, for display; `None` if they are equal."""
    return next(_differences(saved, found, ""), None)


def _differences(saved: object, found: object, place: str) -> Iterator[str]:
    if isinstance(saved, Mapping) and isinstance(found, Mapping):
        for key in sorted({*saved, *found}):
            where = f"{place}.{key}" if place else str(key)
            if key not in found:
                yield f"{where} is there no more"
            elif key not in saved:
                yield f"{where} was not there"
            else:
                yield from _differences(saved[key], found[key], where)
    elif isinstance(saved, list) and isinstance(found, list):
        if len(saved) != len(found):
            yield f"{place} had {len(saved)} entries and has {len(found)}"
        for index, (one, other) in enumerate(zip(saved, found, strict=False)):
            yield from _differences(one, other, f"{place}[{index}]")
    elif saved != found:
        yield f"{place or 'it'} was {_shown(saved)} and is {_shown(found)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
