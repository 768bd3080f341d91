"""Writes an sdist anew so that whoever builds it from the same commit gets the same bytes: `sdist.py FOLDER`.

Names are in order, every file has the moment of SOURCE_DATE_EPOCH (0 where it is not set) and belongs to nobody.
"""

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path

EXECUTABLE = 0o100


def anew(packed: bytes, moment: int) -> bytes:
    """Returns an archive with the same files, which says nothing of when and by whom it was made."""
    written = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as old,
        gzip.GzipFile(filename="", fileobj=written, mode="wb", mtime=moment) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            if not (member.isfile() or member.isdir()):
                raise ValueError(f"{member.name} is neither a file nor a folder")
            made = tarfile.TarInfo(member.name)
            made.type, made.size, made.mtime = member.type, member.size, moment
            made.mode = 0o755 if member.isdir() or member.mode & EXECUTABLE else 0o644
            new.addfile(made, old.extractfile(member))
    return written.getvalue()


def main() -> None:
    """Writes the one sdist of a folder anew."""
    (path,) = Path(sys.argv[1]).glob("*.tar.gz")
    path.write_bytes(anew(path.read_bytes(), int(os.environ.get("SOURCE_DATE_EPOCH", "0"))))


if __name__ == "__main__":
    main()
