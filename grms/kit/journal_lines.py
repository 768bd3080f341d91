"""What people see of a journal."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel

from grms.kit.journal import WRITTEN_BY, JournalError, JournalKind, reading


def lines(path: Path, kind: JournalKind[Any], names: Collection[str] = ()) -> Iterator[str]:
    """Yields the records of a journal as JSON, one a line.

    Args:
        path: of the file; a daemon may have it open.
        kind: of journal.
        names: of the kinds of records that are wanted; all where there is none.

    Raises:
        JournalError: it cannot be read, or a name is none of a kind.
    """
    if unknown := set(names) - set(kind.kinds):
        known = ", ".join(sorted(kind.kinds))
        raise JournalError(f"{', '.join(sorted(unknown))}: no kind of record; there are {known}")
    with reading(path, kind) as scan:
        for number, record in enumerate(scan.records(), start=1):
            name = type(record).__name__
            if not names or name in names:
                fields = {each: getattr(record, each) for each in record.__struct_fields__}
                content = {"number": number, "kind": name, **fields}
                yield msgspec.json.encode(content, enc_hook=vars).decode()


class JournalShown(BaseModel):
    """What there is in a journal.

    Attributes:
        file: its path.
        notes: what it says of itself.
        records: how many it holds.
        bytes: what it has on the disk, as far as it was written whole.
        unfinished_bytes: of an end that was never acknowledged; 0 for none.
        written_by: the version that has opened it last, to write it.
    """

    file: Path
    notes: dict[str, str]
    records: int
    bytes: int
    unfinished_bytes: int
    written_by: str


def checked(path: Path, kind: JournalKind[Any]) -> JournalShown:
    """Reads all of a journal, and returns what there is.

    Raises:
        JournalDamagedError: something is not what was written; the text names the byte.
        JournalError: it cannot be read.
    """
    with reading(path, kind) as scan:
        for batch in scan.batches():
            scan.decoded(batch)
        return JournalShown(
            file=path,
            notes=scan.notes,
            records=scan.count,
            bytes=scan.end,
            unfinished_bytes=path.stat().st_size - scan.end,
            written_by=scan.notes[WRITTEN_BY],
        )
