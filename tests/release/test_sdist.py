"""An sdist is the same bytes wherever it is built."""

import importlib.util
import io
import tarfile
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location(
    "sdist", Path(__file__).parents[2] / ".ci" / "sdist.py"
)
assert SPEC is not None
assert SPEC.loader is not None
SDIST = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(SDIST)


def packed(names: list[str], moment: int, user: str, mode: int = 0o664) -> bytes:
    """Returns an archive, as somebody has made it."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.mode = len(name), moment, user, mode
            archive.addfile(member, io.BytesIO(name.encode()))
    return written.getvalue()


def test_who_and_when_and_in_which_order_does_not_matter() -> None:
    """What is in the files does, and whether they can be run."""
    one = SDIST.anew(packed(["a", "b"], 5, "ann"), 7)
    assert SDIST.anew(packed(["b", "a"], 6, "bob", 0o600), 7) == one
    assert SDIST.anew(packed(["a", "b"], 5, "ann", 0o755), 7) != one
    with tarfile.open(fileobj=io.BytesIO(one)) as archive:
        assert [(each.name, each.mtime, each.mode) for each in archive] == [
            ("a", 7, 0o644),
            ("b", 7, 0o644),
        ]
        file = archive.extractfile("b")
        assert file is not None
        assert file.read() == b"b"


def test_what_is_no_file_is_refused() -> None:
    """A link would be lost."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        link = tarfile.TarInfo("a")
        link.type, link.linkname = tarfile.SYMTYPE, "b"
        archive.addfile(link)
    with pytest.raises(ValueError, match="a is neither a file nor a folder"):
        SDIST.anew(written.getvalue(), 0)
