"""The recorded logs that scenarios name by key, and where they lie on this machine.

All come from the Parallel Workloads Archive (D. Feitelson and the sites that gave their logs);
`scenarios.spec.fetch` downloads them.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lrms_sim.util.trace_folders import (
    FOLDER_VARIABLE,
    LOG_FILES,
    cache_folder,
    find_log,
    trace_folders,
)
from scenarios.util.errors import TraceMissingError

__all__ = [
    "ARCHIVE_URL",
    "FOLDER_VARIABLE",
    "TRACES",
    "Trace",
    "cache_folder",
    "file_sha256",
    "find_trace",
    "require_trace",
    "trace_folders",
]

ARCHIVE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload"
"""One folder per log."""

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Trace:
    """One log of the archive.

    Attributes:
        key: its name in scenarios and on the command line.
        file: its file name.
        archive_folder: the log's folder in the archive.
        processors: size of the machine in the papers whose setups are bundled.
    """

    key: str
    file: str
    archive_folder: str
    sha256: str
    size_bytes: int
    machine: str
    processors: int

    def url(self, base: str = ARCHIVE_URL) -> str:
        """Returns the log's address below the archive or a mirror of it."""
        return f"{base.rstrip('/')}/{self.archive_folder}/{self.file}"


TRACES: dict[str, Trace] = {
    trace.key: trace
    for trace in (
        Trace(
            key="kth",
            file=LOG_FILES["kth"],
            archive_folder="l_kth_sp2",
            sha256="07f87eefc377964b3755abd58c658462e4976dcb8a85656ae7eed0cedf6170f6",
            size_bytes=387_790,
            machine="IBM SP2, Royal Institute of Technology, Stockholm, 1996-97",
            processors=100,
        ),
        Trace(
            key="ctc",
            file=LOG_FILES["ctc"],
            archive_folder="l_ctc_sp2",
            sha256="9fa28ac16c4386fb81b72a91d8bd8888281df2948a9d912769d387c5ee285bb4",
            size_bytes=1_487_336,
            machine="IBM SP2, Cornell Theory Center, 1996-97",
            processors=430,
        ),
        Trace(
            key="sdsc05",
            file=LOG_FILES["sdsc05"],
            archive_folder="l_sdsc_ds",
            sha256="0ddb885a96a7f5ee9009d8a36ef350b1d1c451044c205811938995aac80fcc36",
            size_bytes=1_639_097,
            machine="DataStar, San Diego Supercomputer Center, 2004-05",
            processors=1664,
        ),
        Trace(
            key="sdsc00",
            file=LOG_FILES["sdsc00"],
            archive_folder="l_sdsc_sp2",
            sha256="e03fe48be50c4ab04d6bb2285296d9c3399e9c1f27ee79b754ad32a14abd9bac",
            size_bytes=1_205_570,
            machine="IBM SP2, San Diego Supercomputer Center, 1998-2000",
            processors=128,
        ),
    )
}


def find_trace(key: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the file of a log by its key in `TRACES`, `None` if it is not on this machine.

    `environment` has `HANSE_TRACES` and `XDG_CACHE_HOME`.
    """
    return find_log(key, environment)


def require_trace(key: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file of a log.

    Raises:
        TraceMissingError: it is not on this machine; the text says how to get it.
    """
    path = find_trace(key, environment)
    if path is None:
        looked = " and ".join(str(folder) for folder in trace_folders(environment))
        raise TraceMissingError(
            f"the log {key!r} ({TRACES[key].file}) is not on this machine (looked in {looked}); "
            f"get it with `scenario fetch {key}`, or set {FOLDER_VARIABLE} to a folder that has it"
        )
    return path


def file_sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, hexadecimal; `OSError` if the file cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
