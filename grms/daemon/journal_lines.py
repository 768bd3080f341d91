"""A journal's records for people."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from grms.daemon.journal import WRITTEN_BY, JournalError, JournalKind, reading
from lrms_sim.cli.output_models import OutputModel
from lrms_sim.util.json_output import escaped
from lrms_sim.util.messages import unknown


def lines(path: Path, kind: JournalKind[Any], names: Collection[str] = ()) -> Iterator[str]:
    """Yields the records of a journal as JSON lines; a daemon may have it open.

    `names` are kinds of records, none for all.

    Raises:
        JournalError: it cannot be read, or a kind is unknown.
    """
    for name in names:
        if name not in kind.kinds:
            raise JournalError(unknown("kind of record", name, sorted(kind.kinds)))
    with reading(path, kind) as scan:
        for number, record in enumerate(scan.records(), start=1):
            name = type(record).__name__
            if not names or name in names:
                # Its position; some kinds have a number of their own.
                shown = {"record": number, "kind": name, **msgspec.structs.asdict(record)}
                yield escaped(msgspec.json.encode(shown).decode())


class JournalOutput(OutputModel):
    """What there is in a journal."""

    file: Path
    notes: dict[str, str]
    records: int
    bytes: int
    unfinished_bytes: int
    written_by: str


def checked(path: Path, kind: JournalKind[Any]) -> JournalOutput:
    """Reads a whole journal, and returns a summary.

    Raises:
        JournalDamagedError: the content is corrupt; the text names the byte.
        JournalError: it cannot be read.
    """
    with reading(path, kind) as scan:
        size = os.fstat(scan.descriptor).st_size  # of this file, whatever has its name by the end
        for batch in scan.batches():
            scan.decoded(batch)
        return JournalOutput(
            file=path,
            notes=scan.notes,
            records=scan.count,
            bytes=scan.end,
            unfinished_bytes=max(0, size - scan.end),
            written_by=scan.notes[WRITTEN_BY],
        )
